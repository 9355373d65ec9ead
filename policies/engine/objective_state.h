// SPDX-License-Identifier: Apache-2.0
// What the objective stage keeps between two ticks: the simulated rules, the demand since their last step, and what is
// known about the capacity of a replica. Private to policies/engine, except for the name of a rule.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_STATE_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_STATE_H

#include <stdint.h>

#include "policies/engine/objective.h"
#include "policies/engine/objective_capacity.h"
#include "policies/engine/plausible.h"

// The time that a replica is taken to need while it is neither configured nor learnt. Too long costs little, too short
// makes work late (docs/algorithm.md).
#define OBJECTIVE_STARTUP_DEFAULT_MS 300000

// Part of the flat state; has no padding, except maybe at the end, where it stays zero.
struct objective_state {
	int64_t simulated_ms; // up to when the rules are simulated; TIME_NONE: never
	double demand_sum;    // of the n_demand samples since
	int32_t n_demand;
	int32_t is_paused; // the last tick had no data: the time until the next one does not count
	struct doubt demand_doubt, backlog_doubt;
	struct objective_capacity capacity;
	// The result of the last step, for the ticks until the next one and for the trace. `replicas` is, at the
	// maximum of the policy, as many as the rule asks for.
	struct objective_result answer;
	struct objective objective;
};
_Static_assert(sizeof(struct objective_result) == 24 * 4, "no padding");
_Static_assert(sizeof(struct objective_state) <= OBJECTIVE_STATE_MAX_BYTES,
               "the state of an objective is at most 4 KiB");

void objective_state_init(struct objective_state *s);
// Packs a rule into the `count` of a trace entry, to a hundredth of a rung.
int32_t objective_rule_code(enum objective_family family, float rung);
void objective_rule_decode(int32_t code, enum objective_family *ret_family, float *ret_rung);

#endif
