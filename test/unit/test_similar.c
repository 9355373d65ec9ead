// SPDX-License-Identifier: Apache-2.0
// Goal of this test: queries that differ only in label values become one query, whose series find their way back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/buf.h"
#include "promql/promql.h"
#include "promql/similar.h"

#define TEXT_MAX 4096

static void queries_of_one_shape_become_one(void **state)
{
	static const struct {
		const char *of[3], *shape, *all;
	} cases[] = {
	        {{"load{pod=\"a\"}", "load{pod=\"b\"}", "load{pod=\"a\"}"}, "load{pod=\"\"}", "load{pod=~\"a|b\"}"},
	        {{"sum(rate(x{ns=\"n\", pod = \"a\", code!=\"5\"}[5m]))",
	          "sum(rate(x{ns=\"n\", pod = \"b\", code!=\"5\"}[5m]))"},
	         "sum(rate(x{ns=\"\", pod = \"\", code!=\"5\"}[5m]))",
	         "sum by (ns,pod) (rate(x{ns=~\"n\", pod=~\"a|b\", code!=\"5\"}[5m]))"},
	        {{"max_over_time(x{a=\"v1.0\"}[1h])", "max_over_time(x{a=\"(z)\"}[1h])"},
	         "max_over_time(x{a=\"\"}[1h])",
	         "max_over_time(x{a=~\"v1\\\\.0|\\\\(z\\\\)\"}[1h])"},
	        {{"load", "load"}, "load", "load"},
	        {{"sum(load)"}, "sum(load)", "sum(load)"},
	        {{"up{a=~\"x|y\"}", "up{a=~\"x|y\"}"}, "up{a=~\"x|y\"}", "up{a=~\"x|y\"}"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct similar_query parsed[3];
		struct buf shape, all;
		size_t n = 0;
		buf_init(&all, TEXT_MAX);
		for (; n < 3 && cases[i].of[n]; n++) {
			buf_init(&shape, TEXT_MAX);
			assert_true(similar_parse(cases[i].of[n], &parsed[n]));
			similar_put_shape(&shape, cases[i].of[n], &parsed[n]);
			assert_string_equal(buf_str(&shape), cases[i].shape);
			buf_done(&shape);
		}
		similar_put_all(&all, cases[i].of, parsed, n);
		assert_string_equal(buf_str(&all), cases[i].all);
		buf_done(&all);
	}
}

static void other_queries_stay_alone(void **state)
{
	static const char *const alone[] = {
	        "",
	        "1",
	        "a + b",
	        "a{x=\"1\"} / 2",
	        "sum by (x) (a)",
	        "sum(a) by (x)",
	        "topk(1, a)",
	        "absent(a)",
	        "scalar(a)",
	        "label_replace(a, \"b\", \"\", \"\", \"\")",
	        "a[5m]",
	        "rate(a)",
	        "rate(a[5m:1m])",
	        "rate(a[5m] offset 1m)",
	        "a offset 1m",
	        "a @ 5",
	        "{a=\"b\"}",
	        "a{__name__=\"b\"}",
	        "a{x=\"\"}",
	        "a{x='1'}",
	        "a{x=\"\\\"\"}",
	        "a{x=\"1\",x=\"2\"}",
	        "a{x=\"1\"",
	        "a{x=\"1}",
	        "sum(a",
	        "sum(a))",
	        "a # comment",
	        "a{\"x.y\"=\"1\"}",
	        "a{b=\"1\",c=\"1\",d=\"1\",e=\"1\",f=\"1\"}",
	        "and",
	        "a{b={\"1\"}",
	        "a{b+=\"1\"}",
	        "vector(1)",
	        "sum(rate(a[5m])) or b",
	};
	struct similar_query parsed;
	(void)state;
	for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
		if (similar_parse(alone[i], &parsed))
			fail_msg("%s", alone[i]);
}

static void series_belongs_to_the_query_with_its_labels(void **state)
{
	const struct promql_label labels[] = {{"job", "j"}, {"ns", "n"}, {"pod", "ab"}};
	const struct promql_series series = {.labels = labels, .n_labels = 3};
	static const struct {
		const char *query;
		bool matches;
	} cases[] = {{"x{ns=\"n\",pod=\"ab\"}", true},
	             {"x{ns=\"n\",pod=\"a\"}", false},
	             {"x{pod=\"abc\"}", false},
	             {"x{ns=\"m\",pod=\"ab\"}", false},
	             {"x", true},
	             {"x{zone=\"z\"}", false}};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct similar_query parsed;
		assert_true(similar_parse(cases[i].query, &parsed));
		if (similar_matches(&series, cases[i].query, &parsed) != cases[i].matches)
			fail_msg("%s", cases[i].query);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(queries_of_one_shape_become_one),
	        cmocka_unit_test(other_queries_stay_alone),
	        cmocka_unit_test(series_belongs_to_the_query_with_its_labels),
	};
	return cmocka_run_group_tests_name("similar", tests, NULL, NULL);
}
