// SPDX-License-Identifier: Apache-2.0
#include "test/support/laws.h"

#include <math.h>
#include <stdbool.h>

#include "policies/engine/number.h"
#include "policies/engine/schedule.h"
#include "policies/engine/state.h"

static const struct trace_entry *find(const struct decision *d, enum reason reason)
{
	for (size_t i = 0; i < d->n_trace; i++)
		if (d->entries[i].reason == reason)
			return &d->entries[i];
	return NULL;
}

static bool can_be_zero(const struct policy *p)
{
	bool can = p->idle.set && p->idle.replicas == 0;
	for (size_t i = 0; i < p->n_schedules; i++)
		can |= p->schedules[i].replicas_set && p->schedules[i].replicas == 0;
	return can;
}

static bool is_switched_off(const struct law_tick *t)
{
	return t->decision->current == 0 && t->policy->min_replicas != 0 && !can_be_zero(t->policy);
}

// What decides: neither a bound nor the idle level.
static bool is_by_signals(const struct law_tick *t)
{
	const struct decision *d = t->decision;
	return d->current >= d->min_replicas && d->current <= d->max_replicas && !is_switched_off(t) &&
	       !find(d, REASON_IDLE_REACHED) && !find(d, REASON_ACTIVATED);
}

// ---- the answer is one ----

static bool is_about_data(enum reason r)
{
	return (r >= REASON_NO_DATA && r <= REASON_NO_READY_REPLICAS) || r == REASON_FORMULA_MISSING ||
	       r == REASON_FORMULA_FAILED || r == REASON_FALLBACK_ACTIVE || r == REASON_ACTIVATION_UNKNOWN;
}

// A reason says why the scale is what it is: it must fit what is done.
static const char *broken_reason(const struct decision *d)
{
	enum reason r = d->reason;
	bool up = d->action == ACTION_SCALE_UP, down = d->action == ACTION_SCALE_DOWN;
	if (d->action == ACTION_HOLD && !is_about_data(r))
		return "a hold names the missing data";
	if ((up || down) &&
	    (r == REASON_COOLDOWN_ACTIVE || r == REASON_IDLE || r == REASON_PAUSED || r == REASON_SCALING_DISABLED ||
	     r == REASON_PARTIAL_SIGNALS || r == REASON_FORMULA_MISSING || r == REASON_FORMULA_FAILED ||
	     r == REASON_NO_DATA || r == REASON_ALL_SIGNALS_MISSING || r == REASON_ACTIVATION_UNKNOWN))
		return "what holds the scale does not change it";
	if (up && (r == REASON_SCALE_DOWN_STABILIZED || r == REASON_SCALE_DOWN_LIMIT || r == REASON_IDLE_REACHED ||
	           r == REASON_FALLBACK_LIFTING))
		return "a limit on the way down raises nothing";
	if (down && (r == REASON_SCALE_UP_STABILIZED || r == REASON_SCALE_UP_LIMIT || r == REASON_ACTIVATED ||
	             r == REASON_PANIC || r == REASON_REPLICAS_STARTING))
		return "a limit on the way up takes nothing away";
	return NULL;
}

// From combine on, each entry that changes the proposal starts with the result of the entry before it, and the last one
// ends with the decision.
static const char *broken_trace(const struct decision *d)
{
	int32_t wanted = d->current;
	enum stage stage = STAGE_COMBINE;
	bool open = true; // a single signal has no entry of combine: the first entry is its own
	for (size_t i = 0; i < d->n_trace; i++) {
		const struct trace_entry *e = &d->entries[i];
		if (e->stage >= STAGE__COUNT || e->reason <= REASON_NONE || e->reason >= REASON__COUNT ||
		    e->signal < -1 || e->signal >= (int32_t)d->n_signals)
			return "a trace entry is valid";
		if (e->stage < STAGE_COMBINE || e->reason == REASON_DRY_RUN)
			continue;
		if (e->stage < stage)
			return "the stages come in their order";
		stage = e->stage;
		if (e->stage == STAGE_COMBINE) {
			wanted = e->after;
			open = false;
			continue;
		}
		if (!open && e->before != wanted)
			return "an entry starts with the result of the entry before it";
		wanted = e->after;
		open = false;
	}
	return open || wanted == d->desired ? NULL : "the trace ends with the decision";
}

