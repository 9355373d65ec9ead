// SPDX-License-Identifier: Apache-2.0
// Goal of this test: guards hold or shorten a change that the signals ask for, name what they saw, and never stand
// between a scale and its bounds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "test/support/engine.h"

#define OFF  (-1)
#define GONE NAN

struct row {
	int32_t max_pending, min_available, max_step, multiple; // OFF
	int32_t spec, ready, pending;                           // ready -1 = not known
	double wanted;                                          // GONE = no data
	int32_t want;
	enum action action;
	enum reason reason;
};

#define FINE REASON_DESIRED_WITHIN_RANGE
#define PEND REASON_PENDING_REPLICAS
#define FEW  REASON_TOO_FEW_AVAILABLE
#define STEP REASON_MAX_STEP
#define UP   ACTION_SCALE_UP
#define DOWN ACTION_SCALE_DOWN
#define NONE ACTION_NONE

static const struct row rows[] = {
        // maxPendingPods: up waits, down and staying do not
        {2, OFF, OFF, 1, 4, 4, 0, 8, 8, UP, FINE},
        {2, OFF, OFF, 1, 4, 2, 0, 8, 8, UP, FINE},
        {2, OFF, OFF, 1, 4, 1, 0, 8, 4, NONE, PEND},
        {2, OFF, OFF, 1, 4, 4, 2, 8, 8, UP, FINE},
        {2, OFF, OFF, 1, 4, 4, 3, 8, 4, NONE, PEND}, // of an older generation: pending beyond spec
        {2, OFF, OFF, 1, 4, 0, 4, 2, 2, DOWN, FINE},
        {2, OFF, OFF, 1, 4, 0, 4, 4, 4, NONE, FINE},
        {0, OFF, OFF, 1, 4, 4, 0, 8, 8, UP, FINE},
        {0, OFF, OFF, 1, 4, 3, 0, 8, 4, NONE, PEND},
        {0, OFF, OFF, 1, 4, 3, 1, 8, 4, NONE, PEND},
        {0, OFF, OFF, 1, 4, 9, 0, 8, 8, UP, FINE}, // a surge: more ready than asked for
        {2, OFF, OFF, 1, 4, -1, 3, 8, 4, NONE, PEND},
        {2, OFF, OFF, 1, 4, -1, 0, 8, 8, UP, FINE},
        // minAvailablePercent: neither way
        {OFF, 80, OFF, 1, 10, 8, 0, 20, 20, UP, FINE},
        {OFF, 80, OFF, 1, 10, 7, 0, 20, 10, NONE, FEW},
        {OFF, 80, OFF, 1, 10, 7, 0, 5, 10, NONE, FEW},
        {OFF, 80, OFF, 1, 10, 7, 0, 10, 10, NONE, FINE},
        {OFF, 100, OFF, 1, 3, 2, 0, 2, 3, NONE, FEW},
        {OFF, 100, OFF, 1, 3, 3, 0, 2, 2, DOWN, FINE},
        {OFF, 1, OFF, 1, 3, 0, 0, 2, 3, NONE, FEW},
        {OFF, 80, OFF, 1, 10, -1, 0, 5, 5, DOWN, FINE}, // not known: nothing to hold it against
        // maxStep: both ways
        {OFF, OFF, 2, 1, 4, 4, 0, 6, 6, UP, FINE},
        {OFF, OFF, 2, 1, 4, 4, 0, 7, 6, UP, STEP},
        {OFF, OFF, 2, 1, 8, 8, 0, 6, 6, DOWN, FINE},
        {OFF, OFF, 2, 1, 8, 8, 0, 1, 6, DOWN, STEP},
        {OFF, OFF, 5, 4, 8, 8, 0, 24, 12, UP, STEP}, // 13 is not a multiple of 4
        {OFF, OFF, 5, 4, 12, 12, 0, 1, 8, DOWN, STEP},
        {OFF, OFF, 2, 4, 8, 8, 0, 24, 8, NONE, STEP}, // a step that no multiple fits into
        // the first that holds is the reason
        {1, 80, 2, 1, 10, 5, 0, 20, 10, NONE, PEND},
        {1, 80, 2, 1, 10, 5, 0, 5, 10, NONE, FEW},
        {1, 50, 2, 1, 10, 9, 0, 20, 12, UP, STEP},
        // bounds win: 1000 is the maximum, 1 the minimum
        {0, 100, 1, 1, 1005, 3, 9, 2000, 1000, DOWN, REASON_TOO_MANY_REPLICAS},
        {0, 100, 1, 1, 1005, 3, 9, GONE, 1000, DOWN, REASON_TOO_MANY_REPLICAS},
};

