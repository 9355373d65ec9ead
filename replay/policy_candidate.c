// SPDX-License-Identifier: Apache-2.0
#include "replay/policy_candidate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "policies/engine/decide.h"
#include "replay/recording.h"
#include "replay/world.h"

#define AGE_SUFFIX    ":age"
#define AGE_MAX_S     1e9
#define DEMAND_S      15
#define UTILIZATION_S 60

static const char *const origin_names[] = {"demand", "backlog", "utilization"};
_Static_assert(sizeof origin_names / sizeof *origin_names == ORIGIN_SIMULATED, "one name per simulated metric");

// The signal that is the metric.
static const char *metric_signal(const struct engine_model *m, int metric, const char *const names[])
{
	for (size_t i = 0; i < m->n_signals; i++)
		if (m->signals[i].metric == metric)
			return m->signals[i].name;
	return metric < ORIGIN_SIMULATED && names[metric] ? names[metric] : engine_metric_names[metric];
}

static bool bind_metric(struct policy_candidate *c, size_t i, const struct engine_model *m, const char *const names[])
{
	for (int metric = 0; metric < ENGINE_METRIC__COUNT; metric++)
		if (strcmp(c->policy->signals[i].name, metric_signal(m, metric, names)) == 0) {
			c->origins[i] = ORIGIN_ENGINE;
			c->columns[i] = metric;
			return true;
		}
	return false;
}

static int check_type(const struct policy_signal *s, struct err *e)
{
	return s->target.set && s->target.type == TARGET_PODS
	               ? err_set(e, ERR_UNSUPPORTED,
	                         "signal %s: backtest has no values per pod, which type Pods needs; use Value or "
	                         "AverageValue",
	                         s->name)
	               : 0;
}

static int bind_signal(struct policy_candidate *c, size_t i, const char *file, const char *const names[],
                       const struct engine_model *engine, struct err *e)
{
	const struct policy_signal *s = &c->policy->signals[i];
	if (check_type(s, e) < 0)
		return -1;
	c->columns[i] = c->age_columns[i] = -1;
	c->origins[i] = ORIGIN_FORMULA;
	if (!s->query)
		return 0;
	if (engine && bind_metric(c, i, engine, names))
		return 0;
	for (int origin = 0; names && !engine && origin < ORIGIN_SIMULATED; origin++)
		if (strcmp(s->name, names[origin] ? names[origin] : origin_names[origin]) == 0) {
			c->origins[i] = (enum signal_origin)origin;
			return 0;
		}
	c->origins[i] = ORIGIN_COLUMN;
	if (!names) {
		char age[RECORDING_NAME_BYTES];
		snprintf(age, sizeof age, "%s" AGE_SUFFIX, s->name);
		c->age_columns[i] = recording_column(c->recording, age);
	}
	if (recording_need_column(c->recording, s->name, file, &c->columns[i], e) == 0)
		return 0;
	return engine  ? err_wrap(e, "signal %s is not simulated (metrics.signals of the engine model can name it)",
	                          s->name)
	       : names ? err_wrap(e,
	                          "signal %s is not simulated (demand, backlog and utilization are; "
	                          "--utilization-signal "
	                          "%s makes it the utilization)",
	                          s->name, s->name)
	               : err_wrap(e, "signal %s", s->name);
}

static bool has_signal(const struct policy *policy, const char *name)
{
	for (size_t i = 0; i < policy->n_signals; i++)
		if (strcmp(policy->signals[i].name, name) == 0)
			return true;
	return false;
}

static int check_names(const struct policy *policy, const char *const names[], const struct engine_model *m,
                       struct err *e)
{
	for (size_t i = 0; m && i < m->n_signals; i++)
		if (!has_signal(policy, m->signals[i].name))
			return err_set(e, ERR_INPUT,
			               "metrics.signals[%zu].name of the engine model: the policy has no signal \"%s\"",
			               i, m->signals[i].name);
	for (int origin = 0; origin < ORIGIN_SIMULATED; origin++)
		if (names[origin] && !has_signal(policy, names[origin]))
			return err_set(e, ERR_INPUT, "--%s-signal: the policy has no signal \"%s\"",
			               origin_names[origin], names[origin]);
	return 0;
}

static void start(struct policy_candidate *c, const struct policy *policy, const struct recording *recording,
                  int64_t start_ms)
{
	memset(c, 0, sizeof *c);
	c->policy = policy;
	c->recording = recording;
	c->start_ms = start_ms;
	for (size_t i = 0; i < POLICY_SIGNALS_MAX; i++)
		c->factors[i] = 1;
}

static int create_state(struct policy_candidate *c, struct err *e)
{
	c->state = calloc(1, decide_state_bytes(c->policy));
	if (!c->state)
		return err_no_memory(e);
	decide_state_init(c->policy, c->state);
	return 0;
}

int policy_candidate_init(struct policy_candidate *c, const struct policy *policy, const struct recording *recording,
                          const char *file, const char *const names[], const struct engine_model *engine,
                          int64_t start_ms, struct err *e)
{
	start(c, policy, recording, start_ms);
	if (names && check_names(policy, names, engine, e) < 0)
		return -1;
	for (size_t i = 0; i < policy->n_signals; i++)
		if (bind_signal(c, i, file, names, engine, e) < 0)
			return -1;
	return create_state(c, e);
}

