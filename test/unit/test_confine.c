// SPDX-License-Identifier: Apache-2.0
// Goal: every selector of a confined query has the matcher, nothing else changes, and a query that cannot be rewritten
// safely is refused with the position.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "promql/confine.h"
#include "promql/freshness.h"

#define N  "ns=\"a\""
#define BN "{" N "}"

struct row {
	const char *query, *want;
};

static const struct row confined[] = {
        {"up", "up" BN},
        {"up{}", "up" BN},
        {"{}", BN},
        {"up{job=\"x\"}", "up{job=\"x\"," N "}"},
        {"up{job=\"x\",}", "up{job=\"x\"," N "}"},
        {"up { job = \"x\" , }", "up { job = \"x\" ," N " }"},
        {"{__name__=~\"a.*\"}", "{__name__=~\"a.*\"," N "}"},
        {"{\"a.b\"}", "{\"a.b\"," N "}"},
        {"{\"a.b\", \"c.d\"!=\"}\"}", "{\"a.b\", \"c.d\"!=\"}\"," N "}"},
        {"up{" N "}", "up{" N "}"},
        {"up{ns='a'}", "up{ns='a'}"},
        {"up{ns=`a`,x!~'y'}", "up{ns=`a`,x!~'y'}"},
        {"up{\"ns\"=\"a\"}", "up{\"ns\"=\"a\"," N "}"},
        {"job:up:sum", "job:up:sum" BN},
        {":a", ":a" BN},
        {"rate(x[5m])", "rate(x" BN "[5m])"},
        {"rate(x{a=\"]\"}[5m:30s] offset 1h)", "rate(x{a=\"]\"," N "}[5m:30s] offset 1h)"},
        {"x[5m:]", "x" BN "[5m:]"},
        {"x[ 5m : 30s ]", "x" BN "[ 5m : 30s ]"},
        {"x[1h30m:1m15s]", "x" BN "[1h30m:1m15s]"},
        {"x offset -5m @ 1609746000.5", "x" BN " offset -5m @ 1609746000.5"},
        {"x @ start() offset - 5m", "x" BN " @ start() offset - 5m"},
        {"x @ end ( )", "x" BN " @ end ( )"},
        {"x @ -1e+5", "x" BN " @ -1e+5"},
        {"sum(x)", "sum(x" BN ")"},
        {"SUM by (a, b) (x)", "SUM by (a, b) (x" BN ")"},
        {"sum(x) without(by, on, \"q.r\",)", "sum(x" BN ") without(by, on, \"q.r\",)"},
        {"topk by (a) (3, x) + 1", "topk by (a) (3, x" BN ") + 1"},
        {"count_values(\"ns\", x)", "count_values(\"ns\", x" BN ")"},
        {"sum by (sum) (sum by (a) (sum(x)))", "sum by (sum) (sum by (a) (sum(x" BN ")))"},
        {"quantile(0.9, rate(x[1m]))", "quantile(0.9, rate(x" BN "[1m]))"},
        {"a * on(b) group_left(c, d) e", "a" BN " * on(b) group_left(c, d) e" BN},
        {"a / ignoring(b) group_right e", "a" BN " / ignoring(b) group_right e" BN},
        {"a > bool b", "a" BN " > bool b" BN},
        {"a >= bool on (x) b", "a" BN " >= bool on (x) b" BN},
        {"a==b!=c<=d<e", "a" BN "==b" BN "!=c" BN "<=d" BN "<e" BN},
        {"a and b or c unless d atan2 e", "a" BN " and b" BN " or c" BN " unless d" BN " atan2 e" BN},
        {"-a^-2%3", "-a" BN "^-2%3"},
        {"+-+a", "+-+a" BN},
        {"1 + 0x1F + 1e-3 + .5 + 5. + Inf - NaN", "1 + 0x1F + 1e-3 + .5 + 5. + Inf - NaN"},
        {"0x1e-a", "0x1e-a" BN},
        {"vector(time())", "vector(time())"},
        {"label_replace(x, \"d\", \"$1\", \"s\", \"(.*){ns=\\\"b\\\"}\")",
         "label_replace(x" BN ", \"d\", \"$1\", \"s\", \"(.*){ns=\\\"b\\\"}\")"},
        {"x # {comment\n + y", "x" BN " + y" BN},
        {"x # comment\r+ y", "x" BN " + y" BN},
        {"# first\nx", "x" BN},
        {"x #", "x" BN},
        {"x{a=\"b\" # c\n}", "x{a=\"b\"," N " }"},
        {"x\t\n{a=\"b\"}", "x {a=\"b\"," N "}"},
        {"((x))[5m:1m]", "((x" BN "))[5m:1m]"},
        {"histogram_quantile(0.9, sum by (le) (rate(x_bucket[5m])))",
         "histogram_quantile(0.9, sum by (le) (rate(x_bucket" BN "[5m])))"},
        {"absent(up)", "absent(up" BN ")"},
        {"info", "info" BN},
        {"rate", "rate" BN},
        {"start_time_seconds", "start_time_seconds" BN},
        {"x{a=\"\\\\\"} + y{b=\"\\\"}\"}", "x{a=\"\\\\\"," N "} + y{b=\"\\\"}\"," N "}"},
};

