// SPDX-License-Identifier: Apache-2.0
#include "controller/refill.h"

#include <assert.h>
#include <stdlib.h>

#include "policies/decide.h"
#include "policies/forecast.h"
#include "policies/observation.h"
#include "policies/source.h"
#include "promql/promql.h"
#include "promql/promql_source.h"

#define FORECAST_SAMPLES_MAX (2 * FORECAST_SEASON_SLOTS_MAX + 4)

// How far back this signal's history matters.
static int64_t history_ms(const struct policy_signal *s)
{
	if (s->target.set && s->target.type == TARGET_PODS) // no window; what the pods were back then is not known
		return 0;
	int64_t ms = s->window.set ? s->window.duration_ms : 0;
	if (ms < s->sustain.up_ms)
		ms = s->sustain.up_ms;
	if (ms < s->sustain.down_ms)
		ms = s->sustain.down_ms;
	return ms;
}

bool refill_is_needed(const struct policy *policy)
{
	for (size_t i = 0; i < policy->n_signals; i++)
		if (history_ms(&policy->signals[i]) > 0)
			return true;
	int64_t step_ms;
	return decide_forecast_history_ms(policy, &step_ms) > 0;
}

static void finish_one(struct refill_call *c)
{
	assert(c->pending > 0);
	if (--c->pending > 0)
		return;
	bool ok = c->error.kind == ERR_NONE;
	c->done(c->arg, ok, ok ? NULL : &c->error);
}

// The series of a range answer share one grid of times: walks it and reduces what stands at each time to one sample.
// Times at which the signal's rule for several series is broken give no sample.
static size_t reduce(const struct promql_result *r, const struct policy_signal *signal, struct obs_series *out,
                     size_t max)
{
	size_t n = 0;
	size_t *at = calloc(r->n_series ? r->n_series : 1, sizeof *at);
	struct obs_series *column = calloc(r->n_series ? r->n_series : 1, sizeof *column);
	while (at && column && n < max) {
		int64_t t = INT64_MAX;
		for (size_t i = 0; i < r->n_series; i++)
			if (at[i] < r->series[i].n_samples && r->series[i].samples[at[i]].time_ms < t)
				t = r->series[i].samples[at[i]].time_ms;
		if (t == INT64_MAX)
			break;
		size_t k = 0;
		for (size_t i = 0; i < r->n_series; i++)
			if (at[i] < r->series[i].n_samples && r->series[i].samples[at[i]].time_ms == t)
				column[k++] = (struct obs_series){
				        .pod = "", .value = r->series[i].samples[at[i]++].value, .time_ms = t};
		struct obs_signal seen = {.state = OBS_OK, .series = column, .n_series = k};
		struct reading one = source_read(signal, &seen, t); // as of its own time: nothing in the past is stale
		if (one.reason == REASON_NONE)
			out[n++] = (struct obs_series){.pod = "", .value = one.value, .time_ms = t};
	}
	free(at);
	free(column);
	return n;
}

static void on_result(void *arg, const struct promql_result *result, const struct err *error)
{
	struct refill_slot *slot = arg;
	struct refill_call *c = slot->call;
	if (error) {
		c->error = *error;
	} else if (result->n_warnings || result->type != PROMQL_MATRIX) {
		err_set(&c->error, ERR_PROTOCOL, "signal %s: %s", c->policy->signals[slot->signal].name,
		        result->n_warnings ? result->warnings[0] : "the range query did not return a matrix");
	} else {
		size_t max = slot->forecast ? FORECAST_SAMPLES_MAX : POLICY_WINDOW_SAMPLES_MAX;
		struct obs_series *samples = calloc(max, sizeof *samples);
		if (samples) {
			size_t n = reduce(result, &c->policy->signals[slot->signal], samples, max);
			if (slot->forecast)
				decide_refill_forecast(c->policy, c->state, samples, n, c->now_ms);
			else
				decide_refill(c->policy, c->state, slot->signal, samples, n, c->ready_replicas,
				              c->now_ms);
			free(samples);
		}
	}
	finish_one(c);
}

static void ask_one(struct refill_call *c, const struct promql_sources *sources, struct refill_slot *slot,
                    int64_t start_ms, int64_t end_ms, int64_t step_ms)
{
	const struct policy_signal *signal = &c->policy->signals[slot->signal];
	struct promql_source *source = promql_sources_find(sources, signal->source, &c->error);
	c->pending++;
	if (!source ||
	    promql_source_ask_range(source, signal->query, start_ms, end_ms, step_ms, on_result, slot, &c->error) < 0)
		finish_one(c);
}

// One sample from the middle of each slot of the forecast.
static void ask_for_forecast(struct refill_call *c, const struct promql_sources *sources)
{
	int64_t step_ms, back_ms = decide_forecast_history_ms(c->policy, &step_ms);
	size_t signal = c->policy->forecast.signal_index;
	if (back_ms == 0)
		return;
	struct refill_slot *slot = &c->slots[POLICY_SIGNALS_MAX];
	*slot = (struct refill_slot){.call = c, .signal = signal, .forecast = true};
	int64_t start_ms = (c->now_ms - back_ms) / step_ms * step_ms + step_ms / 2;
	ask_one(c, sources, slot, start_ms, c->now_ms - c->policy->interval_ms, step_ms);
}

void refill_start(struct refill_call *c, const struct promql_sources *sources, const struct policy *policy, void *state,
                  int32_t ready_replicas, int64_t now_ms, refill_done_fn *done, void *arg)
{
	assert(c->pending == 0);
	*c = (struct refill_call){.policy = policy,
	                          .state = state,
	                          .ready_replicas = ready_replicas,
	                          .now_ms = now_ms,
	                          .pending = 1,
	                          .done = done,
	                          .arg = arg};
	ask_for_forecast(c, sources);
	int64_t step_ms = policy->interval_ms;
	for (size_t i = 0; i < policy->n_signals; i++) {
		int64_t back_ms = history_ms(&policy->signals[i]);
		if (back_ms == 0)
			continue;
		if (back_ms / step_ms >= POLICY_WINDOW_SAMPLES_MAX) // a long sustain: enough to see the breach begin
			back_ms = (POLICY_WINDOW_SAMPLES_MAX - 1) * step_ms;
		c->slots[i] = (struct refill_slot){.call = c, .signal = i};
		// Up to one step ago: the tick that follows brings the present itself.
		ask_one(c, sources, &c->slots[i], now_ms - back_ms, now_ms - step_ms, step_ms);
	}
	finish_one(c);
}
