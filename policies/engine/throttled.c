// SPDX-License-Identifier: Apache-2.0
// guards.maxThrottledShare: a throttled replica is treated as less than one, so that replicas are ordered before the
// load exceeds what the throttled ones can serve. The share is read before the signals whose targets depend on it.
#include <math.h>

#include "policies/engine/policy.h"
#include "policies/engine/stages.h"
#include "policies/engine/tick.h"

#define THROTTLED_LOSS 0.3 // share of the throughput that a GPU loses while it is throttled for heat

void throttled_observe(struct tick *t)
{
	const struct policy_throttled_guard *g = &t->policy->guards.throttled;
	const struct decision_signal *d = &t->decision->signals[g->signal_index];
	struct trace_entry entry = {
	        .stage = STAGE_SOURCES,
	        .reason = REASON_THROTTLED,
	        .signal = (int32_t)g->signal_index,
	        .before = t->counts.spec,
	        .after = t->counts.spec,
	        .value = d->value,
	        .limit = g->share,
	};
	if (d->state != SIGNAL_OK) {
		entry.reason = REASON_THROTTLED_UNKNOWN;
	} else if (d->value < 0 || d->value > 1) {
		entry.reason = REASON_THROTTLED_NOT_A_SHARE;
	} else if (d->value > g->share) {
		t->capacity_ratio = 1 - THROTTLED_LOSS * d->value;
		entry.count = (int32_t)round(100 * t->capacity_ratio);
	} else {
		return;
	}
	tick_trace(t, &entry);
}
