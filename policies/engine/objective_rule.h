// SPDX-License-Identifier: Apache-2.0
// The sizing rules that the objective stage simulates: nine families, each a ladder of eight rungs from lean to
// generous. A rule turns what is known about the load into a level: the replicas it wants before the backlog.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_RULE_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_RULE_H

#include <stdint.h>
#include <string.h>

struct objective_view;

enum objective_family {
	OBJECTIVE_FOLLOW_BRISK,     // a multiple of the largest brisk forecast of the last minutes
	OBJECTIVE_FOLLOW_CALM,      // .. calm forecast
	OBJECTIVE_PEAK_45M,         // a multiple of the largest requirement of 45 minutes
	OBJECTIVE_PEAK_3H,          // .. of three hours
	OBJECTIVE_MARGIN_HALF_HOUR, // the mean of half an hour and a number of deviations
	OBJECTIVE_MARGIN_DAY,       // .. of a day
	OBJECTIVE_SEASON_HOUR,      // a multiple of what these minutes of the hour required before
	OBJECTIVE_SEASON_DAY,       // .. these quarters of the day
	OBJECTIVE_PRESENT,          // a multiple of the demand of the last minute, and the present backlog
	OBJECTIVE_FAMILY__COUNT,
};
#define OBJECTIVE_RUNGS 8
// Rule number i is rung i % OBJECTIVE_RUNGS of family i / OBJECTIVE_RUNGS.
#define OBJECTIVE_RULES (OBJECTIVE_FAMILY__COUNT * OBJECTIVE_RUNGS)

// Returns the demand, in replicas, that the family expects when a replica ordered now is ready.
float objective_rule_forecast(enum objective_family family, const struct objective_view *v);
// Returns the first rule from `rule` on whose flag is set, or OBJECTIVE_RULES. Few rules are of interest in most steps,
// so four at a time are skipped.
static inline int objective_rule_next(const uint16_t flags[OBJECTIVE_RULES], int rule)
{
	uint64_t four;
	for (; rule % 4; rule++)
		if (flags[rule])
			return rule;
	for (; rule < OBJECTIVE_RULES; rule += 4) {
		memcpy(&four, &flags[rule], sizeof four);
		if (four)
			break;
	}
	while (rule < OBJECTIVE_RULES && !flags[rule])
		rule++;
	return rule;
}
_Static_assert(OBJECTIVE_RULES % 4 == 0, "objective_rule_next reads four flags at a time");
// Returns the value at a rung of the values of a family; between two rungs it is interpolated.
static inline float objective_rule_between(const float rungs[OBJECTIVE_RUNGS], float rung)
{
	int low = (int)rung;
	float part = rung - (float)low;
	return part > 0 ? rungs[low] * (1 - part) + rungs[low + 1] * part : rungs[low];
}
// Start-up times for which a removal after an addition is delayed (objective_memory.h). What follows the present sees
// nothing of the past that would hold it.
static inline int objective_rule_hold_starts(int family)
{
	return family == OBJECTIVE_PRESENT ? 2 : 1;
}
// Returns the multiple, or number of deviations, of a rung; between two rungs it is interpolated. wait_s is that of the
// objective.
float objective_rule_factor(enum objective_family family, float rung, float wait_s);
// Returns a family's name, such as "peak of 45 minutes".
const char *objective_family_name(enum objective_family family);

#endif
