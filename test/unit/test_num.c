// SPDX-License-Identifier: Apache-2.0
// Goal of this test: numbers are read exactly or refused with a sentence that shows the fix, and written so that they
// read back as the same number. Durations and times: test_num_time.c.
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/num.h"

#define N(rows) (sizeof(rows) / sizeof(rows)[0])

static void i64_in_range_is_read(void **state)
{
	static const struct {
		const char *text;
		int64_t min, max, value;
	} rows[] = {
	        {"0", 0, 0, 0},
	        {"-0", 0, 0, 0},
	        {"007", 0, 10, 7},
	        {"65535", 1, 65535, 65535},
	        {"-12", -12, -12, -12},
	        {"9223372036854775807", INT64_MIN, INT64_MAX, INT64_MAX},
	        {"-9223372036854775808", INT64_MIN, INT64_MAX, INT64_MIN},
	        {"00000000000000000000000000000000000000009223372036854775807", 0, INT64_MAX, INT64_MAX},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e;
		int64_t v = 99;
		if (num_parse_i64(rows[i].text, strlen(rows[i].text), rows[i].min, rows[i].max, &v, &e) < 0)
			fail_msg("%s was refused: %s", rows[i].text, e.msg);
		if (v != rows[i].value)
			fail_msg("%s became %lld", rows[i].text, (long long)v);
	}
}

static void i64_refuses_anything_else_and_leaves_the_result_alone(void **state)
{
	static const struct {
		const char *text;
		int64_t min, max;
		const char *says;
	} rows[] = {
	        {"", 0, 9, "empty text"},
	        {"-", -9, 9, "\"-\" is not a whole number: expected decimal digits only, from -9 to 9"},
	        {"+1", 0, 9, "\"+1\" is not a whole number"},
	        {" 1", 0, 9, "\" 1\" is not a whole number"},
	        {"1 ", 0, 9, "\"1 \" is not a whole number"},
	        {"1.0", 0, 9, "\"1.0\" is not a whole number"},
	        {"1e3", 0, 9, "\"1e3\" is not a whole number"},
	        {"0x10", 0, 99, "\"0x10\" is not a whole number"},
	        {"--1", -9, 9, "\"--1\" is not a whole number"},
	        {"1-", -9, 9, "\"1-\" is not a whole number"},
	        {"10", 0, 9, "\"10\" is out of range: expected a whole number from 0 to 9"},
	        {"-1", 0, 9, "\"-1\" is out of range: expected a whole number from 0 to 9"},
	        {"9223372036854775808", INT64_MIN, INT64_MAX, "is out of range"},
	        {"-9223372036854775809", INT64_MIN, INT64_MAX, "is out of range"},
	        {"18446744073709551617", 0, 9, "is out of range"}, // 2^64+1 must not wrap to 1
	        {"99999999999999999999999999999x", 0, 9, "is not a whole number"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e = {.msg = ""};
		int64_t v = 99;
		if (num_parse_i64(rows[i].text, strlen(rows[i].text), rows[i].min, rows[i].max, &v, &e) == 0)
			fail_msg("%s was accepted", rows[i].text);
		if (e.kind != ERR_INPUT || !strstr(e.msg, rows[i].says))
			fail_msg("%s: kind %d: %s", rows[i].text, e.kind, e.msg);
		assert_int_equal(v, 99);
	}
}

static void only_len_bytes_are_read(void **state)
{
	int64_t i = 0;
	double f = 0;
	assert_int_equal(num_parse_i64("123456", 3, 0, 999, &i, NULL), 0);
	assert_int_equal(i, 123);
	assert_int_equal(num_parse_f64("0.25e5", 4, &f, NULL), 0);
	assert_true(f == 0.25);
	assert_int_equal(num_parse_i64("1\0002", 3, 0, 999, &i, NULL), -1);
	assert_int_equal(num_parse_f64("1\000", 2, &f, NULL), -1);
}

static void f64_decimal_numbers_are_read(void **state)
{
	static const struct {
		const char *text;
		double value;
	} rows[] = {
	        {"0", 0},
	        {"0.7", 0.7},
	        {"-1e3", -1000},
	        {"+.5", 0.5},
	        {"5.", 5},
	        {"1E+2", 100},
	        {"1e-2", 0.01},
	        {"00012", 12},
	        {"1e-400", 0},
	        {"5e-324", 5e-324},
	        {"1.7976931348623157e308", 1.7976931348623157e308},
	        {"0.1000000000000000055511151231257827021181583404541015625", 0.1},
	        {"9007199254740993", 9007199254740992.0},
	        {"0e999999999999", 0},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e;
		double v = 99;
		if (num_parse_f64(rows[i].text, strlen(rows[i].text), &v, &e) < 0)
			fail_msg("%s was refused: %s", rows[i].text, e.msg);
		if (v != rows[i].value)
			fail_msg("%s became %.17g", rows[i].text, v);
	}
}

// Short decimals are not read by the C library; an exponent of 0 sends them there.
static void short_decimals_are_read_as_the_c_library_does(void **state)
{
	uint64_t random = 1;
	for (int i = 0; i < 200000; i++) {
		char text[64];
		double quick, exact;
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		int digits = 1 + (int)(random >> 33) % 18, point = (int)(random >> 50) % (digits + 1);
		size_t n = 0;
		if (random >> 63)
			text[n++] = random >> 62 & 1 ? '-' : '+';
		for (int k = 0; k < digits; k++) {
			if (k == point)
				text[n++] = '.';
			text[n++] = (char)('0' + (random >> k * 3) % 10);
		}
		assert_int_equal(num_parse_f64(text, n, &quick, NULL), 0);
		memcpy(text + n, "e0", 2);
		assert_int_equal(num_parse_f64(text, n + 2, &exact, NULL), 0);
		assert_memory_equal(&quick, &exact, sizeof quick);
	}
}

static void f64_refuses_anything_else(void **state)
{
	static const char *const rows[] = {"",      ".",    "+",     "-",      "e5",    "1e",    "1e+",
	                                   "1e1.5", " 1",   "1 ",    "1,5",    "0x1",   "NaN",   "Inf",
	                                   "inf",   "+Inf", "1e400", "-1e400", "1_000", "1.2.3", "1f",
	                                   "--1",   "\t1",  "1e5e5", "1.5Ki",  "½",     "nan",   "1\n"};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e = {.msg = ""};
		double v = 99;
		if (num_parse_f64(rows[i], strlen(rows[i]), &v, &e) == 0)
			fail_msg("%s was accepted as %g", rows[i], v);
		if (e.kind != ERR_INPUT || !e.msg[0])
			fail_msg("%s: kind %d: %s", rows[i], e.kind, e.msg);
		assert_true(v == 99);
	}
}

