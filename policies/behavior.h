// SPDX-License-Identifier: Apache-2.0
// The HPA's `behavior`: stabilization windows and rate policies. HPA: horizontal.go,
// stabilizeRecommendationWithBehaviors and convertDesiredReplicasWithBehaviorRate.
#ifndef GPUSCALE_POLICIES_BEHAVIOR_H
#define GPUSCALE_POLICIES_BEHAVIOR_H

#include <stddef.h>
#include <stdint.h>

struct history;
struct history_mark;
struct policy;
struct policy_scaling_rules;

// What the engine applies when behavior says nothing (the HPA's defaults).
#define BEHAVIOR_UP_STABILIZATION_MS   0
#define BEHAVIOR_DOWN_STABILIZATION_MS 300000

// The longest periodSeconds of one direction (+1 up, -1 down), in ms; that of the HPA's default policies when none are
// given (up: Pods 4 / 15 s and Percent 100 / 15 s; down: Percent 100 / 15 s).
int64_t behavior_longest_period_ms(const struct policy_scaling_rules *rules, int direction);

struct stabilized {
	int32_t replicas;
	int32_t extreme;   // the recommendation that held it
	int64_t left_ms;   // until that one leaves its window
	int64_t window_ms; // the window it lies in
};

// up = min(desired, recommendations newer than now - up window), down = max(desired, those newer than now - down
// window); current is raised to up, then cut to down.
struct stabilized behavior_stabilize(const struct policy *policy, const struct history *h,
                                     const struct history_mark *marks, int64_t now_ms, int32_t current,
                                     int32_t desired);

// The most (direction +1) or fewest (-1) replicas the rate policies allow now; never on the wrong side of current.
// Events count while strictly newer than now - period; Percent rounds up on the way up and truncates on the way down.
int32_t behavior_rate_limit(const struct policy_scaling_rules *rules, int direction, const struct history *events,
                            const struct history_mark *marks, int64_t now_ms, int32_t current);

#endif
