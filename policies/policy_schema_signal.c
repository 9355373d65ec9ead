// SPDX-License-Identifier: Apache-2.0
// spec.signals[] of a GPUAutoscaler.
#include <stdbool.h>

#include "policies/policy.h"
#include "policies/policy_schema_private.h"

// ---- target ----

static const char *const target_types[] = {
        [TARGET_VALUE] = "Value",    [TARGET_AVERAGE_VALUE] = "AverageValue",
        [TARGET_PODS] = "Pods",      [TARGET_REPLICAS] = "Replicas",
        [TARGET_TYPE__COUNT] = NULL,
};
_Static_assert(COUNT_OF(target_types) == TARGET_TYPE__COUNT + 1, "one name per target type");

static const struct schema_field target_fields[] = {
        {.name = "type",
         .type = SCHEMA_ENUM,
         .doc = "Value: replicas grow with value / target of the ready ones. AverageValue: the value is a total, the "
                "target what one replica may carry. Replicas: the value is the number of replicas itself. Pods: one "
                "series per pod (label pod or exported_pod), the target what one pod should have; pods without a "
                "sample are guessed as the HPA does, on the safe side.",
         FIELD(struct policy_target, type),
         .default_text = "Value",
         .enum_names = target_types},
        {.name = "value",
         .type = SCHEMA_QUANTITY,
         .doc = "The value to keep to, larger than 0. Not for type Replicas.",
         FIELD_SET(struct policy_target, value, value_set),
         ANY_SIZE},
        {.name = "tolerance",
         .type = SCHEMA_QUANTITY,
         .doc = "Share by which the value may differ from the target, both ways and ends included, before anything "
                "happens. behavior.scaleUp.tolerance and behavior.scaleDown.tolerance override it.",
         FIELD(struct policy_target, tolerance_ratio),
         .default_text = "0.1",
         .min = 0,
         .max = 10},
};

static size_t check_target(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct policy_target *t = value;
	struct fault_list l = {.faults = ret_faults, .max = max};
	if (t->type == TARGET_REPLICAS && t->value_set)
		fault_add(&l, "value", -1, "has no meaning with type Replicas: remove it");
	else if (t->type != TARGET_REPLICAS && !t->value_set)
		fault_add(&l, "value", -1, "required, but missing: add it (quantity)");
	else if (t->type != TARGET_REPLICAS && !(t->value > 0))
		fault_add(&l, "value", -1, "must be larger than 0");
	return l.n;
}

static const struct schema_rule target_rules[] = {
        {"self.type == 'Replicas' ? !has(self.value) : has(self.value)",
         "value is required, but for type Replicas, where it has no meaning"},
};

static const struct schema target = {
        .name = "GPUAutoscaler.spec.signals[].target",
        .doc = "Proportional control, with the arithmetic of the HorizontalPodAutoscaler.",
        .struct_size = sizeof(struct policy_target),
        .fields = target_fields,
        .n_fields = COUNT_OF(target_fields),
        .validate = check_target,
        .rules = target_rules,
        .n_rules = COUNT_OF(target_rules),
};

// ---- watermarks ----

static const char *const algorithms[] = {
        [WATERMARK_AVERAGE] = "Average",
        [WATERMARK_ABSOLUTE] = "Absolute",
        [WATERMARK_ALGORITHM__COUNT] = NULL,
};
_Static_assert(COUNT_OF(algorithms) == WATERMARK_ALGORITHM__COUNT + 1, "one name per watermark algorithm");

static const struct schema_field watermark_fields[] = {
        {.name = "high",
         .type = SCHEMA_QUANTITY,
         .doc = "Above this, widened by the tolerance, replicas are added.",
         FIELD(struct policy_watermarks, high),
         .required = true,
         ANY_SIZE},
        {.name = "low",
         .type = SCHEMA_QUANTITY,
         .doc = "Below this, widened by the tolerance, replicas are removed.",
         FIELD(struct policy_watermarks, low),
         .required = true,
         ANY_SIZE},
        {.name = "tolerance",
         .type = SCHEMA_QUANTITY,
         .doc = "Share by which each mark is widened: high * (1 + tolerance), low * (1 - tolerance).",
         FIELD(struct policy_watermarks, tolerance_ratio),
         .default_text = "0.1",
         .min = 0,
         .max = 1},
        {.name = "algorithm",
         .type = SCHEMA_ENUM,
         .doc = "Absolute: the value itself is held against the marks. Average: the value divided by the ready "
                "replicas is.",
         FIELD(struct policy_watermarks, algorithm),
         .default_text = "Absolute",
         .enum_names = algorithms},
};

