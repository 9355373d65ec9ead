// SPDX-License-Identifier: Apache-2.0
// The stages that run once for each signal: sources, windows, signals, sustain.

#include <assert.h>
#include <math.h>

#include "policies/engine/decide.h"
#include "policies/engine/formula.h"
#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/plausible.h"
#include "policies/engine/policy.h"
#include "policies/engine/proposal.h"
#include "policies/engine/source.h"
#include "policies/engine/startup.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

static double tolerance_of(const struct policy_scaling_rules *rules, const struct policy_signal *signal)
{
	return rules->tolerance_set ? rules->tolerance_ratio : signal->target.tolerance_ratio;
}

struct proposal signal_propose(const struct policy *policy, const struct policy_signal *signal, double value,
                               const struct replica_counts *counts)
{
	if (signal->watermarks.set)
		return watermark_propose(&signal->watermarks, policy->replica_multiple, value, counts);
	return hpa_propose(&signal->target, tolerance_of(&policy->scale_up, signal),
	                   tolerance_of(&policy->scale_down, signal), value, counts);
}

static bool signal_is_pods(const struct policy_signal *signal)
{
	return signal->target.set && signal->target.type == TARGET_PODS;
}

// ---- sustain: how long a signal has asked for one direction without a break ----

// Updates the timers: at time_ms the signal asks for more (direction +1), for fewer (-1), or for neither or has no
// usable data (0: both timers restart).
static void sustain_observe(struct state_signal *g, int direction, int64_t time_ms)
{
	if (direction <= 0)
		g->up_since_ms = TIME_NONE;
	else if (g->up_since_ms == TIME_NONE)
		g->up_since_ms = time_ms;
	if (direction >= 0)
		g->down_since_ms = TIME_NONE;
	else if (g->down_since_ms == TIME_NONE)
		g->down_since_ms = time_ms;
}

// ---- traces ----

static struct trace_entry entry_of(const struct tick *t, size_t i, enum stage stage, enum reason reason)
{
	struct trace_entry entry = tick_note(t, stage, reason, (int32_t)i);
	entry.value = t->decision->signals[i].value;
	entry.limit = t->decision->signals[i].target;
	return entry;
}

// Records that the signal has no proposal in this tick, and restarts its sustain timers. The guard that reads a signal
// without target reports what it does without it.
static void drop_signal(struct tick *t, size_t i, enum signal_state state, const struct trace_entry *entry)
{
	struct decision_signal *d = &t->decision->signals[i];
	d->state = state;
	if (signal_is_input(t->policy, i))
		d->state = SIGNAL_IGNORED;
	d->reason = entry->reason;
	t->entry[i] = tick_trace(t, entry);
	sustain_observe(state_signal(t->state, i), 0, t->now_ms);
}

// ---- sources ----

static void use_missing(struct tick *t, size_t i, struct trace_entry *entry)
{
	if (t->policy->signals[i].on_missing != ON_MISSING_IGNORE) {
		drop_signal(t, i, SIGNAL_MISSING, entry);
		return;
	}
	enum reason reason = entry->reason;
	int32_t why = tick_trace(t, entry);
	entry->reason = REASON_SIGNAL_IGNORED;
	drop_signal(t, i, SIGNAL_IGNORED, entry);
	t->entry[i] = why;
	t->decision->signals[i].reason = reason;
}

// Traces what is unusual about the reading. Returns false when the signal has no usable value.
static bool check_reading(struct tick *t, size_t i)
{
	const struct reading *r = &t->reading;
	if (r->reason == REASON_NONE && r->ahead_ms <= t->policy->interval_ms)
		return true;
	struct trace_entry entry = entry_of(t, i, STAGE_SOURCES, r->reason);
	entry.value = r->value;
	entry.duration_ms = r->age_ms;
	entry.window_ms = t->policy->signals[i].stale_after_ms;
	entry.count = r->n_series;
	if (r->reason == REASON_MISSING_AS_ZERO || r->reason == REASON_NON_FINITE_AS_ZERO) {
		tick_trace(t, &entry);
		return true;
	}
	if (r->reason == REASON_NONE) {
		entry.reason = REASON_FUTURE_SAMPLE;
		entry.duration_ms = r->ahead_ms;
		tick_trace(t, &entry);
		return true;
	}
	if (r->reason == REASON_CLOCK_SKEW)
		entry.duration_ms = r->ahead_ms;
	use_missing(t, i, &entry);
	return false;
}

