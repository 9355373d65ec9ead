// SPDX-License-Identifier: Apache-2.0
// What the files of the reconciler share; nobody else includes this.
#ifndef GPUSCALE_CONTROLLER_RECONCILE_PRIVATE_H
#define GPUSCALE_CONTROLLER_RECONCILE_PRIVATE_H

#include "controller/reconcile.h"
#include "controller/unsure_write.h"

// What a tick needs while it is under way. The controller bounds how many are, so this may be large.
struct tick_work {
	int conflicts;
	int64_t now_ms, started_us;
	int32_t write_from, write_to;
	void *state;
	struct refill_call refill;
	struct observation_call observation;
	struct decision decision;
};

// What every policy costs all the time: kept small, there may be 20000 of them.
struct reconciler {
	const struct reconcile_env *env;
	struct reconcile_subject subject;
	const struct policy *policy; // of subject
	void *packed;                // the engine's state between two ticks, which mostly is room that says nothing
	size_t packed_bytes;         // allocated
	bool needs_past;             // what the process before this one knew is still to be read
	struct unsure_write unsure;
	bool needs_refill;
	bool said_status_error;
	enum err_kind pods_error_kind;
	struct tick_work *work;    // NULL: idle
	struct decision *decision; // the last one, decision_bytes() of it; NULL: none yet
	size_t decision_room;      // bytes allocated for it
	char **details;            // one per signal, copies that live as long as `decision`; NULL: none has any
	char *error;               // NULL: none
	enum status_phase phase;   // that the last tick ended in; STATUS_PHASE__COUNT: none did yet
	int64_t last_scale_ms;     // -1: not known
	struct trend *trend;       // NULL: nobody wants to see it, or there is nothing yet
};

// ---- reconcile.c ----

// Nothing sensible can be decided without memory: ends the process, and the supervisor restarts us.
void *reconcile_must(void *p);
// Packs the state into the reconciler, and frees it.
void reconcile_put_state_away(struct reconciler *r, void *state);
// Puts the tick's decision in the place of the last one, with copies of what the sources said.
void reconcile_keep_decision(struct reconciler *r);
void reconcile_forget_error(struct reconciler *r);
// Adds the tick as of now_ms to the trend: the last decision; is_known false: it brought none.
void reconcile_note_trend(struct reconciler *r, int64_t now_ms, bool is_known);

#endif
