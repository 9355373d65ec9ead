// SPDX-License-Identifier: Apache-2.0
// Warnings about policies that are valid and probably wrong: what gives one, where, and what must not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/dcgm_names.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "exporter/families.h"
#include "policies/engine/policy.h"
#include "policies/lint/lint.h"
#include "policies/lint/lint_names.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"
#include "promql/lexer.h"
#include "promql/promql.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct schema_errors notes; // of the last policy

// Lints a policy whose spec, from its signals on, is `rest`.
static void lint(const char *rest, struct schema_errors *warnings)
{
	static char text[8192];
	snprintf(text, sizeof text,
	         "apiVersion: gpuscale.dev/v1alpha1\nkind: GPUAutoscaler\nmetadata: {name: a}\nspec:\n"
	         "  scaleTargetRef: {name: a}\n  maxReplicas: 8\n%s",
	         rest);
	struct arena a;
	struct doc_file doc;
	struct err e;
	struct policy_document document = {0};
	static struct schema_errors errors;
	arena_init(&a, 1 << 24);
	schema_errors_init(&errors, "a.yaml");
	schema_errors_init(warnings, "a.yaml");
	schema_errors_init(&notes, "a.yaml");
	assert_int_equal(doc_parse_yaml(&a, "a.yaml", text, strlen(text), &doc, &e), 0);
	if (policy_decode(doc.roots[0], &document, &a, &errors) < 0)
		fail_msg("%s: %s", errors.items[0].path, errors.items[0].message);
	lint_policy(&document.policy, doc.roots[0], text, warnings, &notes);
	arena_done(&a);
}

static void lint_query(const char *query, const char *target, struct schema_errors *warnings)
{
	char rest[2048];
	snprintf(rest, sizeof rest,
	         "  signals:\n  - {name: q, query: '%s', %s}\n  - {name: other, query: x, target: {value: \"1\"}}\n",
	         query, target);
	lint(rest, warnings);
}

#define VALUE "target: {value: \"0.7\"}"
#define TOTAL "target: {type: AverageValue, value: \"4\"}"

static void mistakes_are_found(void **state)
{
	(void)state;
	static const struct {
		const char *query, *target;
		const char *marked; // first text of the query that is pointed at
		const char *says;
	} rows[] = {
	        {"sum(rate(DCGM_FI_PROF_PCIE_RX_BYTES[1m])) / 1e9", VALUE, "DCGM_FI_PROF_PCIE_RX_BYTES",
	         "is a rate already"},
	        {"sum(increase(DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL[5m])) / 9", VALUE, "DCGM_FI_DEV_NVLINK",
	         "is a rate already"},
	        {"avg(irate(DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"}[2m]))/100", VALUE, "DCGM_FI_DEV_GPU_UTIL", "is a gauge"},
	        {"sum(increase(DCGM_FI_DEV_XID_ERRORS[1h]))", TOTAL, "DCGM_FI_DEV_XID_ERRORS", "last error code"},
	        {"avg(DCGM_FI_DEV_FB_USED/DCGM_FI_DEV_FB_FREE)", VALUE, "DCGM_FI_DEV_FB_FREE", "FB_USED + FB_FREE"},
	        {"sum(DCGM_FI_DEV_FB_USED) / sum by (UUID) (DCGM_FI_DEV_FB_FREE{a=\"b\"})", VALUE,
	         "DCGM_FI_DEV_FB_FREE", "FB_USED + FB_FREE"},
	        {"sum(DCGM_FI_DEV_ECC_DBE_VOL_TOTAL)", TOTAL, "DCGM_FI_DEV_ECC", "only grows"},
	        {"sum(http_requests_total)", TOTAL, "http_requests_total", "looks like a counter"},
	        {"avg(DCGM_FI_PROF_SM_ACTIVE{pod=~\"a.*\"})", VALUE, "pod", "exported_pod"},
	        {"avg(DCGM_FI_PROF_SM_ACTIVE{gpu=\"1\", namespace=\"a\"})", VALUE, "namespace", "exported_namespace"},
	        {"max(sum by (pod) (DCGM_FI_PROF_SM_ACTIVE))", VALUE, "pod", "label_replace"},
	        {"avg(DCGM_FI_PROF_SM_ACTIVE)", "target: {value: \"70\"}", "avg", "ratio from 0 to 1"},
	        {"avg(DCGM_FI_DEV_GPU_UTIL)", VALUE, "avg", "percent"},
	        {"100 * avg(DCGM_FI_PROF_SM_ACTIVE)", VALUE, "100", "percent"},
	        {"round(100 * avg(a_ratio))", VALUE, "round", "percent"},
	        {"avg(cpu_usage_percent)", VALUE, "avg", "percent"},
	        {"max(DCGM_FI_PROF_SM_ACTIVE)", "watermarks: {high: \"80\", low: \"20\"}", "max", "ratio from 0 to 1"},
	        {"DCGM_FI_PROF_SM_ACTIVE", VALUE, "DCGM", "one series per GPU"},
	        {"vllm:num_requests_waiting", TOTAL, "vllm", "one series per pod"},
	        {"sum(a) or vector(0)", TOTAL, "or vector(0)", "outage"},
	        {"sum(a) OR vector( 0 )", TOTAL, "OR", "outage"},
	        {"sum(a) or on() vector(0)", TOTAL, "or", "outage"},
	        {"sum(a) or ignoring (pod, le) ((vector(0.0)))", TOTAL, "or", "outage"},
	        {"avg(DCGM_FI_PROF_SM_ACTVE)", VALUE, "DCGM", "did you mean DCGM_FI_PROF_SM_ACTIVE?"},
	        {"sum(DCGM_FI_DEV_PCIE_TX_BYTES)/1e9", VALUE, "DCGM", "did you mean DCGM_FI_PROF_PCIE_TX_BYTES?"},
	        {"avg(DCGM_FI_SOMETHING_ELSE_ALTOGETHER)", VALUE, "DCGM", "no such field"},
	        {"sum(rate(a_total[30s]))", TOTAL, "30s", "4 scrapes"},
	        {"sum(DCGM_FI_PROF_SM_ACTIVE)", VALUE, "DCGM", "grows with every GPU"},
	        {"a0+a1+a2+a3+a4+a5+a6+a7+a8+a9+b0+b1+b2+b3+b4+b5+b6+b7+b8+b9+c0+c1+c2+c3+c4+c5+c6+c7+c8+c9+d0+d1+d2+"
	         "d3",
	         TOTAL, "d2", "selector number 33"},
	        {"sum(DCGM_FI_DEV_GPU_UTIL > 0)", TOTAL, "DCGM", "count"},
	        {"max(DCGM_FI_DEV_GPU_TEMP)", "target: {value: \"80\"}", "DCGM", "is a temperature"},
	        {"max(DCGM_FI_DEV_MEMORY_TEMP)", "watermarks: {high: \"90\", low: \"40\"}", "DCGM", "is a temperature"},
	        {"avg(DCGM_FI_DEV_POWER_USAGE)", "target: {value: \"500\"}", "DCGM", "is in watts"},
	        {"sum(DCGM_FI_DEV_POWER_USAGE_INSTANT)", TOTAL, "DCGM", "is in watts"},
	        {"avg(DCGM_FI_DEV_BOARD_POWER_WATTS)", "target: {value: \"500\"}", "DCGM", "is in watts"},
	        {"sum(DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL)", TOTAL, "DCGM", "only grows"},
	        {"max(DCGM_FI_DEV_GPU_UTIL_RATIO)", "target: {value: \"70\"}", "max", "ratio from 0 to 1"},
	        {"avg(vllm:gpu_cache_usage_perc{a=\"b\"})", VALUE, "vllm", "is vllm:kv_cache_usage_perc since"},
	        {"avg({__name__=\"vllm:gpu_cache_usage_perc\"})", VALUE, "vllm", "is vllm:kv_cache_usage_perc since"},
	        {"avg({a=\"b\", __name__ = \"vllm:gpu_cache_usage_perc\"})", VALUE, "vllm",
	         "kv_cache_usage_perc since"},
	        {"avg({\"vllm:gpu_cache_usage_perc\",a!=\"b\"})", VALUE, "vllm", "is vllm:kv_cache_usage_perc since"},
	        {"avg({__name__=~\"up|vllm:gpu_cache_usage_perc\"})", VALUE, "vllm",
	         "is vllm:kv_cache_usage_perc since"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		static struct schema_errors w;
		lint_query(rows[i].query, rows[i].target, &w);
		if (w.n != 1)
			fail_msg("%s: %zu warnings: %s", rows[i].query, w.n, w.n ? w.items[w.n - 1].message : "");
		if (!strstr(w.items[0].message, rows[i].says))
			fail_msg("%s: %s", rows[i].query, w.items[0].message);
		static const char before[] = "  - {name: q, query: '";
		const char *at = strstr(rows[i].query, rows[i].marked);
		assert_non_null(at);
		assert_int_equal(w.items[0].line, 8);
		assert_int_equal(w.items[0].col, (int)(sizeof before + (size_t)(at - rows[i].query)));
		assert_string_equal(w.items[0].path, "spec.signals[0].query");
	}
}

