// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the record of a forecast has the errors of its definition, forgets within days, and trusts a model
// only after it has been better than the naive forecasts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "policies/engine/forecast.h"
#include "policies/engine/number.h"

#define TICK_MS 60000
#define GAP_MS  (2 * TICK_MS)

static void near(double a, double b)
{
	if (!(fabs(a - b) <= 1e-9 * (1 + fabs(b))))
		fail_msg("%.12g, must be %.12g", a, b);
}

// One tick with `load`, and forecasts for the next one that are off by these errors from `next`.
static void step(struct skill *s, int64_t tick, double load, double next, double model, double season, double last)
{
	int64_t now_ms = tick * TICK_MS;
	struct skill_pending p = {now_ms + TICK_MS, next + model, next + season, next + last};
	skill_observe(s, GAP_MS, now_ms, load);
	skill_remember(s, now_ms, &p);
}

// `n` ticks of load 100 with constant errors.
static int64_t run(struct skill *s, int64_t tick, int64_t n, double model, double season, double last)
{
	for (int64_t end = tick + n; tick < end; tick++)
		step(s, tick, 100, 100, model, season, last);
	return tick;
}

static void errors_fade_with_a_time_constant_of_a_day(void **state)
{
	(void)state;
	srand(3);
	struct skill s;
	double weight = 0, model = 0, season = 0, last = 0, load = 0, errors[3] = {0}, next, ret_model, ret_naive;
	skill_reset(&s);
	for (int64_t i = 0; i < 5000; i++) {
		double fade = exp(-(double)TICK_MS / 86400e3);
		if (i > 0) {
			weight = weight * fade + 1;
			model = model * fade + fabs(errors[0]);
			season = season * fade + fabs(errors[1]);
			last = last * fade + fabs(errors[2]);
		}
		next = rand() % 1000;
		for (int k = 0; k < 3; k++)
			errors[k] = rand() % 100 - 50;
		step(&s, i, load, next, errors[0], errors[1], errors[2]);
		load = next;
		if (i == 0)
			continue;
		skill_errors(&s, &ret_model, &ret_naive);
		near(ret_model, model / weight);
		near(ret_naive, fmin(season, last) / weight);
	}
}

static void model_is_off_until_its_trial_is_over(void **state)
{
	(void)state;
	struct skill s;
	skill_reset(&s);
	for (int64_t i = 0; i < 100; i++) {
		step(&s, i, 100, 100, 1, 10, 10);
		assert_int_equal(skill_evaluate(&s, 40 * TICK_MS), i >= 40);
	}
}

static void either_naive_forecast_turns_the_model_off(void **state)
{
	(void)state;
	for (int which = 0; which < 3; which++) {
		struct skill s;
		skill_reset(&s);
		run(&s, 0, 100, 10, which == 1 ? 8 : 20, which == 2 ? 9 : 20);
		assert_int_equal(skill_evaluate(&s, TICK_MS), which == 0);
	}
}

static void small_lead_neither_starts_nor_stops_the_model(void **state)
{
	(void)state;
	struct skill s;
	skill_reset(&s);
	int64_t at = run(&s, 0, 2000, 9.8, 20, 10);
	assert_false(skill_evaluate(&s, TICK_MS));
	at = run(&s, at, 2000, 8, 20, 10);
	assert_true(skill_evaluate(&s, TICK_MS));
	at = run(&s, at, 10000, 9.8, 20, 10);
	assert_true(skill_evaluate(&s, TICK_MS));
	at = run(&s, at, 10000, 10.1, 20, 10);
	assert_false(skill_evaluate(&s, TICK_MS));
	run(&s, at, 10000, 9.8, 20, 10);
	assert_false(skill_evaluate(&s, TICK_MS));
}

static void hundredth_of_the_load_makes_no_difference(void **state)
{
	(void)state;
	static const struct {
		double model, season, last;
		bool on;
	} rows[] = {
	        {0, 0, 0, true},    // a load that does not change
	        {0.5, 0, 0, true},  // of 100
	        {1.5, 0, 0, false}, // the naive forecasts are exact
	        {3, 3, 30, true},   // the model repeats the season
	        {3, 2.5, 30, true}, {3, 1, 30, false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct skill s;
		skill_reset(&s);
		run(&s, 0, 100, rows[i].model, rows[i].season, rows[i].last);
		assert_int_equal(skill_evaluate(&s, TICK_MS), rows[i].on);
	}
}

static void between_two_loads_the_load_changes_evenly(void **state)
{
	(void)state;
	struct skill s;
	double model, naive;
	skill_reset(&s);
	skill_observe(&s, GAP_MS, 0, 100);
	skill_remember(&s, 0, &(struct skill_pending){TICK_MS / 4, 110, 104, 100});
	skill_observe(&s, GAP_MS, TICK_MS, 140); // 110 after a quarter
	skill_errors(&s, &model, &naive);
	near(model, 0);
	near(naive, 6);
}

static void forecasts_for_a_gap_are_dropped(void **state)
{
	(void)state;
	struct skill s;
	skill_reset(&s);
	int64_t at = run(&s, 0, 10, 1, 10, 10), compared_ms = s.compared_ms;
	skill_remember(&s, (at - 1) * TICK_MS, &(struct skill_pending){(at + 9) * TICK_MS, 0, 0, 0}); // after it
	skill_observe(&s, GAP_MS, (at + 5) * TICK_MS, 5000);
	assert_int_equal(s.compared_ms, compared_ms);
	assert_int_equal(s.len, 1);
	skill_drop_pending(&s);
	assert_int_equal(s.len, 0);
	assert_int_equal(s.compared_ms, compared_ms);
}

static void long_horizon_is_checked_all_along(void **state)
{
	(void)state;
	struct skill s;
	skill_reset(&s);
	int64_t horizon = 100; // ticks, more than the ring has room for
	for (int64_t i = 0; i < 1100; i++) {
		int64_t now_ms = i * TICK_MS;
		skill_observe(&s, GAP_MS, now_ms, 100);
		skill_remember(&s, now_ms, &(struct skill_pending){now_ms + horizon * TICK_MS, 101, 102, 102});
		assert_true(s.len <= SKILL_PENDING_MAX);
		if (i > horizon) // at least one for each 7 ticks, none left behind
			assert_true(s.compared_until_ms > now_ms - 8 * TICK_MS);
	}
}

static void numbers_out_of_range_start_the_record_again(void **state)
{
	(void)state;
	struct skill s;
	skill_reset(&s);
	for (int64_t i = 0; i < 10; i++) {
		step(&s, i, i % 2 ? 1.7e308 : -1.7e308, i % 2 ? -1.7e308 : 1.7e308, 0, 1e308, -1e308);
		skill_evaluate(&s, TICK_MS);
		assert_true(isfinite(s.weight + s.load + s.model + s.season + s.last));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(errors_fade_with_a_time_constant_of_a_day),
	        cmocka_unit_test(model_is_off_until_its_trial_is_over),
	        cmocka_unit_test(either_naive_forecast_turns_the_model_off),
	        cmocka_unit_test(small_lead_neither_starts_nor_stops_the_model),
	        cmocka_unit_test(hundredth_of_the_load_makes_no_difference),
	        cmocka_unit_test(between_two_loads_the_load_changes_evenly),
	        cmocka_unit_test(forecasts_for_a_gap_are_dropped),
	        cmocka_unit_test(long_horizon_is_checked_all_along),
	        cmocka_unit_test(numbers_out_of_range_start_the_record_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
