// SPDX-License-Identifier: Apache-2.0
// One binding of a policy of the store in this process, with its state, its status and what it awaits, and the list of
// all of them. The files of this folder work on them: each keeps its own part of a managed policy, and marks the policy
// when the version that should be in force may have changed; policy_sync.h then compares what should be with what is.
#ifndef GPUSCALE_CONTROLLER_POLICY_MANAGED_POLICY_H
#define GPUSCALE_CONTROLLER_POLICY_MANAGED_POLICY_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/policy/policy_report.h"
#include "controller/policy/scale_fight.h"
#include "controller/tick/ticks.h"

struct binding;
struct conflict_pause;
struct conflict_interest;
struct conflicts;
struct connections;
struct early_check;
struct early_checks;
struct err;
struct event;
struct fleet;
struct fleet_env;
struct ha_options;
struct keda_watch;
struct policy_pools;
struct policy_ref;
struct policy_status;
struct policy_store;
struct policy_sync;
struct pool_membership;
struct shards;
struct status_writer;
struct stored_binding;
struct event_recorder;
struct pool_summary;
struct pool_watch;
struct pools;
struct state_dir;

// What a managed policy awaits. Until it awaits nothing, no version of it is in force. One that awaits at most its
// conflicts is a member of its pool.
enum policy_awaits {
	AWAITS_NOTHING,
	AWAITS_CONFLICTS,  // whether another autoscaler controls the target is not known yet
	AWAITS_AUTOSCALER, // another autoscaler controls the target, or another client keeps changing its replicas
	AWAITS_SHARD,      // another process owns the policy
	AWAITS_POLICY,     // another policy owns the target
	AWAITS_VERSION,    // no version of the policy is valid
	AWAITS_REMOVAL,    // removed from the store; freed once no tick is in progress
	POLICY_AWAITS__COUNT
};
extern const char *const policy_awaits_names[POLICY_AWAITS__COUNT];

// The policies of the process. Zeroed, then filled by the controller; the parts below are not owned.
struct managed_policies {
	struct policy_store *store;
	struct connections *connections;
	struct ticks *ticks;
	struct metrics *metrics;
	struct log *log;
	struct policy_sync *policy_sync;
	struct fleet_env *fleets;    // of policy_sync
	struct conflicts *conflicts; // NULL: the connections are being closed
	struct keda_watch *keda;     // NULL: without ScaledObjects, or the connections are being closed
	struct early_checks *early_checks;
	struct policy_pools *policy_pools;
	// Returns whether every source has delivered its policies, or reported why it cannot.
	bool (*has_synced)(const void *arg);
	const void *arg;
	bool dry_run, stopping;

	struct managed_policy **list; // those with a reconciler
	size_t n, room;
	size_t n_conflicts_awaited;     // AWAITS_CONFLICTS
	struct managed_policy **sorted; // the same by name and key; rebuilt on demand
	bool is_sorted;
	struct managed_policy *dirty; // marked; policy_sync() empties the queue
	struct event *wake;           // calls it; NULL: not running yet
	uint64_t revision;            // changes whenever the endpoints show something new
	int64_t changed_ms;           // wall clock of that change
};

// One binding of the store. Outlives it while a tick is in progress. Kept small: there may be 20,000 of them.
struct managed_policy {
	struct ticker ticker; // first, so that a ticker is its policy
	struct managed_policies *all;
	const char *name;              // behind namespace_name
	const char *key;               // of the binding, behind name; NULL: the policy has one binding
	struct stored_binding *stored; // NULL: removed from the store
	enum policy_awaits awaits;     // as of the last policy_sync()
	struct policy_ref *body;       // the version in force, one reference; NULL: none
	struct reconciler *reconciler; // NULL: no version is in force
	struct fleet *fleet;           // in its place, of a policy with spec.scaleTargets
	struct policy_report report;   // of the reconciler
	struct policy_status *status;  // NULL: nowhere to write it, or another process writes it
	size_t index;                  // in managed_policies.list
	struct managed_policy *previous_dirty, *next_dirty;
	int64_t last_scale_boot_ms; // last scale by an earlier reconciler; -1: none known

	// policy_pools.c
	struct pool_membership *membership; // NULL: there are no pools, or the policy is not in force

	// early_check.c
	struct early_check *early_check; // in flight; NULL: none
	int64_t early_check_ms;          // the moment of the last one
	int64_t early_after_mono_ms;     // no check before this time
	int64_t early_mono_ms;           // of the last tick that a check started
	struct managed_policy *previous_early, *next_early;

	// policy_conflicts.h
	struct conflict_interest **conflict_interests; // watches for autoscalers of each target; NULL: not watched
	size_t n_conflict_interests;
	struct policy_ref *conflicts_of; // the policy whose target that is, one reference
	struct conflict_pause *pause;    // another client keeps changing the target; NULL: none does
	struct scale_fight fight;        // with that client

