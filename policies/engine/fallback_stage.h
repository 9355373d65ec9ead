// SPDX-License-Identifier: Apache-2.0
// The part of stage combine that replaces signals which have been missing for long. Private to policies/engine.
#ifndef GPUSCALE_POLICIES_ENGINE_FALLBACK_STAGE_H
#define GPUSCALE_POLICIES_ENGINE_FALLBACK_STAGE_H

#include <stddef.h>

struct tick;

// How the formula of `combine` treats a signal under behavior ScalingModifiers.
enum fallback_data {
	FALLBACK_AVAILABLE, // as without `fallback`; also for every other behavior
	FALLBACK_WAITING,   // the signal has been missing for a short time only: hold
	FALLBACK_FAILED,    // the signal is nil
};
enum fallback_data fallback_data_of(const struct tick *t, size_t i);

// Applies the fallback to the combined proposal, or lifts it; runs after the proposals were combined. Call it
// only for a policy that has `fallback`.
void fallback_apply(struct tick *t);

#endif