static inline void begin_signal(struct tick *t, size_t i, const struct policy_signal *signal)
{
	t->decision->signals[i] = (struct decision_signal){
	        .value = NAN,
	        .target = signal->watermarks.set ? signal->watermarks.high
	                  : signal->target.set   ? signal->target.value
	                                         : NAN,
	        .proposal = t->counts.spec,
	        .age_ms = -1,
	};
	t->unsustained[i] = t->counts.spec;
	t->raw[i] = NAN;
	t->entry[i] = -1;
	t->sustain_entry[i] = t->starting_entry[i] = -1;
}

void sources_stage(struct tick *t)
{
	size_t i = t->signal;
	const struct policy_signal *signal = &t->policy->signals[i];
	const struct obs_signal *observed = &t->observation->signals[i];
	struct window *w = &state_signal(t->state, i)->window;
	struct decision_signal *d = &t->decision->signals[i];
	begin_signal(t, i, signal);
	// Samples leave the window even in a tick without a new one.
	if (w->cap > 0)
		window_evict(w, &signal->window, t->now_ms);
	t->reading = signal_is_pods(signal) ? pods_read(signal, t->observation, observed, t->now_ms, &t->pods)
	                                    : source_read(signal, observed, t->now_ms);
	d->age_ms = t->reading.age_ms;
	if (check_reading(t, i))
		d->value = t->raw[i] = t->reading.value;
}

// Under fallback behavior ScalingModifiers, an input is nil only after it has been missing for long.
static bool is_awaited(const struct tick *t, size_t i)
{
	const struct policy_fallback *f = &t->policy->fallback;
	return f->set && f->behavior == FALLBACK_SCALING_MODIFIERS &&
	       t->policy->signals[i].on_missing != ON_MISSING_IGNORE &&
	       state_signal(t->state, i)->failures < f->failure_threshold;
}

__attribute__((cold)) void formula_stage(struct tick *t)
{
	size_t i = t->signal;
	const struct policy_signal *signal = &t->policy->signals[i];
	const struct formula *formula = &t->policy->value_formulas[i];
	struct decision_signal *d = &t->decision->signals[i];
	struct formula_input inputs[POLICY_SIGNALS_MAX];
	struct formula_result r = {.kind = FORMULA_NUMBER};
	struct trace_entry entry;
	begin_signal(t, i, signal);
	entry = entry_of(t, i, STAGE_SOURCES, REASON_FORMULA_FAILED);
	entry.count = -1;
	for (size_t k = 0; k < t->policy->n_signals; k++) {
		const struct decision_signal *in = &t->decision->signals[k];
		if (!(formula->reads >> k & 1))
			continue;
		inputs[k] = (struct formula_input){.present = in->state == SIGNAL_OK, .value = in->value};
		d->age_ms = i64_max(d->age_ms, in->age_ms);
		if (inputs[k].present)
			continue;
		entry.count = entry.count < 0 ? (int32_t)k : entry.count;
		if (is_awaited(t, k) || !(formula->handles >> k & 1))
			r.kind = FORMULA_NIL;
	}
	if (r.kind == FORMULA_NUMBER)
		r = formula_eval(formula, inputs, (double)t->counts.spec);
	if (r.kind == FORMULA_NUMBER) {
		d->value = t->raw[i] = r.number;
		return;
	}
	if (r.kind == FORMULA_NIL)
		entry.reason = REASON_FORMULA_MISSING;
	use_missing(t, i, &entry);
}

// ---- windows ----

// Adds a reading of signal i to its window as plausible_sample() and returns the sample. Call window_evict() first.
static double signal_push(const struct policy *policy, size_t i, struct window *w, int64_t time_ms, double value,
                          int64_t now_ms)
{
	double sample = plausible_sample(policy, i, value);
	window_push(w, &policy->signals[i].window, time_ms, sample, now_ms);
	if (sample < value || sample > value)
		w->newest_limited_ms = i64_max(w->newest_limited_ms, time_ms < now_ms ? time_ms : now_ms);
	return sample;
}

__attribute__((noinline)) static void push_limited(struct tick *t, size_t i, struct window *w)
{
	struct trace_entry limited = entry_of(t, i, STAGE_WINDOWS, REASON_VALUE_LIMITED);
	limited.limit = signal_push(t->policy, i, w, t->reading.time_ms, t->reading.value, t->now_ms);
	if (limited.limit < limited.value || limited.limit > limited.value)
		tick_trace(t, &limited);
}

