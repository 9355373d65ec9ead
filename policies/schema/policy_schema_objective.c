// SPDX-License-Identifier: Apache-2.0
// spec.objective of a GPUAutoscaler.
#include <stdbool.h>
#include <string.h>

#include "policies/engine/policy.h"
#include "policies/schema/policy_schema_private.h"

#define INTERVAL_MAX_MS 120000 // eight simulated steps of 15 s

// clang-format off
static const struct schema_field fields[] = {
	{ROW("late", STRING),      FIELD(struct policy_objective, late_text), REQUIRED, RANGE(1, 16), PATTERN("^[0-9]+([.][0-9]+)?%$"), TUNE(LOG, 0.05, 20), DOC("Share of the work that may wait longer than `wait`, from 0.01% to 50%, as in 1%.")},
	{ROW("wait", DURATION_MS), FIELD(struct policy_objective, wait_ms),   REQUIRED, RANGE(SECOND_MS, HOUR_MS),                                           DOC("How long work may wait in the queue before it counts as late, as in 10s.")},
	{ROW("demand", STRING),    FIELD(struct policy_objective, demand),    REQUIRED, RANGE(1, 63),                                                        DOC("Name of the signal that measures arriving work in replicas: 3.2 keeps 3.2 replicas busy. It must not depend on the number of replicas.")},
	{ROW("backlog", STRING),   FIELD(struct policy_objective, backlog),   REQUIRED, RANGE(1, 63),                                                        DOC("Name of the signal that measures queued work in replica-seconds: 600 keeps one replica busy for ten minutes.")},
	{ROW("utilization", STRING), FIELD(struct policy_objective, utilization), OPTIONAL, RANGE(1, 63),                                                    DOC("Name of a signal that measures which share of the ready replicas is busy, from 0 to 1. It asks for no replicas and needs neither target nor watermarks; what a replica can do is then learnt from it, too, not from the queue alone (CapacityLearnt). Leave it out where a replica counts as busy with a fraction of its load, as GPUs do.")},
	{ROW("measured", STRING),  FIELD(struct policy_objective, measured),  OPTIONAL, RANGE(1, 63),                                                        DOC("Name of a signal that measures which share of the requests was late, from 0 to 1, such as the share of vLLM's time to first token above `wait`. It asks for no replicas and needs neither target nor watermarks; the rules are held to less while it is above `late`, and to more while it is below.")},
};
const struct schema policy_schema_objective = {SCHEMA("GPUAutoscaler.spec.objective", struct policy_objective, fields), DOC("At most `late` of the work may wait longer than `wait`. `demand` and `backlog` have neither target nor watermarks.")};
// clang-format on

// ---- rules with other fields ----

static bool is_named(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

static bool is_input(const struct policy *p, const char *name)
{
	return is_named(name, p->objective.demand) || is_named(name, p->objective.backlog);
}

// The objective simulates every sample as it was measured: an average or a delay would be replayed as demand.
static void check_input(const struct policy_signal *s, int32_t i, struct fault_list *l)
{
	if (s->target.set || s->watermarks.set)
		fault_add(l, "signals", i,
		          "is named by the objective, which asks for replicas in its place: remove its target or "
		          "watermarks");
	else if (s->window.set || s->sustain.up_ms > 0 || s->sustain.down_ms > 0)
		fault_add(l, "signals", i,
		          "is named by the objective, which needs every sample as it was measured: remove window and "
		          "sustain");
}

static bool is_unknown(const struct policy *p, const char *name)
{
	return name && policy_schema_signal_index(p, name) == p->n_signals;
}

void policy_schema_check_objective(const struct policy *p, struct fault_list *l)
{
	const struct policy_objective *o = &p->objective;
	if (!o->set)
		return;
	for (size_t i = 0; i < p->n_signals; i++)
		if (is_input(p, p->signals[i].name))
			check_input(&p->signals[i], (int32_t)i, l);
	// clang-format off
	const struct fault_rule rules[] = {
		{is_unknown(p, o->demand), "objective.demand", "must be the name of one of the signals"},
		{is_unknown(p, o->backlog), "objective.backlog", "must be the name of one of the signals"},
		{is_unknown(p, o->utilization), "objective.utilization", "must be the name of one of the signals"},
		{is_input(p, o->utilization), "objective.utilization", "must be another signal than demand and backlog: the share of the replicas that is busy"},
		{is_unknown(p, o->measured), "objective.measured", "must be the name of one of the signals"},
		{is_input(p, o->measured), "objective.measured", "must be another signal than demand and backlog: the share of the requests that was late"},
		{is_named(o->demand, o->backlog), "objective.backlog", "must be another signal than demand: demand is work that arrives, backlog is work that waits"},
		{p->forecast.set && is_input(p, p->forecast.signal), "forecast.signal", "is a signal of the objective, which forecasts it already: remove forecast, or name another signal"},
		{p->interval_ms > INTERVAL_MAX_MS, "interval", "must be at most 2m with an objective, which simulates in steps of 15 s: shorten it"},
		{!p->startup.set, "objective", "needs to know how long a replica takes to start: add startup: {seconds: N}, or startup: {} to learn it from the pods"},
	};
	// clang-format on
	fault_add_broken(l, rules, COUNT_OF(rules));
}
