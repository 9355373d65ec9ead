// SPDX-License-Identifier: Apache-2.0
// Delays the first removal after an addition, because changing direction is not free: the removed replicas have to be
// ordered again when the load returns. As in the rental problem of a skier (Karlin, Manasse, Rudolph and Sleator 1988),
// the surplus is kept until it has cost about what ordering it again would. Part of the flat state; has no padding; all
// zero at the start.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_HOLD_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_HOLD_H

#include <stdint.h>

struct objective_hold {
	uint16_t surplus; // replica-steps beyond what was wanted, since all replicas were wanted last
	uint16_t grew;    // the last change was an addition
};

// Returns how many of `replicas` to run when `wanted` are wanted: `wanted`, or `replicas` while the removal waits.
// startup_steps is the length of a start-up. Call it once a step.
int32_t objective_hold_step(struct objective_hold *h, int32_t replicas, int32_t wanted, int startup_steps);

#endif
