// SPDX-License-Identifier: Apache-2.0
// Goal of this test: gpuscale_gpu_health carries the worst finding about a GPU, and each row of the shared table can be
// that finding.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/device.h"
#include "exporter/health_policy.h"
#include "exporter/page/render_page.h"
#include "exporter/xid.h"

#define NOW_MS 1700000000000LL

static void verdict_is(const struct health_policy *p, const struct device_sample *s, const struct xid_count *x,
                       size_t n, enum health_action action, const char *reason)
{
	struct health_verdict v;
	health_verdict_of(p, s, x, n, NOW_MS, &v);
	assert_string_equal(v.reason, reason);
	assert_int_equal(v.action, action);
}

static void every_condition_is_a_verdict(void **state)
{
	(void)state;
	const size_t n = health_n_conditions;
	const struct health_condition *rows = health_conditions;
	struct health_policy p;
	health_policy_init(&p);
	verdict_is(&p, &(struct device_sample){0}, NULL, 0, HEALTH_IGNORE, "Healthy");
	verdict_is(&p, &(struct device_sample){.lost = true}, NULL, 0, HEALTH_DRAIN_REBOOT, "GPULost");
	int seen = 0;
	for (size_t i = 0; i < n; i++) {
		struct device_sample s = {0};
		enum field f = rows[i].family ? family_find(rows[i].family) : FIELD__COUNT;
		if (f == FIELD__COUNT)
			continue; // derived from the list of GPUs
		seen++;
		sample_set_i64(&s, f, 0);
		verdict_is(&p, &s, NULL, 0, HEALTH_IGNORE, "Healthy");
		sample_set_i64(&s, f, (int64_t)rows[i].value + (rows[i].compare == HEALTH_ABOVE));
		verdict_is(&p, &s, NULL, 0, rows[i].action, rows[i].reason);
	}
	assert_true(seen >= 9);
}

static void every_xid_is_judged_by_its_row(void **state)
{
	(void)state;
	const size_t n = health_n_xids;
	const struct health_xid *rows = health_xids;
	struct health_policy p;
	health_policy_init(&p);
	for (size_t i = 0; i < n; i++) {
		char reason[32];
		struct xid_count x = {.code = rows[i].code, .count = rows[i].min_count, .last_wall_ms = NOW_MS - 1000};
		bool ignored = rows[i].action == HEALTH_IGNORE;
		snprintf(reason, sizeof reason, "XID%d", (int)rows[i].code);
		verdict_is(&p, &(struct device_sample){0}, &x, 1, rows[i].action, ignored ? "Healthy" : reason);
		if (rows[i].min_count > 1) {
			x.count--;
			verdict_is(&p, &(struct device_sample){0}, &x, 1, HEALTH_WATCH, reason);
		}
		x = (struct xid_count){.code = rows[i].code, .count = 9, .last_wall_ms = NOW_MS - p.since_ms - 1};
		verdict_is(&p, &(struct device_sample){0}, &x, 1, HEALTH_IGNORE, "Healthy");
		x = (struct xid_count){.code = rows[i].code}; // a code that starts at 0
		verdict_is(&p, &(struct device_sample){0}, &x, 1, HEALTH_IGNORE, "Healthy");
	}
	struct xid_count other = {.code = XID_CODE_OTHER, .count = 1, .last_wall_ms = NOW_MS};
	verdict_is(&p, &(struct device_sample){0}, &other, 1, HEALTH_WATCH, "XIDOther");
}

static void worst_finding_wins(void **state)
{
	(void)state;
	struct health_policy p;
	struct device_sample s = {0};
	const struct xid_count x[] = {{63, 1, NOW_MS}, {48, 1, NOW_MS}, {95, 1, NOW_MS}, {13, 1, NOW_MS}};
	health_policy_init(&p);
	verdict_is(&p, &s, x, 4, HEALTH_DRAIN_RESET, "XID48"); // the first of its action
	sample_set_i64(&s, FIELD_ROW_REMAP_PENDING, 1);
	verdict_is(&p, &s, x, 4, HEALTH_DRAIN_RESET, "XID48");
	sample_set_i64(&s, FIELD_ECC_DBE_VOL, 1);
	verdict_is(&p, &s, x, 4, HEALTH_DRAIN_RESET, "UncorrectableEcc"); // a condition before an XID
	sample_set_i64(&s, FIELD_ROW_REMAP_FAILURE, 1);
	verdict_is(&p, &s, x, 4, HEALTH_REPLACE, "RowRemapFailure");
}

static void page_has_one_series_for_each_gpu(void **state)
{
	(void)state;
	struct err e;
	struct health_policy p;
	struct render_page r;
	struct buf out;
	struct xid_store *xids = xid_store_new(&e);
	struct device devices[3] = {{.index = 0, .uuid = "GPU-a"},
	                            {.index = 0, .uuid = "GPU-a", .mig_id = "1"},
	                            {.index = 1, .uuid = "GPU-b"}};
	struct device_sample samples[3] = {{0}};
	health_policy_init(&p);
	xid_store_count(xids, "GPU-b", 79, NOW_MS);
	sample_set_i64(&samples[0], FIELD_CLOCKS_EVENT_REASONS, 0x40);
	const struct render_page_options o = {.hostname_label = "Hostname", .hostname = "", .xids = xids, .health = &p};
	const struct sampler_round round = {
	        .devices = devices, .samples = samples, .n = 3, .driver_version = "", .wall_ms = NOW_MS};
	render_page_init(&r, &o);
	buf_init(&out, 1024 * 1024);
	render_page_round(&r, &round, &out);
	const char *at = strstr(buf_str(&out), "# HELP gpuscale_gpu_health ");
	assert_non_null(at);
	assert_string_equal(
	        at, "# HELP gpuscale_gpu_health 1 if the GPU is healthy, 0 if it needs the action of its worst "
	            "finding.\n# TYPE gpuscale_gpu_health gauge\n"
	            "gpuscale_gpu_health{gpu=\"0\",UUID=\"GPU-a\",action=\"watch\",reason=\"HwThermalSlowdown\"} 1\n"
	            "gpuscale_gpu_health{gpu=\"1\",UUID=\"GPU-b\",action=\"drain-reboot\",reason=\"XID79\"} 0\n");
	render_page_done(&r);
	buf_done(&out);
	xid_store_free(xids);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_condition_is_a_verdict),
	        cmocka_unit_test(every_xid_is_judged_by_its_row),
	        cmocka_unit_test(worst_finding_wins),
	        cmocka_unit_test(page_has_one_series_for_each_gpu),
	};
	return cmocka_run_group_tests_name("exporter_health", tests, NULL, NULL);
}