static void start(struct engine *e, const struct row *r)
{
	engine_init(e, r->spec);
	e->policy.replica_multiple = r->multiple;
	e->policy.guards = (struct policy_guards){
	        .set = true,
	        .max_pending_set = r->max_pending != OFF,
	        .max_pending_pods = r->max_pending == OFF ? 0 : r->max_pending,
	        .min_available_percent = r->min_available == OFF ? 0 : r->min_available,
	        .max_step = r->max_step == OFF ? 0 : r->max_step,
	};
	e->seen.ready_replicas = r->ready;
	e->seen.pending_replicas = r->pending;
	engine_add_replicas(e, "asked");
	engine_start(e);
	if (isnan(r->wanted))
		engine_show_state(e, 0, OBS_EMPTY);
	else
		engine_show(e, 0, r->wanted);
}

static void guards_hold_or_shorten_a_change(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct engine e;
		start(&e, &rows[i]);
		const struct decision *d = engine_tick(&e);
		if (d->desired != rows[i].want || d->action != rows[i].action || d->reason != rows[i].reason)
			fail_msg("row %zu: %d %s %s, must be %d %s %s", i, d->desired, action_name(d->action),
			         reason_info(d->reason)->name, rows[i].want, action_name(rows[i].action),
			         reason_info(rows[i].reason)->name);
		engine_done(&e);
	}
}

static void guard_says_what_it_saw(void **state)
{
	struct engine e;
	start(&e, &(struct row){2, OFF, OFF, 1, 8, 3, 1, 16, 8, NONE, PEND});
	engine_tick(&e);
	const struct trace_entry *t = &e.decision.trace[e.decision.driver];
	assert_int_equal(t->stage, STAGE_GUARDS);
	assert_int_equal(t->count, 5);
	assert_true(t->limit == 2);
	assert_int_equal(t->before, 16);
	assert_int_equal(t->after, 8);
	engine_done(&e);

	start(&e, &(struct row){OFF, 80, OFF, 1, 8, 3, 0, 16, 8, NONE, FEW});
	engine_tick(&e);
	t = &e.decision.trace[e.decision.driver];
	assert_true(t->value == 37 && t->limit == 80);
	engine_done(&e);
}

// The cascade: a queue that no scale-up shortens before its pods are ready.
static void queue_does_not_cascade_while_models_load(void **state)
{
	for (int guarded = 0; guarded <= 1; guarded++) {
		struct engine e;
		start(&e, &(struct row){guarded ? 0 : OFF, OFF, OFF, 1, 2, 2, 0, 0, 2, NONE, FINE});
		e.policy.guards.set = guarded;
		e.signals[0].target =
		        (struct policy_target){.set = true, .type = TARGET_VALUE, .value = 10, .tolerance_ratio = 0.1};
		engine_start(&e);
		int32_t most = 0;
		for (int i = 0; i < 8; i++) {
			engine_show(&e, 0, e.seen.ready_replicas < 4 ? 20 : 10); // four are enough
			engine_tick(&e);
			most = e.decision.desired > most ? e.decision.desired : most;
			int32_t ready = e.seen.ready_replicas;
			engine_apply(&e);
			e.seen.ready_replicas = ready < e.seen.spec_replicas ? ready + 1 : ready; // one pod a tick
			e.now_ms += 15000;
		}
		if (guarded)
			assert_int_equal(most, 4);
		else
			assert_true(most > 4); // the guard is what stops it
		engine_done(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(guards_hold_or_shorten_a_change),
	        cmocka_unit_test(guard_says_what_it_saw),
	        cmocka_unit_test(queue_does_not_cascade_while_models_load),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
