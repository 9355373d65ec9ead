// SPDX-License-Identifier: Apache-2.0
// Which selectors a query rests on, and how the question about their age is put.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "promql/freshness.h"
#include "promql/promql.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static void selectors_are_found(void **state)
{
	(void)state;
	static const struct {
		const char *query, *want; // wanted spans joined by '|'
	} rows[] = {
	        {"up", "up"},
	        {"", ""},
	        {"1 + 2", ""},
	        {"vector(1)", ""},
	        {"sum(x)", "x"},
	        {"sum by (pod, x) (y)", "y"},
	        {"sum(y) by (pod)", "y"},
	        {"sum without(a)(y)", "y"},
	        {"avg_over_time(x{a=\"b\"}[5m])", "x{a=\"b\"}"},
	        {"rate(x[5m:30s])", "x"},
	        {"x offset 5m", "x"},
	        {"x offset -5m + y", "x|y"},
	        {"{__name__=~\"a|b\"}", "{__name__=~\"a|b\"}"},
	        {"x{a=\"}\"} / y", "x{a=\"}\"}|y"},
	        {"x {a='b'}", "x {a='b'}"},
	        {"a or b unless c and d", "a|b|c|d"},
	        {"a * on (UUID, b) group_left (c) d", "a|d"},
	        {"x > bool 0", "x"},
	        {"x + x", "x"},
	        {"job:a:ratio / 1e3", "job:a:ratio"},
	        {"quantile(0.9, x) # y\n+ z", "x|z"},
	        {"label_replace(x, \"d\", \"$1\", \"s\", \"(y)\")", "x"},
	        {"Inf * x", "x"},
	        {"SUM(x) AND y", "x|y"},
	        {"x{a=\"\\\"}\"}", "x{a=\"\\\"}\"}"},
	        {"x{a=`\\`}", "x{a=`\\`}"},
	        {"x{", ""},
	        {"x[5m", "x"},
	        {"sum by (a", ""},
	        {"\"unclosed", ""},
	        {"time() - x", "x"},
	        {"histogram_quantile(0.95, sum by (le) (rate(h_bucket[2m])))", "h_bucket"},
	        {"x @ 1609746000", "x"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct freshness_span spans[FRESHNESS_SELECTORS_MAX];
		const char *beyond;
		size_t n = freshness_selectors(rows[i].query, spans, &beyond);
		assert_null(beyond);
		char got[256] = "";
		size_t used = 0;
		for (size_t k = 0; k < n; k++)
			used += (size_t)snprintf(got + used, sizeof got - used, "%s%.*s", k ? "|" : "",
			                         (int)spans[k].len, spans[k].start);
		assert_string_equal(got, rows[i].want);
	}
}

// Writes n different selectors, and then the first one again.
static void put_selectors(struct buf *b, int n)
{
	buf_reset(b);
	for (int i = 0; i < n; i++)
		buf_printf(b, "m%d + ", i);
	buf_puts(b, "m0");
}

static void every_selector_up_to_the_ceiling_is_checked_and_one_more_is_reported(void **state)
{
	(void)state;
	struct freshness_span spans[FRESHNESS_SELECTORS_MAX];
	const char *beyond;
	struct buf query, wrapped;
	buf_init(&query, 4096);
	buf_init(&wrapped, 16384);
	put_selectors(&query, FRESHNESS_SELECTORS_MAX);
	assert_int_equal(freshness_selectors(buf_str(&query), spans, &beyond), FRESHNESS_SELECTORS_MAX);
	assert_null(beyond);
	assert_int_equal(freshness_wrap(&wrapped, buf_str(&query)), FRESHNESS_WRAPPED);
	assert_non_null(strstr(buf_str(&wrapped), "timestamp(m8)"));
	assert_non_null(strstr(buf_str(&wrapped), "timestamp(m31)"));
	put_selectors(&query, FRESHNESS_SELECTORS_MAX + 2);
	assert_int_equal(freshness_selectors(buf_str(&query), spans, &beyond), FRESHNESS_SELECTORS_MAX);
	assert_ptr_equal(beyond, strstr(buf_str(&query), "m32"));
	buf_reset(&wrapped);
	assert_int_equal(freshness_wrap(&wrapped, buf_str(&query)), FRESHNESS_TOO_LONG);
	assert_int_equal(wrapped.len, 0);
	buf_done(&wrapped);
	buf_init(&wrapped, 20);
	assert_int_equal(freshness_wrap(&wrapped, "a_metric"), FRESHNESS_TOO_LONG);
	buf_done(&wrapped);
	buf_done(&query);
}

static void wrap_keeps_the_query_in_front(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 4096);
	assert_int_equal(freshness_wrap(&b, "a / b # ratio"), FRESHNESS_WRAPPED);
	assert_string_equal(buf_str(&b),
	                    "a / b # ratio\nor label_replace(min(label_replace(max(timestamp(a)),\"i\",\"0\",\"\",\"\")"
	                    " or label_replace(max(timestamp(b)),\"i\",\"1\",\"\",\"\")),"
	                    "\"__gpuscale_freshness__\",\"newest\",\"\",\"\")");
	buf_reset(&b);
	assert_int_equal(freshness_wrap(&b, "vector(3)"), FRESHNESS_NONE);
	assert_int_equal(b.len, 0);
	buf_done(&b);
}

