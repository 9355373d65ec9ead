// SPDX-License-Identifier: Apache-2.0
// Goal of this test: local times become moments also where a clock jumps: a time in a gap happens at the jump, a time
// that comes twice happens the first time. Zurich and New York, their transitions written out; other zones by law.
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
#include "base/tz/tzfile.h"
#include "policies/engine/schedule.h"
#include "test/support/timezone_local.h"

#define TIMES_MAX 300

static int64_t utc(const char *text)
{
	int64_t ms;
	struct err e;
	if (num_parse_rfc3339_ms(text, strlen(text), &ms, &e) < 0)
		fail_msg("%s", e.msg);
	return ms / 1000;
}

static int64_t local(const char *text) // without zone
{
	char z[40];
	snprintf(z, sizeof z, "%sZ", text);
	return utc(z);
}

struct zone {
	int64_t at_s[TIMES_MAX];
	int32_t offset_s[TIMES_MAX];
	struct tz_table table;
};

static void make(struct zone *z, const char *rule)
{
	int32_t first;
	int n = tzfile_rule(rule, 1996, z->at_s, z->offset_s, TIMES_MAX, &first);
	assert_true(n >= 0);
	z->table = (struct tz_table){z->at_s, z->offset_s, (size_t)n, first};
}

#define ZURICH   "CET-1CEST,M3.5.0,M10.5.0/3"
#define NEW_YORK "EST5EDT,M3.2.0,M11.1.0"