static void assert_spans_confined(const char *query)
{
	struct freshness_span spans[FRESHNESS_SELECTORS_MAX];
	const char *beyond;
	size_t n = freshness_selectors(query, spans, &beyond);
	for (size_t i = 0; i < n; i++) {
		char text[512];
		snprintf(text, sizeof text, "%.*s", (int)spans[i].len, spans[i].start);
		if (!strstr(text, "ns=") || text[strlen(text) - 1] != '}')
			fail_msg("%s: what asks for the age would read %s", query, text);
	}
}

static void each_selector_gets_the_matcher_and_nothing_else_changes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof confined / sizeof confined[0]; i++) {
		struct buf out, again;
		struct err e = {0};
		buf_init(&out, 4096);
		buf_init(&again, 4096);
		if (confine_query(&out, confined[i].query, "ns", "a", NULL, &e) < 0)
			fail_msg("%s: %s", confined[i].query, e.msg);
		assert_string_equal(buf_str(&out), confined[i].want);
		assert_spans_confined(buf_str(&out));
		assert_int_equal(confine_query(&again, buf_str(&out), "ns", "a", NULL, &e), 0);
		if (!strstr(confined[i].query, "\"ns\"="))
			assert_string_equal(buf_str(&again), buf_str(&out));
		buf_done(&out);
		buf_done(&again);
	}
}

