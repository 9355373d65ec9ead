// SPDX-License-Identifier: Apache-2.0
// Keeps the pods that match the wanted selectors, from an informer (k8s/cache/informer.h). Other pods are not kept.
#ifndef GPUSCALE_K8S_CACHE_POD_STORE_H
#define GPUSCALE_K8S_CACHE_POD_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "k8s/cache/informer.h"
#include "k8s/client/scale.h"

struct err;
struct k8s_client;
struct pod_set;
struct pod_store;

#define POD_NAMESPACES_MAX 32 // watches; above this number, one watch of all namespaces
// Different selectors of a namespace that are found by the same label, or by none: each pod with it is matched against
// all of them. A selector is found by that of its labels by which the fewest others are. The pods of those above the
// limit are requested at each tick.
#define POD_TERM_SETS_MAX 128

struct pod_store_options {
	struct k8s_client *client;                                              // not owned
	void (*on_error)(void *arg, const char *what, const struct err *error); // as in target_store_options
	void (*on_change)(
	        void *arg); // a list is complete, or a watch failed or recovered; not for each event. May be NULL
	void *arg;
};

// Creates a store. Returns NULL and *e when memory is exhausted.
struct pod_store *pod_store_new(const struct pod_store_options *options, struct err *e);
// Frees the store. Call before the client is freed, after every set is unwanted.
void pod_store_free(struct pod_store *s);

// Starts to track the pods of a selector (as label_selector_parse reads it; not empty) in a namespace. Do not call from
// a callback of the store. workload: the kind of the target; if its selector is limited to leaders, the set has all
// pods of the replicas (workload_kind_widen). Returns NULL and *e: ERR_INPUT, ERR_LIMIT (POD_TERM_SETS_MAX, or see
// informer_put), ERR_INTERNAL.
struct pod_set *pod_store_acquire(struct pod_store *s, const char *namespace_name, const char *selector,
                                  const struct workload_kind *workload, struct err *e);
void pod_set_release(struct pod_set *set); // NULL is fine

// BROKEN: the watch fails; UNSYNCED: no complete list contains the pods of the set yet.
enum pod_set_state { POD_SET_BROKEN, POD_SET_UNSYNCED, POD_SET_KNOWN };
enum pod_set_state pod_set_state(const struct pod_set *set);

struct pod_view {
	const char *name;
	enum pod_kind kind;
	bool is_crashing;             // in CrashLoopBackOff or a similar state; with ready_ms 0 it was never ready
	int64_t created_ms, ready_ms; // since the epoch; 0: unknown
	struct group_member member;   // is_leader: the selector itself matches the pod
};
struct pod_set_counts {
	struct pod_counts counts;
	int32_t crashing;
};
void pod_set_get_counts(const struct pod_set *set, struct pod_set_counts *ret_counts);
// Calls fn for each pod, in no order. Views are borrowed during the call.
void pod_set_each(const struct pod_set *set, void (*fn)(void *arg, const struct pod_view *pod), void *arg);

struct informer_state pod_store_get_state(const struct pod_store *s);

#endif
