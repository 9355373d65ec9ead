// SPDX-License-Identifier: Apache-2.0
// Goal of this test: cron expressions are read as crontab(5) says, their faults are named by field, and the calendar
// finds the last and the next match of any moment: checked against a walk minute by minute.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/num.h"
#include "policies/engine/cron.h"

static int64_t at(const char *text) // "2026-01-05T09:00:00", on any wall clock
{
	char utc[32];
	int64_t ms;
	struct err e;
	snprintf(utc, sizeof utc, "%sZ", text);
	if (num_parse_rfc3339_ms(utc, strlen(utc), &ms, &e) < 0)
		fail_msg("%s", e.msg);
	return ms / 1000;
}

static struct cron cron_of(const char *text)
{
	struct cron c;
	const char *fault = cron_parse(&c, text);
	if (fault)
		fail_msg("%s: %s", text, fault);
	return c;
}

static const struct {
	const char *text, *now, *before, *after; // NULL = never
} rows[] = {
        {"0 8 * * 1-5", "2026-01-05T09:00:00", "2026-01-05T08:00:00", "2026-01-06T08:00:00"}, // a Monday
        {"0 8 * * 1-5", "2026-01-05T08:00:00", "2026-01-05T08:00:00", "2026-01-06T08:00:00"},
        {"0 8 * * 1-5", "2026-01-05T07:59:59", "2026-01-02T08:00:00", "2026-01-05T08:00:00"},
        {"0 8 * * 1-5", "2026-01-10T12:00:00", "2026-01-09T08:00:00", "2026-01-12T08:00:00"},
        {"0 8 * * MON-FRI", "2026-01-10T12:00:00", "2026-01-09T08:00:00", "2026-01-12T08:00:00"},
        {"*/15 * * * *", "2026-01-05T09:07:30", "2026-01-05T09:00:00", "2026-01-05T09:15:00"},
        {"5/20 * * * *", "2026-01-05T09:07:30", "2026-01-05T09:05:00", "2026-01-05T09:25:00"},
        {"10-30/10,50 9 * * *", "2026-01-05T09:31:00", "2026-01-05T09:30:00", "2026-01-05T09:50:00"},
        {"30 22-23,0-6 * * *", "2026-01-05T12:00:00", "2026-01-05T06:30:00", "2026-01-05T22:30:00"},
        {"0 0 1 * *", "2026-01-31T12:00:00", "2026-01-01T00:00:00", "2026-02-01T00:00:00"},
        {"0 0 31 * *", "2026-02-10T00:00:00", "2026-01-31T00:00:00", "2026-03-31T00:00:00"},
        {"0 0 * jun-AUG sun", "2026-05-31T00:00:00", "2025-08-31T00:00:00", "2026-06-07T00:00:00"},
        {"0 0 * * 7", "2026-01-05T00:00:00", "2026-01-04T00:00:00", "2026-01-11T00:00:00"},
        {"0 0 * * FRI-SUN", "2026-01-05T00:00:00", "2026-01-04T00:00:00", "2026-01-09T00:00:00"},
        {"0 0 * * 5-7", "2026-01-05T00:00:00", "2026-01-04T00:00:00", "2026-01-09T00:00:00"},
        // either day field, unless one begins with '*': then both
        {"0 0 13 * 5", "2026-01-03T00:00:00", "2026-01-02T00:00:00", "2026-01-09T00:00:00"},
        {"0 0 13 * 5", "2026-01-10T00:00:00", "2026-01-09T00:00:00", "2026-01-13T00:00:00"},
        {"0 0 */2 * MON", "2026-01-05T12:00:00", "2026-01-05T00:00:00", "2026-01-19T00:00:00"},
        {"0 0 29 2 *", "2026-01-01T00:00:00", "2024-02-29T00:00:00", "2028-02-29T00:00:00"},
        {"0 0 29 2 *", "2097-01-01T00:00:00", "2096-02-29T00:00:00", "2104-02-29T00:00:00"},
        {"0 0 30 2 *", "2026-01-01T00:00:00", NULL, NULL},
        {"59 23 31 12 *", "2026-06-01T00:00:00", "2025-12-31T23:59:00", "2026-12-31T23:59:00"},
        {"  0\t8   * * *  ", "2026-01-05T09:00:00", "2026-01-05T08:00:00", "2026-01-06T08:00:00"},
        {"0 0 1 1 *", "1970-01-01T00:00:00", "1970-01-01T00:00:00", "1971-01-01T00:00:00"},
};

