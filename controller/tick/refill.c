// SPDX-License-Identifier: Apache-2.0
#include "controller/tick/refill.h"

#include "base/base.h"
#include "policies/engine/decide.h"
#include "policies/engine/forecast.h"
#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/source.h"
#include "promql/promql.h"
#include "promql/promql_source.h"

static const size_t samples_max[REFILL_USE__COUNT] = {
        [REFILL_WINDOW] = POLICY_WINDOW_SAMPLES_MAX,
        [REFILL_FORECAST] = 4 * FORECAST_SEASON_SLOTS_MAX + 4,
        [REFILL_OBJECTIVE] = DECIDE_OBJECTIVE_SAMPLES_MAX,
};

// The series of a range answer share one grid of times, but each may miss some.
static int64_t next_time(const struct promql_result *r, const size_t *at)
{
	int64_t t = INT64_MAX;
	for (size_t i = 0; i < r->n_series; i++)
		if (at[i] < r->series[i].n_samples && r->series[i].samples[at[i]].time_ms < t)
			t = r->series[i].samples[at[i]].time_ms;
	return t;
}

// Collects the samples at time t and moves behind them.
static size_t take_time(const struct promql_result *r, size_t *at, int64_t t, struct obs_series *column)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n_series; i++)
		if (at[i] < r->series[i].n_samples && r->series[i].samples[at[i]].time_ms == t)
			column[n++] = (struct obs_series){
			        .pod = "", .value = r->series[i].samples[at[i]++].value, .time_ms = t};
	return n;
}

size_t range_samples(const struct promql_result *r, const struct policy_signal *signal, struct obs_series *out,
                     size_t max, size_t *ret_n_refused)
{
	size_t n = 0, n_refused = 0;
	size_t *at = calloc(r->n_series ? r->n_series : 1, sizeof *at);
	struct obs_series *column = calloc(r->n_series ? r->n_series : 1, sizeof *column);
	while (at && column && n < max) {
		int64_t t = next_time(r, at);
		if (t == INT64_MAX)
			break;
		struct obs_signal at_t = {.state = OBS_OK, .series = column, .n_series = take_time(r, at, t, column)};
		struct reading one = source_read(signal, &at_t, t); // as of the sample's own time: not stale
		if (one.reason == REASON_NONE)
			out[n++] = (struct obs_series){.pod = "", .value = one.value, .time_ms = t};
		else
			n_refused++;
	}
	free(at);
	free(column);
	if (ret_n_refused)
		*ret_n_refused = n_refused;
	return n;
}

// ---- the queries ----

// Returns how far back this signal needs history.
static int64_t history_ms(const struct policy_signal *s)
{
	// A formula has no query; type Pods has no window, and the pods of the past are not known.
	if (!s->query || (s->target.set && s->target.type == TARGET_PODS))
		return 0;
	int64_t ms = s->window.set ? s->window.duration_ms : 0;
	return i64_max(ms, i64_max(s->sustain.up_ms, s->sustain.down_ms));
}

bool refill_is_needed(const struct policy *policy)
{
	for (size_t i = 0; i < policy->n_signals; i++)
		if (history_ms(&policy->signals[i]) > 0)
			return true;
	int64_t step_ms;
	return policy->objective.set || decide_forecast_history_ms(policy, &step_ms) > 0;
}

static void finish_one(struct refill_call *c)
{
	assert(c->pending > 0);
	if (--c->pending > 0)
		return;
	bool ok = c->error.kind == ERR_NONE;
	c->done(c->arg, ok, ok ? NULL : &c->error);
}

static void use(const struct refill_slot *slot, const struct obs_series *samples, size_t n)
{
	const struct refill_call *c = slot->call;
	switch (slot->use) {
	case REFILL_FORECAST:
		decide_refill_forecast(c->policy, c->state, samples, n, c->now_ms);
		return;
	case REFILL_OBJECTIVE:
		decide_refill_objective(c->policy, c->state, samples, n, c->ready_replicas, c->now_ms);
		return;
	case REFILL_WINDOW:
	case REFILL_USE__COUNT:
		decide_refill(c->policy, c->state, slot->signal, samples, n, c->ready_replicas, c->now_ms);
	}
}

