// SPDX-License-Identifier: Apache-2.0
// Stage forecast: the proposal of its signal for the load at the time when replicas requested now are ready. It comes
// before combine, so that missing signals, formulas and Min have the same meaning as without a forecast. It proposes
// nothing while the forecasts of the last day were no better than naive ones (forecast.h).
#include <math.h>

#include "policies/engine/decide.h"
#include "policies/engine/forecast.h"
#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/engine/proposal.h"
#include "policies/engine/startup.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

// A mean over the replicas falls when replicas are added. Therefore the forecast uses the total load.
static bool is_per_replica(const struct policy_signal *signal)
{
	return signal->watermarks.set ? signal->watermarks.algorithm == WATERMARK_ABSOLUTE
	                              : signal->target.type == TARGET_VALUE;
}

static struct trace_entry entry_of(const struct tick *t, enum reason reason)
{
	size_t i = t->policy->forecast.signal_index;
	struct trace_entry entry = tick_note(t, STAGE_FORECAST, reason, (int32_t)i);
	entry.before = entry.after = t->decision->signals[i].proposal;
	return entry;
}

// How far ahead, in ms; -1 while the start-up time that the policy refers to is unknown.
static int64_t horizon_of(const struct policy *policy, const struct state_header *s)
{
	return policy->forecast.horizon_ms == FORECAST_HORIZON_STARTUP ? startup_ms(&s->startup, policy)
	                                                               : policy->forecast.horizon_ms;
}

// The forecast of the load `horizon_ms` after now.
struct outlook {
	int64_t horizon_ms; // a slot while the horizon is unknown
	int64_t left_ms;    // until the model has learnt enough
	bool learnt;        // the model has a forecast
	double load, deviation;
};

// Compares earlier forecasts with the load of now_ms, teaches it to the model, and records the next forecast; unless it
// `learns`, the model repeats the load before instead, and nothing is compared. A model that learns anew has no record.
static struct outlook follow(const struct policy *policy, struct state_header *s, int64_t now_ms, double load,
                             bool learns)
{
	const struct policy_forecast *config = &policy->forecast;
	struct forecast *f = &s->forecast;
	struct skill *skill = forecast_skill(f);
	int64_t slot_ms = i64_max(forecast_slot_ms(f, config), policy->interval_ms), horizon_ms = horizon_of(policy, s);
	struct outlook o = {.horizon_ms = horizon_ms < 0 ? slot_ms : i64_max(horizon_ms, 1)};
	if (learns) {
		skill_observe(skill, i64_add(slot_ms, slot_ms), now_ms, load);
		forecast_observe(f, config, now_ms, load);
	} else {
		forecast_repeat(f, config, now_ms);
	}
	struct skill_pending next = {.due_ms = i64_add(now_ms, o.horizon_ms), .last = load};
	o.learnt = forecast_at(f, config, policy->interval_ms, next.due_ms, &o.load, &o.deviation, &o.left_ms);
	if (!o.learnt)
		skill_reset(skill);
	if (!o.learnt || !learns)
		return o;
	next.model = o.load;
	next.season = config->model == FORECAST_LINEAR
	                      ? load
	                      : forecast_season_ago(f, config, policy->interval_ms, next.due_ms);
	skill_remember(skill, now_ms, &next);
	return o;
}

static void trace_learning(struct tick *t, const struct outlook *o)
{
	const struct policy_forecast *config = &t->policy->forecast;
	const struct skill *skill = forecast_skill(&t->state->forecast);
	int64_t compared_ms = o->learnt ? skill->compared_ms : 0;
	int64_t ahead_ms = compared_ms > 0 ? 0 : o->horizon_ms; // the first comparison is one horizon away
	int64_t trial_ms = forecast_trial_ms(config);
	struct trace_entry entry = entry_of(t, REASON_FORECAST_LEARNING);
	entry.window_ms = i64_add(forecast_learning_ms(config), i64_add(o->horizon_ms, trial_ms));
	entry.duration_ms = i64_max(i64_add(o->left_ms, i64_add(ahead_ms, i64_sub(trial_ms, compared_ms))), 0);
	tick_trace(t, &entry);
}

