// SPDX-License-Identifier: Apache-2.0
// Goal of this test: an unusable value holds the scale with its reason, and never counts as zero.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "test/support/engine.h"

#define MINUTE 60000

struct shown {
	double value;
	int64_t age_ms;
};

struct row {
	int on_missing, series;
	enum obs_state state;
	struct shown shown[4]; // n of them
	size_t n;
	enum signal_state want_state;
	enum reason want_reason;
	double want_value; // NaN = none
	int64_t want_age_ms;
	int32_t want_desired; // of 4 replicas, target 10
	enum action want_action;
};

#define HOLD    ON_MISSING_HOLD
#define IGNORE  ON_MISSING_IGNORE
#define ZERO    ON_MISSING_ZERO
#define ONE     SERIES_SINGLE
#define OK      SIGNAL_OK
#define MISSING SIGNAL_MISSING
#define IGNORED SIGNAL_IGNORED
#define UP      ACTION_SCALE_UP
#define DOWN    ACTION_SCALE_DOWN
#define HELD    ACTION_HOLD

static const struct row rows[] = {
        {HOLD, ONE, OBS_OK, {{20, 0}}, 1, OK, REASON_ABOVE_TARGET, 20, 0, 8, UP},
        {HOLD, ONE, OBS_EMPTY, {{0, 0}}, 0, MISSING, REASON_NO_DATA, NAN, -1, 4, HELD},
        {HOLD, ONE, OBS_OK, {{0, 0}}, 0, MISSING, REASON_NO_DATA, NAN, -1, 4, HELD},
        {HOLD, ONE, OBS_FAILED, {{0, 0}}, 0, MISSING, REASON_QUERY_FAILED, NAN, -1, 4, HELD},
        {HOLD, ONE, OBS_PARTIAL, {{20, 0}}, 1, MISSING, REASON_PARTIAL_RESPONSE, NAN, -1, 4, HELD},
        {HOLD, ONE, OBS_STATE__COUNT, {{20, 0}}, 1, MISSING, REASON_QUERY_FAILED, NAN, -1, 4, HELD},
        // age
        {HOLD, ONE, OBS_OK, {{20, MINUTE}}, 1, OK, REASON_ABOVE_TARGET, 20, MINUTE, 8, UP},
        {HOLD, ONE, OBS_OK, {{20, MINUTE + 1}}, 1, MISSING, REASON_STALE_DATA, NAN, MINUTE + 1, 4, HELD},
        {HOLD, ONE, OBS_OK, {{20, -5000}}, 1, OK, REASON_ABOVE_TARGET, 20, 0, 8, UP},
        {HOLD, ONE, OBS_OK, {{20, -MINUTE}}, 1, OK, REASON_ABOVE_TARGET, 20, 0, 8, UP},
        {HOLD, ONE, OBS_OK, {{20, -MINUTE - 1}}, 1, MISSING, REASON_CLOCK_SKEW, NAN, -1, 4, HELD},
        {ZERO, ONE, OBS_OK, {{0, -3600000}}, 1, MISSING, REASON_CLOCK_SKEW, NAN, -1, 4, HELD},
        // not a number
        {HOLD, ONE, OBS_OK, {{NAN, 0}}, 1, MISSING, REASON_NON_FINITE, NAN, 0, 4, HELD},
        {HOLD, ONE, OBS_OK, {{INFINITY, 0}}, 1, MISSING, REASON_NON_FINITE, NAN, 0, 4, HELD},
        {HOLD, ONE, OBS_OK, {{-INFINITY, 0}}, 1, MISSING, REASON_NON_FINITE, NAN, 0, 4, HELD},
        // several series
        {HOLD, ONE, OBS_OK, {{20, 0}, {21, 0}}, 2, MISSING, REASON_AMBIGUOUS_SERIES, NAN, -1, 4, HELD},
        {HOLD, SERIES_SUM, OBS_OK, {{5, 0}, {7, 0}, {8, 0}}, 3, OK, REASON_ABOVE_TARGET, 20, 0, 8, UP},
        {HOLD, SERIES_MAX, OBS_OK, {{5, 0}, {20, 0}, {8, 0}}, 3, OK, REASON_ABOVE_TARGET, 20, 0, 8, UP},
        {HOLD, SERIES_MIN, OBS_OK, {{50, 0}, {20, 0}, {80, 0}}, 3, OK, REASON_ABOVE_TARGET, 20, 0, 8, UP},
        {HOLD, SERIES_AVG, OBS_OK, {{15, 0}, {20, 0}, {25, 0}}, 3, OK, REASON_ABOVE_TARGET, 20, 0, 8, UP},
        {HOLD, SERIES_SUM, OBS_OK, {{20, 0}}, 1, OK, REASON_ABOVE_TARGET, 20, 0, 8, UP},
        // one bad series makes the whole signal bad: a sum without one of its parts is an outage read as less load
        {HOLD, SERIES_SUM, OBS_OK, {{20, 0}, {NAN, 0}}, 2, MISSING, REASON_NON_FINITE, NAN, 0, 4, HELD},
        {HOLD, SERIES_MAX, OBS_OK, {{20, 0}, {NAN, 0}}, 2, MISSING, REASON_NON_FINITE, NAN, 0, 4, HELD},
        {HOLD, SERIES_MIN, OBS_OK, {{20, 0}, {INFINITY, 0}}, 2, MISSING, REASON_NON_FINITE, NAN, 0, 4, HELD},
        {HOLD, SERIES_SUM, OBS_OK, {{DBL_MAX, 0}, {DBL_MAX, 0}}, 2, MISSING, REASON_NON_FINITE, NAN, 0, 4, HELD},
        {HOLD, SERIES_AVG, OBS_OK, {{15, 1000}, {25, 9000}}, 2, OK, REASON_ABOVE_TARGET, 20, 9000, 8, UP},
        {HOLD, SERIES_SUM, OBS_OK, {{20, 0}, {1, 2 * MINUTE}}, 2, MISSING, REASON_STALE_DATA, NAN, 2 * MINUTE, 4, HELD},
        // onMissing: Zero is for an answer without series ..
        {ZERO, ONE, OBS_EMPTY, {{0, 0}}, 0, OK, REASON_BELOW_TARGET, 0, 0, 1, DOWN},
        {ZERO, ONE, OBS_OK, {{0, 0}}, 0, OK, REASON_BELOW_TARGET, 0, 0, 1, DOWN},
        {ZERO, ONE, OBS_FAILED, {{0, 0}}, 0, MISSING, REASON_QUERY_FAILED, NAN, -1, 4, HELD},
        {ZERO, ONE, OBS_PARTIAL, {{0, 0}}, 0, MISSING, REASON_PARTIAL_RESPONSE, NAN, -1, 4, HELD},
        {ZERO, ONE, OBS_OK, {{20, 2 * MINUTE}}, 1, MISSING, REASON_STALE_DATA, NAN, 2 * MINUTE, 4, HELD},
        // .. and for samples that are not finite, one by one
        {ZERO, ONE, OBS_OK, {{NAN, 0}}, 1, OK, REASON_BELOW_TARGET, 0, 0, 1, DOWN},
        {ZERO, ONE, OBS_OK, {{INFINITY, 0}}, 1, OK, REASON_BELOW_TARGET, 0, 0, 1, DOWN},
        {ZERO, SERIES_SUM, OBS_OK, {{20, 0}, {NAN, 0}}, 2, OK, REASON_ABOVE_TARGET, 20, 0, 8, UP},
        {ZERO, SERIES_AVG, OBS_OK, {{40, 0}, {-INFINITY, 0}}, 2, OK, REASON_ABOVE_TARGET, 20, 0, 8, UP},
        {ZERO, SERIES_MIN, OBS_OK, {{40, 0}, {NAN, 0}}, 2, OK, REASON_BELOW_TARGET, 0, 0, 1, DOWN},
        {ZERO, SERIES_SUM, OBS_OK, {{DBL_MAX, 0}, {DBL_MAX, 0}}, 2, MISSING, REASON_NON_FINITE, NAN, 0, 4, HELD},
        {ZERO, ONE, OBS_OK, {{NAN, 2 * MINUTE}}, 1, MISSING, REASON_STALE_DATA, NAN, 2 * MINUTE, 4, HELD},
        {ZERO, ONE, OBS_OK, {{1, 0}, {1, 0}}, 2, MISSING, REASON_AMBIGUOUS_SERIES, NAN, -1, 4, HELD},
        // onMissing: Ignore without another signal
        {IGNORE, ONE, OBS_EMPTY, {{0, 0}}, 0, IGNORED, REASON_NO_DATA, NAN, -1, 4, HELD},
        {IGNORE, ONE, OBS_FAILED, {{0, 0}}, 0, IGNORED, REASON_QUERY_FAILED, NAN, -1, 4, HELD},
        {IGNORE, ONE, OBS_OK, {{20, 2 * MINUTE}}, 1, IGNORED, REASON_STALE_DATA, NAN, 2 * MINUTE, 4, HELD},
        {IGNORE, ONE, OBS_OK, {{20, 0}}, 1, OK, REASON_ABOVE_TARGET, 20, 0, 8, UP},
};

