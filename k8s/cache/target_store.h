// SPDX-License-Identifier: Apache-2.0
// The current state of scale targets, from one informer per kind (k8s/cache/informer.h), without a request per tick.
// Deployments, StatefulSets and ReplicaSets of apps/v1 contain their scale, and so does an object whose replicas a path
// names: one informer per kind and path. For any other kind, /scale is read once
// after each change of the object, the ready replicas are those that the object reports, and its pods are watched,
// because not every kind reports them. Objects that are not wanted are not kept. A target that exists is never reported
// as TARGET_ABSENT: an uncertain target is fetched.
#ifndef GPUSCALE_K8S_CACHE_TARGET_STORE_H
#define GPUSCALE_K8S_CACHE_TARGET_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "k8s/cache/informer.h"
#include "k8s/client/scale.h"

struct err;
struct k8s_client;
struct pod_set;
struct target_store;

#define TARGET_NAMESPACES_MAX 32    // watches of one kind; above this number, one watch of all namespaces
#define TARGET_KINDS_MAX      32    // targets of further kinds are not watched
#define TARGET_WAIT_MAX_MS    5000  // time to wait for the first list
#define TARGET_RETRY_MS       30000 // time between attempts to read a target

struct target_store_options {
	struct k8s_client *client; // not owned
	// A watch fails, or works again (error is NULL). what names it: "deployments in namespace x". Called from the
	// loop; must not call the store. May be NULL.
	void (*on_error)(void *arg, const char *what, const struct err *error);
	void *arg;
};

// Creates a store. Returns NULL and *e when memory is exhausted.
struct target_store *target_store_new(const struct target_store_options *options, struct err *e);
// Frees the store. Call before the client is freed, and when no waiter is registered (target_store_stop calls them).
void target_store_free(struct target_store *s);
// Calls all waiters and stops all watches. Every target is TARGET_UNWATCHED afterwards.
void target_store_stop(struct target_store *s);

// Starts to watch a target, and with_pods also the pods of its selector; or adds a reference. A kind outside of apps/v1
// is watched as soon as discovery has found it (k8s/client/discovery.h), for example for scale_get. Returns 1; call
// target_store_release with the same arguments once for each such call. Returns 0 when the store cannot watch the
// target now (TARGET_KINDS_MAX, an invalid name, or the store is stopped): it may be called again later. Returns -1 and
// *e when memory is exhausted.
int target_store_acquire(struct target_store *s, const struct scale_ref *ref, bool with_pods, struct err *e);
void target_store_release(struct target_store *s, const struct scale_ref *ref, bool with_pods);

enum target_state {
	TARGET_UNWATCHED, // the store does not know the target: send a request
	TARGET_UNSYNCED,  // the state is being read: see target_store_wait
	TARGET_ABSENT,    // the object does not exist; confirmed
	TARGET_FOUND,
	TARGET_STATE__COUNT
};
// Pointers are borrowed until the loop runs.
struct target_view {
	enum target_state state;
	const char *why; // TARGET_UNWATCHED: the reason
	// TARGET_FOUND:
	int32_t spec_replicas, status_replicas, ready_replicas; // status, ready: -1: only the pods show it
	bool is_ready_stale;                                    // counted before the last change of the spec
	int64_t generation;
	const char *resource_version, *selector, *uid;
	const struct pod_set *pods; // NULL: not wanted, or not available
};
// Returns the state of a target in O(1). When a watch does not report it, the store requests it once (TARGET_UNSYNCED).
void target_store_get(struct target_store *s, const struct scale_ref *ref, struct target_view *ret_view);

// Calls fn(arg) from the loop, once, when the target is no longer TARGET_UNSYNCED, or after TARGET_WAIT_MAX_MS. The
// caller owns *w, which must stay valid until fn is called.
struct target_waiter {
	struct target_waiter *prev, *next;
	struct target_record *record;
	int64_t until_mono_ms;
	void (*fn)(void *arg);
	void *arg;
};
void target_store_wait(struct target_store *s, const struct scale_ref *ref, struct target_waiter *w,
                       void (*fn)(void *arg), void *arg);

// Records the reply to a PATCH of /scale, which arrives before the event, so that the next PATCH does not conflict.
void target_store_note_scaled(struct target_store *s, const struct scale_ref *ref, const struct scale *scale);
// Records that the response to a PATCH of /scale was 404: the target is unknown until it is requested again.
void target_store_note_missing(struct target_store *s, const struct scale_ref *ref);

// Returns the sum over all watches; its items are the targets that are wanted and watched.
struct informer_state target_store_get_state(const struct target_store *s);

// Reads the ready replicas that a target itself reports, by one request, for targets that are not watched.
// Receives the result, once, from the loop. ready: -1 when the target reports none or cannot be read; is_stale: as
// target_decode_ready() sets it.
typedef void target_ready_fn(void *arg, int32_t ready, bool is_stale);

// Sends a list of the one object, for which the rights of a watch suffice. Returns 0, or -1 when the resource of the
// kind is unknown (discovery.h) or no request can be sent; then done is not called.
int target_ready_fetch(struct k8s_client *c, const struct scale_ref *ref, target_ready_fn *done, void *arg);

#endif
