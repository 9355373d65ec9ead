// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a policy file becomes the struct the engine reads, with the documented defaults; every rule that a
// policy can break is broken once here and answered with its place and the fix.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/schema/schema.h"
#include "policies/engine/decide.h"
#include "policies/engine/policy.h"
#include "policies/schema/policy_schema.h"
#include "test/support/decoded_policy.h"

#define TEXT_BYTES 4096

// The whole example of the format, without the stages that do not exist yet.
static const char full[] = "apiVersion: gpuscale.dev/v1alpha1\n"
                           "kind: GPUAutoscaler\n"
                           "metadata: {name: llama, namespace: serving, labels: {team: ml}}\n"
                           "spec:\n"
                           "  scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: llama}\n"
                           "  minReplicas: 2\n"
                           "  maxReplicas: 16\n"
                           "  interval: 30s\n"
                           "  replicaMultiple: 2\n"
                           "  dryRun: true\n"
                           "  paused: true\n"
                           "  signals:\n"
                           "  - name: sm_active\n"
                           "    query: avg(DCGM_FI_PROF_SM_ACTIVE)\n"
                           "    target: {type: AverageValue, value: \"0.7\", tolerance: 50m}\n"
                           "    window: {duration: 2m, aggregate: P95, minSamples: 4}\n"
                           "    staleAfter: 90s\n"
                           "    onMissing: Ignore\n"
                           "    series: Max\n"
                           "  - name: queue\n"
                           "    query: sum(vllm:num_requests_waiting)\n"
                           "    watermarks: {high: 8, low: \"2\", tolerance: \"0.2\", algorithm: Average}\n"
                           "    sustain: {up: 30s, down: 5m}\n"
                           "    onMissing: Zero\n"
                           "  - {name: asked, query: up, target: {type: Replicas}}\n"
                           "  combine: Min\n"
                           "  behavior:\n"
                           "    scaleUp: {stabilizationWindowSeconds: 10, selectPolicy: Min, tolerance: \"0.05\",\n"
                           "      policies: [{type: Pods, value: 2, periodSeconds: 60}]}\n"
                           "    scaleDown: {selectPolicy: Disabled}\n"
                           "  cooldown: {up: 60s, down: 1h30m}\n";

static void every_field_reaches_its_place(void **state)
{
	struct decoded_policy d;
	decoded_policy_init(&d, full);
	assert_string_equal(buf_str(&d.printed), "");
	assert_int_equal(d.rc, 0);
	const struct policy *p = &d.policy;
	assert_string_equal(p->namespace_name, "serving");
	assert_string_equal(p->name, "llama");
	assert_string_equal(d.target.api_version, "apps/v1");
	assert_string_equal(d.target.kind, "StatefulSet");
	assert_string_equal(d.target.name, "llama");
	assert_int_equal(p->min_replicas, 2);
	assert_int_equal(p->max_replicas, 16);
	assert_int_equal(p->interval_ms, 30000);
	assert_int_equal(p->replica_multiple, 2);
	assert_true(p->dry_run && p->paused);
	assert_int_equal(p->combine, COMBINE_MIN);
	assert_int_equal(p->n_signals, 3);

	const struct policy_signal *s = &p->signals[0];
	assert_string_equal(s->name, "sm_active");
	assert_string_equal(s->query, "avg(DCGM_FI_PROF_SM_ACTIVE)");
	assert_true(s->target.set && !s->watermarks.set && s->window.set);
	assert_int_equal(s->target.type, TARGET_AVERAGE_VALUE);
	assert_true(s->target.value == 0.7 && s->target.tolerance_ratio == 0.05);
	assert_int_equal(s->window.duration_ms, 120000);
	assert_int_equal(s->window.aggregate, WINDOW_P95);
	assert_int_equal(s->window.min_samples, 4);
	assert_int_equal(s->stale_after_ms, 90000);
	assert_int_equal(s->on_missing, ON_MISSING_IGNORE);
	assert_int_equal(s->series, SERIES_MAX);

	s = &p->signals[1];
	assert_true(!s->target.set && s->watermarks.set && !s->window.set);
	assert_true(s->watermarks.high == 8 && s->watermarks.low == 2 && s->watermarks.tolerance_ratio == 0.2);
	assert_int_equal(s->watermarks.algorithm, WATERMARK_AVERAGE);
	assert_int_equal(s->sustain.up_ms, 30000);
	assert_int_equal(s->sustain.down_ms, 300000);
	assert_int_equal(s->on_missing, ON_MISSING_ZERO);
	assert_int_equal(p->signals[2].target.type, TARGET_REPLICAS);

	assert_int_equal(p->scale_up.stabilization_window_ms, 10000);
	assert_int_equal(p->scale_up.select, SELECT_MIN);
	assert_true(p->scale_up.tolerance_set && p->scale_up.tolerance_ratio == 0.05);
	assert_true(p->scale_up.rates_set);
	assert_int_equal(p->scale_up.n_rates, 1);
	assert_int_equal(p->scale_up.rates[0].type, RATE_PODS);
	assert_int_equal(p->scale_up.rates[0].value, 2);
	assert_int_equal(p->scale_up.rates[0].period_ms, 60000);
	assert_int_equal(p->scale_down.select, SELECT_DISABLED);
	assert_int_equal(p->scale_down.stabilization_window_ms, 300000);
	assert_int_equal(p->cooldown.up_ms, 60000);
	assert_int_equal(p->cooldown.down_ms, 5400000);
	decoded_policy_done(&d);
}

