// SPDX-License-Identifier: Apache-2.0
// The mock's script and its physics.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "exporter/backend.h"
#include "exporter/mock/mock.h"
#include "exporter/xid.h"

static int parse(struct arena *a, const char *text, struct mock_script *s, struct buf *errors, struct err *e)
{
	arena_init(a, MOCK_SCRIPT_BYTES_MAX);
	buf_init(errors, 65536);
	return mock_script_parse(a, "m.yaml", text, strlen(text), s, errors, e);
}

static void script_is_decoded_with_its_defaults(void **state)
{
	(void)state;
	struct arena a;
	struct buf errors;
	struct mock_script s;
	struct err e;
	int rc = parse(&a,
	               "step: 5s\n"
	               "gpus:\n"
	               "- count: 2\n"
	               "- uuid: GPU-00000000-0000-0000-0000-00000000000a\n"
	               "  model: Tesla T4\n"
	               "  memoryMiB: 16384\n"
	               "  pod: p\n"
	               "  series: {DCGM_FI_DEV_GPU_UTIL: '0+10x9 90x20'}\n"
	               "workload:\n"
	               "  name: llama\n"
	               "  demand: {series: '1 2', step: 10s, timeScale: '5', scale: '0.5'}\n"
	               "  capacityPerReplica: 4\n"
	               "  replicas: {constant: 0}\n",
	               &s, &errors, &e);
	if (rc < 0)
		fail_msg("%s\n%s", e.msg, buf_str(&errors));
	assert_int_equal(s.n_devices, 3);
	assert_true(s.loop);
	assert_string_equal(s.gpus[0].model, "NVIDIA H200");
	assert_int_equal(s.gpus[0].memory_mib, 143771);
	assert_string_equal(s.gpus[1].model, "Tesla T4");
	assert_null(s.gpus[0].given.series[FIELD_GPU_UTIL]);
	assert_non_null(s.gpus[1].given.series[FIELD_GPU_UTIL]);
	assert_int_equal(s.gpus[1].given.series[FIELD_GPU_UTIL]->n, 31);
	assert_true(s.gpus[1].given.series[FIELD_GPU_UTIL]->step_ms == 5000);
	assert_true(s.has_workload);
	assert_string_equal(s.workload.namespace_, "default");
	assert_true(s.workload.replicas.has_constant);
	assert_true(s.workload.demand_series.step_ms == 2000);
	assert_true(s.workload.demand_series.points[1] == 1);
	buf_done(&errors);
	arena_done(&a);
}

