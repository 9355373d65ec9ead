// SPDX-License-Identifier: Apache-2.0
// Which devices the NVML backend finds, and what becomes of them, against the scripted library of test/fake/nvml.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/backend.h"
#include "test/support/nvml_fixture.h"
#include "test/support/tree.h"

#define UUID0 "GPU-00000000-0000-0000-0000-000000000000"
#define UUID1 "GPU-00000000-0000-0000-0000-000000000001"

// "index:profile:id" of every device, MIG instances in brackets.
static const char *list(struct backend *b, char *out, size_t size)
{
	size_t n = b->n, len = 0;
	const struct device *d = b->devices;
	out[0] = '\0';
	for (size_t i = 0; i < n && len < size; i++) {
		bool part = device_is_instance(d, i);
		snprintf(out + len, size - len, "%s%d%s%s%s%s%s", part ? "[" : "(", d[i].index, part ? ":" : "",
		         d[i].mig_profile, part ? ":" : "", d[i].mig_id, part ? "]" : ")");
		len += strlen(out + len);
	}
	return out;
}

static void gpu_without_a_handle_is_lost(void **state)
{
	struct nvml_fixture *f = *state;
	static const struct {
		const char *script, *list, *later; // list: of the devices; later: without the failure
		int lost;                          // index of the lost GPU
	} cases[] = {
	        {"devices 3\nfail nvmlDeviceGetHandleByIndex_v2 1 15\n", "(0)(1)(2)", "(0)(1)(2)", 1},
	        {"devices 3\nfail nvmlDeviceGetHandleByIndex_v2 0 999\n", "(0)(1)(2)", "(0)(1)(2)", 0},
	        {"devices 3\nfail nvmlDeviceGetUUID 2 16\n", "(0)(1)(2)", "(0)(1)(2)", 2},
	        {"devices 1\nfail nvmlDeviceGetHandleByIndex_v2 0 15\n", "(0)", "(0)", 0},
	        {"devices 2\nmig 0 7 1g.18gb\nfail nvmlDeviceGetHandleByIndex_v2 1 17\n", "(0)[0:1g.18gb:7](1)",
	         "(0)(1)", 2},
	        {"devices 3\nfail nvmlDeviceGetHandleByIndex_v2 1 4\n", "(0)(2)", "(0)(1)(2)",
	         -1}, // of another container
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct device_sample s[DEVICES_MAX];
		struct err e;
		char text[256];
		nvml_fixture_play(f, cases[i].script);
		struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
		for (int64_t t_ms = 0; t_ms <= 100000; t_ms += 1000) { // rescans and restarts included
			assert_int_equal(b->ops->sample(b, t_ms, 0, s, &e), 0);
			assert_string_equal(list(b, text, sizeof text), cases[i].list);
			for (int k = 0; k < (int)b->n; k++)
				assert_int_equal(s[k].lost, k == cases[i].lost);
		}
		char back[16];
		snprintf(back, sizeof back, "%.10s", cases[i].script);
		nvml_fixture_play(f, back);
		for (int64_t t_ms = 101000; t_ms <= 111000; t_ms += 1000)
			assert_int_equal(b->ops->sample(b, t_ms, 0, s, &e), 0);
		assert_string_equal(list(b, text, sizeof text), cases[i].later);
		for (size_t k = 0; k < b->n; k++)
			assert_false(s[k].lost);
		nvml_fixture_close(b);
	}
}

static void gpu_without_a_handle_keeps_its_uuid(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	nvml_fixture_play(f, "fail nvmlDeviceGetHandleByIndex_v2 1 15\n");
	for (int64_t t_ms = 0; t_ms <= 20000; t_ms += 1000)
		assert_int_equal(b->ops->sample(b, t_ms, 0, s, &e), 0);
	const struct device *d = b->devices;
	assert_int_equal(b->n, 2);
	assert_string_equal(d[1].uuid, UUID1);
	assert_true(s[1].lost && !s[0].lost);
	nvml_fixture_close(b);
}