int policy_candidate_init_bound(struct policy_candidate *c, const struct policy *policy,
                                const struct recording *recording, const struct signal_binding *bindings,
                                int64_t start_ms, struct err *e)
{
	start(c, policy, recording, start_ms);
	for (size_t i = 0; i < policy->n_signals; i++) {
		if (check_type(&policy->signals[i], e) < 0)
			return -1;
		c->origins[i] = policy->signals[i].query ? bindings[i].origin : ORIGIN_FORMULA;
		c->columns[i] = bindings[i].column;
		c->factors[i] = bindings[i].factor;
	}
	return create_state(c, e);
}

void policy_candidate_done(struct policy_candidate *c)
{
	free(c->state);
	c->state = NULL;
}

void policy_candidate_restore(struct policy_candidate *c, const struct policy_learnt *l)
{
	if (l && l->startup_s >= 0)
		decide_record_start(c->policy, c->state, llround(l->startup_s * 1000));
	if (l && l->n_record > 0)
		decide_objective_restore(c->policy, c->state, l->record, l->n_record, c->start_ms);
}

// NaN: no data. time_ms: of the sample.
static void set_signal(struct policy_candidate *c, size_t i, double value, int64_t time_ms)
{
	bool has_data = !isnan(value);
	c->series[i] = (struct obs_series){"", value, time_ms};
	c->signals[i] = (struct obs_signal){
	        .state = has_data ? OBS_OK : OBS_EMPTY, .series = &c->series[i], .n_series = has_data ? 1 : 0};
}

static void decide_now(struct policy_candidate *c, int64_t now_ms, int32_t replicas, int32_t ready, int32_t pending)
{
	const struct observation o = {.spec_replicas = replicas,
	                              .status_replicas = replicas,
	                              .ready_replicas = ready,
	                              .pending_replicas = pending,
	                              .signals = c->signals,
	                              .n_signals = c->policy->n_signals};
	if (c->started && replicas != c->last_replicas)
		decide_record_scale(c->policy, c->state, c->last_ms, c->last_replicas, replicas);
	decide(c->policy, &o, now_ms, c->state, &c->decision);
	if (c->on_decision)
		c->on_decision(c->context, &c->decision);
	c->started = true;
	c->last_ms = now_ms;
	c->last_replicas = replicas;
}

// The recorded value of the present time, NaN in a gap.
static double recorded(struct policy_candidate *c, size_t i, int64_t now_ms)
{
	const struct recording *r = c->recording;
	while (c->row + 1 < r->n_rows && r->time_ms[c->row + 1] <= now_ms)
		c->row++;
	bool holds = now_ms <= r->time_ms[c->row] + recording_hold_ms(r, c->row);
	return holds ? recording_value(r, c->row, c->columns[i]) : NAN;
}

int32_t policy_candidate_decide(void *self, const struct world *w, bool has_data)
{
	struct policy_candidate *c = self;
	int64_t now_ms = c->start_ms + w->now_ms;
	for (size_t i = 0; i < c->policy->n_signals; i++) {
		double value = NAN;
		switch (c->origins[i]) {
		case ORIGIN_DEMAND:
			value = has_data ? c->factors[i] * world_demand(w, DEMAND_S) : NAN;
			break;
		case ORIGIN_BACKLOG:
			value = has_data ? c->factors[i] * w->backlog : NAN;
			break;
		case ORIGIN_UTILIZATION:
			value = has_data ? c->factors[i] * world_utilization(w, UTILIZATION_S, 0) : NAN;
			break;
		case ORIGIN_ENGINE:
			value = has_data ? engine_history_read(engine_history(w->engine),
			                                       (enum engine_metric)c->columns[i])
			                 : NAN;
			break;
		case ORIGIN_FORMULA:
			break;
		case ORIGIN_COLUMN:
		case ORIGIN__COUNT:
			value = recorded(c, i, now_ms);
			break;
		}
		set_signal(c, i, value, now_ms);
	}
	int32_t replicas = world_replicas(w);
	decide_now(c, now_ms, replicas, w->ready, replicas - w->ready);
	return c->decision.desired;
}

static int64_t age_ms(const struct policy_candidate *c, size_t row, size_t i)
{
	double age_s = c->age_columns[i] < 0 ? 0 : recording_value(c->recording, row, c->age_columns[i]);
	return age_s >= -AGE_MAX_S && age_s <= AGE_MAX_S ? llround(age_s * 1000) : 0; // NaN: no sample
}

void policy_candidate_decide_recorded(struct policy_candidate *c, size_t row, const struct recorded_scale *scale)
{
	int64_t now_ms = c->recording->time_ms[row];
	for (size_t i = 0; i < c->policy->n_signals; i++)
		if (c->policy->signals[i].query)
			set_signal(c, i, recording_value(c->recording, row, c->columns[i]), now_ms - age_ms(c, row, i));
	int32_t unready = scale->ready >= 0 && scale->ready < scale->replicas ? scale->replicas - scale->ready : 0;
	decide_now(c, now_ms, scale->replicas, scale->ready, scale->pending >= 0 ? scale->pending : unready);
}