static void panic_window_is_a_share_or_a_duration(void **state)
{
	static char text[1024];
	static const struct {
		const char *panic, *fault;
		int64_t window_ms;
	} cases[] = {
	        {"{signal: a}", NULL, 20000},
	        {"{signal: a, window: 25%}", NULL, 50000},
	        {"{signal: a, window: 30s}", NULL, 30000},
	        {"{signal: a, window: 1%}", "spec.panic.window: must be at least one interval", 0},
	        {"{signal: a, window: 201s}", "spec.panic.window: must be at least one interval", 0},
	        {"{signal: a, window: 101%}", "spec.panic.window: must be a share of up to 100%", 0},
	        {"{signal: a, window: soon}", "spec.panic.window: must be a share of the signal's window", 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		snprintf(text, sizeof text,
		         "apiVersion: gpuscale.dev/v1alpha1\nkind: GPUAutoscaler\nmetadata: {name: llama}\nspec:\n"
		         "  scaleTargetRef: {name: llama}\n  maxReplicas: 4\n  signals:\n"
		         "  - {name: a, query: q, target: {value: 1}, window: {duration: 200s}}\n  panic: %s\n",
		         cases[i].panic);
		struct decoded_policy d;
		decoded_policy_init(&d, text);
		if (cases[i].fault && !strstr(buf_str(&d.printed), cases[i].fault))
			fail_msg("%s: %s", cases[i].panic, buf_str(&d.printed));
		if (!cases[i].fault) {
			assert_string_equal(buf_str(&d.printed), "");
			assert_int_equal(d.policy.panic.window_ms, cases[i].window_ms);
			assert_true(d.policy.panic.threshold == 2);
		}
		decoded_policy_done(&d);
	}
}

static void forecast_is_decoded(void **state)
{
	static char text[sizeof full + 128];
	static const struct {
		const char *text;
		int model, use;
		int64_t season_ms, window_ms, horizon_ms;
	} cases[] = {
	        {"{signal: queue, season: 24h}", FORECAST_HOLT_WINTERS, FORECAST_SCALE_UP_ONLY, 86400000, 600000,
	         FORECAST_HORIZON_STARTUP},
	        {"{signal: queue, model: Linear, horizon: 2m, use: Both}", FORECAST_LINEAR, FORECAST_BOTH, 0, 600000,
	         120000},
	};
	const char *combine = strstr(full, "combine: Min");
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		snprintf(text, sizeof text, "%.*sforecast: %s%s", (int)(combine - full), full, cases[i].text,
		         combine + strlen("combine: Min"));
		struct decoded_policy d;
		decoded_policy_init(&d, text);
		assert_string_equal(buf_str(&d.printed), "");
		const struct policy_forecast *f = &d.policy.forecast;
		assert_true(f->set && f->signal_index == 1);
		assert_int_equal(f->model, cases[i].model);
		assert_int_equal(f->use, cases[i].use);
		assert_int_equal(f->season_ms, cases[i].season_ms);
		assert_int_equal(f->window_ms, cases[i].window_ms);
		assert_int_equal(f->horizon_ms, cases[i].horizon_ms);
		assert_true(f->alpha == 0.3 && f->beta == 0.01 && f->gamma == 0.2 && f->band == 0);
		decoded_policy_done(&d);
	}
}

