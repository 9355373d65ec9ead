// SPDX-License-Identifier: Apache-2.0
// The invariants of policy tests: what must be true at every tick, whatever the load.
#ifndef GPUSCALE_POLICIES_TEST_SCENARIO_LAW_H
#define GPUSCALE_POLICIES_TEST_SCENARIO_LAW_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/test/scenario.h"

struct decision;
struct observation;

#define LAW_TEXT_BYTES 256
#define LAW_FLAP_MS    (5 * 60000) // for a policy without windows of its own
#define LAW_MORE_LOAD  0.05        // MonotoneInLoad: every value grows by this ratio of itself

// The state of the laws between two ticks.
struct law_memory {
	int direction; // direction of the last scale: +1, -1; 0 = none yet
	int64_t scaled_ms;
};

// Returns the longest of the policy's stabilization windows, cooldowns and sustains; LAW_FLAP_MS when it has none.
int64_t law_flap_ms(const struct policy *p);
// Records a scale, or a decision that wants one.
void law_remember(struct law_memory *m, int64_t now_ms, int32_t from_replicas, int32_t to_replicas);

// Returns whether the decision keeps the law; otherwise `why` explains the violation.
// WithinBounds: min <= desired <= max, unless scaling is switched off.
// NoFlap: a change does not reverse the previous change within law_flap_ms.
// HoldOnNoData: no change, but for the bounds, while no signal has a fresh number and all of them hold when missing.
bool law_within_bounds(const struct policy *p, const struct decision *d, char why[LAW_TEXT_BYTES]);
bool law_no_flap(const struct policy *p, const struct law_memory *m, const struct decision *d,
                 char why[LAW_TEXT_BYTES]);
bool law_hold_on_no_data(const struct policy *p, const struct observation *o, const struct decision *d,
                         char why[LAW_TEXT_BYTES]);
// MonotoneInLoad: for the same target, more load does not lead to fewer replicas.
bool law_monotone_in_load(const struct decision *d, const struct decision *with_more, char why[LAW_TEXT_BYTES]);
// Returns a value under that larger load.
double law_more_load(double value);

#endif
