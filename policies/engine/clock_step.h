// SPDX-License-Identifier: Apache-2.0
// Compares the stamps in the state with the present, so that a wall clock that is set neither freezes the target nor
// bypasses its limits. Private to policies/; decide_clock_was_set() is the public function.
#ifndef GPUSCALE_POLICIES_ENGINE_CLOCK_STEP_H
#define GPUSCALE_POLICIES_ENGINE_CLOCK_STEP_H

#include <stdint.h>

struct policy;
struct state_header;
struct tick;

// Returns the time of this tick for a wall clock of now_ms. Moves the state when the clock was set back. At the first
// tick, limits the stamps in the state to the returned time.
int64_t clock_step_now(const struct policy *policy, struct state_header *s, int64_t now_ms);
// Traces the clock events since the last tick and clears them.
void clock_step_trace(struct tick *t);

#endif
