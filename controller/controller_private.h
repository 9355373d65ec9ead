// SPDX-License-Identifier: Apache-2.0
// What the controller_*.c files share; no other file includes it.
#ifndef GPUSCALE_CONTROLLER_CONTROLLER_PRIVATE_H
#define GPUSCALE_CONTROLLER_CONTROLLER_PRIVATE_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/controller.h"
#include "controller/policy/policy_report.h"
#include "controller/policy/restore_replicas.h"
#include "controller/policy/scale_fight.h"
#include "controller/source/policy_store.h"
#include "controller/status/status.h"
#include "controller/tick/reconcile.h"
#include "controller/tick/ticks.h"
#include "promql/promql_source.h"
#include "runtime/shard/clock_step_detector.h"
#include "runtime/shard/shards.h"

struct conflict_watch_want;
struct conflicts;
struct conflict_watch;
struct event;
struct idle_rules;
struct look;
struct policy_ref;
struct pool_seat;
struct pool_watch;
struct pools;
struct price_follower;

#define CONFLICT_MANAGER_BYTES 129 // Kubernetes limits a field manager to 128 bytes

// A policy stops writing because another client keeps changing its target (controller/policy/scale_fight.h).
struct conflict_pause {
	struct conflict_pause *prev, *next; // of all
	struct managed_policy *m;
	struct event timer;
	struct k8s_call *asking;               // for the field manager
	int64_t until_ms;                      // wall clock
	char who[CONFLICT_MANAGER_BYTES + 20]; // "": not known yet
};

// One policy of the store. Outlives its entry while a tick is in progress. Kept small: there may be 20,000 of them.
struct managed_policy {
	struct controller *controller;
	const char *name;              // behind namespace_name
	struct policy_entry *entry;    // NULL: removed from the store
	struct policy_ref *body;       // the version in force, one reference; NULL: none
	struct reconciler *reconciler; // NULL: no version is in force
	struct policy_report report;   // of the reconciler
	struct policy_status *status;  // NULL: nowhere to write it, or another process writes it
	struct pool_seat *seat;        // NULL: there are no pools, or the policy is not in force
	struct ticker ticker;
	struct look *look;          // in flight; NULL: none
	int64_t look_ms;            // the moment of the last look
	int64_t look_after_mono_ms; // no look before this time
	struct managed_policy *previous_look, *next_look;
	int64_t early_mono_ms;                      // of the last tick that a look asked for
	size_t index;                               // in controller.policies.list
	int64_t last_scale_boot_ms;                 // last scale by an earlier reconciler; -1: none known
	struct conflict_watch_want *conflicts_want; // watches for autoscalers of the target; NULL: not watched
	struct policy_ref *conflicts_of;            // the policy whose target that is, one reference
	struct conflict_pause *pause;               // another client keeps changing the target; NULL: none does
	struct scale_fight fight;                   // with that client
	struct managed_policy *previous_dirty, *next_dirty;
	uint32_t term;         // of ownership when the reconciler was created
	bool awaits_look;      // queued in controller.looks
	bool looks_alone;      // its query cannot be combined with similar ones
	bool look_failed;      // a query of the last look; the next look comes after a tick, or failures would add up
	bool has_early_tick;   // a look has asked for a tick
	bool awaits_conflicts; // whether the target has a conflict is not known yet
	bool is_blind;         // its conflicts may go undetected; counted in struct conflicts
	bool is_dirty;         // queued in controller.policies.dirty
	bool restores;         // deleted: its restoreReplicas must be set
	bool is_waiting, is_shadowed, has_conflict; // logged already
	char namespace_name[];                      // then the name
};

// controller_policies.c
struct managed_policies {
	struct managed_policy **list; // those with a reconciler
	size_t n, room;
	struct managed_policy *dirty;         // marked; policies_sync() empties the queue
	struct event *sync;                   // calls it
	size_t n_added, n_changed, n_removed; // since the last line in the log
	size_t n_trimmed;                     // n when memory was last returned to the system
	bool was_crowded;                     // memory is to be returned when the controller is quiet
};

