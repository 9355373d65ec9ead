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

#include "policies/forecast.h"
#include "test/support/engine.h"

#define SLOT_MS 15000
#define M       8
#define SEASON  (M * (int64_t)SLOT_MS)

struct model {
	struct policy_forecast config;
	struct forecast f;
	double slots[FORECAST_SEASON_SLOTS_MAX];
};

static void start(struct model *m, int model, int64_t span_ms)
{
	*m = (struct model){.config = {.set = true,
	                               .signal = "load",
	                               .model = model,
	                               .season_ms = span_ms,
	                               .window_ms = span_ms,
	                               .alpha = 0.3,
	                               .beta = 0.05,
	                               .gamma = 0.2}};
	forecast_init(&m->f, m->slots, 0, forecast_slots_needed(&m->config, SLOT_MS));
}

static void see(struct model *m, int64_t slot, double y)
{
	forecast_observe(&m->f, m->slots, &m->config, slot * SLOT_MS, y);
}

// At the time of a slot's only sample.
static bool ahead(const struct model *m, int64_t slot, double *load, double *deviation)
{
	int64_t left_ms;
	return forecast_at(&m->f, m->slots, &m->config, SLOT_MS, slot * SLOT_MS, load, deviation, &left_ms);
}

static void near(double a, double b, const char *what, int64_t at)
{
	if (!(fabs(a - b) <= 1e-7 * (1 + fabs(b))))
		fail_msg("%s, slot %lld: %.12g, must be %.12g", what, (long long)at, a, b);
}

// ---- Holt-Winters ----

static double wave(int64_t slot)
{
	static const double season[M] = {3, -1, 4, 1, -5, 9, -2, -9};
	return 100 + 0.5 * (double)slot + season[slot % M];
}

static void a_trend_with_a_season_is_forecast_exactly(void **state)
{
	for (int64_t first = 0; first < M; first++) { // learning may start anywhere in the season
		struct model m;
		double load, deviation;
		start(&m, FORECAST_HOLT_WINTERS, SEASON);
		for (int64_t i = first; i < first + 6 * M; i++) {
			see(&m, i, wave(i)); // closes slot i - 1
			bool ready = ahead(&m, i + 1, &load, &deviation);
			assert_int_equal(ready, i - first >= 2 * M);
			for (int64_t k = i; ready && k < i + 3 * M; k++) {
				assert_true(ahead(&m, k, &load, &deviation));
				near(load, wave(k), "forecast", k);
				assert_true(deviation < 1e-5);
			}
		}
	}
}

// The recurrences as the textbook has them, on arrays.
struct textbook {
	double level, trend, season[M], variance;
	int64_t n_errors;
};

static void textbook_begin(struct textbook *b, const double *y) // y[0 .. 2 M): two seasons
{
	double mean1 = 0, mean2 = 0, squares = 0;
	for (int j = 0; j < M; j++) {
		mean1 += y[j] / M;
		mean2 += y[M + j] / M;
	}
	b->trend = (mean2 - mean1) / M;
	b->level = mean2 + b->trend * (M - 1) / 2.0;
	for (int j = 0; j < M; j++) {
		b->season[j] = (y[j] - mean1 + y[M + j] - mean2) / 2 - b->trend * (j - (M - 1) / 2.0);
		squares += pow(y[M + j] - y[j] - (mean2 - mean1), 2) / M;
	}
	b->variance = squares / 2;
	b->n_errors = M;
}

static void textbook_step(struct textbook *b, int64_t t, double y)
{
	const double alpha = 0.3, beta = 0.05, gamma = 0.2;
	double l = b->level, s = b->season[t % M];
	double error = y - l - b->trend - s;
	b->level = alpha * (y - s) + (1 - alpha) * (l + b->trend);
	b->season[t % M] = gamma * (y - l - b->trend) + (1 - gamma) * s;
	b->trend = beta * (b->level - l) + (1 - beta) * b->trend;
	b->n_errors++;
	b->variance += (error * error - b->variance) / (double)(b->n_errors < 50 ? b->n_errors : 50);
}

