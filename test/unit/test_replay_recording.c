// SPDX-License-Identifier: Apache-2.0
// Recordings: what a CSV file must look like, which errors name which line, and what becomes a gap.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "replay/recording.h"

static void bad_files_are_refused_with_their_line(void **state)
{
	(void)state;
	static const struct {
		const char *text, *message;
	} rows[] = {
	        {"", "f.csv:1: the file is empty"},
	        {"0,1\n15,2\n", "f.csv:1: expected a header such as time,demand,replicas, got numbers"},
	        {"demand,replicas\n1,2\n", "f.csv:1: expected a column time, timestamp or t_s"},
	        {"time,timestamp,demand\n", "f.csv:1: two columns hold the time"},
	        {"time,demand,demand\n", "f.csv:1: column \"demand\" is named twice"},
	        {"time,,demand\n", "f.csv:1: expected a column name of 1 to 511 bytes, got 0 bytes"},
	        {"time,demand\n", "f.csv:1: 0 rows of data: expected at least two"},
	        {"time,demand\n0,1\n", "f.csv:2: 1 row of data: expected at least two"},
	        {"time,demand\n0,1\n15\n", "f.csv:3: 1 cells, the header has 2 columns"},
	        {"time,demand\n0,1\n15,1,2\n", "f.csv:3: more cells than the header has columns (2)"},
	        {"time,demand\n0,1\n\n15,1\n", "f.csv:3: the line is empty"},
	        {"time,demand\n0,1\n15,1\n15,2\n", "f.csv:4: the time repeats that of the previous row"},
	        {"time,demand\n0,1\n30,1\n15,2\n", "f.csv:4: the time goes back by 15.000 s"},
	        {"time,demand\nnoon,1\n",
	         "f.csv:2: expected a time in seconds, or as 2026-01-05T09:00:00Z, got \"noon\""},
	        {"time,demand\n-1,1\n", "f.csv:2: expected a time in seconds"},
	        {"time,demand\n0,+Inf\n",
	         "f.csv:2: demand: expected a finite number, or nothing for missing data, got \"+Inf\""},
	        {"time,demand\n0,much\n", "f.csv:2: demand: expected a finite number"},
	        {"time,demand\n0,1\n40000000,1\n", "f.csv:3: 463.0 days after the first row, the ceiling is 400 days"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct recording r;
		struct err e;
		assert_int_equal(recording_parse(rows[i].text, strlen(rows[i].text), "f.csv", &r, &e), -1);
		if (strncmp(e.msg, rows[i].message, strlen(rows[i].message)) != 0)
			fail_msg("got \"%s\", want \"%s\"", e.msg, rows[i].message);
		recording_done(&r);
	}
}

static void rows_above_the_ceiling_are_refused(void **state)
{
	(void)state;
	size_t cap = (size_t)(RECORDING_ROWS_MAX + 2) * 12, len;
	char *text = malloc(cap);
	assert_non_null(text);
	struct recording r;
	struct err e;
	len = (size_t)snprintf(text, cap, "t_s,demand\n");
	for (int i = 0; i < RECORDING_ROWS_MAX; i++)
		len += (size_t)snprintf(text + len, cap - len, "%d,1\n", i);
	assert_int_equal(recording_parse(text, len, "f.csv", &r, &e), 0);
	assert_int_equal(r.n_rows, RECORDING_ROWS_MAX);
	recording_done(&r);
	len += (size_t)snprintf(text + len, cap - len, "%d,1\n", RECORDING_ROWS_MAX);
	assert_int_equal(recording_parse(text, len, "f.csv", &r, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_string_equal(e.msg,
	                    "f.csv:1: 1000001 rows, the ceiling is 1000000: use a longer step or a shorter period");
	recording_done(&r);
	free(text);
}

static void parse(const char *text, struct recording *ret)
{
	struct err e;
	if (recording_parse(text, strlen(text), "f.csv", ret, &e) < 0)
		fail_msg("%s", e.msg);
}

static void columns_times_and_missing_values_are_read(void **state)
{
	(void)state;
	struct recording r;
	parse("\"Time\", demand ,\"replicas\"\r\n2026-01-05T09:00:00Z,1.5,2\r\n1767603615,,NaN\r\n1767603630.5,2,3",
	      &r);
	assert_int_equal(r.n_rows, 3);
	assert_int_equal(r.n_columns, 2);
	assert_int_equal(recording_column(&r, "demand"), 0);
	assert_int_equal(recording_column(&r, "replicas"), 1);
	assert_int_equal(recording_column(&r, "Time"), -1);
	assert_int_equal(r.time_ms[0], INT64_C(1767603600000));
	assert_int_equal(r.time_ms[2], INT64_C(1767603630500));
	assert_true(recording_value(&r, 0, 0) == 1.5);
	assert_true(isnan(recording_value(&r, 1, 0)) && isnan(recording_value(&r, 1, 1)));
	int column;
	struct err e;
	assert_int_equal(recording_need_column(&r, "demnad", "f.csv", &column, &e), -1);
	assert_string_equal(e.msg, "f.csv:1: no column \"demnad\", did you mean \"demand\"?");
	recording_done(&r);
}

static void bad_openmetrics_is_refused_with_its_line(void **state)
{
	(void)state;
	static const struct {
		const char *text, *message;
	} rows[] = {
	        {"# EOF\n", "f.om:1: the file has no samples"},
	        {"# TYPE a gauge\na 1 0\na 1 15\n",
	         "f.om:3: expected \"# EOF\" as the last line: the file is incomplete"},
	        {"a 1 0\na 1 15\n# EOF\na 1 30\n# EOF\n", "f.om:4: expected nothing after \"# EOF\""},
	        {"a 1\n# EOF\n", "f.om:1: the sample has no timestamp"},
	        {"a 1 # {id=\"x\"} 1 2\n# EOF\n", "f.om:1: the sample has no timestamp"},
	        {"a 1 0 15\n# EOF\n", "f.om:1: expected the end of the line after the time, got \"15\""},
	        {"a +Inf 0\n# EOF\n", "f.om:1: expected a finite number, or NaN for missing data, got \"+Inf\""},
	        {"a much 0\n# EOF\n", "f.om:1: expected a finite number"},
	        {"a 1 -1\n# EOF\n", "f.om:1: expected a time in seconds since 1970, got \"-1\""},
	        {"a{pod=x} 1 0\n# EOF\n", "f.om:1: expected labels such as"},
	        {"a{pod=\"x} 1 0\n# EOF\n", "f.om:1: expected labels such as"},
	        {"a{pod=\"x\" b=\"y\"} 1 0\n# EOF\n", "f.om:1: expected a comma or } after a label"},
	        {"a 1 0\n\na 1 15\n# EOF\n", "f.om:2: expected a sample such as"},
	        {"a 1 15\na 1 15\n# EOF\n", "f.om:2: the series already has a sample at this time"},
	        {"a 1 15\na 1 0\n# EOF\n", "f.om:2: the time of the series goes back by 15.000 s"},
	        {"a 1 0\nb 1 15\n# EOF\n", "f.om:3: no series with two samples"},
	        {"a 1 0\na 1 40000000\n# EOF\n", "f.om:3: 463.0 days after the first row"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct recording r;
		struct err e;
		assert_int_equal(recording_parse(rows[i].text, strlen(rows[i].text), "f.om", &r, &e), -1);
		if (strncmp(e.msg, rows[i].message, strlen(rows[i].message)) != 0)
			fail_msg("got \"%s\", want \"%s\"", e.msg, rows[i].message);
		recording_done(&r);
	}
}

static void openmetrics_series_are_columns_with_sorted_labels(void **state)
{
	(void)state;
	struct recording r;
	struct err e;
	int column;
	parse("# TYPE queue gauge\n"
	      "queue{pod=\"b\",job=\"a \\\"x\"} 1 0\nqueue{job=\"a \\\"x\",pod=\"b\"} 2 15 # {id=\"x\"} 1\n"
	      "queue{pod=\"c\",} 3 15\ndemand 4.5 0\ndemand NaN 15\n# EOF\n",
	      &r);
	assert_int_equal(r.n_rows, 2);
	assert_int_equal(r.n_columns, 3);
	assert_string_equal(r.names[0], "queue{job=\"a \\\"x\",pod=\"b\"}");
	assert_string_equal(r.names[1], "queue{pod=\"c\"}");
	assert_true(recording_value(&r, 1, 0) == 2);
	assert_true(isnan(recording_value(&r, 0, 1)) && recording_value(&r, 1, 1) == 3);
	assert_true(recording_value(&r, 0, 2) == 4.5 && isnan(recording_value(&r, 1, 2)));
	assert_int_equal(recording_need_column(&r, "demand", "f.om", &column, &e), 0);
	assert_int_equal(recording_need_column(&r, "queue{pod=\"c\"}", "f.om", &column, &e), 0);
	assert_int_equal(column, 1);
	assert_int_equal(recording_need_column(&r, "queue", "f.om", &column, &e), -1);
	assert_string_equal(e.msg, "f.om: several columns \"queue\": name one with its labels, such as "
	                           "queue{job=\"a \\\"x\",pod=\"b\"} or queue{pod=\"c\"}");
	recording_done(&r);
	// The only series of a metric is found by the name of the metric.
	parse("queue{pod=\"c\"} 1 0\nqueue{pod=\"c\"} 3 15\n# EOF", &r);
	assert_int_equal(recording_column(&r, "queue"), 0);
	assert_int_equal(recording_column(&r, "queu"), -1);
	recording_done(&r);
}

static void openmetrics_series_with_times_of_their_own_share_a_grid(void **state)
{
	(void)state;
	struct recording r;
	// a every 10 s from 0 on, nothing from 30 to 80; b every 10 s from 4 on.
	parse("a 1 0\na 2 10\na 3 20\na 9 90\na 10 100\nb 1 4\nb 2 14\nb 3 24\nb 4 34\nb 5 44\nb 6 54\n# EOF\n", &r);
	assert_int_equal(r.step_ms, 10000);
	assert_int_equal(r.n_rows, 11);
	static const double a[] = {1, 2, 3, 3, 3, NAN, NAN, NAN, NAN, 9, 10},
	                    b[] = {NAN, 1, 2, 3, 4, 5, 6, 6, NAN, NAN, NAN};
	for (size_t i = 0; i < r.n_rows; i++) {
		assert_int_equal(r.time_ms[i], 10000 * i);
		double got_a = recording_value(&r, i, 0), got_b = recording_value(&r, i, 1);
		if ((got_a != a[i] && !(isnan(got_a) && isnan(a[i]))) ||
		    (got_b != b[i] && !(isnan(got_b) && isnan(b[i]))))
			fail_msg("row %zu: %g and %g", i, got_a, got_b);
	}
	recording_done(&r);
}

static void demand_of(const char *text, struct recording *r, struct demand *ret)
{
	struct err e;
	parse(text, r);
	int column = recording_column(r, "demand");
	if (demand_from_recording(r, column, recording_column(r, "requests"), 1, "f.csv", ret, &e) < 0)
		fail_msg("%s", e.msg);
}

static void missing_rows_and_values_are_gaps_and_never_numbers(void **state)
{
	(void)state;
	struct recording r;
	struct demand d;
	// 10 s steps; nothing at 20, no row for 50 to 90.
	demand_of("time,demand\n0,1\n10,1\n20,NaN\n30,1\n40,1\n100,1\n110,1\n120,1\n130,1\n", &r, &d);
	assert_int_equal(d.step_ms, 1000);
	assert_int_equal(d.n, 140);
	for (size_t i = 0; i < d.n; i++) {
		bool gap = (i >= 20 && i < 30) || (i >= 50 && i < 100);
		if (isnan(d.work[i]) != gap || (!gap && fabs(d.work[i] - 1) > 1e-9))
			fail_msg("second %zu: %g", i, d.work[i]);
	}
	assert_int_equal(d.n_gaps, 2);
	assert_int_equal(d.gaps[0].from_ms, 20000);
	assert_int_equal(d.gaps[1].to_ms, 100000);
	assert_int_equal(d.known_ms, 80000);
	assert_true(fabs(d.mean - 1) < 1e-9);
	demand_done(&d);
	recording_done(&r);
}

static void coarse_rows_are_joined_by_lines_but_not_over_gaps(void **state)
{
	(void)state;
	struct recording r;
	struct demand d;
	demand_of("time,demand\n0,0\n600,6\n1200,6\n3000,6\n3600,0\n", &r, &d);
	assert_true(d.interpolated);
	assert_int_equal(d.n, 3600);
	assert_true(fabs(d.work[300] - 3.005) < 1e-6);
	assert_true(fabs(d.work[900] - 6) < 1e-9);
	assert_true(isnan(d.work[1200]) && isnan(d.work[2999]));
	assert_true(fabs(d.work[3300] - 2.995) < 1e-6);
	assert_int_equal(d.n_gaps, 1);
	demand_done(&d);
	recording_done(&r);
}

static void demand_that_makes_no_sense_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text, *message;
	} rows[] = {
	        {"time,demand\n0,1\n15,-1\n", "f.csv:3: demand: expected 0 or more, got -1"},
	        {"time,demand\n0,1\n15,1e12\n", "f.csv:3: demand: 1e+12 is more than 1e+09 replicas can do"},
	        {"time,demand\n0,\n15,NaN\n", "f.csv: column demand has no data"},
	        {"time,demand\n0,1\n0.1,1\n", "f.csv: covers 0.100 s, less than a step of 1 s"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct recording r;
		struct demand d;
		struct err e;
		parse(rows[i].text, &r);
		assert_int_equal(demand_from_recording(&r, 0, -1, 1, "f.csv", &d, &e), -1);
		assert_string_equal(e.msg, rows[i].message);
		demand_done(&d);
		recording_done(&r);
	}
}

static void steps_grow_with_the_span(void **state)
{
	(void)state;
	static const struct {
		long span_s;
		int64_t step_ms;
	} rows[] = {{86400, 1000}, {86400 + 3600, 5000}, {86400L * 101, 15000}};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[256];
		struct recording r;
		struct demand d;
		snprintf(text, sizeof text, "time,demand\n0,1\n%ld,1\n", rows[i].span_s);
		demand_of(text, &r, &d);
		assert_int_equal(d.step_ms, rows[i].step_ms);
		demand_done(&d);
		recording_done(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(bad_files_are_refused_with_their_line),
	        cmocka_unit_test(rows_above_the_ceiling_are_refused),
	        cmocka_unit_test(columns_times_and_missing_values_are_read),
	        cmocka_unit_test(bad_openmetrics_is_refused_with_its_line),
	        cmocka_unit_test(openmetrics_series_are_columns_with_sorted_labels),
	        cmocka_unit_test(openmetrics_series_with_times_of_their_own_share_a_grid),
	        cmocka_unit_test(missing_rows_and_values_are_gaps_and_never_numbers),
	        cmocka_unit_test(coarse_rows_are_joined_by_lines_but_not_over_gaps),
	        cmocka_unit_test(demand_that_makes_no_sense_is_refused),
	        cmocka_unit_test(steps_grow_with_the_span),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
