// SPDX-License-Identifier: Apache-2.0
// Finds conflicting autoscalers of a target: objects of the kinds in autoscaler_kinds (k8s/cache/autoscaler_object.h)
// that the cluster serves. Watches the namespaces of the policies. Above CONFLICT_NAMESPACES_MAX namespaces, one watch
// of all namespaces takes over, where RBAC permits it (k8s/cache/informer.h). At start, and then every few minutes, the
// server is queried for the kinds that it does not serve yet; apart from that, no requests are sent while nothing
// changes.
#ifndef GPUSCALE_K8S_CACHE_CONFLICT_WATCH_H
#define GPUSCALE_K8S_CACHE_CONFLICT_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct k8s_client;
struct scale_ref;
struct conflict_watch;
struct conflict_interest;

#define CONFLICT_COMPARED_MAX   256 // autoscalers of one target among which the reported one is chosen
#define CONFLICT_NAMESPACES_MAX 32  // watches of one kind; above this number, one watch of all namespaces
#define CONFLICT_TEXT_BYTES     560
#define CONFLICT_ASK_MS         300000 // time between checks for kinds that are not served, plus up to a tenth at random
#define CONFLICT_ASK_RETRY_MS   30000  // after a check that failed

struct conflict_watch_options {
	struct k8s_client *client; // not owned
	// Called from the loop when the result of conflict_watch_find or conflict_watch_error has changed for a target
	// that was wanted with `user`, or conflict_watch_is_known has become true. It must not call
	// conflict_watch_acquire or conflict_watch_release.
	void (*on_change)(void *arg, void *user);
	void *arg;
	int64_t ask_ms; // 0: CONFLICT_ASK_MS
	// The caller acts on ScaledObjects itself: they do not conflict, and an HPA of KEDA is reported by its own
	// name.
	bool skip_scaled_objects;
};

// Creates a conflict watch. It sends no request before a target is wanted. Returns NULL and *e when memory is
// exhausted.
struct conflict_watch *conflict_watch_new(const struct conflict_watch_options *options, struct err *e);
// Frees it and everything that is still wanted. Call before the client is freed. NULL is fine.
void conflict_watch_free(struct conflict_watch *s);

// Starts to find the conflicting autoscalers of a target. ref is copied. Must not be called from on_change. Returns
// NULL and *e: ERR_INTERNAL when memory is exhausted, ERR_USAGE for an invalid name.
struct conflict_interest *conflict_watch_acquire(struct conflict_watch *s, const struct scale_ref *ref, void *user,
                                                 struct err *e);
void conflict_watch_release(struct conflict_interest *w); // NULL is fine

// Returns the conflicting autoscaler as "KIND NAMESPACE/NAME", the first in the order of enum autoscaler_kind and then
// of names when there are several; NULL when none is known. An HPA that KEDA created is reported as its ScaledObject.
// Valid until the loop runs.
const char *conflict_watch_find(const struct conflict_interest *w);
// Returns whether each resource was listed or refused. Before that, conflict_watch_find may miss an autoscaler.
bool conflict_watch_is_known(const struct conflict_interest *w);
// Returns why a conflicting autoscaler may be missed, such as a verb that RBAC does not grant, in the server's words;
// NULL when none is. Valid until the loop runs.
const char *conflict_watch_error(const struct conflict_interest *w);

#endif
