// SPDX-License-Identifier: Apache-2.0
// Stage idle: to the idle level after a time without activity, and back at once.
#include "policies/engine/idle.h"

#include <math.h>
#include <string.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/schedule.h"
#include "policies/engine/startup.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

const struct policy_activation *idle_activations(const struct policy_idle *idle, size_t *ret_n)
{
	*ret_n = idle->n_any_of > 0 ? idle->n_any_of : 1;
	return idle->n_any_of > 0 ? idle->any_of : &idle->activation;
}

const struct policy_activation *idle_activation_of(const struct policy_idle *idle, size_t i)
{
	size_t n;
	const struct policy_activation *a = idle_activations(idle, &n);
	for (; n > 0; a++, n--)
		if (a->index == i)
			return a;
	return NULL;
}

bool idle_is_same(const struct policy_idle *a, const struct policy_idle *b)
{
	size_t n, m;
	const struct policy_activation *x = idle_activations(a, &n), *y = idle_activations(b, &m);
	bool same = a->set && b->set && n == m;
	for (size_t i = 0; i < n && same; i++) // written so that NaN differs from NaN
		same = strcmp(x[i].signal, y[i].signal) == 0 && x[i].above <= y[i].above && x[i].above >= y[i].above;
	return same;
}

#define IDLE_STARTS_WAITED_FOR 3      // start-up times that replicas which are not ready keep a target active
#define IDLE_START_DEFAULT_MS  300000 // while no start-up time is known: large models load for minutes
#define IDLE_START_MIN_MS      60000

// The value of this tick alone makes the target active, without waiting for the window. Only when the value and the
// window are both at or below the threshold is the target quiet.
static enum idle_activity activity_by(const struct tick *t, const struct policy_activation *a)
{
	const struct decision_signal *d = &t->decision->signals[a->index];
	double raw = t->raw[a->index];
	if (isnan(raw))
		return IDLE_UNKNOWN;
	return raw > a->above || (d->state == SIGNAL_OK && d->value > a->above) ? IDLE_ACTIVE : IDLE_QUIET;
}

// One signal is enough to be active; to be quiet takes all of them. Sets t->activation to the one that decides.
static enum idle_activity activity_of(struct tick *t)
{
	size_t n;
	const struct policy_activation *a = idle_activations(&t->policy->idle, &n);
	enum idle_activity activity = IDLE_QUIET;
	t->activation = a;
	for (size_t i = 0; i < n && activity != IDLE_ACTIVE; i++) {
		enum idle_activity one = activity_by(t, &a[i]);
		if (one == IDLE_QUIET || one == activity)
			continue;
		activity = one;
		t->activation = &a[i];
	}
	return activity;
}

// Returns for how long replicas that do not become ready keep the target from being idle.
static int64_t patience_ms(const struct tick *t)
{
	int64_t start_ms = startup_ms(&t->state->startup, t->policy);
	if (start_ms < 0)
		start_ms = IDLE_START_DEFAULT_MS;
	if (start_ms > STARTUP_LEARNT_MAX_MS)
		start_ms = STARTUP_LEARNT_MAX_MS;
	return IDLE_STARTS_WAITED_FOR * i64_max(start_ms, IDLE_START_MIN_MS);
}

// Returns whether replicas are starting, and are still waited for: load cannot arrive before they are ready, so the
// absence of load until then proves nothing. Replicas that never become ready, or only for moments, are waited for once
// only. Pinned by test_idle "crash_loop_without_demand_becomes_idle".
static bool is_starting(struct tick *t)
{
	struct idle *s = &t->state->idle;
	if (guards_starting(&t->counts) == 0)
		return false;
	if (s->unready_ms == TIME_NONE)
		s->unready_ms = t->now_ms;
	s->unready_ms = i64_max(s->unready_ms, t->state->last_scale_ms); // the replicas that it ordered are given time
	return i64_sub(t->now_ms, s->unready_ms) < patience_ms(t);
}

void idle_observe(struct tick *t)
{
	const struct policy_idle *idle = &t->policy->idle;
	struct idle *s = &t->state->idle;
	t->can_idle = t->schedule < 0 || !schedule_prevents_idle(&t->policy->schedules[t->schedule]);
	if (!t->can_idle) {
		s->quiet_since_ms = s->unready_ms = TIME_NONE;
		return;
	}
	t->active_min = i32_min(i32_max(t->min, 1), t->max);
	if (s->first_ms == TIME_NONE)
		s->first_ms = t->now_ms;
	t->activity = (int)activity_of(t);
	t->is_idle = t->counts.spec == idle->replicas && idle->replicas < t->active_min;
	t->min = t->is_idle ? idle->replicas : t->active_min;
	if (t->is_idle || t->activity == IDLE_ACTIVE)
		s->unready_ms = TIME_NONE;
	if (t->is_idle || t->activity != IDLE_QUIET || is_starting(t))
		s->quiet_since_ms = TIME_NONE;
	else if (s->quiet_since_ms == TIME_NONE)
		s->quiet_since_ms = t->now_ms;
}

