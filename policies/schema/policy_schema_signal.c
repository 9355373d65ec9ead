// SPDX-License-Identifier: Apache-2.0
// spec.signals[] of a GPUAutoscaler.
#include <stdbool.h>
#include <string.h>

#include "policies/engine/policy.h"
#include "policies/schema/policy_schema_private.h"

// ---- target ----

ENUM_NAMES(target_types, TARGET_TYPE__COUNT, [TARGET_VALUE] = "Value", [TARGET_AVERAGE_VALUE] = "AverageValue",
           [TARGET_PODS] = "Pods", [TARGET_REPLICAS] = "Replicas");

static void check_target(const void *value, struct fault_list *l)
{
	const struct policy_target *t = value;
	if (t->type == TARGET_REPLICAS && t->value_set)
		fault_add(l, "value", -1, "has no meaning with type Replicas: remove it");
	else if (t->type != TARGET_REPLICAS && !t->value_set)
		fault_add(l, "value", -1, "required, but missing: add it (quantity)");
	else if (t->type != TARGET_REPLICAS && !(t->value > 0))
		fault_add(l, "value", -1, "must be larger than 0");
}

// clang-format off
static const struct schema_field target_fields[] = {
	{ROW("type", ENUM),          FIELD(struct policy_target, type),                 DEFAULT("Value"), ONE_OF(target_types),               DOC("Value: replicas grow with value / target of the ready ones. AverageValue: the value is a total, the target what one replica may carry. Replicas: the value is the number of replicas itself. Pods: one series per pod (label pod or exported_pod), the target what one pod should have; pods without a sample are estimated conservatively, as in the HPA.")},
	{ROW("value", QUANTITY),     FIELD_SET(struct policy_target, value, value_set), OPTIONAL,         ANY_SIZE, TUNE(FACTOR, 0.25, 4),    DOC("The value to keep to, larger than 0. Not for type Replicas.")},
	{ROW("tolerance", QUANTITY), FIELD(struct policy_target, tolerance_ratio),      DEFAULT("0.1"),   RANGE(0, 10), TUNE(LINEAR, 0, 0.5), DOC("Share by which the value may differ from the target, in both directions and limits included, without a change. behavior.scaleUp.tolerance and behavior.scaleDown.tolerance override it.")},
};
static const struct schema_rule target_rules[] = {
	{"self.type == 'Replicas' ? !has(self.value) : has(self.value)", "value is required, but for type Replicas, where it has no meaning"},
};
static const struct schema target = {SCHEMA("GPUAutoscaler.spec.signals[].target", struct policy_target, target_fields), VALIDATE(check_target), RULES(target_rules), DOC("Proportional control, with the arithmetic of the HorizontalPodAutoscaler.")};
// clang-format on

// ---- watermarks ----

ENUM_NAMES(algorithms, WATERMARK_ALGORITHM__COUNT, [WATERMARK_AVERAGE] = "Average", [WATERMARK_ABSOLUTE] = "Absolute");

static void check_watermarks(const void *value, struct fault_list *l)
{
	const struct policy_watermarks *w = value;
	if (w->low < 0)
		fault_add(l, "low", -1, "must not be negative");
	if (!(w->high > 0))
		fault_add(l, "high", -1, "must be larger than 0");
	else if (!(w->low <= w->high))
		fault_add(l, "low", -1, "must not be larger than high");
}

// clang-format off
static const struct schema_field watermark_fields[] = {
	{ROW("high", QUANTITY),      FIELD(struct policy_watermarks, high),            REQUIRED,            ANY_SIZE, TUNE(FACTOR, 0.25, 4), DOC("Above this, widened by the tolerance, replicas are added.")},
	{ROW("low", QUANTITY),       FIELD(struct policy_watermarks, low),             REQUIRED,            ANY_SIZE, TUNE(FACTOR, 0.25, 4), DOC("Below this, widened by the tolerance, replicas are removed.")},
	{ROW("tolerance", QUANTITY), FIELD(struct policy_watermarks, tolerance_ratio), DEFAULT("0"),        RANGE(0, 1),                     DOC("Share by which each mark is widened: high * (1 + tolerance), low * (1 - tolerance). The WatermarkPodAutoscaler's default is 0.1.")},
	{ROW("algorithm", ENUM),     FIELD(struct policy_watermarks, algorithm),       DEFAULT("Absolute"), ONE_OF(algorithms),              DOC("Absolute: the value itself is compared with the watermarks. Average: the value divided by the ready replicas.")},
};
static const struct schema watermarks = {SCHEMA("GPUAutoscaler.spec.signals[].watermarks", struct policy_watermarks, watermark_fields), VALIDATE(check_watermarks), DOC("A band in which nothing happens, with the arithmetic of the WatermarkPodAutoscaler.")};
// clang-format on

