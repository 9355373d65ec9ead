// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a page of metrics is read back as it was meant, and what it says about health is judged by the
// tables. The commands as programs: test/integration/golden/run-exporter-commands.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/cmd/exporter_cmd.h"

#define WALL_MS INT64_C(1700000000000)
#define GPU0                                                                                                           \
	"gpu=\"0\",UUID=\"GPU-a\",pci_bus_id=\"00000000:04:00.0\",device=\"nvidia0\",modelName=\"M \\\"x\\\\n\\\"\""
#define XID(code, count, last)                                                                                         \
	"gpuscale_gpu_xid_errors_total{gpu=\"0\",UUID=\"GPU-a\",xid=\"" code "\"} " count "\n"                         \
	"gpuscale_gpu_xid_last_timestamp_seconds{gpu=\"0\",UUID=\"GPU-a\",xid=\"" code "\"} " last "\n"

static struct page_view *read_view(const char *text)
{
	struct err e = {.kind = ERR_NONE};
	struct page_view *v = page_view_new(text, strlen(text), &e);
	if (!v)
		fail_msg("%s", e.msg);
	return v;
}

static void processes_that_cannot_be_shown_are_counted(void **state)
{
	(void)state;
	struct page_view *v = read_view("DCGM_FI_DEV_GPU_UTIL{" GPU0 "} 42\n"
	                                "gpuscale_gpu_process_memory_bytes{" GPU0 ",pid=\"7\",process=\"a\"} 1048576\n"
	                                "gpuscale_gpu_process_memory_bytes{" GPU0 ",pid=\"8\",process=\"b\"} 1e18\n"
	                                "gpuscale_gpu_process_memory_bytes{" GPU0 ",pid=\"9\",process=\"c\"} NaN\n");
	assert_int_equal(v->n, 1);
	assert_int_equal(v->n_processes, 1);
	assert_string_equal(v->processes[0].pid, "7");
	assert_int_equal(v->processes_left_out, 2);
	page_view_free(v);
}

static void page_is_read_back(void **state)
{
	(void)state;
	struct page_view *v =
	        read_view("# HELP x y\n\n"
	                  "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-b\",namespace=\"n\",pod=\"p\"} 5 1700000000000\n"
	                  "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-b\",namespace=\"n\",pod=\"q\"} 5\n"
	                  "DCGM_FI_DEV_FB_USED{gpu=\"1\",UUID=\"GPU-b\",namespace=\"n\",pod=\"p\"} 7\n"
	                  "DCGM_FI_DEV_GPU_UTIL{" GPU0 ",exported_namespace=\"m\",exported_pod=\"r\"} 42\n"
	                  "DCGM_FI_DEV_GPU_UTIL{" GPU0 ",GPU_I_PROFILE=\"1g.10gb\",GPU_I_ID=\"3\"} 1\n"
	                  "DCGM_FI_PROF_SM_ACTIVE{" GPU0 "} 0.5\n"
	                  "DCGM_FI_DEV_GPU_TEMP{" GPU0 "} NaN\n"
	                  "go_goroutines 12\n"
	                  "gpuscale_exporter_devices{state=\"lost\"} 1\n"
	                  "gpuscale_exporter_devices{state=\"missing\"} 2\n"
	                  "gpuscale_exporter_up 1\ngpuscale_exporter_sample_age_seconds 0.25\n");
	double value;
	assert_int_equal(v->n, 3);
	assert_string_equal(v->gpus[0].device.uuid, "GPU-a");
	assert_string_equal(v->gpus[0].device.model, "M \"x\\n\"");
	assert_string_equal(v->gpus[0].device.node, "nvidia0");
	assert_string_equal(v->gpus[0].pods, "m/r");
	assert_true(page_view_get(&v->gpus[0], "DCGM_FI_DEV_GPU_UTIL", &value));
	assert_true(value == 42);
	assert_true(page_view_get(&v->gpus[0], "DCGM_FI_PROF_SM_ACTIVE", &value));
	assert_false(page_view_get(&v->gpus[0], "DCGM_FI_DEV_GPU_TEMP", &value));
	assert_false(page_view_get(&v->gpus[0], "NO_SUCH", &value));
	assert_string_equal(v->gpus[1].device.mig_id, "3");
	assert_string_equal(v->gpus[1].device.mig_profile, "1g.10gb");
	assert_int_equal(v->gpus[2].device.index, 1);
	assert_string_equal(v->gpus[2].pods, "n/p,n/q");
	assert_true(v->has_up && v->up && v->has_age && v->age_s == 0.25);
	assert_int_equal(v->lost, 1);
	assert_int_equal(v->missing, 2);
	page_view_free(v);
}