static void formula_is_compiled_into_the_policy(void **state)
{
	static char text[sizeof full + 64];
	const char *combine = strstr(full, "combine: Min");
	snprintf(text, sizeof text, "%.*scombine: 'max(sm_active, queue ?? 0)'%s", (int)(combine - full), full,
	         combine + strlen("combine: Min"));
	struct decoded_policy d;
	decoded_policy_init(&d, text);
	assert_string_equal(buf_str(&d.printed), "");
	assert_int_equal(d.rc, 0);
	assert_int_equal(d.policy.combine, COMBINE_FORMULA);
	assert_int_equal(d.policy.formula.n_ops, 5);
	assert_int_equal(d.policy.formula.reads, 3);
	assert_int_equal(d.policy.formula.reads_value, 0);
	decoded_policy_done(&d);
}

static const char smallest[] = "apiVersion: gpuscale.dev/v1alpha1\n"
                               "kind: GPUAutoscaler\n"
                               "metadata: {name: llama}\n"
                               "spec:\n"
                               "  scaleTargetRef: {name: llama}\n"
                               "  maxReplicas: 4\n"
                               "  signals: [{name: q, query: up, target: {value: 1}}]\n";

static void defaults_are_the_documented_ones(void **state)
{
	struct decoded_policy d;
	decoded_policy_init(&d, smallest);
	assert_string_equal(buf_str(&d.printed), "");
	const struct policy *p = &d.policy;
	assert_string_equal(p->namespace_name, "default");
	assert_string_equal(d.target.api_version, "apps/v1");
	assert_string_equal(d.target.kind, "Deployment");
	assert_int_equal(p->min_replicas, 1);
	assert_int_equal(p->interval_ms, 15000);
	assert_int_equal(p->replica_multiple, 1);
	assert_true(!p->dry_run && !p->paused);
	assert_int_equal(p->combine, COMBINE_MAX);
	const struct policy_signal *s = &p->signals[0];
	assert_int_equal(s->target.type, TARGET_VALUE);
	assert_true(s->target.tolerance_ratio == 0.1);
	assert_false(s->window.set);
	assert_int_equal(s->stale_after_ms, 60000);
	assert_int_equal(s->on_missing, ON_MISSING_HOLD);
	assert_int_equal(s->series, SERIES_SINGLE);
	assert_int_equal(s->sustain.up_ms, 0);
	assert_int_equal(s->sustain.down_ms, 0);
	assert_int_equal(p->cooldown.up_ms, 0);
	assert_int_equal(p->cooldown.down_ms, 0);
	// behavior: the HPA's
	assert_int_equal(p->scale_up.stabilization_window_ms, 0);
	assert_int_equal(p->scale_up.select, SELECT_MAX);
	assert_false(p->scale_up.rates_set);
	assert_int_equal(p->scale_up.n_rates, 2);
	assert_int_equal(p->scale_up.rates[0].type, RATE_PODS);
	assert_int_equal(p->scale_up.rates[0].value, 4);
	assert_int_equal(p->scale_up.rates[0].period_ms, 15000);
	assert_int_equal(p->scale_up.rates[1].type, RATE_PERCENT);
	assert_int_equal(p->scale_up.rates[1].value, 100);
	assert_int_equal(p->scale_up.rates[1].period_ms, 15000);
	assert_int_equal(p->scale_down.stabilization_window_ms, 300000);
	assert_int_equal(p->scale_down.select, SELECT_MAX);
	assert_int_equal(p->scale_down.n_rates, 1);
	assert_int_equal(p->scale_down.rates[0].type, RATE_PERCENT);
	assert_int_equal(p->scale_down.rates[0].value, 100);
	assert_int_equal(p->scale_down.rates[0].period_ms, 15000);
	assert_false(p->scale_up.tolerance_set || p->scale_down.tolerance_set);
	assert_true(decide_state_bytes(p) > 0);
	decoded_policy_done(&d);
}

// Replaces `what` in the full policy and wants exactly one error, `message`.
struct fault_row {
	const char *what, *with, *message;
};

