// SPDX-License-Identifier: Apache-2.0
// Goal of this test: schedules open and close at the local times they name, also on the days on which the clocks of
// Zurich and New York jump; the one that opened last wins; and the engine goes to their bounds at once.
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
#include "test/support/engine.h"

#define TIMES_MAX 300
#define ZURICH    "CET-1CEST,M3.5.0,M10.5.0/3"
#define NEW_YORK  "EST5EDT,M3.2.0,M11.1.0"

static int64_t utc_ms(const char *text)
{
	int64_t ms;
	struct err e;
	if (num_parse_rfc3339_ms(text, strlen(text), &ms, &e) < 0)
		fail_msg("%s", e.msg);
	return ms;
}

struct zone {
	int64_t at_s[TIMES_MAX];
	int32_t offset_s[TIMES_MAX];
	struct tz_table table;
};

static struct zone zurich, new_york;

static void make(struct zone *z, const char *rule)
{
	int32_t first;
	int n = tzfile_rule(rule, 2000, z->at_s, z->offset_s, TIMES_MAX, &first);
	assert_true(n > 0);
	z->table = (struct tz_table){z->at_s, z->offset_s, (size_t)n, first};
}

static int set_up(void **state)
{
	make(&zurich, ZURICH);
	make(&new_york, NEW_YORK);
	return 0;
}

static struct policy_schedule schedule(const char *start, const char *end, const struct zone *zone)
{
	struct policy_schedule s = {.name = "s", .start_text = start, .end_text = end, .time_zone = zone ? "X" : "UTC"};
	const char *fault = cron_parse(&s.start, start);
	fault = fault ? fault : cron_parse(&s.end, end);
	if (fault)
		fail_msg("%s .. %s: %s", start, end, fault);
	s.zone = zone ? &zone->table : NULL;
	return s;
}