static size_t check_watermarks(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct policy_watermarks *w = value;
	struct fault_list l = {.faults = ret_faults, .max = max};
	if (w->low < 0)
		fault_add(&l, "low", -1, "must not be negative");
	if (!(w->high > 0))
		fault_add(&l, "high", -1, "must be larger than 0");
	else if (!(w->low < w->high))
		fault_add(&l, "low", -1, "must be smaller than high");
	return l.n;
}

static const struct schema watermarks = {
        .name = "GPUAutoscaler.spec.signals[].watermarks",
        .doc = "A band in which nothing happens, with the arithmetic of the WatermarkPodAutoscaler.",
        .struct_size = sizeof(struct policy_watermarks),
        .fields = watermark_fields,
        .n_fields = COUNT_OF(watermark_fields),
        .validate = check_watermarks,
};

// ---- window, sustain ----

static const char *const aggregates[] = {
        [WINDOW_LAST] = "Last", [WINDOW_AVG] = "Avg", [WINDOW_MAX] = "Max",
        [WINDOW_MIN] = "Min",   [WINDOW_P50] = "P50", [WINDOW_P90] = "P90",
        [WINDOW_P95] = "P95",   [WINDOW_P99] = "P99", [WINDOW_AGGREGATE__COUNT] = NULL,
};
_Static_assert(COUNT_OF(aggregates) == WINDOW_AGGREGATE__COUNT + 1, "one name per aggregate");

static const struct schema_field window_fields[] = {
        {.name = "duration",
         .type = SCHEMA_DURATION_MS,
         .doc = "How far back it reaches: samples newer than now - duration count.",
         FIELD(struct policy_window, duration_ms),
         .required = true,
         .min = SECOND_MS,
         .max = 7 * DAY_MS},
        {.name = "aggregate",
         .type = SCHEMA_ENUM,
         .doc = "What becomes of the samples. Percentiles interpolate as quantile_over_time does.",
         FIELD(struct policy_window, aggregate),
         .default_text = "Avg",
         .enum_names = aggregates},
        {.name = "minSamples",
         .type = SCHEMA_INT32,
         .doc = "From this many samples on the window is used. Without it, once its history covers the whole "
                "duration (Last: one sample). Until then the scale is held.",
         FIELD(struct policy_window, min_samples),
         .min = 1,
         .max = POLICY_WINDOW_SAMPLES_MAX},
};

static const struct schema window = {
        .name = "GPUAutoscaler.spec.signals[].window",
        .doc = "A sliding window over the samples the query gave, one per interval.",
        .struct_size = sizeof(struct policy_window),
        .fields = window_fields,
        .n_fields = COUNT_OF(window_fields),
};

static const struct schema_field duration_fields[] = {
        {.name = "up",
         .type = SCHEMA_DURATION_MS,
         .doc = "For scaling up.",
         FIELD(struct policy_sustain, up_ms),
         .default_text = "0s",
         .min = 0,
         .max = 7 * DAY_MS},
        {.name = "down",
         .type = SCHEMA_DURATION_MS,
         .doc = "For scaling down.",
         FIELD(struct policy_sustain, down_ms),
         .default_text = "0s",
         .min = 0,
         .max = 7 * DAY_MS},
};

const struct schema policy_schema_durations = {
        .name = "GPUAutoscaler.durations",
        .doc = "One duration for scaling up, one for scaling down.",
        .struct_size = sizeof(struct policy_sustain),
        .fields = duration_fields,
        .n_fields = COUNT_OF(duration_fields),
};

// ---- signal ----

static const char *const on_missing[] = {
        [ON_MISSING_HOLD] = "Hold",
        [ON_MISSING_IGNORE] = "Ignore",
        [ON_MISSING_ZERO] = "Zero",
        [ON_MISSING__COUNT] = NULL,
};
_Static_assert(COUNT_OF(on_missing) == ON_MISSING__COUNT + 1, "one name per way");

static const char *const series_modes[] = {
        [SERIES_SINGLE] = "Single", [SERIES_SUM] = "Sum", [SERIES_MAX] = "Max",
        [SERIES_MIN] = "Min",       [SERIES_AVG] = "Avg", [SERIES_MODE__COUNT] = NULL,
};
_Static_assert(COUNT_OF(series_modes) == SERIES_MODE__COUNT + 1, "one name per series mode");

