// SPDX-License-Identifier: Apache-2.0
// The simulated target of a policy test: replicas that are ordered become ready later.
#ifndef GPUSCALE_SCENARIO_SCENARIO_WORLD_H
#define GPUSCALE_SCENARIO_SCENARIO_WORLD_H

#include <stddef.h>
#include <stdint.h>

struct arena;

struct scenario_order {
	int64_t ready_ms;
	int32_t n;
};

struct scenario_world {
	int32_t replicas, ready;       // ready -1 = not known, and stays so
	struct scenario_order *orders; // oldest first, in `arena`
	size_t n_orders, cap_orders;
	struct arena *arena;
};

// ready < replicas: the others become ready at ready_ms.
int scenario_world_init(struct scenario_world *w, int32_t replicas, int32_t ready, int64_t ready_ms, struct arena *a);
// Sets the scale; new pods become ready at ready_ms. Pods that are not ready go first, the newest of them before the
// older ones, as in a ReplicaSet. -1 when the arena is full.
int scenario_world_scale(struct scenario_world *w, int32_t to, int64_t ready_ms);
// What is due by now becomes ready.
void scenario_world_advance(struct scenario_world *w, int64_t now_ms);

#endif