static void correct_queries_give_no_warning(void **state)
{
	(void)state;
	static const struct {
		const char *query, *target;
	} rows[] = {
	        {"avg(DCGM_FI_PROF_SM_ACTIVE)", VALUE},
	        {"avg(avg_over_time(DCGM_FI_PROF_SM_ACTIVE{exported_pod=~\"a\"}[2m]) or "
	         "avg_over_time(DCGM_FI_PROF_SM_ACTIVE{pod=~\"a\"}[2m]))",
	         VALUE},
	        {"sum(rate(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION[1m])) / 1000", TOTAL},
	        {"max(changes(DCGM_FI_DEV_XID_ERRORS[10m]))", TOTAL},
	        {"avg(DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE))", VALUE},
	        {"avg(DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_FREE + DCGM_FI_DEV_FB_USED))", VALUE},
	        {"avg(DCGM_FI_DEV_GPU_UTIL) / 100", VALUE},
	        {"100 * avg(DCGM_FI_PROF_SM_ACTIVE)", "target: {value: \"70\"}"},
	        {"sum(DCGM_FI_PROF_SM_ACTIVE)", "target: {value: \"5\"}"},
	        {"sum(DCGM_FI_PROF_SM_ACTIVE) / count(DCGM_FI_PROF_SM_ACTIVE)", VALUE},
	        {"sum(DCGM_FI_PROF_SM_ACTIVE)", TOTAL},
	        {"sum(DCGM_FI_PROF_SM_ACTIVE > bool 0.5)", VALUE},
	        {"count(DCGM_FI_PROF_SM_ACTIVE > 0.5)", TOTAL},
	        {"sum(DCGM_FI_DEV_GPU_UTIL > bool 0)", TOTAL},
	        {"DCGM_FI_PROF_SM_ACTIVE", VALUE ", series: Avg"},
	        {"avg by (exported_pod) (DCGM_FI_PROF_SM_ACTIVE)", "target: {type: Pods, value: \"0.7\"}"},
	        {"8000 / max(DCGM_FI_DEV_POWER_USAGE)", "target: {type: Replicas}"},
	        {"sum(a) or vector(1)", TOTAL},
	        {"sum(a) or on() (vector(0.5))", TOTAL},
	        {"sum(a) or (vector(0) + sum(b))", TOTAL},
	        {"avg(DCGM_FI_DEV_GPU_UTIL > bool 50)", VALUE},
	        {"max(changes(DCGM_FI_DEV_GPU_UTIL[5m]))", "target: {value: \"1\"}"},
	        {"clamp(sum(x), 0, 100)", "target: {value: \"1\"}"},
	        {"sum(DCGM_FI_DEV_NVLINK_BANDWIDTH_L3)", TOTAL},
	        {"sum(rate(a_total[1m]))", TOTAL},
	        {"histogram_quantile(0.95, sum by (le) (rate(a_bucket[5m])))", TOTAL ", onMissing: Zero"},
	        {"label_replace(sum(a), \"rate(DCGM_FI_DEV_FB_USED[1s])\", \"$1\", \"s\", \"(y)\")", TOTAL},
	        {"sum(a) # rate(DCGM_FI_DEV_FB_USED[1s])", TOTAL},
	        {"avg({__name__=~\"vllm:kv_cache_usage_perc|vllm:gpu_cache_usage_perc\"})", VALUE},
	        {"avg({__name__=\"vllm:kv_cache_usage_perc\"} or {\"vllm:gpu_cache_usage_perc\"})", VALUE},
	        {"sum({__name__!=\"vllm:gpu_cache_usage_perc\",job=\"x\"})", TOTAL},
	        {"sum({__name__=~\"vllm:gpu_cache_usage_perc.*\"})", TOTAL},
	        {"sum(a{b=\"vllm:gpu_cache_usage_perc\", \"vllm:gpu_cache_usage_perc\"=\"c\"})", TOTAL},
	        {"avg(DCGM_FI_DEV_FB_USED_BYTES) / 1e9", VALUE},
	        {"avg(DCGM_FI_DEV_GPU_UTIL_RATIO)", VALUE},
	        {"((((((", TOTAL},
	        {"))))[", TOTAL},
	        {"a{b=\"c", TOTAL},
	        {"\"", TOTAL},
	};
	for (size_t i = 0; i < N(rows); i++) {
		static struct schema_errors w;
		lint_query(rows[i].query, rows[i].target, &w);
		if (w.n != 0)
			fail_msg("%s: %s", rows[i].query, w.items[0].message);
	}
}

