// SPDX-License-Identifier: Apache-2.0
// The rule to follow: the cheapest one whose record keeps the goal.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_CHOICE_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

struct objective;
struct objective_rehearsal;
struct objective_setting;

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
