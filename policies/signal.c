// SPDX-License-Identifier: Apache-2.0
// The stages that look at one signal: sources, windows, signals, sustain.
#include "policies/signal.h"

#include <math.h>

#include "policies/hpa.h"
#include "policies/number.h"
#include "policies/observation.h"
#include "policies/pods.h"
#include "policies/policy.h"
#include "policies/source.h"
#include "policies/startup.h"
#include "policies/state.h"
#include "policies/sustain.h"
#include "policies/tick.h"
#include "policies/watermark.h"

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

bool signal_is_pods(const struct policy_signal *signal)
{
	return signal->target.set && signal->target.type == TARGET_PODS;
}

static struct trace_entry entry_of(const struct tick *t, size_t i, enum stage stage, enum reason reason)
{
	return (struct trace_entry){
	        .stage = stage,
	        .reason = reason,
	        .signal = (int32_t)i,
	        .before = t->counts.spec,
	        .after = t->counts.spec,
	        .value = t->decision->signals[i].value,
	        .limit = t->decision->signals[i].target,
	};
}

// Nothing usable: no vote, and what was held so far is forgotten.
static void give_up(struct tick *t, size_t i, enum signal_state state, const struct trace_entry *entry)
{
	struct decision_signal *d = &t->decision->signals[i];
	d->state = state;
	d->reason = entry->reason;
	t->entry[i] = tick_trace(t, entry);
	sustain_observe(state_signal(t->state, i), 0, t->now_ms);
}

// The reading, or false when the signal has none. A window is swept in any case.
static bool read_source(struct tick *t, size_t i, struct reading *ret_reading, struct pods_seen *ret_pods)
{
	const struct policy_signal *signal = &t->policy->signals[i];
	struct decision_signal *d = &t->decision->signals[i];
	const struct obs_signal *seen = &t->observation->signals[i];
	struct reading r = *ret_reading = signal_is_pods(signal)
	                                          ? pods_read(signal, t->observation, seen, t->now_ms, ret_pods)
	                                          : source_read(signal, seen, t->now_ms);
	d->age_ms = r.age_ms;
	struct trace_entry entry = entry_of(t, i, STAGE_SOURCES, r.reason);
	entry.value = r.value;
	entry.duration_ms = r.age_ms;
	entry.window_ms = signal->stale_after_ms;
	entry.count = r.n_series;
	if (r.reason == REASON_MISSING_AS_ZERO) {
		tick_trace(t, &entry);
		return true;
	}
	if (r.reason != REASON_NONE) {
		if (signal->on_missing == ON_MISSING_IGNORE) {
			int32_t why = tick_trace(t, &entry);
			entry.reason = REASON_SIGNAL_IGNORED;
			give_up(t, i, SIGNAL_IGNORED, &entry);
			t->entry[i] = why;
			d->reason = r.reason;
		} else {
			give_up(t, i, SIGNAL_MISSING, &entry);
		}
		return false;
	}
	if (r.ahead_ms > t->policy->interval_ms) {
		entry.reason = REASON_FUTURE_SAMPLE;
		entry.duration_ms = r.ahead_ms;
		tick_trace(t, &entry);
	}
	return true;
}

// The value after the window, or false while the window is filling.
static bool read_window(struct tick *t, size_t i, const struct reading *r)
{
	const struct policy_window *config = &t->policy->signals[i].window;
	struct window *w = &state_signal(t->state, i)->window;
	struct window_sample *samples = state_samples(t->state, w);
	struct decision_signal *d = &t->decision->signals[i];
	window_push(w, samples, config, r->time_ms, r->value, t->now_ms);
	int64_t left_ms;
	bool filled = window_is_filled(w, config, t->policy->interval_ms, t->now_ms, &left_ms);
	if (w->len > 0)
		d->value = window_value(w, samples, config);
	struct trace_entry entry = entry_of(t, i, STAGE_WINDOWS, REASON_WINDOW_AGGREGATE);
	entry.window_ms = config->duration_ms;
	entry.count = (int32_t)w->len;
	if (!filled) {
		entry.reason = REASON_WINDOW_FILLING;
		entry.duration_ms = left_ms;
		give_up(t, i, SIGNAL_FILLING, &entry);
		return false;
	}
	if (w->newest_dropped_ms > i64_sub(t->now_ms, config->duration_ms)) {
		entry.reason = REASON_WINDOW_OVERFLOW;
		tick_trace(t, &entry);
		entry.reason = REASON_WINDOW_AGGREGATE;
	}
	tick_trace(t, &entry);
	return true;
}

