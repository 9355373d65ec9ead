// SPDX-License-Identifier: Apache-2.0
// Stage panic: the proposal of the panic signal during a burst.
#include <math.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/proposal.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

int32_t panic_wanted(const struct policy_signal *signal, double value, const struct replica_counts *counts)
{
	double ready = (double)i32_max(counts->ready, 1);
	if (signal->watermarks.set) {
		double base = signal->watermarks.algorithm == WATERMARK_ABSOLUTE ? ready : 1;
		return replicas_from_whole(ceil(value * base / signal->watermarks.high));
	}
	if (signal->target.type == TARGET_REPLICAS)
		return replicas_from_whole(ceil(value));
	double base = signal->target.type == TARGET_VALUE ? ready : 1;
	return replicas_from_whole(ceil(value / signal->target.value * base));
}

bool panic_observe(struct panic *s, int64_t now_ms, int32_t wanted, int32_t stable, int32_t ready, double threshold,
                   int64_t stable_ms, int32_t *ret_replicas, int64_t *ret_left_ms)
{
	*ret_left_ms = 0;
	*ret_replicas = stable;
	if ((double)wanted / (double)i32_max(ready, 1) >= threshold)
		s->over_ms = now_ms;
	else if (s->over_ms != TIME_NONE && i64_add(s->over_ms, stable_ms) < now_ms)
		*s = (struct panic)PANIC_NONE;
	if (s->over_ms == TIME_NONE)
		return false;
	s->highest = i32_max(s->highest, i32_max(stable, wanted));
	*ret_replicas = s->highest;
	*ret_left_ms = i64_max(i64_sub(i64_add(s->over_ms, stable_ms), now_ms), 0);
	return true;
}

// Computes the mean of the samples in the panic window; returns false when there is none. The cost is one addition per
// sample of the panic window, by default a tenth of the signal's window.
static bool panic_value(const struct tick *t, double *ret_value)
{
	const struct window *w = &state_signal(t->state, t->policy->panic.signal_index)->window;
	int64_t cutoff_ms = i64_sub(t->now_ms, t->policy->panic.window_ms);
	double mean = 0, n = 0;
	for (uint32_t i = w->len; i-- > 0;) {
		const struct window_sample *s = window_at(w, i);
		if (s->time_ms <= cutoff_ms)
			break;
		n++;
		mean += (s->value - mean) / n; // never leaves the range of the values
	}
	*ret_value = mean;
	return n > 0 && isfinite(mean);
}

void panic_stage(struct tick *t)
{
	const struct policy_panic *config = &t->policy->panic;
	size_t i = config->signal_index;
	struct decision_signal *d = &t->decision->signals[i];
	double value;
	if (d->state != SIGNAL_OK || !panic_value(t, &value))
		return; // without data, a panic neither starts nor ends
	const struct policy_signal *signal = &t->policy->signals[i];
	struct trace_entry entry = tick_note(t, STAGE_PANIC, REASON_PANIC, (int32_t)i);
	entry.before = d->proposal;
	entry.value = value;
	entry.limit = config->threshold;
	entry.window_ms = config->window_ms;
	int32_t wanted = panic_wanted(signal, value, &t->counts);
	if (!panic_observe(&t->state->panic, t->now_ms, wanted, d->proposal, t->counts.ready, config->threshold,
	                   signal->window.duration_ms, &entry.after, &entry.duration_ms))
		return;
	// A panic never scales down, not even from a scale that was set by hand.
	entry.after = i32_max(entry.after, t->counts.spec);
	int32_t at = tick_trace(t, &entry);
	if (entry.after == d->proposal)
		return;
	d->proposal = entry.after;
	t->unsustained[i] = i32_max(entry.after, t->unsustained[i]);
	t->entry[i] = at;
	t->starting_entry[i] = -1;
}
