// SPDX-License-Identifier: Apache-2.0
// Schedules: other bounds in windows of time. A window is open when its last start came after its last end; of several
// open ones the one that opened last wins, of those the later in the list.
#ifndef GPUSCALE_POLICIES_SCHEDULE_H
#define GPUSCALE_POLICIES_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy;
struct policy_schedule;
struct tick;

// Inside the flat state: the answer of schedule_at() as long as it holds.
struct schedule_cache {
	int64_t until_ms; // TIME_NONE: nothing is known
	int32_t winner;   // -1 = none
	uint32_t unused;
};

void schedule_cache_init(struct schedule_cache *c);

// The schedule in force at now_ms, -1 = none, and until when that is certain: the next start or end of any.
int32_t schedule_at(const struct policy *policy, int64_t now_ms, int64_t *ret_until_ms);

// The bounds of a schedule inside a policy: what it does not set is the policy's; where the two contradict each other,
// the schedule's win.
void schedule_bounds(const struct policy *policy, const struct policy_schedule *schedule, int32_t *ret_min,
                     int32_t *ret_max);

// Sets the bounds of this tick; before all stages.
void schedule_observe(struct tick *t);

// True when the schedule keeps the target at a scale of its own, so that there is no idle level.
bool schedule_keeps_awake(const struct policy_schedule *schedule);

// Why schedule i can never be in force, as a constant text with the fix; NULL when it can. For `check`: reads the
// texts only, and judges in UTC.
const char *schedule_fault(const struct policy *policy, size_t i);

#endif