// Returns whether the forecast has been better than the naive ones until the tick before (was_tried, is_skilled); else
// reports why it is not used. The load of this tick does not count: if a larger load made the forecast worse, it would
// lower the scale. Pinned by prop_decide "more_load_never_means_fewer_replicas".
static bool is_trusted(struct tick *t, const struct outlook *o, bool was_tried, bool is_skilled)
{
	const struct skill *skill = forecast_skill(&t->state->forecast);
	int64_t trial_ms = forecast_trial_ms(&t->policy->forecast);
	if (!o->learnt || skill->compared_ms < trial_ms || !was_tried) {
		trace_learning(t, o);
		return false;
	}
	if (is_skilled)
		return true;
	struct trace_entry entry = entry_of(t, REASON_FORECAST_OFF);
	skill_errors(skill, &entry.value, &entry.limit);
	tick_trace(t, &entry);
	return false;
}

// Returns whether the signal itself is above its target, however little, or above its high mark.
static bool is_above(const struct tick *t, const struct policy_signal *signal, const struct decision_signal *d)
{
	struct policy_target target = signal->target;
	target.value = d->target; // lowered while replicas are throttled
	enum reason r = target.set ? hpa_propose(&target, 0, 0, d->value, &t->counts).reason : d->reason;
	return r == REASON_ABOVE_TARGET || r == REASON_ABOVE_HIGH_WATERMARK;
}