static void noisy_loads_get_the_forecast_of_the_textbook(void **state)
{
	srand(5);
	for (int trace = 0; trace < 50; trace++) {
		struct model m;
		struct textbook b;
		double y[40 * M];
		start(&m, FORECAST_HOLT_WINTERS, SEASON);
		for (int64_t i = 0; i < 40 * M; i++) {
			y[i] = wave(i) + rand() % 20;
			see(&m, i, y[i]);
			if (i == 2 * M)
				textbook_begin(&b, y);
			else if (i > 2 * M)
				textbook_step(&b, i - 1, y[i - 1]);
			else
				continue;
			double load, deviation;
			for (int64_t h = 1; h < 2 * M; h++) {
				int64_t slot = i - 1 + h;
				assert_true(ahead(&m, slot, &load, &deviation));
				near(load, b.level + (double)h * b.trend + b.season[slot % M], "forecast", slot);
				double a = 0.3, c = 0.3 * 0.05, g = 0.2, n = (double)h, k = (double)((h - 1) / M);
				double growth = 1 + (n - 1) * (a * a + a * c * n + c * c * n * (2 * n - 1) / 6) +
				                g * k * (2 * a + g + c * M * (k + 1));
				near(deviation, sqrt(b.variance * growth), "deviation", slot);
			}
		}
	}
}

static void between_two_slots_the_season_is_interpolated(void **state)
{
	struct model m;
	double load, deviation;
	int64_t left_ms;
	start(&m, FORECAST_HOLT_WINTERS, SEASON);
	for (int64_t i = 0; i <= 3 * M; i++)
		see(&m, i, wave(i));
	int64_t k = 4 * M;
	assert_true(
	        forecast_at(&m.f, m.slots, &m.config, SLOT_MS, k * SLOT_MS - SLOT_MS / 2, &load, &deviation, &left_ms));
	near(load, (wave(k - 1) + wave(k)) / 2, "forecast between two", k);
}

static void samples_of_a_slot_are_averaged(void **state)
{
	struct model m; // a day at 15 s: 20 samples in each of 288 slots
	double load, deviation;
	start(&m, FORECAST_HOLT_WINTERS, 86400000);
	assert_int_equal(m.f.n_slots, 288);
	assert_int_equal(forecast_slot_ms(&m.f, &m.config), 300000);
	for (int64_t i = 0; i <= 2 * 5760; i++)
		see(&m, i, 50 + (i % 2 ? 5 : -5) + ((i / 20) % 288 == 100 ? 40 : 0));
	int64_t left_ms;
	assert_true(forecast_at(&m.f, m.slots, &m.config, SLOT_MS, 2 * 86400000 + 100 * 300000 + 142500, &load,
	                        &deviation, &left_ms));
	near(load, 90, "forecast of the peak", 100);
	assert_true(forecast_at(&m.f, m.slots, &m.config, SLOT_MS, 2 * 86400000 + 98 * 300000 + 142500, &load,
	                        &deviation, &left_ms));
	near(load, 50, "forecast before it", 98);
}

// ---- what is missing ----

static void learning_tells_how_long_it_takes_yet(void **state)
{
	struct model m;
	double load, deviation;
	int64_t left_ms;
	start(&m, FORECAST_HOLT_WINTERS, SEASON);
	assert_false(forecast_at(&m.f, m.slots, &m.config, SLOT_MS, 0, &load, &deviation, &left_ms));
	assert_int_equal(left_ms, 2 * SEASON);
	see(&m, 3, 1);
	see(&m, 8, 1);
	assert_false(forecast_at(&m.f, m.slots, &m.config, SLOT_MS, 0, &load, &deviation, &left_ms));
	assert_int_equal(left_ms, 2 * SEASON); // a gap that long starts anew
	see(&m, 9, 1);
	see(&m, 11, 1); // one slot missing: bridged
	assert_false(forecast_at(&m.f, m.slots, &m.config, SLOT_MS, 0, &load, &deviation, &left_ms));
	assert_int_equal(left_ms, 2 * SEASON - 3 * SLOT_MS);
}

static void gaps_leave_the_season_and_take_the_trend(void **state)
{
	struct model m;
	double load, deviation;
	start(&m, FORECAST_HOLT_WINTERS, SEASON);
	for (int64_t i = 0; i <= 4 * M; i++)
		see(&m, i, wave(i));
	see(&m, 4 * M + 2, wave(4 * M + 2)); // one slot missing
	assert_true(ahead(&m, 5 * M, &load, &deviation));
	near(load, wave(5 * M), "after a short gap", 5 * M);
	see(&m, 5 * M + 4, wave(5 * M + 4));
	assert_true(m.f.trend == 0);
	double level = m.f.level;
	assert_true(ahead(&m, 6 * M, &load, &deviation));
	near(load, level + 3, "after a long gap", 6 * M);
	see(&m, 7 * M, 1);
	assert_true(ahead(&m, 7 * M + 1, &load, &deviation)); // less than two seasons without data
	see(&m, 10 * M, 1);
	assert_false(ahead(&m, 10 * M + 1, &load, &deviation));
}

