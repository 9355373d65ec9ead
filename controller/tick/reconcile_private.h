// SPDX-License-Identifier: Apache-2.0
// What reconcile.c and reconcile_tick.c share; no other file includes it.
#ifndef GPUSCALE_CONTROLLER_TICK_RECONCILE_PRIVATE_H
#define GPUSCALE_CONTROLLER_TICK_RECONCILE_PRIVATE_H

#include "controller/tick/reconcile.h"
#include "controller/tick/refill.h"
#include "controller/tick/unacked_write.h"
#include "controller/tick/variant_scale.h"

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

// What every policy costs all the time: kept small, because there may be 20,000 of them.
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

// ---- reconcile.c ----

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
