// SPDX-License-Identifier: Apache-2.0
// Root and spec of a GPUAutoscaler.
#include "policies/schema/policy_schema.h"

#include <stdbool.h>
#include <string.h>

#include "base/json/json_path.h"
#include "policies/engine/forecast.h"
#include "policies/engine/idle.h"
#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/schedule.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema_private.h"

#define NOT_A_SIGNAL "must be the name of one of the signals"
#define IS_A_FORMULA "is a formula: name a signal with a query"
#define ASKS_NOTHING "has neither target nor watermarks: name a signal that asks for replicas"

// ---- scaleTargetRef ----

static void check_target_ref(const void *value, struct fault_list *l)
{
	const char *path = ((const struct policy_document *)value)->target.path;
	if (path && (strncmp(path, "spec.", 5) != 0 || !json_path_is_valid(path)))
		fault_add(l, "path", -1,
		          "is not a path below spec: separate members by dots and choose an item of a list by a text "
		          "in it, as in spec.workerGroupSpecs[groupName=gpu].replicas");
}

// clang-format off
static const struct schema_field target_ref_fields[] = {
	{ROW("apiVersion", STRING), FIELD(struct policy_document, target.api_version), DEFAULT("apps/v1"),    RANGE(1, 253), DOC("API group and version of the scaled object.")},
	{ROW("kind", STRING),       FIELD(struct policy_document, target.kind),        DEFAULT("Deployment"), RANGE(1, 63),  DOC("Kind of the scaled object: Deployment, StatefulSet, LeaderWorkerSet or anything else with a scale subresource; with `path`, any kind. docs/targets.md lists the kinds whose replicas and pods the controller knows.")},
	{ROW("name", STRING),       FIELD(struct policy_document, target.name),        REQUIRED,              RANGE(1, 253), DOC("Name of the scaled object, in the namespace of the policy.")},
	{ROW("path", STRING),       FIELD(struct policy_document, target.path),        OPTIONAL,              RANGE(1, JSON_PATH_BYTES_MAX), PATTERN("^spec([.][A-Za-z0-9_-]+([[][A-Za-z0-9_-]+=[A-Za-z0-9_.-]+[]])?)+$"), DOC("Where the object has the number of its replicas, for a kind without a scale subresource: members separated by dots, where [KEY=VALUE] chooses an item of a list, as in spec.workerGroupSpecs[groupName=gpu].replicas. The controller needs the right to patch such objects; see docs/targets.md.")},
};
static const struct schema target_ref = {SCHEMA("GPUAutoscaler.spec.scaleTargetRef", struct policy_document, target_ref_fields), VALIDATE(check_target_ref), DOC("What is scaled.")};
// clang-format on

// ---- spec ----

static const char *const combine_names[] = {
        [COMBINE_MAX] = "Max", [COMBINE_MIN] = "Min"}; // any other text is a formula
_Static_assert(COUNT_OF(combine_names) == COMBINE_FORMULA, "one name per way to combine but for the formula");

int policy_schema_combine(const char *text)
{
	for (int i = 0; i < COMBINE_FORMULA; i++)
		if (strcmp(text, combine_names[i]) == 0)
			return i;
	return COMBINE_FORMULA;
}

static void check_bounds(const void *value, struct fault_list *l)
{
	const struct policy *p = value;
	if (p->min_replicas > p->max_replicas)
		fault_add(l, "minReplicas", -1, "is larger than maxReplicas: lower it or raise maxReplicas");
	else if (multiple_down(p->max_replicas, p->replica_multiple) < i32_max(p->min_replicas, 1))
		fault_add(l, "replicaMultiple", -1,
		          "has no multiple between minReplicas and maxReplicas: raise maxReplicas or lower it");
	if (p->min_replicas == 0 && !p->idle.set && !p->objective.set)
		fault_add(l, "minReplicas", -1,
		          "0 needs idle, which says when to scale to zero and which signal activates the target, or an "
		          "objective, whose record shows it");
}

static void check_windows(const struct policy *p, struct fault_list *l)
{
	for (size_t i = 0; i < p->n_signals; i++) {
		const struct policy_window *w = &p->signals[i].window;
		if (!w->set)
			continue;
		int64_t samples = (w->duration_ms - 1) / p->interval_ms + 1;
		if (samples > POLICY_WINDOW_SAMPLES_MAX)
			fault_add(l, "signals", (int32_t)i,
			          "window.duration needs more than 512 samples at this interval: let the query do it "
			          "(avg_over_time, max_over_time, quantile_over_time) or use a longer interval");
		else if (samples < w->min_samples)
			fault_add(l, "signals", (int32_t)i,
			          "window.duration never holds minSamples samples at this interval: lengthen it, lower "
			          "minSamples or shorten interval");
	}
}