static void invalid_page_is_refused(void **state)
{
	(void)state;
	static const char *const texts[] = {
	        "<html>",
	        "a{b=\"c\"",
	        "a{b=\"c\"}",
	        "a{b} 1",
	        "a{b=c} 1",
	        "a{b=\"c\";d=\"e\"} 1",
	        "a x",
	        " 1",
	        "{} 1",
	        "a{b=\"\\",
	        // Numbers on which the judgement of health stands: what they are not is not 0.
	        "gpuscale_exporter_devices{state=\"lost\"} NaN",
	        "gpuscale_exporter_devices{state=\"missing\"} -1",
	        "gpuscale_exporter_devices{state=\"lost\"} 1e300",
	        ("gpuscale_gpu_xid_errors_total{" GPU0 ",xid=\"79\"} +Inf"),
	        ("gpuscale_gpu_xid_errors_total{" GPU0 ",xid=\"79\"} NaN"),
	        ("gpuscale_gpu_xid_last_timestamp_seconds{" GPU0 ",xid=\"79\"} 1e300"),
	};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct err e = {.kind = ERR_NONE};
		char line[512];
		int len = snprintf(line, sizeof line, "%s\n", texts[i]);
		if (page_view_new(line, (size_t)len, &e))
			fail_msg("read: %s", texts[i]);
		assert_int_equal(e.kind, ERR_INPUT);
		assert_non_null(strstr(e.msg, "line 1"));
	}
}

static void page_that_was_cut_off_is_refused(void **state)
{
	(void)state;
	static const char page[] = "a 1\nDCGM_FI_DEV_GPU_UTIL{" GPU0 "} 98\n";
	struct err e = {.kind = ERR_NONE};
	page_view_free(read_view(page));
	for (size_t len = 5; len < sizeof page - 2;
	     len++) { // a truncated number is another number, and a sample needs a value
		assert_null(page_view_new(page, len, &e));
		assert_string_equal(e.msg, "not a page of metrics: line 2 is not terminated, the page is truncated");
	}
}

static void page_without_health_data_has_none(void **state)
{
	(void)state;
	static const char *const ups[] = {"0", "NaN", "2", "+Inf", "-1"};
	for (size_t i = 0; i < sizeof ups / sizeof ups[0]; i++) {
		char page[512];
		snprintf(page, sizeof page,
		         "gpuscale_gpu_up{" GPU0 "} %s\ngpuscale_exporter_up %s\n"
		         "gpuscale_exporter_samples_dropped %s\ngpuscale_exporter_sample_age_seconds %s\n",
		         ups[i], ups[i], i == 0 ? "NaN" : ups[i],
		         i == 0   ? "1e308"
		         : i == 2 ? "NaN"
		                  : ups[i]);
		struct page_view *v = read_view(page);
		assert_true(v->gpus[0].lost);
		assert_true(v->has_up && !v->up);
		assert_true(v->dropped);
		assert_true(v->has_age && v->age_s == PAGE_VIEW_AGE_MAX_S);
		page_view_free(v);
	}
}

