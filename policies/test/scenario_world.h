// SPDX-License-Identifier: Apache-2.0
// The simulated target of a policy test: new replicas become ready after a delay.
#ifndef GPUSCALE_POLICIES_TEST_SCENARIO_WORLD_H
#define GPUSCALE_POLICIES_TEST_SCENARIO_WORLD_H

#include <stddef.h>
#include <stdint.h>

struct arena;

struct scenario_order {
	int64_t since_ms, ready_ms;
	int32_t n;
};

struct scenario_world {
	int32_t replicas, ready;       // ready -1 = unknown, for the whole test
	int32_t room;                  // for replicas in the cluster; -1: unlimited
	struct scenario_order *orders; // oldest first, in `arena`
	size_t n_orders, cap_orders;
	struct arena *arena;
};

// Initializes the target, without a limit of room. If ready < replicas, the others were ordered at now_ms and become
// ready at ready_ms.
int scenario_world_init(struct scenario_world *w, int32_t replicas, int32_t ready, int64_t now_ms, int64_t ready_ms,
                        struct arena *a);
// Sets the scale at now_ms; new pods become ready at ready_ms, once there is room for them. Pods that are not ready go
// first, the newest of them before the older ones, as in a ReplicaSet. -1 when the arena is full.
int scenario_world_scale(struct scenario_world *w, int32_t to, int64_t now_ms, int64_t ready_ms);
// Makes the replicas ready that are due at now_ms and have room.
void scenario_world_advance(struct scenario_world *w, int64_t now_ms);
// Writes to ret_since_ms when each replica without room was ordered, oldest first, at most `max`. Returns their number.
size_t scenario_world_unschedulable(const struct scenario_world *w, int64_t *ret_since_ms, size_t max);

#endif