static const char *broken_shape(const struct law_tick *t)
{
	const struct decision *d = t->decision;
	if (d->current < 0 || d->desired < 0 || d->current != i32_max(t->seen->spec_replicas, 0))
		return "replicas are not negative";
	if (d->driver < 0 || (size_t)d->driver >= d->n_trace || d->n_trace > DECISION_TRACE_MAX)
		return "there is a driver";
	if (d->reason <= REASON_NONE || d->reason >= REASON__COUNT)
		return "there is a reason";
	if (d->write != (d->desired != d->current && !t->policy->dry_run))
		return "a write is a change";
	enum action action = d->desired > d->current   ? ACTION_SCALE_UP
	                     : d->desired < d->current ? ACTION_SCALE_DOWN
	                                               : d->action;
	if (d->action != action || (d->desired == d->current && action >= ACTION_SCALE_UP))
		return "the action matches the direction";
	for (size_t i = 0; i < d->n_signals; i++) {
		const struct decision_signal *s = &d->signals[i];
		if (s->proposal < 0 || s->state >= SIGNAL_STATE__COUNT ||
		    (s->state == SIGNAL_OK && !isfinite(s->value)))
			return "a signal that counts has a number";
		if (s->state != SIGNAL_OK && s->proposal != d->current)
			return "a signal without data has no proposal";
	}
	return broken_trace(d);
}

const char *laws_broken_by_any(const struct law_tick *t)
{
	const struct decision *d = t->decision;
	const char *law = broken_shape(t);
	if (law)
		return law;
	if (t->policy->paused)
		return d->desired == d->current && d->action == ACTION_NONE && d->reason == REASON_PAUSED
		               ? NULL
		               : "a paused target is unchanged";
	if (d->min_replicas < 0 || d->min_replicas > d->max_replicas)
		return "the bounds leave room";
	if (is_switched_off(t))
		return d->desired == 0 && d->reason == REASON_SCALING_DISABLED
		               ? NULL
		               : "a target scaled to 0 by hand stays there";
	if (d->desired < d->min_replicas || d->desired > d->max_replicas)
		return "bounds";
	return NULL;
}

// ---- single stages ----

static const char *broken_fallback(const struct law_tick *t, bool any_ok)
{
	const struct policy *p = t->policy;
	const struct decision *d = t->decision;
	if (!p->fallback.set)
		return "no fallback without being asked for";
	bool is_idle = p->idle.set && d->current == p->idle.replicas; // one signal counts there
	if (any_ok && !is_idle && p->fallback.when == FALLBACK_ALL && p->combine != COMBINE_FORMULA)
		return "a healthy signal is not overridden";
	if (d->current > 0 && d->desired == 0 && d->max_replicas > 0)
		return "an error is not zero";
	return NULL;
}

static bool inside_of_bounds(const struct decision *d)
{
	return d->current >= d->min_replicas && d->current <= d->max_replicas;
}

static bool find_idle(const struct decision *d)
{
	for (size_t i = 0; i < d->n_trace; i++)
		if (d->entries[i].stage == STAGE_IDLE)
			return true;
	return false;
}

// The target goes to the idle level and leaves it according to the activation signal.
// The record is from before the tick. When the tick finds that the wall clock was set, the record's stamps are of the
// old clock, and so must be the time that they are compared with.
static int64_t record_now_ms(const struct decision *d)
{
	const struct trace_entry *set = find(d, REASON_CLOCK_SET);
	return set ? i64_sub(d->time_ms, (int64_t)(set->value * 1000)) : d->time_ms;
}