struct refusal {
	const char *query, *says;
};
static const struct refusal refusals[] = {
        {"", "1:1: expected a metric, a function, a number or (, got the end of the query"},
        {"# only a comment", "1:17: expected a metric"},
        // the enforced label
        {"up{ns=\"b\"}", "1:4: the source confines policies of this namespace to ns=\"a\": remove this matcher"},
        {"sum(up) + \n up{x=\"y\",ns!=\"a\"}", "2:11: the source confines"},
        {"up{ns=~\"a\"}", "1:4: the source confines"},
        {"up{ns!~\"b\"}", "1:4: the source confines"},
        {"up{\"ns\"=\"b\"}", "1:4: the source confines"},
        {"up{ns=\"\\x61\"}", "1:4: the source confines"},
        {"up{ns=\"a\",ns=\"b\"}", "1:11: the source confines"},
        {"up{ns=\"\"}", "1:4: the source confines"},
        {"up{ns=\"", "1:4: the source confines"},
        // MetricsQL: more than the grammar of Prometheus
        {"{a=\"b\" or ns=\"c\"}", "1:8: expected a comma or }, got or"},
        {"WITH (x = up) x", "1:1: expected a function of Prometheus"},
        {"up default 0", "1:4: expected an operator or the end of the query, got default"},
        {"up keep_metric_names", "1:4: expected an operator"},
        {"x\\-y", "1:2: expected an operator"},
        {"x[5i]", "1:3: expected a duration"},
        {"x[]", "1:3: expected a duration"},
        {"x @ (y)", "1:5: expected a time"},
        {"5Ki", "1:1: expected a number"},
        {"1or x", "1:1: expected a number"},
        {"x{a=\"b\" + \"c\"}", "1:9: expected a comma or }"},
        {"x == (y keep_metric_names)", "1:9: expected an operator or )"},
        {"sum(x) limit 3", "1:8: expected an operator"},
        {"median(x)", "1:1: expected a function"},
        // series that no selector names, and keywords as names
        {"info(up)", "1:1: expected a function of Prometheus that reads its arguments alone, got info"},
        {"info(up, {ns=\"a\"})", "1:1: expected a function"},
        {"RATE(x[5m])", "1:1: expected a function"},
        {"sum", "1:1: sum is a keyword here: write a metric of that name as {__name__=\"sum\"}"},
        {"on{a=\"b\"}", "1:1: on is a keyword here"},
        {"sum(offset)", "1:5: offset is a keyword here"},
        {"and and and", "1:1: and is a keyword"},
        // broken
        {"up{", "1:4: expected a label, got the end of the query"},
        {"up{,}", "1:4: expected a label, got ,"},
        {"up{a}", "1:5: expected =, !=, =~ or !~, got }"},
        {"up{a=b}", "1:6: expected a string, got b"},
        {"up{a=\"b\" c=\"d\"}", "1:10: expected a comma or }"},
        {"up{a= ~\"b\"}", "1:7: expected a string"},
        {"up{a=\"b}", "1:6: the string is not closed"},
        {"up{a=\"b\\\"}", "1:6: the string is not closed"},
        {"up{a=\"b\n\"}", "1:6: the string has a line break"},
        {"up{a=`b\\`}", "1:6: a backslash in backquotes"},
        {"label_replace(x, `\\`, \"or secret\", `a`)", "1:18: a backslash in backquotes"},
        {"up up", "1:4: expected an operator"},
        {"up{} {}", "1:6: expected an operator"},
        {"up)", "1:3: expected an operator"},
        {"(up", "1:4: expected an operator or )"},
        {"up) or (secret", "1:3: expected an operator"},
        {"up = 1", "1:4: expected an operator"},
        {"up ! = 1", "1:4: expected an operator"},
        {"up +", "1:5: expected a metric"},
        {"a * on(b) group_left (c)", "1:25: expected a metric"},
        {"a * on b", "1:8: expected a list of labels"},
        {"sum by a (x)", "1:8: expected a list of labels"},
        {"sum by (a", "1:10: expected a comma or )"},
        {"sum by (a.b) (x)", "1:10: expected a comma or )"},
        {"rate(x[5m]", "1:11: expected an operator, a comma or )"},
        {"rate(x,)", "1:8: expected an argument"},
        {"x[5m", "1:5: expected ]"},
        {"x[foo]", "1:3: expected a duration"},
        {"x[5m:foo]", "1:5: expected a duration"},
        {"x[5m:{a=\"b\"}]", "1:6: expected ]"},
        {"x offset y", "1:10: expected a duration"},
        {"x;y", "1:2: expected an operator"},
        {"x\xc3\xa4", "1:2: expected an operator"},
        {"1e", "1:1: expected a number"},
        {"0x", "1:1: expected a number"},
        {"1.2.3", "1:1: expected a number"},
};

static void uncertain_query_is_refused_with_its_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
		struct buf out;
		struct err e = {0};
		buf_init(&out, 4096);
		if (confine_query(&out, refusals[i].query, "ns", "a", NULL, &e) == 0)
			fail_msg("%s: became %s", refusals[i].query, buf_str(&out));
		if (e.kind != ERR_INPUT || strncmp(e.msg, refusals[i].says, strlen(refusals[i].says)) != 0)
			fail_msg("%s: %s", refusals[i].query, e.msg);
		buf_done(&out);
	}
}

