// SPDX-License-Identifier: Apache-2.0
// Root and spec of a GPUAutoscaler.
#include "policies/policy_schema.h"

#include <stdbool.h>
#include <string.h>

#include "policies/number.h"
#include "policies/policy_schema_private.h"
#include "policies/schedule.h"

// ---- scaleTargetRef ----

static const struct schema_field target_ref_fields[] = {
        {.name = "apiVersion",
         .type = SCHEMA_STRING,
         .doc = "API group and version of the scaled object.",
         FIELD(struct policy, target_api_version),
         .default_text = "apps/v1",
         .min = 1,
         .max = 253},
        {.name = "kind",
         .type = SCHEMA_STRING,
         .doc = "Kind of the scaled object: Deployment, StatefulSet, LeaderWorkerSet or anything else with a scale "
                "subresource.",
         FIELD(struct policy, target_kind),
         .default_text = "Deployment",
         .min = 1,
         .max = 63},
        {.name = "name",
         .type = SCHEMA_STRING,
         .doc = "Name of the scaled object, in the namespace of the policy.",
         FIELD(struct policy, target_name),
         .required = true,
         .min = 1,
         .max = 253},
};

static const struct schema target_ref = {
        .name = "GPUAutoscaler.spec.scaleTargetRef",
        .doc = "What is scaled.",
        .struct_size = sizeof(struct policy),
        .fields = target_ref_fields,
        .n_fields = COUNT_OF(target_ref_fields),
};

// ---- spec ----

