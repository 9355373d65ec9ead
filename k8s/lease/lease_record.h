// SPDX-License-Identifier: Apache-2.0
// Decodes Lease objects (coordination.k8s.io/v1), and encodes them with only the changes of a write.
#ifndef GPUSCALE_K8S_LEASE_LEASE_RECORD_H
#define GPUSCALE_K8S_LEASE_LEASE_RECORD_H

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
#define LEASES_MAX             1000 // leases in one list

#define LEASE_LABEL_GROUP       "gpuscale.dev/lease-group" // the leases of one controller: its --lease-name
#define LEASE_LABEL_ROLE        "gpuscale.dev/lease-role"  // "shard" or "member"
#define LEASE_ANNOTATION_SHARDS "gpuscale.dev/shards"      // the --shards of its last holder

struct lease_record {
	char name[LEASE_NAME_BYTES];
	char version[LEASE_VERSION_BYTES];   // resourceVersion, opaque
	char holder[LEASE_IDENTITY_BYTES];   // "": free
	char renew_stamp[LEASE_STAMP_BYTES]; // renewTime, as text
	int64_t duration_ms;                 // leaseDurationSeconds; 0 when absent
	int64_t transitions;
	int32_t n_shards; // the annotation; 0 when absent or invalid
	bool is_member;   // the role label
};

// Decodes one Lease. Returns 0, or -1 and *e: ERR_PROTOCOL, ERR_LIMIT, ERR_INTERNAL.
int lease_record_decode(const char *text, size_t len, struct lease_record *ret_record, struct err *e);
// The same for an item of a list or a watch, whose kind is not checked.
int lease_item_decode(const char *text, size_t len, struct lease_record *ret_record, struct err *e);
// record is valid during the call.
typedef void lease_record_fn(void *arg, const struct lease_record *record);
// Decodes a LeaseList and calls fn with each item. Returns 0, or -1 and *e: ERR_PROTOCOL, ERR_LIMIT, ERR_INTERNAL.
int lease_list_decode(const char *text, size_t len, lease_record_fn *fn, void *arg, struct err *e);

struct lease_write {
	const char *namespace_name, *name;
	const char *group, *role; // labels; NULL: none
	int32_t n_shards;         // annotation; 0: none
	const char *holder;       // "" releases the lease
	int64_t duration_ms;      // rounded up to seconds
	char stamp[LEASE_STAMP_BYTES];
	bool is_takeover; // acquireTime becomes stamp, leaseTransitions grows by one
};
// Writes wall_ms as the API's MicroTime, "2026-01-05T09:00:00.123456Z". micros (0 to 999) becomes the last three
// digits: a random number there distinguishes two writers with the same identity.
void lease_stamp(char out[LEASE_STAMP_BYTES], int64_t wall_ms, unsigned micros);
// Appends the object to PUT: object[0..len), the server's JSON of the lease, with the changes of w. All else stays as
// it is, its resourceVersion included, so that the server refuses the write when another write was faster. With object
// NULL, appends the object to POST. Returns 0, or -1 and *e.
int lease_write_encode(struct buf *out, const struct lease_write *w, const char *object, size_t len, struct err *e);

#endif