static void script_errors_are_all_reported_with_their_position(void **state)
{
	(void)state;
#define WORKLOAD "gpus: [{}]\nworkload:\n  name: x\n  capacityPerReplica: 1\n"
	static const struct {
		const char *text, *want;
	} cases[] = {
	        {"gpus: [{modell: x}]\n", "m.yaml:1:9: gpus[0].modell:"},
	        {"gpus: [{series: {DCGM_FI_DEV_GPU_UTILS: '1'}}]\n", "did you mean \"DCGM_FI_DEV_GPU_UTIL\"?"},
	        {"gpus:\n- series:\n    DCGM_FI_DEV_GPU_UTIL: '1 zwei'\n",
	         "m.yaml:3:27: gpus[0].series.DCGM_FI_DEV_GPU_UTIL: "},
	        {"gpus: [{series: {DCGM_FI_DEV_GPU_UTIL: [1, 2]}}]\n", "a series is text"},
	        {"gpus: [{series: {DCGM_FI_DEV_GPU_UTIL: {cosine: {}}}}]\n", "cosine"},
	        {"gpus: [{series: [1]}]\n", "must be a map"},
	        {"gpus: [{count: 65}]\n", "gpus[0].count"},
	        {"gpus: [{count: 64}, {count: 64}, {count: 64}, {}]\n",
	         "193 GPUs and MIG instances, the ceiling is 192"},
	        {"gpus: [{count: 24, instances: [{profile: a, id: 1}, {profile: a, id: 2}, {profile: a, id: 3},"
	         " {profile: a, id: 4}, {profile: a, id: 5}, {profile: a, id: 6}, {profile: a, id: 7}]}, {}]\n",
	         "193 GPUs and MIG instances, the ceiling is 192"},
	        {"gpus: [{instances: [{profile: a, id: 1}, {profile: b, id: 1}]}]\n", "two instances have the same id"},
	        {"gpus: [{migId: '3', instances: [{profile: a, id: 1}]}]\n", "leave migId and migProfile out"},
	        {"gpus: [{instances: [{profile: a, id: 1, series: {DCGM_FI_DEV_GPU_UTI: '1'}}]}]\n",
	         "gpus[0].instances[0].series: no field"},
	        {"gpus: [{count: 2, uuid: GPU-1}]\n", "gpus[0].count: several GPUs"},
	        {"gpus: [{}]\nxids: [{at: 3s, gpu: 1, code: 48}]\n",
	         "m.yaml:2:22: xids[0].gpu: there are 1 GPUs, the last one is 0"},
	        {"gpus: [{}]\nlosses: [{at: 3s, gpu: 9}]\n", "losses[0].gpu: there are 1 GPUs"},
	        {"gpus: [{}]\nhangs: [{at: 3s, gpu: 0}, {at: 3s, gpu: 1}]\n", "hangs[1].gpu: there are 1 GPUs"},
	        {"gpus: [{}]\nthrottles: [{at: 3s, gpu: 0, reason: heat}]\n", "throttles[0].reason"},
	        {"gpus: [{}]\nleaks: [{at: 3s, gpu: 0}]\n", "leaks[0].mibPerHour"},
	        {"xids: []\n", "gpus"},
	        {WORKLOAD "  demand: {series: '1', csv: x}\n  replicas: {constant: 1}\n", "exactly one of csv, series"},
	        {WORKLOAD "  demand: {csv: x}\n  replicas: {constant: 1}\n", "name the column"},
	        {WORKLOAD "  demand: {series: '1'}\n  replicas: {}\n", "exactly one of url, file and constant"},
	        {WORKLOAD "  demand: {series: '1'}\n  replicas: {url: 'ftp://example'}\n", "http:// or https://"},
	        {WORKLOAD "  demand: {csv: /nonexistent.csv, column: x}\n  replicas: {constant: 1}\n",
	         "workload.demand.csv: cannot open /nonexistent.csv"},
	        {WORKLOAD "  demand: {series: ''}\n  replicas: {constant: 1}\n", "workload.demand.series"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct arena a;
		struct buf errors;
		struct mock_script s;
		struct err e;
		if (parse(&a, cases[i].text, &s, &errors, &e) == 0)
			fail_msg("accepted:\n%s", cases[i].text);
		assert_int_equal(e.kind, ERR_INPUT);
		if (!strstr(buf_str(&errors), cases[i].want))
			fail_msg("script:\n%serrors:\n%slack: %s", cases[i].text, buf_str(&errors), cases[i].want);
		buf_done(&errors);
		arena_done(&a);
	}
}

static void built_in_script_has_two_gpus(void **state)
{
	(void)state;
	struct arena a;
	struct buf errors;
	struct mock_script s;
	struct err e;
	arena_init(&a, MOCK_SCRIPT_BYTES_MAX);
	buf_init(&errors, 65536);
	if (mock_script_read(&a, NULL, &s, &errors, &e) < 0)
		fail_msg("%s\n%s", e.msg, buf_str(&errors));
	assert_int_equal(s.n_devices, 2);
	buf_done(&errors);
	arena_done(&a);
}

static void loop_closes_utilisation_is_demand_by_capacity(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, 1 << 20);
	struct mock_workload w = {.capacity_per_replica = 10, .idle_percent = 2};
	assert_int_equal(mock_series_parse(&a, "12x9 0x99", 1000, false, 1, &w.demand_series, NULL), 0);
	struct workload_state s = {0};

	workload_step(&w, &s, 1000, 2); // 12 of 20
	assert_true(fabs(s.utilization - 0.6) < 1e-9 && s.backlog == 0);
	workload_step(&w, &s, 2000, 4); // twice the replicas, half the utilisation
	assert_true(fabs(s.utilization - 0.3) < 1e-9);
	workload_step(&w, &s, 3000, 1); // 12 of 10: 2 wait
	assert_true(s.utilization == 1 && fabs(s.backlog - 2) < 1e-9);
	workload_step(&w, &s, 8000, 1); // 5 s more: 12 wait
	assert_true(s.utilization == 1 && fabs(s.backlog - 12) < 1e-9);
	workload_step(&w, &s, 10000, 2); // 24 arrive and 12 wait, 40 fit
	assert_true(fabs(s.utilization - 0.9) < 1e-9 && s.backlog == 0);
	workload_step(&w, &s, 12000, 2); // nothing to do
	assert_true(s.utilization == 0.02 && s.demand == 0);
	workload_step(&w, &s, 13000, 0); // no replicas
	assert_true(s.utilization == 0 && s.replicas == 0);
	arena_done(&a);
}