static const struct schema_field spec_fields[] = {
        {.name = "scaleTargetRef",
         .type = SCHEMA_OBJECT,
         .doc = "What is scaled: anything with a scale subresource, in the namespace of the policy.",
         .set_offset = SCHEMA_NO_OFFSET,
         .required = true,
         .child = &target_ref},
        {.name = "minReplicas",
         .type = SCHEMA_INT32,
         .doc = "Lower bound. It wins over every signal: fewer replicas go up to it at once, even without data.",
         FIELD(struct policy, min_replicas),
         .default_text = "1",
         .min = 0,
         .max = POLICY_REPLICAS_MAX},
        {.name = "maxReplicas",
         .type = SCHEMA_INT32,
         .doc = "Upper bound. It wins over every signal: more replicas come down to it at once, even without data.",
         FIELD(struct policy, max_replicas),
         .required = true,
         .min = 1,
         .max = POLICY_REPLICAS_MAX},
        {.name = "interval",
         .type = SCHEMA_DURATION_MS,
         .doc = "Time between two decisions.",
         FIELD(struct policy, interval_ms),
         .default_text = "15s",
         .min = 0.1 * SECOND_MS,
         .max = HOUR_MS},
        {.name = "replicaMultiple",
         .type = SCHEMA_INT32,
         .doc = "Replicas come in multiples of this (gangs, nodes of one model). A changed proposal is rounded up to "
                "the next multiple; a scale-down never ends above the present scale, nothing ends above maxReplicas.",
         FIELD(struct policy, replica_multiple),
         .default_text = "1",
         .min = 1,
         .max = POLICY_REPLICAS_MAX},
        {.name = "dryRun",
         .type = SCHEMA_BOOL,
         .doc = "Decide and report as usual, write nothing. The annotation " POLICY_ANNOTATION_DRY_RUN
                ": \"true\" does the same.",
         FIELD(struct policy, dry_run),
         .default_text = "false"},
        {.name = "paused",
         .type = SCHEMA_BOOL,
         .doc = "Keep the present scale whatever happens. The annotation " POLICY_ANNOTATION_PAUSED
                ": \"true\" does the same.",
         FIELD(struct policy, paused),
         .default_text = "false"},
        {.name = "signals",
         .type = SCHEMA_LIST,
         .doc = "What the scale follows: one query each, with a target or watermarks.",
         FIELD_LIST(struct policy, signals, n_signals),
         .required = true,
         .min = 1,
         .max_items = POLICY_SIGNALS_MAX,
         .list_key = "name",
         .child = &policy_schema_signal},
        {.name = "combine",
         .type = SCHEMA_STRING,
         .doc = "How the proposals of several signals become one: Max takes the largest, Min the smallest. While a "
                "signal has no usable data, the others can scale up but not down. Or a formula "
                "over signal names, which stand for their proposals: max(sm_active, queue ?? 0); see "
                "docs/algorithm.md.",
         FIELD(struct policy, combine_text),
         .default_text = "Max"},
        {.name = "behavior",
         .type = SCHEMA_OBJECT,
         .doc = "Stabilization windows and rate limits, field for field those of the HorizontalPodAutoscaler "
                "(autoscaling/v2).",
         .set_offset = SCHEMA_NO_OFFSET,
         .child = &policy_schema_behavior},
        {.name = "cooldown",
         .type = SCHEMA_OBJECT,
         .doc = "No scale-up (up) or scale-down (down) for this long after the last scale in either direction.",
         FIELD(struct policy, cooldown),
         .child = &policy_schema_durations},
        {.name = "idle",
         .type = SCHEMA_OBJECT,
         .doc = "Scale to fewer than minReplicas, or to zero, after a time without activity, and back at once.",
         FIELD_SET(struct policy, idle, idle.set),
         .child = &policy_schema_idle},
        {.name = "schedules",
         .type = SCHEMA_LIST,
         .doc = "Other bounds in windows of time. Of several open windows the one that opened last wins, of those the "
                "later in the list.",
         FIELD_LIST(struct policy, schedules, n_schedules),
         .max_items = POLICY_SCHEDULES_MAX,
         .list_key = "name",
         .child = &policy_schema_schedule},
        {.name = "forecast",
         .type = SCHEMA_OBJECT,
         .doc = "Scale ahead of the load: what its signal would ask for when replicas ordered now are ready.",
         FIELD_SET(struct policy, forecast, forecast.set),
         .child = &policy_schema_forecast},
        {.name = "panic",
         .type = SCHEMA_OBJECT,
         .doc = "Go by a short window in a burst, and take nothing away until it has passed (Knative's panic mode).",
         FIELD_SET(struct policy, panic, panic.set),
         .child = &policy_schema_panic},
        {.name = "fallback",
         .type = SCHEMA_OBJECT,
         .doc = "What to go by when the signals cannot be read for long. Until then, and without it, the scale is "
                "held.",
         FIELD_SET(struct policy, fallback, fallback.set),
         .child = &policy_schema_fallback},
        {.name = "startup",
         .type = SCHEMA_OBJECT,
         .doc = "Count replicas that were ordered less than the start-up time ago as capacity to come, so that a "
                "signal does not order them again. `startup: {}` learns that time from the pods.",
         FIELD_SET(struct policy, startup, startup.set),
         .child = &policy_schema_startup},
        {.name = "guards",
         .type = SCHEMA_OBJECT,
         .doc = "States of the target in which it is not scaled, or not far. minReplicas and maxReplicas win over "
                "them.",
         FIELD_SET(struct policy, guards, guards.set),
         .child = &policy_schema_guards},
        {.name = "restoreReplicas",
         .type = SCHEMA_INT32,
         .doc = "Where the target is scaled to when the policy is deleted from the cluster. Without it, or "
                "when no controller is there to see it go, the scale stays as it is.",
         FIELD_SET(struct policy, restore_replicas, restore_set),
         .min = 0,
         .max = POLICY_REPLICAS_MAX},
};

static const char *const combine_names[] = {[COMBINE_MAX] = "Max", [COMBINE_MIN] = "Min"}; // all else is a formula
_Static_assert(COUNT_OF(combine_names) == COMBINE_FORMULA, "one name per way to combine but for the formula");

static int combine_of(const char *text)
{
	for (int i = 0; i < COMBINE_FORMULA; i++)
		if (strcmp(text, combine_names[i]) == 0)
			return i;
	return COMBINE_FORMULA;
}

static void check_bounds(const struct policy *p, struct fault_list *l)
{
	if (p->min_replicas > p->max_replicas)
		fault_add(l, "minReplicas", -1, "is larger than maxReplicas: lower it or raise maxReplicas");
	else if (multiple_down(p->max_replicas, p->replica_multiple) < i32_max(p->min_replicas, 1))
		fault_add(l, "replicaMultiple", -1,
		          "has no multiple between minReplicas and maxReplicas: raise maxReplicas or lower it");
	if (p->min_replicas == 0 && !p->idle.set)
		fault_add(l, "minReplicas", -1, "0 needs idle, which says when to go there and what to wake up by");
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

static void check_guards(const struct policy *p, struct fault_list *l)
{
	if (p->guards.max_step > 0 && p->guards.max_step < p->replica_multiple)
		fault_add(l, "guards.maxStep", -1,
		          "is smaller than replicaMultiple, so that nothing could ever change: raise it");
}

static int signal_index(const struct policy *p, const char *name)
{
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].name && strcmp(p->signals[i].name, name) == 0)
			return (int)i;
	return -1;
}

