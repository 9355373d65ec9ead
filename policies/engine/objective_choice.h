// SPDX-License-Identifier: Apache-2.0
// The rule to follow: every rule rehearses in its virtual queue, and the cheapest one whose record keeps the goal is
// chosen.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_CHOICE_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/engine/objective_memory.h"
#include "policies/engine/objective_rule.h"

// ---- the rehearsal ----

// One step of every rule in its virtual queue, and what the records say about the share of work that each rule serves
// late. While a record is short, a prior counts as well. The prior takes an exponential, so the exact share is computed
// only for the rules that need it; bounds suffice for the others.

#define OBJECTIVE_FIRST_STEPS 80 // in which the scale stays at least as it was found

struct objective_rehearsal {
	const struct objective_view *view;
	const struct objective_queues *queues;
	int32_t steps;                // before this one
	float work;                   // replica-seconds, as much as is remembered
	float known, weight;          // steps that a record and the prior count for
	float level[OBJECTIVE_RULES]; // replicas
	// Bounds of the share of late work. The lower one after the last rule is 1.
	float late_least[OBJECTIVE_RULES + 1], late_most[OBJECTIVE_RULES];
};

// Simulates one step of every rule. The rehearsal refers to `s` and `v`.
void objective_rehearse(struct objective *s, const struct objective_setting *set, const struct objective_view *v,
                        struct objective_rehearsal *ret_rehearsal);
// Returns the estimated share of work that a rule serves late.
float objective_rehearsal_late(const struct objective_rehearsal *r, int rule);

// ---- the choice ----

struct objective_choice {
	int32_t family;
	float rung; // between two rungs, what belongs to the rule is interpolated
};

// Returns the share of late work to aim for: the goal, less when more of the real work was late, and with a full record
// up to a quarter more when less of it was. Where lateness is measured, its correction takes the place of both.
float objective_choice_aim(const struct objective *s, const struct objective_setting *set, bool is_measured);
// Returns the cheapest rule that keeps the aim. Lateness above the aim is not forbidden but has a price: some loads
// cannot be served in time at any price.
struct objective_choice objective_choose(const struct objective *s, const struct objective_setting *set,
                                         const struct objective_rehearsal *r, float aim);

#endif
