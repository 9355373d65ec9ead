// SPDX-License-Identifier: Apache-2.0
// Panic mode: the reaction to a burst that a long window would average away. Knative:
// pkg/autoscaler/scaling/autoscaler.go, with the signal's window as the stable window and the end of it as the panic
// window.
#ifndef GPUSCALE_POLICIES_ENGINE_PANIC_H
#define GPUSCALE_POLICIES_ENGINE_PANIC_H

#include <stdbool.h>
#include <stdint.h>

struct policy_signal;
struct replica_counts;

// Part of the flat state.
struct panic {
	int64_t over_ms; // last time above the threshold; TIME_NONE = no panic
	int32_t highest; // largest number of replicas asked for during this panic
	uint32_t unused;
};

void panic_init(struct panic *s);

// Returns the replicas that `value` needs, without tolerance: ceil(value / target), times the ready replicas (at least
// 1) where the value is per replica: type Value, and Absolute watermarks, whose high mark is the target. At least 0.
int32_t panic_wanted(const struct policy_signal *signal, double value, const struct replica_counts *counts);

// Runs the panic for one tick. `wanted` is what the panic window asks for, `stable` what the signal asks for. A panic
// starts, or continues, while wanted / max(ready, 1) >= threshold; it ends more than stable_ms after that was last so.
// Returns whether it lasts. If so, *ret_replicas is the largest of `wanted`, `stable` and everything asked for since
// its start, and *ret_left_ms its minimum remaining time; otherwise *ret_replicas is `stable`.
bool panic_observe(struct panic *s, int64_t now_ms, int32_t wanted, int32_t stable, int32_t ready, double threshold,
                   int64_t stable_ms, int32_t *ret_replicas, int64_t *ret_left_ms);

#endif
