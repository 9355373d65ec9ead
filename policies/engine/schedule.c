// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/schedule.h"

#include <string.h>

#include "base/tz/tz_table.h"
#include "policies/engine/number.h"
#include "policies/engine/policy.h"

// Transitions at or before utc_s.
static size_t count_until(const struct tz_table *zone, int64_t utc_s)
{
	size_t lo = 0, hi = zone->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (zone->at_s[mid] <= utc_s)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

// Offset after the first `n` transitions.
static int64_t offset_after(const struct tz_table *zone, size_t n)
{
	return n == 0 ? zone->first_offset_s : zone->offset_s[n - 1];
}

int64_t timezone_reached(const struct tz_table *zone, int64_t utc_s)
{
	if (!zone)
		return utc_s;
	size_t n = count_until(zone, utc_s);
	int64_t reached = utc_s + offset_after(zone, n);
	// Before a jump back the clock may have shown a later time; jumps longer ago than two offsets do not matter.
	for (; n > 0 && zone->at_s[n - 1] > utc_s - 2 * TZ_OFFSET_MAX_S; n--) {
		int64_t before = zone->at_s[n - 1] - 1 + offset_after(zone, n - 1);
		reached = before > reached ? before : reached;
	}
	return reached;
}

int64_t timezone_moment(const struct tz_table *zone, int64_t local_s)
{
	if (!zone)
		return local_s;
	// No clock is further ahead of UTC than this: earlier, it has not shown local_s yet.
	size_t n = count_until(zone, local_s - TZ_OFFSET_MAX_S);
	while (n < zone->n && zone->at_s[n] + offset_after(zone, n) <= local_s)
		n++;
	int64_t utc_s = local_s - offset_after(zone, n);
	bool is_jumped_over = n > 0 && utc_s < zone->at_s[n - 1];
	return is_jumped_over ? zone->at_s[n - 1] : utc_s;
}

// ---- schedules ----

#define WALK_STEPS  4000       // limit of the search for a schedule that is never active
#define WALK_FROM_S 1767225600 // 2026-01-01T00:00:00Z
#define WALK_FOR_S  (366 * INT64_C(86400))

static int64_t sooner(int64_t until_s, const struct tz_table *zone, int64_t next_local_s)
{
	if (next_local_s == CRON_AFTER_ALL)
		return until_s;
	int64_t moment_s = timezone_moment(zone, next_local_s);
	return moment_s < until_s ? moment_s : until_s;
}

static int32_t floor_of(const struct policy_schedule *s)
{
	return s->replicas_set ? s->replicas : s->min_set ? s->min_replicas : 0;
}

int32_t schedule_at(const struct policy *policy, int64_t now_ms, int64_t *ret_until_ms)
{
	int64_t now_s = now_ms / 1000 - (now_ms % 1000 < 0);
	int64_t until_s = INT64_MAX / 1000, latest_s = INT64_MIN, largest_s = INT64_MIN;
	int32_t winner = -1, largest = -1; // the latest, and the largest with SCHEDULE_MAX
	for (size_t i = 0; i < policy->n_schedules; i++) {
		const struct policy_schedule *s = &policy->schedules[i];
		int64_t reached_s = timezone_reached(s->zone, now_s);
		until_s = sooner(until_s, s->zone, cron_after(&s->start, reached_s));
		until_s = sooner(until_s, s->zone, cron_after(&s->end, reached_s));
		// Compared in wall-clock time, so the order is right when both fall into one gap. At equal times,
		// the end takes precedence. Pinned by test_schedule "window_that_lies_in_the_gap_does_not_open" and
		// the test after it.
		int64_t start_s = cron_at_or_before(&s->start, reached_s);
		if (start_s == CRON_BEFORE_ALL || start_s <= cron_at_or_before(&s->end, reached_s))
			continue;
		int64_t opened_s = timezone_moment(s->zone, start_s);
		if (s->combine == SCHEDULE_MAX) {
			int32_t other = largest < 0 ? -1 : floor_of(&policy->schedules[largest]);
			if (floor_of(s) > other || (floor_of(s) == other && opened_s >= largest_s)) {
				largest_s = opened_s;
				largest = (int32_t)i;
			}
		} else if (opened_s >= latest_s) {
			latest_s = opened_s;
			winner = (int32_t)i;
		}
	}
	*ret_until_ms = until_s * 1000;
	return largest >= 0 && largest_s >= latest_s ? largest : winner;
}

void schedule_bounds(const struct policy *policy, const struct policy_schedule *schedule, int32_t *ret_min,
                     int32_t *ret_max)
{
	const struct policy_schedule *s = schedule;
	int32_t min = s->replicas_set ? s->replicas : s->min_set ? s->min_replicas : policy->min_replicas;
	int32_t max = s->replicas_set ? s->replicas : s->max_set ? s->max_replicas : policy->max_replicas;
	bool max_yields = s->min_set && !s->max_set;
	*ret_max = max_yields ? i32_max(max, min) : max;
	*ret_min = i32_min(min, *ret_max);
}

bool schedule_prevents_idle(const struct policy_schedule *schedule)
{
	return schedule->replicas_set || (schedule->min_set && schedule->min_replicas > 0);
}

// ---- check ----

// Checks one schedule alone: a date that does not exist, or an end together with every start.
static const char *own_fault(const struct policy_schedule *s)
{
	int64_t start_s = cron_after(&s->start, WALK_FROM_S);
	if (start_s == CRON_AFTER_ALL)
		return "start never comes: no date matches it";
	if (cron_after(&s->end, WALK_FROM_S) == CRON_AFTER_ALL)
		return "end never comes: no date matches it";
	for (int i = 0; i < WALK_STEPS && start_s != CRON_AFTER_ALL; i++) {
		if (cron_at_or_before(&s->end, start_s) != start_s)
			return NULL;
		start_s = cron_after(&s->start, start_s);
	}
	return "ends whenever it starts: move the end";
}

// Follows a year of starts and ends: returns whether the schedule is open at some time and never active.
static bool is_covered(const struct policy *p, size_t i)
{
	bool open = false;
	struct policy alone = *p;
	alone.schedules = &p->schedules[i];
	alone.n_schedules = 1;
	int64_t now_ms = WALK_FROM_S * INT64_C(1000), end_ms = now_ms + WALK_FOR_S * 1000, next_ms, unused_ms;
	for (int step = 0; step < WALK_STEPS; step++, now_ms = next_ms) {
		if (schedule_at(p, now_ms, &next_ms) == (int32_t)i)
			return false;
		open |= schedule_at(&alone, now_ms, &unused_ms) == 0;
		if (next_ms >= end_ms)
			return open;
	}
	return false; // too many changes to decide
}

const char *schedule_fault(const struct policy *policy, size_t i)
{
	struct policy_schedule copies[POLICY_SCHEDULES_MAX];
	struct policy p = *policy;
	bool one_zone = true;
	p.schedules = copies;
	if (p.n_schedules > POLICY_SCHEDULES_MAX)
		return NULL;
	for (size_t k = 0; k < p.n_schedules; k++) {
		copies[k] = policy->schedules[k];
		copies[k].zone = NULL;
		one_zone = one_zone && strcmp(copies[k].time_zone, copies[0].time_zone) == 0;
		if (cron_parse(&copies[k].start, copies[k].start_text) ||
		    cron_parse(&copies[k].end, copies[k].end_text))
			return NULL; // reported for the field itself
	}
	const char *fault = own_fault(&copies[i]);
	if (!fault && one_zone && p.n_schedules > 1 && is_covered(&p, i))
		fault = "is never in force: whenever it is open, another schedule has opened later, or at the same "
		        "time and is further down in the list, or asks for more with combine Max: move this one down, "
		        "or its start to a later time";
	return fault;
}
