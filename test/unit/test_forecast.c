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

#include "policies/engine/forecast.h"
#include "policies/engine/policy.h"

#define SLOT_MS 15000
#define M       8
#define SEASON  (M * (int64_t)SLOT_MS)

struct model {
	struct policy_forecast config;
	struct forecast f;
	double slots[FORECAST_DOUBLES_MAX];
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
	forecast_init(&m->f, m->slots, forecast_slots_needed(&m->config, SLOT_MS));
}

static void see(struct model *m, int64_t slot, double y)
{
	forecast_observe(&m->f, &m->config, slot * SLOT_MS, y);
}

// At the time of a slot's only sample.
static bool ahead(const struct model *m, int64_t slot, double *load, double *deviation)
{
	int64_t left_ms;
	return forecast_at(&m->f, &m->config, SLOT_MS, slot * SLOT_MS, load, deviation, &left_ms);
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

static void trend_with_a_season_is_forecast_exactly(void **state)
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

static double season_ago(const struct model *m, int64_t slot)
{
	return forecast_season_ago(&m->f, &m->config, SLOT_MS, slot * SLOT_MS);
}

static void load_of_the_season_before_is_remembered(void **state)
{
	srand(6);
	struct model m;
	double y[40 * M];
	start(&m, FORECAST_HOLT_WINTERS, SEASON);
	for (int64_t i = 0; i < 40 * M; i++) {
		y[i] = wave(i) + rand() % 20;
		if (i > 10 * M && rand() % 10 == 0)
			y[i] = y[i - M]; // no sample: what is known of that slot is the season before
		else
			see(&m, i, y[i]);
		if (i > 10 * M && m.f.index != i)
			continue;
		for (int64_t slot = i; i >= 2 * M && slot < i + 2 * M; slot++) {
			int64_t before = slot - M;
			while (before > i - 1)
				before -= M;
			near(season_ago(&m, slot), y[before], "season ago", slot);
		}
	}
	near(forecast_season_ago(&m.f, &m.config, SLOT_MS, 40 * M * SLOT_MS - SLOT_MS / 2),
	     (y[39 * M - 1] + y[39 * M]) / 2, "between two", 40 * M);
	assert_true(forecast_move(&m.f, &m.config, 3 * SLOT_MS));
	for (int64_t slot = 40 * M; slot < 41 * M; slot++)
		near(season_ago(&m, slot + 3), y[slot - M], "season ago, moved", slot);
}

static double noisy(uint32_t *random, int64_t slot)
{
	*random = *random * 1664525 + 1013904223;
	return 100 + (slot % M < 2 ? 30 : -10) + (double)((*random >> 8) % 40) - 20;
}

// Whatever the weights are, a forecast of a load of up to 150 stays within some multiples of it, and better weights
// have a good one after as long.
static void forecast_is_bounded_for_all_weights(void **state)
{
	uint32_t random = 1;
	for (int weights = 0; weights < 11 * 11 * 11; weights++) {
		struct model m;
		double load = 0, deviation, farthest = 0;
		int64_t i = 0;
		start(&m, FORECAST_HOLT_WINTERS, SEASON);
		m.config.alpha = weights % 11 / 10.0;
		m.config.beta = weights / 11 % 11 / 10.0;
		m.config.gamma = weights / 121 / 10.0;
		for (; i < 60 * M; i++) {
			see(&m, i, noisy(&random, i));
			if (ahead(&m, i + 1, &load, &deviation))
				farthest = fmax(farthest, fabs(load));
		}
		if (!(farthest < 30 * 150))
			fail_msg("alpha %g, beta %g, gamma %g: %g", m.config.alpha, m.config.beta, m.config.gamma,
			         farthest);
		m.config.alpha = m.config.gamma = 0.3;
		m.config.beta = 0.01;
		for (; i < 120 * M; i++)
			see(&m, i, noisy(&random, i));
		assert_true(ahead(&m, i, &load, &deviation));
		if (!(fabs(load - 130) < 60))
			fail_msg("weights %d: %g", weights, load);
	}
}

// A night without load is no reason to learn anew.
static void seasons_without_load_keep_the_model(void **state)
{
	struct model m;
	double load, deviation;
	start(&m, FORECAST_HOLT_WINTERS, SEASON);
	for (int64_t i = 0; i < 40 * M; i++) {
		see(&m, i, i < 8 * M || i > 30 * M ? wave(i % M) : 0);
		assert_int_equal(ahead(&m, i + 1, &load, &deviation), i >= 2 * M);
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
	assert_true(forecast_at(&m.f, &m.config, SLOT_MS, k * SLOT_MS - SLOT_MS / 2, &load, &deviation, &left_ms));
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
	assert_true(forecast_at(&m.f, &m.config, SLOT_MS, 2 * 86400000 + 100 * 300000 + 142500, &load, &deviation,
	                        &left_ms));
	near(load, 90, "forecast of the peak", 100);
	assert_true(forecast_at(&m.f, &m.config, SLOT_MS, 2 * 86400000 + 98 * 300000 + 142500, &load, &deviation,
	                        &left_ms));
	near(load, 50, "forecast before it", 98);
}

// ---- what is missing ----

static void learning_reports_the_remaining_time(void **state)
{
	struct model m;
	double load, deviation;
	int64_t left_ms;
	start(&m, FORECAST_HOLT_WINTERS, SEASON);
	assert_false(forecast_at(&m.f, &m.config, SLOT_MS, 0, &load, &deviation, &left_ms));
	assert_int_equal(left_ms, 2 * SEASON);
	see(&m, 3, 1);
	see(&m, 8, 1);
	assert_false(forecast_at(&m.f, &m.config, SLOT_MS, 0, &load, &deviation, &left_ms));
	assert_int_equal(left_ms, 2 * SEASON); // a gap that long starts anew
	see(&m, 9, 1);
	see(&m, 11, 1); // one slot missing: bridged
	assert_false(forecast_at(&m.f, &m.config, SLOT_MS, 0, &load, &deviation, &left_ms));
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

static void line_is_extended(void **state)
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(trend_with_a_season_is_forecast_exactly),
	        cmocka_unit_test(noisy_loads_get_the_forecast_of_the_textbook),
	        cmocka_unit_test(load_of_the_season_before_is_remembered),
	        cmocka_unit_test(forecast_is_bounded_for_all_weights),
	        cmocka_unit_test(seasons_without_load_keep_the_model),
	        cmocka_unit_test(between_two_slots_the_season_is_interpolated),
	        cmocka_unit_test(samples_of_a_slot_are_averaged),
	        cmocka_unit_test(learning_reports_the_remaining_time),
	        cmocka_unit_test(gaps_leave_the_season_and_take_the_trend),
	        cmocka_unit_test(numbers_out_of_range_start_anew),
	        cmocka_unit_test(line_is_extended),
	        cmocka_unit_test(noise_gets_the_least_squares),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