static void lost_gpu_leaves_the_others_alone(void **state)
{
	struct nvml_fixture *f = *state;
	static const char *const functions[] = {"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo_v2",
	                                        "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetFieldValues"};
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	for (size_t i = 0; i < 4; i++) {
		char script[128];
		snprintf(script, sizeof script, "fail %s 0 %d\n", functions[i], i % 2 ? 16 : 15);
		nvml_fixture_play(f, script);
		assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
		assert_true(s[0].lost && sample_count(&s[0]) == 0);
		assert_false(s[1].lost);
		assert_field(&s[1], FIELD_GPU_UTIL, "42");
	}
	nvml_fixture_play(f, "");
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_false(s[0].lost);
	assert_field(&s[0], FIELD_GPU_UTIL, "42");
	nvml_fixture_close(b);
}

static void device_that_gives_nothing_at_all_is_lost(void **state)
{
	struct nvml_fixture *f = *state;
	static const char *const functions[] = {
	        "UtilizationRates",   "MemoryInfo_v2",      "MemoryInfo",
	        "EncoderUtilization", "DecoderUtilization", "TotalEnergyConsumption",
	        "BAR1MemoryInfo",     "TotalEccErrors",     "CurrentClocksEventReasons",
	        "PowerUsage",         "EnforcedPowerLimit", "PerformanceState",
	        "FanSpeed",           "PcieReplayCounter",  "CurrPcieLinkGeneration",
	        "CurrPcieLinkWidth",  "Temperature",        "ClockInfo",
	        "FieldValues",
	};
	char script[2048] = "";
	for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
		size_t len = strlen(script);
		snprintf(script + len, sizeof script - len, "fail nvmlDeviceGet%s 1 999\n", functions[i]);
	}
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	nvml_fixture_play(f, script);
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_false(s[0].lost);
	assert_true(s[1].lost);
	nvml_fixture_close(b);
}

static void mig_instances_follow_their_gpu_with_what_is_theirs(void **state)
{
	struct nvml_fixture *f = *state;
	nvml_fixture_play(f, "mig 0 7 1g.18gb\nmig 0 9 1c.3g.71gb\nmig 0 9 2c.3g.71gb\n");
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	char text[256];
	// A GPU instance with two compute instances is one device.
	assert_string_equal(list(b, text, sizeof text), "(0)[0:1g.18gb:7][0:3g.71gb:9](1)");
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_int_equal(b->ops->sample(b, 1000, 0, s, &e), 0);
	const struct device *d = b->devices;
	assert_string_equal(d[1].uuid, UUID0); // as dcgm-exporter: the UUID is the GPU's
	assert_string_equal(d[1].mig_uuid, "MIG-00000000-0000-0000-0000-000000000000");
	assert_string_equal(d[1].model, "NVIDIA Fake 9000");
	assert_string_equal(d[1].node, "nvidia0");
	assert_field(&s[0], FIELD_FB_TOTAL, "1000");
	assert_field(&s[1], FIELD_FB_TOTAL, "125");
	assert_field(&s[1], FIELD_FB_USED, "37");
	assert_field(&s[0], FIELD_SM_ACTIVE, "0.02");
	assert_field(&s[1], FIELD_SM_ACTIVE, "0.09"); // by its own samples
	assert_field(&s[2], FIELD_SM_ACTIVE, "0.11");
	// What only the GPU has is not reported twice.
	assert_field(&s[0], FIELD_POWER_USAGE, "123.456");
	assert_field(&s[1], FIELD_POWER_USAGE, "-");
	assert_field(&s[1], FIELD_XID_ERRORS, "-");
	nvml_fixture_close(b);
}

static void profile_without_a_name_is_made_from_the_attributes(void **state)
{
	struct nvml_fixture *f = *state;
	char text[256];
	nvml_fixture_play(f, "mig 1 3 x\nfail nvmlDeviceGetName * 999\n");
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	assert_string_equal(list(b, text, sizeof text), "(0)(1)[1:2g.20gb:3]");
	nvml_fixture_close(b);
}

