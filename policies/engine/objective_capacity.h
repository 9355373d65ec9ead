// SPDX-License-Identifier: Apache-2.0
// What a replica really serves, as a ratio to what the queries of demand and backlog take for one replica. A wrong
// divisor and a mix of requests that became heavier look the same from here, and both need the same answer: demand and
// backlog are divided by the ratio.
//
// Work that was served is demand minus the growth of the backlog. Over a stretch in which work waited at both ends and
// the number of ready replicas did not change, it is the capacity of those replicas. Without a queue it is a lower
// bound, which raises a ratio that is below it once no work has waited for a while: where none waits although the ratio
// says that it should, a replica can do more. So the ratio exceeds what was observed by a tenth at most, and only until
// work has waited for the first time: the scale is not reduced below loads that were observed to need more. Where the
// busy share of the replicas is known, it takes the place of the queue.
//
// Part of the flat state; has no padding. Pure: no clock, no allocation.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_CAPACITY_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_CAPACITY_H

#include <stdbool.h>
#include <stdint.h>

// A ratio beyond these is not believed: the queries measure something else.
#define OBJECTIVE_CAPACITY_LEAST (1.0f / 3)
#define OBJECTIVE_CAPACITY_MOST  3.0f

struct objective_capacity {
	float served_s, busy_s; // what a busy replica served, in seconds of the work of one replica, and in which time
	float learnt_s;         // of that time, what was observed and has not faded
	// The present stretch: its time, the work that arrived, the busy time of a replica, and its ends.
	float stretch_s, arrived, share_s;
	float backlog_first, backlog_last; // replica-seconds
	float steady_s;                    // for which the number of ready replicas has not changed
	float quiet_s;                     // since work waited last, up to what counts; a day: it never did
	float pace, reached;               // served work per replica and second, smoothed; its maximum of late
	int32_t ready;
	int32_t backlog_seen; // 1: above 0 at some time; 0: not yet; -1: not even when it must have been
	int64_t observed_ms;  // TIME_NONE: at the last tick there was no data
};
_Static_assert(sizeof(struct objective_capacity) == 14 * 4 + 8, "no padding");

// What one tick saw.
struct objective_capacity_input {
	double demand, backlog; // replicas, replica-seconds; finite, not negative
	int32_t ready;          // replicas
	float unthrottled;      // share of its capacity that an average replica has, above 0 up to 1
	float busy_share;       // of the ready replicas; below 0: not measured
	bool may_be_unmeasured; // a backlog of 0 may stand for one that nothing measures
};

void objective_capacity_init(struct objective_capacity *c);
// Observes one tick.
void objective_capacity_observe(struct objective_capacity *c, const struct objective_capacity_input *in,
                                int64_t now_ms);
// Ends the present stretch: the tick has no usable data.
void objective_capacity_pause(struct objective_capacity *c);
// Returns the ratio, OBJECTIVE_CAPACITY_LEAST .. OBJECTIVE_CAPACITY_MOST; 1 while nothing is learnt.
float objective_capacity_ratio(const struct objective_capacity *c);
// Returns whether the backlog stayed 0 while more arrived than the replicas can serve, so that its query is wrong.
bool objective_capacity_doubts_backlog(const struct objective_capacity *c);
// Returns whether the numbers may come from objective_capacity_observe(). They come back from outside.
bool objective_capacity_is_sane(const struct objective_capacity *c);

#endif
