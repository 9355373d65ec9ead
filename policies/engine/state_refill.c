// SPDX-License-Identifier: Apache-2.0
// After a restart: replays the past samples of a signal through its window and its sustain timers, as if they had been
// observed one by one.
#include <assert.h>
#include <math.h>

#include "policies/engine/decide_state.h"
#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/engine/signal.h"
#include "policies/engine/state.h"
#include "policies/engine/sustain.h"

// Replaces *value by the aggregate at time_ms; returns false while the window was not filled.
static bool replay_window(const struct policy *policy, size_t i, struct window *w, struct window_sample *samples,
                          int64_t time_ms, double *value)
{
	const struct policy_signal *signal = &policy->signals[i];
	if (w->cap == 0)
		return true;
	window_evict(w, samples, &signal->window, time_ms);
	signal_push(policy, i, w, samples, time_ms, *value, time_ms);
	int64_t left_ms;
	if (!window_is_filled(w, &signal->window, policy->interval_ms, time_ms, &left_ms))
		return false;
	*value = window_value(w, samples, &signal->window);
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
		if (isfinite(value) &&
		    replay_window(policy, signal, &g->window, state_samples(s, &g->window), time_ms, &value) &&
		    !is_input) {
			struct proposal p = signal_propose(policy, config, value, &counts);
			direction = p.reason == REASON_NO_READY_REPLICAS ? 0 : p.direction;
		}
		sustain_observe(g, direction, time_ms);
	}
	if (before_ms != TIME_NONE && i64_sub(now_ms, before_ms) > step_max_ms)
		sustain_observe(g, 0, now_ms);
}