static void ceilings_hold(void **state)
{
	char query[4 * CONFINE_DEPTH_MAX];
	struct buf out;
	struct err e = {0};
	size_t offset;
	(void)state;
	for (int depth = CONFINE_DEPTH_MAX - 1; depth <= CONFINE_DEPTH_MAX; depth++) {
		int n = 0;
		for (int i = 0; i < depth; i++)
			query[n++] = '(';
		query[n++] = 'x';
		for (int i = 0; i < depth; i++)
			query[n++] = ')';
		query[n] = '\0';
		buf_init(&out, 4096);
		int rc = confine_query(&out, query, "ns", "a", &offset, &e);
		assert_int_equal(rc, depth < CONFINE_DEPTH_MAX ? 0 : -1);
		buf_done(&out);
	}
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_int_equal(offset, CONFINE_DEPTH_MAX);
	buf_init(&out, 10);
	assert_int_equal(confine_query(&out, "a + b", "ns", "a", &offset, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	buf_done(&out);
}

static void labels_and_values_are_checked(void **state)
{
	static const char *const bad_labels[] = {"", "1a", "a-b", "__name__", "a b", "a\"", "\xc3\xa4"};
	static const char *const bad_values[] = {"", "a\"", "a\\", "a b", "a\n", "a}"};
	struct buf out;
	struct err e = {0};
	(void)state;
	for (size_t i = 0; i < sizeof bad_labels / sizeof bad_labels[0]; i++)
		assert_false(confine_label_is_valid(bad_labels[i]));
	assert_true(confine_label_is_valid("namespace"));
	assert_true(confine_label_is_valid("_n2"));
	for (size_t i = 0; i < sizeof bad_values / sizeof bad_values[0]; i++) {
		buf_init(&out, 4096);
		assert_int_equal(confine_query(&out, "up", "ns", bad_values[i], NULL, &e), -1);
		assert_int_equal(e.kind, ERR_INPUT);
		buf_done(&out);
	}
}

static void trusted_matchers_are_added_to_every_selector(void **state)
{
	static const struct row added[] = {
	        {"up", "up{M}"},
	        {"sum by (job) (rate(a{b=\"c\",}[5m]))", "sum by (job) (rate(a{b=\"c\",M}[5m]))"},
	        {"{__name__=~\"a|b\",job=\"forged\"} > 0", "{__name__=~\"a|b\",job=\"forged\",M} > 0"},
	        {"a unless on (job, instance) (count by (job, instance) (a) > 16)",
	         "a{M} unless on (job, instance) (count by (job, instance) (a{M}) > 16)"},
	        {"a{} offset 60s or b", "a{M} offset 60s or b{M}"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof added / sizeof added[0]; i++) {
		struct buf out;
		struct err e = {0};
		buf_init(&out, 4096);
		if (confine_add_matchers(&out, added[i].query, "M", &e) < 0)
			fail_msg("%s", e.msg);
		assert_string_equal(buf_str(&out), added[i].want);
		buf_done(&out);
	}
}

static void matchers_of_a_flag_are_checked(void **state)
{
	static const char *const good[] = {"job=\"a/b\"", "job=~\"a|b\",instance!=\"x\"", "job!~`b.*`"};
	static const char *const bad[] = {"",
	                                  "job",
	                                  "job=a",
	                                  "job=\"a",
	                                  "job==\"a\"",
	                                  "job=\"a\",",
	                                  "job=\"a\"}",
	                                  "job=\"a\"} or up{a=\"b\"",
	                                  "\"job\"=\"a\"",
	                                  "__name__=\"a\"",
	                                  "a:b=\"c\"",
	                                  "job=\"a\" job=\"b\"",
	                                  "job=\"a\nb\"",
	                                  "job=`a\\b`",
	                                  "1a=\"b\""};
	struct buf out;
	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		struct err e = {0};
		buf_init(&out, 64);
		if (confine_check_matchers(&out, good[i], &e) < 0)
			fail_msg("%s: %s", good[i], e.msg);
		assert_string_equal(buf_str(&out), good[i]);
		buf_done(&out);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct err e = {0};
		buf_init(&out, 64);
		if (confine_check_matchers(&out, bad[i], &e) == 0)
			fail_msg("%s: became %s", bad[i], buf_str(&out));
		assert_int_equal(e.kind, ERR_INPUT);
		buf_done(&out);
	}
	struct err e = {0};
	buf_init(&out, 8);
	assert_int_equal(confine_check_matchers(&out, "job=\"too long\"", &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(each_selector_gets_the_matcher_and_nothing_else_changes),
	        cmocka_unit_test(trusted_matchers_are_added_to_every_selector),
	        cmocka_unit_test(matchers_of_a_flag_are_checked),
	        cmocka_unit_test(uncertain_query_is_refused_with_its_place),
	        cmocka_unit_test(ceilings_hold),
	        cmocka_unit_test(labels_and_values_are_checked),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
