// SPDX-License-Identifier: Apache-2.0
// Lease objects (coordination.k8s.io/v1) as values, and back: what a write changes, and nothing else.
#ifndef GPUSCALE_K8S_LEASE_RECORD_H
#define GPUSCALE_K8S_LEASE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

#define LEASE_NAME_BYTES       254
#define LEASE_IDENTITY_BYTES   254
#define LEASE_VERSION_BYTES    64
#define LEASE_STAMP_BYTES      32
#define LEASE_OBJECT_BYTES_MAX (64 * 1024)
#define LEASES_MAX             1000 // of one list

#define LEASE_LABEL_GROUP       "gpuscale.dev/lease-group" // the leases of one controller: its --lease-name
#define LEASE_LABEL_ROLE        "gpuscale.dev/lease-role"  // "shard" or "member"
#define LEASE_ANNOTATION_SHARDS "gpuscale.dev/shards"      // the number of shards its last holder goes by

struct lease_record {
	char name[LEASE_NAME_BYTES];
	char version[LEASE_VERSION_BYTES];   // resourceVersion, opaque
	char holder[LEASE_IDENTITY_BYTES];   // "" = nobody
	char renew_stamp[LEASE_STAMP_BYTES]; // renewTime as it stands there
	int64_t duration_ms;                 // leaseDurationSeconds; 0 when absent
	int64_t transitions;
	int32_t n_shards; // the annotation; 0 when absent or no number
	bool is_member;   // the role label
};

// One Lease. ERR_PROTOCOL, ERR_LIMIT.
int lease_record_decode(const char *text, size_t len, struct lease_record *ret_record, struct err *e);
// The same without a look at its kind, which items of lists do not have.
int lease_item_decode(const char *text, size_t len, struct lease_record *ret_record, struct err *e);
// A LeaseList: each item is handed to fn, valid during the call.
typedef void lease_record_fn(void *arg, const struct lease_record *record);
int lease_list_decode(const char *text, size_t len, lease_record_fn *fn, void *arg, struct err *e);

struct lease_write {
	const char *namespace_name, *name;
	const char *group, *role; // labels; NULL: none
	int32_t n_shards;         // annotation; 0: none
	const char *holder;       // "" gives it up
	int64_t duration_ms;      // rounded up to seconds
	char stamp[LEASE_STAMP_BYTES];
	bool is_takeover; // acquireTime becomes stamp, leaseTransitions grows by one
};
// "2026-01-05T09:00:00.123456Z", the API's MicroTime. The last three digits (0..999) are the caller's: a random number
// there tells two writers apart that go by one name.
void lease_stamp(char out[LEASE_STAMP_BYTES], int64_t wall_ms, unsigned micros);
// Appends the object to PUT: `object` (the server's text of it) with what the write says, everything else as it was,
// its resourceVersion included, so that the server refuses it when somebody was faster; or, with object NULL, the
// object to POST.
int lease_write_encode(struct buf *out, const struct lease_write *w, const char *object, size_t len, struct err *e);

#endif