static void sample_values_of_prometheus_are_read(void **state)
{
	double v = 0;
	assert_int_equal(num_parse_sample("NaN", 3, &v, NULL), 0);
	assert_true(isnan(v));
	assert_int_equal(num_parse_sample("+Inf", 4, &v, NULL), 0);
	assert_true(isinf(v) && v > 0);
	assert_int_equal(num_parse_sample("Inf", 3, &v, NULL), 0);
	assert_true(isinf(v) && v > 0);
	assert_int_equal(num_parse_sample("-Inf", 4, &v, NULL), 0);
	assert_true(isinf(v) && v < 0);
	assert_int_equal(num_parse_sample("1.5e-7", 6, &v, NULL), 0);
	assert_true(v == 1.5e-7);
	static const char *const bad[] = {"", "nan", "inf", "+NaN", "NaN ", "Infinity", "1e999", "NaNx"};
	for (size_t i = 0; i < N(bad); i++)
		if (num_parse_sample(bad[i], strlen(bad[i]), &v, NULL) == 0)
			fail_msg("%s was accepted", bad[i]);
}

static void quantities_follow_the_kubernetes_grammar(void **state)
{
	static const struct {
		const char *text;
		double value;
	} rows[] = {
	        {"0.7", 0.7},     {"700m", 0.7},    {"8", 8},        {"100n", 1e-7},
	        {"5u", 5e-6},     {"1k", 1e3},      {"1M", 1e6},     {"1G", 1e9},
	        {"1T", 1e12},     {"1P", 1e15},     {"1E", 1e18},    {"1e3", 1e3},
	        {"1E3", 1e3},     {"1e-3", 1e-3},   {"1E+3", 1e3},   {"1Ki", 1024},
	        {"1Mi", 1048576}, {"16Gi", 0x1p34}, {"1Ti", 0x1p40}, {"1Pi", 0x1p50},
	        {"1Ei", 0x1p60},  {"1.5Ki", 1536},  {"-1.5", -1.5},  {"+5", 5},
	        {".5", 0.5},      {"5.", 5},        {"5.m", 0.005},  {"0", 0},
	        {"-0", 0},        {"0.1m", 0.0001}, {"300m", 0.3},   {"12345678901234567890", 12345678901234567890.0},
	        {"00.50", 0.5},   {"1e0", 1},       {"0Ki", 0},      {"-700m", -0.7},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e;
		double v = 99;
		if (num_parse_quantity(rows[i].text, strlen(rows[i].text), &v, &e) < 0)
			fail_msg("%s was refused: %s", rows[i].text, e.msg);
		if (v != rows[i].value)
			fail_msg("%s became %.17g", rows[i].text, v);
	}
}

