// SPDX-License-Identifier: Apache-2.0
// What reconcile.c and reconcile_tick.c share; no other file includes it.
#ifndef GPUSCALE_CONTROLLER_TICK_RECONCILE_PRIVATE_H
#define GPUSCALE_CONTROLLER_TICK_RECONCILE_PRIVATE_H

#include "controller/tick/reconcile.h"
#include "controller/tick/refill.h"
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
