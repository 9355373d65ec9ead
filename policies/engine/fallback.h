// SPDX-License-Identifier: Apache-2.0
// Fallback: the replicas to use when signals have been missing for long. KEDA: pkg/fallback, with these differences: an
// error never leads to zero replicas, the fallback lifts by itself, and it overrides a healthy signal only on request.
#ifndef GPUSCALE_POLICIES_ENGINE_FALLBACK_H
#define GPUSCALE_POLICIES_ENGINE_FALLBACK_H

#include <stdint.h>

struct policy_fallback;

// Part of the flat state.
struct fallback {
	uint32_t active; // applied, and not lifted yet
	uint32_t good;   // while active: consecutive ticks in which every signal that counts had data
};

// Returns the replicas of the fallback at the scale `current`: `replicas`, `current`, or the larger or smaller of both;
// at least 1: KEDA wakes a target whose triggers have failed.
int32_t fallback_replicas(const struct policy_fallback *fallback, int32_t current);

#endif