static void check_idle(const struct policy *p, struct fault_list *l)
{
	size_t n;
	const struct policy_activation *a = idle_activations(&p->idle, &n);
	const char *field = p->idle.n_any_of > 0 ? "idle.activation.anyOf" : "idle.activation.signal";
	if (!p->idle.set)
		return;
	for (; n > 0; n--, a++) {
		size_t signal = a->signal ? policy_schema_signal_index(p, a->signal) : p->n_signals;
		if (signal == p->n_signals)
			fault_add(l, field, -1, NOT_A_SIGNAL);
		else if (p->signals[signal].target.set && p->signals[signal].target.type == TARGET_PODS)
			fault_add(l, field, -1,
			          "has a target of type Pods, which has no data without pods: use another signal");
	}
	if (p->idle.replicas >= i32_max(p->min_replicas, 1))
		fault_add(l, "idle.replicas", -1, "must be smaller than minReplicas (0 with minReplicas 0 or 1)");
	else if (p->replica_multiple > 0 && p->idle.replicas % p->replica_multiple != 0)
		fault_add(l, "idle.replicas", -1, "must be a multiple of replicaMultiple");
}

static const char *schedule_bounds_fault(const struct policy *p, const struct policy_schedule *s)
{
	if (s->min_set && !s->max_set && s->min_replicas > p->max_replicas)
		return "minReplicas is larger than the policy's maxReplicas: set maxReplicas here too";
	if (s->max_set && !s->min_set && s->max_replicas < p->min_replicas)
		return "maxReplicas is smaller than the policy's minReplicas: set minReplicas here too";
	if (s->min_set && s->min_replicas == 0 && !p->idle.set && !p->objective.set)
		return "minReplicas 0 needs idle or an objective; replicas: 0 scales to zero for the time of the "
		       "window";
	return NULL;
}

static void check_schedules(const struct policy *p, struct fault_list *l)
{
	for (size_t i = 0; i < p->n_schedules; i++) {
		const char *fault = schedule_bounds_fault(p, &p->schedules[i]);
		fault = fault ? fault : schedule_fault(p, i);
		for (size_t k = 0; k < i && !fault; k++)
			if (strcmp(p->schedules[i].name, p->schedules[k].name) == 0)
				fault = "has the name of an earlier schedule: use unique names";
		if (fault)
			fault_add(l, "schedules", (int32_t)i, fault);
	}
}

static bool has_formula(const struct policy *p)
{
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].formula_text)
			return true;
	return p->combine_text && policy_schema_combine(p->combine_text) == COMBINE_FORMULA;
}

static bool asks(const struct policy_signal *s)
{
	return s->target.set || s->watermarks.set;
}

static bool any_asks(const struct policy *p)
{
	bool any = p->objective.set || p->n_signals == 0;
	for (size_t i = 0; i < p->n_signals; i++)
		any |= asks(&p->signals[i]);
	return any;
}

// A signal that another field names.
struct named {
	bool is_unknown, is_formula, asks_nothing, is_of_pods, has_average;
};

static struct named find_named(const struct policy *p, bool is_set, const char *name)
{
	size_t i = is_set && name ? policy_schema_signal_index(p, name) : 0;
	const struct policy_signal *s = is_set && name && i < p->n_signals ? &p->signals[i] : NULL;
	if (!s)
		return (struct named){.is_unknown = is_set && name};
	return (struct named){.is_formula = s->formula_text,
	                      .asks_nothing = !asks(s) && !p->objective.set,
	                      .is_of_pods = s->target.set && s->target.type == TARGET_PODS,
	                      .has_average = s->window.set && s->window.aggregate == WINDOW_AVG};
}

// What delays a scale-down longest. Replicas that are removed faster than they start are missing for the next wave of
// load.
static int64_t delay_of_scale_down(const struct policy *p)
{
	int64_t delay_ms = i64_max(p->scale_down.stabilization_window_ms, p->cooldown.down_ms);
	for (size_t i = 0; i < p->n_signals; i++)
		delay_ms = i64_max(delay_ms, p->signals[i].sustain.down_ms);
	return delay_ms;
}