static const struct fault_row fault_rows[] = {
        {"gpuscale.dev/v1alpha1", "gpuscale.dev/v1",
         "apiVersion: must be one of gpuscale.dev/v1alpha1, found gpuscale.dev/v1"},
        {"name: llama, namespace: serving", "namespace: serving", "metadata.name: required, but missing"},
        {"name: llama, namespace", "name: Llama_7b, namespace", "metadata.name: must be lower-case letters"},
        {"namespace: serving", "namespace: a.b", "metadata.namespace: must be lower-case letters"},
        {"labels: {team: ml}", "labels: [ml]", "metadata.labels: must be a map"},
        {"labels: {team: ml}", "annotations: {gpuscale.dev/paused: \"yes\"}",
         "gpuscale.dev/paused must be \"true\" or \"false\""},
        {"labels: {team: ml}", "annotations: {gpuscale.dev/paused: true}",
         "gpuscale.dev/paused must be \"true\" or \"false\""},
        {"labels: {team: ml}", "uid: 1b6c, generation: 3, label: {team: ml}",
         "metadata.label: unknown field: did you mean labels?"},
        {"minReplicas: 2", "minReplicas: 20", "spec.minReplicas: is larger than maxReplicas"},
        {"minReplicas: 2", "minReplicas: 0", "spec.minReplicas: 0 needs idle"},
        {"minReplicas: 2", "minReplicas: -1", "spec.minReplicas: must be between 0 and 1000000, is -1"},
        {"minReplicas: 2", "minReplica: 2", "spec.minReplica: unknown field: did you mean minReplicas?"},
        {"maxReplicas: 16", "maxReplicas: 0", "spec.maxReplicas: must be between 1 and 1000000, is 0"},
        {"replicaMultiple: 2", "replicaMultiple: 17", "spec.replicaMultiple: has no multiple between"},
        {"interval: 30s", "interval: 10ms", "spec.interval: must be between 100ms and 1h, is 10ms"},
        {"interval: 30s", "interval: 30", "spec.interval: must be a duration"},
        {"combine: Min", "combine: max(sm_active, quue ?? 0)",
         "p.yaml:26:27: spec.combine: quue is not a signal of this policy, did you mean queue?\n"
         "    max(sm_active, quue ?? 0)\n"
         "                   ^^^^\n"},
        {"combine: Min", "combine: max(sm_active,", "spec.combine: the formula ends too early"},
        {"combine: Min", "combine: queue > 3", "spec.combine: queue > 3 is true or false where a number is needed"},
        {"combine: Min", "combine: max", "spec.combine: max is a function"},
        {"combine: Min", "combine: ''", "spec.combine: "},
        {"combine: Min", "panic: {signal: quue}", "spec.panic.signal: must be the name of one of the signals"},
        {"combine: Min", "panic: {signal: sm_active}", "spec.panic.signal: has no window with aggregate Avg"},
        {"combine: Min", "panic: {}", "spec.panic.signal: required, but missing"},
        {"combine: Min", "panic: {signal: queue, threshold: 1}", "spec.panic.threshold: must be between 1.1 and 10"},
        {"combine: Min", "forecast: {signal: queue}", "spec.forecast.season: required with model HoltWinters"},
        {"combine: Min", "forecast: {signal: quue, season: 24h}",
         "spec.forecast.signal: must be the name of one of the signals"},
        {"combine: Min", "forecast: {signal: queue, season: 90s}",
         "spec.forecast.season: must hold at least 4 intervals"},
        {"combine: Min", "forecast: {signal: queue, model: Linear, window: 90s}",
         "spec.forecast.window: must hold at least 4 intervals"},
        {"combine: Min", "forecast: {signal: queue, model: Linear, season: 24h}",
         "spec.forecast.season: has no meaning with model Linear"},
        {"combine: Min", "forecast: {signal: queue, season: 24h, window: 10m}",
         "spec.forecast.window: has no meaning with model HoltWinters"},
        {"combine: Min", "forecast: {signal: queue, season: 24h, horizon: soon}",
         "spec.forecast.horizon: must be a duration or Startup: "},
        {"combine: Min", "forecast: {signal: queue, season: 24h, horizon: 25h}",
         "spec.forecast.horizon: must be longer than 0s and not longer than the season"},
        {"combine: Min", "forecast: {signal: queue, model: Linear, horizon: 0s}",
         "spec.forecast.horizon: must be longer than 0s and not longer than the window"},
        {"combine: Min", "forecast: {signal: queue, season: 24h, alpha: 2}",
         "spec.forecast.alpha: must be between 0 and 1"},
        {"combine: Min", "forecast: {signal: queue, season: 24h, model: ARIMA}", "spec.forecast.model: must be one of"},
        {"{type: Replicas}", "{type: Pods, value: 1}, window: {duration: 2m}",
         "spec.signals[2].window: cannot be combined with target type Pods"},
        {"{type: Replicas}", "{type: Pods, value: 1}, series: Sum",
         "spec.signals[2].series: has no meaning with target type Pods"},
        {"{type: Replicas}", "{type: Pods, value: 1}, onMissing: Zero",
         "spec.signals[2].onMissing: Zero has no meaning with target type Pods"},
        {"{type: Replicas}", "{type: Pods}", "spec.signals[2].target.value: required, but missing"},
        {"{type: Replicas}", "{type: Replicas, value: 3}",
         "spec.signals[2].target.value: has no meaning with type Replicas"},
        {"{type: Replicas}", "{type: Value}", "spec.signals[2].target.value: required, but missing"},
        {"{type: Replicas}", "{type: Value, value: 0}", "spec.signals[2].target.value: must be larger than 0"},
        {"{type: Replicas}", "{type: Value, value: -1}", "spec.signals[2].target.value: must be larger than 0"},
        {"value: \"0.7\", tolerance: 50m", "value: 0.7, tolerance: 50m", "write \"0.7\""},
        {"tolerance: 50m", "tolerance: \"-1\"", "spec.signals[0].target.tolerance: must be between 0 and 10"},
        {"tolerance: \"0.2\", algorithm", "tolerance: 2, algorithm",
         "spec.signals[1].watermarks.tolerance: must be between 0 and 1"},
        {"low: \"2\"", "low: 9", "spec.signals[1].watermarks.low: must not be larger than high"},
        {"low: \"2\"", "low: -2", "spec.signals[1].watermarks.low: must not be negative"},
        {"high: 8, ", "", "spec.signals[1].watermarks.high: required, but missing"},
        {"high: 8, low: \"2\"", "high: 0, low: 0", "spec.signals[1].watermarks.high: must be larger than 0"},
        {"sustain: {up: 30s, down: 5m}", "target: {value: 1}",
         "spec.signals[1].watermarks: cannot be combined with target"},
        {", target: {type: Replicas}", "", "spec.signals[2]: needs target or watermarks: add one of them\n"},
        {"name: asked", "name: queue", "spec.signals[2]: has the name of an earlier signal"},
        {"name: asked", "name: \"a b\"", "spec.signals[2].name: must be letters"},
        {"name: asked", "name: \"\"", "spec.signals[2].name: must not be empty"},
        {"duration: 2m", "duration: 5h",
         "spec.signals[0]: window.duration needs more than 512 samples at this interval"},
        {"duration: 2m", "duration: 90s", "spec.signals[0]: window.duration never holds minSamples samples"},
        {"minSamples: 4", "minSamples: 0", "spec.signals[0].window.minSamples: must be between 1 and 512"},
        {"aggregate: P95", "aggregate: P96", "spec.signals[0].window.aggregate: must be one of"},
        {"staleAfter: 90s", "staleAfter: 0s", "spec.signals[0].staleAfter: must be between 1s and 1d"},
        {"onMissing: Ignore", "onMissing: Zerro", "did you mean Zero?"},
        {"stabilizationWindowSeconds: 10", "stabilizationWindowSeconds: 3601",
         "spec.behavior.scaleUp.stabilizationWindowSeconds: must be between 0 and 3600 seconds"},
        {"stabilizationWindowSeconds: 10", "stabilizationWindowSeconds: 10s", "must be a whole number of seconds"},
        {"policies: [{type: Pods, value: 2, periodSeconds: 60}]", "policies: []",
         "spec.behavior.scaleUp.policies: must have at least 1 element"},
        {"value: 2, periodSeconds", "value: 0, periodSeconds",
         "spec.behavior.scaleUp.policies[0].value: must be at least 1"},
        {"periodSeconds: 60", "periodSeconds: 1801",
         "spec.behavior.scaleUp.policies[0].periodSeconds: must be between 1 and 1800 seconds"},
        {"selectPolicy: Disabled", "selectPolicy: Off",
         "spec.behavior.scaleDown.selectPolicy: must be one of Max, Min, Disabled"},
        {"cooldown: {up: 60s", "cooldown: {up: 8d", "spec.cooldown.up: must be between 0s and 1w, is 8d"},
};

