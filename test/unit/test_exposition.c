// SPDX-License-Identifier: Apache-2.0
// Goal of this test: what we expose is what a Prometheus parser reads back, whatever the label values hold.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/exposition.h"

static int setup(void **state)
{
	static struct buf b;
	buf_init(&b, 10000);
	*state = &b;
	return 0;
}

static int teardown(void **state)
{
	buf_done(*state);
	return 0;
}

static void family_has_help_then_type(void **state)
{
	struct buf *b = *state;
	exposition_family(b, "gpuscale_ticks_total", "Ticks\nwith \\ and \"quotes\".", METRIC_COUNTER);
	exposition_family(b, "a:b", "", METRIC_GAUGE);
	assert_string_equal(buf_str(b), "# HELP gpuscale_ticks_total Ticks\\nwith \\\\ and \"quotes\".\n"
	                                "# TYPE gpuscale_ticks_total counter\n"
	                                "# HELP a:b \n# TYPE a:b gauge\n");
	assert_string_equal(metric_type_name(METRIC_HISTOGRAM), "histogram");
	assert_string_equal(metric_type_name(METRIC_UNTYPED), "untyped");
}

static void samples_with_and_without_labels(void **state)
{
	struct buf *b = *state;
	const struct exposition_label labels[] = {{"gpu", "0"}, {"modelName", "NVIDIA H200"}};
	exposition_sample_i64(b, "up", NULL, 0, 1);
	exposition_sample_i64(b, "x_total", labels, 1, INT64_MIN);
	exposition_sample_f64(b, "DCGM_FI_DEV_GPU_UTIL", labels, 2, 0.7);
	exposition_sample_f64(b, "x", NULL, 0, NAN);
	exposition_sample_f64(b, "x", NULL, 0, INFINITY);
	exposition_sample_f64(b, "x", NULL, 0, -INFINITY);
	exposition_sample_f64(b, "x", NULL, 0, 1e21);
	assert_string_equal(buf_str(b), "up 1\n"
	                                "x_total{gpu=\"0\"} -9223372036854775808\n"
	                                "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",modelName=\"NVIDIA H200\"} 0.7\n"
	                                "x NaN\nx +Inf\nx -Inf\nx 1e+21\n");
	assert_false(b->failed);
}

static void label_values_are_escaped_and_valid_utf8(void **state)
{
	static const struct {
		const char *value, *escaped;
	} rows[] = {
	        {"", ""},
	        {"plain", "plain"},
	        {"a\"b", "a\\\"b"},
	        {"a\\b", "a\\\\b"},
	        {"a\nb", "a\\nb"},
	        {"\\n", "\\\\n"},
	        {"\"\"", "\\\"\\\""},
	        {"tab\tcr\r", "tab\tcr\\\\r"},
	        {"\x1b[31m\x7f",
	         "\\\\x1b[31m\\\\x7f"}, // the format has no escape for these: the value is what can be seen
	        {"\xc2\x9b\xe2\x80\xae=\xef\xbb\xbf", "\\\\u009b\\\\u202e=\\\\ufeff"},
	        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
	        {"a\xff"
	         "b",
	         "a\xef\xbf\xbd"
	         "b"},
	        {"\xc3", "\xef\xbf\xbd"},
	        {"\xc0\x80", "\xef\xbf\xbd\xef\xbf\xbd"},                 // overlong
	        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, // surrogate
	        {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
	};
	struct buf *b = *state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		buf_reset(b);
		exposition_label_value(b, rows[i].value);
		if (strcmp(buf_str(b), rows[i].escaped) != 0)
			fail_msg("row %zu: %s", i, buf_str(b));
	}
}

