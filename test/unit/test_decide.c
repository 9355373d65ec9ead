// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the stages run in their order, the last one that limited the proposal is the primary reason, and
// the entry that explains the result best is the driver.
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

#define TICK_MS 15000

// ---- combine: two signals; NaN = no data ----

#define GONE NAN

static const struct {
	int combine;
	double shown[2]; // of target type Replicas, 10 replicas now
	int on_missing;  // of the second
	int32_t want;
	enum action action;
	enum reason reason;
} combine_rows[] = {
        {COMBINE_MAX, {12, 15}, ON_MISSING_HOLD, 15, ACTION_SCALE_UP, REASON_DESIRED_WITHIN_RANGE},
        {COMBINE_MIN, {12, 15}, ON_MISSING_HOLD, 12, ACTION_SCALE_UP, REASON_DESIRED_WITHIN_RANGE},
        {COMBINE_MAX, {5, 15}, ON_MISSING_HOLD, 15, ACTION_SCALE_UP, REASON_DESIRED_WITHIN_RANGE},
        {COMBINE_MIN, {5, 15}, ON_MISSING_HOLD, 5, ACTION_SCALE_DOWN, REASON_DESIRED_WITHIN_RANGE},
        {COMBINE_MAX, {5, 3}, ON_MISSING_HOLD, 5, ACTION_SCALE_DOWN, REASON_DESIRED_WITHIN_RANGE},
        {COMBINE_MAX, {5, 10}, ON_MISSING_HOLD, 10, ACTION_NONE, REASON_DESIRED_WITHIN_RANGE},
        // one is missing: up goes ahead, down is held, and so is staying, because it is not known to be right
        {COMBINE_MAX, {15, GONE}, ON_MISSING_HOLD, 15, ACTION_SCALE_UP, REASON_DESIRED_WITHIN_RANGE},
        {COMBINE_MAX, {GONE, 15}, ON_MISSING_HOLD, 15, ACTION_SCALE_UP, REASON_DESIRED_WITHIN_RANGE},
        {COMBINE_MAX, {5, GONE}, ON_MISSING_HOLD, 10, ACTION_HOLD, REASON_PARTIAL_SIGNALS},
        {COMBINE_MIN, {5, GONE}, ON_MISSING_HOLD, 10, ACTION_HOLD, REASON_PARTIAL_SIGNALS},
        {COMBINE_MAX, {10, GONE}, ON_MISSING_HOLD, 10, ACTION_HOLD, REASON_PARTIAL_SIGNALS},
        // an ignored one does not vote and does not hold
        {COMBINE_MAX, {5, GONE}, ON_MISSING_IGNORE, 5, ACTION_SCALE_DOWN, REASON_DESIRED_WITHIN_RANGE},
        {COMBINE_MAX, {15, GONE}, ON_MISSING_IGNORE, 15, ACTION_SCALE_UP, REASON_DESIRED_WITHIN_RANGE},
        {COMBINE_MAX, {GONE, GONE}, ON_MISSING_IGNORE, 10, ACTION_HOLD, REASON_NO_DATA},
        // an empty answer read as zero votes
        {COMBINE_MAX, {5, GONE}, ON_MISSING_ZERO, 5, ACTION_SCALE_DOWN, REASON_DESIRED_WITHIN_RANGE},
        {COMBINE_MIN, {5, GONE}, ON_MISSING_ZERO, 1, ACTION_SCALE_DOWN, REASON_TOO_FEW_REPLICAS},
        // all missing
        {COMBINE_MAX, {GONE, GONE}, ON_MISSING_HOLD, 10, ACTION_HOLD, REASON_NO_DATA},
};

static void several_signals_become_one_proposal(void **state)
{
	for (size_t i = 0; i < sizeof combine_rows / sizeof combine_rows[0]; i++) {
		struct engine e;
		engine_init(&e, 10);
		e.policy.combine = combine_rows[i].combine;
		engine_add_replicas(&e, "first");
		engine_add_replicas(&e, "second")->on_missing = combine_rows[i].on_missing;
		engine_start(&e);
		for (size_t k = 0; k < 2; k++)
			if (isnan(combine_rows[i].shown[k]))
				engine_show_state(&e, k, OBS_EMPTY);
			else
				engine_show(&e, k, combine_rows[i].shown[k]);
		const struct decision *d = engine_tick(&e);
		if (d->desired != combine_rows[i].want || d->action != combine_rows[i].action ||
		    d->reason != combine_rows[i].reason)
			fail_msg("row %zu: %d %s %s", i, d->desired, action_names[d->action],
			         reason_info(d->reason)->name);
		engine_done(&e);
	}
}

