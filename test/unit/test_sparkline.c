// SPDX-License-Identifier: Apache-2.0
// What a sparkline shows: as many points as there were ticks at first, an hour of them later, and never a number that
// was not there.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controller/status/sparkline.h"

#define START_MS 1767603600000

static void add(struct sparkline *t, int64_t at_s, double value)
{
	sparkline_add(t, START_MS + at_s * 1000, &value);
}

// The only column, oldest first: "1 2 - 4".
static const char *column(const struct sparkline *t, char *out, size_t size)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < t->n; i++) {
		double v = sparkline_at(t, i, 0);
		if (isnan(v))
			used += (size_t)snprintf(out + used, size - used, "%s-", i ? " " : "");
		else
			used += (size_t)snprintf(out + used, size - used, "%s%g", i ? " " : "", v);
		assert_true(used < size);
	}
	return out;
}

static void rows_of_few_ticks(void **state)
{
	(void)state;
	// Ticks of an interval of 15 s: when, and what was known; NaN: nothing.
	static const struct {
		const char *name;
		struct {
			int64_t at_s;
			double value;
		} ticks[8];
		const char *column;
	} rows[] = {
	        {"one row per tick", {{0, 1}, {15, 2}, {30, 3}}, "1 2 3"},
	        {"a tick that knew nothing", {{0, 1}, {15, NAN}, {30, 3}}, "1 - 3"},
	        {"ticks that were skipped", {{0, 1}, {60, 5}}, "1 - - - 5"},
	        {"a tick that is late, and the next in time", {{0, 1}, {21, 2}, {30, 3}, {45, 4}}, "1 2 3 4"},
	        {"a tick beside the interval: the later one counts", {{0, 1}, {4, 2}, {19, 3}}, "2 3"},
	        {"where it is known", {{0, 1}, {4, NAN}, {19, 3}}, "1 3"},
	        {"the clock was set back", {{0, 1}, {15, 2}, {-3600, 3}, {-3585, 4}}, "3 4"},
	        {"two hours without a tick", {{0, 1}, {15, 2}, {7200, 3}, {7215, 4}}, "3 4"},
	        {"a day without a tick", {{0, 1}, {15, 2}, {86400, 3}}, "3"},
	        {"what no cell holds is not known", {{0, 1}, {15, 1e300}, {30, -INFINITY}, {45, 2}}, "1 - - 2"},
	};
	for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
		struct sparkline *t = sparkline_new(15000, 1);
		char got[256];
		for (size_t i = 0; i < 8 && (i == 0 || rows[r].ticks[i].at_s != 0); i++)
			add(t, rows[r].ticks[i].at_s, rows[r].ticks[i].value);
		if (strcmp(column(t, got, sizeof got), rows[r].column) != 0)
			fail_msg("%s: got \"%s\", want \"%s\"", rows[r].name, got, rows[r].column);
		assert_int_equal(sparkline_step_ms(t), 15000);
		free(t);
	}
}

// The three digits of a value are those that a person would write, so small numbers of replicas are exact.
static void values_have_three_digits(void **state)
{
	(void)state;
	static const struct {
		double value, kept;
	} rows[] = {
	        {0, 0},       {1, 1},           {999, 999},         {-7, -7},         {1000000, 1e6},
	        {1234, 1230}, {999.6, 1000},    {0.125, 0.125},     {12.34567, 12.3}, {-0.0123, -0.0123},
	        {99.96, 100}, {1.0 / 3, 0.333}, {9.99e17, 9.99e17}, {1e-14, 1e-14},   {1.5e-16, 2e-16},
	        {1e-30, 0},   {9.996e17, NAN},  {-1e18, NAN},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct sparkline *t = sparkline_new(15000, 1);
		add(t, 0, rows[i].value);
		double got = sparkline_at(t, 0, 0), want = rows[i].kept;
		if (isnan(got) != isnan(want) || fabs(got - want) > fabs(want) * 1e-15)
			fail_msg("%.17g is kept as %.17g, not %.17g", rows[i].value, got, want);
		free(t);
	}
	for (int n = 0; n < 1000; n++) {
		struct sparkline *t = sparkline_new(15000, 1);
		add(t, 0, n);
		assert_true(sparkline_at(t, 0, 0) == n);
		free(t);
	}
}

static void nothing_was_known_of_any_column(void **state)
{
	(void)state;
	struct sparkline *t = sparkline_new(15000, 2);
	const double values[] = {1, 2};
	assert_int_equal(t->n, 0);
	assert_int_equal(t->end_ms, 0);
	sparkline_add(t, START_MS, NULL);
	sparkline_add(t, START_MS + 15000, values);
	sparkline_add(t, START_MS + 16000, NULL); // the same tick failed afterwards
	assert_int_equal(t->n, 2);
	assert_true(isnan(sparkline_at(t, 0, 0)) && isnan(sparkline_at(t, 0, 1)));
	assert_true(sparkline_at(t, 1, 0) == 1 && sparkline_at(t, 1, 1) == 2);
	assert_int_equal(t->end_ms, START_MS + 16000);
	free(t);
}