static bool same_value(double a, double b)
{
	return (isnan(a) && isnan(b)) || a == b;
}

static void each_row_is_used_or_held_and_says_why(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct row *r = &rows[i];
		struct engine e;
		engine_init(&e, 4);
		struct policy_signal *s = engine_add_value(&e, "load", 10);
		s->on_missing = r->on_missing;
		s->series = r->series;
		engine_start(&e);
		for (size_t k = 0; k < r->n; k++)
			e.series[0][k] = (struct obs_series){"", r->shown[k].value, e.now_ms - r->shown[k].age_ms};
		e.seen_signals[0] = (struct obs_signal){r->state, "the reason", e.series[0], r->n, 0};
		const struct decision *d = engine_tick_as_stamped(&e);
		const struct decision_signal *g = &d->signals[0];
		if (g->state != r->want_state || g->reason != r->want_reason || !same_value(g->value, r->want_value) ||
		    g->age_ms != r->want_age_ms || d->desired != r->want_desired || d->action != r->want_action)
			fail_msg("row %zu: %s %s value %g age %lld, %d %s", i, signal_state_names[g->state],
			         reason_info(g->reason)->name, g->value, (long long)g->age_ms, d->desired,
			         action_names[d->action]);
		if (d->action == ACTION_HOLD) {
			assert_int_equal(d->reason, r->want_reason);
			assert_int_equal(d->entries[d->driver].reason, r->want_reason);
			assert_int_equal(d->entries[d->driver].signal, 0);
			assert_false(d->write);
		}
		engine_done(&e);
	}
}

