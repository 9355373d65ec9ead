// SPDX-License-Identifier: Apache-2.0
#include "controller/idle/idle_record.h"

#include "policies/schema/idle_rule_schema.h"

#define HOUR_MS INT64_C(3600000)

const char *const idle_state_names[IDLE_STATE__COUNT + 1] = {
        [IDLE_REPORTED] = "Reported", [IDLE_HELD] = "Held",       [IDLE_EXEMPT] = "Exempt",
        [IDLE_WARNED] = "Warned",     [IDLE_SCALING] = "Scaling", [IDLE_SCALED] = "Scaled",
};

bool idle_record_is_scaled(const struct idle_record *record)
{
	return record->state == IDLE_SCALING || record->state == IDLE_SCALED;
}

static enum idle_step next_of_idle(const struct idle_rule *rule, const struct idle_record *r,
                                   const struct idle_facts *f, int64_t now_ms)
{
	if (f->is_exempt || f->wants_restore)
		return IDLE_STEP_EXEMPT;
	if (f->held_why || f->replicas <= rule->replicas)
		return IDLE_STEP_HOLD;
	if (r->state == IDLE_SCALING)
		return f->is_recorded ? IDLE_STEP_SCALE : IDLE_STEP_NONE;
	if (r->state != IDLE_WARNED)
		return IDLE_STEP_WARN;
	if (now_ms - r->warned_ms < rule->grace_ms)
		return IDLE_STEP_NONE;
	return now_ms - f->last_scale_ms < HOUR_MS / rule->max_per_hour ? IDLE_STEP_LIMIT : IDLE_STEP_RECORD;
}

enum idle_step idle_record_next(const struct idle_rule *rule, const struct idle_record *r, const struct idle_facts *f,
                                int64_t now_ms)
{
	if (!f->exists)
		return IDLE_STEP_DROP;
	if (idle_record_is_scaled(r) && f->wants_restore)
		return IDLE_STEP_RESTORE;
	if (r->state == IDLE_SCALED) // more replicas: people scaled it
		return f->replicas > rule->replicas ? IDLE_STEP_DROP : IDLE_STEP_NONE;
	if (r->state == IDLE_SCALING && f->replicas <= rule->replicas)
		return f->former >= 0 ? IDLE_STEP_DONE : IDLE_STEP_DROP;
	if (!r->found)
		return IDLE_STEP_DROP;
	return next_of_idle(rule, r, f, now_ms);
}
