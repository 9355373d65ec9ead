// SPDX-License-Identifier: Apache-2.0
// Stage forecast: what the load will be when replicas ordered now are ready, as a proposal of its signal. It comes
// before combine, so that missing signals, formulas and Min mean the same with it as without.
#include <math.h>

#include "policies/decide.h"
#include "policies/forecast.h"
#include "policies/number.h"
#include "policies/observation.h"
#include "policies/policy.h"
#include "policies/signal.h"
#include "policies/startup.h"
#include "policies/state.h"
#include "policies/tick.h"

// Values that are a mean over the replicas say little about the load: more replicas, a smaller value. The forecast is
// made on the total, whatever the signal shows.
static bool is_per_replica(const struct policy_signal *signal)
{
	return signal->watermarks.set ? signal->watermarks.algorithm == WATERMARK_ABSOLUTE
	                              : signal->target.type == TARGET_VALUE;
}

static struct trace_entry entry_of(const struct tick *t, enum reason reason)
{
	int32_t proposal = t->decision->signals[t->policy->forecast.signal_index].proposal;
	return (struct trace_entry){
	        .stage = STAGE_FORECAST,
	        .reason = reason,
	        .signal = (int32_t)t->policy->forecast.signal_index,
	        .before = proposal,
	        .after = proposal,
	};
}

static void propose(struct tick *t, double replicas, int64_t horizon_ms)
{
	const struct policy_forecast *config = &t->policy->forecast;
	struct forecast *f = &t->state->forecast;
	struct trace_entry entry = entry_of(t, REASON_FORECAST_LEARNING);
	double load = 0, deviation = 0;
	if (!forecast_at(f, state_slots(t->state, f), config, t->policy->interval_ms, i64_add(t->now_ms, horizon_ms),
	                 &load, &deviation, &entry.duration_ms)) {
		entry.window_ms = config->model == FORECAST_LINEAR ? config->window_ms
		                                                   : i64_add(config->season_ms, config->season_ms);
		tick_trace(t, &entry);
		return;
	}
	struct decision_signal *d = &t->decision->signals[config->signal_index];
	double high = fmax(load + config->band * deviation, 0);
	struct proposal p =
	        signal_propose(t->policy, &t->policy->signals[config->signal_index], high / replicas, &t->counts);
	entry.value = load;
	entry.limit = high;
	entry.duration_ms = horizon_ms;
	// A burst that has not passed is not argued away.
	bool may_lower = config->use == FORECAST_BOTH && t->state->panic.over_ms == TIME_NONE;
	bool changes = may_lower ? p.replicas != d->proposal : p.replicas > d->proposal;
	entry.reason = changes ? REASON_FORECAST : REASON_FORECAST_COVERED;
	if (changes)
		entry.after = p.replicas;
	int32_t at = tick_trace(t, &entry);
	if (!changes)
		return;
	d->proposal = p.replicas;
	t->unsustained[config->signal_index] =
	        may_lower ? p.replicas : i32_max(p.replicas, t->unsustained[config->signal_index]);
	t->entry[config->signal_index] = at;
	t->starting_entry[config->signal_index] = -1;
}

void forecast_stage(struct tick *t)
{
	const struct policy_forecast *config = &t->policy->forecast;
	const struct policy_signal *signal = &t->policy->signals[config->signal_index];
	const struct decision_signal *d = &t->decision->signals[config->signal_index];
	struct forecast *f = &t->state->forecast;
	if (d->state != SIGNAL_OK)
		return; // a guess from old data is no reason to act
	double replicas = is_per_replica(signal) ? (double)t->counts.ready : 1;
	double load = d->value * replicas;
	if (replicas == 0 || !isfinite(load))
		return;
	forecast_observe(f, state_slots(t->state, f), config, t->now_ms, load);
	int64_t horizon_ms = config->horizon_ms;
	if (horizon_ms == FORECAST_HORIZON_STARTUP) {
		horizon_ms = startup_ms(&t->state->startup, t->policy);
		if (horizon_ms < 0) {
			struct trace_entry entry = entry_of(t, REASON_FORECAST_NO_HORIZON);
			tick_trace(t, &entry);
			return;
		}
	}
	propose(t, replicas, horizon_ms);
}

int64_t decide_forecast_history_ms(const struct policy *policy, int64_t *ret_step_ms)
{
	const struct policy_forecast *config = &policy->forecast;
	*ret_step_ms = policy->interval_ms;
	if (!config->set || is_per_replica(&policy->signals[config->signal_index]))
		return 0;
	const struct forecast shape = {.n_slots = forecast_slots_needed(config, policy->interval_ms)};
	*ret_step_ms = i64_max(forecast_slot_ms(&shape, config), policy->interval_ms);
	int64_t spans = config->model == FORECAST_LINEAR ? 1 : 2;
	return *ret_step_ms * (spans * (int64_t)shape.n_slots + 2);
}

void decide_refill_forecast(const struct policy *policy, void *state, const struct obs_series *samples,
                            size_t n_samples, int64_t now_ms)
{
	struct state_header *s = state_of(policy, state);
	struct forecast *f = &s->forecast;
	double *slots = state_slots(s, f), load, deviation;
	int64_t left_ms;
	if (!policy->forecast.set ||
	    forecast_at(f, slots, &policy->forecast, policy->interval_ms, now_ms, &load, &deviation, &left_ms))
		return;
	forecast_init(f, slots, f->slots_offset, f->n_slots);
	int64_t before_ms = TIME_NONE;
	for (size_t i = 0; i < n_samples; i++) {
		if (samples[i].time_ms > now_ms || samples[i].time_ms < before_ms || !isfinite(samples[i].value))
			continue;
		before_ms = samples[i].time_ms;
		forecast_observe(f, slots, &policy->forecast, before_ms, samples[i].value);
	}
}