static void settings_against_each_other_are_found(void **state)
{
	(void)state;
#define ONE "  signals: [{name: q, query: x, target: {value: \"1\"}"
	static const struct {
		const char *rest, *path; // NULL: none
	} rows[] = {
	        {ONE "}]\n", NULL},
	        {ONE "}]\n  forecast: {signal: q, season: 24h}\n", "spec.forecast.signal"},
	        {ONE "}]\n  forecast: {signal: q, model: Linear}\n", NULL},
	        {"  signals: [{name: q, query: x, target: {type: AverageValue, value: \"1\"}}]\n  forecast: {signal: "
	         "q, season: 24h}\n",
	         NULL},
	        {ONE "}]\n  forecast: {signal: q, model: Linear, use: Both}\n", "spec.forecast.band"},
	        {ONE "}]\n  forecast: {signal: q, model: Linear, use: Both, band: \"1.3\"}\n", NULL},
	        {ONE "}]\n  minReplicas: 8\n", "spec.minReplicas"},
	        {ONE "}]\n  minReplicas: 8\n  idle: {activation: {signal: q}}\n", NULL},
	        {ONE
	         "}]\n  minReplicas: 8\n  schedules: [{name: day, start: 0 8 * * *, end: 0 18 * * *, replicas: 4}]\n",
	         NULL},
	        {ONE "}]\n  interval: 5s\n", "spec.interval"},
#define IDLE(level)   "  minReplicas: 5\n  idle: {replicas: " level ", after: 5m, activation: {signal: q}}\n"
#define NIGHT(bounds) "  schedules: [{name: night, start: 0 22 * * *, end: 0 6 * * *, " bounds "}]\n"
	        {ONE "}]\n" IDLE("2") NIGHT("minReplicas: 0, maxReplicas: 1"), "spec.schedules[0]"},
	        {ONE "}]\n" IDLE("0") NIGHT("minReplicas: 0, maxReplicas: 1"), NULL},
	        {ONE "}]\n" IDLE("2") NIGHT("minReplicas: 1"),
	         NULL}, // the target does not go idle in it, as documented
	        {ONE "}]\n" IDLE("2") NIGHT("maxReplicas: 6"), NULL},
	        {ONE "}]\n  interval: 10s\n", NULL},
	        {ONE "}, {name: r, query: z, target: {value: \"1\"}}]\n  combine: q + 1\n", "spec.signals[1]"},
	        {ONE "}, {name: r, query: z, target: {value: \"1\"}}]\n  combine: q + r.value\n", NULL},
	        {ONE "}, {name: r, query: z, target: {value: \"1\"}}]\n  combine: Min\n", NULL},
	        {ONE "}]\n  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}\n",
	         "spec.behavior.scaleDown.stabilizationWindowSeconds"},
	        {ONE "}]\n  behavior: {scaleDown: {stabilizationWindowSeconds: 30}}\n",
	         "spec.behavior.scaleDown.stabilizationWindowSeconds"},
	        {ONE "}]\n  behavior: {scaleDown: {stabilizationWindowSeconds: 0, selectPolicy: Disabled}}\n", NULL},
	        {ONE "}]\n  cooldown: {down: 5m}\n  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}\n", NULL},
	        {ONE ", sustain: {down: 5m}}]\n  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}\n", NULL},
	        {ONE ", window: {duration: 15s, aggregate: Avg}}]\n", "spec.signals[0].window.duration"},
	        {ONE ", window: {duration: 1m}, sustain: {up: 2m}}]\n", "spec.signals[0].sustain.up"},
	        {ONE ", window: {duration: 1m}, sustain: {down: 2m}}]\n", "spec.signals[0].sustain.down"},
	        {ONE ", window: {duration: 2m}, sustain: {down: 2m}}]\n", NULL},
	        {ONE ", staleAfter: 20s}]\n", "spec.signals[0].staleAfter"},
	        {ONE ", staleAfter: 30s}]\n", NULL},
	        {"  signals: [{name: q, query: x, watermarks: {high: \"8\", low: \"5\"}}]\n",
	         "spec.signals[0].watermarks.low"},
	        {"  signals: [{name: q, query: x, watermarks: {high: \"8\", low: \"5\"}}]\n  minReplicas: 4\n", NULL},
	        {"  signals: [{name: q, query: x, watermarks: {high: \"8\", low: \"4\"}}]\n", NULL},
	        {"  signals: [{name: q, query: avg(DCGM_FI_PROF_SM_ACTIVE), onMissing: Zero, target: {value: "
	         "\"0.7\"}}]\n",
	         "spec.signals[0].onMissing"},
	        {"  signals: [{name: q, query: avg(DCGM_FI_DEV_GPU_UTIL), target: {value: \"70\"}}]\n", "spec.signals"},
	        {"  signals: [{name: q, query: avg(DCGM_FI_DEV_GPU_UTIL), target: {value: \"70\"}}, {name: r, query: "
	         "x, target: {value: \"1\"}}]\n",
	         NULL},
	};
	for (size_t i = 0; i < N(rows); i++) {
		static struct schema_errors w;
		lint(rows[i].rest, &w);
		if (w.n != (rows[i].path ? 1u : 0u))
			fail_msg("%s: %zu warnings: %s", rows[i].rest, w.n, w.n ? w.items[0].message : "");
		if (rows[i].path)
			assert_string_equal(w.items[0].path, rows[i].path);
	}
}