static void many_pods_are_cut(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 1024 * 1024);
	for (int i = 0; i < 200; i++)
		buf_printf(&b, "DCGM_FI_DEV_GPU_UTIL{" GPU0 ",namespace=\"n\",pod=\"p%d\"} 5\n", i);
	struct page_view *v = read_view(b.data);
	size_t len = strlen(v->gpus[0].pods);
	assert_true(len < PAGE_VIEW_PODS_BYTES);
	assert_string_equal(v->gpus[0].pods + len - 4, ",...");
	page_view_free(v);
	buf_done(&b);
}

// The findings as "action reason; ".
static void classify(const struct health_policy *p, const char *page, const char *want)
{
	static const char util[] = "DCGM_FI_DEV_GPU_UTIL{" GPU0 "} 0\n";
	struct health_finding *f = calloc(HEALTH_FINDINGS_MAX, sizeof *f);
	struct buf text, got;
	assert_non_null(f);
	buf_init(&text, 64 * 1024);
	buf_init(&got, 64 * 1024);
	buf_puts(&text, util);
	buf_puts(&text, page);
	struct page_view *v = read_view(text.data);
	size_t n = health_classify(p, v, WALL_MS, f, HEALTH_FINDINGS_MAX);
	for (size_t i = 0; i < n; i++)
		buf_printf(&got, "%s %s; ", health_action_name(f[i].action), f[i].reason);
	if (strcmp(buf_str(&got), want) != 0)
		fail_msg("%sgot:  %s\nwant: %s", page, buf_str(&got), want);
	page_view_free(v);
	buf_done(&text);
	buf_done(&got);
	free(f);
}

