// SPDX-License-Identifier: Apache-2.0
// What is known about scale targets without asking, from watches: one per kind and namespace, kept only while somebody
// wants a target there. Deployments, StatefulSets and ReplicaSets of apps/v1 tell their scale themselves; of any other
// kind /scale is read once after the object has changed, and its pods are watched, since nothing else tells which are
// ready. Of the objects that nobody wants nothing is kept. Beyond TARGET_NAMESPACES_MAX namespaces of a kind one watch
// of all namespaces takes over, where it is allowed.
#ifndef GPUSCALE_K8S_TARGET_STORE_H
#define GPUSCALE_K8S_TARGET_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k8s/scale.h"

struct err;
struct k8s_client;
struct pod_set;
struct target_store;

#define TARGET_NAMESPACES_MAX 32    // watches of one kind; above, all namespaces in one
#define TARGET_KINDS_MAX      32    // targets of further kinds are not watched
#define TARGET_WAIT_MAX_MS    5000  // for the first list
#define TARGET_RETRY_MS       30000 // after a target could not be read

struct target_store_options {
	struct k8s_client *client; // not owned
	// A watch cannot do its work ("deployments in namespace x": ...), or works again (NULL). May be NULL. Must not
	// call back into the store.
	void (*on_error)(void *arg, const char *what, const struct err *error);
	void *arg;
};

struct target_store *target_store_new(const struct target_store_options *options, struct err *e);
// Before the client is freed. Nobody may wait any more; see target_store_stop.
void target_store_free(struct target_store *s);
// Who waits is called, and nothing is watched any more: every target is TARGET_UNWATCHED.
void target_store_stop(struct target_store *s);

// Counted: as many _unwant follow, with the same arguments. with_pods: the pods of its selector too. A kind that is not
// watched is fine; one other than those of apps/v1 is from when the client has learnt it (k8s/discovery.h), as by a
// scale_get(). ERR_INTERNAL when memory ends.
int target_store_want(struct target_store *s, const struct scale_ref *ref, bool with_pods, struct err *e);
void target_store_unwant(struct target_store *s, const struct scale_ref *ref, bool with_pods);

enum target_state {
	TARGET_UNWATCHED, // not from here: ask the server
	TARGET_UNSYNCED,  // soon: see target_store_wait
	TARGET_ABSENT,    // there is no such object
	TARGET_FOUND,
	TARGET_STATE__COUNT
};
// Pointers are borrowed until the loop runs.
struct target_view {
	enum target_state state;
	const char *why; // TARGET_UNWATCHED: why not
	// TARGET_FOUND:
	int32_t spec_replicas, status_replicas, ready_replicas; // ready: -1 = only its pods tell
	int64_t generation;
	const char *resource_version, *selector, *uid;
	const struct pod_set *pods; // NULL: not wanted, or not to be had from here
};
// O(1). What a watch does not tell of a target is asked for meanwhile, once (TARGET_UNSYNCED).
void target_store_get(struct target_store *s, const struct scale_ref *ref, struct target_view *ret_view);

// Calls fn, from the loop, once the target is no longer TARGET_UNSYNCED, or after TARGET_WAIT_MAX_MS. *w is the
// caller's, and stays until fn was called or target_store_cancel_wait.
struct target_waiter {
	struct target_waiter *prev, *next;
	struct target_record *record;
	int64_t until_mono_ms;
	void (*fn)(void *arg);
	void *arg;
};
void target_store_wait(struct target_store *s, const struct scale_ref *ref, struct target_waiter *w,
                       void (*fn)(void *arg), void *arg);
void target_store_cancel_wait(struct target_store *s, struct target_waiter *w);

// The server answered a PATCH with this: known before the event comes, so that the next one does not conflict with it.
void target_store_note_scaled(struct target_store *s, const struct scale_ref *ref, const struct scale *scale);

struct target_store_stats {
	size_t targets, watches, unsynced,
	        broken;         // wanted and watched; watches now; of these without a list, with an error
	const char *broken_why; // of one that is broken, borrowed until the loop runs; NULL: none is
	uint64_t lists, streams, events, gone, fetches;
};
void target_store_get_stats(const struct target_store *s, struct target_store_stats *ret_stats);

#endif