static void targets_that_no_cluster_has_are_found(void **state)
{
	(void)state;
	static const struct {
		const char *ref, *says; // NULL: none
	} rows[] = {
	        {"name: a", NULL},
	        {"kind: Deployment, name: a", NULL},
	        {"apiVersion: v1, kind: ReplicationController, name: a", NULL},
	        {"apiVersion: apps.kruise.io/v1beta1, kind: StatefulSet, name: a", NULL},
	        {"apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: a", NULL},
	        {"kind: deployment, name: a", "apps/v1 has no kind deployment: did you mean Deployment?"},
	        {"kind: StatefullSet, name: a", "did you mean StatefulSet?"},
	        {"kind: statefulset, name: a", "did you mean StatefulSet?"},
	        {"kind: DaemonSet, name: a", "apps/v1 has no kind DaemonSet that can be scaled"},
	        {"apiVersion: v1, kind: Deployment, name: a", "Deployment is in apps/v1, got v1"},
	        {"apiVersion: apps/v1beta1, kind: Deployment, name: a", "Deployment is in apps/v1, got apps/v1beta1"},
	        {"apiVersion: leaderworkerset.x-k8s.io/v1, kind: leaderworkerset, name: a",
	         "which starts with a capital letter, got leaderworkerset"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		char text[512];
		struct arena a;
		struct doc_file doc;
		struct err e;
		struct policy_document document = {0};
		static struct schema_errors errors;
		snprintf(text, sizeof text,
		         "apiVersion: gpuscale.dev/v1alpha1\nkind: GPUAutoscaler\nmetadata: {name: a}\nspec:\n"
		         "  scaleTargetRef: {%s}\n  maxReplicas: 8\n" ONE "}]\n",
		         rows[i].ref);
		arena_init(&a, 1 << 24);
		schema_errors_init(&errors, "a.yaml");
		assert_int_equal(doc_parse_yaml(&a, "a.yaml", text, strlen(text), &doc, &e), 0);
		assert_int_equal(policy_decode(doc.roots[0], &document, &a, &errors), 0);
		lint_target(&document, doc.roots[0], &errors);
		if (errors.n != (rows[i].says ? 1u : 0u) ||
		    (rows[i].says && !strstr(errors.items[0].message, rows[i].says)))
			fail_msg("%s: %zu errors: %s", rows[i].ref, errors.n, errors.n ? errors.items[0].message : "");
		if (rows[i].says)
			assert_int_equal(errors.items[0].line, 5);
		arena_done(&a);
	}
}

static void places_are_those_of_the_file(void **state)
{
	(void)state;
	static const struct {
		const char *query; // as written in YAML; the mistake is `rate(DCGM..`, and the name is pointed at
	} rows[] = {
	        {"query: |\n        sum(\n          rate(DCGM_FI_DEV_FB_USED[1m])\n        )\n"},
	        {"query: >-\n        sum(\n        rate(\n          DCGM_FI_DEV_FB_USED[1m]))\n"},
	        {"query: \"sum(a{b=\\\"c\\\"}) + sum(rate(DCGM_FI_DEV_FB_USED[1m]))\"\n"},
	        {"query: 'sum(a{b=''c''}) + sum(rate(DCGM_FI_DEV_FB_USED[1m]))'\n"},
	        {"query: sum(x) +\n        sum(rate(DCGM_FI_DEV_FB_USED[1m]))\n"},
	        {"query: | # a comment: DCGM\n\n\n        # \xc3\xa4 remark\n        sum(a{b=\"\xc3\xa4\"}) + "
	         "sum(rate(DCGM_FI_DEV_FB_USED[1m]))\n"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		char rest[1024], text[2048];
		static struct schema_errors w;
		snprintf(rest, sizeof rest, "  signals:\n    - name: q\n      target: {value: \"1\"}\n      %s",
		         rows[i].query);
		lint(rest, &w);
		assert_int_equal(w.n, 1);
		snprintf(text, sizeof text, "%s", rest);
		const char *line = text;
		for (int l = 7; l < w.items[0].line; l++)
			line = strchr(line, '\n') + 1;
		const char *p = line;
		for (int c = 1; c < w.items[0].col; c++)
			for (p++; ((unsigned char)*p & 0xc0) == 0x80;)
				p++;
		if (strncmp(p, "DCGM_FI_DEV_FB_USED", 19) != 0)
			fail_msg("row %zu points at %d:%d", i, w.items[0].line, w.items[0].col);
	}
}

static void every_family_of_the_exporter_is_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < FIELD__COUNT; i++) {
		const char *name = family_of((enum field)i)->name;
		if (strncmp(name, "DCGM_FI_", 8) == 0 && lint_name_kind(name) == LINT_KIND__COUNT)
			fail_msg("%s is missing", name);
	}
	const struct dcgm_name *renamed = NULL;
	for (size_t i = 0; (renamed = dcgm_name_at(i)); i++) {
		assert_int_not_equal(family_find(renamed->legacy), FIELD__COUNT);
		assert_int_not_equal(lint_name_kind(renamed->name_4_9), LINT_KIND__COUNT);
	}
	const char *meant;
	assert_false(lint_name_is_unknown("DCGM_EXP_XID_ERRORS_COUNT", &meant));
	assert_false(lint_name_is_unknown("up", &meant));
}

static void name_of_4_9_is_mentioned_once_per_policy(void **state)
{
	(void)state;
	static struct schema_errors w;
	lint_query("avg(DCGM_FI_DEV_GPU_UTIL / 100 + DCGM_FI_PROF_SM_ACTIVE)", VALUE, &w);
	assert_int_equal(w.n, 0);
	assert_int_equal(notes.n, 1);
	assert_int_equal(notes.items[0].line, 8);
	assert_int_equal(notes.items[0].col, 27);
	assert_string_equal(notes.items[0].path, "spec.signals[0].query");
	assert_string_equal(notes.items[0].message,
	                    "dcgm-exporter 4.9 renames it to DCGM_FI_DEV_GPU_UTIL_RATIO, whose value is 0.01 times as "
	                    "large: to read both, repeat the expression with that name after \"or\"");
	lint("  signals:\n  - {name: q, query: avg(DCGM_FI_PROF_SM_ACTIVE), target: {value: \"1\"}}\n"
	     "  - {name: r, query: avg(DCGM_FI_PROF_DRAM_ACTIVE), target: {value: \"1\"}}\n",
	     &w);
	assert_int_equal(notes.n, 1);
	assert_non_null(strstr(notes.items[0].message, "renames it to DCGM_FI_PROF_SM_UTIL_RATIO: to read"));
	static const char *const quiet[] = {"avg(DCGM_FI_DEV_GPU_UTIL or DCGM_FI_DEV_GPU_UTIL_RATIO * 100)",
	                                    "avg(DCGM_FI_DEV_GPU_UTIL_RATIO) * 100", "sum(DCGM_FI_PROF_PCIE_RX_BYTES)"};
	for (size_t i = 0; i < N(quiet); i++) {
		lint_query(quiet[i], VALUE, &w);
		assert_int_equal(notes.n, 0);
	}
}

static void words_are_distinguished(void **state)
{
	(void)state;
	const char *p = "a:b{c=~\"x\\\"}\"} [5m] # rest\n+ .5 `\\` 'open";
	static const char *const want[] = {"a:b", "{",  "c", "=", "~",  "\"x\\\"}\"", "}",
	                                   "[",   "5m", "]", "+", ".5", "`\\`",       "'open"};
	for (size_t i = 0; i < N(want); i++) {
		struct promql_token t = promql_next(&p);
		assert_int_equal(t.len, strlen(want[i]));
		assert_memory_equal(t.start, want[i], t.len);
	}
	assert_int_equal(promql_next(&p).kind, PROMQL_TOKEN_END);
	assert_int_equal(promql_next(&p).kind, PROMQL_TOKEN_END);
}

#define SIGNALS                                                                                                        \
	"  startup: {seconds: 60}\n  objective: {late: 1%, wait: 10s, demand: a, backlog: b}\n"                        \
	"  signals: [{name: a, query: sum(x)}, {name: b, query: sum(y)}]\n"
#define OPEN_UP "scaleUp: {policies: [{type: Pods, value: 8, periodSeconds: 15}]}"

static void objective_wants_behavior_open(void **state)
{
	static const struct {
		const char *rest, *path; // NULL: no warning
	} rows[] = {
	        {SIGNALS "  behavior: {" OPEN_UP ", scaleDown: {stabilizationWindowSeconds: 0}}\n", NULL},
	        {SIGNALS "  behavior: {" OPEN_UP "}\n", "spec.behavior.scaleDown.stabilizationWindowSeconds"},
	        {SIGNALS "  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}\n", "spec.behavior.scaleUp"},
	        {SIGNALS "  combine: b\n  behavior: {" OPEN_UP ", scaleDown: {stabilizationWindowSeconds: 0}}\n", NULL},
	};
	for (size_t i = 0; i < N(rows); i++) {
		struct schema_errors warnings;
		lint(rows[i].rest, &warnings);
		assert_int_equal(warnings.n, rows[i].path ? 1 : 0);
		if (rows[i].path)
			assert_string_equal(warnings.items[0].path, rows[i].path);
	}
}

