// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the forecast is that of the textbook, starts when it has seen enough, survives gaps, and raises
// the scale ahead of a load that comes back, without ever lowering it unless asked.
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

#define SLOT_MS 15000
#define M       8
#define SEASON  (M * (int64_t)SLOT_MS)

static void near(double a, double b, const char *what, int64_t at)
{
	if (!(fabs(a - b) <= 1e-7 * (1 + fabs(b))))
		fail_msg("%s, slot %lld: %.12g, must be %.12g", what, (long long)at, a, b);
}

// Load 20 (2 replicas' worth) with a peak of 80 in the last two of eight slots.
static double peak(int64_t tick)
{
	return tick % M >= M - 2 ? 80 : 20;
}

static struct policy_forecast *make(struct engine *e)
{
	engine_init(e, 2);
	e->now_ms = 1000 * SEASON;
	engine_add_value(e, "load", 10)->target.type = TARGET_AVERAGE_VALUE;
	e->policy.forecast = (struct policy_forecast){.set = true,
	                                              .signal = "load",
	                                              .model = FORECAST_HOLT_WINTERS,
	                                              .season_ms = SEASON,
	                                              .window_ms = SEASON,
	                                              .horizon_ms = 2 * SLOT_MS,
	                                              .alpha = 0.3,
	                                              .beta = 0.01,
	                                              .gamma = 0.2};
	return &e->policy.forecast;
}

static void the_scale_rises_before_the_peak_comes(void **state)
{
	struct engine e;
	make(&e);
	engine_start(&e);
	for (int64_t i = 0; i < 6 * M; i++, e.now_ms += SLOT_MS) {
		engine_show(&e, 0, peak(i));
		engine_tick(&e);
		bool off = engine_find(&e, REASON_FORECAST_LEARNING) != NULL;
		assert_int_equal(off, i < 2 * M);
		int32_t now = (int32_t)(peak(i) / 10);
		if (off)
			assert_int_equal(e.decision.desired, now);
		else
			assert_true(e.decision.desired >= now); // never lowers
		if (i >= 2 * M && i % M == M - 5)
			assert_int_equal(e.decision.desired, 2);
		if (i >= 2 * M && i % M == M - 4) { // two ticks ahead
			assert_int_equal(e.decision.desired, 8);
			const struct trace_entry *entry = engine_find(&e, REASON_FORECAST);
			assert_non_null(entry);
			assert_int_equal(entry->after, 8);
			assert_int_equal(entry->duration_ms, 2 * SLOT_MS);
			assert_int_equal(e.decision.trace[e.decision.driver].reason, REASON_FORECAST);
		}
		engine_apply(&e);
	}
	engine_done(&e);
}

static void both_follows_the_forecast_down_too(void **state)
{
	struct engine e;
	make(&e)->use = FORECAST_BOTH;
	engine_start(&e);
	for (int64_t i = 0; i < 6 * M; i++, e.now_ms += SLOT_MS) {
		engine_show(&e, 0, peak(i));
		engine_tick(&e);
		if (i > 2 * M && i % M == M - 1) // the peak is over when what is ordered now is ready
			assert_int_equal(e.decision.desired, 2);
		engine_apply(&e);
	}
	engine_done(&e);
}

static void both_lowers_nothing_in_a_panic(void **state)
{
	struct engine e;
	make(&e)->use = FORECAST_BOTH;
	e.signals[0].window = (struct policy_window){true, 2 * SLOT_MS, WINDOW_AVG, 1};
	e.policy.panic = (struct policy_panic){.set = true, .signal = "load", .window_ms = SLOT_MS, .threshold = 1.5};
	engine_start(&e);
	bool panicked = false;
	for (int64_t i = 0; i < 6 * M; i++, e.now_ms += SLOT_MS) {
		engine_show(&e, 0, i == 4 * M + 1 ? 200 : 20);
		engine_tick(&e);
		if (engine_find(&e, REASON_PANIC)) {
			panicked = true;
			assert_true(e.decision.desired >= e.decision.current);
		}
		engine_apply(&e);
	}
	assert_true(panicked);
	engine_done(&e);
}

static void without_data_there_is_no_forecast(void **state)
{
	struct engine e;
	make(&e);
	engine_start(&e);
	for (int64_t i = 0; i < 5 * M; i++, e.now_ms += SLOT_MS) {
		if (i == 4 * M + M - 3)
			engine_show_state(&e, 0, OBS_EMPTY);
		else
			engine_show(&e, 0, peak(i));
		engine_tick(&e);
		if (i == 4 * M + M - 3) {
			assert_int_equal(e.decision.action, ACTION_HOLD);
			assert_int_equal(e.decision.reason, REASON_NO_DATA);
		}
		engine_apply(&e);
	}
	engine_done(&e);
}

static void a_value_per_replica_is_forecast_as_a_load(void **state)
{
	struct engine e; // the load does not change; the scale does, and with it the value
	make(&e);
	e.signals[0].target.type = TARGET_VALUE;
	e.policy.forecast.model = FORECAST_LINEAR;
	engine_start(&e);
	for (int64_t i = 0; i < 4 * M; i++, e.now_ms += SLOT_MS) {
		e.seen.spec_replicas = e.seen.status_replicas = e.seen.ready_replicas = 4 + (int32_t)(i % 3);
		engine_show(&e, 0, 60.0 / e.seen.ready_replicas);
		engine_tick(&e);
		assert_null(engine_find(&e, REASON_FORECAST));
		const struct trace_entry *entry = engine_find(&e, REASON_FORECAST_COVERED);
		assert_int_equal(entry != NULL, i >= M);
		if (entry)
			near(entry->value, 60, "load", i);
	}
	engine_done(&e);
}

