// SPDX-License-Identifier: Apache-2.0
// How many more replicas of each wanted target fit into the cluster. One inventory serves all targets; it is created
// when the first one is wanted. What a replica needs is fetched when the target's generation changes; the fit is
// computed when the inventory or the orders have changed, by one plan for all targets that need the same resource. In
// one turn of the event loop, FIT_WORK_PER_TURN comparisons are made; a plan that needs more continues in later turns.
#ifndef GPUSCALE_K8S_CAPACITY_FIT_STORE_H
#define GPUSCALE_K8S_CAPACITY_FIT_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct fit_store;
struct fit_target;
struct k8s_client;
struct pod_list;
struct scale_ref;
struct target_store;

#define FIT_RETRY_MS      30000  // time between attempts to read a target that could not be read
#define FIT_SYNC_WAIT_MS  5000   // how long the first questions wait for the lists of the inventory
#define FIT_ORDER_MAX     2000   // pods of one order that are counted
#define FIT_WORK_PER_TURN 500000 // comparisons of a rule, an amount or a label with those of a node or a pod

struct fit_store_options {
	struct k8s_client *client;    // not owned
	struct target_store *targets; // shows which orders exist as pods; not owned; may be NULL
	// The inventory cannot be read, or works again (error is NULL). Called when that changes, from the loop. May be
	// NULL.
	void (*on_error)(void *arg, const struct err *error);
	void *arg;
};

// Creates a store that watches nothing yet. Returns NULL and *e when memory is exhausted.
struct fit_store *fit_store_new(const struct fit_store_options *options, struct err *e);
// Calls the callbacks of all waiting questions and stops all watches. Call before the client is freed.
void fit_store_stop(struct fit_store *s);
// Frees the store and all targets. Call after fit_store_stop(). NULL is fine.
void fit_store_free(struct fit_store *s);

// Starts to track a target. Returns NULL and *e: ERR_INTERNAL, ERR_LIMIT.
struct fit_target *fit_store_acquire(struct fit_store *s, const struct scale_ref *ref, struct err *e);
void fit_target_release(struct fit_target *t); // NULL is fine; not while fit_target_prepare() waits

// Makes the target ready for fit_target_read(): fetches what a replica needs, unless it is known for this `generation`
// of the target (-1: fetch it in any case), and waits for the inventory. Calls done exactly once, maybe before this
// returns.
void fit_target_prepare(struct fit_target *t, int64_t generation, void (*done)(void *arg), void *arg);

// Sets the selector of the scale: shows the pods of a kind that has none in spec.selector.
void fit_target_select(struct fit_target *t, const char *selector);

struct fit_view {
	bool is_known;
	// Replicas that fit in addition to the current scale and all pods that exist; 0 while a scheduling gate blocks
	// one.
	int32_t fit;
	// Replicas of the target of which the scheduler cannot place a pod, or a scheduling gate blocks one.
	int32_t unschedulable;
	// Since when each of those that a scale-down removes first, oldest first; INT64_MAX: unknown, or a scheduling
	// gate blocks any of them.
	const int64_t *since_ms;
	size_t n_since;
	// Why no more fit: the scheduling gate, or the words of the scheduler if possible; or why that is unknown.
	const char *detail;
};
// Returns the fit at this moment, or while that takes more work than one turn has left: the last one; 0, with the
// reason in `detail`, when there is none or something was ordered since. spec and status: the replicas that the target
// requests, and those that exist. keeps_order: a write whose response was lost may still take effect. Pointers are
// valid until the next call.
void fit_target_read(struct fit_target *t, int32_t spec, int32_t status, bool keeps_order, struct fit_view *ret_view);
// Returns how many GPUs a replica requests (replica_shape_gpus); 0: unknown.
int32_t fit_target_gpus(const struct fit_target *t);
// Reports that a write from `from` to `to` replicas is about to be sent: for FIT_ORDER_MS, other targets do not get the
// room of those that it adds (k8s/capacity/fit_order.h).
void fit_target_ordered(struct fit_target *t, int32_t from, int32_t to);
// Reports that the write was never sent, so that the scale is still `replicas`.
void fit_target_unsent(struct fit_target *t, int32_t replicas);
// Reports that the scale is `replicas` now, and that no write is in flight.
void fit_target_scaled(struct fit_target *t, int32_t replicas);

// Returns how many replicas have a pod, of those listed and except finished and deleted ones, on failing GPUs, as the
// taints and annotations of gpuscale remediate report them: on each node, at most as many pods as it has failing GPUs.
// -1: unknown.
int32_t fit_target_failing(const struct fit_target *t, const struct pod_list *pods);

#endif
