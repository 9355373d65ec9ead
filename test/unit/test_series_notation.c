// SPDX-License-Identifier: Apache-2.0
// promtool's notation, with errors: what each word stands for, and what is refused.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/series_notation.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

// The points as words again: numbers, "_", "S", "E", "E(detail)".
static void write_points(const struct series_point *p, size_t n, char *out, size_t size)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < n && used < size; i++) {
		char number[NUM_TEXT_BYTES];
		num_format_f64(number, p[i].value);
		const char *word = p[i].kind == SERIES_POINT_VALUE     ? number
		                   : p[i].kind == SERIES_POINT_MISSING ? "_"
		                   : p[i].kind == SERIES_POINT_STALE   ? "S"
		                                                       : "E";
		int len = p[i].detail ? snprintf(out + used, size - used, "%s%s(%s)", i ? " " : "", word, p[i].detail)
		                      : snprintf(out + used, size - used, "%s%s", i ? " " : "", word);
		used += len > 0 ? (size_t)len : 0;
	}
}

static void every_word_stands_for_its_points(void **state)
{
	(void)state;
	static const struct {
		const char *text, *points;
	} rows[] = {
	        {"1", "1"},
	        {"1 2.5 -3", "1 2.5 -3"},
	        {" 1\t2\n3 ", "1 2 3"},
	        {"1x3", "1 1 1 1"},
	        {"1x0", "1"},
	        {"1+2x3", "1 3 5 7"},
	        {"1-2x2", "1 -1 -3"},
	        {"-1+0.5x2", "-1 -0.5 0"},
	        {"-1-1x1", "-1 -2"},
	        {"1e-3+1e-3x1", "0.001 0.002"},
	        {"1e+3x1", "1000 1000"},
	        {"_ 1 _", "_ 1 _"},
	        {"_x2 1", "_ _ 1"},
	        {"_x0 1", "1"},
	        {"1 stale 2", "1 S 2"},
	        {"NaN +Inf -Inf Inf", "NaN +Inf -Inf +Inf"},
	        {"error", "E"},
	        {"errorx2", "E E"},
	        {"error:timeout", "E(timeout)"},
	        {"error:timeoutx2 1", "E(timeout) E(timeout) 1"},
	        {"error:max_series", "E(max_series)"},
	        {"error:503x1", "E(503)"},
	        {"error:503", "E(503)"},
	        {"error:0x10", "E(0) E(0) E(0) E(0) E(0) E(0) E(0) E(0) E(0) E(0)"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct arena a;
		struct err e;
		struct series_point *points;
		size_t n;
		char got[512];
		arena_init(&a, 1 << 20);
		if (series_notation_parse(&a, rows[i].text, &points, &n, &e) < 0)
			fail_msg("\"%s\": %s", rows[i].text, e.msg);
		write_points(points, n, got, sizeof got);
		if (strcmp(got, rows[i].points) != 0)
			fail_msg("\"%s\"\n  got:  %s\n  want: %s", rows[i].text, got, rows[i].points);
		arena_done(&a);
	}
}

static void invalid_series_is_refused_with_the_word_and_the_fix(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want;
		enum err_kind kind;
	} rows[] = {
	        {"", "the series is empty", ERR_INPUT},
	        {"  ", "the series is empty", ERR_INPUT},
	        {"_x0", "the series is empty", ERR_INPUT},
	        {"1+2", "write \"1+2x10\" for 10 more values", ERR_INPUT},
	        {"1 2y", "in \"2y\"", ERR_INPUT},
	        {"1x", "after 'x' in \"1x\"", ERR_INPUT},
	        {"1x-1", "after 'x' in \"1x-1\"", ERR_INPUT},
	        {"1x2x3", "after 'x' in \"1x2x3\"", ERR_INPUT},
	        {"1+x3", "in \"1+x3\"", ERR_INPUT},
	        {"stales", "in \"stales\"", ERR_INPUT},
	        {"error:", "in \"error:\"", ERR_INPUT},
	        {"error:x3", "in \"error:x3\"", ERR_INPUT},
	        {"1e308+1e308x2", "leaves the range of a number", ERR_INPUT},
	        {"1x200000", "more than the ceiling of 200000 values", ERR_LIMIT},
	        {"1x199999 1", "more than the ceiling of 200000 values", ERR_LIMIT},
	        {"1x200001", "after 'x'", ERR_INPUT},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct arena a;
		struct err e;
		struct series_point *points;
		size_t n;
		arena_init(&a, 16 << 20);
		assert_int_equal(series_notation_parse(&a, rows[i].text, &points, &n, &e), -1);
		assert_int_equal(e.kind, rows[i].kind);
		if (!strstr(e.msg, rows[i].want))
			fail_msg("\"%s\"\n  got:  %s\n  want: %s", rows[i].text, e.msg, rows[i].want);
		arena_done(&a);
	}
}

static void full_arena_is_an_error(void **state)
{
	(void)state;
	static const char *const texts[] = {"1x1000", "error:timeoutx1000"};
	for (size_t i = 0; i < N(texts); i++) {
		struct arena a;
		struct err e;
		struct series_point *points;
		size_t n;
		arena_init(&a, 4096);
		assert_int_equal(series_notation_parse(&a, texts[i], &points, &n, &e), -1);
		assert_int_equal(e.kind, ERR_LIMIT);
		arena_done(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_word_stands_for_its_points),
	        cmocka_unit_test(invalid_series_is_refused_with_the_word_and_the_fix),
	        cmocka_unit_test(full_arena_is_an_error),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
