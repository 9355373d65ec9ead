// SPDX-License-Identifier: Apache-2.0
#include "replay/policy_candidate.h"

#include <math.h>

#include "base/base.h"
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

static bool bind_metric(struct policy_candidate *c, size_t i)
{
	for (int metric = 0; metric < ENGINE_METRIC__COUNT; metric++)
		if (strcmp(c->policy->signals[i].name, metric_signal(c->input.engine, metric, c->input.names)) == 0) {
			c->bindings[i] = (struct signal_binding){ORIGIN_ENGINE, 1, metric};
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

static int bind_signal(struct policy_candidate *c, size_t i, struct err *e)
{
	const struct policy_signal *s = &c->policy->signals[i];
	const struct engine_model *engine = c->input.engine;
	const char *const *names = c->input.names;
	struct signal_binding *b = &c->bindings[i];
	if (check_type(s, e) < 0)
		return -1;
	*b = (struct signal_binding){ORIGIN_FORMULA, 1, -1};
	c->age_columns[i] = -1;
	if (!s->query)
		return 0;
	if (c->input.bindings) {
		*b = c->input.bindings[i];
		return 0;
	}
	if (engine && bind_metric(c, i))
		return 0;
	for (int origin = 0; names && !engine && origin < ORIGIN_SIMULATED; origin++)
		if (strcmp(s->name, names[origin] ? names[origin] : origin_names[origin]) == 0) {
			b->origin = (enum signal_origin)origin;
			return 0;
		}
	b->origin = ORIGIN_COLUMN;
	if (!names) {
		char age[RECORDING_NAME_BYTES];
		snprintf(age, sizeof age, "%s" AGE_SUFFIX, s->name);
		c->age_columns[i] = recording_column(c->input.recording, age);
	}
	if (recording_need_column(c->input.recording, s->name, c->input.file, &b->column, e) == 0)
		return 0;
	return engine  ? err_wrap(e, "signal %s is not simulated (metrics.signals of the engine model can name it)",
	                          s->name)
	       : names ? err_wrap(e,
	                          "signal %s is not simulated (demand, backlog and utilization are; "
	                          "--utilization-signal %s makes it the utilization)",
	                          s->name, s->name)
	               : err_wrap(e, "signal %s", s->name);
}

static int check_names(const struct policy *policy, const char *const names[], const struct engine_model *m,
                       struct err *e)
{
	for (size_t i = 0; m && i < m->n_signals; i++)
		if (policy_signal_index(policy, m->signals[i].name) == policy->n_signals)
			return err_set(e, ERR_INPUT,
			               "metrics.signals[%zu].name of the engine model: the policy has no signal \"%s\"",
			               i, m->signals[i].name);
	for (int origin = 0; origin < ORIGIN_SIMULATED; origin++)
		if (names[origin] && policy_signal_index(policy, names[origin]) == policy->n_signals)
			return err_set(e, ERR_INPUT, "--%s-signal: the policy has no signal \"%s\"",
			               origin_names[origin], names[origin]);
	return 0;
}

int policy_candidate_init(struct policy_candidate *c, const struct policy *policy, const struct candidate_input *input,
                          struct err *e)
{
	memset(c, 0, sizeof *c);
	c->policy = policy;
	c->input = *input;
	if (input->names && !input->bindings && check_names(policy, input->names, input->engine, e) < 0)
		return -1;
	for (size_t i = 0; i < policy->n_signals; i++)
		if (bind_signal(c, i, e) < 0)
			return -1;
	c->state = err_calloc(decide_state_bytes(policy), e);
	if (c->state)
		decide_state_init(policy, c->state);
	return c->state ? 0 : -1;
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
		decide_objective_restore(c->policy, c->state, l->record, l->n_record, c->input.start_ms);
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
	const struct recording *r = c->input.recording;
	while (c->row + 1 < r->n_rows && r->time_ms[c->row + 1] <= now_ms)
		c->row++;
	bool holds = now_ms <= r->time_ms[c->row] + recording_hold_ms(r, c->row);
	return holds ? recording_value(r, c->row, c->bindings[i].column) : NAN;
}

static double simulated(const struct world *w, const struct signal_binding *b)
{
	switch (b->origin) {
	case ORIGIN_DEMAND:
		return b->factor * world_demand(w, DEMAND_S);
	case ORIGIN_BACKLOG:
		return b->factor * w->backlog;
	case ORIGIN_UTILIZATION:
		return b->factor * world_utilization(w, UTILIZATION_S, 0);
	case ORIGIN_ENGINE:
		return engine_history_read(engine_history(w->engine), (enum engine_metric)b->column);
	default:
		return NAN; // a formula
	}
}

int32_t policy_candidate_decide(void *self, const struct world *w, bool has_data)
{
	struct policy_candidate *c = self;
	int64_t now_ms = c->input.start_ms + w->now_ms;
	for (size_t i = 0; i < c->policy->n_signals; i++) {
		const struct signal_binding *b = &c->bindings[i];
		double value = b->origin == ORIGIN_COLUMN ? recorded(c, i, now_ms) : has_data ? simulated(w, b) : NAN;
		set_signal(c, i, value, now_ms);
	}
	int32_t replicas = world_replicas(w);
	decide_now(c, now_ms, replicas, w->ready, replicas - w->ready);
	return c->decision.desired;
}

static int64_t age_ms(const struct policy_candidate *c, size_t row, size_t i)
{
	double age_s = c->age_columns[i] < 0 ? 0 : recording_value(c->input.recording, row, c->age_columns[i]);
	return age_s >= -AGE_MAX_S && age_s <= AGE_MAX_S ? llround(age_s * 1000) : 0; // NaN: no sample
}

void policy_candidate_decide_recorded(struct policy_candidate *c, size_t row, const struct recorded_scale *scale)
{
	int64_t now_ms = c->input.recording->time_ms[row];
	for (size_t i = 0; i < c->policy->n_signals; i++)
		if (c->policy->signals[i].query)
			set_signal(c, i, recording_value(c->input.recording, row, c->bindings[i].column),
			           now_ms - age_ms(c, row, i));
	int32_t unready = scale->ready >= 0 && scale->ready < scale->replicas ? scale->replicas - scale->ready : 0;
	decide_now(c, now_ms, scale->replicas, scale->ready, scale->pending >= 0 ? scale->pending : unready);
}
