// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a window holds the samples it should, and its aggregate is that of a plain loop over them, however
// long it runs.
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

#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/quantile.h"
#include "policies/engine/window.h"

struct fixture {
	struct policy_window config;
	struct window w;
	struct window_sample samples[POLICY_WINDOW_SAMPLES_MAX];
};

static void start(struct fixture *f, int aggregate, int64_t duration_ms, int32_t min_samples, uint32_t cap)
{
	f->config = (struct policy_window){true, duration_ms, aggregate, min_samples};
	window_init(&f->w, f->samples, cap);
}

static void push(struct fixture *f, int64_t time_ms, double value, int64_t now_ms)
{
	window_evict(&f->w, &f->config, now_ms);
	window_push(&f->w, &f->config, time_ms, value, now_ms);
}

// The next sample, step_ms later.
static void step(struct fixture *f, int64_t *now_ms, int64_t step_ms, double v)
{
	*now_ms += step_ms;
	push(f, *now_ms, v, *now_ms);
}

static double value(const struct fixture *f)
{
	return window_value(&f->w, &f->config);
}

static void aggregates_of_a_known_window(void **state)
{
	static const struct {
		int aggregate;
		double want;
	} rows[] = {
	        {WINDOW_LAST, 4},  {WINDOW_AVG, 4},    {WINDOW_MAX, 9},
	        {WINDOW_MIN, 1},   {WINDOW_P50, 3}, // 1 2 3 3 6 9 4 sorted: 1 2 3 3 4 6 9
	        {WINDOW_P90, 7.2},                  // rank 5.4: 6 + 0.4 * 3
	        {WINDOW_P95, 8.1}, {WINDOW_P99, 8.82},
	};
	static const double samples[] = {3, 1, 2, 3, 6, 9, 4};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct fixture f;
		start(&f, rows[i].aggregate, 120000, 0, 64);
		for (size_t k = 0; k < sizeof samples / sizeof samples[0]; k++)
			push(&f, (int64_t)k * 15000, samples[k], (int64_t)k * 15000);
		if (!(fabs(value(&f) - rows[i].want) < 1e-12))
			fail_msg("aggregate %d: %.17g, must be %.17g", rows[i].aggregate, value(&f), rows[i].want);
	}
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

// A plain loop, in long double.
static double naive(const struct fixture *f, int aggregate)
{
	double all[POLICY_WINDOW_SAMPLES_MAX] = {0};
	long double sum = 0;
	uint32_t n = f->w.len;
	for (uint32_t i = 0; i < n; i++) {
		all[i] = window_at(&f->w, i)->value;
		sum += all[i];
	}
	double last = all[n - 1];
	qsort(all, n, sizeof all[0], by_value);
	static const double q[] = {[WINDOW_P50] = 0.5, [WINDOW_P90] = 0.9, [WINDOW_P95] = 0.95, [WINDOW_P99] = 0.99};
	switch (aggregate) {
	case WINDOW_LAST:
		return last;
	case WINDOW_AVG:
		return (double)(sum / n);
	case WINDOW_MAX:
		return all[n - 1];
	case WINDOW_MIN:
		return all[0];
	default: {
		double rank = q[aggregate] * (n - 1);
		uint32_t lower = (uint32_t)rank, upper = lower + 1 < n ? lower + 1 : n - 1;
		double weight = rank - lower;
		return all[lower] * (1 - weight) + all[upper] * weight;
	}
	}
}

static uint64_t next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s;
}

#define RANDOM_TICKS 4000

static void every_aggregate_equals_a_plain_loop_on_random_traces(void **state)
{
	static const uint32_t caps[] = {2, 3, 64, 512};
	for (int aggregate = 0; aggregate < WINDOW_AGGREGATE__COUNT; aggregate++)
		for (size_t c = 0; c < sizeof caps / sizeof caps[0]; c++) {
			struct fixture f;
			start(&f, aggregate, 40000, 0, caps[c]);
			uint64_t seed = 88172645463325252u + (uint64_t)aggregate * 31 + c;
			int64_t now_ms = 0;
			for (int i = 0; i < RANDOM_TICKS; i++) {
				uint64_t r = next_random(&seed);
				now_ms += (int64_t)(r % 1000) + (r % 997 == 0 ? 50000 : 0);
				// now and then a value that dwarfs all others, or equal ones
				double v = r % 13 == 0 ? 1e17 : r % 7 == 0 ? 0.7 : (double)(int64_t)(r >> 40) / 1024;
				push(&f, now_ms, v, now_ms);
				double got = value(&f), want = naive(&f, aggregate);
				if (!(fabs(got - want) <= 1e-12 * fabs(want)))
					fail_msg("aggregate %d, room %u, tick %d, %u samples: %.17g, must be %.17g",
					         aggregate, caps[c], i, f.w.len, got, want);
			}
		}
}