// ---- window, sustain ----

ENUM_NAMES(
        aggregates, WINDOW_AGGREGATE__COUNT, [WINDOW_LAST] = "Last", [WINDOW_AVG] = "Avg", [WINDOW_MAX] = "Max",
        [WINDOW_MIN] = "Min", [WINDOW_P50] = "P50", [WINDOW_P90] = "P90", [WINDOW_P95] = "P95", [WINDOW_P99] = "P99");

// clang-format off
static const struct schema_field window_fields[] = {
	{ROW("duration", DURATION_MS), FIELD(struct policy_window, duration_ms), REQUIRED,       RANGE(SECOND_MS, 7 * DAY_MS), TUNE(LOG, 30 * SECOND_MS, HOUR_MS), DOC("Length of the window: samples newer than now - duration count.")},
	{ROW("aggregate", ENUM),       FIELD(struct policy_window, aggregate),   DEFAULT("Avg"), ONE_OF(aggregates),                                               DOC("How the samples become one value. Percentiles interpolate as quantile_over_time does.")},
	{ROW("minSamples", INT32),     FIELD(struct policy_window, min_samples), OPTIONAL,       RANGE(1, POLICY_WINDOW_SAMPLES_MAX),                              DOC("The window is used from this many samples on. Default: once its history covers the whole duration (Last: one sample). Until then the scale is held.")},
};
static const struct schema window = {SCHEMA("GPUAutoscaler.spec.signals[].window", struct policy_window, window_fields), DOC("A sliding window over the samples of the query, one per interval.")};

static const struct schema_field duration_fields[] = {
	{ROW("up", DURATION_MS),   FIELD(struct policy_sustain, up_ms),   DEFAULT("0s"), RANGE(0, 7 * DAY_MS), TUNE(LINEAR, 0, 300 * SECOND_MS),  DOC("For scaling up.")},
	{ROW("down", DURATION_MS), FIELD(struct policy_sustain, down_ms), DEFAULT("0s"), RANGE(0, 7 * DAY_MS), TUNE(LINEAR, 0, 1800 * SECOND_MS), DOC("For scaling down.")},
};
const struct schema policy_schema_durations = {SCHEMA("GPUAutoscaler.durations", struct policy_sustain, duration_fields), DOC("One duration for scaling up, one for scaling down.")};
// clang-format on

// ---- signal ----

ENUM_NAMES(on_missing,
           ON_MISSING__COUNT, [ON_MISSING_HOLD] = "Hold", [ON_MISSING_IGNORE] = "Ignore", [ON_MISSING_ZERO] = "Zero");

ENUM_NAMES(series_modes, SERIES_MODE__COUNT, [SERIES_SINGLE] = "Single", [SERIES_SUM] = "Sum", [SERIES_MAX] = "Max",
           [SERIES_MIN] = "Min", [SERIES_AVG] = "Avg");

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

// clang-format off
static void check_signal(const void *value, struct fault_list *l)
{
	const struct policy_signal *s = value;
	bool is_formula = s->formula_text, has_pods = s->target.set && s->target.type == TARGET_PODS;
	bool is_zero = s->on_missing == ON_MISSING_ZERO, has_series = s->series != SERIES_SINGLE;
	bool is_pods = has_pods && s->query && !is_formula;
	const struct fault_rule rules[] = {
		{s->name[strspn(s->name, NAME_CHARACTERS)] != '\0', "name", "must be letters, digits, '_', '-' and '.', as in queue_depth"},
		{s->target.set && s->watermarks.set, "watermarks", "cannot be combined with target: keep one of them"},
		{!s->query && !is_formula, "query", "required, but missing: add it (PromQL), or a formula over other signals"},
		{is_formula && s->query, "formula", "cannot be combined with query: keep one of them"},
		{is_formula && (s->window.set || s->source || has_series || is_zero || has_pods), "formula", "cannot be combined with window, source, series, onMissing Zero or target type Pods: set them on the signals that it names"},
		{is_pods && s->window.set, "window", "cannot be combined with target type Pods: let the query do it, as in avg_over_time(...[2m])"},
		{is_pods && has_series, "series", "has no meaning with target type Pods, which takes one series per pod: remove it"},
		{is_pods && is_zero, "onMissing", "Zero has no meaning with target type Pods: use Hold or Ignore"},
	};
	fault_add_broken(l, rules, COUNT_OF(rules));
}