static void different_faults_are_called_all_signals_missing(void **state)
{
	struct engine e;
	engine_init(&e, 10);
	engine_add_replicas(&e, "first");
	engine_add_replicas(&e, "second");
	engine_start(&e);
	engine_show_state(&e, 0, OBS_FAILED);
	engine_show_state(&e, 1, OBS_EMPTY);
	engine_tick(&e);
	assert_int_equal(e.decision.reason, REASON_ALL_SIGNALS_MISSING);
	assert_int_equal(e.decision.entries[e.decision.driver].reason, REASON_ALL_SIGNALS_MISSING);
	assert_int_equal(e.decision.entries[e.decision.driver].count, 2);
	engine_done(&e);
}

static void driver_is_the_signal_that_decided(void **state)
{
	struct engine e;
	engine_init(&e, 10);
	engine_add_value(&e, "calm", 10);
	engine_add_value(&e, "busy", 10);
	engine_start(&e);
	engine_show(&e, 0, 12);
	engine_show(&e, 1, 20);
	engine_tick(&e);
	const struct trace_entry *t = &e.decision.entries[e.decision.driver];
	assert_int_equal(t->signal, 1);
	assert_int_equal(t->reason, REASON_ABOVE_TARGET);
	assert_int_equal(t->before, 10);
	assert_int_equal(t->after, 20);
	assert_true(t->value == 20 && t->limit == 10);
	assert_non_null(engine_find(&e, REASON_COMBINED));
	// a hold for a missing signal points at that signal
	engine_show(&e, 0, 5);
	engine_show_state(&e, 1, OBS_FAILED);
	engine_tick(&e);
	t = &e.decision.entries[e.decision.driver];
	assert_int_equal(t->reason, REASON_PARTIAL_SIGNALS);
	assert_int_equal(t->signal, 1);
	engine_done(&e);
}

// ---- cooldown ----

