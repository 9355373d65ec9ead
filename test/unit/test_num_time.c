// SPDX-License-Identifier: Apache-2.0
// Goal of this test: durations are those of Prometheus, times those of RFC 3339, and every refusal shows the fix.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/num.h"

#define N(rows) (sizeof(rows) / sizeof(rows)[0])
#define DAY_MS  INT64_C(86400000)

static void durations_follow_the_prometheus_grammar(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} rows[] = {
	        {"0", 0},
	        {"0s", 0},
	        {"1ms", 1},
	        {"90s", 90000},
	        {"1m", 60000},
	        {"1h30m", 5400000},
	        {"2d", 2 * DAY_MS},
	        {"1w", 7 * DAY_MS},
	        {"1y", 365 * DAY_MS},
	        {"1m500ms", 60500},
	        {"1y2w3d4h5m6s7ms", (365 + 14 + 3) * DAY_MS + 4 * 3600000 + 5 * 60000 + 6007},
	        {"007s", 7000},
	        {"0h0m1s", 1000},
	        {"100000h", 360000000000},
	        {"9223372036854ms", 9223372036854},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e;
		int64_t ms = -99;
		if (num_parse_duration_ms(rows[i].text, strlen(rows[i].text), &ms, &e) < 0)
			fail_msg("%s was refused: %s", rows[i].text, e.msg);
		if (ms != rows[i].ms)
			fail_msg("%s became %lld", rows[i].text, (long long)ms);
	}
}

static void invalid_duration_is_refused_with_the_fix(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
	        {"", "empty text: expected a duration, for example \"90s\""},
	        {"1.5h", "\"1.5h\" is not a duration: fractions are not allowed; write \"1h30m\""},
	        {"0.5s", "write \"500ms\""},
	        {".25d", "write \"6h\""},
	        {"0.5ms", "largest first, for example"},
	        {"90", "the unit is missing; write \"90s\""},
	        {"1.5", "write \"1s500ms\""},
	        {"0.0", "fractions are not allowed"},
	        {"00", "the unit is missing"},
	        {"-5m", "it is negative"},
	        {"+5m", "a number is missing"},
	        {" 5m", "a number is missing"},
	        {"5m ", "the unit is unknown"},
	        {"5 m", "the unit is unknown"},
	        {"5min", "the unit is unknown"},
	        {"5M", "the unit is unknown"},
	        {"5us", "the unit is unknown"},
	        {"1h1h", "a unit comes twice or after a smaller one"},
	        {"30m1h", "a unit comes twice or after a smaller one"},
	        {"1ms1s", "a unit comes twice or after a smaller one"},
	        {"1h30", "the unit is missing"},
	        {"1h.5m", "a number is missing"},
	        {"h", "a number is missing"},
	        {"1e3s", "the unit is unknown"},
	        {"293y", "is too long: expected a duration of at most 292y"},
	        {"9223372036855ms", "is too long"},
	        {"99999999999999999999s", "is too long"},
	        {"292y300d", "is too long"},
	        {"9223372036854775807y9223372036854775807w", "is too long"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e = {.msg = ""};
		int64_t ms = -99;
		if (num_parse_duration_ms(rows[i].text, strlen(rows[i].text), &ms, &e) == 0)
			fail_msg("%s was accepted as %lld", rows[i].text, (long long)ms);
		if (e.kind != ERR_INPUT || !strstr(e.msg, rows[i].says))
			fail_msg("%s: kind %d: %s", rows[i].text, e.kind, e.msg);
		assert_int_equal(ms, -99);
	}
}

// Whatever a refusal offers as the fix must itself be a duration.
static void fix_offered_is_accepted(void **state)
{
	static const char *const rows[] = {"1.5h", "0.5s", "2.25d", "90", "1.001", "99999999", "0.1w", "12.5m"};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e;
		int64_t ms;
		assert_int_equal(num_parse_duration_ms(rows[i], strlen(rows[i]), &ms, &e), -1);
		const char *fix = strstr(e.msg, "write \"");
		if (!fix) {
			fail_msg("%s: no fix in: %s", rows[i], e.msg);
			return;
		}
		fix += strlen("write \"");
		if (num_parse_duration_ms(fix, strcspn(fix, "\""), &ms, &e) < 0)
			fail_msg("%s: %s", rows[i], e.msg);
	}
}

