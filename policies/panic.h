// SPDX-License-Identifier: Apache-2.0
// Panic mode: a burst that a long window would average away. Knative: pkg/autoscaler/scaling/autoscaler.go, over a
// signal's window (the stable window) and the end of it (the panic window).
#ifndef GPUSCALE_POLICIES_PANIC_H
#define GPUSCALE_POLICIES_PANIC_H

#include <stdbool.h>
#include <stdint.h>

struct policy_signal;
struct replica_counts;

// Inside the flat state.
struct panic {
	int64_t over_ms; // last time it was over the threshold; TIME_NONE = not panicking
	int32_t highest; // most replicas asked for in this panic
	uint32_t unused;
};

void panic_init(struct panic *s);

// Replicas a load needs, without tolerance: ceil(value / target), times the ready replicas (at least 1) where the value
// is per replica: type Value and Absolute watermarks (their high mark is the target). Never below 0.
int32_t panic_wanted(const struct policy_signal *signal, double value, const struct replica_counts *counts);

// wanted: what the panic window asks for; stable: what the signal asks for. Panic starts, or goes on, while wanted /
// max(ready, 1) >= threshold; it ends when that is no longer so and more than stable_ms have passed since it last was.
// While it lasts *ret_replicas is the largest of both and of what was asked for since it began; else `stable`.
// True while it lasts; *ret_left_ms is then how long at least.
bool panic_observe(struct panic *s, int64_t now_ms, int32_t wanted, int32_t stable, int32_t ready, double threshold,
                   int64_t stable_ms, int32_t *ret_replicas, int64_t *ret_left_ms);

#endif
