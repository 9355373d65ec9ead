// SPDX-License-Identifier: Apache-2.0
// A track keeps the extremes of a value in bounded memory; the worst ten minutes are where most requests are late, else
// where the replicas change most.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "replay/backtest_history.h"
#include "replay/recording.h"
#include "replay/world.h"

#define MINUTE_MS INT64_C(60000)

static size_t points(const struct track *t, double **ret_x, double **ret_y)
{
	*ret_x = calloc(TRACK_POINTS_MAX, sizeof **ret_x);
	*ret_y = calloc(TRACK_POINTS_MAX, sizeof **ret_y);
	assert_non_null(*ret_x);
	assert_non_null(*ret_y);
	return track_points(t, *ret_x, *ret_y);
}

static void track_keeps_extremes_and_the_last_value(void **state)
{
	(void)state;
	struct track t;
	double *x, *y;
	track_init(&t, 0, 1000000); // a second per span
	for (int i = 0; i < 1000000; i++)
		track_add(&t, i, i == 500100 ? 90 : i == 500200 ? -90 : i < 500500 ? 1 : 2);
	assert_int_equal(points(&t, &x, &y), 5);
	static const double want_x[] = {0, 500000, 500000, 500000, 1000000}, want_y[] = {1, 90, -90, 2, 2};
	for (int i = 0; i < 5; i++) {
		assert_true(x[i] == want_x[i]);
		assert_true(y[i] == want_y[i]);
	}
	free(x);
	free(y);
}

static void track_has_bounded_points_in_order(void **state)
{
	(void)state;
	struct track t;
	double *x, *y;
	track_init(&t, 1767225600000, 1767225600000 + 30 * 1440 * MINUTE_MS);
	for (int i = 0; i < 172800; i++)
		track_add(&t, 1767225600000 + i * INT64_C(15000), i % 7 ? sin(i) : (double)NAN);
	size_t n = points(&t, &x, &y);
	assert_true(n > 2 * TRACK_SPANS && n <= TRACK_POINTS_MAX);
	for (size_t i = 1; i < n; i++)
		assert_true(x[i] >= x[i - 1]);
	assert_true(x[n - 1] == (double)t.to_ms);
	free(x);
	free(y);
}

static void track_shows_gaps_and_holds_values_over_missing_steps(void **state)
{
	(void)state;
	struct track t;
	double *x, *y;
	track_init(&t, 0, 1000);
	track_add(&t, 0, 5);
	track_add(&t, 100, NAN);
	track_add(&t, 101, NAN);
	track_add(&t, 200, 6); // nothing is added between
	track_add(&t, 900, 7);
	track_add(&t, 5000, 8); // outside
	size_t n = points(&t, &x, &y);
	assert_int_equal(n, 5);
	static const double want[] = {5, NAN, 6, 7, 7};
	for (size_t i = 0; i < n; i++)
		assert_true(isnan(want[i]) ? isnan(y[i]) : y[i] == want[i]);
	free(x);
	free(y);
}

static void track_without_values_has_no_points(void **state)
{
	(void)state;
	struct track t;
	double *x, *y;
	track_init(&t, 0, 10);
	track_add(&t, 3, NAN);
	assert_int_equal(points(&t, &x, &y), 0);
	free(x);
	free(y);
}

// ---- the worst ten minutes ----

static struct backtest_history *history_of(int64_t minutes)
{
	struct backtest_history *h = malloc(sizeof *h);
	int64_t times[] = {0, minutes * MINUTE_MS};
	const struct recording r = {.n_rows = 2, .time_ms = times, .step_ms = MINUTE_MS};
	assert_non_null(h);
	backtest_history_init(h, &r);
	return h;
}

static void add(struct backtest_history *h, int64_t time_ms, int32_t replicas, double late)
{
	const struct loop_step s = {.time_ms = time_ms, .replicas = replicas, .late = late};
	backtest_history_add(h, 0, BACKTEST_POLICY, &s);
}

static void expect_worst(struct backtest_history *h, enum history_worst why, int64_t from, int64_t to)
{
	int64_t from_ms, to_ms;
	assert_int_equal(backtest_history_worst(h, &from_ms, &to_ms), why);
	assert_int_equal(from_ms, from * MINUTE_MS);
	assert_int_equal(to_ms, to * MINUTE_MS);
	free(h);
}

static void worst_window_has_most_late_requests(void **state)
{
	(void)state;
	struct backtest_history *h = history_of(100);
	for (int i = 0; i < 100 * 60; i++) {
		int minute = i / 60;
		add(h, i * INT64_C(1000), minute == 90 ? 50 : 5,
		    minute == 20                   ? 2
		    : minute == 55 || minute == 64 ? 1.5
		                                   : 0);
	}
	expect_worst(h, HISTORY_LATEST, 55, 65);
}

static void worst_window_without_late_requests_has_the_largest_change(void **state)
{
	(void)state;
	struct backtest_history *h = history_of(100);
	for (int i = 0; i < 100; i++)
		add(h, i * MINUTE_MS, i < 30 ? 4 : i < 40 ? 6 : i < 49 ? 12 : 17, 0);
	expect_worst(h, HISTORY_CHANGE, 40, 50);
}

static void change_across_missing_rows_counts(void **state)
{
	(void)state;
	struct backtest_history *h = history_of(1000);
	add(h, 0, 4, 0);
	add(h, 3 * MINUTE_MS, 6, 0);
	add(h, 900 * MINUTE_MS, 60, 0);
	expect_worst(h, HISTORY_CHANGE, 891, 901);
}

static void window_does_not_leave_the_recording(void **state)
{
	(void)state;
	struct backtest_history *h = history_of(5);
	add(h, 0, 4, 1);
	expect_worst(h, HISTORY_LATEST, 0, 6); // the last row holds for a minute
	h = history_of(30);
	for (int i = 0; i <= 30; i++)
		add(h, i * MINUTE_MS, 4, i == 2 || i == 30 ? 1 : 0);
	expect_worst(h, HISTORY_LATEST, 0, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(track_keeps_extremes_and_the_last_value),
	        cmocka_unit_test(track_has_bounded_points_in_order),
	        cmocka_unit_test(track_shows_gaps_and_holds_values_over_missing_steps),
	        cmocka_unit_test(track_without_values_has_no_points),
	        cmocka_unit_test(worst_window_has_most_late_requests),
	        cmocka_unit_test(worst_window_without_late_requests_has_the_largest_change),
	        cmocka_unit_test(change_across_missing_rows_counts),
	        cmocka_unit_test(window_does_not_leave_the_recording),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