static void check_fields(const struct policy *p, struct fault_list *l)
{
	const struct policy_fallback *fb = &p->fallback;
	const struct policy_guards *g = &p->guards;
	const struct policy_objective *o = &p->objective;
	const struct policy_forecast *f = &p->forecast;
	const struct named gain = find_named(p, g->gain.set, g->gain.signal),
	                   throttled = find_named(p, g->throttled.set, g->throttled.signal),
	                   forecast = find_named(p, f->set, f->signal),
	                   panic = find_named(p, p->panic.set, p->panic.signal);
	bool is_too_high = fb->replicas_set && fb->replicas > p->max_replicas;
	// Signals that are read before formulas are evaluated, or whose past is needed, must have a query. An objective
	// keeps replicas for a start-up time itself.
	// clang-format off
	const struct fault_rule rules[] = {
		{fb->set && fb->behavior == FALLBACK_SCALING_MODIFIERS && !has_formula(p), "fallback.behavior", "ScalingModifiers needs a formula in combine or of a signal, with a default for missing signals: max(a, b ?? 2)"},
		{is_too_high, "fallback.replicas", "is larger than maxReplicas: lower it or raise maxReplicas"},
		{!is_too_high && fb->replicas_set && fb->replicas < p->min_replicas, "fallback.replicas", "is smaller than minReplicas, which takes precedence: raise it"},
		{g->max_step > 0 && g->max_step < p->replica_multiple, "guards.maxStep", "is smaller than replicaMultiple, so that nothing could ever change: raise it"},
		{gain.is_unknown, "guards.minMarginalGain.signal", NOT_A_SIGNAL},
		{throttled.is_unknown, "guards.maxThrottledShare.signal", NOT_A_SIGNAL},
		{forecast.asks_nothing, "forecast.signal", ASKS_NOTHING},
		{panic.asks_nothing, "panic.signal", ASKS_NOTHING},
		{!any_asks(p), "signals", "only inform guards and formulas, and none asks for replicas: add one with a target or watermarks"},
		{throttled.is_formula, "guards.maxThrottledShare.signal", IS_A_FORMULA},
		{forecast.is_formula, "forecast.signal", IS_A_FORMULA},
		{find_named(p, o->set, o->demand).is_formula, "objective.demand", IS_A_FORMULA},
		{find_named(p, o->set, o->backlog).is_formula, "objective.backlog", IS_A_FORMULA},
		{find_named(p, o->set, o->utilization).is_formula, "objective.utilization", IS_A_FORMULA},
		{find_named(p, o->set, o->measured).is_formula, "objective.measured", IS_A_FORMULA},
		{!o->set && p->startup.given && p->scale_down.select != SELECT_DISABLED && delay_of_scale_down(p) < p->startup.start_ms, "startup.seconds", "is longer than anything that delays a scale-down: raise behavior.scaleDown.stabilizationWindowSeconds (or cooldown.down, sustain.down) to at least this"},
		{forecast.is_unknown, "forecast.signal", NOT_A_SIGNAL},
		{forecast.is_of_pods, "forecast.signal", "has a target of type Pods, which cannot be forecast: use a total with type AverageValue"},
		{f->set && f->model == FORECAST_HOLT_WINTERS && f->season_ms / p->interval_ms < FORECAST_SLOTS_MIN, "forecast.season", "must hold at least 4 intervals: lengthen it or shorten interval"},
		{f->set && f->model == FORECAST_LINEAR && f->window_ms / p->interval_ms < FORECAST_SLOTS_MIN, "forecast.window", "must hold at least 4 intervals: lengthen it or shorten interval"},
		{panic.is_unknown, "panic.signal", NOT_A_SIGNAL},
		{p->panic.set && !panic.is_unknown && !panic.has_average, "panic.signal", "has no window with aggregate Avg, the stable window: add it, as in window: {duration: 60s}"},
	};
	// clang-format on
	fault_add_broken(l, rules, COUNT_OF(rules));
}

static void check_spec(const void *value, struct fault_list *l)
{
	const struct policy *p = value;
	check_bounds(p, l);
	check_windows(p, l);
	check_schedules(p, l);
	check_idle(p, l);
	check_fields(p, l);
	policy_schema_check_objective(p, l);
	policy_schema_check_variants(value, l);
	policy_schema_check_fleet(value, l);
	for (size_t i = 0; i < p->n_signals; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(p->signals[i].name, p->signals[k].name) == 0) {
				fault_add(l, "signals", (int32_t)i,
				          "has the name of an earlier signal: use unique names");
				break;
			}
}

