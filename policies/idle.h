// SPDX-License-Identifier: Apache-2.0
// Idle and activation: to few replicas or none without activity, and back. KEDA: scale_scaledobjects.go, except that
// an outage is never taken for silence.
#ifndef GPUSCALE_POLICIES_IDLE_H
#define GPUSCALE_POLICIES_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct policy_idle;
struct tick;

enum idle_activity { IDLE_UNKNOWN, IDLE_QUIET, IDLE_ACTIVE };

// Inside the flat state.
struct idle {
	int64_t quiet_since_ms; // since when all was quiet, all ready and nothing missing; TIME_NONE
	int64_t first_ms;       // first tick; TIME_NONE
};

void idle_init(struct idle *s);
// What the activation signal says, sets the bounds that hold while idle or awake, and winds the timer; at every tick,
// after the signals. Not called for a target that a schedule keeps awake.
void idle_observe(struct tick *t);
// True when both mean the same by activity: only then a timer may be carried over.
bool idle_is_same(const struct policy_idle *a, const struct policy_idle *b);

#endif