static void the_band_adds_deviations(void **state)
{
	struct engine e;
	make(&e)->band = 2;
	engine_start(&e);
	for (int64_t i = 0; i < 20 * M; i++, e.now_ms += SLOT_MS) {
		engine_show(&e, 0, 40 + (double)((i * 7) % 11));
		engine_tick(&e);
		const struct trace_entry *entry = engine_find(&e, REASON_FORECAST);
		entry = entry ? entry : engine_find(&e, REASON_FORECAST_COVERED);
		if (entry)
			assert_true(entry->limit > entry->value + 1);
		assert_int_equal(entry != NULL, i >= 2 * M);
	}
	engine_done(&e);
}

static void the_start_up_time_is_the_horizon(void **state)
{
	struct engine e;
	make(&e)->horizon_ms = FORECAST_HORIZON_STARTUP;
	engine_start(&e);
	for (int64_t i = 0; i < 3 * M; i++, e.now_ms += SLOT_MS) {
		engine_show(&e, 0, peak(i));
		engine_tick(&e);
		assert_non_null(engine_find(&e, REASON_FORECAST_NO_HORIZON));
	}
	decide_record_start(&e.policy, e.state, 45000);
	engine_show(&e, 0, peak(0));
	engine_tick(&e);
	const struct trace_entry *entry = engine_find(&e, REASON_FORECAST_COVERED);
	assert_non_null(entry);
	assert_int_equal(entry->duration_ms, 45000);
	engine_done(&e);
}

static void a_restart_learns_from_the_past(void **state)
{
	struct engine e;
	make(&e);
	engine_start(&e);
	int64_t step_ms, back_ms = decide_forecast_history_ms(&e.policy, &step_ms);
	assert_int_equal(step_ms, SLOT_MS);
	assert_int_equal(back_ms, 2 * SEASON + 2 * SLOT_MS);
	struct obs_series past[2 * M + 2];
	for (int64_t i = 0; i < 2 * M + 2; i++)
		past[i] = (struct obs_series){"", peak(M - 2 + i), e.now_ms - back_ms + i * SLOT_MS};
	decide_refill_forecast(&e.policy, e.state, past, 2 * M + 2, e.now_ms);
	for (int64_t i = 0; i < M; i++, e.now_ms += SLOT_MS) {
		engine_show(&e, 0, peak(i));
		engine_tick(&e);
		assert_null(engine_find(&e, REASON_FORECAST_LEARNING));
		if (i == M - 4) // two ticks ahead
			assert_int_equal(e.decision.desired, 8);
		engine_apply(&e);
	}
	double trend = engine_find(&e, REASON_FORECAST_COVERED)->value;
	decide_refill_forecast(&e.policy, e.state, past, 1, e.now_ms); // one that is running is left alone
	engine_tick(&e);
	assert_null(engine_find(&e, REASON_FORECAST_LEARNING));
	assert_true(trend > 0);
	e.signals[0].target.type = TARGET_VALUE; // how many replicas there were is not known
	assert_int_equal(decide_forecast_history_ms(&e.policy, &step_ms), 0);
	e.policy.forecast.set = false;
	assert_int_equal(decide_forecast_history_ms(&e.policy, &step_ms), 0);
	engine_done(&e);
}

static void what_was_learnt_survives_another_policy(void **state)
{
	for (int change = 0; change < 3; change++) {
		struct engine e, next;
		make(&e);
		engine_start(&e);
		for (int64_t i = 0; i < 3 * M; i++, e.now_ms += SLOT_MS) {
			engine_show(&e, 0, peak(i));
			engine_tick(&e);
		}
		make(&next);
		next.policy.forecast.band = 1; // does not matter
		next.policy.max_replicas = 9;
		if (change == 1)
			next.policy.forecast.season_ms = 2 * SEASON;
		if (change == 2)
			next.signals[0].query = "another";
		engine_start(&next);
		assert_int_equal(decide_state_matches(&next.policy, e.state, decide_state_bytes(&e.policy)),
		                 change == 0);
		decide_state_migrate(&e.policy, e.state, &next.policy, next.state);
		next.now_ms = e.now_ms;
		engine_show(&next, 0, peak(0));
		engine_tick(&next);
		assert_int_equal(engine_find(&next, REASON_FORECAST_LEARNING) != NULL, change != 0);
		engine_done(&e);
		engine_done(&next);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_scale_rises_before_the_peak_comes),
	        cmocka_unit_test(both_follows_the_forecast_down_too),
	        cmocka_unit_test(both_lowers_nothing_in_a_panic),
	        cmocka_unit_test(without_data_there_is_no_forecast),
	        cmocka_unit_test(a_value_per_replica_is_forecast_as_a_load),
	        cmocka_unit_test(the_band_adds_deviations),
	        cmocka_unit_test(the_start_up_time_is_the_horizon),
	        cmocka_unit_test(a_restart_learns_from_the_past),
	        cmocka_unit_test(what_was_learnt_survives_another_policy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