static void numbers_out_of_range_start_anew(void **state)
{
	for (int model = 0; model < FORECAST_MODEL__COUNT; model++) {
		struct model m;
		double load, deviation;
		start(&m, model, SEASON);
		for (int64_t i = 0; i < 6 * M; i++) {
			see(&m, i, i % 2 ? 1.7e308 : -1.7e308);
			see(&m, i, i % 2 ? 1.7e308 : -1.7e308);
			if (ahead(&m, i + 1, &load, &deviation))
				assert_true(isfinite(load) && isfinite(deviation));
		}
	}
}

// ---- Linear ----

static void a_line_is_extended(void **state)
{
	struct model m;
	double load, deviation;
	start(&m, FORECAST_LINEAR, SEASON);
	for (int64_t i = 100; i < 100 + 3 * M; i++) {
		see(&m, i, 7 + 2.5 * (double)i);
		bool ready = ahead(&m, i + 10, &load, &deviation);
		assert_int_equal(ready, i - 100 >= M);
		if (ready) {
			near(load, 7 + 2.5 * (double)(i + 10), "forecast", i);
			assert_true(deviation < 1e-5);
		}
	}
}

static void noise_gets_the_least_squares(void **state)
{
	srand(9);
	struct model m;
	double y[400];
	start(&m, FORECAST_LINEAR, SEASON);
	for (int64_t i = 0; i < 400; i++) {
		y[i] = (double)(rand() % 1000);
		bool gap = i > 0 && rand() % 6 == 0;
		if (gap)
			y[i] = NAN;
		else
			see(&m, i, y[i]);
		double n = 0, sx = 0, sy = 0, load, deviation;
		if (gap || i < M)
			continue;
		for (int64_t k = i - M; k < i; k++)
			if (!isnan(y[k])) {
				n++;
				sx += (double)k;
				sy += y[k];
			}
		double sxx = 0, sxy = 0, rest = 0;
		for (int64_t k = i - M; k < i; k++)
			if (!isnan(y[k])) {
				sxx += ((double)k - sx / n) * ((double)k - sx / n);
				sxy += ((double)k - sx / n) * (y[k] - sy / n);
			}
		for (int64_t k = i - M; k < i; k++)
			if (!isnan(y[k]))
				rest += pow(y[k] - sy / n - sxy / sxx * ((double)k - sx / n), 2);
		int64_t at = i + 5;
		bool ready = ahead(&m, at, &load, &deviation);
		assert_int_equal(ready, n >= M / 2); // half of the slots are enough
		if (!ready)
			continue;
		double x = (double)at - sx / n;
		near(load, sy / n + sxy / sxx * x, "forecast", i);
		near(deviation, sqrt(rest / (n - 2) * (1 + 1 / n + x * x / sxx)), "deviation", i);
	}
}

// ---- in the engine ----

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
	        cmocka_unit_test(a_trend_with_a_season_is_forecast_exactly),
	        cmocka_unit_test(noisy_loads_get_the_forecast_of_the_textbook),
	        cmocka_unit_test(between_two_slots_the_season_is_interpolated),
	        cmocka_unit_test(samples_of_a_slot_are_averaged),
	        cmocka_unit_test(learning_tells_how_long_it_takes_yet),
	        cmocka_unit_test(gaps_leave_the_season_and_take_the_trend),
	        cmocka_unit_test(numbers_out_of_range_start_anew),
	        cmocka_unit_test(a_line_is_extended),
	        cmocka_unit_test(noise_gets_the_least_squares),
	        cmocka_unit_test(the_scale_rises_before_the_peak_comes),
	        cmocka_unit_test(both_follows_the_forecast_down_too),
	        cmocka_unit_test(without_data_there_is_no_forecast),
	        cmocka_unit_test(a_value_per_replica_is_forecast_as_a_load),
	        cmocka_unit_test(the_band_adds_deviations),
	        cmocka_unit_test(the_start_up_time_is_the_horizon),
	        cmocka_unit_test(a_restart_learns_from_the_past),
	        cmocka_unit_test(what_was_learnt_survives_another_policy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
