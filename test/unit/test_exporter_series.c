// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "exporter/mock/mock.h"

static void notation_gives_promtools_values(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *want; // values at 0 s, 1 s, ..; _ = none
	} cases[] = {
	        {"5", "5"},
	        {"1 2 3", "1 2 3"},
	        {"0+10x3", "0 10 20 30"},
	        {"10-2x2", "10 8 6"},
	        {"7x2", "7 7 7"},
	        {"-1+1x2", "-1 0 1"},
	        {"1e2+1e1x1", "100 110"},
	        {"1e-2", "0.01"},
	        {"_ 1 _x2 3", "_ 1 _ _ 3"},
	        {"1 stale 2", "1 _ 2"},
	        {" 1\n\t2 ", "1 2"},
	        {"-5-5x1", "-5 -10"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct arena a;
		struct mock_series s;
		struct err e;
		char got[256] = "";
		arena_init(&a, 1 << 20);
		if (mock_series_parse(&a, cases[i].text, 1000, false, 1, &s, &e) < 0)
			fail_msg("\"%s\": %s", cases[i].text, e.msg);
		for (size_t k = 0; k < s.n; k++) {
			double v;
			size_t used = strlen(got);
			if (mock_series_at(&s, 1000.0 * (double)k, &v))
				snprintf(got + used, sizeof got - used, "%s%g", k ? " " : "", v);
			else
				snprintf(got + used, sizeof got - used, "%s_", k ? " " : "");
		}
		assert_string_equal(got, cases[i].want);
		arena_done(&a);
	}
}

static void bad_notation_is_refused_with_the_word(void **state)
{
	(void)state;
	static const struct {
		const char *text, *in_message;
	} cases[] = {
	        {"", "empty"},
	        {"  ", "empty"},
	        {"abc", "abc"},
	        {"1+2", "no count"},
	        {"1x", "\"1x\""},
	        {"1x-1", "\"1x-1\""},
	        {"1+x3", "\"1+x3\""},
	        {"1x300000", "300000"},
	        {"NaN", "not a finite"},
	        {"1 error", "has no \"error\""},
	        {"1x199999 1x9", "ceiling"},
	        {"1e308+1e308x5", "range"},
	        {"_x", "\"_x\""},
	        {"1 2e15", "value 2 of the series is beyond"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct arena a;
		struct mock_series s;
		struct err e;
		arena_init(&a, 16 << 20);
		if (mock_series_parse(&a, cases[i].text, 1000, false, 1, &s, &e) == 0)
			fail_msg("\"%s\" was accepted", cases[i].text);
		if (!strstr(e.msg, cases[i].in_message))
			fail_msg("\"%s\": message \"%s\" lacks \"%s\"", cases[i].text, e.msg, cases[i].in_message);
		arena_done(&a);
	}
}

static void end_loops_or_holds(void **state)
{
	(void)state;
	struct arena a;
	struct mock_series s;
	double v;
	arena_init(&a, 1 << 20);
	assert_int_equal(mock_series_parse(&a, "1 2 3", 1000, true, 1, &s, NULL), 0);
	assert_true(mock_series_at(&s, 4500, &v));
	assert_true(v == 2);
	assert_int_equal(mock_series_parse(&a, "1 2 3", 1000, false, 1, &s, NULL), 0);
	assert_true(mock_series_at(&s, 1e9, &v));
	assert_true(v == 3);
	arena_done(&a);
}

static void mean_is_the_exact_integral(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		bool loop;
		double from_ms, to_ms, want;
	} cases[] = {
	        {"10 0 0 0", true, 0, 4000, 2.5},     // one turn
	        {"10 0 0 0", true, 0, 400000, 2.5},   // many turns: nothing is lost between samples
	        {"10 0 0 0", true, 500, 1500, 5},     // half of a step
	        {"10 0 0 0", true, 3500, 4500, 5},    // across the end
	        {"1 3", false, 0, 4000, 2.5},         // the last value stays
	        {"1 3", false, 100000, 200000, 3},    // far behind the end
	        {"4 _ 4", false, 0, 3000, 8.0 / 3.0}, // nothing counts as 0
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct arena a;
		struct mock_series s;
		arena_init(&a, 1 << 20);
		assert_int_equal(mock_series_parse(&a, cases[i].text, 1000, cases[i].loop, 1, &s, NULL), 0);
		double got = mock_series_mean(&s, cases[i].from_ms, cases[i].to_ms);
		if (fabs(got - cases[i].want) > 1e-9)
			fail_msg("case %zu: %g, want %g", i, got, cases[i].want);
		arena_done(&a);
	}
}

static int parse_csv(const char *text, const char *column, struct arena *a, struct mock_series *s, struct err *e)
{
	char path[] = "/tmp/gpuscale-test-XXXXXX";
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	int rc = mock_series_read_csv(a, path, column, 5000, true, 0.5, s, e);
	unlink(path);
	return rc;
}

static void csv_column_is_read_and_scaled(void **state)
{
	(void)state;
	struct arena a;
	struct mock_series s;
	struct err e;
	double v;
	arena_init(&a, 1 << 20);
	assert_int_equal(parse_csv("t_s,requests, tokens\r\n0,1,10\r\n5,2, 20\r\n\r\n10,3,30", "tokens", &a, &s, &e),
	                 0);
	assert_int_equal(s.n, 3);
	assert_true(mock_series_at(&s, 5000, &v));
	assert_true(v == 10);
	arena_done(&a);
}

static void bad_csv_is_refused_with_its_line(void **state)
{
	(void)state;
	static const struct {
		const char *text, *in_message;
	} cases[] = {
	        {"a,b\n1,2\n", ":1: no column \"x\""},
	        {"a,x\n1,2\n1\n", ":3: the line has no column"},
	        {"a,x\n1,zwei\n", ":2: column \"x\""},
	        {"a,x\n", "no line of values"},
	        {"", "no line of values"},
	        {"x\nnan\n", ":2: column"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct arena a;
		struct mock_series s;
		struct err e;
		arena_init(&a, 1 << 20);
		assert_int_equal(parse_csv(cases[i].text, "x", &a, &s, &e), -1);
		if (!strstr(e.msg, cases[i].in_message))
			fail_msg("case %zu: message \"%s\" lacks \"%s\"", i, e.msg, cases[i].in_message);
		arena_done(&a);
	}
	struct arena a;
	struct mock_series s;
	struct err e;
	arena_init(&a, 1 << 20);
	assert_int_equal(mock_series_read_csv(&a, "/nonexistent.csv", "x", 1, true, 1, &s, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(notation_gives_promtools_values),
	        cmocka_unit_test(bad_notation_is_refused_with_the_word),
	        cmocka_unit_test(end_loops_or_holds),
	        cmocka_unit_test(mean_is_the_exact_integral),
	        cmocka_unit_test(csv_column_is_read_and_scaled),
	        cmocka_unit_test(bad_csv_is_refused_with_its_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