static void capacity_follows_amdahl_with_a_serial_fraction(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, 1 << 20);
	struct mock_workload w = {.capacity_per_replica = 10, .serial_ratio = 0.0252};
	assert_int_equal(mock_series_parse(&a, "34", 1000, true, 1, &w.demand_series, NULL), 0);
	struct workload_state s = {0};
	workload_step(&w, &s, 1000, 1);
	assert_true(s.capacity == 10);
	workload_step(&w, &s, 2000, 8); // 6.8 times as much
	assert_true(fabs(s.capacity - 68) < 0.01);
	workload_step(&w, &s, 3000, 8); // the queue of the first second is gone
	assert_true(fabs(s.utilization - 34 / s.capacity) < 1e-9 && s.backlog == 0);
	workload_step(&w, &s, 4000, 0);
	assert_true(s.capacity == 0 && s.utilization == 0);
	arena_done(&a);
}

static void demand_waits_without_replicas(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, 1 << 20);
	struct mock_workload w = {.capacity_per_replica = 10};
	assert_int_equal(mock_series_parse(&a, "3", 1000, true, 1, &w.demand_series, NULL), 0);
	struct workload_state s = {0};
	for (int t = 1; t <= 10; t++)
		workload_step(&w, &s, 1000.0 * t, 0);
	assert_true(fabs(s.backlog - 30) < 1e-9);
	for (int t = 11; t <= 15; t++)
		workload_step(&w, &s, 1000.0 * t, 1);
	assert_true(s.backlog == 0);
	arena_done(&a);
}

static void backlog_has_the_ceiling_it_was_given(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, 1 << 20);
	struct mock_workload w = {.capacity_per_replica = 10, .backlog_max = 25};
	assert_int_equal(mock_series_parse(&a, "30", 1000, true, 1, &w.demand_series, NULL), 0);
	struct workload_state s = {0};
	for (int t = 1; t <= 10; t++)
		workload_step(&w, &s, 1000.0 * t, 1);
	assert_true(s.backlog == 25);
	arena_done(&a);
}

static void smoothing_spreads_a_burst(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, 1 << 20);
	struct mock_workload w = {.capacity_per_replica = 10, .demand = {.smooth_ms = 10000}};
	assert_int_equal(mock_series_parse(&a, "100 0x8", 1000, true, 1, &w.demand_series, NULL), 0);
	struct workload_state s = {0};
	for (int t = 1; t <= 30; t++)
		workload_step(&w, &s, 1000.0 * t, 2);
	assert_true(fabs(s.demand - 10) < 1e-9);
	arena_done(&a);
}

static void readings_follow_the_utilisation(void **state)
{
	(void)state;
	const struct mock_gpu g = {.power_limit_watts = 700, .idle_power_watts = 100};
	struct gpu_state st = {0};
	struct device_sample idle = {0}, first = {0}, busy = {0};
	gpu_step(&g, 1000, &st, 0, 0, false, &idle);
	gpu_step(&g, 1000, &st, 1000, 1, true, &first);
	for (int t = 2; t <= 120; t++)
		gpu_step(&g, 1000, &st, 1000.0 * t, 1, true, &busy);
	assert_int_equal(idle.value[FIELD_FB_USED].i, 0);
	assert_true(busy.value[FIELD_FB_USED].i > 800);
	assert_int_equal(busy.value[FIELD_FB_USED].i + busy.value[FIELD_FB_FREE].i + busy.value[FIELD_FB_RESERVED].i,
	                 1000);
	assert_true(idle.value[FIELD_POWER_USAGE].f == 100 && busy.value[FIELD_POWER_USAGE].f == 700);
	assert_true(busy.value[FIELD_SM_ACTIVE].f == 1 && busy.value[FIELD_GPU_UTIL].i == 100);
	// The temperature lags behind.
	assert_true(first.value[FIELD_GPU_TEMP].i < 40 && busy.value[FIELD_GPU_TEMP].i > 70);
	// At full power it is the limit that holds the clocks down.
	assert_int_equal(busy.value[FIELD_POWER_VIOLATION].i, 120 * INT64_C(1000000000));
	assert_int_equal(idle.value[FIELD_POWER_VIOLATION].i, 0);
	// 700 W for 120 s are 84 kJ.
	assert_int_equal(busy.value[FIELD_TOTAL_ENERGY].i, 84000000);
	for (enum field f = 0; f < FIELD__COUNT; f++)
		assert_int_equal(sample_has(&busy, f), f != FIELD_XID_ERRORS);
}