static const char *broken_idle(const struct law_tick *t, bool all_ok)
{
	const struct decision *d = t->decision;
	const struct policy_idle *idle = &t->policy->idle;
	const struct trace_entry *reached = find(d, REASON_IDLE_REACHED);
	const struct trace_entry *activated = find(d, REASON_ACTIVATED);
	if (!idle->set)
		return reached || activated ? "no idle without being asked for" : NULL;
	bool all_absent = t->seen->ready_replicas == 0; // what the replicas report is absent with them
	for (size_t i = 0; i < d->n_signals; i++)
		all_absent &= d->signals[i].state == SIGNAL_OK || d->signals[i].state == SIGNAL_IGNORED ||
		              d->signals[i].reason == REASON_NO_DATA || d->signals[i].reason == REASON_NO_POD_SAMPLES ||
		              d->signals[i].reason == REASON_NO_READY_REPLICAS;
	if (reached && ((!all_ok && !all_absent) || !(reached->value <= reached->limit)))
		return "idle only with all data, and without activity";
	if (reached && (reached->after >= d->current || d->desired > d->current))
		return "idle never adds";
	int64_t unready_ms = state_of_const(t->policy, t->before)->idle.unready_ms;
	if (reached && t->seen->ready_replicas >= 0 && t->seen->ready_replicas < d->current &&
	    (unready_ms == TIME_NONE || i64_sub(record_now_ms(d), unready_ms) < 180000))
		return "not idle while starting";
	if (!reached && d->current > idle->replicas && inside_of_bounds(d) && !find_idle(d) &&
	    !find(d, REASON_SCHEDULE_ACTIVE))
		return "the trace says why the target is not idle";
	if (activated && (!(activated->value > activated->limit) || d->desired <= d->current))
		return "activity activates the target";
	int32_t active_min = t->policy->n_schedules > 0 ? d->min_replicas : i32_max(t->policy->min_replicas, 1);
	if (!reached && d->current > idle->replicas && d->desired < active_min)
		return "below minReplicas only when idle";
	return NULL;
}

static const char *broken_startup(const struct law_tick *t)
{
	const struct decision *d = t->decision;
	if (d->reason != REASON_REPLICAS_STARTING)
		return NULL;
	const struct trace_entry *e = find(d, REASON_REPLICAS_STARTING);
	if (!t->policy->startup.set || !e || e->count <= 0 || e->after < d->current || e->after >= e->before)
		return "starting replicas only shorten a scale-up";
	return NULL;
}

static const char *broken_guard(const struct law_tick *t)
{
	const struct policy_guards *g = &t->policy->guards;
	const struct decision *d = t->decision;
	int64_t change = (int64_t)d->desired - d->current, ready = t->seen->ready_replicas;
	// A target that becomes active scales to its minimum in any case, or to the first multiple from there.
	int64_t first = multiple_up(d->min_replicas, t->policy->replica_multiple);
	bool activates = d->current < d->min_replicas && (d->desired == d->min_replicas || d->desired == first);
	if (!g->set || change == 0 || activates)
		return NULL;
	const struct trace_entry *gain = find(d, REASON_MARGINAL_GAIN);
	if (gain && (!g->gain.set || gain->after >= gain->before || (gain->after < d->current && !activates)))
		return "guards.minMarginalGain";
	if (g->max_step > 0 && (change > g->max_step || change < -(int64_t)g->max_step))
		return "guards.maxStep";
	if (g->max_pending_set && change > 0 && ready >= 0 && d->current - ready > g->max_pending_pods)
		return "guards.maxPendingPods";
	if (ready >= 0 && ready * 100 < (int64_t)d->current * g->min_available_percent)
		return "guards.minAvailablePercent";
	return NULL;
}

// The bounds in force are those of the schedule or the policy; only idle lowers the minimum, or raises it to 1.
static const char *broken_bounds(const struct law_tick *t)
{
	const struct policy *p = t->policy;
	const struct decision *d = t->decision;
	int64_t until_ms;
	int32_t min = p->min_replicas, max = p->max_replicas, i = schedule_at(p, d->time_ms, &until_ms);
	if (i >= 0)
		schedule_bounds(p, &p->schedules[i], &min, &max);
	if ((i >= 0) != (find(d, REASON_SCHEDULE_ACTIVE) != NULL) && !find(d, REASON_SCALING_DISABLED))
		return "the trace names the schedule in force";
	bool idle = p->idle.set && !(i >= 0 && schedule_prevents_idle(&p->schedules[i]));
	int32_t got = d->min_replicas, active_min = i32_min(i32_max(min, 1), max);
	bool ok = idle ? (got == p->idle.replicas && got < active_min) || got == active_min : got == min;
	return ok && d->max_replicas == max ? NULL : "bounds are those of the schedule or the policy";
}

