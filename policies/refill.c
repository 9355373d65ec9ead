// SPDX-License-Identifier: Apache-2.0
// After a restart: the past samples of a signal go into its window and through its sustain timers, as if the engine had
// seen them one by one.
#include <assert.h>
#include <math.h>

#include "policies/decide.h"
#include "policies/number.h"
#include "policies/observation.h"
#include "policies/policy.h"
#include "policies/signal.h"
#include "policies/state.h"
#include "policies/sustain.h"

// The value the engine would have used at time_ms; false while it would have had none.
static bool replay_window(const struct policy *policy, const struct policy_signal *signal, struct window *w,
                          struct window_sample *samples, int64_t time_ms, double *value)
{
	if (w->cap == 0)
		return true;
	window_evict(w, samples, &signal->window, time_ms);
	window_push(w, samples, &signal->window, time_ms, *value, time_ms);
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
	if (signal_is_pods(config)) // no window, and what the pods were at the time is not known
		return;
	// The scale of back then is not known: that of now stands in for it.
	int32_t ready = i32_max(ready_replicas, 0);
	const struct replica_counts counts = {.spec = ready, .status = ready, .ready = ready};
	int64_t step_max_ms = i64_add(policy->interval_ms, policy->interval_ms / 2);
	int64_t before_ms = TIME_NONE;
	for (size_t i = 0; i < n_samples; i++) {
		int64_t time_ms = samples[i].time_ms;
		double value = samples[i].value;
		if (time_ms > now_ms || (before_ms != TIME_NONE && time_ms <= before_ms))
			continue;
		// A tick without a sample would have broken what was held so far.
		if (before_ms != TIME_NONE && i64_sub(time_ms, before_ms) > step_max_ms)
			sustain_observe(g, 0, time_ms);
		before_ms = time_ms;
		int direction = 0;
		if (isfinite(value) &&
		    replay_window(policy, config, &g->window, state_samples(s, &g->window), time_ms, &value)) {
			struct proposal p = signal_propose(policy, config, value, &counts);
			direction = p.reason == REASON_NO_READY_REPLICAS ? 0 : p.direction;
		}
		sustain_observe(g, direction, time_ms);
	}
	if (before_ms != TIME_NONE && i64_sub(now_ms, before_ms) > step_max_ms)
		sustain_observe(g, 0, now_ms);
}