static void check_idle(const struct policy *p, struct fault_list *l)
{
	if (!p->idle.set)
		return;
	int signal = signal_index(p, p->idle.activation.signal);
	if (signal < 0)
		fault_add(l, "idle.activation.signal", -1, "must be the name of one of the signals");
	else if (p->signals[signal].target.set && p->signals[signal].target.type == TARGET_PODS)
		fault_add(l, "idle.activation.signal", -1,
		          "has a target of type Pods, which says nothing without pods: use another signal");
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
	if (s->min_set && s->min_replicas == 0 && !p->idle.set)
		return "minReplicas 0 needs idle; replicas: 0 scales to zero for the time of the window";
	return NULL;
}

static void check_schedules(const struct policy *p, struct fault_list *l)
{
	for (size_t i = 0; i < p->n_schedules; i++) {
		const char *fault = schedule_bounds_fault(p, &p->schedules[i]);
		fault = fault ? fault : schedule_fault(p, i);
		for (size_t k = 0; k < i && !fault; k++)
			if (strcmp(p->schedules[i].name, p->schedules[k].name) == 0)
				fault = "has the name of a schedule before it: give each its own";
		if (fault)
			fault_add(l, "schedules", (int32_t)i, fault);
	}
}

static void check_fallback(const struct policy *p, struct fault_list *l)
{
	if (p->fallback.set && p->fallback.behavior == FALLBACK_SCALING_MODIFIERS &&
	    (!p->combine_text || combine_of(p->combine_text) != COMBINE_FORMULA))
		fault_add(l, "fallback.behavior", -1,
		          "ScalingModifiers needs a formula in combine, with a default for what cannot be read: max(a, "
		          "b ?? 2)");
	if (p->fallback.replicas_set && p->fallback.replicas > p->max_replicas)
		fault_add(l, "fallback.replicas", -1, "is larger than maxReplicas: lower it or raise maxReplicas");
	else if (p->fallback.replicas_set && p->fallback.replicas < p->min_replicas)
		fault_add(l, "fallback.replicas", -1, "is smaller than minReplicas, which wins: raise it");
}

// Replicas that go faster than they come: every second wave of load finds none.
static void check_startup(const struct policy *p, struct fault_list *l)
{
	int64_t delay_ms = i64_max(p->scale_down.stabilization_window_ms, p->cooldown.down_ms);
	for (size_t i = 0; i < p->n_signals; i++)
		delay_ms = i64_max(delay_ms, p->signals[i].sustain.down_ms);
	if (p->startup.given && p->scale_down.select != SELECT_DISABLED && delay_ms < p->startup.start_ms)
		fault_add(l, "startup.seconds", -1,
		          "is longer than anything that delays a scale-down: raise "
		          "behavior.scaleDown.stabilizationWindowSeconds (or cooldown.down, sustain.down) to at least "
		          "this");
}

static size_t check_spec(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct policy *p = value;
	struct fault_list l = {.faults = ret_faults, .max = max};
	check_bounds(p, &l);
	check_windows(p, &l);
	check_schedules(p, &l);
	check_idle(p, &l);
	check_fallback(p, &l);
	check_guards(p, &l);
	check_startup(p, &l);
	policy_schema_check_forecast(p, &l);
	policy_schema_check_panic(p, &l);
	for (size_t i = 0; i < p->n_signals; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(p->signals[i].name, p->signals[k].name) == 0) {
				fault_add(&l, "signals", (int32_t)i,
				          "has the name of a signal before it: give each its own");
				break;
			}
	return l.n;
}

static size_t check_plain_spec(const void *value, struct schema_fault *ret_faults, size_t max)
{
	struct fault_list l = {.faults = ret_faults, .max = max};
	check_bounds(value, &l);
	return l.n;
}