static struct backend *make(const char *script, char *path, struct xid_store *xids)
{
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, script, strlen(script)), (ssize_t)strlen(script));
	close(fd);
	struct buf errors;
	struct err e;
	buf_init(&errors, 65536);
	struct backend *b = backend_mock_new(
	        &(struct backend_config){.mock_script = path, .xids = xids, .ret_errors = &errors}, &e);
	unlink(path);
	if (!b)
		fail_msg("%s\n%s", e.msg, buf_str(&errors));
	buf_done(&errors);
	assert_int_equal(b->ops->open(b, &e), 0);
	return b;
}

static void ready_replicas_hold_the_first_gpus(void **state)
{
	(void)state;
	char path[] = "/tmp/gpuscale-test-XXXXXX";
	struct xid_store *xids = xid_store_new(NULL);
	struct backend *b = make("gpus: [{count: 6}]\n"
	                         "workload:\n"
	                         "  name: llama\n  namespace: serving\n"
	                         "  demand: {series: '6'}\n"
	                         "  capacityPerReplica: 4\n"
	                         "  replicas: {constant: 2}\n"
	                         "  gpusPerReplica: 2\n",
	                         path, xids);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	assert_int_equal(b->ops->sample(b, 1000, 0, s, &e), 0);
	static const char *const pods[] = {"llama-0", "llama-0", "llama-1", "llama-1", "", ""};
	for (size_t i = 0; i < 6; i++) {
		assert_string_equal(s[i].owner.pod, pods[i]);
		assert_string_equal(s[i].owner.namespace_, pods[i][0] ? "serving" : "");
		assert_int_equal(s[i].value[FIELD_GPU_UTIL].i, pods[i][0] ? 75 : 0);
		assert_int_equal(s[i].value[FIELD_FB_USED].i > 0, pods[i][0] != '\0');
	}
	b->ops->destroy(b);
	xid_store_free(xids);
}

static void xids_and_losses_come_at_their_time(void **state)
{
	(void)state;
	char path[] = "/tmp/gpuscale-test-XXXXXX";
	struct xid_store *xids = xid_store_new(NULL);
	struct backend *b = make("gpus: [{count: 2}]\n"
	                         "xids: [{at: 0s, gpu: 0, code: 31}, {at: 3s, gpu: 1, code: 48}, {at: 4s, gpu: 1, "
	                         "code: 48, count: 800000}]\n"
	                         "losses: [{at: 5s, gpu: 1, for: 2s}]\n",
	                         path, xids);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	static const struct {
		int64_t t_ms;
		int64_t last0, last1;
		bool lost1;
	} steps[] = {{0, 31, 0, false},   {2999, 31, 0, false}, {3000, 31, 48, false},
	             {5000, 31, 0, true}, {6999, 31, 0, true},  {7000, 31, 48, false}};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		assert_int_equal(b->ops->sample(b, steps[i].t_ms, 1000 + steps[i].t_ms, s, &e), 0);
		assert_int_equal(s[0].value[FIELD_XID_ERRORS].i, steps[i].last0);
		assert_int_equal(s[1].lost, steps[i].lost1);
		if (steps[i].lost1)
			assert_int_equal(sample_count(&s[1]), 0);
		else
			assert_int_equal(s[1].value[FIELD_XID_ERRORS].i, steps[i].last1);
	}
	const struct device *d = b->devices;
	size_t n = b->n;
	assert_int_equal(n, 2);
	assert_string_equal(d[1].uuid, "GPU-00000000-0000-0000-0000-000000000001");
	struct xid_count counts[XID_CODES_MAX + 1];
	size_t n_counts = xid_store_read(xids, d[1].uuid, counts);
	for (size_t i = 0; i < n_counts; i++)
		assert_int_equal(counts[i].count, counts[i].code == 48 ? 800001 : 0);
	b->ops->destroy(b);
	xid_store_free(xids);
}