static void names_that_are_none_fail_the_buffer(void **state)
{
	static const struct {
		const char *name;
		int metric, label;
	} rows[] = {
	        {"up", 1, 1},  {"_x9", 1, 1},      {"a:b", 1, 0}, {":", 1, 0},   {"A", 1, 1},
	        {"", 0, 0},    {"9a", 0, 0},       {"a-b", 0, 0}, {"a b", 0, 0}, {"a\n", 0, 0},
	        {"a.b", 0, 0}, {"\xc3\xa9", 0, 0}, {"a{", 0, 0},  {"a\"", 0, 0},
	};
	struct buf *b = *state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct exposition_label label = {rows[i].name, "v"};
		assert_int_equal(exposition_is_metric_name(rows[i].name), rows[i].metric);
		assert_int_equal(exposition_is_label_name(rows[i].name), rows[i].label);
		buf_reset(b);
		exposition_family(b, rows[i].name, "h", METRIC_GAUGE);
		assert_int_equal(b->failed, !rows[i].metric);
		buf_reset(b);
		exposition_sample_i64(b, rows[i].name, NULL, 0, 1);
		assert_int_equal(b->failed, !rows[i].metric);
		buf_reset(b);
		exposition_sample_f64(b, "x", &label, 1, 1);
		assert_int_equal(b->failed, !rows[i].label);
	}
}

static void histogram_buckets_are_inclusive_and_cumulative(void **state)
{
	struct buf *b = *state;
	struct exposition_histogram h = {.n = 3, .upper = {0.1, 1, 10}};
	static const double values[] = {0.1, 0.05, 0.100001, 1, 10, 11, -5, INFINITY};
	for (size_t i = 0; i < 7; i++)
		exposition_histogram_observe(&h, values[i]);
	exposition_histogram_observe(&h, NAN); // not counted
	const struct exposition_label label = {"verb", "patch"};
	exposition_sample_histogram(b, "d_seconds", &label, 1, &h);
	assert_string_equal(buf_str(b), "d_seconds_bucket{verb=\"patch\",le=\"0.1\"} 3\n"
	                                "d_seconds_bucket{verb=\"patch\",le=\"1\"} 5\n"
	                                "d_seconds_bucket{verb=\"patch\",le=\"10\"} 6\n"
	                                "d_seconds_bucket{verb=\"patch\",le=\"+Inf\"} 7\n"
	                                "d_seconds_sum{verb=\"patch\"} 17.250001\n"
	                                "d_seconds_count{verb=\"patch\"} 7\n");
	buf_reset(b);
	struct exposition_histogram none = {.n = 0};
	exposition_histogram_observe(&none, values[7]);
	exposition_sample_histogram(b, "e", NULL, 0, &none);
	assert_string_equal(buf_str(b), "e_bucket{le=\"+Inf\"} 1\ne_sum +Inf\ne_count 1\n");
}

static void every_bucket_can_be_used(void **state)
{
	struct buf *b = *state;
	struct exposition_histogram h = {.n = EXPOSITION_BUCKETS_MAX};
	for (size_t i = 0; i < EXPOSITION_BUCKETS_MAX; i++)
		h.upper[i] = (double)i;
	for (size_t i = 0; i <= EXPOSITION_BUCKETS_MAX; i++)
		exposition_histogram_observe(&h, (double)i);
	for (size_t i = 0; i <= EXPOSITION_BUCKETS_MAX; i++)
		assert_int_equal(h.count[i], 1);
	exposition_sample_histogram(b, "x", NULL, 0, &h);
	assert_non_null(strstr(buf_str(b), "x_bucket{le=\"15\"} 16\nx_bucket{le=\"+Inf\"} 17\n"));
}

static void full_buffer_is_reported_at_the_end(void **state)
{
	struct buf small;
	buf_init(&small, 20);
	exposition_sample_i64(&small, "gpuscale_decisions_total", NULL, 0, 1);
	exposition_sample_i64(&small, "x", NULL, 0, 1);
	assert_true(small.failed);
	buf_done(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(family_has_help_then_type, setup, teardown),
	        cmocka_unit_test_setup_teardown(samples_with_and_without_labels, setup, teardown),
	        cmocka_unit_test_setup_teardown(label_values_are_escaped_and_valid_utf8, setup, teardown),
	        cmocka_unit_test_setup_teardown(names_that_are_none_fail_the_buffer, setup, teardown),
	        cmocka_unit_test_setup_teardown(histogram_buckets_are_inclusive_and_cumulative, setup, teardown),
	        cmocka_unit_test_setup_teardown(every_bucket_can_be_used, setup, teardown),
	        cmocka_unit_test(full_buffer_is_reported_at_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
