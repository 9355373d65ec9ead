// SPDX-License-Identifier: Apache-2.0
// Fallback: what to go by when the signals cannot be read for long. KEDA: pkg/fallback, without its holes: an error
// never becomes zero replicas, it lifts by itself, and a healthy signal is not overridden unless asked.
#ifndef GPUSCALE_POLICIES_FALLBACK_H
#define GPUSCALE_POLICIES_FALLBACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy_fallback;
struct tick;

// Inside the flat state.
struct fallback {
	uint32_t active; // applied, and not lifted yet
	uint32_t good;   // ticks in a row in which every signal that counts was read, while active
};

// Counts the failures in a row of every signal; at every tick, also when nobody asks what they want.
void fallback_observe(struct tick *t);

// behavior ScalingModifiers, asked by the formula. WAITING: signal i has no data, but not for long enough to be nil:
// hold. BLIND: it is nil for good. READ: it has data, is left out by onMissing: Ignore, or the fallback has nothing to
// say.
enum fallback_sight { FALLBACK_READ, FALLBACK_WAITING, FALLBACK_BLIND };
enum fallback_sight fallback_sight_of(const struct tick *t, size_t i);

// The replicas it stands for at this scale: `replicas`, `current`, or the larger or smaller of both; at least 1 unless
// current is 0.
int32_t fallback_replicas(const struct policy_fallback *fallback, int32_t current);

#endif