static void invalid_quantity_is_refused_with_the_fix(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
	        {"", "empty text: expected a quantity"},
	        {" 1", "\" 1\" is not a quantity"},
	        {"1 ", "\"1 \" is not a quantity"},
	        {"1 Gi", "expected the suffix"},
	        {"1K", "1024 is written Ki"},
	        {"1ki", "expected the suffix"},
	        {"1KI", "expected the suffix"},
	        {"1mi", "expected the suffix"},
	        {"1mm", "expected the suffix"},
	        {"1GiB", "expected the suffix"},
	        {"1e", "expected the suffix"},
	        {"1e+", "expected the suffix"},
	        {"1e1.5", "expected the suffix"},
	        {"1e3k", "expected the suffix"},
	        {"1.2.3", "expected the suffix"},
	        {"70%", "\"70%\" is not a quantity"},
	        {".", "expected a decimal number"},
	        {"-", "expected a decimal number"},
	        {"Ki", "expected a decimal number"},
	        {"m", "expected a decimal number"},
	        {"NaN", "expected a decimal number"},
	        {"Inf", "expected a decimal number"},
	        {"1e400", "out of range"},
	        {"-1e400", "out of range"},
	        {"1,5", "expected the suffix"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e = {.msg = ""};
		double v = 99;
		if (num_parse_quantity(rows[i].text, strlen(rows[i].text), &v, &e) == 0)
			fail_msg("%s was accepted as %g", rows[i].text, v);
		if (e.kind != ERR_INPUT || !strstr(e.msg, rows[i].says))
			fail_msg("%s: kind %d: %s", rows[i].text, e.kind, e.msg);
		assert_true(v == 99);
	}
}