// A GPU with every reading at 60 % load, with `faults` in its script, at t_ms.
static struct device_sample faulty(const char *faults, int64_t t_ms)
{
	char path[] = "/tmp/gpuscale-test-XXXXXX", script[1024];
	struct xid_store *xids = xid_store_new(NULL);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	snprintf(script, sizeof script, "gpus: [{series: {DCGM_FI_DEV_GPU_UTIL: '60'}}, {}]\n%s\n", faults);
	struct backend *b = make(script, path, xids);
	assert_int_equal(b->ops->sample(b, t_ms, 1000 + t_ms, s, &e), 0);
	b->ops->destroy(b);
	xid_store_free(xids);
	return s[0];
}

static void faults_change_the_readings_of_their_gpu_for_their_time(void **state)
{
	(void)state;
	static const struct {
		const char *faults;
		int64_t t_ms;
		enum field field;
		double want;
	} rows[] = {
	        {"throttles: [{at: 10s, for: 5s, gpu: 0}]", 9999, FIELD_CLOCKS_EVENT_REASONS, 0},
	        {"throttles: [{at: 10s, for: 5s, gpu: 0}]", 12000, FIELD_CLOCKS_EVENT_REASONS, 0x20},
	        {"throttles: [{at: 10s, for: 5s, gpu: 1}]", 12000, FIELD_CLOCKS_EVENT_REASONS, 0},
	        {"throttles: [{at: 10s, for: 5s, gpu: 0}]", 12000, FIELD_SM_CLOCK, 1426},
	        {"throttles: [{at: 10s, for: 5s, gpu: 0}]", 12000, FIELD_THERMAL_VIOLATION, 2e9},
	        {"throttles: [{at: 10s, for: 5s, gpu: 0}]", 12000, FIELD_GPU_TEMP, 88},
	        {"throttles: [{at: 10s, for: 5s, gpu: 0}]", 60000, FIELD_THERMAL_VIOLATION, 5e9},
	        {"throttles: [{at: 10s, for: 5s, gpu: 0}]", 60000, FIELD_CLOCKS_EVENT_REASONS, 0},
	        {"throttles: [{at: 0s, gpu: 0, reason: power-brake, clockPercent: 50}]", 1000,
	         FIELD_CLOCKS_EVENT_REASONS, 0x88},
	        {"throttles: [{at: 0s, gpu: 0, reason: power, clockPercent: 50}]", 1000, FIELD_SM_CLOCK, 990},
	        {"ecc: [{at: 1s, gpu: 0}]", 999, FIELD_ECC_SBE_VOL, 0},
	        {"ecc: [{at: 1s, gpu: 0, count: 3}]", 1000, FIELD_ECC_SBE_AGG, 3},
	        {"ecc: [{at: 1s, for: 10s, gpu: 0, count: 100}]", 6000, FIELD_ECC_SBE_VOL, 50},
	        {"ecc: [{at: 1s, gpu: 0, kind: uncorrectable}]", 9000, FIELD_ECC_DBE_VOL, 1},
	        {"ecc: [{at: 1s, gpu: 0, kind: uncorrectable}]", 9000, FIELD_ECC_SBE_VOL, 0},
	        {"leaks: [{at: 1h, gpu: 0, mibPerHour: 512}]", 9000000, FIELD_FB_USED, 126012 + 768},
	        {"leaks: [{at: 1h, gpu: 0, mibPerHour: 512}]", 9000000, FIELD_FB_FREE, 17184 - 768},
	        {"leaks: [{at: 0s, gpu: 0, mibPerHour: 1000000}]", 9000000, FIELD_FB_FREE, 0},
	        {"leaks: [{at: 0s, for: 1h, gpu: 0, mibPerHour: 512}]", 9000000, FIELD_FB_USED, 126012},
	        {"stragglers: [{at: 0s, gpu: 0, slowerPercent: 20}]", 1000, FIELD_SM_ACTIVE, 0.48},
	        {"stragglers: [{at: 0s, gpu: 0, slowerPercent: 20}]", 1000, FIELD_SM_CLOCK, 1584},
	        {"stragglers: [{at: 0s, gpu: 0, slowerPercent: 20}]", 1000, FIELD_POWER_USAGE, 375},
	        {"stragglers: [{at: 0s, gpu: 0, slowerPercent: 20}]", 1000, FIELD_GPU_UTIL, 60},
	        {"hangs: [{at: 1s, gpu: 0}]", 1000, FIELD_GPU_UTIL, 100},
	        {"hangs: [{at: 1s, gpu: 0}]", 1000, FIELD_SM_ACTIVE, 0.1},
	        {"hangs: [{at: 1s, gpu: 0}]", 1000, FIELD_PIPE_TENSOR_ACTIVE, 0},
	        {"hangs: [{at: 1s, gpu: 0}]", 1000, FIELD_POWER_USAGE, 168.75},
	        {"hangs: [{at: 1s, for: 1s, gpu: 0}]", 2000, FIELD_SM_ACTIVE, 0.6},
	        {"downtrains: [{at: 0s, gpu: 0, lanes: 4}]", 0, FIELD_PCIE_LINK_WIDTH, 4},
	        {"downtrains: [{at: 0s, gpu: 0, lanes: 4}]", 0, FIELD_PCIE_LINK_GEN, 1},
	        {"downtrains: [{at: 0s, gpu: 0, lanes: 4}]", 0, FIELD_PCIE_RX_BYTES, 1e9},
	        {"downtrains: [{at: 0s, gpu: 0, generation: 4}]", 0, FIELD_PCIE_RX_BYTES, 5.4e9},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct device_sample s = faulty(rows[i].faults, rows[i].t_ms);
		double got = sample_get(&s, rows[i].field);
		if (fabs(got - rows[i].want) > 1e-6 * fabs(rows[i].want))
			fail_msg("%s at %d ms: %s is %g, expected %g", rows[i].faults, (int)rows[i].t_ms,
			         family_of(rows[i].field)->name, got, rows[i].want);
	}
}