static void trace_says_what_was_done_about_it(void **state)
{
	struct engine e;
	engine_init(&e, 4);
	struct policy_signal *s = engine_add_value(&e, "load", 10);
	engine_start(&e);

	s->on_missing = ON_MISSING_ZERO;
	engine_show_state(&e, 0, OBS_EMPTY);
	engine_tick(&e);
	assert_non_null(engine_find(&e, REASON_MISSING_AS_ZERO));

	s->on_missing = ON_MISSING_IGNORE;
	engine_tick(&e);
	assert_non_null(engine_find(&e, REASON_NO_DATA));
	assert_non_null(engine_find(&e, REASON_SIGNAL_IGNORED));

	engine_show(&e, 0, 10);
	e.series[0][0].time_ms = e.now_ms + 15000; // one interval ahead: scrapes and ticks interleave
	engine_tick_as_stamped(&e);
	assert_null(engine_find(&e, REASON_FUTURE_SAMPLE));
	e.series[0][0].time_ms = e.now_ms + 15001;
	engine_tick_as_stamped(&e);
	assert_non_null(engine_find(&e, REASON_FUTURE_SAMPLE));
	assert_int_equal(engine_find(&e, REASON_FUTURE_SAMPLE)->duration_ms, 15001);

	assert_null(engine_find(&e, REASON_READY_UNKNOWN));
	e.seen.ready_replicas = -1;
	engine_show(&e, 0, 20);
	assert_int_equal(engine_tick(&e)->desired, 8); // spec stands in for ready
	assert_non_null(engine_find(&e, REASON_READY_UNKNOWN));
	assert_int_equal(e.decision.ready, -1);
	engine_done(&e);
}

static void ratios_hold_without_ready_replicas(void **state)
{
	static const double values[] = {0, 5, 10, 20, 1000};
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
		for (int kind = 0; kind < 2; kind++) {
			struct engine e;
			engine_init(&e, 4);
			struct policy_signal *s = kind ? engine_add_watermarks(&e, "load", 8, 12, WATERMARK_AVERAGE)
			                               : engine_add_value(&e, "load", 10);
			s->on_missing = ON_MISSING_IGNORE; // the data is there: nothing to ignore
			engine_start(&e);
			e.seen.ready_replicas = 0;
			engine_show(&e, 0, values[i]);
			const struct decision *d = engine_tick(&e);
			assert_int_equal(d->action, ACTION_HOLD);
			assert_int_equal(d->reason, REASON_NO_READY_REPLICAS);
			assert_int_equal(d->signals[0].state, SIGNAL_MISSING);
			assert_true(d->signals[0].value == values[i]);
			engine_done(&e);
		}
}