static const struct schema_rule spec_rules[] = {
        {"self.minReplicas <= self.maxReplicas",
         "minReplicas is larger than maxReplicas: lower it or raise maxReplicas"},
        {"self.maxReplicas / self.replicaMultiple * self.replicaMultiple >= (self.minReplicas > 1 ? self.minReplicas : "
         "1)",
         "replicaMultiple has no multiple between minReplicas and maxReplicas: raise maxReplicas or lower it"},
        {"self.minReplicas > 0 || has(self.idle)",
         "minReplicas 0 needs idle, which says when to go there and what to wake up by"},
        {"!has(self.idle) || self.signals.exists(s, s.name == self.idle.activation.signal)",
         "idle.activation.signal must be the name of one of the signals"},
        {"!has(self.idle) || self.idle.replicas < (self.minReplicas > 1 ? self.minReplicas : 1)",
         "idle.replicas must be smaller than minReplicas (0 with minReplicas 0 or 1)"},
        {"!has(self.forecast) || self.signals.exists(s, s.name == self.forecast.signal)",
         "forecast.signal must be the name of one of the signals"},
        {"!has(self.panic) || self.signals.exists(s, s.name == self.panic.signal && has(s.window) && "
         "s.window.aggregate == 'Avg')",
         "panic.signal must be the name of a signal with a window with aggregate Avg, the stable window"},
        {"!has(self.fallback) || !has(self.fallback.replicas) || (self.fallback.replicas <= self.maxReplicas && "
         "self.fallback.replicas >= self.minReplicas)",
         "fallback.replicas must be between minReplicas and maxReplicas"},
        {"!has(self.guards) || !has(self.guards.maxStep) || self.guards.maxStep >= self.replicaMultiple",
         "guards.maxStep is smaller than replicaMultiple, so that nothing could ever change: raise it"},
};

static const struct schema spec = {
        .name = "GPUAutoscaler.spec",
        .doc = "What is scaled, within which bounds, by which signals, and how fast.",
        .struct_size = sizeof(struct policy),
        .fields = spec_fields,
        .n_fields = COUNT_OF(spec_fields),
        .validate = check_spec,
        .validate_plain = check_plain_spec,
        .rules = spec_rules,
        .n_rules = COUNT_OF(spec_rules),
};

// ---- root ----

static const char *const api_versions[] = {POLICY_API_VERSION, NULL};
static const char *const kinds[] = {POLICY_KIND, NULL};

static const struct schema_field root_fields[] = {
        {.name = "apiVersion",
         .type = SCHEMA_ENUM,
         .doc = "Version of this format.",
         FIELD(struct policy, api_version),
         .required = true,
         .enum_names = api_versions},
        {.name = "kind",
         .type = SCHEMA_ENUM,
         .doc = "What this document is.",
         FIELD(struct policy, kind),
         .required = true,
         .enum_names = kinds},
        {.name = "metadata",
         .type = SCHEMA_OBJECT,
         .doc = "Name, namespace, annotations and labels.",
         .set_offset = SCHEMA_NO_OFFSET,
         .required = true,
         .child = &policy_schema_metadata},
        {.name = "spec",
         .type = SCHEMA_OBJECT,
         .doc = "What is scaled, within which bounds, by which signals, and how fast.",
         .set_offset = SCHEMA_NO_OFFSET,
         .required = true,
         .child = &spec},
};

static const struct schema root = {
        .name = POLICY_KIND,
        .doc = "Scales one workload by Prometheus queries.",
        .struct_size = sizeof(struct policy),
        .fields = root_fields,
        .n_fields = COUNT_OF(root_fields),
};

const struct schema *policy_schema(void)
{
	return &root;
}

void policy_settle(struct policy *policy)
{
	policy->combine = policy->combine_text ? combine_of(policy->combine_text) : COMBINE_MAX;
	int idle = policy->idle.set && policy->idle.activation.signal
	                   ? signal_index(policy, policy->idle.activation.signal)
	                   : -1;
	for (size_t i = 0; i < policy->n_schedules; i++) {
		struct policy_schedule *s = &policy->schedules[i];
		if (!s->start_text || !s->end_text || cron_parse(&s->start, s->start_text) ||
		    cron_parse(&s->end, s->end_text))
			s->start = s->end = (struct cron){0}; // refused already
	}
	policy->idle.signal = idle < 0 ? 0 : (size_t)idle;
	int forecast =
	        policy->forecast.set && policy->forecast.signal ? signal_index(policy, policy->forecast.signal) : -1;
	int panic = policy->panic.set && policy->panic.signal ? signal_index(policy, policy->panic.signal) : -1;
	policy->panic.signal_index = panic < 0 ? 0 : (size_t)panic;
	policy->forecast.signal_index = forecast < 0 ? 0 : (size_t)forecast;
	policy_schema_settle_metadata(policy);
}
