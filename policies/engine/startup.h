// SPDX-License-Identifier: Apache-2.0
// How long replicas take to become ready, and which replicas were requested recently. Part of the flat state. An order
// is a recorded scale-up, or an increase of the scale that was not recorded. Only counts are used, pods are not
// tracked: an order has started once fewer replicas are missing (spec - ready) than later orders explain.
#ifndef GPUSCALE_POLICIES_ENGINE_STARTUP_H
#define GPUSCALE_POLICIES_ENGINE_STARTUP_H

#include <stdbool.h>
#include <stdint.h>

struct policy;

#define STARTUP_ORDERS_MAX     16 // beyond, the two oldest orders are merged
#define STARTUP_STARTS_MAX     9  // start-up times kept; their median is the learnt time
#define STARTUP_STARTS_TRUSTED 3  // start-up times that replace a stated time
// A longer time is not a start-up: an image that could not be pulled, a node that never came, a wrong clock.
#define STARTUP_LEARNT_MAX_MS 3600000

struct startup_order {
	int64_t time_ms;
	int32_t replicas; // ordered, and not cancelled since
	int32_t waiting;  // ordered replicas that are not ready yet
};

struct startup {
	struct startup_order orders[STARTUP_ORDERS_MAX]; // oldest first
	int64_t starts_ms[STARTUP_STARTS_MAX];           // ring
	uint32_t n_orders, n_starts, next_start;
	int32_t last_spec; // spec of the last tick; -1 = none
	int32_t fresh;     // replicas ordered since the last tick
	uint32_t unused;
};

#define STARTUP_INIT                                                                                                   \
	{                                                                                                              \
		.last_spec = -1                                                                                        \
	} // no order yet
// Records that n > 0 more replicas were ordered at time_ms.
void startup_record_order(struct startup *s, int64_t time_ms, int32_t n);
// Records that a replica became ready start_ms after its order. A time below 0 or above STARTUP_LEARNT_MAX_MS is
// ignored; returns whether it was recorded.
bool startup_record_start(struct startup *s, int64_t start_ms);
// Updates the orders with the spec and ready counts of one tick; ready is -1 when unknown. Returns true when a start-up
// time was learnt: the newest of starts_ms.
bool startup_observe(struct startup *s, const struct policy *policy, int64_t now_ms, int32_t spec, int32_t ready);
// Returns the start-up time in ms: the median of the recorded starts (of an even number, the longer of the middle two);
// `startup.seconds`, where it is stated, until STARTUP_STARTS_TRUSTED are recorded; -1 when there is neither.
int64_t startup_ms(const struct startup *s, const struct policy *policy);
// Returns whether startup_ms() is learnt.
bool startup_is_learnt(const struct startup *s, const struct policy *policy);
// Returns how many replicas were ordered less than startup_ms() ago; 0 while that time is unknown.
int32_t startup_starting(const struct startup *s, const struct policy *policy, int64_t now_ms);

#endif