static void huge_value_leaves_no_trace_in_the_average(void **state)
{
	struct fixture f;
	start(&f, WINDOW_AVG, 120000, 0, 64);
	int64_t t = 0;
	push(&f, t, 1e300, t);
	for (int i = 0; i < 20; i++)
		step(&f, &t, 15000, 0.7);
	assert_true(value(&f) == 0.7); // exactly: no residue of 1e300, no drift
}

static void average_of_equal_values_does_not_drift(void **state)
{
	static const double values[] = {0.1, 0.7, 1.0 / 3, 1e-9, 123456.789};
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		struct fixture f;
		start(&f, WINDOW_AVG, 512 * 1000, 0, 512);
		for (int64_t t = 0; t < 2000; t++) {
			push(&f, t * 1000, values[i], t * 1000);
			// the sum is exact, the division rounds once
			assert_true(fabs(value(&f) - values[i]) <= DBL_EPSILON * values[i]);
		}
	}
}

static void sums_beyond_double_still_have_a_mean(void **state)
{
	struct fixture f;
	start(&f, WINDOW_AVG, 120000, 0, 64);
	int64_t t = 0;
	for (int i = 0; i < 30; i++) {
		step(&f, &t, 15000, i % 2 ? DBL_MAX : DBL_MAX / 2);
		assert_true(isfinite(value(&f)));
	}
	for (int i = 0; i < 20; i++)
		step(&f, &t, 15000, 2.5);
	assert_true(value(&f) == 2.5);
}

static void window_is_open_at_its_old_end(void **state)
{
	struct fixture f;
	start(&f, WINDOW_MAX, 60000, 0, 64);
	push(&f, 0, 9, 0);
	window_evict(&f.w, &f.config, 59999);
	assert_int_equal(f.w.len, 1);
	window_evict(&f.w, &f.config, 60000);
	assert_int_equal(f.w.len, 0);
}

static void single_sample_counts_once(void **state)
{
	struct fixture f;
	start(&f, WINDOW_AVG, 120000, 0, 64);
	push(&f, 1000, 4, 1000);
	push(&f, 1000, 4, 16000); // the same again
	push(&f, 1000, 8, 31000); // the same time, another value: the first stays
	push(&f, 500, 8, 46000);  // older than what is known
	assert_int_equal(f.w.len, 1);
	assert_true(value(&f) == 4);
	push(&f, 60000, 8, 60000);
	assert_int_equal(f.w.len, 2);
	assert_true(value(&f) == 6);
	push(&f, 60000 - 120000, 1, 60000); // already outside
	assert_int_equal(f.w.len, 2);
}

static void clock_ahead_of_this_host_neither_duplicates_nor_blocks(void **state)
{
	struct fixture f;
	start(&f, WINDOW_AVG, 120000, 0, 64);
	push(&f, 3600000, 4, 1000); // an hour ahead: taken as of now
	push(&f, 3600000, 4, 16000);
	assert_int_equal(f.w.len, 1);
	assert_int_equal(window_at(&f.w, 0)->time_ms, 1000);
	push(&f, 31000, 8, 31000); // the clock is right again
	assert_int_equal(f.w.len, 2);
	assert_true(value(&f) == 6);
}

static void full_window_drops_its_oldest_and_says_so(void **state)
{
	struct fixture f;
	start(&f, WINDOW_MIN, 120000, 0, 4);
	for (int i = 0; i < 6; i++)
		push(&f, i * 1000, i, i * 1000);
	assert_int_equal(f.w.len, 4);
	assert_true(value(&f) == 2);
	assert_int_equal(f.w.newest_dropped_ms, 1000);
}

