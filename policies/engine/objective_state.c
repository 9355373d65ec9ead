// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/objective_state.h"

#include <string.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"

void objective_state_init(struct objective_state *s)
{
	memset(s, 0, sizeof *s);
	s->simulated_ms = TIME_NONE;
	objective_capacity_init(&s->capacity);
	doubt_init(&s->demand_doubt);
	doubt_init(&s->backlog_doubt);
	objective_init(&s->objective);
}

bool objective_reads(const struct policy *policy, size_t i)
{
	const struct policy_objective *o = &policy->objective;
	return o->set && (i == o->demand_index || i == o->backlog_index);
}

#define CODES_PER_FAMILY 1000
#define CODES_PER_RUNG   100

int32_t objective_rule_code(enum objective_family family, float rung)
{
	return (int32_t)family * CODES_PER_FAMILY + (int32_t)(rung * CODES_PER_RUNG + 0.5f);
}

void objective_rule_decode(int32_t code, enum objective_family *ret_family, float *ret_rung)
{
	bool known = code >= 0 && code / CODES_PER_FAMILY < OBJECTIVE_FAMILY__COUNT;
	int32_t rung = known ? code % CODES_PER_FAMILY : 0;
	*ret_family = known ? (enum objective_family)(code / CODES_PER_FAMILY) : OBJECTIVE_FOLLOW_BRISK;
	*ret_rung = (float)i32_min(rung, (OBJECTIVE_RUNGS - 1) * CODES_PER_RUNG) / CODES_PER_RUNG;
}
