// SPDX-License-Identifier: Apache-2.0
#include "policies/decide.h"

#include <assert.h>

#include "policies/fallback.h"
#include "policies/idle.h"
#include "policies/number.h"
#include "policies/observation.h"
#include "policies/policy.h"
#include "policies/schedule.h"
#include "policies/startup.h"
#include "policies/state.h"
#include "policies/tick.h"

// Entries kept free for the stages after the signals.
#define TRACE_RESERVE 16

int32_t tick_trace(struct tick *t, const struct trace_entry *entry)
{
	struct decision *d = t->decision;
	size_t room = entry->stage <= STAGE_SUSTAIN ? DECISION_TRACE_MAX - TRACE_RESERVE : DECISION_TRACE_MAX;
	if (d->n_trace >= room) {
		d->trace_cut = true;
		return -1;
	}
	d->trace[d->n_trace] = *entry;
	return (int32_t)d->n_trace++;
}

void tick_limit(struct tick *t, const struct trace_entry *entry)
{
	t->decision->driver = tick_trace(t, entry);
	t->decision->reason = entry->reason;
	t->wanted = entry->after;
}

static void count_replicas(struct tick *t)
{
	const struct observation *o = t->observation;
	t->counts.spec = i32_max(o->spec_replicas, 0);
	t->counts.status = i32_max(o->status_replicas, 0);
	t->counts.ready = o->ready_replicas;
	t->wanted = t->counts.spec;
	if (o->ready_replicas >= 0)
		return;
	t->counts.ready = t->counts.spec;
	tick_trace(t, &(struct trace_entry){
	                      .stage = STAGE_SOURCES,
	                      .reason = REASON_READY_UNKNOWN,
	                      .signal = -1,
	                      .before = t->counts.spec,
	                      .after = t->counts.spec,
	              });
}

// Zero may be our own doing: the idle level, or a schedule.
static bool can_be_zero(const struct policy *policy)
{
	if (policy->idle.set && policy->idle.replicas == 0)
		return true;
	for (size_t i = 0; i < policy->n_schedules; i++)
		if (policy->schedules[i].replicas_set && policy->schedules[i].replicas == 0)
			return true;
	return false;
}

// A scale outside the bounds, or switched off by hand, is settled without asking any signal. HPA: reconcileAutoscaler.
static bool is_settled_by_scale(struct tick *t)
{
	int32_t spec = t->counts.spec;
	if (spec == 0 && t->policy->min_replicas != 0 && !can_be_zero(t->policy)) {
		tick_limit(t, &(struct trace_entry){
		                      .stage = STAGE_BOUNDS,
		                      .reason = REASON_SCALING_DISABLED,
		                      .signal = -1,
		                      .limit = (double)t->policy->min_replicas,
		              });
		return true;
	}
	return spec > t->max || spec < t->min;
}

// Which replicas are on their way. Before the signals: their proposals count them.
static void observe_starts(struct tick *t)
{
	struct startup *s = &t->state->startup;
	bool learnt = startup_observe(s, t->policy, t->now_ms, t->counts.spec, t->observation->ready_replicas);
	t->coming = t->policy->startup.set ? startup_coming(s, t->policy, t->now_ms) : 0;
	if (!learnt || !t->policy->startup.set || t->policy->startup.given)
		return;
	uint32_t newest = (s->next_start + STARTUP_STARTS_MAX - 1) % STARTUP_STARTS_MAX;
	tick_trace(t, &(struct trace_entry){
	                      .stage = STAGE_SOURCES,
	                      .reason = REASON_STARTUP_LEARNT,
	                      .signal = -1,
	                      .before = t->counts.spec,
	                      .after = t->counts.spec,
	                      .duration_ms = s->starts_ms[newest],
	                      .window_ms = startup_ms(s, t->policy),
	                      .count = (int32_t)s->n_starts,
	              });
}

static void run_stages(struct tick *t)
{
	if (t->policy->n_schedules > 0)
		schedule_observe(t);
	observe_starts(t);
	// Signals are read in any case: their windows and timers must go on.
	for (size_t i = 0; i < t->policy->n_signals; i++)
		signal_stage(t, i);
	if (t->policy->panic.set)
		panic_stage(t);
	if (t->policy->forecast.set)
		forecast_stage(t);
	bool fallback = t->policy->fallback.set, idle = t->policy->idle.set;
	if (idle && t->schedule >= 0 && schedule_keeps_awake(&t->policy->schedules[t->schedule])) {
		t->state->idle.quiet_since_ms = TIME_NONE;
		idle = false;
	}
	if (idle)
		idle_observe(t);
	if (fallback)
		fallback_observe(t);
	t->settled = is_settled_by_scale(t);
	if (!t->settled) {
		combine_stage(t);
		if (fallback)
			fallback_stage(t);
		if (!t->hold) {
			stabilize_stage(t);
			rate_stage(t);
			cooldown_stage(t);
		}
		if (idle)
			idle_stage(t);
	}
	if (t->decision->reason != REASON_SCALING_DISABLED)
		bounds_stage(t);
	multiple_stage(t);
	if (t->policy->guards.set && !t->settled)
		guards_stage(t);
}

static void finish(struct tick *t)
{
	struct decision *d = t->decision;
	int32_t spec = t->counts.spec;
	struct trace_entry entry = {.stage = STAGE_MODE, .signal = -1, .before = t->wanted, .after = spec};
	if (t->policy->paused) {
		entry.reason = REASON_PAUSED;
		tick_limit(t, &entry);
		t->hold = false;
	}
	if (d->driver < 0)
		d->driver = (int32_t)d->n_trace - 1; // its own entry was cut
	d->desired = t->wanted;
	d->min_replicas = t->min;
	d->max_replicas = t->max;
	d->action = d->desired > spec   ? ACTION_SCALE_UP
	            : d->desired < spec ? ACTION_SCALE_DOWN
	            : t->hold           ? ACTION_HOLD
	                                : ACTION_NONE;
	d->write = d->desired != spec && !t->policy->dry_run;
	if (d->desired != spec && t->policy->dry_run) {
		entry.reason = REASON_DRY_RUN;
		entry.before = spec;
		entry.after = d->desired;
		tick_trace(t, &entry);
	}
}

void decide(const struct policy *policy, const struct observation *observation, int64_t now_ms, void *state,
            struct decision *ret_decision)
{
	assert(observation->n_signals == policy->n_signals && policy->n_signals <= POLICY_SIGNALS_MAX);
	struct state_header *s = state_of(policy, state);
	now_ms = i64_max(now_ms, s->last_now_ms);
	s->last_now_ms = now_ms;

	struct decision *d = ret_decision;
	d->time_ms = now_ms;
	d->ready = observation->ready_replicas;
	d->pending = observation->pending_replicas;
	d->reason = REASON_DESIRED_WITHIN_RANGE;
	d->driver = -1;
	d->n_signals = policy->n_signals;
	d->n_trace = 0;
	d->trace_cut = false;

	struct tick t; // its arrays are filled signal by signal
	t.policy = policy;
	t.observation = observation;
	t.state = s;
	t.decision = d;
	t.now_ms = now_ms;
	t.min = policy->min_replicas;
	t.max = policy->max_replicas;
	t.schedule = -1;
	t.hold = t.blind = t.asleep = false;
	count_replicas(&t);
	d->current = t.counts.spec;
	if (!s->seeded)
		decide_record_recommendation(policy, state, now_ms, t.counts.spec);
	run_stages(&t);
	finish(&t);
}