// clang-format off
static const struct schema_field spec_fields[] = {
	{ROW("scaleTargetRef", OBJECT), IN_PARENT,                                               OPTIONAL,         CHILD(target_ref),                                                          DOC("What is scaled: anything with a scale subresource or a path to its replicas, in the namespace of the policy. Exactly one of scaleTargetRef, scaleTargets and variants is required.")},
	{ROW("scaleTargets", OBJECT),   FIELD_SET(struct policy_document, fleet, fleet.set),     OPTIONAL,         CHILD(policy_schema_fleet),                                                 DOC("Scale many objects by one policy: each by its own series of every signal, with a state of its own. See docs/fleets.md.")},
	{ROW("variants", LIST),         FIELD_LIST(struct policy_document, variants.items, variants.n), OPTIONAL,      ITEMS(1, VARIANTS_MAX), KEY("name"), CHILD(policy_schema_variant),          DOC("Several targets that serve the same requests on different GPUs and share one decision, in units of capacity; see docs/variants.md.")},
	{ROW("switchCost", QUANTITY),   FIELD(struct policy_document, variants.switch_cost), DEFAULT("0"),  RANGE(0, VARIANT_PRICE_MAX),                                                DOC("With variants: what it costs to start one replica, in the currency of the prices. Replicas move to a cheaper variant only when they save more than that per hour.")},
	{ROW("minReplicas", INT32),     FIELD(struct policy, min_replicas),                      DEFAULT("1"),     RANGE(0, POLICY_REPLICAS_MAX), TUNE(LOG, 1, 64),                            DOC("Lower bound. It takes precedence over every signal: fewer replicas go up to it at once, even without data.")},
	{ROW("maxReplicas", INT32),     FIELD(struct policy, max_replicas),                      REQUIRED,         RANGE(1, POLICY_REPLICAS_MAX),                                              DOC("Upper bound. It takes precedence over every signal: more replicas come down to it at once, even without data.")},
	{ROW("interval", DURATION_MS),  FIELD(struct policy, interval_ms),                       DEFAULT("15s"),   RANGE(0.1 * SECOND_MS, HOUR_MS),                                            DOC("Time between two decisions.")},
	{ROW("replicaMultiple", INT32), FIELD(struct policy, replica_multiple),                  DEFAULT("1"),     RANGE(1, POLICY_REPLICAS_MAX),                                              DOC("Replicas come in multiples of this (gangs, nodes of one model). A changed proposal is rounded up to the next multiple; a scale-down never ends above the present scale, nothing ends above maxReplicas.")},
	{ROW("dryRun", BOOL),           FIELD(struct policy, dry_run),                           DEFAULT("false"),                                                                             DOC("Decide and report as usual, but do not scale the target. The annotation " POLICY_ANNOTATION_DRY_RUN ": \"true\" does the same.")},
	{ROW("paused", BOOL),           FIELD(struct policy, paused),                            DEFAULT("false"),                                                                             DOC("Keep the present scale. The annotation " POLICY_ANNOTATION_PAUSED ": \"true\" does the same.")},
	{ROW("signals", LIST),          FIELD_LIST(struct policy, signals, n_signals),           REQUIRED,         ITEMS(1, POLICY_SIGNALS_MAX), KEY("name"), CHILD(policy_schema_signal),     DOC("What the scale follows: one query or formula each, with a target or watermarks.")},
	{ROW("combine", STRING),        FIELD(struct policy, combine_text),                      DEFAULT("Max"),                                                                               DOC("How the proposals of several signals become one: Max takes the largest, Min the smallest. While a signal has no usable data, the others can scale up but not down. Or a formula over signal names, which stand for their proposals: max(sm_active, queue ?? 0); see docs/algorithm.md.")},
	{ROW("behavior", OBJECT),       IN_PARENT,                                               OPTIONAL,         CHILD(policy_schema_behavior),                                              DOC("Stabilization windows and rate limits, field for field those of the HorizontalPodAutoscaler (autoscaling/v2).")},
	{ROW("cooldown", OBJECT),       FIELD(struct policy, cooldown),                          OPTIONAL,         CHILD(policy_schema_durations),                                             DOC("No scale-up (up) or scale-down (down) for this long after the last scale in either direction.")},
	{ROW("idle", OBJECT),           FIELD_SET(struct policy, idle, idle.set),                OPTIONAL,         CHILD(policy_schema_idle),                                                  DOC("Scale to fewer than minReplicas, or to zero, after a time without activity, and back at once.")},
	{ROW("schedules", LIST),        FIELD_LIST(struct policy, schedules, n_schedules),       OPTIONAL,         ITEMS(0, POLICY_SCHEDULES_MAX), KEY("name"), CHILD(policy_schema_schedule), DOC("Different bounds during windows of time. Of several open windows the one that opened last is in force; of windows that opened together, the last in the list. The end of a lower bound is stabilized by behavior.scaleDown.")},
	{ROW("forecast", OBJECT),       FIELD_SET(struct policy, forecast, forecast.set),        OPTIONAL,         CHILD(policy_schema_forecast),                                              DOC("Scale ahead of the load: to what its signal would ask for when replicas requested now are ready.")},
	{ROW("panic", OBJECT),          FIELD_SET(struct policy, panic, panic.set),              OPTIONAL,         CHILD(policy_schema_panic),                                                 DOC("Use a short window during a burst, and do not scale down until it has passed (Knative's panic mode).")},
	{ROW("objective", OBJECT),      FIELD_SET(struct policy, objective, objective.set),      OPTIONAL,         CHILD(policy_schema_objective),                                             DOC("State the goal instead of a threshold: how much of the work may wait, and how long. The controller replays the demand of the past against many rules and follows the cheapest one that would have met the goal; see docs/objective.md.")},
	{ROW("fallback", OBJECT),       FIELD_SET(struct policy, fallback, fallback.set),        OPTIONAL,         CHILD(policy_schema_fallback),                                              DOC("Replicas to use when the signals have been missing for long. Until then, and without it, the scale is held.")},
	{ROW("startup", OBJECT),        FIELD_SET(struct policy, startup, startup.set),          OPTIONAL,         CHILD(policy_schema_startup),                                               DOC("Count replicas requested less than the start-up time ago as capacity, so that a signal does not request them again. `startup: {}` learns that time from the pods.")},
	{ROW("guards", OBJECT),         FIELD_SET(struct policy, guards, guards.set),            OPTIONAL,         CHILD(policy_schema_guards),                                                DOC("States of the target in which scaling is held or limited. minReplicas and maxReplicas take precedence.")},
	{ROW("capacity", OBJECT),       FIELD(struct policy, capacity),                          OPTIONAL,         CHILD(policy_schema_capacity),                                              DOC("What to order when the cluster has no room for it; see docs/capacity.md. The controller needs the permission to read nodes and pods; without it, nothing is limited.")},
	{ROW("gpus", OBJECT),           FIELD_SET(struct policy, gpus, gpus.set),                OPTIONAL,         CHILD(policy_schema_gpus),                                                  DOC("What one replica uses. Only for reports of cost and GPU time; no decision depends on it.")},
	{ROW("restoreReplicas", INT32), FIELD_SET(struct policy, restore_replicas, restore_set), OPTIONAL,         RANGE(0, POLICY_REPLICAS_MAX),                                              DOC("Scale of the target after the policy is deleted from the cluster. Without it, or when no controller runs at that time, the scale does not change.")},
};
static const struct schema_rule spec_rules[] = {
	{"self.minReplicas <= self.maxReplicas", "minReplicas is larger than maxReplicas: lower it or raise maxReplicas"},
	{"(has(self.scaleTargetRef) ? 1 : 0) + (has(self.scaleTargets) ? 1 : 0) + (has(self.variants) ? 1 : 0) == 1", "needs exactly one of scaleTargetRef, scaleTargets and variants"},
	{"self.maxReplicas / self.replicaMultiple * self.replicaMultiple >= (self.minReplicas > 1 ? self.minReplicas : 1)", "replicaMultiple has no multiple between minReplicas and maxReplicas: raise maxReplicas or lower it"},
	{"self.minReplicas > 0 || has(self.idle) || has(self.objective)", "minReplicas 0 needs idle, which says when to scale to zero and which signal activates the target, or an objective, whose record shows it"},
	{"!has(self.idle) || !has(self.idle.activation.signal) || self.signals.exists(s, s.name == self.idle.activation.signal)", "idle.activation.signal must be the name of one of the signals"},
	{"!has(self.idle) || !has(self.idle.activation.anyOf) || self.idle.activation.anyOf.all(a, self.signals.exists(s, s.name == a.signal))", "idle.activation.anyOf must have names of the signals"},
	{"!has(self.idle) || self.idle.replicas < (self.minReplicas > 1 ? self.minReplicas : 1)", "idle.replicas must be smaller than minReplicas (0 with minReplicas 0 or 1)"},
	{"!has(self.forecast) || self.signals.exists(s, s.name == self.forecast.signal)", "forecast.signal must be the name of one of the signals"},
	{"!has(self.panic) || self.signals.exists(s, s.name == self.panic.signal && has(s.window) && s.window.aggregate == 'Avg')", "panic.signal must be the name of a signal with a window with aggregate Avg, the stable window"},
	{"self.signals.all(s, (has(s.target) || has(s.watermarks)) != (has(self.objective) && (s.name == self.objective.demand || s.name == self.objective.backlog)) || (has(self.guards) && ((has(self.guards.minMarginalGain) && s.name == self.guards.minMarginalGain.signal) || (has(self.guards.maxThrottledShare) && s.name == self.guards.maxThrottledShare.signal))) || (has(self.objective) && ((has(self.objective.utilization) && s.name == self.objective.utilization) || (has(self.objective.measured) && s.name == self.objective.measured))) || (has(s.query) && self.signals.exists(f, has(f.formula))))", "every signal needs target or watermarks, except the signals of the objective, which take neither, and those of guards and formulas"},
	{"has(self.objective) || self.signals.exists(s, has(s.target) || has(s.watermarks))", "the signals only inform guards and formulas, and none asks for replicas: add one with a target or watermarks"},
	{"!has(self.guards) || !has(self.guards.minMarginalGain) || self.signals.exists(s, s.name == self.guards.minMarginalGain.signal)", "guards.minMarginalGain.signal must be the name of one of the signals"},
	{"!has(self.guards) || !has(self.guards.maxThrottledShare) || self.signals.exists(s, s.name == self.guards.maxThrottledShare.signal)", "guards.maxThrottledShare.signal must be the name of one of the signals"},
	{"!has(self.objective) || (self.signals.exists(s, s.name == self.objective.demand) && self.signals.exists(s, s.name == self.objective.backlog))", "objective.demand and objective.backlog must be names of signals"},
	{"!has(self.objective) || !has(self.objective.utilization) || self.signals.exists(s, s.name == self.objective.utilization)", "objective.utilization must be the name of one of the signals"},
	{"!has(self.objective) || !has(self.objective.measured) || self.signals.exists(s, s.name == self.objective.measured)", "objective.measured must be the name of one of the signals"},
	{"!has(self.objective) || has(self.startup)", "objective needs startup: add startup: {seconds: N}, or startup: {} to learn the time from the pods"},
	{"!has(self.fallback) || !has(self.fallback.replicas) || (self.fallback.replicas <= self.maxReplicas && self.fallback.replicas >= self.minReplicas)", "fallback.replicas must be between minReplicas and maxReplicas"},
	{"!has(self.guards) || !has(self.guards.maxStep) || self.guards.maxStep >= self.replicaMultiple", "guards.maxStep is smaller than replicaMultiple, so that nothing could ever change: raise it"},
};
static const struct schema spec = {SCHEMA("GPUAutoscaler.spec", struct policy_document, spec_fields), VALIDATE(check_spec), .validate_plain = check_bounds, RULES(spec_rules), DOC("What is scaled, within which bounds, by which signals, and how fast.")};
// clang-format on

// ---- root ----

static const char *const api_versions[] = {POLICY_API_VERSION, NULL};
static const char *const kinds[] = {POLICY_KIND, NULL};

// clang-format off
static const struct schema_field root_fields[] = {
	{ROW("apiVersion", ENUM), FIELD(struct policy, api_version), REQUIRED, ONE_OF(api_versions),          DOC("Version of this format.")},
	{ROW("kind", ENUM),       FIELD(struct policy, kind),        REQUIRED, ONE_OF(kinds),                 DOC("What this document is.")},
	{ROW("metadata", OBJECT), IN_PARENT,                         REQUIRED, CHILD(policy_schema_metadata), DOC("Name, namespace, annotations and labels.")},
	{ROW("spec", OBJECT),     IN_PARENT,                         REQUIRED, CHILD(spec),                   DOC("What is scaled, within which bounds, by which signals, and how fast.")},
};
static const struct schema root = {SCHEMA(POLICY_KIND, struct policy_document, root_fields), .ignored = policy_schema_served, DOC("Scales one workload by Prometheus queries.")};
// clang-format on

const struct schema *policy_schema(void)
{
	return &root;
}
