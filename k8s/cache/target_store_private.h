// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the target store. Include it only from those files.
//   target_store.c   the state of each target, its waiters, the public functions
//   target_fetch.c   /scale of the kinds whose objects do not contain it
//   target_kind.c    the kinds, each with an informer
#ifndef GPUSCALE_K8S_CACHE_TARGET_STORE_PRIVATE_H
#define GPUSCALE_K8S_CACHE_TARGET_STORE_PRIVATE_H

#include <utlist.h>

#include "base/err.h"
#include "base/hash_table.h"
#include "k8s/cache/informer.h"
#include "k8s/cache/pod_store.h"
#include "k8s/cache/target_decode.h"
#include "k8s/cache/target_store.h"
#include "k8s/client/discovery.h"

#define TARGET_VERSION_BYTES 32 // etcd uses up to 20 digits; a target with a longer version is read by GET

struct target_kind {
	int number; // index in the store
	char api_version[DISCOVERY_GROUP_BYTES], name[DISCOVERY_NAME_BYTES];
	char plural[DISCOVERY_NAME_BYTES]; // "" until discovery has found it
	char *path;                        // of the replicas in the object; NULL: none
	const struct workload_kind *workload;
	bool contains_scale; // the objects do; otherwise /scale is read after a change
	struct target_store *store;
	struct informer *informer;     // NULL until the client knows the plural
	struct informer_item *waiting; // hash: records without an informer, see join_informer()
	int n_records;
};

// Kept small: there may be 20,000 records.
struct target_record {
	struct informer_item item; // .space NULL: in kind->waiting
	struct target_kind *kind;
	struct k8s_call *scale_call; // reads /scale, for a kind whose objects do not contain it; NULL: none
	int64_t scale_after_ms;      // no request before this time; 0: at once
	int refs, pods_refs;
	int32_t spec_replicas, status_replicas, ready_replicas; // status, ready: -1: unknown
	bool is_known, exists;
	bool reports_ready, is_ready_stale; // ready_replicas: the object has reported some; see target_view
	bool is_noted; // for a kind whose objects do not contain the scale: the version is that of /scale or of our own
	               // write
	int64_t generation;
	char resource_version[TARGET_VERSION_BYTES], uid[TARGET_UID_BYTES];
	char *selector;       // NULL = ""
	struct pod_set *pods; // NULL: not wanted, or not available
	char key[];           // namespace, '/', name
};

struct target_store {
	struct target_store_options options;
	const struct informer_callbacks *callbacks;  // callbacks of the informer of each kind
	struct target_kind *kinds[TARGET_KINDS_MAX]; // NULL: unused
	size_t n_kinds;                              // used part of the array, with its NULLs
	struct target_waiter *waiters;
	struct event *wake;
	struct pod_store *pods;
	bool is_stopped;
	struct target_store_stats stats;
};

// ---- target_record.c ----
// Returns whether version a is older than b. Only versions that are numbers can be compared; for others, false.
bool target_version_is_older(const char *a, const char *b);
// Wants the pods of the current selector. Call after a change of selector, existence or wants_pods.
void target_follow_pods(struct target_record *r);
// Updates the record from the object's JSON.
void target_apply_object(struct target_record *r, const char *json, size_t len);
void target_set_absent(struct target_record *r);
// Marks the scale as unknown: /scale is read when the target is next wanted, but not within for_ms.
void target_set_scale_unknown(struct target_record *r, int64_t for_ms);
// Applies a reply of /scale. Ignored when an event has reported a newer version of the object since; then /scale is
// read again.
void target_apply_scale(struct target_record *r, const struct scale *scale);
// Lets the loop call the waiters whose target is no longer TARGET_UNSYNCED.
void target_store_wake(struct target_store *s);

// ---- target_fetch.c ----
void target_fetch_scale(struct target_record *r, const struct scale_ref *ref);

// ---- target_kind.c ----
// Adds the kinds of apps/v1. Returns -1 and *e when memory is exhausted.
int target_kinds_init(struct target_store *s, struct err *e);
void target_kinds_done(struct target_store *s);
struct target_kind *target_kind_find(const struct target_store *s, const struct scale_ref *ref);
// Returns NULL above TARGET_KINDS_MAX, for a name that is too long, and when memory is exhausted.
struct target_kind *target_kind_add(struct target_store *s, const char *api_version, const char *name,
                                    const char *path);
// Frees a kind without targets.
void target_kind_drop(struct target_store *s, struct target_kind *k);
// Returns the informer of the kind, created once the client knows the URL of the kind; NULL before. Returns NULL and *e
// when memory is exhausted.
struct informer *target_kind_informer(struct target_kind *k, struct err *e);

#endif