static void window_is_filled_when_its_history_covers_it(void **state)
{
	// interval 15 s, duration 60 s: four samples lie in a full window
	static const struct {
		int aggregate;
		int32_t min_samples;
		int pushed;
		bool filled;
		int64_t left_ms;
	} rows[] = {
	        {WINDOW_AVG, 0, 0, false, 60000}, {WINDOW_AVG, 0, 1, false, 45000},  {WINDOW_AVG, 0, 3, false, 15000},
	        {WINDOW_AVG, 0, 4, true, 0},      {WINDOW_AVG, 0, 40, true, 0},      {WINDOW_AVG, 2, 1, false, 15000},
	        {WINDOW_AVG, 2, 2, true, 0},      {WINDOW_AVG, 1, 1, true, 0},       {WINDOW_LAST, 0, 0, false, 15000},
	        {WINDOW_LAST, 0, 1, true, 0},     {WINDOW_LAST, 3, 2, false, 15000}, {WINDOW_MAX, 0, 3, false, 15000},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct fixture f;
		start(&f, rows[i].aggregate, 60000, rows[i].min_samples, 64);
		int64_t now_ms = 1000000;
		for (int k = 0; k < rows[i].pushed; k++)
			step(&f, &now_ms, 15000, 1);
		int64_t left_ms = -1;
		bool filled = window_is_filled(&f.w, &f.config, 15000, now_ms, &left_ms);
		if (filled != rows[i].filled || left_ms != rows[i].left_ms)
			fail_msg("row %zu: %d, %lld ms left", i, filled, (long long)left_ms);
	}
}

static void window_that_ran_empty_must_fill_again(void **state)
{
	struct fixture f;
	start(&f, WINDOW_AVG, 60000, 0, 64);
	int64_t now_ms = 0, left_ms;
	for (int i = 0; i < 10; i++)
		step(&f, &now_ms, 15000, 1);
	// a gap shorter than the window is bridged
	step(&f, &now_ms, 45000, 1);
	assert_true(window_is_filled(&f.w, &f.config, 15000, now_ms, &left_ms));
	// one as long as the window is not
	step(&f, &now_ms, 60000, 1);
	assert_false(window_is_filled(&f.w, &f.config, 15000, now_ms, &left_ms));
	assert_int_equal(left_ms, 45000);
}

static void room_follows_duration_and_interval(void **state)
{
	static const struct {
		int64_t duration_ms, interval_ms;
		uint32_t want;
	} rows[] = {
	        {120000, 15000, 64},    {600000, 15000, 82}, {3600000, 15000, 482}, {7680000, 15000, 512},
	        {86400000, 15000, 512}, {1000, 15000, 64},   {INT64_MAX, 1, 512},   {60000, 0, 512},
	        {0, 15000, 0},          {-5, 15000, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct policy_window config = {true, rows[i].duration_ms, WINDOW_AVG, 0};
		assert_int_equal(window_samples_needed(&config, rows[i].interval_ms), rows[i].want);
		config.set = false;
		assert_int_equal(window_samples_needed(&config, rows[i].interval_ms), 0);
	}
}

static void quantiles_interpolate_as_prometheus_does(void **state)
{
	static const struct {
		double q;
		double values[6];
		uint32_t n;
		double want;
	} rows[] = {
	        {0.5, {5}, 1, 5},        {0.99, {5}, 1, 5},         {0, {3, 1, 2}, 3, 1},
	        {1, {3, 1, 2}, 3, 3},    {0.5, {2, 1}, 2, 1.5},     {0.5, {4, 1, 3, 2}, 4, 2.5},
	        {0.75, {0, 10}, 2, 7.5}, {0.9, {1, 1, 1, 1}, 4, 1}, {0.25, {-4, -3, -2, -1}, 4, -3.25},
	        {0.5, {-1, 1, 0}, 3, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		double values[6];
		memcpy(values, rows[i].values, sizeof values);
		assert_true(fabs(quantile(rows[i].q, values, rows[i].n) - rows[i].want) < 1e-15);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(aggregates_of_a_known_window),
	        cmocka_unit_test(every_aggregate_equals_a_plain_loop_on_random_traces),
	        cmocka_unit_test(huge_value_leaves_no_trace_in_the_average),
	        cmocka_unit_test(average_of_equal_values_does_not_drift),
	        cmocka_unit_test(sums_beyond_double_still_have_a_mean),
	        cmocka_unit_test(window_is_open_at_its_old_end),
	        cmocka_unit_test(single_sample_counts_once),
	        cmocka_unit_test(clock_ahead_of_this_host_neither_duplicates_nor_blocks),
	        cmocka_unit_test(full_window_drops_its_oldest_and_says_so),
	        cmocka_unit_test(window_is_filled_when_its_history_covers_it),
	        cmocka_unit_test(window_that_ran_empty_must_fill_again),
	        cmocka_unit_test(room_follows_duration_and_interval),
	        cmocka_unit_test(quantiles_interpolate_as_prometheus_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
