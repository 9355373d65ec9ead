// SPDX-License-Identifier: Apache-2.0
// The HPA's `behavior`: stabilization windows and rate policies. HPA: horizontal.go,
// stabilizeRecommendationWithBehaviors and convertDesiredReplicasWithBehaviorRate.
#ifndef GPUSCALE_POLICIES_ENGINE_BEHAVIOR_H
#define GPUSCALE_POLICIES_ENGINE_BEHAVIOR_H

#include <stdint.h>

struct policy;
struct policy_scaling_rules;

// ---- recommendations and scale events ----

// Recommendations and scale events: short lists of marks with a time, part of the flat state, oldest first. A list is
// exact until it is full of marks that still matter; then the two neighbours closest in time are merged, so that
// nothing inside a window is lost and the error in time is about window / room.

#define HISTORY_MARKS_MAX 256

struct history_mark {
	int64_t first_ms, last_ms; // equal, unless marks were merged
	int32_t lo, hi;            // recommendations: smallest and largest; events: replicas added, removed
};

struct history {
	uint64_t marks_offset; // from this struct to the array of its marks
	uint32_t cap, start, len;
	uint32_t unused;
};

// Returns how many marks to make room for, so that marks of the last keep_ms stay separate at one mark per interval.
uint32_t history_marks_needed(int64_t keep_ms, int64_t interval_ms);

// Starts an empty list with room for `cap` marks at `marks`, in the same state block.
void history_init(struct history *h, struct history_mark *marks, uint32_t cap);

// Returns the i-th oldest mark, i < h->len.
struct history_mark *history_at(const struct history *h, uint32_t i);

// Adds a recommendation, or a scale event, after dropping marks not newer than time_ms - keep_ms. A time_ms before the
// newest mark is treated as the time of that mark.
void history_add_recommendation(struct history *h, int64_t time_ms, int32_t replicas, int64_t keep_ms);
void history_add_event(struct history *h, int64_t time_ms, int32_t added, int32_t removed, int64_t keep_ms);

// ---- the behavior ----

// Returns the longest periodSeconds of one direction (+1 up, -1 down), in ms. Without rate policies the HPA's defaults
// apply (up: Pods 4 / 15 s and Percent 100 / 15 s; down: Percent 100 / 15 s).
int64_t behavior_longest_period_ms(const struct policy_scaling_rules *rules, int direction);

// Returns how long, in ms, a recommendation (an event) can still matter: the longest stabilization window (rate period)
// of either direction.
int64_t behavior_recommendations_keep_ms(const struct policy *policy);
int64_t behavior_events_keep_ms(const struct policy *policy);

struct stabilized {
	int32_t replicas;
	int32_t extreme;   // the recommendation that limits `replicas`
	int64_t left_ms;   // until that recommendation leaves its window
	int64_t window_ms; // the length of that window
};

// Limits `desired` by the recommendations in `h`. up = min(desired, recommendations newer than now - up window), down =
// max(desired, those newer than now - down window); current is raised to up, then cut to down.
struct stabilized behavior_stabilize(const struct policy *policy, const struct history *h, int64_t now_ms,
                                     int32_t current, int32_t desired);

// Returns the most (direction +1) or fewest (-1) replicas that the rate policies allow now, never on the wrong side of
// current.
// Events count while strictly newer than now - period; Percent rounds up on the way up and truncates on the way down.
int32_t behavior_rate_limit(const struct policy_scaling_rules *rules, int direction, const struct history *events,
                            int64_t now_ms, int32_t current);

#endif