static void duration_of_a_flag_may_have_a_fraction(void **state)
{
	static const struct {
		const char *text;
		int64_t ms; // -1: refused
	} rows[] = {
	        {"2.5s", 2500},  {"1.5h", 5400000},  {".5m", 30000}, {"2.s", 2000},  {"0.0s", 0},    {"0.0004s", 0},
	        {"90s", 90000},  {"1h30m", 5400000}, {"0", 0},       {"2.5", -1},    {"2.5.1s", -1}, {"1h2.5s", -1},
	        {"1.5h30m", -1}, {"-2.5s", -1},      {".s", -1},     {"2,5s", -1},   {"2.5S", -1},   {"2.5 s", -1},
	        {"", -1},        {"1e3s", -1},       {"+2.5s", -1},  {"999.5y", -1},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e = {.msg = ""};
		int64_t ms = -1;
		int rc = num_parse_flag_duration_ms(rows[i].text, strlen(rows[i].text), &ms, &e);
		if (ms != rows[i].ms || rc != (rows[i].ms < 0 ? -1 : 0))
			fail_msg("%s became %lld: %s", rows[i].text, (long long)ms, e.msg);
	}
}

static void durations_are_written_as_prometheus_does(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} rows[] = {
	        {0, "0s"},
	        {1, "1ms"},
	        {1000, "1s"},
	        {90000, "1m30s"},
	        {5400000, "1h30m"},
	        {90 * DAY_MS, "90d"},
	        {14 * DAY_MS, "2w"},
	        {730 * DAY_MS, "2y"},
	        {366 * DAY_MS, "366d"},
	        {-90000, "-1m30s"},
	        {DAY_MS + 1, "1d1ms"},
	        {INT64_MAX, "106751991167d7h12m55s807ms"},
	        {INT64_MIN, "-106751991167d7h12m55s808ms"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		char out[NUM_TEXT_BYTES];
		size_t n = num_format_duration_ms(out, rows[i].ms);
		if (n != strlen(out) || strcmp(out, rows[i].text) != 0)
			fail_msg("%lld became %s (%zu)", (long long)rows[i].ms, out, n);
	}
}

static void times_follow_rfc3339(void **state)
{
	static const struct {
		const char *text;
		int64_t ms;
	} rows[] = {
	        {"1970-01-01T00:00:00Z", 0},
	        {"1970-01-01T00:00:00.001Z", 1},
	        {"2026-01-05T09:00:00Z", 1767603600000},
	        {"2026-01-05t09:00:00z", 1767603600000},
	        {"2026-01-05T10:00:00+01:00", 1767603600000},
	        {"2026-01-05T03:30:00-05:30", 1767603600000},
	        {"2026-01-05T09:00:00-00:00", 1767603600000},
	        {"2026-01-06T08:59:00+23:59", 1767603600000},
	        {"2026-01-05T09:00:00.1Z", 1767603600100},
	        {"2026-01-05T09:00:00.1239999999999999999999Z", 1767603600123},
	        {"2024-02-29T00:00:00Z", 1709164800000},
	        {"2000-02-29T00:00:00Z", 951782400000},
	        {"9999-12-31T23:59:59.999Z", 253402300799999},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e;
		int64_t ms = -1;
		if (num_parse_rfc3339_ms(rows[i].text, strlen(rows[i].text), &ms, &e) < 0)
			fail_msg("%s was refused: %s", rows[i].text, e.msg);
		if (ms != rows[i].ms)
			fail_msg("%s became %lld", rows[i].text, (long long)ms);
	}
}