// ---- what was on record ----

static const char *broken_cooldown(const struct law_tick *t)
{
	const struct decision *d = t->decision;
	int64_t now_ms = record_now_ms(d), last_ms = decide_last_scale_ms(t->policy, t->before);
	if (last_ms < 0)
		return NULL;
	int64_t up_at_ms = i64_add(last_ms, t->policy->cooldown.up_ms);
	int64_t down_at_ms = i64_add(last_ms, t->policy->cooldown.down_ms);
	if ((d->desired > d->current && now_ms < up_at_ms) || (d->desired < d->current && now_ms < down_at_ms))
		return "nothing moves inside the cooldown";
	return NULL;
}

static const char *broken_stabilization(const struct law_tick *t)
{
	const struct decision *d = t->decision;
	struct decide_recommendation asked[2 * DECIDE_HISTORY_MAX];
	size_t n = decide_recommendations(t->policy, t->before, asked, 2 * DECIDE_HISTORY_MAX);
	int64_t now_ms = record_now_ms(d);
	int64_t up_ms = i64_sub(now_ms, t->policy->scale_up.stabilization_window_ms);
	int64_t down_ms = i64_sub(now_ms, t->policy->scale_down.stabilization_window_ms);
	for (size_t i = 0; i < n; i++) {
		if (asked[i].time_ms > down_ms &&
		    d->desired < i32_min(i32_min(asked[i].replicas, d->current), d->max_replicas))
			return "no scale-down below what was asked for inside its window";
		if (asked[i].time_ms > up_ms && t->policy->replica_multiple <= 1 &&
		    d->desired > i32_max(asked[i].replicas, d->current))
			return "no scale-up above what was asked for inside its window";
	}
	return NULL;
}

// HPA: Percent rounds up on the way up and truncates on the way down; Max is the largest change.
static const char *broken_rate(const struct law_tick *t)
{
	const struct decision *d = t->decision;
	int direction = (d->desired > d->current) - (d->desired < d->current);
	const struct policy_scaling_rules *rules = direction > 0 ? &t->policy->scale_up : &t->policy->scale_down;
	if (direction == 0 || t->policy->replica_multiple > 1)
		return NULL;
	if (rules->select == SELECT_DISABLED)
		return "a disabled direction does not scale";
	int64_t now_ms = record_now_ms(d);
	struct decide_scale_event events[2 * DECIDE_HISTORY_MAX];
	size_t n = decide_scale_events(t->policy, t->before, events, 2 * DECIDE_HISTORY_MAX);
	double limit = 0;
	for (size_t i = 0; i < rules->n_rates; i++) {
		const struct policy_rate *rate = &rules->rates[i];
		double start = d->current, part = (double)rate->value / 100;
		for (size_t k = 0; k < n; k++)
			start -= events[k].time_ms > i64_sub(now_ms, rate->period_ms) ? events[k].change : 0;
		double one = rate->type == RATE_PODS ? start + direction * (double)rate->value
		             : direction > 0         ? ceil(start * (1 + part))
		                                     : trunc(start * (1 - part));
		bool upper = (direction > 0) == (rules->select == SELECT_MAX);
		limit = i == 0 || (upper ? one > limit : one < limit) ? one : limit;
	}
	if (rules->n_rates > 0 && (direction > 0 ? d->desired > limit : d->desired < limit))
		return "step limits hold over any period";
	return NULL;
}

static const char *broken_record(const struct law_tick *t)
{
	const char *law = broken_cooldown(t);
	law = law ? law : broken_stabilization(t);
	return law ? law : broken_rate(t);
}

// ---- all signals ----

