// SPDX-License-Identifier: Apache-2.0
// guards.minMarginalGain: learns the throughput at each replica count, and stops growth where it does not pay.
#include <math.h>

#include "policies/engine/marginal_gain.h"
#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/plausible.h"
#include "policies/engine/policy.h"
#include "policies/engine/signal.h"
#include "policies/engine/stages.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

// Returns whether the replicas are at full load, so that their throughput is what they can serve: a signal asks for
// more of them, or more work waits than one second of the replicas. Throughput at less load says how much work came.
static bool is_loaded(const struct tick *t)
{
	const struct policy_objective *o = &t->policy->objective;
	const struct decision_signal *signals = t->decision->signals;
	for (size_t i = 0; i < t->policy->n_signals; i++)
		if (signals[i].state == SIGNAL_OK && !signal_is_input(t->policy, i) &&
		    t->unsustained[i] > t->counts.spec)
			return true;
	return o->set && signals[o->backlog_index].state == SIGNAL_OK &&
	       signals[o->backlog_index].value > (double)t->counts.spec;
}

// Throttled replicas have another curve.
void gain_observe(struct tick *t)
{
	const struct policy_gain_guard *config = &t->policy->guards.gain;
	const struct decision_signal *throughput = &t->decision->signals[config->signal_index];
	struct marginal_gain *g = state_gain(t->state);
	int64_t interval_ms = i64_max(t->policy->interval_ms, 1);
	uint64_t needed = (uint64_t)i64_max(i64_add(config->steady_ms, interval_ms - 1) / interval_ms, 0);
	marginal_gain_tick(g, t->counts.spec, t->decision->ready);
	if (throughput->state == SIGNAL_OK && g->steady_ticks >= needed && t->capacity_ratio >= 1 && is_loaded(t))
		marginal_gain_observe(g, throughput->value, (uint64_t)(PLAUSIBLE_AFTER_MS / interval_ms) + 1);
}

void gain_limit(struct tick *t, int32_t held)
{
	const struct policy_gain_guard *config = &t->policy->guards.gain;
	struct gain_fit fit;
	struct trace_entry entry = {
	        .stage = STAGE_GUARDS,
	        .reason = REASON_GAIN_LEARNING,
	        .signal = (int32_t)config->signal_index,
	        .before = t->wanted,
	        .after = t->wanted,
	};
	if (t->wanted <= held)
		return;
	if (!marginal_gain_fit(state_gain(t->state), &fit)) {
		entry.count = fit.usable;
		entry.limit = MARGINAL_GAIN_COUNTS_MIN;
		tick_trace(t, &entry);
		return;
	}
	int32_t limit = marginal_gain_limit(fit.serial, config->gain, t->wanted);
	if (limit >= t->wanted)
		return;
	entry.reason = REASON_MARGINAL_GAIN;
	entry.after = i32_max(multiple_down(limit, t->policy->replica_multiple), held);
	double gain = marginal_gain_of(fit.serial, entry.after + 1), shown = round(100 * gain) / 100;
	entry.value = shown < config->gain ? shown : gain;
	entry.limit = config->gain;
	entry.count = entry.after + 1;
	tick_set_proposal(t, &entry);
}
