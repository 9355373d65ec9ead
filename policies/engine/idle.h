// SPDX-License-Identifier: Apache-2.0
// Idle and activation: few or no replicas after a time without activity, and back. KEDA: scale_scaledobjects.go, except
// that an outage is never treated as a lack of activity.
#ifndef GPUSCALE_POLICIES_ENGINE_IDLE_H
#define GPUSCALE_POLICIES_ENGINE_IDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy_activation;
struct policy_idle;

enum idle_activity { IDLE_UNKNOWN, IDLE_QUIET, IDLE_ACTIVE };

// Part of the flat state.
struct idle {
	// Since when the target is quiet, with no data missing and all replicas ready or waited for long enough;
	// TIME_NONE
	int64_t quiet_since_ms;
	int64_t first_ms;   // time of the first tick; TIME_NONE
	int64_t unready_ms; // since when replicas have not been ready without activity; TIME_NONE
};

// Returns the conditions of which any makes the target needed, and their number, at least 1, in *ret_n.
const struct policy_activation *idle_activations(const struct policy_idle *idle, size_t *ret_n);
// Returns the condition on signal i; NULL if the signal does not activate the target.
const struct policy_activation *idle_activation_of(const struct policy_idle *idle, size_t i);
// Returns whether both policies detect activity in the same way; a timer may be carried over only then.
bool idle_is_same(const struct policy_idle *a, const struct policy_idle *b);

#endif