// controller_ownership.c
struct ownership {
	struct shards *shards; // NULL: this process owns all policies
	struct owned_shard {
		bool is_owned, is_leaving; // leaving: lost, and requests for its policies are still in flight
		uint32_t term;             // how often it was acquired
	} * shard;
	int32_t n_shards;
	struct event *leaving;
};

// controller_pools.c
struct controller_pools {
	struct pools *pools;
	struct pool_watch *watch; // NULL: no pools from the API server
	struct event *timer;      // of the status; NULL: nothing is written
};

// controller_view.c
struct view_state {
	struct managed_policy **policies; // sorted by name; rebuilt on demand
	bool is_stale;
	uint64_t revision; // changes whenever the endpoints show something new
	int64_t changed_ms;
	const struct price_book *prices; // of the last view
	bool was_ready;
};

struct controller {
	struct connections *connections;
	struct controller_options options;
	struct policy_store *store;
	struct file_source *folder; // NULL: no policies from files
	struct policy_watch *watch; // NULL: none from the API server
	struct reconcile_env env;
	struct policy_report_env report_env;
	struct status_env status_env; // for policies from objects
	struct status_env file_env;   // for policies from files
	struct restore_env restore_env;
	struct conflicts *conflicts; // NULL: the connections are being closed
	struct ownership ownership;
	struct controller_pools pools;
	struct idle_rules *idle; // NULL: --once
	struct ticks *ticks;
	struct managed_policies policies;
	struct looks {
		struct managed_policy *queue;
		int in_flight; // those whose queries cannot be combined with similar ones, and so below
		int64_t second;
		int n_in_second; // queued in that second
		bool is_starting;
	} looks;
	struct view_state view;
	struct decision_history *history;
	struct price_follower *prices;
	int64_t start_ms;
	struct clock_step_detector clock_step_detector;
	struct event *clock_look;
	struct event *on_term, *on_int, *on_hup;
	bool events_failed;                        // logged
	bool sources_disagree[PROMQL_SOURCES_MAX]; // logged
	bool stopping;
};

// ---- controller_policies.c ----

extern const struct policy_listener policies_listener; // arg: the controller
// Creates, changes and removes reconcilers until each marked policy has what it should have now.
void policies_sync(struct controller *c);
// Returns whether each policy of this process that can be in force is: the sources have answered, no policy is marked,
// and the conflicts of each are known.
bool policies_are_known(const struct controller *c);
// Marks the policy: something changed that decides whether, or with which version, it is in force.
void managed_policy_mark(struct managed_policy *m);
// The callbacks of struct reconcile_env; owner: the managed policy.
bool managed_policy_permit(void *owner, enum tick_permission permission, struct err *e);
void managed_policy_finished(void *owner, const struct tick_result *result);
bool managed_policy_take_turn(void *owner);
// The callbacks of struct ticks_options.
void managed_policy_start_tick(void *arg, struct ticker *t, int64_t now_ms);
void managed_policy_write(void *arg, struct ticker *t);
// Returns the policy of the ticker.
struct managed_policy *managed_policy_of(struct ticker *t);
// Writes the unsaved state of policies from files. No tick may be in progress.
void policies_flush(struct controller *c);
// Frees all. No tick may be in progress.
void policies_free(struct controller *c);

// ---- controller_looks.c ----

// The callback of struct ticks_options.
void managed_policy_look(void *arg, struct ticker *t, int64_t now_ms);
// Call when a tick starts: a look from before it must not lead to a tick as of an earlier moment.
void managed_policy_drop_look(struct managed_policy *m);
// Call before the reconciler is freed: a look in flight then has no effect.
void managed_policy_forget_look(struct managed_policy *m);

// ---- controller_ownership.c ----