static void cooldown_forbids_each_direction_for_its_time(void **state)
{
	static const struct {
		int64_t up_ms, down_ms, ago_ms; // since the last scale; -1 = never scaled
		double wanted;
		int32_t want;
		int64_t left_ms;
	} rows[] = {
	        {60000, 300000, -1, 20, 20, 0},    {60000, 300000, -1, 5, 5, 0},
	        {60000, 300000, 0, 20, 10, 60000}, {60000, 300000, 59999, 20, 10, 1},
	        {60000, 300000, 60000, 20, 20, 0}, {60000, 300000, 60000, 5, 10, 240000},
	        {60000, 300000, 299999, 5, 10, 1}, {60000, 300000, 300000, 5, 5, 0},
	        {0, 300000, 0, 20, 20, 0},         {60000, 0, 0, 5, 5, 0},
	        {60000, 300000, 10000, 10, 10, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (int last = -1; last <= 1; last += 2) { // the last scale counts whichever way it went
			struct engine e;
			engine_init(&e, 10);
			e.policy.cooldown = (struct policy_sustain){rows[i].up_ms, rows[i].down_ms};
			engine_add_replicas(&e, "asked");
			engine_start(&e);
			if (rows[i].ago_ms >= 0)
				decide_record_scale(&e.policy, e.state, e.now_ms - rows[i].ago_ms, 10, 10 + last);
			engine_show(&e, 0, rows[i].wanted);
			const struct decision *d = engine_tick(&e);
			if (d->desired != rows[i].want)
				fail_msg("row %zu: %d, must be %d", i, d->desired, rows[i].want);
			assert_int_equal(d->reason,
			                 rows[i].left_ms ? REASON_COOLDOWN_ACTIVE : REASON_DESIRED_WITHIN_RANGE);
			if (rows[i].left_ms)
				assert_int_equal(d->entries[d->driver].duration_ms, rows[i].left_ms);
			engine_done(&e);
		}
}

// ---- bounds, multiple, mode ----

struct bound_row {
	int32_t min, max, multiple, current;
	double wanted; // NaN = no data
	int32_t want;
	enum action action;
	enum reason reason;
};

#define NONE ACTION_NONE
#define UP   ACTION_SCALE_UP
#define DOWN ACTION_SCALE_DOWN
#define HELD ACTION_HOLD
#define FINE REASON_DESIRED_WITHIN_RANGE
#define MANY REASON_TOO_MANY_REPLICAS
#define FEW  REASON_TOO_FEW_REPLICAS
#define MULT REASON_REPLICA_MULTIPLE

static const struct bound_row bound_rows[] = {
        {2, 8, 1, 4, 20, 8, UP, MANY},
        {2, 8, 1, 4, 0, 2, DOWN, FEW},
        {2, 8, 1, 8, 20, 8, NONE, MANY},
        {2, 8, 1, 2, 0, 2, NONE, FEW},
        {2, 8, 1, 4, 8, 8, UP, FINE},
        {2, 8, 1, 4, 2, 2, DOWN, FINE},
        // outside of the bounds: straight to them, whatever the signals say
        {2, 8, 1, 12, 20, 8, DOWN, MANY},
        {2, 8, 1, 12, 3, 8, DOWN, MANY},
        {2, 8, 1, 12, GONE, 8, DOWN, MANY},
        {2, 8, 1, 1, 20, 2, UP, FEW},
        {2, 8, 1, 1, 0, 2, UP, FEW},
        {2, 8, 1, 1, GONE, 2, UP, FEW},
        {2, 8, 1, 4, GONE, 4, HELD, REASON_NO_DATA},
        // scaled to 0 by hand: not ours to wake up
        {1, 8, 1, 0, 20, 0, NONE, REASON_SCALING_DISABLED},
        {1, 8, 1, 0, GONE, 0, NONE, REASON_SCALING_DISABLED},
        {0, 8, 1, 0, 3, 3, UP, FINE},
        {0, 8, 1, 4, 0, 0, DOWN, FINE},
        // multiples: a changed proposal is rounded up
        {1, 100, 4, 4, 5, 8, UP, MULT},
        {1, 100, 4, 4, 8, 8, UP, FINE},
        {1, 100, 4, 8, 5, 8, NONE, MULT}, // never above the present scale on the way down
        {1, 100, 4, 8, 4, 4, DOWN, FINE},
        {1, 100, 4, 12, 5, 8, DOWN, MULT},
        {1, 100, 4, 6, 6, 6, NONE, FINE}, // unchanged: left alone
        {1, 100, 4, 6, 7, 8, UP, MULT},
        {1, 100, 4, 6, 5, 6, NONE, MULT}, // 8 would be above the present 6
        {1, 100, 4, 6, 3, 4, DOWN, MULT},
        {1, 100, 4, 3, 1, 3, NONE, MULT},
        // the bounds win over the multiple
        {1, 10, 4, 4, 9, 8, UP, MULT}, // 12 is too many: the last multiple below
        {1, 10, 4, 4, 30, 8, UP, MULT},
        {1, 10, 4, 9, 10, 9, NONE, MULT}, // 12 is too many, 8 is not up
        // 18 of 27 are wanted, and 28 is too many: 14 would be fewer than wanted, so they stay
        {1, 27, 14, 27, 18, 27, NONE, MULT},
        {1, 28, 14, 27, 18, 27, NONE, MULT},
        {1, 10, 4, 10, 9, 10, NONE, MULT},
        {1, 10, 4, 10, 8, 8, DOWN, FINE},
        {1, 10, 4, 10, 6, 8, DOWN, MULT},
        {1, 10, 4, 14, GONE, 8, DOWN, MULT}, // above max it comes down in any case
        {3, 10, 4, 1, GONE, 4, UP, MULT},
        {5, 7, 4, 4, GONE, 5, UP, FEW}, // no multiple between the bounds
        {5, 7, 4, 9, GONE, 7, DOWN, MANY},
        {0, 10, 4, 4, 0, 0, DOWN, FINE},
        {1, INT32_MAX, 1000000, 1000000, INT32_MAX, 2147000000, UP, MULT},
        {1, 8, 0, 4, 5, 5, UP, FINE}, // a multiple that makes no sense is none
        {1, 8, -3, 4, 5, 5, UP, FINE},
};

static void bounds_win_and_multiples_round(void **state)
{
	for (size_t i = 0; i < sizeof bound_rows / sizeof bound_rows[0]; i++) {
		const struct bound_row *r = &bound_rows[i];
		struct engine e;
		engine_init(&e, r->current);
		e.policy.min_replicas = r->min;
		e.policy.max_replicas = r->max;
		e.policy.replica_multiple = r->multiple;
		e.up[0] = (struct policy_rate){RATE_PODS, INT32_MAX, 15000};
		engine_add_replicas(&e, "asked");
		engine_start(&e);
		if (isnan(r->wanted))
			engine_show_state(&e, 0, OBS_EMPTY);
		else
			engine_show(&e, 0, r->wanted);
		const struct decision *d = engine_tick(&e);
		if (d->desired != r->want || d->action != r->action || d->reason != r->reason)
			fail_msg("row %zu: %d %s %s, must be %d %s %s", i, d->desired, action_names[d->action],
			         reason_info(d->reason)->name, r->want, action_names[r->action],
			         reason_info(r->reason)->name);
		engine_done(&e);
	}
}

static void bounds_do_not_wait_for_rate_or_cooldown(void **state)
{
	struct engine e;
	engine_init(&e, 1);
	e.policy.min_replicas = 10;
	e.policy.cooldown = (struct policy_sustain){600000, 600000};
	e.policy.scale_up.select = SELECT_DISABLED;
	e.policy.scale_down.stabilization_window_ms = 600000;
	engine_add_replicas(&e, "asked");
	engine_start(&e);
	decide_record_scale(&e.policy, e.state, e.now_ms - 1000, 10, 1);
	engine_show(&e, 0, 1);
	assert_int_equal(engine_tick(&e)->desired, 10);
	assert_true(e.decision.write);
	engine_done(&e);
}

static void scale_outside_the_bounds_says_nothing_about_load(void **state)
{
	struct engine e;
	engine_init(&e, 20);
	e.policy.max_replicas = 10;
	e.policy.scale_down.stabilization_window_ms = 0;
	engine_add_replicas(&e, "asked");
	engine_start(&e);
	engine_show(&e, 0, 4);
	assert_int_equal(engine_tick(&e)->desired, 10); // to the bound first, as the HPA does
	engine_apply(&e);
	e.now_ms += TICK_MS;
	assert_int_equal(engine_tick(&e)->desired, 4);
	engine_done(&e);
}

static void paused_and_dry_run_write_nothing(void **state)
{
	struct engine e;
	engine_init(&e, 4);
	engine_add_replicas(&e, "asked");
	engine_start(&e);
	engine_show(&e, 0, 8);
	assert_true(engine_tick(&e)->write);

	e.policy.dry_run = true;
	const struct decision *d = engine_tick(&e);
	assert_int_equal(d->desired, 8);
	assert_int_equal(d->action, ACTION_SCALE_UP);
	assert_int_equal(d->reason, REASON_DESIRED_WITHIN_RANGE);
	assert_false(d->write);
	assert_non_null(engine_find(&e, REASON_DRY_RUN));
	engine_show(&e, 0, 4);
	engine_tick(&e);
	assert_null(engine_find(&e, REASON_DRY_RUN)); // nothing would have been written anyway

	e.policy.paused = true;
	engine_show(&e, 0, 8);
	d = engine_tick(&e);
	assert_int_equal(d->desired, 4);
	assert_int_equal(d->action, ACTION_NONE);
	assert_int_equal(d->reason, REASON_PAUSED);
	assert_false(d->write);
	assert_int_equal(d->entries[d->driver].reason, REASON_PAUSED);
	assert_int_equal(d->entries[d->driver].before, 8);
	// even without data, and outside of the bounds
	engine_show_state(&e, 0, OBS_FAILED);
	assert_int_equal(engine_tick(&e)->reason, REASON_PAUSED);
	assert_int_equal(e.decision.action, ACTION_NONE);
	e.seen.spec_replicas = 5000;
	assert_int_equal(engine_tick(&e)->desired, 5000);
	engine_done(&e);
}

static void last_stage_that_limits_is_the_reason(void **state)
{
	struct engine e;
	engine_init(&e, 10);
	e.policy.max_replicas = 13;
	e.policy.replica_multiple = 4;
	e.policy.scale_up.stabilization_window_ms = 60000;
	engine_add_rate(&e, +1, RATE_PODS, 4, 60000);
	engine_add_replicas(&e, "asked");
	engine_start(&e);
	decide_record_recommendation(&e.policy, e.state, e.now_ms - 30000, 18);
	engine_show(&e, 0, 30); // 30 -> 18 stabilized -> 14 rate -> 13 bound -> 12 multiple
	const struct decision *d = engine_tick(&e);
	static const struct {
		enum stage stage;
		enum reason reason;
		int32_t before, after;
	} want[] = {
	        {STAGE_SIGNALS, REASON_REPLICAS_REQUESTED, 10, 30},
	        {STAGE_STABILIZE, REASON_SCALE_UP_STABILIZED, 30, 18},
	        {STAGE_BOUNDS, REASON_TOO_MANY_REPLICAS, 18, 13},
	        {STAGE_MULTIPLE, REASON_REPLICA_MULTIPLE, 13, 12},
	};
	assert_int_equal(d->n_trace, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(d->entries[i].stage, want[i].stage);
		assert_int_equal(d->entries[i].reason, want[i].reason);
		assert_int_equal(d->entries[i].before, want[i].before);
		assert_int_equal(d->entries[i].after, want[i].after);
	}
	assert_int_equal(d->reason, REASON_REPLICA_MULTIPLE);
	assert_int_equal(d->driver, 3);
	assert_int_equal(d->desired, 12);
	engine_done(&e);
}

static void trace_without_room_keeps_the_stages(void **state)
{
	struct engine e;
	engine_init(&e, 4);
	for (int i = 0; i < POLICY_SIGNALS_MAX; i++) {
		struct policy_signal *s = engine_add_value(&e, "load", 10);
		s->window = (struct policy_window){true, 60000, WINDOW_MAX, 1};
		s->sustain.up_ms = 60000;
	}
	e.policy.max_replicas = 6;
	engine_start(&e);
	for (size_t i = 0; i < POLICY_SIGNALS_MAX; i++)
		engine_show(&e, i, 20 + (double)i);
	for (size_t i = 0; i < POLICY_SIGNALS_MAX; i++)
		e.series[i][0].time_ms = e.now_ms + 30000;
	const struct decision *d = engine_tick_as_stamped(&e); // 16 * 4 notes
	assert_true(d->trace_cut);
	assert_int_equal(d->reason, REASON_SUSTAIN_PENDING);
	assert_true(d->n_trace <= DECISION_TRACE_MAX);
	assert_true(d->driver >= 0 && (size_t)d->driver < d->n_trace);
	e.now_ms += 60000;
	for (size_t i = 0; i < POLICY_SIGNALS_MAX; i++)
		e.series[i][0].time_ms = e.now_ms + 30000;
	d = engine_tick_as_stamped(&e);
	assert_int_equal(d->desired, 6);
	assert_int_equal(d->entries[d->driver].reason, REASON_TOO_MANY_REPLICAS);
	engine_done(&e);
}

static void numbers_without_sense_from_the_cluster_are_survived(void **state)
{
	static const int32_t numbers[] = {INT32_MIN, -5, -1, 0, 1, 7, INT32_MAX};
	enum { N = sizeof numbers / sizeof numbers[0] };
	for (int spec = 0; spec < N; spec++)
		for (int status = 0; status < N; status++)
			for (int ready = 0; ready < N; ready++) {
				struct engine e;
				engine_init(&e, 1);
				engine_add_value(&e, "value", 10);
				engine_add_value(&e, "average", 10)->target.type = TARGET_AVERAGE_VALUE;
				engine_add_watermarks(&e, "marks", 2, 8, WATERMARK_AVERAGE);
				engine_start(&e);
				e.seen.spec_replicas = numbers[spec];
				e.seen.status_replicas = numbers[status];
				e.seen.ready_replicas = numbers[ready];
				for (size_t i = 0; i < 3; i++)
					engine_show(&e, i, 1e9);
				const struct decision *d = engine_tick(&e);
				assert_true(d->desired >= 0 && d->desired <= 1000);
				assert_true(d->desired >= 1 || numbers[spec] <= 0);
				engine_done(&e);
			}
}

static void time_that_runs_back_a_little_is_taken_as_the_last(void **state)
{
	struct engine e;
	engine_init(&e, 4);
	engine_add_replicas(&e, "asked");
	engine_start(&e);
	engine_show(&e, 0, 4);
	int64_t start_ms = e.now_ms;
	engine_tick(&e);
	e.now_ms -= DECIDE_CLOCK_BACK_MS;
	assert_int_equal(engine_tick(&e)->time_ms, start_ms);
	assert_null(engine_find(&e, REASON_CLOCK_SET));
	engine_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(several_signals_become_one_proposal),
	        cmocka_unit_test(different_faults_are_called_all_signals_missing),
	        cmocka_unit_test(driver_is_the_signal_that_decided),
	        cmocka_unit_test(cooldown_forbids_each_direction_for_its_time),
	        cmocka_unit_test(bounds_win_and_multiples_round),
	        cmocka_unit_test(bounds_do_not_wait_for_rate_or_cooldown),
	        cmocka_unit_test(scale_outside_the_bounds_says_nothing_about_load),
	        cmocka_unit_test(paused_and_dry_run_write_nothing),
	        cmocka_unit_test(last_stage_that_limits_is_the_reason),
	        cmocka_unit_test(trace_without_room_keeps_the_stages),
	        cmocka_unit_test(numbers_without_sense_from_the_cluster_are_survived),
	        cmocka_unit_test(time_that_runs_back_a_little_is_taken_as_the_last),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