static void propose(struct tick *t, double replicas, const struct outlook *o)
{
	const struct policy_forecast *config = &t->policy->forecast;
	struct decision_signal *d = &t->decision->signals[config->signal_index];
	const struct policy_signal *signal = &t->policy->signals[config->signal_index];
	double high = fmax(o->load + config->band * o->deviation, 0);
	struct proposal p = signal_propose(t->policy, signal, high / replicas, &t->counts);
	struct trace_entry entry = entry_of(t, REASON_FORECAST);
	entry.value = o->load;
	entry.limit = high;
	entry.duration_ms = o->horizon_ms;
	// During a panic, and while the signal itself asks for more, the forecast does not lower the scale.
	bool may_lower = config->use == FORECAST_BOTH && t->state->panic.over_ms == TIME_NONE;
	if (may_lower && is_above(t, signal, d))
		p.replicas = i32_max(p.replicas, t->counts.spec);
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

// Returns whether the model may learn from the load, limited to *load: a load beyond what is plausible, or one from a
// window that contains such a sample, must have lasted.
static bool is_believed(const struct policy *policy, struct state_header *s, int64_t now_ms, int64_t gap_ms,
                        double *load)
{
	size_t i = policy->forecast.signal_index;
	const struct window *w = &state_signal(s, i)->window;
	double most = plausible_load(policy, i);
	int64_t window_ms = w->cap > 0 ? policy->signals[i].window.duration_ms : 0;
	bool is_beyond = *load > most || (w->cap > 0 && w->newest_limited_ms > i64_sub(now_ms, window_ms));
	*load = fmin(fmax(*load, 0), most);
	return !doubt_observe(&s->forecast.doubt, is_beyond, now_ms, gap_ms, i64_add(PLAUSIBLE_AFTER_MS, window_ms));
}

static void trace_doubt(struct tick *t, double load, bool learns)
{
	struct trace_entry entry = entry_of(t, learns ? REASON_VALUE_LIMITED : REASON_VALUE_NOT_LEARNT);
	entry.value = load;
	entry.limit = plausible_load(t->policy, t->policy->forecast.signal_index);
	entry.window_ms = PLAUSIBLE_AFTER_MS;
	tick_trace(t, &entry);
}

void forecast_stage(struct tick *t)
{
	const struct policy_forecast *config = &t->policy->forecast;
	const struct policy_signal *signal = &t->policy->signals[config->signal_index];
	const struct decision_signal *d = &t->decision->signals[config->signal_index];
	if (d->state != SIGNAL_OK)
		return; // a forecast from old data does not justify a change
	double replicas = is_per_replica(signal) ? (double)t->counts.ready : 1;
	double load = d->value * replicas;
	if (replicas == 0 || !isfinite(load))
		return;
	double limited = load;
	int64_t gap_ms = i64_add(t->policy->interval_ms, t->policy->interval_ms);
	bool learns = is_believed(t->policy, t->state, t->now_ms, gap_ms, &limited);
	if (!learns || load > limited)
		trace_doubt(t, load, learns);
	struct skill *skill = forecast_skill(&t->state->forecast);
	bool was_tried = skill->compared_ms >= forecast_trial_ms(config);
	bool is_skilled = skill_evaluate(skill, forecast_trial_ms(config));
	struct outlook o = follow(t->policy, t->state, t->now_ms, limited, learns);
	if (horizon_of(t->policy, t->state) < 0) {
		struct trace_entry entry = entry_of(t, REASON_FORECAST_NO_HORIZON);
		tick_trace(t, &entry);
		return;
	}
	if (is_trusted(t, &o, was_tried, is_skilled))
		propose(t, replicas, &o);
}

int64_t decide_forecast_history_ms(const struct policy *policy, int64_t *ret_step_ms)
{
	const struct policy_forecast *config = &policy->forecast;
	*ret_step_ms = policy->interval_ms;
	if (!config->set || is_per_replica(&policy->signals[config->signal_index]))
		return 0;
	const struct forecast shape = {.n_slots = forecast_slots_needed(config, policy->interval_ms)};
	*ret_step_ms = i64_max(forecast_slot_ms(&shape, config), policy->interval_ms);
	// Data to learn from; a horizon later, the first comparison; then a season or a window of comparisons.
	int64_t span_ms = i64_mul(forecast_slot_ms(&shape, config), (int64_t)shape.n_slots);
	int64_t horizon_ms = config->horizon_ms == FORECAST_HORIZON_STARTUP
	                             ? (policy->startup.given ? policy->startup.start_ms : *ret_step_ms)
	                             : config->horizon_ms;
	int64_t judged_ms =
	        i64_add(span_ms < SKILL_DAY_MS ? span_ms : SKILL_DAY_MS, horizon_ms < span_ms ? horizon_ms : span_ms);
	int64_t spans = config->model == FORECAST_LINEAR ? 1 : 2;
	int64_t judged = i64_add(judged_ms, *ret_step_ms - 1) / *ret_step_ms;
	return i64_mul(*ret_step_ms, i64_add(spans * (int64_t)shape.n_slots + 2, judged));
}

void decide_refill_forecast(const struct policy *policy, void *state, const struct obs_series *samples,
                            size_t n_samples, int64_t now_ms)
{
	struct state_header *s = state_of(policy, state);
	struct forecast *f = &s->forecast;
	double load, deviation;
	int64_t left_ms;
	if (!policy->forecast.set ||
	    forecast_at(f, &policy->forecast, policy->interval_ms, now_ms, &load, &deviation, &left_ms))
		return;
	forecast_init(f, forecast_slots(f), f->n_slots);
	skill_reset(forecast_skill(f));
	int64_t before_ms = TIME_NONE, step_ms;
	decide_forecast_history_ms(policy, &step_ms);
	for (size_t i = 0; i < n_samples; i++) {
		if (samples[i].time_ms > now_ms || samples[i].time_ms < before_ms || !isfinite(samples[i].value))
			continue;
		before_ms = samples[i].time_ms;
		double value = samples[i].value;
		bool learns = is_believed(policy, s, before_ms, i64_add(step_ms, step_ms), &value);
		follow(policy, s, before_ms, value, learns);
	}
}