	uint32_t term;           // of ownership when the reconciler was created
	bool awaits_early_check; // queued in early_checks
	bool checks_alone;       // its query cannot be combined with similar ones
	bool early_check_failed; // a query of the last check; the next check follows a tick, or failures would add up
	bool has_early_tick;     // a check has started a tick
	bool is_blind;           // its conflicts may go undetected; counted in struct conflicts
	bool is_dirty;           // queued in managed_policies.dirty
	bool restores;           // deleted: its restoreReplicas must be set
	bool is_shadowed;        // logged already
	char namespace_name[];   // then the name and the key
};

// Creates the managed policy of a binding, whose `user` becomes the policy. Ends the process without memory.
struct managed_policy *managed_policy_new(struct managed_policies *all, struct stored_binding *stored);
// Returns the binding of the policy in `body`, a version that has it.
const struct binding *managed_policy_binding(const struct managed_policy *m, const struct policy_ref *body);
// Marks the policy: something changed that decides whether, or with which version, it is in force.
void managed_policy_mark(struct managed_policy *m);
// Takes the policy out of the queue of marked ones.
void managed_policy_unmark(struct managed_policy *m);
// Marks every policy of the store.
void managed_policies_mark_all(struct managed_policies *all);
// Calls policy_sync() soon from the loop. Nothing happens before managed_policies.wake is set.
void managed_policies_wake(struct managed_policies *all);
// Call when something that the endpoints show has changed.
void managed_policies_changed(struct managed_policies *all);
// Returns whether `id` is NAMESPACE/NAME of the policy, or with a slash and a key behind it, of this binding.
bool managed_policy_has_id(const struct managed_policy *m, const char *id);
// Compares two pointers to policies, for qsort(): by namespace, name and key.
int managed_policy_compare(const void *a, const void *b);
// Returns the policies with a reconciler by namespace, name and key: all->n of them, valid until the loop runs.
struct managed_policy *const *managed_policies_sort(struct managed_policies *all);

// Returns why the last tick made no decision; "" when it did.
const char *managed_policy_error(const struct managed_policy *m);

// ---- which of them this process works on, when several processes share them ----
// A reconciler lives as long as the process owns the shard of its policy; a lost shard is released once no tick or
// status write of its policies is in flight.

// election: NULL: this process owns every policy. After the policies were freed, the loop must not run any more.
int ownership_open(struct managed_policies *all, struct ha_options *election, struct err *e);
// Returns a number that increases each time this process acquires the policy; 0: the process does not own it.
uint32_t ownership_term(const struct managed_policy *m);
// The callback of struct restore_env; arg: the connections.
bool ownership_may_restore(void *arg, const struct policy_ref *body, struct err *e);

// ---- early_check.c ----

// The checks of all policies. Zero it before use.
struct early_checks {
	struct managed_policy *queue;
	int in_flight; // those whose queries cannot be combined with similar ones, and so below
	int64_t second;
	int n_in_second; // queued in that second
	bool is_starting;
};

// The callback of struct ticks_options.
void early_check_start(void *arg, struct ticker *t, int64_t now_ms);
// Call when a tick starts: a check from before it must not lead to a tick as of an earlier moment.
void early_check_drop(struct managed_policy *m);
// Call before the reconciler is freed: a check in flight then has no effect.
void early_check_forget(struct managed_policy *m);

// ---- policy_pools.c ----

struct policy_pools_options {         // nothing of it owned
	struct managed_policies *all; // after ownership_open()
	bool watches;                 // pools come from the API server, too
	bool once;
	const char *const *paths; // files and folders of policies, which may contain pools
	size_t n_paths;
	struct status_writer *writer;  // NULL: no status is written to the API server
	struct event_recorder *events; // NULL: none
	struct state_dir *dir;         // where the spending of pools from files is saved; NULL: nowhere
};

struct policy_pools {
	struct policy_pools_options options;
	struct pools *pools;
	struct pool_watch *watch; // NULL: no pools from the API server
	struct event timer;       // of the status
};

struct policy_pools *policy_pools_new(const struct policy_pools_options *options);
// Stops the watch. Call before the client is freed.
void policy_pools_disconnect(struct policy_pools *p);
// Call after the policies were freed. NULL is fine, as it is for the function above.
void policy_pools_free(struct policy_pools *p);
// Reads the pools of the policy files again, before the policies: the callback of struct file_source_options; arg: the
// pools. If one is invalid, all stay as they were, and *e says so.
int policy_pools_read_files(void *arg, struct err *e);
// Makes the policy a member. `member` is the version that is in force or about to be; NULL: the policy is no longer in
// force, and it leaves its pool unless a tick is in progress.
void policy_pools_sync(struct managed_policy *m, const struct policy *member);
// Takes the policy out of its pool. No tick may be in progress.
void policy_pools_leave(struct managed_policy *m);
// The callback of struct reconcile_env; owner: the managed policy.
struct pool_membership *policy_pools_membership(void *owner);
// Fills ret with the pools, by name, and returns how many there are: at most POOLS_MAX (controller/pool/pools.h). The
// names are valid until the loop runs.
size_t policy_pools_summarize(struct policy_pools *p, struct pool_summary *ret);

#endif
