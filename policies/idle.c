// SPDX-License-Identifier: Apache-2.0
#include "policies/idle.h"

#include <math.h>
#include <string.h>

#include "policies/guards.h"
#include "policies/number.h"
#include "policies/observation.h"
#include "policies/policy.h"
#include "policies/state.h"
#include "policies/tick.h"

void idle_init(struct idle *s)
{
	*s = (struct idle){TIME_NONE, TIME_NONE};
}

bool idle_is_same(const struct policy_idle *a, const struct policy_idle *b)
{
	// Written so that two marks that are not a number are not the same.
	return a->set && b->set && strcmp(a->activation.signal, b->activation.signal) == 0 &&
	       a->activation.above <= b->activation.above && a->activation.above >= b->activation.above;
}

// The value of this tick wakes, without waiting for a window; both it and the window must be silent.
static enum idle_activity activity_of(const struct tick *t)
{
	const struct policy_idle *idle = &t->policy->idle;
	const struct decision_signal *d = &t->decision->signals[idle->signal];
	double raw = t->raw[idle->signal];
	if (isnan(raw))
		return IDLE_UNKNOWN;
	if (raw > idle->activation.above || (d->state == SIGNAL_OK && d->value > idle->activation.above))
		return IDLE_ACTIVE;
	return IDLE_QUIET;
}

void idle_observe(struct tick *t)
{
	const struct policy_idle *idle = &t->policy->idle;
	struct idle *s = &t->state->idle;
	t->awake_min = i32_min(i32_max(t->min, 1), t->max);
	if (s->first_ms == TIME_NONE)
		s->first_ms = t->now_ms;
	t->activity = (int)activity_of(t);
	t->asleep = t->counts.spec == idle->replicas && idle->replicas < t->awake_min;
	t->min = t->asleep ? idle->replicas : t->awake_min;
	// Nobody can be served before replicas are ready: silence until then says nothing.
	bool starting = guards_starting(t->observation, &t->counts) > 0;
	if (t->asleep || starting || t->activity != IDLE_QUIET)
		s->quiet_since_ms = TIME_NONE;
	else if (s->quiet_since_ms == TIME_NONE)
		s->quiet_since_ms = t->now_ms;
}

static struct trace_entry entry_of(const struct tick *t, enum reason reason)
{
	const struct policy_idle *idle = &t->policy->idle;
	double value = t->raw[idle->signal];
	if (t->activity == IDLE_ACTIVE && !(value > idle->activation.above))
		value = t->decision->signals[idle->signal].value; // active by its window
	return (struct trace_entry){
	        .stage = STAGE_IDLE,
	        .reason = reason,
	        .signal = (int32_t)idle->signal,
	        .before = t->wanted,
	        .after = t->counts.spec,
	        .value = value,
	        .limit = idle->activation.above,
	        .window_ms = idle->after_ms,
	};
}

static void stay_asleep_or_wake(struct tick *t)
{
	struct trace_entry entry = entry_of(t, REASON_IDLE);
	if (t->activity == IDLE_ACTIVE) {
		t->min = t->awake_min;
		entry.reason = REASON_ACTIVATED;
		entry.after = i32_max(t->hold ? 0 : t->wanted, t->min);
		t->hold = false;
	} else if (t->activity == IDLE_UNKNOWN) {
		if (t->blind)
			return; // nothing can be seen for long: what fallback says was asked for
		entry.reason = REASON_ACTIVATION_UNKNOWN;
		t->hold = true;
	} else {
		t->hold = false;
	}
	tick_limit(t, &entry);
}

// No signal is missing and none asks for more, whatever becomes of it later: a limit on the way up is no silence.
static bool are_all_content(const struct tick *t)
{
	for (size_t i = 0; i < t->policy->n_signals; i++) {
		enum signal_state state = t->decision->signals[i].state;
		if (state == SIGNAL_IGNORED)
			continue;
		if (state != SIGNAL_OK || t->unsustained[i] > t->counts.spec)
			return false;
	}
	return true;
}

static void fall_asleep(struct tick *t)
{
	const struct policy_idle *idle = &t->policy->idle;
	const struct idle *s = &t->state->idle;
	// A schedule from minReplicas 0 may put the minimum at or below the idle level: then there is nothing to go
	// down to, and going there would be a scale-up. Pinned by test_schedule
	// "an_idle_level_above_the_bounds_of_a_schedule_rests" and prop_decide "idle never adds".
	if (idle->replicas >= t->awake_min)
		return;
	// A fallback that is not lifted is no silence either, nor is a burst that has not passed.
	if (t->state->panic.over_ms != TIME_NONE || s->quiet_since_ms == TIME_NONE || t->blind ||
	    t->state->fallback.active || !are_all_content(t))
		return;
	int64_t at_ms =
	        i64_max(i64_add(s->quiet_since_ms, idle->after_ms), i64_add(s->first_ms, idle->initial_cooldown_ms));
	struct trace_entry entry = entry_of(t, REASON_IDLE_PENDING);
	entry.after = t->wanted;
	if (t->now_ms < at_ms) {
		entry.duration_ms = i64_sub(at_ms, t->now_ms);
		tick_trace(t, &entry);
		return;
	}
	entry.reason = REASON_IDLE_REACHED;
	entry.duration_ms = i64_sub(t->now_ms, s->quiet_since_ms);
	entry.after = t->min = idle->replicas;
	tick_limit(t, &entry);
}

void idle_stage(struct tick *t)
{
	if (t->asleep)
		stay_asleep_or_wake(t);
	else
		fall_asleep(t);
}