// The IANA database's transitions of these years.
static void summer_time_begins_and_ends_on_its_days(void **state)
{
	static const struct {
		const char *rule, *begins, *ends;
	} rows[] = {
	        {ZURICH, "2024-03-31T01:00:00Z", "2024-10-27T01:00:00Z"},
	        {ZURICH, "2025-03-30T01:00:00Z", "2025-10-26T01:00:00Z"},
	        {ZURICH, "2026-03-29T01:00:00Z", "2026-10-25T01:00:00Z"},
	        {ZURICH, "2027-03-28T01:00:00Z", "2027-10-31T01:00:00Z"},
	        {ZURICH, "2028-03-26T01:00:00Z", "2028-10-29T01:00:00Z"},
	        {NEW_YORK, "2024-03-10T07:00:00Z", "2024-11-03T06:00:00Z"},
	        {NEW_YORK, "2025-03-09T07:00:00Z", "2025-11-02T06:00:00Z"},
	        {NEW_YORK, "2026-03-08T07:00:00Z", "2026-11-01T06:00:00Z"},
	        {NEW_YORK, "2027-03-14T07:00:00Z", "2027-11-07T06:00:00Z"},
	        {NEW_YORK, "2028-03-12T07:00:00Z", "2028-11-05T06:00:00Z"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct zone z;
		make(&z, rows[i].rule);
		int64_t winter = strcmp(rows[i].rule, ZURICH) == 0 ? 3600 : -18000;
		int64_t begins = utc(rows[i].begins), ends = utc(rows[i].ends);
		assert_true(timezone_local(&z.table, begins - 1) == begins - 1 + winter);
		assert_true(timezone_local(&z.table, begins) == begins + winter + 3600);
		assert_true(timezone_local(&z.table, ends - 1) == ends - 1 + winter + 3600);
		assert_true(timezone_local(&z.table, ends) == ends + winter);
	}
}

static void local_times_happen_once(void **state)
{
	static const struct {
		const char *rule, *local, *utc;
	} rows[] = {
	        {ZURICH, "2026-01-05T08:00:00", "2026-01-05T07:00:00Z"},
	        {ZURICH, "2026-07-05T08:00:00", "2026-07-05T06:00:00Z"},
	        // the gap of spring: 02:00 .. 03:00 happens at the jump
	        {ZURICH, "2026-03-29T01:59:59", "2026-03-29T00:59:59Z"},
	        {ZURICH, "2026-03-29T02:00:00", "2026-03-29T01:00:00Z"},
	        {ZURICH, "2026-03-29T02:30:00", "2026-03-29T01:00:00Z"},
	        {ZURICH, "2026-03-29T03:00:00", "2026-03-29T01:00:00Z"},
	        {ZURICH, "2026-03-29T03:00:01", "2026-03-29T01:00:01Z"},
	        // the overlap of autumn: 02:00 .. 03:00 comes twice and happens the first time
	        {ZURICH, "2026-10-25T01:59:59", "2026-10-24T23:59:59Z"},
	        {ZURICH, "2026-10-25T02:00:00", "2026-10-25T00:00:00Z"},
	        {ZURICH, "2026-10-25T02:30:00", "2026-10-25T00:30:00Z"},
	        {ZURICH, "2026-10-25T02:59:59", "2026-10-25T00:59:59Z"},
	        {ZURICH, "2026-10-25T03:00:00", "2026-10-25T02:00:00Z"},
	        {NEW_YORK, "2026-03-08T01:59:59", "2026-03-08T06:59:59Z"},
	        {NEW_YORK, "2026-03-08T02:30:00", "2026-03-08T07:00:00Z"},
	        {NEW_YORK, "2026-03-08T03:00:00", "2026-03-08T07:00:00Z"},
	        {NEW_YORK, "2026-11-01T01:30:00", "2026-11-01T05:30:00Z"},
	        {NEW_YORK, "2026-11-01T02:00:00", "2026-11-01T07:00:00Z"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct zone z;
		make(&z, rows[i].rule);
		int64_t moment = timezone_moment(&z.table, local(rows[i].local));
		if (moment != utc(rows[i].utc))
			fail_msg("%s %s: %lld s off", rows[i].rule, rows[i].local,
			         (long long)(moment - utc(rows[i].utc)));
	}
	assert_true(timezone_moment(NULL, 12345) == 12345 && timezone_reached(NULL, 12345) == 12345);
	assert_true(timezone_local(NULL, 12345) == 12345);
}

static void last_and_next_change_agree(void **state)
{
	static const char *const rules[] = {
	        ZURICH,
	        NEW_YORK,
	        "UTC0",
	        "<+0545>-5:45",
	        "IST-1GMT0,M10.5.0,M3.5.0/1",           // Dublin: winter time is the exception
	        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", // Lord Howe: half an hour
	        "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1",     // Nuuk: changes the evening before
	        "EET-2EEST,M3.4.4/50,M10.4.4/50",       // 50 hours after a Thursday begins
	        "XXX-3YYY-24,J100/1,J101/1",            // a day of madness
	        "XXX3EDT4,0/0,J365/23",                 // summer time all year
	};
	for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
		struct zone z;
		make(&z, rules[i]);
		for (size_t k = 1; k < z.table.n; k++)
			assert_true(z.at_s[k] > z.at_s[k - 1]);
		int64_t from = utc("2026-01-01T00:00:00Z"), reached = 0;
		for (int64_t u = from; u < from + 366 * 86400; u += 450) {
			int64_t r = timezone_reached(&z.table, u);
			assert_true(r >= timezone_local(&z.table, u) && r >= reached); // never goes back
			reached = r;
			assert_true(timezone_moment(&z.table, r) <= u);
			assert_true(timezone_moment(&z.table, r + 1) > u);
			int64_t m = timezone_moment(&z.table, u); // u as a local time
			assert_true(timezone_reached(&z.table, m) >= u && timezone_reached(&z.table, m - 1) < u);
		}
	}
}

static void rules_that_cannot_be_read_are_refused(void **state)
{
	static const char *const bad[] = {
	        "",
	        "CET",
	        "CE-1",
	        "CET-25",
	        "CET-1CEST",
	        "CET-1CEST,M3.5.0",
	        "<CET-1",
	        "CET-1CEST,M13.5.0,M10.5.0",
	        "CET-1CEST,M3.6.0,M10.5.0",
	        "CET-1CEST,M3.5.7,M10.5.0",
	        "CET-1CEST,J0,J365",
	        "CET-1CEST,366,1",
	        "CET-1CEST,M3.5.0/168,M10.5.0",
	        "CET-1CEST,M3.5.0,M10.5.0 ",
	        "CET-1CEST,M3.5.0,M10.5.0/3:60",
	        "CET-1 ",
	        "CET--1",
	        "CET-1CEST;M3.5.0;M10.5.0",
	        "CET-1CEST,M3,M10",
	        "CET-00001",
	};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct zone z;
		int32_t first;
		if (tzfile_rule(bad[i], 2000, z.at_s, z.offset_s, TIMES_MAX, &first) >= 0)
			fail_msg("\"%s\" was taken", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(summer_time_begins_and_ends_on_its_days),
	        cmocka_unit_test(local_times_happen_once),
	        cmocka_unit_test(last_and_next_change_agree),
	        cmocka_unit_test(rules_that_cannot_be_read_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