static void xids_and_conditions_are_judged_by_the_tables(void **state)
{
	(void)state;
	static const struct {
		const char *page, *want;
	} cases[] = {
	        {"", ""},
	        {XID("79", "1", "1699999999"), "drain-reboot XID79; "},
	        {XID("79", "0", "0"), ""},
	        {XID("79", "1", "1699996399"), ""}, // an hour and a second ago
	        {XID("79", "1", "1699996401"), "drain-reboot XID79; "},
	        {XID("79", "1", "1700000100"), "drain-reboot XID79; "}, // a clock that is ahead
	        {XID("13", "9", "1699999999"), "restart-app XID13; "},
	        {XID("43", "9", "1699999999"), ""},
	        {XID("109", "2", "1699999999"), "watch XID109; "},
	        {XID("109", "3", "1699999999"), "drain XID109; "},
	        {XID("999", "1", "1699999999"), "watch XID999; "},
	        {XID("other", "1", "1699999999"), "watch XIDOther; "},
	        {XID("63", "1", "1699999999") XID("48", "1", "1699999999") XID("64", "1", "1699999999"),
	         "replace XID64; drain-reset XID48; reset-idle XID63; "},
	        {"DCGM_FI_DEV_ROW_REMAP_FAILURE{" GPU0 "} 1\n", "replace RowRemapFailure; "},
	        {"DCGM_FI_DEV_ROW_REMAP_FAILURE{" GPU0 "} 0\n", ""},
	        {"DCGM_FI_DEV_ROW_REMAP_PENDING{" GPU0 "} 1\n", "reset-idle RowRemapPending; "},
	        {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{" GPU0 "} 2\n", "drain-reset UncorrectableEcc; "},
	        {"gpuscale_gpu_recovery_action{" GPU0 "} 0\n", ""},
	        {"gpuscale_gpu_recovery_action{" GPU0 "} 2\n", "drain-reboot RecoveryAction; "},
	        {"gpuscale_gpu_recovery_action{" GPU0 "} 5\n", "drain RecoveryAction; "},
	        {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS{" GPU0 "} 193\n", "watch HwThermalSlowdown; watch HwPowerBrake; "},
	        {"DCGM_FI_DEV_CLOCKS_EVENT_REASONS{" GPU0 "} 5\n", ""},
	        {"gpuscale_exporter_devices{state=\"lost\"} 1\n", "drain-reboot GPULost; "},
	        {"gpuscale_gpu_up{gpu=\"0\",UUID=\"GPU-a\"} 0\ngpuscale_exporter_devices{state=\"lost\"} 1\n",
	         "drain-reboot GPULost; "},
	        {"gpuscale_gpu_up{gpu=\"0\",UUID=\"GPU-a\"} 1\n", ""},
	        {"gpuscale_exporter_devices{state=\"missing\"} 1\n", "drain-reboot GPUMissing; "},
	};
	struct health_policy p;
	health_policy_init(&p);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		classify(&p, cases[i].page, cases[i].want);
}

#define LAST(labels, code)         "DCGM_FI_DEV_XID_ERRORS{" GPU0 labels ",err_code=\"" code "\"} " code "\n"
#define COUNT(labels, code, count) "DCGM_EXP_XID_ERRORS_COUNT{" GPU0 labels ",xid=\"" code "\"} " count "\n"

static void xids_of_dcgm_exporter_are_judged_without_times(void **state)
{
	(void)state;
	static const struct {
		const char *page, *want;
		size_t unknown; // GPUs whose XIDs are not known
	} cases[] = {
	        {"", "", 1},
	        {LAST("", "0"), "", 0},
	        {LAST("", "79"), "drain-reboot XID79; ", 0},
	        {LAST("", "95"), "drain-reset XID95; ", 0},
	        {LAST("", "94"), "reset-idle XID94; ", 0},
	        {LAST("", "45"), "", 0},
	        {COUNT("", "48", "2"), "drain-reset XID48; ", 0},
	        {COUNT("", "48", "0"), "", 0},
	        {COUNT("", "109", "3") LAST("", "109"), "drain XID109; ", 0},
	        {LAST("", "45") COUNT("", "79", "1") COUNT("", "45", "4"), "drain-reboot XID79; ", 0},
	        // Series of several pods and instances.
	        {LAST(",pod=\"a\"", "79") LAST(",pod=\"b\"", "79"), "drain-reboot XID79; ", 0},
	        {LAST(",pod=\"a\"", "79") LAST(",pod=\"b\"", "45"), "drain-reboot XID79; ", 0},
	        {LAST(",GPU_I_ID=\"3\"", "48"), "drain-reset XID48; ", 0},
	        // Values that DCGM writes when it has none.
	        {LAST("", "9223372036854775794"), "", 1},
	        {LAST("", "NaN"), "", 1},
	        {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{" GPU0 "} 9223372036854775794\n", "", 1},
	        {"DCGM_FI_DEV_ROW_REMAP_FAILURE{" GPU0 "} 9223372036854775794\n", "", 1},
	        {"DCGM_FI_DEV_XID_ERRORS 79\nDCGM_FI_PROF_SM_ACTIVE 0\n", "", 1}, // of no GPU
	        // A page of this exporter has times, and its counters also say that nothing occurred.
	        {LAST("", "79") XID("79", "1", "1699990000"), "", 0},
	        {LAST("", "79") "gpuscale_exporter_up 1\n", "", 1},
	        // One of two GPUs.
	        {LAST("", "0") "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-b\"} 0\n", "", 1},
	        {COUNT("", "13", "1") "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-b\"} 0\n", "restart-app XID13; ", 0},
	        // No driver but NVIDIA's has XIDs.
	        {LAST("", "0") "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"PCI-b\",device=\"card1\"} 0\n", "", 0},
	};
	struct health_policy p;
	health_policy_init(&p);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char page[2048];
		snprintf(page, sizeof page, "DCGM_FI_DEV_GPU_UTIL{" GPU0 "} 0\n%s", cases[i].page);
		classify(&p, cases[i].page, cases[i].want);
		struct page_view *v = read_view(page);
		if (v->unknown[PAGE_KNOWN_XIDS] != cases[i].unknown)
			fail_msg("%sunknown: %zu", page, v->unknown[PAGE_KNOWN_XIDS]);
		page_view_free(v);
	}
}

static void instances_are_not_counted_as_gpus(void **state)
{
	(void)state;
	static const struct {
		const char *page;
		size_t want;
	} cases[] = {
	        {"DCGM_FI_DEV_FB_USED{" GPU0 "} 1\nDCGM_FI_DEV_FB_USED{" GPU0 ",GPU_I_ID=\"1\"} 1\n"
	         "DCGM_FI_DEV_FB_USED{" GPU0 ",GPU_I_ID=\"2\"} 1\n",
	         1},
	        // dcgm-exporter lists only the instances of a split GPU.
	        {"DCGM_FI_DEV_FB_USED{" GPU0 ",GPU_I_ID=\"1\"} 1\nDCGM_FI_DEV_FB_USED{" GPU0 ",GPU_I_ID=\"2\"} 1\n"
	         "DCGM_FI_DEV_FB_USED{gpu=\"1\",UUID=\"GPU-b\"} 1\n",
	         2},
	        {"DCGM_FI_DEV_FB_USED 1\n", 0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct page_view *v = read_view(cases[i].page);
		assert_int_equal(page_view_count(v), cases[i].want);
		page_view_free(v);
	}
}

static void file_replaces_rows(void **state)
{
	(void)state;
	static const char text[] =
	        "# site rules\n\n79, watch\n 94 , drain , 2 , seen, twice\r\n500,replace\nother, drain\n";
	struct health_policy p;
	struct buf errors;
	struct err e;
	health_policy_init(&p);
	buf_init(&errors, 4096);
	assert_int_equal(health_policy_parse(&p, "f", text, strlen(text), &errors, &e), 0);
	classify(&p, XID("79", "1", "1699999999"), "watch XID79; ");
	classify(&p, XID("94", "1", "1699999999"), "watch XID94; ");
	classify(&p, XID("94", "2", "1699999999"), "drain XID94; ");
	classify(&p, XID("500", "1", "1699999999"), "replace XID500; ");
	classify(&p, XID("501", "1", "1699999999"), "drain XID501; ");
	classify(&p, XID("48", "1", "1699999999"), "drain-reset XID48; ");

	static const char wrong[] = "x, drain\n79\n79, melt\n80, drain, 0\n81, drain, two\n";
	assert_int_equal(health_policy_parse(&p, "f", wrong, strlen(wrong), &errors, &e), -1);
	assert_string_equal(e.msg, "f: 5 errors");
	static const char *const want[] = {"f:1: the first", "f:2: the second", "f:3: the second", "f:4: the third",
	                                   "f:5: the third"};
	for (size_t i = 0; i < 5; i++)
		assert_non_null(strstr(buf_str(&errors), want[i]));
	assert_int_equal(health_policy_read(&p, "/nonexistent/p.csv", &errors, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	buf_done(&errors);
}

static void url_follows_the_listen_address(void **state)
{
	(void)state;
	static const struct {
		const char *listen, *want;
	} cases[] = {
	        {":9400", "http://127.0.0.1:9400/metrics"}, {"0.0.0.0:1", "http://127.0.0.1:1/metrics"},
	        {"[::]:2", "http://127.0.0.1:2/metrics"},   {"10.0.0.1:3", "http://10.0.0.1:3/metrics"},
	        {"[::1]:4", "http://[::1]:4/metrics"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char url[300];
		exporter_cmd_default_url(url, sizeof url, cases[i].listen);
		assert_string_equal(url, cases[i].want);
	}
}

static void tables_are_safe_for_their_readers(void **state)
{
	(void)state;
	struct page_view *v =
	        read_view("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",modelName=\"a,\\\"b\\\"\x1b[31m\"} 5.4\n"
	                  "DCGM_FI_DEV_GPU_UTIL{gpu=\"1\",UUID=\"GPU-b\",modelName=\"c\"} 100\n"
	                  "DCGM_FI_PROF_SM_ACTIVE{gpu=\"1\",UUID=\"GPU-b\"} 0.126\n"
	                  "gpuscale_gpu_sm_active_window_min{gpu=\"1\",UUID=\"GPU-b\"} 0.01\n"
	                  "gpuscale_gpu_sm_active_window_avg{gpu=\"1\",UUID=\"GPU-b\"} 0.5\n"
	                  "gpuscale_gpu_sm_active_window_max{gpu=\"1\",UUID=\"GPU-b\"} 0.98\n"
	                  "gpuscale_gpu_power_usage_window_avg{gpu=\"1\",UUID=\"GPU-b\"} 321.4\n"
	                  "gpuscale_gpu_power_usage_window_sum{gpu=\"1\",UUID=\"GPU-b\"} 1\n");
	struct exporter_options o = {.command = COMMAND_TOP, .output = OUTPUT_TABLE};
	struct buf out;
	buf_init(&out, 64 * 1024);
	gpu_table_put(&o, v, 1767225600123, true, &out);
	assert_string_equal(buf_str(&out), "GPU  MODEL          UTIL   SM\n"
	                                   "  0  a,\"b\"\\x1b[31m    5%    -\n"
	                                   "  1  c              100%  13%\n");
	buf_reset(&out);
	o.output = OUTPUT_CSV;
	o.command = COMMAND_LIST;
	gpu_table_put(&o, v, 1767225600123, true, &out);
	assert_string_equal(buf_str(&out), "gpu,uuid,mig_id,mig_profile,model,pci_bus_id,device,pods\n"
	                                   "0,GPU-a,,,\"a,\"\"b\"\"\\x1b[31m\",,,\n1,GPU-b,,,c,,,\n");
	buf_reset(&out);
	o.command = COMMAND_TOP; // a log of readings: the time of each, and one header
	gpu_table_put(&o, v, 1767225600123, true, &out);
	gpu_table_put(&o, v, 1767225601123, false, &out);
	assert_string_equal(
	        buf_str(&out),
	        "time,gpu,mig_id,model,temperature_celsius,power_watts,power_limit_watts,gpu_util_percent,"
	        "sm_active_percent,tensor_active_percent,dram_active_percent,memory_used_mib,memory_free_mib,pods,"
	        "sm_clock_mhz,sm_clock_max_mhz,memory_clock_mhz,throttle_reasons,ecc_corrected,ecc_uncorrectable,xids,"
	        "gpu_util_window_max_percent,sm_active_window_min_percent,sm_active_window_avg_percent,"
	        "sm_active_window_max_percent,power_window_min_watts,power_window_avg_watts,power_window_max_watts,"
	        "temperature_window_max_celsius\n"
	        "2026-01-01T00:00:00.123Z,0,,\"a,\"\"b\"\"\\x1b[31m\",,,,5,,,,,,,,,,,,,,,,,,,,,\n"
	        "2026-01-01T00:00:00.123Z,1,,c,,,,100,13,,,,,,,,,,,,,,1,50,98,,321,,\n"
	        "2026-01-01T00:00:01.123Z,0,,\"a,\"\"b\"\"\\x1b[31m\",,,,5,,,,,,,,,,,,,,,,,,,,,\n"
	        "2026-01-01T00:00:01.123Z,1,,c,,,,100,13,,,,,,,,,,,,,,1,50,98,,321,,\n");
	page_view_free(v);
	buf_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(processes_that_cannot_be_shown_are_counted),
	        cmocka_unit_test(page_is_read_back),
	        cmocka_unit_test(invalid_page_is_refused),
	        cmocka_unit_test(page_that_was_cut_off_is_refused),
	        cmocka_unit_test(page_without_health_data_has_none),
	        cmocka_unit_test(many_pods_are_cut),
	        cmocka_unit_test(xids_and_conditions_are_judged_by_the_tables),
	        cmocka_unit_test(xids_of_dcgm_exporter_are_judged_without_times),
	        cmocka_unit_test(instances_are_not_counted_as_gpus),
	        cmocka_unit_test(file_replaces_rows),
	        cmocka_unit_test(url_follows_the_listen_address),
	        cmocka_unit_test(tables_are_safe_for_their_readers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