static void mig_instances_have_what_nvml_gives_them(void **state)
{
	(void)state;
	char path[] = "/tmp/gpuscale-test-XXXXXX";
	struct xid_store *xids = xid_store_new(NULL);
	struct backend *b = make("gpus:\n"
	                         "- memoryMiB: 143771\n"
	                         "  instances:\n"
	                         "  - {profile: 3g.71gb, id: 2, pod: big, series: {DCGM_FI_DEV_GPU_UTIL: '90'}}\n"
	                         "  - {profile: 1g.18gb, id: 9, series: {DCGM_FI_DEV_GPU_UTIL: '30'}}\n"
	                         "- {}\n"
	                         "xids: [{at: 0s, gpu: 1, code: 48}]\n"
	                         "losses: [{at: 5s, gpu: 0}]\n",
	                         path, xids);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	const struct device *d = b->devices;
	size_t n = b->n;
	assert_int_equal(n, 4);
	assert_true(device_is_instance(d, 1) && device_is_instance(d, 2) && !device_is_instance(d, 3));
	assert_string_equal(d[2].mig_profile, "1g.18gb");
	assert_string_equal(d[2].mig_id, "9");
	assert_string_equal(d[2].mig_uuid, "MIG-00000000-0000-0000-0000-000000000009");
	assert_int_equal(d[3].index, 1);
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_int_equal(s[1].value[FIELD_FB_TOTAL].i, 71 * 1024);
	assert_true(s[1].value[FIELD_SM_ACTIVE].f == 0.9 && s[2].value[FIELD_SM_ACTIVE].f == 0.3);
	assert_false(sample_has(&s[1], FIELD_POWER_USAGE) || sample_has(&s[1], FIELD_GPU_UTIL));
	assert_float_equal(s[0].value[FIELD_SM_ACTIVE].f, 0.6, 1e-12);
	assert_false(sample_has(&s[0], FIELD_GPU_UTIL));
	assert_true(sample_has(&s[0], FIELD_POWER_USAGE) && sample_has(&s[3], FIELD_GPU_UTIL));
	assert_string_equal(s[1].owner.pod, "big");
	assert_int_equal(s[3].value[FIELD_XID_ERRORS].i, 48); // gpu: 1 is the second GPU, not the second device
	assert_int_equal(b->ops->sample(b, 5000, 0, s, &e), 0);
	assert_true(s[0].lost && s[1].lost && s[2].lost && !s[3].lost);
	b->ops->destroy(b);
	xid_store_free(xids);
}

static void replicas_hold_instances_where_a_gpu_is_split(void **state)
{
	(void)state;
	char path[] = "/tmp/gpuscale-test-XXXXXX";
	struct xid_store *xids = xid_store_new(NULL);
	struct backend *b = make("gpus: [{instances: [{profile: 3g, id: 1}, {profile: 3g, id: 2}]}, {}]\n"
	                         "workload:\n"
	                         "  name: w\n"
	                         "  demand: {series: '6'}\n"
	                         "  capacityPerReplica: 4\n"
	                         "  replicas: {constant: 3}\n",
	                         path, xids);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	static const char *const pods[] = {"", "w-0", "w-1", "w-2"};
	assert_int_equal(b->ops->sample(b, 1000, 0, s, &e), 0);
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(s[i].owner.pod, pods[i]);
	b->ops->destroy(b);
	xid_store_free(xids);
}

