// SPDX-License-Identifier: Apache-2.0
// The simulated target of a policy test: new replicas become ready after a delay.
#ifndef GPUSCALE_POLICIES_TEST_SCENARIO_WORLD_H
#define GPUSCALE_POLICIES_TEST_SCENARIO_WORLD_H

#include <stddef.h>
#include <stdint.h>

struct arena;

struct scenario_order {
	int64_t ready_ms;
	int32_t n;
};

struct scenario_world {
	int32_t replicas, ready;       // ready -1 = unknown, for the whole test
	struct scenario_order *orders; // oldest first, in `arena`
	size_t n_orders, cap_orders;
	struct arena *arena;
};

// Initializes the target. If ready < replicas, the others become ready at ready_ms.
int scenario_world_init(struct scenario_world *w, int32_t replicas, int32_t ready, int64_t ready_ms, struct arena *a);
// Sets the scale; new pods become ready at ready_ms. Pods that are not ready go first, the newest of them before the
// older ones, as in a ReplicaSet. -1 when the arena is full.
int scenario_world_scale(struct scenario_world *w, int32_t to, int64_t ready_ms);
// Makes the replicas ready that are due at now_ms.
void scenario_world_advance(struct scenario_world *w, int64_t now_ms);

#endif