int ownership_open(struct controller *c, struct err *e);
void ownership_close(struct controller *c);
// Returns a number that increases each time this process acquires the policy; 0: the process does not own it.
uint32_t ownership_term(const struct managed_policy *m);
// Returns whether this process is certain to own the policy for as long as a write can take; else *e says why not.
bool ownership_may_write(const struct managed_policy *m, struct err *e);
// The callback of struct restore_env; arg: the controller.
bool ownership_may_restore(void *arg, const struct policy_ref *body, struct err *e);

// ---- controller_clock.c ----

// Interval of the checks; a clock that is slewed moves by less than CLOCK_STEP_MS in this time.
#define CONTROLLER_CLOCK_LOOK_MS 1000

int controller_clock_open(struct controller *c, struct err *e);
void controller_clock_close(struct controller *c);
// Call before reading a time that is stored as a stamp. If the wall clock was set, moves all remembered times.
void controller_look_at_clock(struct controller *c);

// ---- controller_conflicts.c ----

int conflicts_open(struct controller *c, struct err *e);
void conflicts_close(struct controller *c);
// Returns the number of policies whose conflicts are not known yet.
size_t conflicts_awaited(const struct controller *c);
// Watches for autoscalers of the target of `body`, the version to run if its target is free; NULL: stops watching.
void conflicts_sync(struct managed_policy *m, struct policy_ref *body);
// Returns whether no other autoscaler is known to control the target, or this policy writes nothing to it.
bool conflicts_allow(const struct managed_policy *m, const struct policy_ref *body);
// Returns "HorizontalPodAutoscaler ns/name", or which client keeps changing the replicas; NULL: none, or not known yet.
// Valid until the loop runs.
const char *conflicts_find(const struct managed_policy *m);
// Writes a sentence about the result of conflicts_find(), which must not be NULL.
void conflicts_explain(const struct managed_policy *m, char *ret_text, size_t size);
// The callback of struct reconcile_env; owner: the managed policy. Starts a pause when another client keeps changing
// the replicas against the policy.
bool conflicts_yield(void *owner, int32_t from, int32_t to);
// Returns why conflicting autoscalers may go undetected; NULL: they are all visible.
const char *conflicts_watch_error(const struct managed_policy *m);

// Returns the watch of other autoscalers; NULL: the connections are being closed. Wants that do not belong to a policy
// have the user NULL.
struct conflict_watch *conflicts_watch(const struct controller *c);
// Returns whether two versions of a policy name the same target.
bool controller_is_same_target(const struct policy *a, const struct policy *b);

// ---- controller_pools.c ----

int controller_pools_open(struct controller *c, struct err *e);
// Stops the watch. Call before the client is freed.
void controller_pools_disconnect(struct controller *c);
// Call after the policies were freed.
void controller_pools_close(struct controller *c);
// Returns whether the pools of the API server were listed, or cannot be.
bool controller_pools_are_known(const struct controller *c);
// Reads the pools of the policy files again; arg: the controller. If one is invalid, all stay as they were, and *e says
// so.
int controller_pools_read_files(void *arg, struct err *e);
// Seats the policy in its pool. `member` is the version that is in force or about to be; NULL: the policy is
// no longer in force, and its seat is freed unless a tick is in progress.
void controller_pools_sync(struct managed_policy *m, const struct policy *member);
// Frees the seat of the policy. No tick may be in progress.
void controller_pools_leave(struct managed_policy *m);
// The callback of struct reconcile_env; owner: the managed policy.
struct pool_seat *controller_pools_seat(void *owner);

// ---- controller_idle.c ----

int controller_idle_open(struct controller *c, struct err *e);
// Reads the rules of the policy files again; arg: the controller. If one is invalid, all stay as they were, and *e says
// so.
int controller_idle_read_files(void *arg, struct err *e);

// ---- controller_view.c ----

// Call when something that the endpoints show has changed.
void controller_bump_revision(struct controller *c);

// ---- controller.c ----

// Call when a tick or a sync ended. If no work is left, returns memory to the system and, with --once, stops.
void controller_on_quiet(struct controller *c);
// Returns whether every source has delivered its policies, or reported why it cannot.
bool controller_has_synced(const struct controller *c);

#endif