static void mig_instances_come_and_go_while_it_runs(void **state)
{
	struct nvml_fixture *f = *state;
	static const struct {
		int64_t t_ms;
		const char *script, *want;
		int lost; // how many
	} steps[] = {
	        {0, "", "(0)(1)", 0},
	        {1000, "mig 0 7 1g.18gb\n", "(0)(1)", 0}, // not looked for yet
	        {10000, "mig 0 7 1g.18gb\n", "(0)[0:1g.18gb:7](1)", 0},
	        {20000, "mig 0 7 1g.18gb\nmig 1 2 3g.71gb\n", "(0)[0:1g.18gb:7](1)[1:3g.71gb:2]", 0},
	        {21000, "mig 1 2 3g.71gb\n", "(0)[0:1g.18gb:7](1)[1:3g.71gb:2]", 1}, // just destroyed
	        {22000, "mig 1 2 3g.71gb\n", "(0)(1)[1:3g.71gb:2]", 0},              // found out at once
	        {23000, "mig 1 2 3g.71gb\nfail nvmlDeviceGetUtilizationRates 1 15\n", "(0)(1)[1:3g.71gb:2]", 2},
	        {24000, "mig 1 2 3g.71gb\n", "(0)(1)[1:3g.71gb:2]", 0},
	        {34000, "", "(0)(1)", 0},
	};
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	char text[256];
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		nvml_fixture_play(f, steps[i].script);
		assert_int_equal(b->ops->sample(b, steps[i].t_ms, 0, s, &e), 0);
		assert_string_equal(list(b, text, sizeof text), steps[i].want);
		int lost = 0;
		for (size_t k = 0; k < b->n; k++)
			lost += s[k].lost;
		assert_int_equal(lost, steps[i].lost);
		assert_field(&s[0], FIELD_GPU_UTIL, "42"); // the first GPU was there all the time
	}
	nvml_fixture_close(b);
}

static void gpu_that_stays_lost_makes_the_library_start_over(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	char text[256];
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	// It fell off the bus: the library knows two GPUs until it starts again.
	nvml_fixture_play(f, "devices 1\nfail nvmlDeviceGetMemoryInfo_v2 1 15\n");
	for (int64_t t_ms = 1000; t_ms <= 31000; t_ms += 1000) {
		assert_int_equal(b->ops->sample(b, t_ms, 0, s, &e), 0);
		assert_string_equal(list(b, text, sizeof text), "(0)(1)");
		assert_true(s[1].lost);
		assert_field(&s[0], FIELD_GPU_UTIL, "42");
	}
	assert_int_equal(b->ops->sample(b, 32000, 0, s, &e), 0);
	assert_string_equal(list(b, text, sizeof text), "(0)");
	assert_field(&s[0], FIELD_GPU_UTIL, "42");
	nvml_fixture_close(b);
	// It comes back by a reset: also found by starting over, with growing pauses before.
	nvml_fixture_play(f, "");
	b = nvml_fixture_open(f, LIB_WHOLE);
	nvml_fixture_play(f, "fail nvmlDeviceGetMemoryInfo_v2 1 16\n");
	for (int64_t t_ms = 0; t_ms <= 100000; t_ms += 1000) {
		assert_int_equal(b->ops->sample(b, t_ms, 0, s, &e), 0);
		assert_true(s[1].lost);
	}
	nvml_fixture_play(f, "");
	assert_int_equal(b->ops->sample(b, 101000, 0, s, &e), 0);
	assert_field(&s[1], FIELD_GPU_UTIL, "42");
	nvml_fixture_close(b);
}

static void gpu_that_is_gone_is_looked_for_again(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	char text[256];
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	// Neither readings nor a handle: it stays on the list, as lost, also when the library starts over.
	nvml_fixture_play(f, "fail nvmlDeviceGetMemoryInfo_v2 0 15\nfail nvmlDeviceGetHandleByIndex_v2 0 15\n");
	for (int64_t t_ms = 1000; t_ms <= 31000; t_ms += 1000) {
		assert_int_equal(b->ops->sample(b, t_ms, 0, s, &e), 0);
		assert_string_equal(list(b, text, sizeof text), "(0)(1)");
		assert_true(s[0].lost && !s[1].lost);
	}
	assert_int_equal(b->ops->sample(b, 32000, 0, s, &e), 0);
	assert_string_equal(list(b, text, sizeof text), "(0)(1)");
	assert_true(s[0].lost && !s[1].lost);
	// It is put back: found by the next look, or, where the library does not see it, by the next start.
	nvml_fixture_play(f, "");
	for (int64_t t_ms = 33000; t_ms <= 63000; t_ms += 1000) {
		assert_int_equal(b->ops->sample(b, t_ms, 0, s, &e), 0);
		assert_int_equal(s[0].lost, t_ms < 42000);
	}
	assert_string_equal(list(b, text, sizeof text), "(0)(1)");
	nvml_fixture_close(b);
}

