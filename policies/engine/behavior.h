// SPDX-License-Identifier: Apache-2.0
// The HPA's `behavior`: stabilization windows and rate policies. HPA: horizontal.go,
// stabilizeRecommendationWithBehaviors and convertDesiredReplicasWithBehaviorRate.
#ifndef GPUSCALE_POLICIES_ENGINE_BEHAVIOR_H
#define GPUSCALE_POLICIES_ENGINE_BEHAVIOR_H

#include <stddef.h>
#include <stdint.h>

struct history;
struct history_mark;
struct policy;
struct policy_scaling_rules;

// Returns the longest periodSeconds of one direction (+1 up, -1 down), in ms. Without rate policies the HPA's defaults
// apply (up: Pods 4 / 15 s and Percent 100 / 15 s; down: Percent 100 / 15 s).
int64_t behavior_longest_period_ms(const struct policy_scaling_rules *rules, int direction);

// Returns how long, in ms, a recommendation (an event) can still matter: the longest stabilization window (rate period)
// of either direction.
int64_t behavior_recommendations_keep_ms(const struct policy *policy);
int64_t behavior_events_keep_ms(const struct policy *policy);
// Returns how many marks of each to make room for at the policy's interval.
uint32_t behavior_recommendations_needed(const struct policy *policy);
uint32_t behavior_events_needed(const struct policy *policy);

struct stabilized {
	int32_t replicas;
	int32_t extreme;   // the recommendation that limits `replicas`
	int64_t left_ms;   // until that recommendation leaves its window
	int64_t window_ms; // the length of that window
};

// Limits `desired` by the recommendations in `h`. up = min(desired, recommendations newer than now - up window), down =
// max(desired, those newer than now - down window); current is raised to up, then cut to down.
struct stabilized behavior_stabilize(const struct policy *policy, const struct history *h,
                                     const struct history_mark *marks, int64_t now_ms, int32_t current,
                                     int32_t desired);

// Returns the most (direction +1) or fewest (-1) replicas that the rate policies allow now, never on the wrong side of
// current.
// Events count while strictly newer than now - period; Percent rounds up on the way up and truncates on the way down.
int32_t behavior_rate_limit(const struct policy_scaling_rules *rules, int direction, const struct history *events,
                            const struct history_mark *marks, int64_t now_ms, int32_t current);

#endif
