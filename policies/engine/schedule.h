// SPDX-License-Identifier: Apache-2.0
// Schedules: different bounds during windows of time. A window is open when its last start is later than its last end.
// Of several open windows the one that opened last is active; of windows that opened together, the last in the list.
// Of the open windows with SCHEDULE_MAX, only the one with the largest lower bound takes part; of equal ones, the
// latest.
#ifndef GPUSCALE_POLICIES_ENGINE_SCHEDULE_H
#define GPUSCALE_POLICIES_ENGINE_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy;
struct policy_schedule;
struct tz_table;

// Part of the flat state: the last result of schedule_at(), valid until until_ms.
struct schedule_cache {
	int64_t until_ms; // TIME_NONE: no result
	int32_t winner;   // -1 = none
	uint32_t unused;
};

#define SCHEDULE_CACHE_EMPTY                                                                                           \
	{                                                                                                              \
		.until_ms = TIME_NONE, .winner = -1                                                                    \
	}

// Returns the index of the schedule that is active at now_ms, -1 = none. *ret_until_ms is the next start or end of any
// schedule: until then the result does not change.
int32_t schedule_at(const struct policy *policy, int64_t now_ms, int64_t *ret_until_ms);

// Computes the bounds while `schedule` is active. A bound that the schedule does not set is the policy's, moved if
// necessary to agree with the bound that the schedule sets.
void schedule_bounds(const struct policy *policy, const struct policy_schedule *schedule, int32_t *ret_min,
                     int32_t *ret_max);

// Returns whether the schedule sets a minimum above 0, or a fixed scale: the target then does not go idle.
bool schedule_prevents_idle(const struct policy_schedule *schedule);

// Returns why schedule i can never be active, as a constant text with the fix, or NULL. For `check`: parses the texts
// of the schedules itself, and evaluates them in UTC.
const char *schedule_fault(const struct policy *policy, size_t i);

// ---- time zones ----

// Conversion between UTC and the wall clock of a zone, in seconds since the epoch. A local time is the time that the
// clock shows, in seconds since 1970-01-01T00:00:00 on that clock. A table of NULL is UTC.

// Two directions of one rule: a local time happens at the first moment at which the clock shows it or has passed it. A
// time in a gap (the clock jumps over it) happens at the jump, and a time that comes twice happens the first time.
// timezone_reached: the latest local time that has happened by utc_s.  timezone_moment: when local_s happens.
// timezone_moment(l) <= u  exactly when  l <= timezone_reached(u).
int64_t timezone_reached(const struct tz_table *zone, int64_t utc_s);
int64_t timezone_moment(const struct tz_table *zone, int64_t local_s);

#endif