void windows_stage(struct tick *t)
{
	size_t i = t->signal;
	struct window *w = &state_signal(t->state, i)->window;
	struct decision_signal *d = &t->decision->signals[i];
	if (d->state != SIGNAL_OK || w->cap == 0)
		return;
	const struct policy_window *config = &t->policy->signals[i].window;
	// Nearly all values are far below the limit, and not below 0.
	if (t->reading.value >= 0 && t->reading.value <= (double)t->policy->max_replicas * d->target)
		window_push(w, config, t->reading.time_ms, t->reading.value, t->now_ms);
	else
		push_limited(t, i, w);
	int64_t left_ms;
	bool filled = window_is_filled(w, config, t->policy->interval_ms, t->now_ms, &left_ms);
	if (w->len > 0)
		d->value = window_value(w, config);
	struct trace_entry entry = entry_of(t, i, STAGE_WINDOWS, REASON_WINDOW_AGGREGATE);
	entry.window_ms = config->duration_ms;
	entry.count = (int32_t)w->len;
	if (!filled) {
		entry.reason = REASON_WINDOW_FILLING;
		entry.duration_ms = left_ms;
		drop_signal(t, i, SIGNAL_FILLING, &entry);
		return;
	}
	if (w->newest_dropped_ms > i64_sub(t->now_ms, config->duration_ms)) {
		entry.reason = REASON_WINDOW_OVERFLOW;
		tick_trace(t, &entry);
		entry.reason = REASON_WINDOW_AGGREGATE;
	}
	tick_trace(t, &entry);
}

// ---- signals ----

// Replicas ordered less than the start-up time ago are capacity that does not carry its share of the load yet. The
// scale-up is computed again with the replicas from before those orders, and the smaller result counts.
static void count_starting(struct tick *t, size_t i, struct proposal *p)
{
	int32_t spec = t->counts.spec;
	struct replica_counts before = t->counts;
	before.ready = i32_min(before.ready, i32_max(spec - t->starting, 1));
	int32_t n = i32_max(
	        signal_propose(t->policy, &t->policy->signals[i], t->decision->signals[i].value, &before).replicas,
	        spec);
	if (n >= p->replicas)
		return;
	struct trace_entry entry = entry_of(t, i, STAGE_SIGNALS, REASON_REPLICAS_STARTING);
	entry.before = p->replicas;
	entry.after = n;
	entry.window_ms = startup_ms(&t->state->startup, t->policy);
	entry.count = t->starting;
	t->starting_entry[i] = tick_trace(t, &entry);
	p->replicas = n;
}

static struct proposal propose_pods(struct tick *t, size_t i, const struct policy_signal *signal)
{
	struct pod_groups *pods = &t->pods;
	if (pods->n_surplus > 0) {
		struct trace_entry surplus = entry_of(t, i, STAGE_SIGNALS, REASON_PODS_SURPLUS);
		surplus.count = pods->n_surplus;
		tick_trace(t, &surplus);
	}
	struct proposal p = pods_propose(&signal->target, tolerance_of(&t->policy->scale_up, signal),
	                                 tolerance_of(&t->policy->scale_down, signal), pods, &t->counts);
	if (pods->n_filled == 0)
		return p;
	struct trace_entry entry = entry_of(t, i, STAGE_SIGNALS, REASON_PODS_FILLED);
	entry.limit = pods->filled_with;
	entry.count = pods->n_filled;
	tick_trace(t, &entry);
	return p;
}

static struct proposal propose(struct tick *t, size_t i, const struct policy_signal *signal, double value)
{
	return signal_is_pods(signal) ? propose_pods(t, i, signal)
	                              : signal_propose(t->policy, signal, value, &t->counts);
}

// Throttled replicas reach their targets with less load: guards.maxThrottledShare.
__attribute__((noinline)) static struct proposal propose_throttled(struct tick *t, size_t i, double value)
{
	struct policy_signal s = t->policy->signals[i];
	s.target.value *= t->capacity_ratio;
	s.watermarks.high *= t->capacity_ratio;
	s.watermarks.low *= t->capacity_ratio;
	bool is_count = s.target.set && s.target.type == TARGET_REPLICAS;
	return propose(t, i, &s, is_count ? value / t->capacity_ratio : value);
}

