// SPDX-License-Identifier: Apache-2.0
#include "test/support/engine.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define START_MS       1000000000
#define UNLIMITED      1000000
#define RATE_PERIOD_MS 1000

void engine_init(struct engine *e, int32_t replicas)
{
	memset(e, 0, sizeof *e);
	e->now_ms = START_MS;
	e->policy = (struct policy){
	        .namespace_name = "serving",
	        .name = "llama",
	        .min_replicas = 1,
	        .max_replicas = 1000,
	        .replica_multiple = 1,
	        .interval_ms = 15000,
	        .signals = e->signals,
	};
	e->seen = (struct observation){
	        .spec_replicas = replicas,
	        .status_replicas = replicas,
	        .ready_replicas = replicas,
	        .signals = e->seen_signals,
	};
	e->policy.scale_up.rates = e->up;
	e->policy.scale_down.rates = e->down;
	e->up[0] = e->down[0] = (struct policy_rate){RATE_PODS, UNLIMITED, RATE_PERIOD_MS};
	e->policy.scale_up.n_rates = e->policy.scale_down.n_rates = 1;
}

void engine_done(struct engine *e)
{
	free(e->state);
	e->state = NULL;
}

static struct policy_signal *add(struct engine *e, const char *name)
{
	assert(e->policy.n_signals < POLICY_SIGNALS_MAX);
	struct policy_signal *s = &e->signals[e->policy.n_signals];
	s->name = name;
	s->query = name;
	s->stale_after_ms = 60000;
	e->seen_signals[e->policy.n_signals].state = OBS_EMPTY;
	e->seen.n_signals = ++e->policy.n_signals;
	return s;
}

struct policy_signal *engine_add_value(struct engine *e, const char *name, double target)
{
	struct policy_signal *s = add(e, name);
	s->target = (struct policy_target){.set = true, .type = TARGET_VALUE, .value = target, .tolerance_ratio = 0.1};
	return s;
}

struct policy_signal *engine_add_replicas(struct engine *e, const char *name)
{
	struct policy_signal *s = add(e, name);
	s->target = (struct policy_target){.set = true, .type = TARGET_REPLICAS};
	return s;
}

struct policy_signal *engine_add_watermarks(struct engine *e, const char *name, double low, double high, int algorithm)
{
	struct policy_signal *s = add(e, name);
	s->watermarks = (struct policy_watermarks){
	        .set = true, .low = low, .high = high, .tolerance_ratio = 0.1, .algorithm = algorithm};
	return s;
}

void engine_add_objective(struct engine *e)
{
	size_t demand = e->policy.n_signals;
	add(e, "demand");
	add(e, "backlog");
	e->policy.startup = (struct policy_startup){true, true, 120000};
	e->policy.objective = (struct policy_objective){.set = true,
	                                                .demand = "demand",
	                                                .backlog = "backlog",
	                                                .late_ratio = 0.01,
	                                                .wait_ms = 10000,
	                                                .demand_index = demand,
	                                                .backlog_index = demand + 1};
}

void engine_add_rate(struct engine *e, int direction, int type, int32_t value, int64_t period_ms)
{
	struct policy_scaling_rules *rules = direction > 0 ? &e->policy.scale_up : &e->policy.scale_down;
	struct policy_rate *rates = direction > 0 ? e->up : e->down;
	if (!rules->rates_set)
		rules->n_rates = 0; // the unlimited one of engine_init makes room
	rules->rates_set = true;
	assert(rules->n_rates < POLICY_RATE_POLICIES_MAX);
	rates[rules->n_rates++] = (struct policy_rate){type, value, period_ms};
}

void engine_start(struct engine *e)
{
	free(e->state);
	e->state = calloc(1, decide_state_bytes(&e->policy)); // zeroed: tests compare states byte by byte
	assert(e->state);
	decide_state_init(&e->policy, e->state);
}

void engine_show(struct engine *e, size_t signal, double value)
{
	e->series[signal][0] = (struct obs_series){.pod = "", .value = value, .time_ms = e->now_ms};
	e->seen_signals[signal] = (struct obs_signal){.state = OBS_OK, .series = e->series[signal], .n_series = 1};
}

void engine_show_pods(struct engine *e, size_t signal, size_t n, double value, double step)
{
	static const char *const names[ENGINE_SERIES_MAX] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	assert(n <= ENGINE_SERIES_MAX);
	for (size_t i = 0; i < n; i++)
		e->series[signal][i] = (struct obs_series){names[i], value + (double)i * step, e->now_ms};
	e->seen_signals[signal] =
	        (struct obs_signal){.state = n ? OBS_OK : OBS_EMPTY, .series = e->series[signal], .n_series = n};
}

void engine_show_state(struct engine *e, size_t signal, enum obs_state state)
{
	e->seen_signals[signal] = (struct obs_signal){.state = state, .detail = "for the test"};
}

const struct decision *engine_tick_as_stamped(struct engine *e)
{
	decide(&e->policy, &e->seen, e->now_ms, e->state, &e->decision);
	return &e->decision;
}

const struct decision *engine_tick(struct engine *e)
{
	for (size_t i = 0; i < e->policy.n_signals; i++)
		for (size_t k = 0; k < e->seen_signals[i].n_series; k++)
			e->series[i][k].time_ms = e->now_ms;
	return engine_tick_as_stamped(e);
}

void engine_apply(struct engine *e)
{
	if (!e->decision.write)
		return;
	decide_record_scale(&e->policy, e->state, e->now_ms, e->decision.current, e->decision.desired);
	e->seen.spec_replicas = e->seen.status_replicas = e->seen.ready_replicas = e->decision.desired;
}

const struct trace_entry *engine_find(const struct engine *e, enum reason reason)
{
	for (size_t i = 0; i < e->decision.n_trace; i++)
		if (e->decision.entries[i].reason == reason)
			return &e->decision.entries[i];
	return NULL;
}