static void ranges_add_up(void **state)
{
	(void)state;
	static const struct {
		const char *query;
		int64_t reach_ms;
	} rows[] = {
	        {"x", 0},
	        {"", 0},
	        {"rate(x[5m])", 300000},
	        {"rate(x{a=\"[1h]\"}[1m30s])", 90000},
	        {"max_over_time(rate(x[5m])[1h:1m])", 3900000},
	        {"max_over_time(x[1h:])", 3600000},
	        {"max_over_time(x[ 1h : 30s ])", 3600000},
	        {"rate(a[5m]) / rate(b[10m])", 900000},
	        {"rate(x[$range])", 0},
	        {"rate(x[])", 0},
	        {"x[5m", 300000},
	        {"x[", 0},
	        {"\"[5m]\"", 0},
	        {"x # [5m]", 0},
	        {"x{[5m]", 0},
	};
	for (size_t i = 0; i < N(rows); i++)
		if (freshness_reach_ms(rows[i].query) != rows[i].reach_ms)
			fail_msg("%s: %lld", rows[i].query, (long long)freshness_reach_ms(rows[i].query));
}

// Without this the value of rate(x[10m]) would be present again once x itself is missing.
static void series_within_a_range_are_searched(void **state)
{
	(void)state;
#define MARK(i) ",\"i\",\"" i "\",\"\",\"\")"
	static const struct {
		const char *query, *freshness;
	} rows[] = {
	        {"rate(x[10m])",
	         "min(label_replace(max(timestamp(x))" MARK(
	                 "0") ") or "
	                      "min(label_replace(max(max_over_time(timestamp(x)[600000ms:120000ms]))" MARK("0") ")"},
	        {"rate(x[30s])",
	         "min(label_replace(max(timestamp(x))" MARK(
	                 "0") ") or "
	                      "min(label_replace(max(max_over_time(timestamp(x)[30000ms:15000ms]))" MARK("0") ")"},
	        {"a/min_over_time(b[1d])",
	         "min(label_replace(max(timestamp(a))" MARK("0") " or label_replace(max(timestamp(b))" MARK(
	                 "1") ") or "
	                      "min(label_replace(max(max_over_time(timestamp(a)[28800000ms:240000ms]))" MARK(
	                              "0") " or "
	                                   "label_replace(max(max_over_time(timestamp(b)[28800000ms:240000ms]))" MARK(
	                                           "1") ") or "
	                                                "0*min(label_replace(count(count_over_time(a[86400000ms])"
	                                                ")" MARK("0") " or "
	                                                              "label_replace(count(count_over_time(b["
	                                                              "86400000ms]))" MARK("1") ")"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct buf b, want;
		buf_init(&b, 4096);
		buf_init(&want, 4096);
		buf_printf(&want, "%s\nor label_replace(%s,\"" FRESHNESS_LABEL "\",\"newest\",\"\",\"\")",
		           rows[i].query, rows[i].freshness);
		assert_int_equal(freshness_wrap(&b, rows[i].query), FRESHNESS_WRAPPED);
		assert_string_equal(buf_str(&b), buf_str(&want));
		buf_done(&b);
		buf_done(&want);
	}
}

static void extra_series_is_recognized_by_its_label(void **state)
{
	(void)state;
	const struct promql_label mark = {FRESHNESS_LABEL, "newest"}, other = {"pod", "a"};
	const struct promql_sample sample = {5000, 1700000000.25}, bad = {5000, 0.0 / 0.0};
	struct promql_series s = {&mark, 1, &sample, 1};
	int64_t t = 0;
	assert_true(freshness_is_series(&s, &t));
	assert_int_equal(t, 1700000000250);
	s.samples = &bad;
	assert_true(freshness_is_series(&s, &t));
	assert_int_equal(t, 0);
	s = (struct promql_series){&other, 1, &sample, 1};
	assert_false(freshness_is_series(&s, &t));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(selectors_are_found),
	        cmocka_unit_test(every_selector_up_to_the_ceiling_is_checked_and_one_more_is_reported),
	        cmocka_unit_test(wrap_keeps_the_query_in_front),
	        cmocka_unit_test(ranges_add_up),
	        cmocka_unit_test(series_within_a_range_are_searched),
	        cmocka_unit_test(extra_series_is_recognized_by_its_label),
	};
	return cmocka_run_group_tests_name("freshness", tests, NULL, NULL);
}
