// SPDX-License-Identifier: Apache-2.0
// One policy in force: observe -> decide -> act, tick after tick, with the engine's state in between. The reconciler
// returns what a tick did as a struct tick_result; its owner reports it (controller/policy/policy_report.h).
#ifndef GPUSCALE_CONTROLLER_TICK_RECONCILE_H
#define GPUSCALE_CONTROLLER_TICK_RECONCILE_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/tick/observe.h"
#include "controller/tick/refill.h"
#include "controller/tick/unacked_write.h"
#include "controller/tick/variant_scale.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/explain/explain.h"
#include "policies/schema/binding.h"

struct err;
struct fit_target;
struct log;
struct policy_status;
struct pool_membership;
struct price_book;
struct promql_sources;

// What a tick in progress does.
enum tick_phase {
	TICK_PHASE_IDLE,     // no tick is in progress
	TICK_PHASE_RESTORE,  // reads what an earlier process recorded: the object's status, or the state file
	TICK_PHASE_OBSERVE,  // waits for the sources and the target
	TICK_PHASE_REFILL,   // waits for range queries that fill the windows
	TICK_PHASE_DECIDE,   // calls decide()
	TICK_PHASE_VICTIMS,  // chooses the pods that a scale-down removes, or removes their marks
	TICK_PHASE_DEFERRED, // no tick is in progress; what the last one decided waits for its turn to be written
	TICK_PHASE_RECORD,   // writes the initial status before the first scale
	TICK_PHASE_WRITE,    // waits for the answer to the PATCH of the scale
	TICK_PHASE__COUNT
};
extern const char *const tick_phase_names[TICK_PHASE__COUNT];

enum tick_outcome {
	TICK_DECIDED,    // wrote nothing: the scale is right, or this is a dry run
	TICK_DEFERRED,   // too many others write: reconciler_write() follows, unless the next tick decides otherwise
	TICK_SCALED,     // scaled the target
	TICK_RETRIED,    // the write met a conflict; the tick observes and decides again
	TICK_SUPERSEDED, // ended early: the policy changed, was removed, or passed to another process
	TICK_RESTORE_FAILED, // could not read what an earlier process recorded
	TICK_READ_FAILED,    // could not read the target
	TICK_WRITE_FAILED,   // could not scale the target
	TICK_OUTCOME__COUNT
};

// What a tick did. Its pointers are valid during the call of `finished`.
struct tick_result {
	enum tick_outcome outcome;
	bool is_current;                 // the result still describes the policy in force; else report no status
	bool is_restored;                // what an earlier process recorded was read, so a status may replace it
	bool is_news;                    // `decision` differs from the one before in action, reason or replicas
	int64_t now_ms;                  // wall clock: the moment of the tick
	double seconds;                  // duration of the tick
	int attempt;                     // number of conflicts of this tick
	int32_t write_from, write_to;    // TICK_SCALED: the replicas before and after
	int32_t stored;                  // TICK_SCALED: the replicas that the server stored
	const struct decision *decision; // NULL: the tick ended before it decided
	const void *state;               // the engine's state after the tick
	const struct err *error;         // why a *_FAILED outcome failed; else NULL
};

enum tick_permission {
	TICK_MAY_CONTINUE, // the policy is unchanged and still belongs to this process
	TICK_MAY_WRITE,    // the target may be written now
};

// What all reconcilers share; owned by the controller.
struct reconcile_env {
	struct observe_sources sources;
	struct promql_sources *promql;
	struct log *log;
	bool dry_run;  // --dry-run: decide, write nothing
	bool stopping; // the connections are being closed: ticks in progress end without a further request
	// Asked at each step of a tick, because the answer may change while the tick waits. Returns false when the tick
	// must not do that; for TICK_MAY_WRITE, *e then says why. e is NULL for TICK_MAY_CONTINUE.
	bool (*permit)(void *owner, enum tick_permission permission, struct err *e);
	// Returns the seat of the policy in its pool; NULL: it has none. Asked at each step of a tick.
	struct pool_membership *(*membership)(void *owner);
	// Returns the name of a pool that names the policy as a member, valid until the loop runs; NULL: none does.
	// NULL: there are no pools.
	const char *(*find_pool)(void *owner);
	// Asked when a tick is about to change the replicas. Returns true when the policy gives way to another client
	// instead: the tick ends with TICK_SUPERSEDED. NULL: never.
	bool (*yield)(void *owner, int32_t from, int32_t to);
	// Returns the prices of GPUs, valid until the loop runs; NULL: none. NULL: never any.
	const struct price_book *(*prices)(void *arg);
	void *prices_arg;
	// Asked before a tick writes. Returns false when it must end with TICK_DEFERRED.
	bool (*take_turn)(void *owner);
	// Called once for each attempt of a tick: for each conflict with TICK_RETRIED while the tick continues, then
	// with the outcome, when the reconciler is idle again and may be freed by the owner.
	void (*finished)(void *owner, const struct tick_result *result);
};

#define RECONCILE_CONFLICTS_MAX 3 // attempts per tick when another client writes the target at the same time

// What one reconciler works on. It owns none of these; all must outlive it, or be replaced by reconciler_set_policy().
struct reconcile_subject {
	const struct binding *binding;
	int64_t generation;           // of the object; 0: the policy came from a file
	struct policy_status *status; // read at the first tick, and written before the first scale; NULL: none
	bool has_past;                // an earlier process may have left data in the status
	int64_t last_scale_ms;        // the latest scale known from elsewhere than the status; -1: none
	void *owner;
};