// A signal above its target or mark never lowers the scale, one below never raises it; panic and forecast look at other
// values than the one of this tick. From 0, any load is a reason to start.
static const char *broken_direction(const struct law_tick *t)
{
	const struct decision *d = t->decision;
	for (size_t i = 0; i < d->n_signals; i++) {
		const struct policy_signal *s = &t->policy->signals[i];
		const struct decision_signal *g = &d->signals[i];
		bool is_mark = s->watermarks.set && s->watermarks.algorithm == WATERMARK_ABSOLUTE;
		bool is_compared = s->target.set && (s->target.type == TARGET_VALUE || s->target.type == TARGET_PODS);
		double per_replica = i32_max(t->seen->status_replicas, 0); // -1: not reported
		if (s->target.set && s->target.type == TARGET_AVERAGE_VALUE)
			is_compared = true;
		else
			per_replica = 1;
		if (d->current == 0 || g->state != SIGNAL_OK || (!is_mark && !is_compared) || find(d, REASON_THROTTLED))
			continue;
		double low = is_mark ? s->watermarks.low : s->target.value, high = is_mark ? s->watermarks.high : low;
		if (g->value > high * per_replica && g->proposal < d->current && !is_mark)
			return "a signal above its target never lowers the scale";
		if (g->value > high && g->proposal < d->current && is_mark && !find(d, REASON_FORECAST))
			return "a signal above its high mark never lowers the scale";
		if (g->value < low * per_replica && g->proposal > d->current && !find(d, REASON_FORECAST) &&
		    !find(d, REASON_PANIC))
			return "a signal below its target or low mark never raises the scale";
	}
	return NULL;
}

static const char *broken_vote(const struct law_tick *t, bool any_ok, bool all_ok)
{
	const struct policy *p = t->policy;
	const struct decision *d = t->decision;
	bool is_fallback = find(d, REASON_FALLBACK_ACTIVE) != NULL;
	bool any_up = is_fallback, any_down = is_fallback;
	for (size_t i = 0; i < d->n_signals; i++) {
		any_up |= d->signals[i].proposal > d->current;
		any_down |= d->signals[i].proposal < d->current;
	}
	if (p->combine == COMBINE_FORMULA)
		return !any_ok && !is_fallback && d->desired != d->current ? "no data is a hold" : NULL;
	if (p->combine == COMBINE_MAX && find(d, REASON_PANIC) && d->desired < d->current)
		return "no scale-down in panic";
	if (!any_up && d->desired > d->current)
		return "no scale-up unless a signal asks for more";
	if (!any_down && d->desired < d->current)
		return "no scale-down unless a signal asks for fewer";
	if (!any_ok && !is_fallback && !find(d, REASON_IDLE) && d->action != ACTION_HOLD)
		return "no data is a hold";
	if (!all_ok && !is_fallback && d->desired < d->current)
		return "no scale-down while a signal is missing";
	return NULL;
}

const char *laws_broken(const struct law_tick *t)
{
	const struct decision *d = t->decision;
	const char *law = laws_broken_by_any(t);
	law = law ? law : broken_bounds(t);
	if (law || t->policy->paused || is_switched_off(t))
		return law;
	bool any_ok = false, all_ok = true;
	for (size_t i = 0; i < d->n_signals; i++) {
		const struct policy_signal *s = &t->policy->signals[i];
		if ((t->policy->inputs >> i & 1) && !s->target.set && !s->watermarks.set)
			continue; // has no proposal
		any_ok |= d->signals[i].state == SIGNAL_OK;
		all_ok &= d->signals[i].state == SIGNAL_OK || d->signals[i].state == SIGNAL_IGNORED;
	}
	if (find(d, REASON_FALLBACK_ACTIVE))
		law = broken_fallback(t, any_ok);
	law = law ? law : broken_idle(t, all_ok);
	law = law ? law : broken_startup(t);
	law = law ? law : broken_direction(t);
	law = law || !is_by_signals(t) ? law : broken_vote(t, any_ok, all_ok);
	law = law || !is_by_signals(t) ? law : broken_record(t);
	law = law || !(inside_of_bounds(d) || find(d, REASON_ACTIVATED)) ? law : broken_guard(t);
	return law ? law : broken_reason(d);
}