static struct trace_entry entry_of(const struct tick *t, enum reason reason)
{
	size_t signal = t->activation->index;
	double value = t->raw[signal];
	if (t->activity == IDLE_ACTIVE && !(value > t->activation->above))
		value = t->decision->signals[signal].value; // active by its window
	struct trace_entry entry = tick_entry(t, STAGE_IDLE, reason, t->counts.spec);
	entry.signal = (int32_t)signal;
	entry.value = value;
	entry.limit = t->activation->above;
	entry.window_ms = t->policy->idle.after_ms;
	return entry;
}

static void stay_idle_or_activate(struct tick *t)
{
	struct trace_entry entry = entry_of(t, REASON_IDLE);
	if (t->activity == IDLE_ACTIVE) {
		t->min = t->active_min;
		entry.reason = REASON_ACTIVATED;
		entry.after = i32_max(t->hold ? 0 : t->wanted, t->min);
		t->hold = false;
	} else if (t->activity == IDLE_UNKNOWN) {
		if (t->fallback_active)
			return; // the fallback decides while the signal has been missing for long
		entry.reason = REASON_ACTIVATION_UNKNOWN;
		t->hold = true;
	} else {
		t->hold = false;
	}
	tick_set_proposal(t, &entry);
}

// Without a ready replica, what the replicas report is absent, and a ratio has no base. As at the idle level, this is
// no lack of data about the demand.
static bool is_absent_with_replicas(const struct tick *t, const struct decision_signal *d)
{
	if (t->counts.ready > 0)
		return false;
	return d->reason == REASON_NO_DATA || d->reason == REASON_NO_POD_SAMPLES ||
	       (d->reason == REASON_NO_READY_REPLICAS && !(d->value > d->target));
}

// Returns the first signal without data, or which asks for more replicas, even if a later stage would not grant them;
// -1 when there is none.
static int32_t find_unsatisfied(const struct tick *t)
{
	for (size_t i = 0; i < t->policy->n_signals; i++) {
		const struct decision_signal *d = &t->decision->signals[i];
		if (d->state == SIGNAL_IGNORED || signal_is_input(t->policy, i))
			continue;
		if (d->state == SIGNAL_OK ? t->unsustained[i] > t->counts.spec : !is_absent_with_replicas(t, d))
			return (int32_t)i;
	}
	return -1;
}

// Sets the reason, and what its sentence needs, when the target is kept active. Returns false when only time is needed.
static bool is_kept_active(struct tick *t, struct trace_entry *entry)
{
	int32_t unsatisfied;
	// A schedule with minReplicas 0 may set the minimum at or below the idle level: going idle would then scale up.
	// Pinned by test_schedule "idle_level_above_the_bounds_of_a_schedule_is_not_used" and prop_decide "idle never
	// adds". The target also stays active during a panic, and until a fallback is lifted.
	if (t->policy->idle.replicas >= t->active_min || t->state->panic.over_ms != TIME_NONE || t->fallback_active ||
	    t->state->fallback.active) {
		entry->reason = REASON_IDLE_SUSPENDED;
	} else if (t->activity == IDLE_ACTIVE) {
		entry->reason = REASON_IDLE_ACTIVE;
	} else if (t->activity == IDLE_UNKNOWN) {
		entry->reason = REASON_IDLE_UNKNOWN;
	} else if (t->state->idle.quiet_since_ms == TIME_NONE) {
		entry->reason = REASON_IDLE_STARTING;
		entry->count = guards_starting(&t->counts);
		entry->window_ms = patience_ms(t);
		entry->duration_ms = i64_sub(i64_add(t->state->idle.unready_ms, entry->window_ms), t->now_ms);
	} else if ((unsatisfied = find_unsatisfied(t)) >= 0) {
		entry->reason = REASON_IDLE_UNSATISFIED;
		entry->signal = unsatisfied;
	} else {
		return false;
	}
	return true;
}

static void become_idle(struct tick *t)
{
	const struct policy_idle *idle = &t->policy->idle;
	const struct idle *s = &t->state->idle;
	struct trace_entry entry = entry_of(t, REASON_IDLE_PENDING);
	entry.after = t->wanted;
	if (is_kept_active(t, &entry)) {
		tick_trace(t, &entry);
		return;
	}
	int64_t at_ms =
	        i64_max(i64_add(s->quiet_since_ms, idle->after_ms), i64_add(s->first_ms, idle->initial_cooldown_ms));
	if (t->now_ms < at_ms) {
		entry.duration_ms = i64_sub(at_ms, t->now_ms);
		tick_trace(t, &entry);
		return;
	}
	entry.reason = REASON_IDLE_REACHED;
	entry.duration_ms = i64_sub(t->now_ms, s->quiet_since_ms);
	entry.after = t->min = idle->replicas;
	t->hold = false;
	tick_set_proposal(t, &entry);
}

void idle_stage(struct tick *t)
{
	if (t->decision->reason == REASON_SCALING_DISABLED) // the bounds have decided
		return;
	if (!t->can_idle || t->out_of_bounds) {
		struct trace_entry entry = tick_entry(t, STAGE_IDLE, REASON_IDLE_SUSPENDED, t->wanted);
		tick_trace(t, &entry);
	} else if (t->is_idle)
		stay_idle_or_activate(t);
	else
		become_idle(t);
}
