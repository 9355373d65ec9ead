// SPDX-License-Identifier: Apache-2.0
// guards.unhealthyReplicas: replicas on failing GPUs do not count. With Replace, the policy decides as if the
// replacements did not exist, and the guards stage adds them.
#ifndef GPUSCALE_POLICIES_ENGINE_UNHEALTHY_H
#define GPUSCALE_POLICIES_ENGINE_UNHEALTHY_H

#include <stdint.h>

// The guard's part of the state.
struct unhealthy {
	int64_t fewer_since_ms; // since when fewer replicas were unhealthy than there are replacements; TIME_NONE
	int32_t replacements;   // how many of the present scale are replacements
	// The last decision: replicas wanted without replacements, and replacements added (-1: no decision yet). A
	// write that is acknowledged later may be smaller than the decision.
	int32_t wanted, added;
	int32_t unrecorded; // replicas added (negative: removed) by a process that recorded no replacements for them; 0
	                    // = none
};

// Records that the target was scaled to `replicas` by the last decision. Without one, as after a restart, the number of
// replacements stays.
void unhealthy_record_scale(struct unhealthy *u, int32_t replicas);
// Records that an earlier process changed the scale by `change` replicas and exited before it recorded how many of them
// are replacements. Every order includes the replacements of its time, so the next decision that knows how many
// replicas are unhealthy counts that many. Changes nothing after a decision of this process.
void unhealthy_adopt_scale(struct unhealthy *u, int32_t change);

#endif