// What a tick in progress needs. Many ticks wait for their sources at the same time, and more when the machine is busy:
// what is needed only from the decision on is allocated then.
struct tick_work {
	enum tick_phase phase; // set by enter() alone
	int conflicts;
	bool is_void;    // the wall clock was set during the tick, so its observations have wrong times
	bool is_decided; // in this attempt; r->decision is this tick's
	bool is_news;    // that decision differs from the one before
	int64_t now_ms;
	int64_t started_us; // clock_real_mono_us()
	int32_t write_from, write_to, stored;
	enum tick_outcome outcome;  // of the tick, while it removes marks
	struct decision *decision;  // while its victims are chosen
	void *state;                // unpacked; NULL: r->packed is current (reconcile_state)
	struct refill_call *refill; // NULL: the windows were not refilled
	struct observation_call observation;
};

// A decision that waits for its turn to be written.
struct write_order {
	int64_t now_ms; // of the tick that decided
	int32_t from, to;
	char resource_version[]; // of the target, as that tick saw it
};

// For a policy with behavior.scaleDown.victims, or one that had them.
struct victims_memory {
	int64_t since_ms; // the scale-down waits for pods that are not marked since then; 0: it does not
	bool may_have_marks;
	bool marks_fail;
	char *text; // as in struct decided, for `decision`; NULL: none
};

// One policy in force. Other files read it; reconcile.c and reconcile_tick.c alone change it. Kept small, because there
// may be 20,000 of them.
struct reconciler {
	const struct reconcile_env *env;
	struct reconcile_subject subject;
	const struct policy *policy;           // that of the binding
	void *packed;                          // the engine's state between two ticks, without its unused room
	struct decision *decision;             // the last one, kept by decision_keep(); NULL: none yet
	uint32_t packed_bytes, decision_bytes; // allocated for them
	char **details; // as in struct decided, copies that live as long as `decision`; NULL: none has any
	char *pool;     // why the pool changed `decision`; NULL: it did not
	struct victims_memory *victims; // NULL: a policy without victims
	struct fit_target *fit;         // NULL: a policy without capacity, or with variants
	struct variant_scale *variants; // NULL: the policy has none
	struct tick_work *work;         // NULL: idle
	struct write_order *order;      // of the last tick, TICK_DEFERRED; NULL: none
	int64_t last_scale_ms;          // -1: not known
	struct unacked_write unacked;
	enum err_kind pods_error_kind;
	bool needs_past; // what an earlier process recorded has not been read yet
	bool is_emptied; // the pool of the policy scaled the target to 0
	bool needs_refill;
	bool is_target_wanted; // this policy holds a reference to its target
};

struct reconciler *reconciler_new(const struct reconcile_env *env, const struct reconcile_subject *subject);
// Must be idle.
void reconciler_free(struct reconciler *r);
// Replaces the policy by another version (same namespace and name). Keeps the history that still makes sense. Must be
// idle.
void reconciler_set_policy(struct reconciler *r, const struct binding *binding, int64_t generation);
// Replaces the status; NULL: none. Must be idle unless status is NULL: a tick in progress whose policy is no longer
// current ends without the status.
void reconciler_set_status(struct reconciler *r, struct policy_status *status);
// Reports that the wall clock was set by step_ms. Remembered times keep their age, windows are refilled, and a tick in
// progress ends without a decision.
void reconciler_clock_was_set(struct reconciler *r, int64_t step_ms);
// Starts a tick as of now_ms (wall clock). Must be idle. `finished` may be called before this returns.
void reconciler_tick(struct reconciler *r, int64_t now_ms);
// Writes what the last tick decided, if it ended with TICK_DEFERRED and nothing has made it void since. Must be idle,
// and reports like a tick, but without a decision.
void reconciler_write(struct reconciler *r);
enum tick_phase reconciler_phase(const struct reconciler *r);
// What one replica uses: spec.gpus of the policy. Without it, the GPUs that the target's pod template requests, where
// the template is read (spec.capacity); their model is unknown.
struct policy_gpus reconciler_gpus(const struct reconciler *r);
// Returns the last decision, without one before the first; valid until the next tick decides.
struct decided reconciler_decided(const struct reconciler *r);
// Returns a copy of the engine's state, which the caller frees, or NULL when what an earlier process recorded has not
// been read yet. Must be idle.
void *reconciler_copy_state(const struct reconciler *r);

// ---- what reconcile.c and reconcile_tick.c share ----

// Returns the seat of the policy in its pool; NULL: it has none.
struct pool_membership *reconcile_membership(const struct reconciler *r);
// Forgets the order: the pool and the capacity no longer hold what it would have used.
void reconcile_drop_order(struct reconciler *r);

// Wants the target of the policy, unless it is wanted already. Call at every tick: the target store may have had no
// room for its kind before.
void reconcile_acquire_target(struct reconciler *r);
// Returns the engine's state of the tick in progress, unpacked at the first call.
void *reconcile_state(struct reconciler *r);
// Packs `state` into the reconciler; does not free it.
void reconcile_pack_state(struct reconciler *r, void *state);
// Replaces the last decision by `d`, the tick's, with copies of what the sources reported.
void reconcile_keep_decision(struct reconciler *r, const struct decision *d);

#endif