static void every_gpu_lost_at_once_keeps_them_known(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	char text[256];
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	nvml_fixture_play(f, "fail nvmlDeviceGetHandleByIndex_v2 * 15\nfail nvmlDeviceGetUtilizationRates * 15\n");
	assert_int_equal(b->ops->sample(b, 10000, 0, s, &e), 0);
	assert_string_equal(list(b, text, sizeof text), "(0)(1)");
	assert_true(s[0].lost && s[1].lost);
	// After the start over, too.
	assert_int_equal(b->ops->sample(b, 20000, 0, s, &e), 0);
	assert_int_equal(b->ops->sample(b, 50000, 0, s, &e), 0);
	assert_string_equal(list(b, text, sizeof text), "(0)(1)");
	assert_true(s[0].lost && s[1].lost);
	nvml_fixture_play(f, "");
	assert_int_equal(b->ops->sample(b, 60000, 0, s, &e), 0);
	assert_field(&s[0], FIELD_GPU_UTIL, "42");
	nvml_fixture_close(b);
}

static void processes_are_reported_on_request(void **state)
{
	struct nvml_fixture *f = *state;
	struct tree proc;
	struct err e;
	struct device_sample s[DEVICES_MAX];
	struct buf page;
	buf_init(&page, 65536);
	tree_make(&proc);
	tree_write(&proc, "77/comm", "python \"x\"\n");
	nvml_fixture_play(f, "process 77 0 1000\nprocess 12 0 3000\nprocess 77 0 1000\nprocess 5 0 unknown\n"
	                     "mig 1 4 1g.18gb\nprocess 9 1 2\n");
	struct backend_config config = {.nvml_library = f->library[LIB_WHOLE], .xids = f->xids};
	struct backend *b = backend_nvml_new(&config, &e);
	assert_int_equal(b->ops->open(b, &e), 0);
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	b->ops->render_extra(b, &page);
	assert_int_equal(page.len, 0);
	nvml_fixture_close(b);
	config.proc_root = proc.root;
	b = backend_nvml_new(&config, &e);
	assert_int_equal(b->ops->open(b, &e), 0);
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	b->ops->render_extra(b, &page);
	assert_string_equal(buf_str(&page),
	                    "# HELP gpuscale_gpu_process_memory_bytes GPU memory of a process (bytes).\n"
	                    "# TYPE gpuscale_gpu_process_memory_bytes gauge\n"
	                    "gpuscale_gpu_process_memory_bytes{gpu=\"0\",UUID=\"" UUID0
	                    "\",pid=\"12\",process=\"\"} 3145728000\n"
	                    "gpuscale_gpu_process_memory_bytes{gpu=\"0\",UUID=\"" UUID0
	                    "\",pid=\"77\",process=\"python \\\"x\\\"\"} 1048576000\n"
	                    "gpuscale_gpu_process_memory_bytes{gpu=\"1\",UUID=\"" UUID1
	                    "\",GPU_I_ID=\"4\",pid=\"9\",process=\"\"} 2097152\n");
	nvml_fixture_close(b);
	buf_done(&page);
	tree_remove(&proc);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, nvml_fixture_setup, nvml_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(gpu_without_a_handle_is_lost),
	        TEST(gpu_without_a_handle_keeps_its_uuid),
	        TEST(lost_gpu_leaves_the_others_alone),
	        TEST(device_that_gives_nothing_at_all_is_lost),
	        TEST(mig_instances_follow_their_gpu_with_what_is_theirs),
	        TEST(profile_without_a_name_is_made_from_the_attributes),
	        TEST(mig_instances_come_and_go_while_it_runs),
	        TEST(gpu_that_stays_lost_makes_the_library_start_over),
	        TEST(gpu_that_is_gone_is_looked_for_again),
	        TEST(every_gpu_lost_at_once_keeps_them_known),
	        TEST(processes_are_reported_on_request),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