static void errors_show_the_text_harmless_and_short(void **state)
{
	struct err e;
	int64_t v;
	assert_int_equal(num_parse_i64("\x1b[31m\n\xff", 7, 0, 9, &v, &e), -1);
	assert_non_null(strstr(e.msg, "\"\\x1b[31m\\n\\xff\""));
	char text[NUM_INPUT_BYTES_MAX + 1];
	memset(text, 'x', sizeof text);
	assert_int_equal(num_parse_i64(text, NUM_INPUT_BYTES_MAX, 0, 9, &v, &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	assert_non_null(strstr(e.msg, "xxx...\" is not"));
	assert_true(strlen(e.msg) < 200);
	assert_int_equal(num_parse_i64(text, sizeof text, 0, 9, &v, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "129 bytes, more than the ceiling of 128"));
}

static void f64_is_written_short_and_plain(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {
	        {0, "0"},
	        {-0.0, "-0"},
	        {1, "1"},
	        {-16, "-16"},
	        {0.7, "0.7"},
	        {0.1 + 0.2, "0.30000000000000004"},
	        {100.5, "100.5"},
	        {123456.789, "123456.789"},
	        {1e6, "1000000"},
	        {999999999999999, "999999999999999"},
	        {1e15, "1000000000000000"},
	        {9007199254740992, "9007199254740992"},
	        {9999999999999998.0, "9999999999999998"},
	        {1e16, "1e+16"},
	        {1e21, "1e+21"},
	        {1.25e20, "1.25e+20"},
	        {0.0001, "0.0001"},
	        {0.00012345, "0.00012345"},
	        {0.00001, "1e-05"},
	        {1.5e-7, "1.5e-07"},
	        {5e-324, "5e-324"},
	        {2.2250738585072014e-308, "2.2250738585072014e-308"},
	        {-1.7976931348623157e308, "-1.7976931348623157e+308"},
	        {1767603600.123, "1767603600.123"},
	        {0x1p60, "1.152921504606847e+18"},
	        {NAN, "NaN"},
	        {-NAN, "NaN"},
	        {INFINITY, "+Inf"},
	        {-INFINITY, "-Inf"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		char out[NUM_TEXT_BYTES];
		size_t n = num_format_f64(out, rows[i].value);
		if (n != strlen(out) || strcmp(out, rows[i].text) != 0)
			fail_msg("%.17g became %s (%zu), expected %s", rows[i].value, out, n, rows[i].text);
	}
}

static void every_double_reads_back_as_itself(void **state)
{
	uint64_t x = 88172645463325252u; // xorshift64, fixed seed
	for (int i = 0; i < 200000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		double v, again = 0;
		if (i % 2) { // everyday sizes; the other half is any bit pattern
			v = (double)(int64_t)(x % 2000000007) / (double)(1 + x % 1000);
		} else {
			memcpy(&v, &x, sizeof v);
		}
		char out[NUM_TEXT_BYTES];
		size_t n = num_format_f64(out, v);
		assert_true(n < NUM_TEXT_BYTES && n == strlen(out));
		assert_int_equal(num_parse_sample(out, n, &again, NULL), 0);
		if (!(isnan(v) ? isnan(again) : again == v))
			fail_msg("%a was written as %s", v, out);
	}
}

static void locale_does_not_matter(void **state)
{
	static const char *const names[] = {"de_DE.UTF-8", "de_CH.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
	const char *set = NULL;
	for (size_t i = 0; i < N(names) && !set; i++)
		set = setlocale(LC_ALL, names[i]);
	if (!set || strcmp(localeconv()->decimal_point, ",") != 0) {
		setlocale(LC_ALL, "C");
		print_message("no locale with a decimal comma is installed\n");
		skip();
	}
	char out[NUM_TEXT_BYTES];
	double v = 0;
	num_format_f64(out, 0.30000000000000004);
	int rc = num_parse_f64("0.7", 3, &v, NULL), comma = num_parse_f64("0,7", 3, &v, NULL);
	setlocale(LC_ALL, "C");
	assert_string_equal(out, "0.30000000000000004");
	assert_int_equal(rc, 0);
	assert_true(v == 0.7);
	assert_int_equal(comma, -1);
}

static void closest_name_is_suggested_within_a_third(void **state)
{
	static const char *const names[] = {"minReplicas", "maxReplicas", "interval", "query", "name", "up"};
	static const struct {
		const char *word, *closest;
	} rows[] = {
	        {"minReplicas", "minReplicas"},
	        {"minreplicas", "minReplicas"},
	        {"MAXREPLICAS", "maxReplicas"},
	        {"mniReplicas", "minReplicas"}, // a swap is one step
	        {"maxReplica", "maxReplicas"},
	        {"maxxReplicas", "maxReplicas"},
	        {"mxReplicas", "maxReplicas"},
	        {"intervall", "interval"},
	        {"qeury", "query"},
	        {"nam", "name"},
	        {"u", "up"}, // a third of it is nothing, one step is always allowed
	        {"x", NULL},
	        {"xy", NULL},
	        {"", NULL},
	        {"unrelated", NULL},
	        {"replicas", NULL}, // 3 steps, 2 allowed
	};
	for (size_t i = 0; i < N(rows); i++) {
		const char *found = num_closest_name(rows[i].word, names, N(names));
		if (found != rows[i].closest && (!found || !rows[i].closest || strcmp(found, rows[i].closest) != 0))
			fail_msg("%s: %s", rows[i].word, found ? found : "none");
	}
	char longest[200];
	memset(longest, 'a', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	const char *const one[] = {longest};
	assert_null(num_closest_name(longest, names, N(names)));
	assert_null(num_closest_name("aaaa", one, 1));
	assert_null(num_closest_name("aaaa", NULL, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(i64_in_range_is_read),
	        cmocka_unit_test(i64_refuses_anything_else_and_leaves_the_result_alone),
	        cmocka_unit_test(only_len_bytes_are_read),
	        cmocka_unit_test(f64_decimal_numbers_are_read),
	        cmocka_unit_test(short_decimals_are_read_as_the_c_library_does),
	        cmocka_unit_test(f64_refuses_anything_else),
	        cmocka_unit_test(sample_values_of_prometheus_are_read),
	        cmocka_unit_test(quantities_follow_the_kubernetes_grammar),
	        cmocka_unit_test(invalid_quantity_is_refused_with_the_fix),
	        cmocka_unit_test(errors_show_the_text_harmless_and_short),
	        cmocka_unit_test(f64_is_written_short_and_plain),
	        cmocka_unit_test(every_double_reads_back_as_itself),
	        cmocka_unit_test(locale_does_not_matter),
	        cmocka_unit_test(closest_name_is_suggested_within_a_third),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
