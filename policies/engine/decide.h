// SPDX-License-Identifier: Apache-2.0
// The decision engine. Pure: no I/O, no clock, no allocation, no globals; equal inputs give equal decisions and equal
// states. `make purity` proves it.
#ifndef GPUSCALE_POLICIES_ENGINE_DECIDE_H
#define GPUSCALE_POLICIES_ENGINE_DECIDE_H

#include <stdint.h>

#include "policies/engine/decide_state.h"
#include "policies/engine/decision.h"

struct observation;
struct policy;

// Decides one tick at now_ms, in ms since the epoch, and writes the decision with its trace to ret_decision.
// observation->n_signals must be policy->n_signals. Updates `state` in place; pass a copy to decide without side
// effects. At the first tick, a recorded stamp later than now_ms is treated as now_ms, so that a stamp from a wrong
// clock cannot prevent scaling.
void decide(const struct policy *policy, const struct observation *observation, int64_t now_ms, void *state,
            struct decision *ret_decision);

// The stages are one table, whose order is also that of the chapters in docs/algorithm.md.
const char *stage_name(enum stage s);
// Returns whether the stage, one that decide() runs, can have an effect under this policy.
bool stage_is_enabled(enum stage s, const struct policy *policy);

#endif