static void neighbours_become_one_when_it_is_full(void **state)
{
	(void)state;
	struct sparkline *t = sparkline_new(15000, 1);
	for (int i = 0; i < SPARKLINE_POINTS_MAX; i++)
		add(t, 15 * i, i % 4 == 3 ? (double)NAN : (double)i);
	assert_int_equal(t->n, SPARKLINE_POINTS_MAX);
	assert_int_equal(sparkline_step_ms(t), 15000);
	add(t, 15 * 60, 60);
	assert_int_equal(t->n, SPARKLINE_POINTS_MAX / 2 + 1);
	assert_int_equal(sparkline_step_ms(t), 30000);
	for (size_t i = 0; i < SPARKLINE_POINTS_MAX / 2; i++) // the later of the two, or the one that is known
		assert_true(sparkline_at(t, i, 0) == (double)(i % 2 ? 2 * i : 2 * i + 1));
	assert_true(sparkline_at(t, 30, 0) == 60);
	add(t, 15 * 61, 61);
	assert_int_equal(t->n, SPARKLINE_POINTS_MAX / 2 + 1);
	assert_true(sparkline_at(t, 30, 0) == 61);
	add(t, 15 * 62, 62);
	assert_int_equal(t->n, SPARKLINE_POINTS_MAX / 2 + 2);
	add(t, 0, 1); // another time: step by step again
	add(t, 15, 2);
	assert_int_equal(t->n, 2);
	assert_int_equal(sparkline_step_ms(t), 15000);
	free(t);
}

// Whatever the interval: the last hour at least (or all there was), in at most SPARKLINE_POINTS_MAX rows, each where
// its time is.
static void old_sparkline_has_the_last_hour(void **state)
{
	(void)state;
	static const int64_t intervals_ms[] = {200, 1000, 7000, 15000, 30000, 45000, 60000, 61000, 120000, 3600000};
	for (size_t k = 0; k < sizeof intervals_ms / sizeof intervals_ms[0]; k++) {
		int64_t interval_ms = intervals_ms[k], now_ms = START_MS;
		struct sparkline *t = sparkline_new(interval_ms, 1);
		for (int i = 0; i < 40000; i++, now_ms += interval_ms) {
			double value = i % 1000;
			sparkline_add(t, now_ms, &value);
			if (i < 200 || i > 39000) {
				size_t n = t->n;
				int64_t step_ms = sparkline_step_ms(t), per_row = step_ms / interval_ms;
				assert_in_range(n, i < SPARKLINE_POINTS_MAX ? (uintmax_t)i / 2 + 1 : 30,
				                SPARKLINE_POINTS_MAX);
				assert_true(sparkline_at(t, n - 1, 0) == i % 1000);
				// Full rows end at multiples; each holds the newest of its ticks.
				for (size_t j = 0; j + 1 < n; j++) {
					int64_t want = (i / per_row - (int64_t)(n - 1 - j)) * per_row + per_row - 1;
					assert_true(sparkline_at(t, j, 0) == (double)(want % 1000));
				}
			}
		}
		int64_t step_ms = sparkline_step_ms(t);
		assert_true(step_ms >= SPARKLINE_STEP_MS && step_ms < 2 * SPARKLINE_STEP_MS + interval_ms);
		assert_int_equal(t->n, SPARKLINE_POINTS_MAX);
		free(t);
	}
}

static void hour_without_ticks_is_an_hour_of_unknowns(void **state)
{
	(void)state;
	struct sparkline *t = sparkline_new(1000, 1);
	size_t known = 0;
	for (int i = 0; i < 100; i++)
		add(t, i, 1);
	add(t, 100 + 3000, 2);
	for (size_t i = 0; i < t->n; i++)
		known += isnan(sparkline_at(t, i, 0)) ? 0 : 1;
	assert_true(sparkline_step_ms(t) >= 60000 - 1000);
	assert_in_range(known, 2, 4); // the 100 s at the beginning, and the end
	assert_true(sparkline_at(t, t->n - 1, 0) == 2);
	free(t);
}

static void no_trend_is_freed_too(void **state)
{
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(rows_of_few_ticks),
	        cmocka_unit_test(nothing_was_known_of_any_column),
	        cmocka_unit_test(neighbours_become_one_when_it_is_full),
	        cmocka_unit_test(values_have_three_digits),
	        cmocka_unit_test(old_sparkline_has_the_last_hour),
	        cmocka_unit_test(hour_without_ticks_is_an_hour_of_unknowns),
	        cmocka_unit_test(no_trend_is_freed_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