// ---- queries that Prometheus refuses ----

static int of_prometheus(void *arg, const char *source)
{
	(void)source;
	return *(const int *)arg; // enum promql_kind
}

// Checks a query for a server of that kind in a policy that may be wrong otherwise, too.
static void check_query(const char *query, int kind, struct schema_errors *errors, struct schema_errors *warnings)
{
	static char text[8192];
	struct arena a;
	struct doc_file doc;
	struct err e;
	bool bad[POLICY_SIGNALS_MAX] = {false};
	struct buf quoted;
	buf_init(&quoted, 4096);
	for (const char *p = query; *p; p++)
		buf_printf(&quoted, *p == '\'' ? "''" : "%c", *p);
	snprintf(text, sizeof text, "spec:\n  minReplica: none\n  signals:\n  - {query: '%s'}\n", buf_str(&quoted));
	buf_done(&quoted);
	arena_init(&a, 1 << 24);
	schema_errors_init(errors, "a.yaml");
	schema_errors_init(warnings, "a.yaml");
	assert_int_equal(doc_parse_yaml(&a, "a.yaml", text, strlen(text), &doc, &e), 0);
	lint_queries(doc.roots[0], text, of_prometheus, &kind, errors, warnings, bad);
	assert_int_equal(bad[0], errors->n > 0);
	arena_done(&a);
}

