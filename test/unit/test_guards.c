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

#include "policies/engine/decide.h"
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
			fail_msg("row %zu: %d %s %s, must be %d %s %s", i, d->desired, action_names[d->action],
			         reason_info(d->reason)->name, rows[i].want, action_names[rows[i].action],
			         reason_info(rows[i].reason)->name);
		engine_done(&e);
	}
}

static void guard_says_what_it_saw(void **state)
{
	struct engine e;
	start(&e, &(struct row){2, OFF, OFF, 1, 8, 3, 1, 16, 8, NONE, PEND});
	engine_tick(&e);
	const struct trace_entry *t = &e.decision.entries[e.decision.driver];
	assert_int_equal(t->stage, STAGE_GUARDS);
	assert_int_equal(t->count, 5);
	assert_true(t->limit == 2);
	assert_int_equal(t->before, 16);
	assert_int_equal(t->after, 8);
	engine_done(&e);

	start(&e, &(struct row){OFF, 80, OFF, 1, 8, 3, 0, 16, 8, NONE, FEW});
	engine_tick(&e);
	t = &e.decision.entries[e.decision.driver];
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

// ---- guards.minMarginalGain: 6.8 times the throughput of one replica on eight ----

#define GAIN_SERIAL 0.0252

static double throughput_of(int32_t n)
{
	return 100 * n / (1 + GAIN_SERIAL * (n - 1));
}

static void add_gain(struct engine *e)
{
	engine_init(e, 2);
	engine_add_value(e, "load", 10);
	engine_add_value(e, "throughput", 1)->target = (struct policy_target){0};
	e->policy.guards = (struct policy_guards){
	        .set = true,
	        .gain = {.set = true, .signal = "throughput", .gain = 0.7, .steady_ms = 30000, .signal_index = 1},
	};
	engine_start(e);
}

// Runs `ticks` ticks with n replicas, of which all are ready, at the load of `load` against a target of 10.
static void run_at(struct engine *e, int32_t n, int ticks, double load)
{
	e->seen.spec_replicas = e->seen.status_replicas = e->seen.ready_replicas = n;
	for (int i = 0; i < ticks; i++, e->now_ms += 15000) {
		engine_show(e, 0, load);
		engine_show(e, 1, throughput_of(n) * (load > 10 ? 1 : load / 10));
		engine_tick(e);
	}
}

static void growth_stops_at_the_8th_replica(void **state)
{
	struct engine e;
	add_gain(&e);
	for (int32_t n = 2; n <= 3; n++)
		run_at(&e, n, 6, 20);
	assert_int_equal(e.decision.desired, 6);
	const struct trace_entry *t = engine_find(&e, REASON_GAIN_LEARNING);
	assert_non_null(t);
	assert_int_equal(t->count, 2);
	run_at(&e, 5, 6, 20);
	assert_null(engine_find(&e, REASON_GAIN_LEARNING));
	assert_int_equal(e.decision.desired, 8);
	assert_int_equal(e.decision.reason, REASON_MARGINAL_GAIN);
	t = &e.decision.entries[e.decision.driver];
	assert_int_equal(t->count, 9);
	assert_true(t->value > 0.685 && t->value < 0.695 && t->limit == 0.7);
	run_at(&e, 12, 1, 20); // more replicas than pay are not taken away
	assert_int_equal(e.decision.desired, 12);
	run_at(&e, 12, 1, 2); // but a scale-down is as free as ever
	assert_int_equal(e.decision.desired, 3);
	engine_done(&e);
}

// Below full load the throughput is that of the work that came; starting replicas, and those of the ticks after a
// change, do not serve all that they can.
static void throughput_below_full_load_teaches_nothing(void **state)
{
	struct engine e;
	add_gain(&e);
	for (int32_t n = 2; n <= 8; n++)
		run_at(&e, n, 10, 8);
	for (int32_t n = 2; n <= 8; n++)
		run_at(&e, n, 2, 20);
	run_at(&e, 4, 1, 20);
	assert_int_equal(engine_find(&e, REASON_GAIN_LEARNING)->count, 0);
	engine_done(&e);
}

static void curve_survives_packing_and_a_change_of_the_policy(void **state)
{
	struct engine e, other;
	add_gain(&e);
	for (int32_t n = 2; n <= 6; n++)
		run_at(&e, n, 6, 20);
	void *packed = calloc(1, decide_state_packed_bytes(&e.policy, e.state));
	void *copy = calloc(1, decide_state_bytes(&e.policy));
	assert_true(packed && copy);
	decide_state_pack(&e.policy, e.state, packed);
	decide_state_unpack(&e.policy, packed, copy);
	other = e;
	other.state = copy;
	run_at(&other, 6, 1, 20);
	assert_int_equal(other.decision.reason, REASON_MARGINAL_GAIN);
	engine_done(&other);
	free(packed);

	add_gain(&other);
	other.policy.guards.gain.gain = 0.75;
	other.policy.max_replicas = 500;
	engine_start(&other);
	decide_state_migrate(&e.policy, e.state, &other.policy, other.state);
	other.now_ms = e.now_ms;
	run_at(&other, 6, 1, 20);
	assert_int_equal(other.decision.reason, REASON_MARGINAL_GAIN);
	assert_int_equal(other.decision.desired, 7); // the 7th adds 0.754, the 8th 0.72
	engine_done(&other);
	engine_done(&e);
}

// ---- guards.maxThrottledShare ----

struct throttled_row {
	int type; // enum target_type; TARGET_TYPE__COUNT: watermarks 5 to 10, Average
	double load, hot;
	int32_t want;
	enum reason note;
};

static const struct throttled_row throttled_rows[] = {
        {TARGET_AVERAGE_VALUE, 100, 0, 10, REASON_NONE},
        {TARGET_AVERAGE_VALUE, 100, 0.1, 10, REASON_NONE}, // the bound itself is allowed
        {TARGET_AVERAGE_VALUE, 100, 0.5, 12, REASON_THROTTLED},
        {TARGET_AVERAGE_VALUE, 100, 1, 15, REASON_THROTTLED},
        {TARGET_AVERAGE_VALUE, 50, 1, 8, REASON_THROTTLED}, // 5 without
        {TARGET_AVERAGE_VALUE, 100, GONE, 10, REASON_THROTTLED_UNKNOWN},
        {TARGET_AVERAGE_VALUE, 100, 4, 10, REASON_THROTTLED_NOT_A_SHARE},
        {TARGET_AVERAGE_VALUE, 100, -1, 10, REASON_THROTTLED_NOT_A_SHARE},
        {TARGET_VALUE, 10, 0.5, 12, REASON_THROTTLED},
        {TARGET_REPLICAS, 10, 1, 15, REASON_THROTTLED},
        {TARGET_TYPE__COUNT, 95, 0, 10, REASON_NONE},
        {TARGET_TYPE__COUNT, 95, 1, 14, REASON_THROTTLED}, // 9.5 above 7
        {TARGET_TYPE__COUNT, 40, 0, 8, REASON_NONE},
        {TARGET_TYPE__COUNT, 40, 1, 10, REASON_THROTTLED}, // 4 is not below 3.5
};

static void throttled_replicas_count_as_less(void **state)
{
	for (size_t i = 0; i < sizeof throttled_rows / sizeof throttled_rows[0]; i++) {
		const struct throttled_row *r = &throttled_rows[i];
		struct engine e;
		engine_init(&e, 10);
		if (r->type == TARGET_TYPE__COUNT)
			engine_add_watermarks(&e, "load", 5, 10, WATERMARK_AVERAGE);
		else
			engine_add_value(&e, "load", 10)->target.type = r->type;
		engine_add_value(&e, "hot", 1)->target = (struct policy_target){0};
		e.policy.guards = (struct policy_guards){
		        .set = true,
		        .throttled = {.set = true, .signal = "hot", .share = 0.1, .signal_index = 1},
		};
		engine_start(&e);
		engine_show(&e, 0, r->load);
		if (isnan(r->hot))
			engine_show_state(&e, 1, OBS_EMPTY);
		else
			engine_show(&e, 1, r->hot);
		const struct decision *d = engine_tick(&e);
		enum reason note = REASON_NONE;
		for (size_t k = 0; k < d->n_trace; k++)
			if (d->entries[k].reason >= REASON_THROTTLED &&
			    d->entries[k].reason <= REASON_THROTTLED_NOT_A_SHARE)
				note = d->entries[k].reason;
		if (d->desired != r->want || note != r->note || d->action == ACTION_HOLD)
			fail_msg("row %zu: %d %s %s, must be %d %s", i, d->desired, action_names[d->action],
			         reason_info(note)->name, r->want, reason_info(r->note)->name);
		engine_done(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(guards_hold_or_shorten_a_change),
	        cmocka_unit_test(guard_says_what_it_saw),
	        cmocka_unit_test(queue_does_not_cascade_while_models_load),
	        cmocka_unit_test(growth_stops_at_the_8th_replica),
	        cmocka_unit_test(throughput_below_full_load_teaches_nothing),
	        cmocka_unit_test(curve_survives_packing_and_a_change_of_the_policy),
	        cmocka_unit_test(throttled_replicas_count_as_less),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