static void matches_are_found_both_ways(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct cron c = cron_of(rows[i].text);
		int64_t now_s = at(rows[i].now);
		int64_t before = rows[i].before ? at(rows[i].before) : CRON_BEFORE_ALL;
		int64_t after = rows[i].after ? at(rows[i].after) : CRON_AFTER_ALL;
		if (cron_at_or_before(&c, now_s) != before || cron_after(&c, now_s) != after)
			fail_msg("%s at %s: %lld and %lld, must be %lld and %lld", rows[i].text, rows[i].now,
			         (long long)cron_at_or_before(&c, now_s), (long long)cron_after(&c, now_s),
			         (long long)before, (long long)after);
	}
}

static void faults_name_the_field(void **state)
{
	static const struct {
		const char *text, *fault;
	} bad[] = {
	        {"", "must have five fields"},
	        {"0 8 * *", "must have five fields"},
	        {"0 8 * * * *", "must have five fields"},
	        {"@daily", "must have five fields"},
	        {"60 8 * * *", "minute"},
	        {"-1 8 * * *", "minute"},
	        {"*/0 8 * * *", "minute"},
	        {"*/ 8 * * *", "minute"},
	        {"0, 8 * * *", "minute"},
	        {"00000 8 * * *", "minute"},
	        {"? 8 * * *", "minute"},
	        {"0 24 * * *", "hour"},
	        {"0 22-6 * * *", "hour"},
	        {"0 8h * * *", "hour"},
	        {"0 8 0 * *", "day of the month"},
	        {"0 8 32 * *", "day of the month"},
	        {"0 8 L * *", "day of the month"},
	        {"0 8 * 13 *", "month"},
	        {"0 8 * 0 *", "month"},
	        {"0 8 * january *", "month"},
	        {"0 8 * * 8", "day of the week"},
	        {"0 8 * * MON-", "day of the week"},
	        {"0 8 * * FRI-MON", "day of the week"},
	        {"0 8 * * 1#2", "day of the week"},
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct cron c;
		const char *fault = cron_parse(&c, bad[i].text);
		if (!fault || strncmp(fault, bad[i].fault, strlen(bad[i].fault)) != 0)
			fail_msg("%s: %s, must be about %s", bad[i].text, fault ? fault : "taken", bad[i].fault);
	}
	char longest[CRON_TEXT_BYTES_MAX + 2];
	memset(longest, ' ', sizeof longest);
	longest[sizeof longest - 1] = '\0';
	struct cron c;
	assert_string_equal(cron_parse(&c, longest), "must be at most 256 bytes long");
}

static void walk_minute_by_minute_finds_the_same(void **state)
{
	static const char *const texts[] = {"*/7 */5 * * *", "30 3 */3 * 2-4", "0 12 1,15 1-3 sat",
	                                    "15,45 6-9 28-31 * *"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct cron c = cron_of(texts[i]);
		int64_t first = cron_after(&c, at("2027-12-30T00:00:00"));
		int64_t last = first;
		for (int64_t t = first; t < first + 70 * 86400; t += 60) {
			// t is a match exactly when it is the last one at itself
			if (cron_at_or_before(&c, t) == t)
				last = t;
			assert_true(cron_at_or_before(&c, t) == last);
			assert_true(cron_at_or_before(&c, t + 59) == last);
			int64_t next = cron_after(&c, t);
			assert_true(next > t && cron_at_or_before(&c, next) == next);
			assert_true(cron_at_or_before(&c, next - 1) == last);
		}
	}
}

static void ends_of_time_are_survived(void **state)
{
	struct cron c = cron_of("* * * * *");
	static const int64_t times[] = {INT64_MIN, INT64_MIN + 1, -1, 0, INT64_MAX - 1, INT64_MAX};
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
		cron_at_or_before(&c, times[i]);
		cron_after(&c, times[i]);
	}
	assert_true(cron_at_or_before(&c, -1) == -60);
	assert_true(cron_after(&c, -1) == 0);
	assert_true(cron_after(&c, INT64_MAX) == CRON_AFTER_ALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(matches_are_found_both_ways),
	        cmocka_unit_test(faults_name_the_field),
	        cmocka_unit_test(walk_minute_by_minute_finds_the_same),
	        cmocka_unit_test(ends_of_time_are_survived),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