// What was ordered less than the start-up time ago is capacity to come: its share of the load has not shown yet. The
// scale-up is worked out again on the replicas from before those orders, and only what it asks for beyond them counts.
static void count_coming(struct tick *t, size_t i, struct proposal *p)
{
	int32_t spec = t->counts.spec;
	struct replica_counts before = t->counts;
	before.ready = i32_min(before.ready, i32_max(spec - t->coming, 1));
	int32_t n = i32_max(
	        signal_propose(t->policy, &t->policy->signals[i], t->decision->signals[i].value, &before).replicas,
	        spec);
	if (n >= p->replicas)
		return;
	struct trace_entry entry = entry_of(t, i, STAGE_SIGNALS, REASON_REPLICAS_STARTING);
	entry.before = p->replicas;
	entry.after = n;
	entry.window_ms = startup_ms(&t->state->startup, t->policy);
	entry.count = t->coming;
	t->starting_entry[i] = tick_trace(t, &entry);
	p->replicas = n;
}

static struct proposal propose_pods(struct tick *t, size_t i, struct pods_seen *pods)
{
	const struct policy_signal *signal = &t->policy->signals[i];
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

void signal_stage(struct tick *t, size_t i)
{
	const struct policy_signal *signal = &t->policy->signals[i];
	struct state_signal *g = state_signal(t->state, i);
	struct decision_signal *d = &t->decision->signals[i];
	*d = (struct decision_signal){
	        .value = NAN,
	        .target = signal->watermarks.set ? signal->watermarks.high : signal->target.value,
	        .proposal = t->counts.spec,
	        .age_ms = -1,
	};
	t->unsustained[i] = t->counts.spec;
	t->raw[i] = NAN;
	t->sustain_entry[i] = t->starting_entry[i] = -1;
	if (g->window.cap > 0)
		window_evict(&g->window, state_samples(t->state, &g->window), &signal->window, t->now_ms);

	struct reading r;
	struct pods_seen pods;
	if (!read_source(t, i, &r, &pods))
		return;
	d->value = t->raw[i] = r.value;
	if (g->window.cap > 0 && !read_window(t, i, &r))
		return;

	struct proposal p = signal_is_pods(signal) ? propose_pods(t, i, &pods)
	                                           : signal_propose(t->policy, signal, d->value, &t->counts);
	d->reason = p.reason;
	d->target = p.limit;
	struct trace_entry entry = entry_of(t, i, STAGE_SIGNALS, p.reason);
	entry.value = p.compared;
	entry.after = p.replicas;
	if (p.reason == REASON_NO_READY_REPLICAS) {
		give_up(t, i, SIGNAL_MISSING, &entry);
		return;
	}
	t->entry[i] = tick_trace(t, &entry);
	// Pods says what each pod carries: no load is counted twice while one starts.
	if (t->coming > 0 && p.replicas > t->counts.spec && !signal_is_pods(signal))
		count_coming(t, i, &p);
	d->proposal = t->unsustained[i] = p.replicas;

	sustain_observe(g, p.direction, t->now_ms);
	if (p.replicas == t->counts.spec)
		return;
	int64_t left_ms = sustain_left_ms(g, &signal->sustain, p.direction, t->now_ms);
	if (left_ms == 0)
		return;
	d->proposal = t->counts.spec;
	entry = entry_of(t, i, STAGE_SUSTAIN, REASON_SUSTAIN_PENDING);
	entry.before = p.replicas;
	entry.duration_ms = left_ms;
	entry.window_ms = p.direction > 0 ? signal->sustain.up_ms : signal->sustain.down_ms;
	t->sustain_entry[i] = tick_trace(t, &entry);
}
