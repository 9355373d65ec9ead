// SPDX-License-Identifier: Apache-2.0
// Idle and activation: few or no replicas after a time without activity, and back. KEDA: scale_scaledobjects.go, except
// that an outage never counts as a lack of activity.
#ifndef GPUSCALE_POLICIES_ENGINE_IDLE_H
#define GPUSCALE_POLICIES_ENGINE_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct policy_idle;

enum idle_activity { IDLE_UNKNOWN, IDLE_QUIET, IDLE_ACTIVE };

// Part of the flat state.
struct idle {
	// Since when the target is quiet, with no data missing and all replicas ready or waited for long enough;
	// TIME_NONE
	int64_t quiet_since_ms;
	int64_t first_ms;       // time of the first tick; TIME_NONE
	int64_t unready_ms;     // since when replicas have not been ready without activity; TIME_NONE
};

void idle_init(struct idle *s);
// Returns whether both policies detect activity in the same way; a timer may be carried over only then.
bool idle_is_same(const struct policy_idle *a, const struct policy_idle *b);

#endif