static void invalid_time_is_refused_with_the_reason(void **state)
{
	static const struct {
		const char *text, *says;
	} rows[] = {
	        {"", "empty text: expected an RFC 3339 time"},
	        {"2026-01-05", "it is not written as date, T, time"},
	        {"2026-01-05 09:00:00Z", "it is not written as date, T, time"},
	        {"2026-1-5T9:00:00Z", "it is not written as date, T, time"},
	        {"26-01-05T09:00:00Z", "it is not written as date, T, time"},
	        {"1767603600", "it is not written as date, T, time"},
	        {"2026-01-05T09:00Z", "it is not written as date, T, time"},
	        {"+2026-01-05T09:00:00Z", "it is not written as date, T, time"},
	        {"1969-12-31T23:59:59Z", "the year is before 1970"},
	        {"2026-00-05T09:00:00Z", "the month is not 01..12"},
	        {"2026-13-05T09:00:00Z", "the month is not 01..12"},
	        {"2026-01-00T09:00:00Z", "that month has no such day"},
	        {"2026-01-32T09:00:00Z", "that month has no such day"},
	        {"2026-04-31T09:00:00Z", "that month has no such day"},
	        {"2023-02-29T09:00:00Z", "that month has no such day"},
	        {"2100-02-29T09:00:00Z", "that month has no such day"},
	        {"2026-01-05T24:00:00Z", "the time of day is not 00:00..23:59"},
	        {"2026-01-05T09:60:00Z", "the time of day is not 00:00..23:59"},
	        {"2016-12-31T23:59:60Z", "leap seconds (:60) are not supported, write :59"},
	        {"2016-12-31T23:59:61Z", "the seconds are not 00..59"},
	        {"2026-01-05T09:00:00", "the zone is missing"},
	        {"2026-01-05T09:00:00.5", "the zone is missing"},
	        {"2026-01-05T09:00:00.Z", "digits are missing after the point"},
	        {"2026-01-05T09:00:00,5Z", "the zone is neither Z nor an offset"},
	        {"2026-01-05T09:00:00CET", "the zone is neither Z nor an offset"},
	        {"2026-01-05T09:00:00+0100", "the zone is neither Z nor an offset"},
	        {"2026-01-05T09:00:00+01", "the zone is neither Z nor an offset"},
	        {"2026-01-05T09:00:00+24:00", "the offset is not 00:00..23:59"},
	        {"2026-01-05T09:00:00+00:60", "the offset is not 00:00..23:59"},
	        {"2026-01-05T09:00:00Z ", "there is text after the zone"},
	        {"2026-01-05T09:00:00+01:00Z", "there is text after the zone"},
	        {"1970-01-01T00:00:00+01:00", "in UTC it is outside the years 1970..9999"},
	        {"9999-12-31T23:59:59-01:00", "in UTC it is outside the years 1970..9999"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct err e = {.msg = ""};
		int64_t ms = -99;
		if (num_parse_rfc3339_ms(rows[i].text, strlen(rows[i].text), &ms, &e) == 0)
			fail_msg("%s was accepted as %lld", rows[i].text, (long long)ms);
		if (e.kind != ERR_INPUT || !strstr(e.msg, rows[i].says))
			fail_msg("%s: kind %d: %s", rows[i].text, e.kind, e.msg);
		assert_int_equal(ms, -99);
	}
}

static void times_are_written_in_utc(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} rows[] = {
	        {0, "1970-01-01T00:00:00Z"},
	        {1767603600000, "2026-01-05T09:00:00Z"},
	        {1767603600007, "2026-01-05T09:00:00.007Z"},
	        {253402300799999, "9999-12-31T23:59:59.999Z"},
	        {-1, "1969-12-31T23:59:59.999Z"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		char out[NUM_TEXT_BYTES];
		size_t n = num_format_rfc3339_ms(out, rows[i].ms);
		if (n != strlen(out) || strcmp(out, rows[i].text) != 0)
			fail_msg("%lld became %s (%zu)", (long long)rows[i].ms, out, n);
	}
	char out[NUM_TEXT_BYTES];
	assert_true(num_format_rfc3339_ms(out, INT64_MAX) < NUM_TEXT_BYTES);
	assert_true(num_format_rfc3339_ms(out, INT64_MIN) < NUM_TEXT_BYTES);
}

// Against a calendar that counts one day after the other, for the years 1970..9999.
static void every_day_is_written_and_read_as_the_calendar_says(void **state)
{
	static const int days_in_month[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	int64_t day = 0;
	for (int year = 1970; year <= 9999; year++) {
		for (int month = 1; month <= 12; month++) {
			bool leap = year % 400 == 0 || (year % 4 == 0 && year % 100 != 0);
			int days = days_in_month[month - 1] + (month == 2 && leap);
			for (int d = 1; d <= days; d++, day++) {
				char out[NUM_TEXT_BYTES], expected[NUM_TEXT_BYTES];
				int64_t ms = 0, expected_ms = day * DAY_MS + day % 86400 * 1000;
				int second = (int)(day % 86400);
				snprintf(expected, sizeof expected, "%04d-%02d-%02dT%02d:%02d:%02dZ", year, month, d,
				         second / 3600, second / 60 % 60, second % 60);
				size_t n = num_format_rfc3339_ms(out, expected_ms);
				if (strcmp(out, expected) != 0)
					fail_msg("%lld ms: %s, expected %s", (long long)expected_ms, out, expected);
				if (num_parse_rfc3339_ms(out, n, &ms, NULL) < 0 || ms != expected_ms)
					fail_msg("%s became %lld", out, (long long)ms);
			}
		}
	}
	assert_int_equal(day, 2932897);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(durations_follow_the_prometheus_grammar),
	        cmocka_unit_test(invalid_duration_is_refused_with_the_fix),
	        cmocka_unit_test(fix_offered_is_accepted),
	        cmocka_unit_test(duration_of_a_flag_may_have_a_fraction),
	        cmocka_unit_test(durations_are_written_as_prometheus_does),
	        cmocka_unit_test(times_follow_rfc3339),
	        cmocka_unit_test(invalid_time_is_refused_with_the_reason),
	        cmocka_unit_test(times_are_written_in_utc),
	        cmocka_unit_test(every_day_is_written_and_read_as_the_calendar_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