static void each_broken_rule_is_answered_with_its_place_and_the_fix(void **state)
{
	for (size_t i = 0; i < sizeof fault_rows / sizeof fault_rows[0]; i++) {
		const struct fault_row *r = &fault_rows[i];
		const char *at = strstr(full, r->what);
		if (!at)
			fail_msg("row %zu: \"%s\" is not in the policy", i, r->what);
		char text[TEXT_BYTES];
		snprintf(text, sizeof text, "%.*s%s%s", (int)(at - full), full, r->with, at + strlen(r->what));
		struct decoded_policy d;
		decoded_policy_init(&d, text);
		if (d.rc == 0 || d.errors.n != 1 || !strstr(buf_str(&d.printed), r->message))
			fail_msg("%s -> %s: want one error with\n  %s\ngot %zu:\n%s", r->what, r->with, r->message,
			         d.errors.n, buf_str(&d.printed));
		assert_true(d.errors.items[0].line > 0 && d.errors.items[0].col > 0);
		decoded_policy_done(&d);
	}
}

static void annotation_pauses(void **state)
{
	static const struct {
		const char *metadata;
		bool paused;
	} rows[] = {
	        {"{name: llama}", false},
	        {"{name: llama, annotations: {gpuscale.dev/paused: \"true\"}}", true},
	        {"{name: llama, annotations: {gpuscale.dev/paused: \"false\", other: x}}", false},
	        {"{name: llama, annotations: {}, labels: {}}", false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char text[TEXT_BYTES];
		const char *at = strstr(smallest, "{name: llama}");
		snprintf(text, sizeof text, "%.*s%s%s", (int)(at - smallest), smallest, rows[i].metadata,
		         at + strlen("{name: llama}"));
		struct decoded_policy d;
		decoded_policy_init(&d, text);
		assert_string_equal(buf_str(&d.printed), "");
		assert_int_equal(d.policy.paused, rows[i].paused);
		assert_null(d.policy.annotations);
		decoded_policy_done(&d);
	}
}

static void check_documented(const struct schema *s, int depth, size_t *n)
{
	assert_true(depth < 8);
	assert_non_null(s->name);
	assert_true(s->doc && strlen(s->doc) > 10);
	for (size_t i = 0; i < s->n_fields; i++) {
		const struct schema_field *f = &s->fields[i];
		if (!f->doc || strlen(f->doc) < 5)
			fail_msg("%s.%s has no documentation", s->name, f->name);
		if (f->type == SCHEMA_ENUM)
			assert_non_null(f->enum_names);
		if (f->type == SCHEMA_OBJECT || f->type == SCHEMA_LIST)
			check_documented(f->child, depth + 1, n);
		(*n)++;
	}
}

static void every_field_is_documented_and_found_by_its_path(void **state)
{
	size_t n = 0;
	check_documented(&policy_schema, 0, &n);
	assert_true(n > 60);
	static const char *const paths[] = {
	        "apiVersion",
	        "metadata.annotations",
	        "spec.scaleTargetRef.kind",
	        "spec.signals[].target.value",
	        "spec.signals.window.duration",
	        "spec.behavior.scaleUp.policies.periodSeconds",
	        "spec.cooldown.up",
	        "spec.idle.activation.above",
	        "spec.schedules.timeZone",
	        "spec.forecast.horizon",
	        "spec.objective.late",
	        "spec.fallback.failureThreshold",
	        "spec.startup.seconds",
	        "spec.guards.maxPendingPods",
	};
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		if (!schema_find(&policy_schema, paths[i], NULL, NULL))
			fail_msg("%s is not in the table", paths[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_field_reaches_its_place),
	        cmocka_unit_test(formula_is_compiled_into_the_policy),
	        cmocka_unit_test(forecast_is_decoded),
	        cmocka_unit_test(panic_window_is_a_share_or_a_duration),
	        cmocka_unit_test(defaults_are_the_documented_ones),
	        cmocka_unit_test(each_broken_rule_is_answered_with_its_place_and_the_fix),
	        cmocka_unit_test(annotation_pauses),
	        cmocka_unit_test(every_field_is_documented_and_found_by_its_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