static const struct schema_field signal_fields[] = {
	{ROW("name", STRING),            FIELD(struct policy_signal, name),                           REQUIRED,          RANGE(1, 63), PATTERN("^[A-Za-z0-9_.-]+$"), DOC("Name of the signal, unique in the policy: letters, digits, '_', '-' and '.'.")},
	{ROW("query", STRING),           FIELD(struct policy_signal, query),                          OPTIONAL,          RANGE(1, 65536),                            DOC("PromQL, sent once per interval. It must return one series, unless `series` says how several become one. Exactly one of query and formula.")},
	{ROW("formula", STRING),         FIELD(struct policy_signal, formula_text),                   OPTIONAL,          RANGE(1, FORMULA_BYTES_MAX),                DOC("Computes the value from the values of other signals, after their windows, instead of querying it: names of signals with a query (in backquotes where they contain `-` or `.`), numbers, arithmetic, comparisons, and, or, not, `a ? b : c`, min, max, abs, clamp, ceil, floor, round, int, float, sum([a, b]), mean([a, b]), count([a, b], {# > 1}), any, all, none, one, and `let x = a + b; x * 2`, as in KEDA's scalingModifiers. A signal without usable data is nil: `a ?? 0` supplies a default, `a == nil` tests for it, and a formula that becomes nil leaves this signal without data. Needs target or watermarks; window, series, source, staleAfter, onMissing Zero and target type Pods have no meaning.")},
	{ROW("source", STRING),          FIELD(struct policy_signal, source),                         OPTIONAL,          RANGE(1, 63),                               DOC("Name of the server to query, as in --prometheus NAME=URL or a file of kind Sources. Default: the default server. With an unknown name the signal fails and holds.")},
	{ROW("target", OBJECT),          FIELD_SET(struct policy_signal, target, target.set),         OPTIONAL,          CHILD(target),                              DOC("Proportional control towards one value. Exactly one of target and watermarks; neither for a signal of the objective, or for one that only informs a guard or a formula.")},
	{ROW("watermarks", OBJECT),      FIELD_SET(struct policy_signal, watermarks, watermarks.set), OPTIONAL,          CHILD(watermarks),                          DOC("A band in which nothing happens. Exactly one of target and watermarks; neither for a signal of the objective, or for one that only informs a guard or a formula.")},
	{ROW("window", OBJECT),          FIELD_SET(struct policy_signal, window, window.set),         OPTIONAL,          CHILD(window),                              DOC("Uses the samples of a period instead of the last one only.")},
	{ROW("sustain", OBJECT),         FIELD(struct policy_signal, sustain),                        OPTIONAL,          CHILD(policy_schema_durations),             DOC("How long the signal must ask for more (up) or fewer (down) replicas without a break before it counts. Missing data is a break.")},
	{ROW("staleAfter", DURATION_MS), FIELD(struct policy_signal, stale_after_ms),                 DEFAULT("60s"),    RANGE(SECOND_MS, DAY_MS),                   DOC("Samples older than this count as missing.")},
	{ROW("onMissing", ENUM),         FIELD(struct policy_signal, on_missing),                     DEFAULT("Hold"),   ONE_OF(on_missing),                         DOC("Without usable data: Hold keeps the scale from going down. Ignore leaves the signal out. Zero reads an answer without series, and a sample that is NaN or infinite, as 0 (a failed query or stale data is never read as 0).")},
	{ROW("series", ENUM),            FIELD(struct policy_signal, series),                         DEFAULT("Single"), ONE_OF(series_modes),                       DOC("How several series become one. Single holds the scale when there is more than one.")},
};
static const struct schema_rule signal_rules[] = {
	{"has(self.query) != has(self.formula)", "needs exactly one of query and formula"},
	{"!has(self.formula) || (!has(self.window) && !has(self.source) && self.series == 'Single' && self.onMissing != 'Zero' && (!has(self.target) || self.target.type != 'Pods'))", "window, source, series, onMissing Zero and target type Pods cannot be combined with formula"},
	{"!has(self.target) || !has(self.watermarks)", "target cannot be combined with watermarks: keep one of them"},
	{"!has(self.target) || self.target.type != 'Pods' || (!has(self.window) && self.series == 'Single' && self.onMissing != 'Zero')", "window, series and onMissing Zero cannot be combined with target type Pods"},
};
const struct schema policy_schema_signal = {SCHEMA("GPUAutoscaler.spec.signals[]", struct policy_signal, signal_fields), VALIDATE(check_signal), RULES(signal_rules), DOC("One query, or a formula over others, and what its value means.")};
// clang-format on