static void underscore_takes_the_sample_away(void **state)
{
	(void)state;
	char path[] = "/tmp/gpuscale-test-XXXXXX";
	struct xid_store *xids = xid_store_new(NULL);
	struct backend *b = make("gpus: [{series: {DCGM_FI_PROF_SM_ACTIVE: '_', DCGM_FI_DEV_GPU_UTIL: '50 _',"
	                         " DCGM_FI_DEV_GPU_TEMP: '83'}}]\n",
	                         path, xids);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_false(sample_has(&s[0], FIELD_SM_ACTIVE));
	assert_int_equal(s[0].value[FIELD_GPU_UTIL].i, 50);
	assert_int_equal(s[0].value[FIELD_GPU_TEMP].i, 83);
	assert_true(s[0].value[FIELD_DRAM_ACTIVE].f > 0.2); // moves along
	assert_int_equal(b->ops->sample(b, 1000, 0, s, &e), 0);
	assert_false(sample_has(&s[0], FIELD_GPU_UTIL));
	b->ops->destroy(b);
	xid_store_free(xids);
}

static void given_family_carries_those_that_depend_on_it(void **state)
{
	(void)state;
	static const struct {
		const char *series;
		enum field field;
		double want; // 143771 MiB, of which 575 are reserved
	} rows[] = {
	        {"DCGM_FI_DEV_FB_USED: '1000'", FIELD_FB_FREE, 142196},
	        {"DCGM_FI_DEV_FB_USED: '1000'", FIELD_FB_USED_PERCENT, 1000.0 / 143196},
	        {"DCGM_FI_DEV_FB_USED: '0'", FIELD_FB_FREE, 143196},
	        {"DCGM_FI_DEV_FB_USED: '200000'", FIELD_FB_FREE, 0},
	        {"DCGM_FI_DEV_FB_USED: '200000'", FIELD_FB_USED_PERCENT, 1},
	        {"DCGM_FI_DEV_FB_FREE: '43196'", FIELD_FB_USED, 100000},
	        {"DCGM_FI_DEV_FB_FREE: '43196'", FIELD_FB_USED_PERCENT, 100000.0 / 143196},
	        {"DCGM_FI_DEV_FB_USED_PERCENT: '0.5'", FIELD_FB_USED, 71598},
	        {"DCGM_FI_DEV_FB_USED_PERCENT: '0.5'", FIELD_FB_FREE, 71598},
	        {"DCGM_FI_DEV_FB_TOTAL: '80575', DCGM_FI_DEV_FB_USED: '40000'", FIELD_FB_FREE, 40000},
	        {"DCGM_FI_DEV_FB_TOTAL: '80575', DCGM_FI_DEV_FB_USED: '40000'", FIELD_FB_USED_PERCENT, 0.5},
	        {"DCGM_FI_DEV_FB_USED: '1000', DCGM_FI_DEV_FB_FREE: '7'", FIELD_FB_FREE, 7}, // as written
	        {"DCGM_FI_DEV_BAR1_USED: '100'", FIELD_BAR1_FREE, 143671},
	        {"DCGM_FI_DEV_POWER_USAGE: '300'", FIELD_POWER_USAGE_INSTANT, 300},
	        {"DCGM_FI_DEV_POWER_USAGE: '300'", FIELD_TOTAL_ENERGY, 3e6}, // after 10 s
	        {"DCGM_FI_DEV_POWER_USAGE_INSTANT: '300'", FIELD_POWER_USAGE, 300},
	        {"DCGM_FI_PROF_NVLINK_TX_BYTES: '1024000', DCGM_FI_PROF_NVLINK_RX_BYTES: '2048000'",
	         FIELD_NVLINK_BANDWIDTH_TOTAL, 3},
	        {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE: '0.3'", FIELD_PIPE_TENSOR_HMMA_ACTIVE, 0.3},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char path[] = "/tmp/gpuscale-test-XXXXXX", script[512];
		struct xid_store *xids = xid_store_new(NULL);
		struct device_sample s[DEVICES_MAX];
		struct err e;
		snprintf(script, sizeof script, "gpus: [{series: {%s}}]\n", rows[i].series);
		struct backend *b = make(script, path, xids);
		for (int64_t t_ms = 0; t_ms <= 10000; t_ms += 1000)
			assert_int_equal(b->ops->sample(b, t_ms, 0, s, &e), 0);
		double got = sample_get(&s[0], rows[i].field);
		if (fabs(got - rows[i].want) > 1e-6 * fmax(1, rows[i].want))
			fail_msg("%s: %s is %g, expected %g", rows[i].series, family_of(rows[i].field)->name, got,
			         rows[i].want);
		b->ops->destroy(b);
		xid_store_free(xids);
	}
}

static void replicas_are_read_as_the_api_server_writes_them(void **state)
{
	(void)state;
	static const struct {
		const char *json, *path;
		int32_t want; // -1: refused
	} cases[] = {
	        {"{\"status\":{\"readyReplicas\":3}}", "status.readyReplicas", 3},
	        {"{\"status\":{\"replicas\":3}}", "status.readyReplicas", 0}, // zero is left out
	        {"{\"status\":{}}", "status.readyReplicas", 0},
	        {"{\"spec\":{}}", "status.readyReplicas", -1}, // some other object
	        {"{\"status\":{\"readyReplicas\":-1}}", "status.readyReplicas", -1},
	        {"{\"status\":{\"readyReplicas\":1.5}}", "status.readyReplicas", -1},
	        {"{\"status\":{\"readyReplicas\":\"3\"}}", "status.readyReplicas", -1},
	        {"{\"status\":{\"readyReplicas\":1e12}}", "status.readyReplicas", -1},
	        {"[]", "status.readyReplicas", -1},
	        {"{", "status.readyReplicas", -1},
	        {"{\"n\":7}", "n", 7},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int32_t got = -1;
		struct err e;
		int rc = mock_replicas_decode(cases[i].json, strlen(cases[i].json), cases[i].path, &got, &e);
		if (rc < 0)
			got = -1;
		if (got != cases[i].want)
			fail_msg("%s: got %d, want %d", cases[i].json, got, cases[i].want);
	}
}

static void xid_codes_past_the_ceiling_are_counted_as_other(void **state)
{
	(void)state;
	struct xid_store *s = xid_store_new(NULL);
	for (int32_t code = 1000; code < 1100; code++)
		xid_store_count(s, "GPU-a", code, 5);
	struct xid_count c[XID_CODES_MAX + 1];
	size_t n = xid_store_read(s, "GPU-a", c);
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += c[i].count;
	assert_int_equal(n, XID_CODES_MAX + 1);
	assert_int_equal(c[XID_CODES_MAX].code, XID_CODE_OTHER);
	assert_int_equal(sum, 100); // none is lost
	assert_int_equal(xid_store_overflows(s), c[XID_CODES_MAX].count);
	assert_int_equal(xid_store_last(s, "GPU-a"), 1099);
	assert_int_equal(xid_store_last(s, "GPU-b"), 0);
	xid_store_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(script_is_decoded_with_its_defaults),
	        cmocka_unit_test(script_errors_are_all_reported_with_their_position),
	        cmocka_unit_test(built_in_script_has_two_gpus),
	        cmocka_unit_test(loop_closes_utilisation_is_demand_by_capacity),
	        cmocka_unit_test(capacity_follows_amdahl_with_a_serial_fraction),
	        cmocka_unit_test(demand_waits_without_replicas),
	        cmocka_unit_test(backlog_has_the_ceiling_it_was_given),
	        cmocka_unit_test(smoothing_spreads_a_burst),
	        cmocka_unit_test(readings_follow_the_utilisation),
	        cmocka_unit_test(ready_replicas_hold_the_first_gpus),
	        cmocka_unit_test(xids_and_losses_come_at_their_time),
	        cmocka_unit_test(faults_change_the_readings_of_their_gpu_for_their_time),
	        cmocka_unit_test(mig_instances_have_what_nvml_gives_them),
	        cmocka_unit_test(replicas_hold_instances_where_a_gpu_is_split),
	        cmocka_unit_test(underscore_takes_the_sample_away),
	        cmocka_unit_test(given_family_carries_those_that_depend_on_it),
	        cmocka_unit_test(replicas_are_read_as_the_api_server_writes_them),
	        cmocka_unit_test(xid_codes_past_the_ceiling_are_counted_as_other),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
