// SPDX-License-Identifier: Apache-2.0
// The decision engine. Pure: no I/O, no clock, no allocation, no globals; equal inputs give equal decisions and equal
// states. `make purity` proves it.
#ifndef GPUSCALE_POLICIES_ENGINE_DECIDE_H
#define GPUSCALE_POLICIES_ENGINE_DECIDE_H

#include <stdint.h>

#include "policies/engine/decide_state.h"

struct decision;
struct observation;
struct policy;

// Decides one tick at now_ms, in ms since the epoch, and writes the decision with its trace to ret_decision.
// observation->n_signals must be policy->n_signals. Updates `state` in place; pass a copy to decide without side
// effects. At the first tick, a recorded stamp later than now_ms is treated as now_ms, so that a stamp from a wrong
// clock cannot prevent scaling.
void decide(const struct policy *policy, const struct observation *observation, int64_t now_ms, void *state,
            struct decision *ret_decision);

#endif