static void query_that_prometheus_refuses_is_an_error(void **state)
{
	(void)state;
	static const struct {
		const char *query, *marked, *says; // marked: its last place in the query is pointed at
	} rows[] = {
	        // brackets and quotes
	        {"sum(rate(x[5m])", "(rate", "this ( is never closed"},
	        {"x{a=\"b\"", "{", "this { is never closed"},
	        {"rate(x[5m", "[", "this [ is never closed"},
	        {"x)", ")", "never opened"},
	        {"x]", "]", "never opened"},
	        {"x{a=\"b}", "\"b", "string is not closed"},
	        {"x{a=\"\\d\"}", "\\d", "is not a valid escape: for a backslash write \\\\"},
	        // placeholders
	        {"sum(rate(x[$__rate_interval]))", "$__rate_interval", "placeholder"},
	        {"x{a=${b}}", "${b}", "placeholder"},
	        {"$metric", "$metric", "placeholder"},
	        {"sum by ($label) (x)", "$label", "placeholder"},
	        {"x offset $shift", "$shift", "placeholder"},
	        {"x{a=\"$b\"}", "$b", "placeholder"},
	        {"x{a=\"${b:regex}\"}", "${", "placeholder"},
	        {"x{a=~\"c|$b.*\"}", "$b", "placeholder"},
	        {"x{a=~\"\\\\\\\\$b\"}", "$b", "placeholder"}, // a backslash, and then the end of the text
	        {"x{a=~`\\\\$b`}", "$b", "placeholder"},
	        {"x{a=~\"\\\\[$b\"}", "$b", "placeholder"},
	        {"{{ metric }}", "{{", "template"},
	        {"x{{{ labels }}}", "{{ labels", "template"},
	        // types
	        {"sum(rate(x))", "x)", "rate() needs a range vector, got an instant vector: add a range such as [5m]"},
	        {"x[5m]", "x", "is a range vector, and a signal needs numbers"},
	        {"\"a\"", "\"a", "is a string"},
	        {"sum(x[5m])", "x[", "sum() needs an instant vector, got a range vector"},
	        {"x[5m] > 1", "x", "a range vector cannot be an operand"},
	        {"abs(1)", "1", "abs() needs an instant vector here, got a scalar"},
	        {"histogram_quantile(rate(x[5m]), 0.9)", "rate", "needs a scalar here, got an instant vector"},
	        {"rate(sum(x)[5m])", "[", "needs a resolution: write [30d:5m]"},
	        {"rate(x[5m][1h:])", "x", "a subquery needs an instant vector, got a range vector"},
	        {"1 > 2", ">", "needs bool"},
	        {"x and 1", "and", "needs instant vectors on both sides"},
	        {"x + on (a) 1", "+", "between instant vectors"},
	        {"a or on (x) group_left b", "or", "leave out group_left"},
	        {"rate(x[5m]) offset 5m", "offset", "offset follows a selector or a subquery only"},
	        {"rate(x offset 5m [5m])", "[", "the range comes before offset"},
	        // functions
	        {"unheard(x)", "unheard", "Prometheus has no function unheard(): correct its name"},
	        {"Rate(x[5m])", "Rate", "did you mean rate()?"},
	        {"averge_over_time(x[5m])", "averge", "did you mean avg_over_time()?"},
	        {"xrate(x[5m])", "xrate", "only Thanos has the function xrate()"},
	        {"rate()", "rate", "needs 1 argument, got 0"},
	        {"topk(x)", "topk", "topk() needs 2 arguments, got 1"},
	        {"round(x, 1, 2)", "round", "needs at most 2 arguments, got 3"},
	        {"label_join(x, \"a\")", "label_join", "needs at least 3 arguments, got 2"},
	        // matchers
	        {"x{a=\"b\",a=\"c\"}", "\"c\"", "contradicts the matcher a=\"b\" before it"},
	        {"x{a=\"b\",c=\"d\",\"a\"!=\"b\"}", "\"b\"}", "contradicts the matcher a=\"b\""},
	        {"x{a=~\"b|c\",a=\"d\"}", "\"d\"", "contradicts the matcher a=~\"b|c\""},
	        {"x{a=~\"b|c\",a!~\"c|b|d\"}", "\"c|", "contradicts"},
	        {"x{a!=\"\",a=\"\"}", "\"\"}", "contradicts the matcher a!=\"\""},
	        {"x{a=\"b\",a=~\"c-.*\"}", "\"c-", "contradicts the matcher a=\"b\""},
	        {"x{a=~\"c-.+\",a=\"c-\"}", "\"c-\"", "contradicts the matcher a=~\"c-.+\""},
	        {"x{a=\"b-c-d\",a!~\"b.*c.+\"}", "\"b.*", "contradicts"},
	        {"x{a=~\"b-1|c\",a=~\"d.*|b-..\"}", "\"d.*", "contradicts"},
	        {"x{a=\"bb-cc\",a=~\"b.*c|d\"}", NULL, NULL},
	        {"x{a=\"b.c\",a=~\"b..*\",a!~\"b..+.\"}", NULL, NULL},
	        {"x{a=\"b\",a=~\"c.*?|(b)\"}", NULL, NULL},
	        {"x{a=\"b\xc3\xa9\",a=~\"b.\"}", NULL, NULL},
	        {"x{a=~\"b.*\",a=\"c.\"}", "\"c.", "contradicts"},
	        // regular expressions
	        {"x{a=~\"b-(c|d\"}", "(c", "this ( is never closed"},
	        {"x{a!~\"b)\"}", ")\"", "this ) was never opened"},
	        {"x{a=~\"b[cd\"}", "[cd", "this [ is never closed"},
	        {"x{a=~\"*-b\"}", "*-", "there is nothing to repeat"},
	        {"x{a=~\"b|(+c)\"}", "+c", "there is nothing to repeat"},
	        {"x{a=~\"(?!b).*\"}", "(?!", "no server has lookahead and lookbehind"},
	        {"sum({})", "}", "matches every series"},
	        {"{a=\"\",b=~\".*\",c!=\"d\"}", "}", "matches every series"},
	        {"x{__name__=\"y\"}", "\"y\"", "names the metric of the selector a second time"},
	        {"{\"x\",\"y\"}", "\"y\"", "a second time"},
	        // durations and numbers
	        {"rate(x[1.5h])", "1.5h", "write \"1h30m\""},
	        {"rate(x[1m1h])", "1m1h", "a unit comes twice or after a smaller one"},
	        {"rate(x[5min])", "5min", "expected a duration such as 5m, got 5min"},
	        {"rate(x[0m])", "0m", "a range of 0 has no samples"},
	        {"max_over_time(x[1h:2m1h])", "2m1h", "comes twice or after"},
	        {"x offset 5", NULL, NULL},
	        {"x > 1.2.3", "1.2.3", "expected a number"},
	        // text behind the query, and other languages
	        {"10 * (2 + sin(time of day))", "of", "expected an operator, a comma or ), got of"},
	        {"sum(x) foo", "foo", "expected an operator or the end of the query, got foo"},
	        {"a && b", "&& b", "expected an operator"},
	        {"sum(x) default 0", "default", "expected an operator"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		static struct schema_errors errors, warnings;
		check_query(rows[i].query, PROMQL_KIND_AUTO, &errors, &warnings);
		if (errors.n != (rows[i].says ? 1u : 0u) || warnings.n != 0)
			fail_msg("%s: %zu errors: %s", rows[i].query, errors.n,
			         errors.n ? errors.items[0].message : "");
		if (!rows[i].says)
			continue;
		if (!strstr(errors.items[0].message, rows[i].says))
			fail_msg("%s: %s", rows[i].query, errors.items[0].message);
		const char *at = NULL, *next = rows[i].query;
		for (; (next = strstr(next, rows[i].marked)); next++)
			at = next;
		assert_non_null(at);
		assert_int_equal(errors.items[0].line, 4);
		if (errors.items[0].col != (int)(sizeof "  - {query: '" + (size_t)(at - rows[i].query)))
			fail_msg("%s: points at column %d", rows[i].query, errors.items[0].col);
		assert_string_equal(errors.items[0].path, "spec.signals[0].query");
	}
}

static void every_mistake_of_a_query_is_reported(void **state)
{
	(void)state;
	static struct schema_errors errors, warnings;
	check_query("rate(x) + sum(y[5m]) + foo(z) + u{a=\"b\",a=\"c\"} + {} + topk(v)", PROMQL_KIND_AUTO, &errors,
	            &warnings);
	assert_int_equal(errors.n, 6);
}

static void check_accepts_what_prometheus_accepts(void **state)
{
	(void)state;
	static const char *const rows[] = {
	        // as Prometheus 2.42 reads them; test/integration/run-promql compares more of them with the real one
	        "sum without (a, b,) (rate(x[5m]))",
	        "sum(sum)",
	        "and and and",
	        "by{by=\"a\"} offset 5m",
	        "min(min) - count{a=\"b\"}",
	        "sum by (by, on, bool, offset, group_left) (x)",
	        "x{by=\"a\",sum=\"b\",and=\"c\",nan=\"d\"}",
	        "x{a='b',c=`d\\d`,e=\"\\x41\\u00e4\\101\\\"\"}",
	        "a * on (x) group_left b",
	        "a >= bool on (x) b",
	        "2 ^ -x % 0x1f + Inf - nan + .5 + 5. + 1e-3",
	        "max_over_time(rate(x[5m])[1h:] offset -5m)",
	        "x offset 5m @ end()",
	        "x # comment (",
	        "{a!~\".*\"} or {a=~\".+\"} or {a!=\"\"} or {a=~\"b?\"}",
	        "x{a=~\"b|c\",a!=\"c\"}",
	        "x{a=~\"b.*\",a=\"bc\"}",
	        "x{a!=\"b\",a!=\"c\"}",
	        "x{a=~\"(?i)b(?:c|(?P<n>d))+?|e\\\\(\\\\\\\\()\",b=~`\\(\\[`,c=~\"[^]*(]|[[:alpha:](]|[\\\\](]\"}",
	        "x{d=\"(\"}",
	        "x{a=~\"[$a]|b$|c\\\\$d\"}",
	        "x{a=~\"\\\\$foo\",b=~\"foo\\\\$bar\",c=~'\\\\$d',d=~`\\$e`,e=~\"\\\\Q$f\\\\E\"}",
	        "x{a=~\"[[:alnum:]]+\",b=~\"[[:^digit:]_$c]\",d=\"[[:x]]\"}",
	        "label_replace(x, \"a\", \"$1-${2}$name\", \"b\", \"(.*)\")",
	        "histogram_count(rate(x[5m])) + histogram_fraction(0, 0.2, rate(x[5m]))",
	        "hour() + hour(x)",
	        // Prometheus 3, experimental parts included
	        "{\"a.b\", \"c.d\"=\"e\"}",
	        "sum by (\"a.b\") (x)",
	        "x > 5m + 1_000",
	        "rate(x[300] offset 60)",
	        "rate(x[5m + 1m])",
	        "rate(x[max(step(), 5m)] offset (1m * 2))",
	        "max_over_time(rate(x[5m])[1h + 1m:30s * 2])",
	        "rate(x[5m] anchored) + x smoothed",
	        "a + on (x) fill_left(0) fill_right(1) b + fill",
	        "info(x, {a=\"b\"}) + info(x, {})",
	        "sort_by_label(x, \"a\", \"b\") + limit_ratio(-0.1, x)",
	        "histogram_quantiles(x, \"q\", 0.5, 0.9)",
	        "start() + end() + step() + range() + x",
	};
	for (size_t i = 0; i < N(rows); i++) {
		static struct schema_errors errors, warnings;
		check_query(rows[i], PROMQL_KIND_PROMETHEUS, &errors, &warnings);
		if (errors.n || warnings.n)
			fail_msg("%s: %s", rows[i], (errors.n ? &errors : &warnings)->items[0].message);
	}
}

static void odd_matcher_is_a_warning(void **state)
{
	(void)state;
	static const char *const rows[] = {"x{a=\"b\",a=\"b\"}", "x{a=\"$b-c\"}", "x{a=~\"[[b]]\"}"};
	for (size_t i = 0; i < N(rows); i++) {
		static struct schema_errors errors, warnings;
		check_query(rows[i], PROMQL_KIND_AUTO, &errors, &warnings);
		assert_int_equal(errors.n, 0);
		assert_int_equal(warnings.n, 1);
	}
}

static void other_servers_accept_more(void **state)
{
	(void)state;
	static const struct {
		const char *query;
		int kind;
		const char *says; // NULL: no error
	} rows[] = {
	        {"WITH (f(a) = sum(rate(a))) f(x) default 0", PROMQL_KIND_VICTORIAMETRICS, NULL},
	        {"rate(x[$__interval]) keep_metric_names", PROMQL_KIND_VICTORIAMETRICS, NULL},
	        {"{a=\"b\" or c=\"d\"}[1.5h]", PROMQL_KIND_VICTORIAMETRICS, NULL},
	        {"sum(rate(x)", PROMQL_KIND_VICTORIAMETRICS, "this ( is never closed"},
	        {"x{a=\"b)", PROMQL_KIND_VICTORIAMETRICS, "not closed"},
	        {"(x]", PROMQL_KIND_VICTORIAMETRICS, "never opened"},
	        {"xrate(x[5m])", PROMQL_KIND_THANOS, NULL},
	        {"rate(x)", PROMQL_KIND_THANOS, "needs a range vector"},
	        {"xrate(x[5m])", PROMQL_KIND_MIMIR, "only Thanos"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		static struct schema_errors errors, warnings;
		check_query(rows[i].query, rows[i].kind, &errors, &warnings);
		assert_int_equal(errors.n, rows[i].says ? 1 : 0);
		if (rows[i].says && !strstr(errors.items[0].message, rows[i].says))
			fail_msg("%s: %s", rows[i].query, errors.items[0].message);
	}
}

// ---- the values of a query ----

static void nan_without_traffic_is_found(void **state)
{
	(void)state;
	static const struct {
		const char *query;
		const char *marked; // NULL: no warning
	} rows[] = {
	        {"sum(rate(a_sum[1m])) / sum(rate(a_count[1m]))", "/"},
	        {"100 * sum(rate(a[1m])) / (sum(rate(b[1m])) + sum(rate(c[1m]))) * 2", "/"},
	        {"sum(increase(a[1m]) / increase(b[1m]))", "/"},
	        {"histogram_quantile(0.9, sum by (le) (rate(a_bucket[5m])))", "histogram_quantile"},
	        {"max(histogram_avg(rate(a[5m])))", "histogram_avg"},
	        {"avg_over_time((sum(rate(a[1m])) / sum(irate(b[1m])))[5m:])", "/"},
	        {"clamp_max(sum(x) / sum(rate(b[1m])), 5)", "/"},
	        {"(sum(rate(a[1m])) / sum(rate(b[1m]))) or vector(1)", "/"}, // NaN is a value
	        {"sum(vllm:num_requests_waiting) / sum(vllm:num_requests_running)", "/"},
	        {"avg(sglang:num_queue_reqs / sglang:num_running_reqs)", "/"},
	        {"sum(rate(a[1m])) / scalar(sum(rate(b[1m])) > 0)", "scalar"},
	        {"scalar(sum(rate(a[1m]))) / scalar(sum(rate(b[1m])))", "/"},
	        {"sum(rate(a[1m])) / sum(rate(b[1m])) and sum(rate(b[1m])) >= 0", "/"},
	        {"sum(rate(a[1m])) / sum(rate(b[1m])) unless sum(rate(b[1m])) > 0", "/"},
	        {"sum(rate(a[1m])) / sum(rate(b[1m])) and sum(rate(b[1m])) > 0", NULL},
	        {"(sum(rate(a[1m])) / sum(rate(b[1m])) and on() 0 != sum(rate(b[1m]))) or vector(1)", NULL},
	        {"sum(rate(a[1m])) / sum(rate(b[1m])) unless sum(rate(b[1m])) == 0", NULL},
	        {"sum(rate(a[1m])) / sum(rate(b[1m])) * (sum(rate(b[1m])) > bool 0)", "/"},
	        {"sum(rate(a[1m])) / sum(rate(b[1m])) + 0 * (sum(rate(b[1m])) > 0)", NULL},
	        {"sum(vllm:num_requests_waiting) / count(vllm:num_requests_running)", NULL},
	        {"sum(rate(a[1m])) / 60", NULL},
	        {"sum(rate(a[1m])) / count(b)", NULL},
	        {"sum(rate(a[1m])) / (sum(rate(b[1m])) + 1)", NULL},
	        {"sum(rate(a[1m])) / clamp_min(sum(rate(b[1m])), 0.001)", NULL},
	        {"sum(rate(a[1m])) / (sum(rate(b[1m])) > 0)", NULL},
	        {"sum(rate(a[1m])) / ((sum(rate(b[1m])) > 0) or vector(1))", NULL},
	        {"(sum(rate(a[1m])) / sum(rate(b[1m]))) >= 0", NULL},
	        {"count(histogram_quantile(0.9, rate(a_bucket[5m])) > 2)", NULL},
	        {"sum(a) / sum(b)", NULL},
	};
	for (size_t i = 0; i < N(rows); i++) {
		static struct schema_errors w;
		lint_query(rows[i].query, TOTAL, &w);
		if (w.n != (rows[i].marked ? 1u : 0u))
			fail_msg("%s: %zu warnings: %s", rows[i].query, w.n, w.n ? w.items[0].message : "");
		if (!rows[i].marked)
			continue;
		assert_non_null(strstr(w.items[0].message, "without traffic"));
		assert_non_null(strstr(w.items[0].message, "onMissing: Zero"));
		const char *at = strstr(rows[i].query, rows[i].marked);
		assert_int_equal(w.items[0].col, (int)(sizeof "  - {name: q, query: '" + (size_t)(at - rows[i].query)));
		lint_query(rows[i].query, TOTAL ", onMissing: Zero", &w);
		assert_int_equal(w.n, 0);
		lint_query(rows[i].query, "}\n  - {name: f, formula: q ?? 0, " TOTAL, &w);
		assert_int_equal(w.n, 0);
		lint_query(rows[i].query, "}\n  - {name: f, formula: q + 0, " TOTAL, &w);
		assert_int_equal(w.n, 1);
	}
}

static void mark_outside_of_the_range_of_its_query_is_found(void **state)
{
	(void)state;
#define MARKS(high, low) "watermarks: {algorithm: Absolute, high: \"" high "\", low: \"" low "\", tolerance: \"0\"}"
#define TARGET(value)    "target: {tolerance: \"0\", value: \"" value "\"}"
#define AT(field)        "spec.signals[0]." field
	static const struct {
		const char *query, *rest;
		const char *path, *says; // NULL: no warning
	} rows[] = {
	        {"avg(DCGM_FI_PROF_SM_ACTIVE)", TARGET("1"), AT("target.value"), "at most 1"},
	        {"avg(DCGM_FI_PROF_SM_ACTIVE)", TARGET("0.9"), NULL, NULL},
	        {"avg(DCGM_FI_PROF_SM_ACTIVE)", "target: {value: \"0.95\", tolerance: \"0.1\"}", AT("target.value"),
	         "the target 0.95 (1.045 with its tolerance) is never exceeded"},
	        {"max(DCGM_FI_PROF_SM_ACTIVE)", MARKS("1", "0.2"), AT("watermarks.high"), "the high mark 1 is never"},
	        {"max(DCGM_FI_PROF_SM_ACTIVE)",
	         "watermarks: {algorithm: Absolute, high: \"0.95\", low: \"0.2\", tolerance: \"0.1\"}",
	         AT("watermarks.high"), "0.95 (1.045 with its tolerance)"},
	        {"max(DCGM_FI_PROF_SM_ACTIVE)", MARKS("0.95", "0.2"), NULL, NULL},
	        {"avg(DCGM_FI_DEV_GPU_UTIL)", TARGET("120"), AT("target.value"), "at most 100"},
	        {"avg(DCGM_FI_DEV_GPU_UTIL) / 100", TARGET("70"), AT("target.value"), "at most 1"},
	        {"avg(DCGM_FI_DEV_GPU_UTIL) * 0.01", TARGET("70"), AT("target.value"), "at most 1"},
	        {"100 * avg(a_ratio)", TARGET("120"), AT("target.value"), "at most 100"},
	        {"round(100 * avg(a_ratio))", TARGET("120"), AT("target.value"), "at most 100"},
	        {"round(avg(a_ratio), 0.7)", TARGET("1.5"), AT("target.value"), "at most 1.4"},
	        {"round(avg(a_ratio), 0.7)", TARGET("1.3"), NULL, NULL},
	        {"round(avg(a_ratio), scalar(b))", TARGET("7"), NULL, NULL},
	        {"round(avg(a_ratio), 1e999)", TARGET("7"), NULL, NULL},
	        {"100 * (1 - avg(a_ratio))", TARGET("120"), AT("target.value"), "at most 100"},
	        {"quantile_over_time(0.9, a_ratio[5m])", TARGET("2"), AT("target.value"), "at most 1"},
	        {"{__name__=\"a_ratio\"}", TARGET("2"), AT("target.value"), "at most 1"},
	        {"avg({\"a_ratio\"})", TARGET("2"), AT("target.value"), "at most 1"},
	        {"avg(vllm:kv_cache_usage_perc)", TARGET("80"), AT("target.value"), "at most 1"},
	        {"clamp_max(sum(x), 5)", TARGET("5"), AT("target.value"), "at most 5"},
	        {"clamp(sum(x), 1, 5)", TARGET("0.5"), AT("target.value"),
	         "always exceeded, because the value is at least 1"},
	        {"sum(x) < 5", TARGET("7"), AT("target.value"), "at most 5"},
	        {"clamp_min(sum(x), 3)", MARKS("9", "2"), AT("watermarks.low"), "at least 3: nothing scales down"},
	        {"clamp_min(sum(x), 3)", MARKS("9", "4"), NULL, NULL},
	        {"clamp_min(sum(x), 3)", MARKS("9", "2") ", onMissing: Zero", NULL, NULL},
	        {"clamp(sum(x), 1, 5)", TARGET("0.5") ", onMissing: Zero", NULL, NULL},
	        {"clamp(sum(x), 1, 5)", TARGET("7") ", onMissing: Zero", AT("target.value"), "at most 5"},
	        {"clamp_max(sum(x), -2)", TARGET("1") ", onMissing: Zero", AT("target.value"), "at most 0"},
	        {"clamp_max(sum(x), 5)", "target: {type: AverageValue, value: \"6\"}", AT("target.value"), "at most 5"},
	        {"clamp_max(sum(x), 5)", "target: {type: AverageValue, value: \"4\"}", NULL, NULL},
	        {"sum(DCGM_FI_PROF_SM_ACTIVE)", TARGET("7"), NULL, NULL},
	        {"a_ratio", TARGET("7") ", series: Sum", NULL, NULL},
	        {"a_ratio + b", TARGET("7"), NULL, NULL},
	        {"a_ratio / b_ratio", TARGET("7"), NULL, NULL},
	        {"a_ratio or b", TARGET("7"), NULL, NULL},
	        {"rate(a_ratio[5m])", TARGET("7"), NULL, NULL},
	};
	for (size_t i = 0; i < N(rows); i++) {
		static struct schema_errors w;
		lint_query(rows[i].query, rows[i].rest, &w);
		if (w.n != (rows[i].path ? 1u : 0u))
			fail_msg("%s, %s: %zu warnings: %s", rows[i].query, rows[i].rest, w.n,
			         w.n ? w.items[0].message : "");
		if (!rows[i].path)
			continue;
		assert_string_equal(w.items[0].path, rows[i].path);
		if (!strstr(w.items[0].message, rows[i].says))
			fail_msg("%s: %s", rows[i].query, w.items[0].message);
	}
	static const struct {
		const char *query, *above, *says;
		const char *on_missing;
	} activations[] = {
	        {"avg(DCGM_FI_PROF_SM_ACTIVE)", "5", "5 is never exceeded, because the value is at most 1", "Hold"},
	        {"clamp_min(sum(x), 1)", "0", "0 is always exceeded, because the value is at least 1", "Hold"},
	        {"clamp_min(sum(x), 1)", "0", NULL, "Zero"},
	        {"clamp_min(sum(x), 1)", "-1", "-1 is always exceeded, because the value is at least 0", "Zero"},
	        {"avg(DCGM_FI_PROF_SM_ACTIVE)", "0.05", NULL, "Hold"},
	        {"sum(x)", "5", NULL, "Hold"},
	};
	for (size_t i = 0; i < N(activations); i++) {
		static struct schema_errors w;
		char rest[512];
		snprintf(rest, sizeof rest,
		         "  signals: [{name: q, query: '%s', onMissing: %s, "
		         "target: {type: AverageValue, value: \"0.5\"}}]\n"
		         "  idle: {after: 5m, activation: {signal: q, above: \"%s\"}}\n",
		         activations[i].query, activations[i].on_missing, activations[i].above);
		lint(rest, &w);
		if (w.n != (activations[i].says ? 1u : 0u))
			fail_msg("%s: %zu warnings: %s", rest, w.n, w.n ? w.items[0].message : "");
		if (!activations[i].says)
			continue;
		assert_string_equal(w.items[0].path, "spec.idle.activation.above");
		if (!strstr(w.items[0].message, activations[i].says))
			fail_msg("%s: %s", rest, w.items[0].message);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(mistakes_are_found),
	        cmocka_unit_test(correct_queries_give_no_warning),
	        cmocka_unit_test(settings_against_each_other_are_found),
	        cmocka_unit_test(targets_that_no_cluster_has_are_found),
	        cmocka_unit_test(places_are_those_of_the_file),
	        cmocka_unit_test(every_family_of_the_exporter_is_known),
	        cmocka_unit_test(name_of_4_9_is_mentioned_once_per_policy),
	        cmocka_unit_test(words_are_distinguished),
	        cmocka_unit_test(objective_wants_behavior_open),
	        cmocka_unit_test(query_that_prometheus_refuses_is_an_error),
	        cmocka_unit_test(every_mistake_of_a_query_is_reported),
	        cmocka_unit_test(check_accepts_what_prometheus_accepts),
	        cmocka_unit_test(odd_matcher_is_a_warning),
	        cmocka_unit_test(other_servers_accept_more),
	        cmocka_unit_test(nan_without_traffic_is_found),
	        cmocka_unit_test(mark_outside_of_the_range_of_its_query_is_found),
	};
	return cmocka_run_group_tests_name("lint", tests, NULL, NULL);
}
