// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the forecast starts when it has learnt enough and has been better than naive ones, turns itself
// off when it no longer is, and raises the scale ahead of a load that recurs, without ever lowering it unless asked.
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
#define TRIAL   (M / 4) // slots

// The tick at which the forecast starts, with a horizon of this many ticks: the one after its trial.
#define START(horizon) (2 * M + (horizon) + TRIAL)

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

static void scale_rises_before_the_peak_comes(void **state)
{
	struct engine e;
	make(&e);
	engine_start(&e);
	for (int64_t i = 0; i < 6 * M; i++, e.now_ms += SLOT_MS) {
		engine_show(&e, 0, peak(i));
		engine_tick(&e);
		bool off = engine_find(&e, REASON_FORECAST_LEARNING) != NULL;
		assert_int_equal(off, i < START(2));
		int32_t now = (int32_t)(peak(i) / 10);
		if (off)
			assert_int_equal(e.decision.desired, now);
		else
			assert_true(e.decision.desired >= now); // never lowers
		if (i >= 2 * M && i % M == M - 5)               // too early
			assert_int_equal(e.decision.desired, 2);
		if (i >= 2 * M && i % M == M - 4) { // two ticks ahead
			assert_int_equal(e.decision.desired, 8);
			const struct trace_entry *entry = engine_find(&e, REASON_FORECAST);
			assert_non_null(entry);
			assert_int_equal(entry->after, 8);
			assert_int_equal(entry->duration_ms, 2 * SLOT_MS);
			assert_int_equal(e.decision.entries[e.decision.driver].reason, REASON_FORECAST);
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

static void forecast_is_absent_without_data(void **state)
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

static void value_per_replica_is_forecast_as_a_load(void **state)
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
		assert_int_equal(entry != NULL, i >= M + 2 + M); // the trial of a line takes a window
		if (entry)
			near(entry->value, 60, "load", i);
	}
	engine_done(&e);
}

static void band_adds_deviations(void **state)
{
	struct engine e;
	int forecasts = 0;
	make(&e)->band = 2;
	engine_start(&e);
	srand(4);
	for (int64_t i = 0; i < 20 * M; i++, e.now_ms += SLOT_MS) {
		engine_show(&e, 0, 40 + rand() % 11); // noise, of which the mean is the best forecast
		engine_tick(&e);
		const struct trace_entry *entry = engine_find(&e, REASON_FORECAST);
		entry = entry ? entry : engine_find(&e, REASON_FORECAST_COVERED);
		forecasts += entry != NULL;
		if (entry)
			assert_true(entry->limit > entry->value + 1);
	}
	assert_true(forecasts > 12 * M);
	engine_done(&e);
}

static void start_up_time_is_the_horizon(void **state)
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

static void restart_learns_from_the_past(void **state)
{
	struct engine e;
	make(&e);
	engine_start(&e);
	int64_t step_ms, back_ms = decide_forecast_history_ms(&e.policy, &step_ms);
	assert_int_equal(step_ms, SLOT_MS);
	assert_int_equal(back_ms, 3 * SEASON + (2 + 2) * SLOT_MS); // the last season to be compared, two slots ahead
	struct obs_series past[3 * M + 4];
	for (int64_t i = 0; i < 3 * M + 4; i++)
		past[i] = (struct obs_series){"", peak(M - 4 + i), e.now_ms - back_ms + i * SLOT_MS};
	decide_refill_forecast(&e.policy, e.state, past, 3 * M + 4, e.now_ms);
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

static void learnt_forecast_survives_a_policy_change(void **state)
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

// ---- no better than a naive forecast ----

// Steps that come without a season: what was last seen mostly stays.
static double steps(int64_t tick)
{
	return tick / 13 % 2 ? 80 : 20;
}

static bool is_off(const struct engine *e)
{
	return engine_find(e, REASON_FORECAST_OFF) != NULL;
}

static void forecast_no_better_than_naive_proposes_nothing(void **state)
{
	for (int use = 0; use < FORECAST_USE__COUNT; use++) {
		struct engine e;
		make(&e)->use = use;
		engine_start(&e);
		for (int64_t i = 0; i < 60 * M; i++, e.now_ms += SLOT_MS) {
			engine_show(&e, 0, steps(i));
			engine_tick(&e);
			assert_null(engine_find(&e, REASON_FORECAST));
			assert_int_equal(is_off(&e), i >= START(2));
			assert_int_equal(e.decision.desired, (int32_t)(steps(i) / 10));
			const struct trace_entry *off = engine_find(&e, REASON_FORECAST_OFF);
			if (off)
				assert_true(off->value >= 0.95 * off->limit && off->stage == STAGE_FORECAST);
			engine_apply(&e);
		}
		engine_done(&e);
	}
}

#define PART (INT64_C(3) * 86400000 / SLOT_MS) // in ticks: long enough to forget what was before

static void forecast_turns_itself_off_and_on_again(void **state)
{
	struct engine e;
	int changes = 0;
	bool was_off = false;
	make(&e);
	engine_start(&e);
	static const bool recurs[] = {true, false, true};
	for (int64_t i = 0; i < 3 * PART; i++, e.now_ms += SLOT_MS) {
		int64_t part = i / (PART), at = i % (PART);
		engine_show(&e, 0, recurs[part] ? peak(i) : steps(i));
		engine_tick(&e);
		if (i < START(2))
			continue;
		changes += is_off(&e) != was_off;
		was_off = is_off(&e);
		if (at == PART - 1)
			assert_int_equal(was_off, !recurs[part]);
	}
	assert_int_equal(changes, 2);
	engine_done(&e);
}

static void line_is_compared_with_the_last_load(void **state)
{
	for (int grows = 0; grows < 2; grows++) {
		struct engine e;
		make(&e)->model = FORECAST_LINEAR;
		engine_start(&e);
		for (int64_t i = 0; i < 20 * M; i++, e.now_ms += SLOT_MS) {
			engine_show(&e, 0, grows ? 2 * (double)i : i / 6 % 2 ? 60 : 20); // a line overshoots a step
			engine_tick(&e);
			if (i >= 2 * M + 2)
				assert_int_equal(is_off(&e), !grows);
		}
		engine_done(&e);
	}
}

static void record_survives_restart_policy_change_and_clock(void **state)
{
	for (int how = 0; how < 4; how++) {
		struct engine e, next;
		make(&e);
		make(&next)->band = 1;
		engine_start(&e);
		engine_start(&next);
		struct obs_series past[3 * M + 4];
		for (int64_t i = 0; i < 3 * M + 4; i++, e.now_ms += SLOT_MS) {
			past[i] = (struct obs_series){"", steps(i), e.now_ms};
			engine_show(&e, 0, steps(i));
			engine_tick(&e);
		}
		assert_true(is_off(&e));
		next.now_ms = e.now_ms;
		if (how == 0) { // history
			decide_refill_forecast(&next.policy, next.state, past, 3 * M + 4, next.now_ms);
		} else if (how == 1) { // change of the policy
			decide_state_migrate(&e.policy, e.state, &next.policy, next.state);
		} else if (how == 2) { // packed
			uint64_t packed[4096];
			assert_true(decide_state_packed_bytes(&e.policy, e.state) <= sizeof packed);
			decide_state_pack(&e.policy, e.state, packed);
			decide_state_unpack(&next.policy, packed, next.state);
		} else { // a clock that is set by less than a slot
			decide_state_migrate(&e.policy, e.state, &next.policy, next.state);
			decide_clock_was_set(&next.policy, next.state, SLOT_MS / 2);
			next.now_ms += SLOT_MS / 2;
		}
		engine_show(&next, 0, steps(3 * M + 4));
		engine_tick(&next);
		assert_true(is_off(&next));
		engine_done(&e);
		engine_done(&next);
	}
}

static void learning_anew_starts_the_record_again(void **state)
{
	struct engine e;
	make(&e);
	engine_start(&e);
	for (int64_t i = 0; i < 8 * M; i++, e.now_ms += i == 4 * M ? 3 * SEASON : SLOT_MS) {
		engine_show(&e, 0, peak(i));
		engine_tick(&e);
		if (i == 4 * M - 1)
			assert_null(engine_find(&e, REASON_FORECAST_LEARNING));
	}
	assert_non_null(engine_find(&e, REASON_FORECAST_COVERED));
	engine_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(scale_rises_before_the_peak_comes),
	        cmocka_unit_test(both_follows_the_forecast_down_too),
	        cmocka_unit_test(both_lowers_nothing_in_a_panic),
	        cmocka_unit_test(forecast_is_absent_without_data),
	        cmocka_unit_test(value_per_replica_is_forecast_as_a_load),
	        cmocka_unit_test(band_adds_deviations),
	        cmocka_unit_test(start_up_time_is_the_horizon),
	        cmocka_unit_test(restart_learns_from_the_past),
	        cmocka_unit_test(learnt_forecast_survives_a_policy_change),
	        cmocka_unit_test(forecast_no_better_than_naive_proposes_nothing),
	        cmocka_unit_test(forecast_turns_itself_off_and_on_again),
	        cmocka_unit_test(line_is_compared_with_the_last_load),
	        cmocka_unit_test(record_survives_restart_policy_change_and_clock),
	        cmocka_unit_test(learning_anew_starts_the_record_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