static void windows_open_and_close_on_the_wall_clock(void **state)
{
	static const struct {
		const struct zone *zone;
		const char *start, *end, *closed_before, *opens, *closes; // one minute before; UTC
	} rows[] = {
	        // office hours, the Friday before and the Monday after the jumps
	        {&zurich, "0 8 * * 1-5", "0 20 * * 1-5", "2026-03-27T06:59:00Z", "2026-03-27T07:00:00Z",
	         "2026-03-27T19:00:00Z"},
	        {&zurich, "0 8 * * 1-5", "0 20 * * 1-5", "2026-03-30T05:59:00Z", "2026-03-30T06:00:00Z",
	         "2026-03-30T18:00:00Z"},
	        {&zurich, "0 8 * * 1-5", "0 20 * * 1-5", "2026-10-26T06:59:00Z", "2026-10-26T07:00:00Z",
	         "2026-10-26T19:00:00Z"},
	        {&new_york, "0 8 * * 1-5", "0 20 * * 1-5", "2026-03-09T11:59:00Z", "2026-03-09T12:00:00Z",
	         "2026-03-10T00:00:00Z"},
	        {&new_york, "0 8 * * 1-5", "0 20 * * 1-5", "2026-11-02T12:59:00Z", "2026-11-02T13:00:00Z",
	         "2026-11-03T01:00:00Z"},
	        // over midnight, and over the jump: 23 and 25 hours of a day
	        {&zurich, "0 22 * * *", "0 6 * * *", "2026-03-28T20:59:00Z", "2026-03-28T21:00:00Z",
	         "2026-03-29T04:00:00Z"},
	        {&zurich, "0 22 * * *", "0 6 * * *", "2026-10-24T19:59:00Z", "2026-10-24T20:00:00Z",
	         "2026-10-25T05:00:00Z"},
	        // a start that the clock skips is taken at the jump
	        {&zurich, "30 2 * * *", "0 5 * * *", "2026-03-29T00:59:00Z", "2026-03-29T01:00:00Z",
	         "2026-03-29T03:00:00Z"},
	        {&new_york, "30 2 * * *", "0 5 * * *", "2026-03-08T06:59:00Z", "2026-03-08T07:00:00Z",
	         "2026-03-08T09:00:00Z"},
	        // so is an end
	        {&zurich, "0 1 * * *", "30 2 * * *", "2026-03-28T23:59:00Z", "2026-03-29T00:00:00Z",
	         "2026-03-29T01:00:00Z"},
	        // a time that comes twice is taken the first time
	        {&zurich, "30 2 * * *", "0 5 * * *", "2026-10-25T00:29:00Z", "2026-10-25T00:30:00Z",
	         "2026-10-25T04:00:00Z"},
	        {&zurich, "0 1 * * *", "30 2 * * *", "2026-10-24T22:59:00Z", "2026-10-24T23:00:00Z",
	         "2026-10-25T00:30:00Z"},
	        {&new_york, "30 1 * * *", "0 3 * * *", "2026-11-01T05:29:00Z", "2026-11-01T05:30:00Z",
	         "2026-11-01T08:00:00Z"},
	        {&new_york, "0 0 * * *", "30 1 * * *", "2026-11-01T03:59:00Z", "2026-11-01T04:00:00Z",
	         "2026-11-01T05:30:00Z"},
	        {NULL, "0 8 29 2 *", "0 20 * * *", "2028-02-29T07:59:00Z", "2028-02-29T08:00:00Z",
	         "2028-02-29T20:00:00Z"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct policy_schedule s = schedule(rows[i].start, rows[i].end, rows[i].zone);
		struct policy p = {.schedules = &s, .n_schedules = 1};
		int64_t opens = utc_ms(rows[i].opens), closes = utc_ms(rows[i].closes), until;
		bool ok = schedule_at(&p, utc_ms(rows[i].closed_before), &until) == -1 && until == opens;
		ok = ok && schedule_at(&p, opens - 1, &until) == -1 && until == opens;
		ok = ok && schedule_at(&p, opens, &until) == 0 && until <= closes;
		ok = ok && schedule_at(&p, closes - 1, &until) == 0 && until == closes;
		ok = ok && schedule_at(&p, closes, &until) == -1;
		if (!ok)
			fail_msg("row %zu: %s .. %s at %s", i, rows[i].start, rows[i].end, rows[i].opens);
	}
}

static void window_that_lies_in_the_gap_does_not_open(void **state)
{
	struct policy_schedule s = schedule("10 2 * * *", "50 2 * * *", &zurich);
	struct policy p = {.schedules = &s, .n_schedules = 1};
	int64_t until;
	for (int64_t t = utc_ms("2026-03-29T00:00:00Z"); t < utc_ms("2026-03-29T04:00:00Z"); t += 60000)
		assert_int_equal(schedule_at(&p, t, &until), -1);
	assert_int_equal(schedule_at(&p, utc_ms("2026-03-30T00:10:00Z"), &until), 0);
}

// Both happen at the jump, and in wall-clock time the end is before the start: one window closes, the next opens.
static void window_that_ends_and_starts_in_the_gap_stays_open(void **state)
{
	struct policy_schedule s = schedule("50 2 * * *", "10 2 * * *", &zurich);
	struct policy p = {.schedules = &s, .n_schedules = 1};
	int64_t until;
	for (int64_t t = utc_ms("2026-03-29T00:00:00Z"); t < utc_ms("2026-03-29T04:00:00Z"); t += 60000)
		assert_int_equal(schedule_at(&p, t, &until), 0);
	assert_int_equal(schedule_at(&p, utc_ms("2026-03-30T00:09:00Z"), &until), 0);
	assert_int_equal(schedule_at(&p, utc_ms("2026-03-30T00:10:00Z"), &until), -1);
}

// Every start and end of some days, one by one, against the search.
static void walk_minute_by_minute_finds_the_same(void **state)
{
	static const struct {
		const struct zone *zone;
		const char *start, *end, *from;
	} rows[] = {
	        {&zurich, "*/20 0-4 * * *", "10-50/25 * * * *", "2026-03-27T00:00:00Z"},
	        {&zurich, "*/20 0-4 * * *", "10-50/25 * * * *", "2026-10-23T00:00:00Z"},
	        {&new_york, "15 1,2,3 * * SUN", "45 1-3 * * *", "2026-03-06T00:00:00Z"},
	        {&new_york, "15 1,2,3 * * SUN", "45 1-3 * * *", "2026-10-30T00:00:00Z"},
	        {NULL, "0 * * * *", "0 */5 * * *", "2026-01-01T00:00:00Z"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct policy_schedule s = schedule(rows[i].start, rows[i].end, rows[i].zone);
		struct policy p = {.schedules = &s, .n_schedules = 1};
		int64_t from_s = utc_ms(rows[i].from) / 1000, until_ms, l = from_s - 8 * 86400;
		int64_t last_start = INT64_MIN, last_end = INT64_MIN; // local
		for (int64_t u = from_s; u < from_s + 5 * 86400; u += 60) {
			for (; timezone_moment(s.zone, l) <= u; l += 60) {
				last_start = cron_at_or_before(&s.start, l) == l ? l : last_start;
				last_end = cron_at_or_before(&s.end, l) == l ? l : last_end;
			}
			int32_t want = last_start > last_end ? 0 : -1;
			if (schedule_at(&p, u * 1000, &until_ms) != want)
				fail_msg("row %zu: at %lld", i, (long long)u);
			assert_true(until_ms > u * 1000);
		}
	}
}

static void window_that_opened_last_wins(void **state)
{
	struct policy_schedule s[] = {
	        schedule("0 6 * * *", "0 22 * * *", NULL),  // day
	        schedule("0 12 * * *", "0 14 * * *", NULL), // lunch, inside it
	        schedule("0 6 * * 6", "0 22 * * 6", NULL),  // Saturday, as the day: stands further down
	        schedule("0 9 * * *", "0 13 * * *", &zurich),
	};
	struct policy p = {.schedules = s, .n_schedules = 3};
	static const struct {
		const char *at;
		size_t n;
		int32_t want;
	} rows[] = {
	        {"2026-01-05T05:59:59Z", 3, -1}, {"2026-01-05T06:00:00Z", 3, 0},  {"2026-01-05T12:00:00Z", 3, 1},
	        {"2026-01-05T14:00:00Z", 3, 0},  {"2026-01-05T22:00:00Z", 3, -1}, {"2026-01-10T06:00:00Z", 3, 2},
	        {"2026-01-10T13:00:00Z", 3, 1},  {"2026-01-10T15:00:00Z", 3, 2},  {"2026-01-05T08:00:00Z", 4, 3},
	        {"2026-07-06T07:00:00Z", 4, 3},  {"2026-07-06T11:00:00Z", 4, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int64_t until;
		p.n_schedules = rows[i].n;
		if (schedule_at(&p, utc_ms(rows[i].at), &until) != rows[i].want)
			fail_msg("row %zu: %s: %d", i, rows[i].at, schedule_at(&p, utc_ms(rows[i].at), &until));
	}
}

static void largest_of_the_open_windows_with_max_is_in_force(void **state)
{
	struct policy_schedule s[] = {
	        schedule("0 6 * * *", "0 22 * * *", NULL),     // day
	        schedule("0 12 * * *", "0 14 * * *", &zurich), // lunch, smaller, inside it
	        schedule("0 13 1 * *", "0 23 1 * *", NULL),    // the first of the month
	        schedule("0 6 * * 6", "0 22 * * 6", NULL),     // Saturday, as the day
	        schedule("30 12 5 1 *", "40 12 5 1 *", NULL),  // without Max: the latest
	};
	static const int32_t floors[] = {5, 3, 9, 5, 1};
	static const struct {
		const char *at;
		int32_t want;
	} rows[] = {
	        {"2026-01-05T05:59:59Z", -1}, {"2026-01-05T06:00:00Z", 0}, {"2026-01-05T11:30:00Z", 0},
	        {"2026-01-05T12:30:00Z", 4},  {"2026-01-05T12:40:00Z", 0}, {"2026-01-01T13:00:00Z", 2},
	        {"2026-01-01T22:30:00Z", 2},  {"2026-01-10T07:00:00Z", 3},
	};
	struct policy p = {.schedules = s, .n_schedules = 5};
	for (size_t i = 0; i < 5; i++) {
		s[i].combine = i < 4 ? SCHEDULE_MAX : SCHEDULE_LATEST;
		s[i].min_set = i != 2;
		s[i].min_replicas = floors[i];
		s[i].replicas_set = i == 2;
		s[i].replicas = floors[i];
	}
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int64_t until;
		if (schedule_at(&p, utc_ms(rows[i].at), &until) != rows[i].want)
			fail_msg("row %zu: %s: %d", i, rows[i].at, schedule_at(&p, utc_ms(rows[i].at), &until));
	}
}

static void bounds_come_from_the_schedule_where_it_sets_them(void **state)
{
	static const struct {
		struct policy_schedule s;
		int32_t min, max;
	} rows[] = {
	        {{.min_set = true, .min_replicas = 4}, 4, 10},
	        {{.max_set = true, .max_replicas = 5}, 2, 5},
	        {{.min_set = true, .min_replicas = 4, .max_set = true, .max_replicas = 40}, 4, 40},
	        {{.replicas_set = true, .replicas = 3}, 3, 3},
	        {{.replicas_set = true, .replicas = 0}, 0, 0},
	        {{.min_set = true, .min_replicas = 12}, 12, 12}, // check refuses these two
	        {{.max_set = true, .max_replicas = 1}, 1, 1},
	};
	const struct policy p = {.min_replicas = 2, .max_replicas = 10};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		int32_t min, max;
		schedule_bounds(&p, &rows[i].s, &min, &max);
		assert_int_equal(min, rows[i].min);
		assert_int_equal(max, rows[i].max);
	}
}

// ---- the engine ----

static void start(struct engine *e, struct policy_schedule *s, size_t n, int32_t replicas, const char *now)
{
	engine_init(e, replicas);
	e->policy.max_replicas = 10;
	e->policy.schedules = s;
	e->policy.n_schedules = n;
	e->now_ms = utc_ms(now);
	engine_add_replicas(e, "asked");
	engine_start(e);
	engine_show(e, 0, replicas);
}

static const struct decision *tick_at(struct engine *e, const char *now)
{
	e->now_ms = utc_ms(now);
	engine_tick(e);
	engine_apply(e);
	return &e->decision;
}

static void scale_goes_to_the_bounds_when_they_change(void **state)
{
	struct policy_schedule s[] = {schedule("0 8 * * *", "0 20 * * *", &zurich)};
	s[0].min_set = true;
	s[0].min_replicas = 4;
	struct engine e;
	start(&e, s, 1, 2, "2026-01-05T06:00:00Z");
	assert_int_equal(tick_at(&e, "2026-01-05T06:59:59Z")->desired, 2);
	assert_null(engine_find(&e, REASON_SCHEDULE_ACTIVE));
	const struct decision *d = tick_at(&e, "2026-01-05T07:00:00Z");
	assert_int_equal(d->desired, 4);
	assert_int_equal(d->reason, REASON_TOO_FEW_REPLICAS);
	assert_int_equal(d->min_replicas, 4);
	const struct trace_entry *t = engine_find(&e, REASON_SCHEDULE_ACTIVE);
	assert_non_null(t);
	assert_int_equal(t->count, 0);
	assert_int_equal(t->duration_ms, 12 * 3600000);
	assert_int_equal(tick_at(&e, "2026-01-05T18:59:59Z")->desired, 4);
	assert_int_equal(tick_at(&e, "2026-01-05T19:00:00Z")->desired, 2); // as asked for
	assert_int_equal(e.decision.min_replicas, 1);
	engine_done(&e);
}

static void schedule_to_zero_comes_back(void **state)
{
	struct policy_schedule s[] = {schedule("0 20 * * *", "0 8 * * *", NULL)};
	s[0].replicas_set = true;
	struct engine e;
	start(&e, s, 1, 3, "2026-01-05T12:00:00Z");
	assert_int_equal(tick_at(&e, "2026-01-05T19:59:00Z")->desired, 3);
	assert_int_equal(tick_at(&e, "2026-01-05T20:00:00Z")->desired, 0);
	assert_int_equal(tick_at(&e, "2026-01-06T03:00:00Z")->desired, 0);
	engine_show_state(&e, 0, OBS_FAILED);
	assert_int_equal(tick_at(&e, "2026-01-06T03:00:15Z")->desired, 0);
	assert_int_equal(tick_at(&e, "2026-01-06T08:00:00Z")->desired, 1); // also without data
	engine_done(&e);
}

static void schedule_with_a_minimum_keeps_awake(void **state)
{
	struct policy_schedule s[] = {schedule("0 8 * * *", "0 20 * * *", NULL),
	                              schedule("0 10 * * *", "0 12 * * *", NULL)};
	s[0].min_set = true;
	s[0].min_replicas = 2;
	s[1].max_set = true; // says nothing about the minimum: idle as ever
	s[1].max_replicas = 5;
	struct engine e;
	start(&e, s, 2, 0, "2026-01-05T07:00:00Z");
	e.policy.idle = (struct policy_idle){.set = true, .after_ms = 60000, .activation = {"asked", 0}};
	engine_start(&e);
	engine_show(&e, 0, 0);
	assert_int_equal(tick_at(&e, "2026-01-05T07:59:00Z")->reason, REASON_IDLE);
	assert_int_equal(tick_at(&e, "2026-01-05T08:00:00Z")->desired, 2);
	assert_non_null(engine_find(&e, REASON_IDLE_SUSPENDED)); // the scale is below its bounds
	assert_int_equal(tick_at(&e, "2026-01-05T09:59:00Z")->desired, 2);
	assert_non_null(engine_find(&e, REASON_IDLE_SUSPENDED));
	assert_int_equal(tick_at(&e, "2026-01-05T10:00:00Z")->desired, 1); // awake, and the timer begins here
	assert_int_equal(tick_at(&e, "2026-01-05T10:01:00Z")->desired, 0);
	assert_int_equal(e.decision.reason, REASON_IDLE_REACHED);
	assert_int_equal(tick_at(&e, "2026-01-05T12:00:00Z")->desired, 2);
	engine_done(&e);
}

// By day at least 10 and 5 when idle, at night 0 to 8 (or 0 to 3): idle has nothing to take away there, and must not
// add to what a quiet night needs.
static void idle_level_above_the_bounds_of_a_schedule_is_not_used(void **state)
{
	for (int32_t max = 3; max <= 8; max += 5) {
		struct policy_schedule s[] = {schedule("0 22 * * *", "0 6 * * *", NULL)};
		s[0].min_set = s[0].max_set = true;
		s[0].max_replicas = max;
		struct engine e;
		start(&e, s, 1, 12, "2026-01-05T21:00:00Z");
		e.policy.min_replicas = 10;
		e.policy.max_replicas = 20;
		e.policy.idle = (struct policy_idle){
		        .set = true, .after_ms = 60000, .replicas = 5, .activation = {"asked", 20}};
		engine_start(&e);
		assert_int_equal(tick_at(&e, "2026-01-05T21:59:45Z")->desired, 12);
		engine_show(&e, 0, 2);
		assert_int_equal(tick_at(&e, "2026-01-05T22:00:00Z")->desired, max);
		assert_int_equal(tick_at(&e, "2026-01-05T22:00:15Z")->desired, 2);
		for (int i = 0; i < 8; i++) { // and so it stays: quiet for longer than `after`
			e.now_ms += 15000;
			const struct decision *d = engine_tick(&e);
			assert_int_equal(d->desired, 2);
			assert_int_equal(d->reason, REASON_DESIRED_WITHIN_RANGE);
			assert_null(engine_find(&e, REASON_IDLE_REACHED));
			assert_int_equal(d->min_replicas, 1);
			assert_int_equal(d->max_replicas, max);
			engine_apply(&e);
		}
		assert_int_equal(tick_at(&e, "2026-01-06T06:00:00Z")->desired, 10);
		assert_int_equal(tick_at(&e, "2026-01-06T06:01:00Z")->desired, 5); // by day it is there
		assert_int_equal(e.decision.reason, REASON_IDLE_REACHED);
		engine_done(&e);
	}
}

static void remembered_answer_is_the_fresh_one(void **state)
{
	struct policy_schedule s[] = {schedule("*/7 * * * *", "*/5 * * * *", &zurich),
	                              schedule("0 1-3 * * *", "30 1-3 * * *", &new_york)};
	s[0].min_set = s[1].min_set = true;
	s[0].min_replicas = 3;
	s[1].min_replicas = 5;
	struct engine e;
	start(&e, s, 2, 1, "2026-03-28T00:00:00Z");
	for (int i = 0; i < 20000; i++) {
		int64_t until;
		int32_t winner = schedule_at(&e.policy, e.now_ms, &until);
		engine_tick(&e);
		assert_int_equal(e.decision.min_replicas, winner < 0 ? 1 : s[winner].min_replicas);
		e.now_ms += 13000;
	}
	engine_done(&e);
}

static void other_schedules_are_another_state(void **state)
{
	struct policy_schedule s[] = {schedule("0 8 * * *", "0 20 * * *", NULL)};
	struct engine e;
	start(&e, s, 1, 2, "2026-01-05T12:00:00Z");
	size_t bytes = decide_state_bytes(&e.policy);
	assert_true(decide_state_matches(&e.policy, e.state, bytes));
	s[0].min_replicas++;
	assert_true(decide_state_matches(&e.policy, e.state, bytes));
	s[0].combine = SCHEDULE_MAX; // its bound decides which window is in force
	assert_false(decide_state_matches(&e.policy, e.state, bytes));
	s[0].combine = SCHEDULE_LATEST;
	s[0].end_text = "0 21 * * *";
	assert_false(decide_state_matches(&e.policy, e.state, bytes));
	engine_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(windows_open_and_close_on_the_wall_clock),
	        cmocka_unit_test(window_that_lies_in_the_gap_does_not_open),
	        cmocka_unit_test(window_that_ends_and_starts_in_the_gap_stays_open),
	        cmocka_unit_test(walk_minute_by_minute_finds_the_same),
	        cmocka_unit_test(window_that_opened_last_wins),
	        cmocka_unit_test(largest_of_the_open_windows_with_max_is_in_force),
	        cmocka_unit_test(bounds_come_from_the_schedule_where_it_sets_them),
	        cmocka_unit_test(scale_goes_to_the_bounds_when_they_change),
	        cmocka_unit_test(schedule_to_zero_comes_back),
	        cmocka_unit_test(schedule_with_a_minimum_keeps_awake),
	        cmocka_unit_test(idle_level_above_the_bounds_of_a_schedule_is_not_used),
	        cmocka_unit_test(remembered_answer_is_the_fresh_one),
	        cmocka_unit_test(other_schedules_are_another_state),
	};
	return cmocka_run_group_tests(tests, set_up, NULL);
}