static void on_result(void *arg, const struct promql_result *result, const struct err *error)
{
	struct refill_slot *slot = arg;
	struct refill_call *c = slot->call;
	if (c->dropped) {
		err_set(&c->error, ERR_CANCELED, "the wall clock was set");
	} else if (error) {
		c->error = *error;
	} else if (result->n_warnings || result->type != PROMQL_MATRIX) {
		err_set(&c->error, ERR_PROTOCOL, "signal %s: %s", c->policy->signals[slot->signal].name,
		        result->n_warnings ? result->warnings[0] : "the range query did not return a matrix");
	} else {
		struct obs_series *samples = calloc(samples_max[slot->use], sizeof *samples);
		if (samples)
			use(slot, samples,
			    range_samples(result, &c->policy->signals[slot->signal], samples, samples_max[slot->use],
			                  NULL));
		free(samples);
	}
	finish_one(c);
}

static void ask_for(struct refill_slot *slot, int64_t start_ms, int64_t end_ms, int64_t step_ms)
{
	struct refill_call *c = slot->call;
	const struct policy_signal *signal = &c->policy->signals[slot->signal];
	const struct promql_ticket ticket = {.namespace_name = c->policy->namespace_name,
	                                     .wait_ms = c->policy->interval_ms};
	struct buf scratch;
	struct err e;
	buf_init(&scratch, PROMQL_QUERY_BYTES_MAX);
	struct promql_source *source = promql_sources_find(c->sources, signal->source, &e);
	const char *query = promql_sources_admit(c->sources, signal->source, c->policy->namespace_name, signal->query,
	                                         &scratch, NULL, &e);
	const struct promql_question question = {
	        .query = query, .is_range = true, .start_ms = start_ms, .end_ms = end_ms, .step_ms = step_ms};
	c->pending++;
	if (!source || !query || promql_failover_ask(source, &question, &ticket, on_result, slot, &e) < 0) {
		c->error = e;
		finish_one(c);
	}
	buf_done(&scratch);
}

// One sample from the middle of each slot of the forecast.
static void ask_for_forecast(struct refill_call *c)
{
	int64_t step_ms, back_ms = decide_forecast_history_ms(c->policy, &step_ms);
	size_t signal = c->policy->forecast.signal_index;
	if (back_ms == 0)
		return;
	struct refill_slot *slot = &c->slots[POLICY_SIGNALS_MAX];
	*slot = (struct refill_slot){.call = c, .signal = signal, .use = REFILL_FORECAST};
	int64_t start_ms = (c->now_ms - back_ms) / step_ms * step_ms + step_ms / 2;
	ask_for(slot, start_ms, c->now_ms - c->policy->interval_ms, step_ms);
}

static void ask_for_objective(struct refill_call *c)
{
	int64_t step_ms, back_ms = decide_objective_history_ms(c->policy, c->state, c->now_ms, &step_ms);
	if (back_ms <= step_ms)
		return;
	struct refill_slot *slot = &c->slots[POLICY_SIGNALS_MAX + 1];
	*slot = (struct refill_slot){.call = c, .signal = c->policy->objective.demand_index, .use = REFILL_OBJECTIVE};
	ask_for(slot, c->now_ms - back_ms, c->now_ms - step_ms, step_ms);
}

void refill_start(struct refill_call *c, const struct promql_sources *sources, const struct policy *policy, void *state,
                  int32_t ready_replicas, int64_t now_ms, refill_done_fn *done, void *arg)
{
	assert(c->pending == 0);
	*c = (struct refill_call){.sources = sources,
	                          .policy = policy,
	                          .state = state,
	                          .ready_replicas = ready_replicas,
	                          .now_ms = now_ms,
	                          .pending = 1,
	                          .done = done,
	                          .arg = arg};
	ask_for_forecast(c);
	ask_for_objective(c);
	int64_t step_ms = policy->interval_ms;
	for (size_t i = 0; i < policy->n_signals; i++) {
		int64_t back_ms = history_ms(&policy->signals[i]);
		if (back_ms == 0)
			continue;
		if (back_ms / step_ms >=
		    POLICY_WINDOW_SAMPLES_MAX) // a long sustain: enough to include the start of the breach
			back_ms = (POLICY_WINDOW_SAMPLES_MAX - 1) * step_ms;
		c->slots[i] = (struct refill_slot){.call = c, .signal = i};
		// Up to one step ago: the tick that follows adds the present sample.
		ask_for(&c->slots[i], now_ms - back_ms, now_ms - step_ms, step_ms);
	}
	finish_one(c);
}

void refill_drop(struct refill_call *c)
{
	c->dropped = true;
}
