// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/decision_grant.h"

#include "policies/engine/decision.h"
#include "policies/engine/policy.h"

void decide_grant(const struct policy *policy, int32_t granted, enum reason reason, struct decision *d)
{
	if (granted == d->desired)
		return;
	if (d->n_trace < DECISION_TRACE_MAX) {
		d->driver = (int32_t)d->n_trace;
		d->entries[d->n_trace++] =
		        (struct trace_entry){.stage = decide_reason_is_of_pool(reason) ? STAGE_POOL : STAGE_VARIANTS,
		                             .reason = reason,
		                             .signal = -1,
		                             .before = d->desired,
		                             .after = granted};
	} else {
		d->trace_cut = true;
	}
	d->desired = granted;
	d->reason = reason;
	d->action = granted > d->current ? ACTION_SCALE_UP : granted < d->current ? ACTION_SCALE_DOWN : ACTION_NONE;
	d->write = granted != d->current && !policy->dry_run;
}

void decide_add_note(struct decision *d, enum stage stage, enum reason reason)
{
	if (d->n_trace == DECISION_TRACE_MAX)
		d->trace_cut = true;
	else
		d->entries[d->n_trace++] = (struct trace_entry){
		        .stage = stage, .reason = reason, .signal = -1, .before = d->desired, .after = d->desired};
}

bool decide_reason_is_of_pool(enum reason reason)
{
	return reason == REASON_POOL_LIMITED || reason == REASON_BUDGET_LIMITED || reason == REASON_RATIO_LIMITED ||
	       reason == REASON_WAITING_FOR_GPUS || reason == REASON_POOL_HELD;
}