// ---- windows, seen from outside ----

static void new_controller_holds_until_its_window_is_filled(void **state)
{
	static const struct {
		int32_t min_samples;
		int aggregate, held; // ticks held
	} cases[] = {
	        {0, WINDOW_AVG, 7}, {4, WINDOW_AVG, 3}, {1, WINDOW_AVG, 0}, {0, WINDOW_LAST, 0}, {8, WINDOW_MAX, 7}};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		for (int up = 0; up < 2; up++) {
			struct engine e;
			engine_init(&e, 4);
			engine_add_value(&e, "load", 10)->window =
			        (struct policy_window){true, 120000, cases[i].aggregate, cases[i].min_samples};
			engine_start(&e);
			int held = 0;
			for (; held < 20; held++, e.now_ms += 15000) {
				engine_show(&e, 0, up ? 20 : 5);
				if (engine_tick(&e)->action != ACTION_HOLD)
					break;
				assert_int_equal(e.decision.reason, REASON_WINDOW_FILLING);
				assert_int_equal(e.decision.signals[0].state, SIGNAL_FILLING);
				assert_int_equal(e.decision.entries[e.decision.driver].count, held + 1);
			}
			if (held != cases[i].held)
				fail_msg("case %zu: held for %d ticks", i, held);
			assert_int_equal(e.decision.desired, up ? 8 : 2);
			assert_non_null(engine_find(&e, REASON_WINDOW_AGGREGATE));
			engine_done(&e);
		}
}

static void refilled_window_decides_at_once(void **state)
{
	struct engine e;
	engine_init(&e, 4);
	engine_add_value(&e, "load", 10)->window = (struct policy_window){true, 120000, WINDOW_AVG, 0};
	engine_start(&e);
	struct obs_series past[12];
	for (int i = 0; i < 12; i++)
		past[i] = (struct obs_series){"", i == 3 ? NAN : 20, e.now_ms - (12 - i) * 15000};
	decide_refill(&e.policy, e.state, 0, past, 12, 4, e.now_ms);
	engine_show(&e, 0, 28);
	assert_int_equal(engine_tick(&e)->action, ACTION_SCALE_UP);
	assert_true(e.decision.signals[0].value == 21); // 7 * 20 and 28
	// too short a past is not enough
	engine_start(&e);
	decide_refill(&e.policy, e.state, 0, past + 8, 4, 4, e.now_ms);
	assert_int_equal(engine_tick(&e)->reason, REASON_WINDOW_FILLING);
	engine_done(&e);
}

static void failed_query_holds_although_the_window_has_samples(void **state)
{
	struct engine e;
	engine_init(&e, 4);
	engine_add_value(&e, "load", 10)->window = (struct policy_window){true, 120000, WINDOW_AVG, 1};
	engine_start(&e);
	for (int i = 0; i < 8; i++, e.now_ms += 15000) {
		engine_show(&e, 0, 5);
		engine_tick(&e);
	}
	engine_show_state(&e, 0, OBS_FAILED);
	assert_int_equal(engine_tick(&e)->action, ACTION_HOLD);
	assert_int_equal(e.decision.reason, REASON_QUERY_FAILED);
	engine_done(&e);
}

static void samples_beyond_the_room_of_a_window_are_announced(void **state)
{
	struct engine e;
	engine_init(&e, 4);
	engine_add_value(&e, "load", 10)->window = (struct policy_window){true, 120000, WINDOW_AVG, 1};
	engine_start(&e);
	for (int i = 0; i < 100; i++, e.now_ms += 1000) { // 120 samples in a window with room for 64
		engine_show(&e, 0, 10);
		engine_tick(&e);
		assert_int_equal(engine_find(&e, REASON_WINDOW_OVERFLOW) != NULL, i >= 64);
	}
	engine_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(each_row_is_used_or_held_and_says_why),
	        cmocka_unit_test(trace_says_what_was_done_about_it),
	        cmocka_unit_test(ratios_hold_without_ready_replicas),
	        cmocka_unit_test(new_controller_holds_until_its_window_is_filled),
	        cmocka_unit_test(refilled_window_decides_at_once),
	        cmocka_unit_test(failed_query_holds_although_the_window_has_samples),
	        cmocka_unit_test(samples_beyond_the_room_of_a_window_are_announced),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
