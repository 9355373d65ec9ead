// SPDX-License-Identifier: Apache-2.0
// Delays the first removal after an addition, because changing direction is not free: the removed replicas have to be
// ordered again when the load returns. As in the rental problem of a skier (Karlin, Manasse, Rudolph and Sleator 1988),
// the surplus is kept until it has cost about what ordering it again would. Part of the flat state; has no padding; all
// zero at the start. Inline, without branches, so that the compiler computes several rules at once.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_HOLD_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_HOLD_H

#include <stdint.h>

#include "policies/engine/number.h"

// With both at 0 there are a tenth more direction changes; at 1 there are a tenth fewer, and bursty loads cost 1 %
// more.
#define OBJECTIVE_HOLD_EACH 0.25f // start-up times that each replica of the surplus is kept
#define OBJECTIVE_HOLD_ONCE 0.35f // and that one replica is kept: a small surplus waits longer than a large one
#define OBJECTIVE_HOLD_MOST 65535.0f

struct objective_hold {
	// Twice the surplus: the replica-steps beyond what was wanted, since all replicas were wanted last. Plus 1 when
	// the last change was an addition.
	uint32_t surplus_and_grew;
};

// Returns how many of `replicas` to run when `wanted` are wanted: `wanted`, or `replicas` while the removal waits.
// All are whole numbers from 0 to 65535. startup_steps is the length of a start-up. Call it once a step.
static inline float objective_hold_step(struct objective_hold *h, float replicas, float wanted, float startup_steps)
{
	int32_t bits = (int32_t)h->surplus_and_grew;
	float surplus = f32_max(replicas - wanted, 0), sum = f32_min((float)(bits >> 1) + surplus, OBJECTIVE_HOLD_MOST);
	float price = startup_steps * (OBJECTIVE_HOLD_EACH * surplus + OBJECTIVE_HOLD_ONCE);
	int32_t grew = bits & 1, waits = grew & (sum < f32_min(price, OBJECTIVE_HOLD_MOST));
	float kept = waits ? f32_max(replicas, wanted) : wanted;
	grew = kept < replicas ? 0 : kept > replicas ? 1 : grew;
	h->surplus_and_grew = (uint32_t)((surplus > 0 ? (int32_t)sum * 2 : 0) + grew);
	return kept;
}

#endif
