// SPDX-License-Identifier: Apache-2.0
// Goal: a query on the names of dcgm-exporter 4.8 is completed by what other exporters call the same, and stays valid.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "insight/gpu_names.h"
#include "insight/gpu_use_query.h"
#include "insight/verdict.h"
#include "promql/promql.h"
#include "promql/similar.h"
#include "promql/syntax.h"

#define ALL   GPU_NAMES_ALL
#define NEW   (1U << GPU_NAMES_4_9)
#define AMD   (1U << GPU_NAMES_AMD)
#define INTEL (1U << GPU_NAMES_INTEL)

static void selectors_are_completed(void **state)
{
	static const struct {
		unsigned set;
		const char *query, *want; // want: a part of the result
	} rows[] = {
	        {NEW, "sum(DCGM_FI_DEV_FB_USED)", "sum((DCGM_FI_DEV_FB_USED or DCGM_FI_DEV_FB_USED_BYTES / 1048576))"},
	        {NEW, "DCGM_FI_DEV_GPU_UTIL{GPU_I_ID=\"\"}",
	         "(DCGM_FI_DEV_GPU_UTIL{GPU_I_ID=\"\"} or DCGM_FI_DEV_GPU_UTIL_RATIO{GPU_I_ID=\"\"} / 0.01)"},
	        {NEW, "max_over_time(DCGM_FI_DEV_GPU_UTIL[5m]) > 1",
	         "max_over_time((DCGM_FI_DEV_GPU_UTIL or DCGM_FI_DEV_GPU_UTIL_RATIO / 0.01)[5m:15s]) > 1"},
	        {NEW, "rate(DCGM_FI_DEV_GPU_UTIL[2h] offset 1h)",
	         "rate((DCGM_FI_DEV_GPU_UTIL or DCGM_FI_DEV_GPU_UTIL_RATIO / 0.01)[2h:30s] offset 1h)"},
	        {NEW, "DCGM_FI_DEV_GPU_UTIL offset 300s and up",
	         "last_over_time((DCGM_FI_DEV_GPU_UTIL or DCGM_FI_DEV_GPU_UTIL_RATIO / 0.01)[1s:1s] offset 300s) and "
	         "up"},
	        {NEW, "DCGM_FI_DEV_GPU_UTIL[1h:1m]",
	         "(DCGM_FI_DEV_GPU_UTIL or DCGM_FI_DEV_GPU_UTIL_RATIO / 0.01)[1h:1m]"},
	        {NEW, "DCGM_FI_DEV_FB_USED{GPU_I_ID!=\"\"}", "or DCGM_FI_DEV_FB_USED_BYTES{GPU_I_ID!=\"\"} / 1048576"},
	        {AMD, "DCGM_FI_DEV_FB_USED{pod!=\"\"}", "{__name__=~\"(amd_)?gpu_used_vram\",pod!=\"\"},\"UUID\""},
	        {AMD, "DCGM_FI_DEV_POWER_USAGE",
	         "{__name__=~\"(amd_)?gpu_package_power\"} or {__name__=~\"(amd_)?gpu_power_usage\"},"},
	        {INTEL, "DCGM_FI_DEV_FB_USED{exported_pod=\"\",pod!~\"a|b\"}",
	         "xpum_memory_used_bytes{sub_dev!=\"\",kube_pod=\"\",pod!~\"a|b\"}"},
	        {INTEL, "DCGM_FI_DEV_FB_FREE",
	         "xpum_memory_used_bytes{sub_dev=\"\"} / (xpum_memory_ratio > 0) - xpum_memory_used_bytes"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf out;
		struct err e;
		buf_init(&out, PROMQL_QUERY_BYTES_MAX);
		assert_int_equal(gpu_names_complete(&out, rows[i].query, rows[i].set, &e), 0);
		if (!strstr(buf_str(&out), rows[i].want))
			fail_msg("%s: got %s, want %s in it", rows[i].query, buf_str(&out), rows[i].want);
		buf_done(&out);
	}
}

static void queries_without_other_names_stay(void **state)
{
	static const struct {
		unsigned set;
		const char *query;
	} rows[] = {
	        {0, "avg_over_time(DCGM_FI_DEV_FB_USED[5m])"},
	        {AMD | INTEL, "DCGM_FI_DEV_FB_USED{GPU_I_ID!=\"\"}"}, // neither has instances
	        {ALL, "rate(node_cpu_seconds_total[5m]) # DCGM_FI_DEV_FB_USED"},
	        {ALL, "label_replace(up, \"a\", \"DCGM_FI_DEV_FB_USED\", \"\", \"\")"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf out;
		struct err e;
		buf_init(&out, PROMQL_QUERY_BYTES_MAX);
		assert_int_equal(gpu_names_complete(&out, rows[i].query, rows[i].set, &e), 0);
		char *inner = strstr(buf_str(&out), " or ");
		assert_null(inner);
		buf_done(&out);
	}
}

// All measures of diagnose together are short enough, so any of them are.
static void every_query_is_valid_when_completed(void **state)
{
	struct buf query, out;
	struct err e;
	size_t measures = 0;
	(void)state;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	buf_init(&out, PROMQL_QUERY_BYTES_MAX);
	for (int i = 0; i < (int)MEASURE__COUNT + (int)GPU_MEASURE__COUNT + (int)GPU_IDLE__COUNT; i++) {
		const struct gpu_use_parts parts = {.label = "label_team"};
		struct promql_value v;
		size_t at, len;
		buf_reset(&query);
		buf_reset(&out);
		if (i < MEASURE__COUNT)
			verdict_query_measure(&query, (enum verdict_measure)i, 300);
		else if (i < (int)MEASURE__COUNT + (int)GPU_MEASURE__COUNT)
			gpu_use_query(&query, (enum gpu_measure)(i - MEASURE__COUNT), &parts, 360);
		else
			gpu_idle_query(&query, (enum gpu_idle)(i - (int)MEASURE__COUNT - (int)GPU_MEASURE__COUNT), 1800,
			               86400, "job=~\"dcgm-exporter|gpuscale-exporter\"", &e);
		if (gpu_names_complete(&out, buf_str(&query), ALL, &e) < 0)
			fail_msg("query %d: %s", i, e.msg);
		struct promql_syntax s = {.query = buf_str(&out)};
		if (promql_syntax_read(&s, &v, &at, &len, &e) < 0)
			fail_msg("query %d: %s at %s", i, e.msg, buf_str(&out) + at);
		measures += i < MEASURE__COUNT ? out.len + FUSE_BYTES_EACH : 0;
	}
	assert_true(measures < PROMQL_QUERY_BYTES_MAX);
	buf_done(&query);
	buf_done(&out);
}

static void result_has_a_limit(void **state)
{
	struct buf out;
	struct err e;
	(void)state;
	buf_init(&out, 100);
	assert_int_equal(gpu_names_complete(&out, "DCGM_FI_DEV_FB_USED{a=\"b\"}", ALL, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(selectors_are_completed),
	        cmocka_unit_test(queries_without_other_names_stay),
	        cmocka_unit_test(every_query_is_valid_when_completed),
	        cmocka_unit_test(result_has_a_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