void signals_stage(struct tick *t)
{
	size_t i = t->signal;
	const struct policy_signal *signal = &t->policy->signals[i];
	struct decision_signal *d = &t->decision->signals[i];
	t->direction = 0;
	// The objective stage sets the proposals of its signals; a signal that only informs a guard has none.
	if (d->state != SIGNAL_OK || (!signal->target.set && !signal->watermarks.set))
		return;
	struct proposal p = t->capacity_ratio < 1 ? propose_throttled(t, i, d->value) : propose(t, i, signal, d->value);
	d->reason = p.reason;
	d->target = p.limit;
	t->direction = p.direction;
	struct trace_entry entry = entry_of(t, i, STAGE_SIGNALS, p.reason);
	entry.value = p.compared;
	entry.after = p.replicas;
	if (p.reason == REASON_NO_READY_REPLICAS) {
		drop_signal(t, i, SIGNAL_MISSING, &entry);
		return;
	}
	t->entry[i] = tick_trace(t, &entry);
	// Type Pods reads the load of each pod: starting pods do not distort it.
	if (t->starting > 0 && p.replicas > t->counts.spec && !signal_is_pods(signal))
		count_starting(t, i, &p);
	d->proposal = t->unsustained[i] = p.replicas;
}

void sustain_stage(struct tick *t)
{
	size_t i = t->signal;
	const struct policy_sustain *sustain = &t->policy->signals[i].sustain;
	struct state_signal *g = state_signal(t->state, i);
	struct decision_signal *d = &t->decision->signals[i];
	if (d->state != SIGNAL_OK)
		return;
	// Without `sustain` too: the timers are carried over when the policy changes.
	sustain_observe(g, t->direction, t->now_ms);
	int64_t needed_ms = t->direction > 0 ? sustain->up_ms : sustain->down_ms;
	int64_t since_ms = t->direction > 0 ? g->up_since_ms : g->down_since_ms;
	if (needed_ms == 0 || t->direction == 0 || d->proposal == t->counts.spec)
		return;
	int64_t left_ms = i64_sub(i64_add(since_ms, needed_ms), t->now_ms);
	if (left_ms <= 0)
		return;
	struct trace_entry entry = entry_of(t, i, STAGE_SUSTAIN, REASON_SUSTAIN_PENDING);
	entry.before = d->proposal;
	entry.duration_ms = left_ms;
	entry.window_ms = needed_ms;
	d->proposal = t->counts.spec;
	t->sustain_entry[i] = tick_trace(t, &entry);
}

// ---- after a restart ----

// Replays the past samples of a signal through its window and its sustain timers, as if they had been observed one by
// one.

// Replaces *value by the aggregate at time_ms; returns false while the window was not filled.
static bool replay_window(const struct policy *policy, size_t i, struct window *w, int64_t time_ms, double *value)
{
	const struct policy_signal *signal = &policy->signals[i];
	if (w->cap == 0)
		return true;
	window_evict(w, &signal->window, time_ms);
	signal_push(policy, i, w, time_ms, *value, time_ms);
	int64_t left_ms;
	if (!window_is_filled(w, &signal->window, policy->interval_ms, time_ms, &left_ms))
		return false;
	*value = window_value(w, &signal->window);
	return true;
}

void decide_refill(const struct policy *policy, void *state, size_t signal, const struct obs_series *samples,
                   size_t n_samples, int32_t ready_replicas, int64_t now_ms)
{
	struct state_header *s = state_of(policy, state);
	assert(signal < policy->n_signals);
	const struct policy_signal *config = &policy->signals[signal];
	struct state_signal *g = state_signal(s, signal);
	if (signal_is_pods(config)) // without a window; the pods of that time are unknown
		return;
	bool is_input = signal_is_input(policy, signal);
	// The scale of that time is unknown: the present one is used instead.
	int32_t ready = i32_max(ready_replicas, 0);
	const struct replica_counts counts = {.spec = ready, .status = ready, .ready = ready};
	int64_t step_max_ms = i64_add(policy->interval_ms, policy->interval_ms / 2);
	int64_t before_ms = TIME_NONE;
	for (size_t i = 0; i < n_samples; i++) {
		int64_t time_ms = samples[i].time_ms;
		double value = samples[i].value;
		if (time_ms > now_ms || (before_ms != TIME_NONE && time_ms <= before_ms))
			continue;
		// A tick without a sample would have restarted the timers.
		if (before_ms != TIME_NONE && i64_sub(time_ms, before_ms) > step_max_ms)
			sustain_observe(g, 0, time_ms);
		before_ms = time_ms;
		int direction = 0;
		if (!isfinite(value) && config->on_missing == ON_MISSING_ZERO)
			value = 0;
		if (isfinite(value) && replay_window(policy, signal, &g->window, time_ms, &value) && !is_input) {
			struct proposal p = signal_propose(policy, config, value, &counts);
			direction = p.reason == REASON_NO_READY_REPLICAS ? 0 : p.direction;
		}
		sustain_observe(g, direction, time_ms);
	}
	if (before_ms != TIME_NONE && i64_sub(now_ms, before_ms) > step_max_ms)
		sustain_observe(g, 0, now_ms);
}