static const struct schema_field signal_fields[] = {
        {.name = "name",
         .type = SCHEMA_STRING,
         .doc = "Name of the signal, unique in the policy: letters, digits, '_', '-' and '.'.",
         FIELD(struct policy_signal, name),
         .required = true,
         .pattern = "^[A-Za-z0-9_.-]+$",
         .min = 1,
         .max = 63},
        {.name = "query",
         .type = SCHEMA_STRING,
         .doc = "PromQL, asked once per interval. One series unless `series` says how several become one.",
         FIELD(struct policy_signal, query),
         .required = true,
         .min = 1,
         .max = 65536},
        {.name = "source",
         .type = SCHEMA_STRING,
         .doc = "Name of the server that is asked, as --prometheus NAME=URL or a file of kind Sources gives it. "
                "Without it: the default one. A name that is not known fails the signal, which then holds.",
         FIELD(struct policy_signal, source),
         .min = 1,
         .max = 63},
        {.name = "target",
         .type = SCHEMA_OBJECT,
         .doc = "Proportional control towards one value. Exactly one of target and watermarks.",
         FIELD_SET(struct policy_signal, target, target.set),
         .child = &target},
        {.name = "watermarks",
         .type = SCHEMA_OBJECT,
         .doc = "A band in which nothing happens. Exactly one of target and watermarks.",
         FIELD_SET(struct policy_signal, watermarks, watermarks.set),
         .child = &watermarks},
        {.name = "window",
         .type = SCHEMA_OBJECT,
         .doc = "Looks at the samples of some time instead of the last one only.",
         FIELD_SET(struct policy_signal, window, window.set),
         .child = &window},
        {.name = "sustain",
         .type = SCHEMA_OBJECT,
         .doc = "How long the signal must ask for more (up) or fewer (down) replicas without a break before it counts. "
                "Missing data is a break.",
         FIELD(struct policy_signal, sustain),
         .child = &policy_schema_durations},
        {.name = "staleAfter",
         .type = SCHEMA_DURATION_MS,
         .doc = "Samples older than this count as missing.",
         FIELD(struct policy_signal, stale_after_ms),
         .default_text = "60s",
         .min = SECOND_MS,
         .max = DAY_MS},
        {.name = "onMissing",
         .type = SCHEMA_ENUM,
         .doc = "Without usable data: Hold keeps the scale from going down. Ignore leaves the signal out. Zero reads "
                "an answer without series as 0 (a failed query or stale data is never read as 0).",
         FIELD(struct policy_signal, on_missing),
         .default_text = "Hold",
         .enum_names = on_missing},
        {.name = "series",
         .type = SCHEMA_ENUM,
         .doc = "How several series become one. Single holds the scale when there is more than one.",
         FIELD(struct policy_signal, series),
         .default_text = "Single",
         .enum_names = series_modes},
};

static bool is_signal_name(const char *s)
{
	for (; *s; s++) {
		bool alnum = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (*s >= '0' && *s <= '9');
		if (!alnum && *s != '_' && *s != '-' && *s != '.')
			return false;
	}
	return true;
}

static void check_pods(const struct policy_signal *s, struct fault_list *l)
{
	if (s->window.set)
		fault_add(l, "window", -1,
		          "cannot stand beside target type Pods: let the query do it, as in avg_over_time(...[2m])");
	if (s->series != SERIES_SINGLE)
		fault_add(l, "series", -1,
		          "has no meaning with target type Pods, which takes one series per pod: remove it");
	if (s->on_missing == ON_MISSING_ZERO)
		fault_add(l, "onMissing", -1, "Zero has no meaning with target type Pods: use Hold or Ignore");
}

static size_t check_signal(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct policy_signal *s = value;
	struct fault_list l = {.faults = ret_faults, .max = max};
	if (!is_signal_name(s->name))
		fault_add(&l, "name", -1, "must be letters, digits, '_', '-' and '.', as in queue_depth");
	if (s->target.set && s->watermarks.set)
		fault_add(&l, "watermarks", -1, "cannot stand beside target: keep one of them");
	else if (!s->target.set && !s->watermarks.set)
		fault_add(&l, NULL, -1, "needs target or watermarks: add one of them");
	if (s->target.set && s->target.type == TARGET_PODS)
		check_pods(s, &l);
	return l.n;
}

static const struct schema_rule signal_rules[] = {
        {"has(self.target) != has(self.watermarks)", "needs either target or watermarks: keep one of them"},
        {"!has(self.target) || self.target.type != 'Pods' || (!has(self.window) && self.series == 'Single' && "
         "self.onMissing != 'Zero')",
         "window, series and onMissing Zero cannot stand beside target type Pods"},
};

const struct schema policy_schema_signal = {
        .name = "GPUAutoscaler.spec.signals[]",
        .doc = "One query and what its value means.",
        .struct_size = sizeof(struct policy_signal),
        .fields = signal_fields,
        .n_fields = COUNT_OF(signal_fields),
        .validate = check_signal,
        .rules = signal_rules,
        .n_rules = COUNT_OF(signal_rules),
};
