// SPDX-License-Identifier: Apache-2.0
// The NVML backend against the scripted library of test/fake/nvml.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "exporter/backend.h"
#include "exporter/nvml/nvml.h"
#include "exporter/xid.h"
#include "test/support/nvml_fixture.h"

#define PATIENCE_MS 60000 // longest wait for anything; far above what it takes, even under valgrind
#define UUID0       "GPU-00000000-0000-0000-0000-000000000000"
#define UUID1       "GPU-00000000-0000-0000-0000-000000000001"

static void every_reading_arrives_in_its_field_and_unit(void **state)
{
	struct nvml_fixture *f = *state;
	static const char *const want[FIELD__COUNT] = {
	        [FIELD_SM_CLOCK] = "1980",
	        [FIELD_MEM_CLOCK] = "3201",
	        [FIELD_MEMORY_TEMP] = "60",
	        [FIELD_GPU_TEMP] = "55",
	        [FIELD_POWER_USAGE] = "123.456",
	        [FIELD_TOTAL_ENERGY] = "987654321",
	        [FIELD_POWER_LIMIT] = "700",
	        [FIELD_POWER_LIMIT_MIN] = "200",
	        [FIELD_POWER_LIMIT_MAX] = "700",
	        [FIELD_POWER_LIMIT_DEFAULT] = "650",
	        [FIELD_ENFORCED_POWER_LIMIT] = "600",
	        [FIELD_POWER_USAGE_INSTANT] = "123",
	        [FIELD_VIDEO_CLOCK] = "1545",
	        [FIELD_MAX_SM_CLOCK] = "1985",
	        [FIELD_MAX_MEM_CLOCK] = "3202",
	        [FIELD_SLOWDOWN_TEMP] = "87",
	        [FIELD_SHUTDOWN_TEMP] = "92",
	        [FIELD_PSTATE] = "2",
	        [FIELD_FAN_SPEED] = "33",
	        [FIELD_PCIE_MAX_LINK_GEN] = "5",
	        [FIELD_PCIE_MAX_LINK_WIDTH] = "16",
	        [FIELD_PCIE_LINK_GEN] = "4",
	        [FIELD_PCIE_LINK_WIDTH] = "8",
	        [FIELD_POWER_VIOLATION] = "1000000074",
	        [FIELD_THERMAL_VIOLATION] = "1000000075",
	        [FIELD_SYNC_BOOST_VIOLATION] = "1000000076",
	        [FIELD_BOARD_LIMIT_VIOLATION] = "1000000077",
	        [FIELD_LOW_UTIL_VIOLATION] = "1000000078",
	        [FIELD_RELIABILITY_VIOLATION] = "1000000079",
	        [FIELD_APP_CLOCKS_VIOLATION] = "1000000080",
	        [FIELD_BASE_CLOCKS_VIOLATION] = "1000000081",
	        [FIELD_FB_USED_PERCENT] = "0.315789",
	        [FIELD_BAR1_TOTAL] = "131072",
	        [FIELD_BAR1_USED] = "3",
	        [FIELD_BAR1_FREE] = "131069",
	        [FIELD_RETIRED_SBE] = "14",
	        [FIELD_RETIRED_DBE] = "15",
	        [FIELD_RETIRED_PENDING] = "1",
	        [FIELD_UNCORRECTABLE_REMAPPED_ROWS] = "13",
	        [FIELD_CORRECTABLE_REMAPPED_ROWS] = "12",
	        [FIELD_ROW_REMAP_FAILURE] = "0",
	        [FIELD_ROW_REMAP_PENDING] = "1",
	        [FIELD_NVLINK_CRC_FLIT_ERRORS] = "21",
	        [FIELD_NVLINK_CRC_DATA_ERRORS] = "22",
	        [FIELD_NVLINK_REPLAY_ERRORS] = "23",
	        [FIELD_NVLINK_RECOVERY_ERRORS] = "24",
	        [FIELD_VGPU_LICENSE_STATUS] = "0",
	        [FIELD_RECOVERY_ACTION] = "0",
	        [FIELD_PCIE_REPLAY] = "1",
	        [FIELD_GPU_UTIL] = "42",
	        [FIELD_MEM_COPY_UTIL] = "21",
	        [FIELD_ENC_UTIL] = "3",
	        [FIELD_DEC_UTIL] = "4",
	        [FIELD_CLOCKS_EVENT_REASONS] = "4",
	        [FIELD_XID_ERRORS] = "0",
	        [FIELD_FB_TOTAL] = "1000",
	        [FIELD_FB_FREE] = "650",
	        [FIELD_FB_USED] = "300",
	        [FIELD_FB_RESERVED] = "50",
	        [FIELD_ECC_SBE_VOL] = "5",
	        [FIELD_ECC_DBE_VOL] = "6",
	        [FIELD_ECC_SBE_AGG] = "7",
	        [FIELD_ECC_DBE_AGG] = "8",
	};
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	for (enum field k = 0; k < FIELD__COUNT; k++)
		assert_field(&s[1], k, want[k] ? want[k] : "-"); // profiling fields and rates need a past
	const struct device *d = b->devices;
	size_t n = b->n;
	assert_int_equal(n, 2);
	assert_int_equal(d[1].index, 1);
	assert_string_equal(d[1].uuid, UUID1);
	assert_string_equal(d[1].pci_bus_id, "00000000:05:00.0");
	assert_string_equal(d[1].node, "nvidia1");
	assert_string_equal(d[1].model, "NVIDIA Fake 9000");
	assert_string_equal(b->driver_version, "580.65.06");
	nvml_fixture_close(b);
}

static void unsupported_field_gives_no_sample_never_zero(void **state)
{
	struct nvml_fixture *f = *state;
	static const struct {
		const char *function;
		int n;
		enum field fields[10]; // that must be absent
	} cases[] = {
	        {"nvmlDeviceGetUtilizationRates", 2, {FIELD_GPU_UTIL, FIELD_MEM_COPY_UTIL}},
	        {"nvmlDeviceGetEncoderUtilization", 1, {FIELD_ENC_UTIL}},
	        {"nvmlDeviceGetDecoderUtilization", 1, {FIELD_DEC_UTIL}},
	        {"nvmlDeviceGetPowerUsage", 1, {FIELD_POWER_USAGE}},
	        {"nvmlDeviceGetEnforcedPowerLimit", 1, {FIELD_ENFORCED_POWER_LIMIT}},
	        {"nvmlDeviceGetPowerManagementLimit", 1, {FIELD_POWER_LIMIT}},
	        {"nvmlDeviceGetPowerManagementLimitConstraints", 2, {FIELD_POWER_LIMIT_MIN, FIELD_POWER_LIMIT_MAX}},
	        {"nvmlDeviceGetTotalEnergyConsumption", 1, {FIELD_TOTAL_ENERGY}},
	        {"nvmlDeviceGetTemperature", 1, {FIELD_GPU_TEMP}},
	        {"nvmlDeviceGetTemperatureThreshold", 2, {FIELD_SLOWDOWN_TEMP, FIELD_SHUTDOWN_TEMP}},
	        {"field82", 1, {FIELD_MEMORY_TEMP}},
	        {"field74", 1, {FIELD_POWER_VIOLATION}},
	        {"field59", 1, {FIELD_NVLINK_RECOVERY_ERRORS}},
	        {"field30", 1, {FIELD_RETIRED_DBE}},
	        {"field230", 1, {FIELD_RECOVERY_ACTION}},
	        {"nvmlDeviceGetRemappedRows",
	         4,
	         {FIELD_UNCORRECTABLE_REMAPPED_ROWS, FIELD_CORRECTABLE_REMAPPED_ROWS, FIELD_ROW_REMAP_FAILURE,
	          FIELD_ROW_REMAP_PENDING}},
	        {"nvmlDeviceGetClockInfo", 3, {FIELD_SM_CLOCK, FIELD_MEM_CLOCK, FIELD_VIDEO_CLOCK}},
	        {"nvmlDeviceGetMaxClockInfo", 2, {FIELD_MAX_SM_CLOCK, FIELD_MAX_MEM_CLOCK}},
	        {"nvmlDeviceGetCurrentClocksEventReasons", 1, {FIELD_CLOCKS_EVENT_REASONS}},
	        {"nvmlDeviceGetPcieReplayCounter", 1, {FIELD_PCIE_REPLAY}},
	        {"nvmlDeviceGetCurrPcieLinkWidth", 1, {FIELD_PCIE_LINK_WIDTH}},
	        {"nvmlDeviceGetBAR1MemoryInfo", 3, {FIELD_BAR1_TOTAL, FIELD_BAR1_USED, FIELD_BAR1_FREE}},
	        {"nvmlDeviceGetFanSpeed", 1, {FIELD_FAN_SPEED}},
	        {"nvmlDeviceGetVirtualizationMode", 1, {FIELD_VGPU_LICENSE_STATUS}},
	        {"nvmlDeviceGetTotalEccErrors",
	         4,
	         {FIELD_ECC_SBE_VOL, FIELD_ECC_DBE_VOL, FIELD_ECC_SBE_AGG, FIELD_ECC_DBE_AGG}},
	};
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample all[DEVICES_MAX], s[DEVICES_MAX];
	struct err e;
	int64_t t_ms = 0;
	assert_int_equal(b->ops->sample(b, t_ms, 0, all, &e), 0);
	t_ms += 1000; // rates and profiling fields come with the second round
	assert_int_equal(b->ops->sample(b, t_ms, 0, all, &e), 0);
	assert_int_equal(sample_count(&all[1]), FIELD__COUNT); // nothing is left out
	// 3 not supported, 4 no permission, 27 not ready, 999 unknown
	static const int results[] = {3, 4, 27, 999};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		for (size_t k = 0; k < 4; k++) {
			char script[128];
			snprintf(script, sizeof script, "fail %s 1 %d\n", cases[i].function, results[k]);
			nvml_fixture_play(f, script);
			t_ms += NVML_READ_SLOW_MS; // so that everything is read again
			assert_int_equal(b->ops->sample(b, t_ms, 0, s, &e), 0);
			for (enum field n = 0; n < FIELD__COUNT; n++) {
				bool absent = false;
				for (int j = 0; j < cases[i].n; j++)
					absent |= cases[i].fields[j] == n;
				assert_int_equal(sample_has(&s[0], n), sample_has(&all[0], n));
				if (sample_has(&s[1], n) != (sample_has(&all[1], n) && !absent))
					fail_msg("%s = %d: %s", cases[i].function, results[k], family_of(n)->name);
			}
		}
	}
	nvml_fixture_close(b);
}

static void nvlink_bandwidth_is_the_rate_between_two_rounds(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	static const struct {
		const char *script, *want;
		int64_t t_ms;
	} steps[] = {
	        {"set field138 * 1000000\nset field139 * 2000000\n", "-", 0},
	        {"set field138 * 5000000\nset field139 * 4000000\n", "3000", 2000}, // 6e6 KiB in 2 s
	        {"set field138 * 5000000\nset field139 * 4000000\n", "0", 3000},
	        {"set field138 * 0\nset field139 * 10\n", "-", 4000}, // the driver started over
	        {"set field138 * 0\nset field139 * 1000010\n", "1000", 5000},
	        {"fail field139 * 3\n", "-", 6000},
	        {"set field138 * 0\nset field139 * 0\n", "-", 7000},
	};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		nvml_fixture_play(f, steps[i].script);
		assert_int_equal(b->ops->sample(b, steps[i].t_ms, 0, s, &e), 0);
		assert_field(&s[1], FIELD_NVLINK_BANDWIDTH_TOTAL, steps[i].want);
	}
	nvml_fixture_close(b);
}

static void slow_fields_are_read_every_ten_seconds(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	nvml_fixture_play(f, "set rows_failed * 1\nset field30 * 99\n");
	assert_int_equal(b->ops->sample(b, NVML_READ_SLOW_MS - 1, 0, s, &e), 0);
	assert_field(&s[0], FIELD_ROW_REMAP_FAILURE, "0");
	assert_field(&s[0], FIELD_RETIRED_DBE, "15");
	assert_int_equal(b->ops->sample(b, NVML_READ_SLOW_MS, 0, s, &e), 0);
	assert_field(&s[0], FIELD_ROW_REMAP_FAILURE, "1");
	assert_field(&s[0], FIELD_RETIRED_DBE, "99");
	nvml_fixture_close(b);
}

static void costly_fields_are_read_every_five_seconds(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	nvml_fixture_play(f, "set replay * 77\nset field75 * 98\n");
	assert_int_equal(b->ops->sample(b, NVML_READ_COSTLY_MS - 1, 0, s, &e), 0);
	assert_field(&s[0], FIELD_PCIE_REPLAY, "1");
	assert_true(sample_has(&s[0], FIELD_TOTAL_ENERGY));
	assert_int_equal(b->ops->sample(b, NVML_READ_COSTLY_MS, 0, s, &e), 0);
	assert_field(&s[0], FIELD_PCIE_REPLAY, "77");
	assert_field(&s[0], FIELD_THERMAL_VIOLATION, "98");
	assert_true(sample_has(&s[0], FIELD_TOTAL_ENERGY));
	nvml_fixture_close(b);
}

static void virtual_gpu_says_whether_it_has_a_licence(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	static const char *const scripts[][2] = {{"set virtualization * 2\n", "0"},
	                                         {"set virtualization * 2\nset licensed * 1\n", "1"},
	                                         {"set virtualization * 1\nset licensed * 1\n", "0"},
	                                         {"set virtualization * 2\nfail "
	                                          "nvmlDeviceGetGridLicensableFeatures_v4 * 3\n",
	                                          "-"}};
	for (int i = 0; i < 4; i++) {
		nvml_fixture_play(f, scripts[i][0]);
		assert_int_equal(b->ops->sample(b, i * NVML_READ_SLOW_MS, 0, s, &e), 0);
		assert_field(&s[0], FIELD_VGPU_LICENSE_STATUS, scripts[i][1]);
	}
	nvml_fixture_close(b);
}

static void memory_falls_back_to_the_first_version(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	nvml_fixture_play(f, "fail nvmlDeviceGetMemoryInfo_v2 * 3\n");
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_field(&s[0], FIELD_FB_TOTAL, "1000");
	assert_field(&s[0], FIELD_FB_USED, "350"); // with what the driver keeps
	assert_field(&s[0], FIELD_FB_FREE, "650");
	assert_field(&s[0], FIELD_FB_RESERVED, "-");
	nvml_fixture_play(f, "fail nvmlDeviceGetMemoryInfo_v2 * 3\nfail nvmlDeviceGetMemoryInfo * 3\n");
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_field(&s[0], FIELD_FB_USED, "-");
	nvml_fixture_close(b);
}

static void old_library_gives_what_it_has(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = nvml_fixture_open(f, LIB_OLD);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_field(&s[0], FIELD_GPU_UTIL, "42");
	assert_field(&s[0], FIELD_FB_USED, "350");
	assert_field(&s[0], FIELD_POWER_LIMIT, "700");
	assert_field(&s[0], FIELD_ENFORCED_POWER_LIMIT, "-");
	assert_field(&s[0], FIELD_CLOCKS_EVENT_REASONS, "4"); // by its older name
	assert_field(&s[0], FIELD_TOTAL_ENERGY, "-");
	assert_field(&s[0], FIELD_ECC_SBE_VOL, "-");
	assert_field(&s[0], FIELD_ENC_UTIL, "-");
	assert_field(&s[0], FIELD_MEMORY_TEMP, "-");
	nvml_fixture_close(b);
}

static void unusable_library_names_its_fault(void **state)
{
	struct nvml_fixture *f = *state;
	const struct {
		const char *library, *script, *in_message;
	} cases[] = {
	        {"/nonexistent/libnvidia-ml.so.1", "", "cannot load NVML: /nonexistent/libnvidia-ml.so.1"},
	        {f->library[LIB_EMPTY], "", "has no function nvmlInit_v2: is it NVML?"},
	        {f->library[LIB_WHOLE], "fail nvmlInit_v2 * 9\n", "NVML failed to start: Driver Not Loaded"},
	        {f->library[LIB_WHOLE], "fail nvmlDeviceGetCount_v2 * 999\n", "cannot count GPUs"},
	        {f->library[LIB_WHOLE], "devices 0\n", "no GPU on this node"},
	        {f->library[LIB_WHOLE], "fail nvmlDeviceGetHandleByIndex_v2 * 4\n", "no GPU answers: "},
	        {f->library[LIB_WHOLE], "fail nvmlDeviceGetHandleByIndex_v2 1 9\n",
	         "no GPU answers: Driver Not Loaded"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct err e;
		struct backend *b = backend_nvml_new(
		        &(struct backend_config){.nvml_library = cases[i].library, .xids = f->xids}, &e);
		nvml_fixture_play(f, cases[i].script);
		assert_int_equal(b->ops->open(b, &e), -1);
		if (!strstr(e.msg, cases[i].in_message))
			fail_msg("message \"%s\" lacks \"%s\"", e.msg, cases[i].in_message);
		b->ops->destroy(b);
	}
}

static void pause_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

static uint64_t xids_of(struct nvml_fixture *f, const char *uuid, int32_t code)
{
	struct xid_count c[XID_CODES_MAX + 1];
	size_t n = xid_store_read(f->xids, uuid, c);
	for (size_t i = 0; i < n; i++)
		if (c[i].code == code)
			return c[i].count;
	return 0;
}

static void xid_events_are_counted_between_samples(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	nvml_fixture_play(f, "xid 1 1 48\nxid 2 0 31\nxid 3 1 48\n");
	for (int waited = 0; xids_of(f, UUID1, 48) < 2 && waited < PATIENCE_MS; waited += 20)
		pause_ms(20);
	assert_int_equal(xids_of(f, UUID1, 48), 2);
	assert_int_equal(xids_of(f, UUID0, 31), 1);
	assert_int_equal(xids_of(f, UUID0, 48), 0);
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_field(&s[0], FIELD_XID_ERRORS, "31");
	assert_field(&s[1], FIELD_XID_ERRORS, "48");
	nvml_fixture_close(b); // joins the thread
}

static void xid_is_absent_without_events(void **state)
{
	struct nvml_fixture *f = *state;
	struct device_sample s[DEVICES_MAX];
	struct xid_count c[XID_CODES_MAX + 1];
	struct err e;
	static const struct {
		const char *script;
		bool told[2];
	} cases[] = {
	        {"", {true, true}},
	        {"fail nvmlDeviceRegisterEvents 1 3\n", {true, false}},
	        {"fail nvmlDeviceRegisterEvents * 3\n", {false, false}},
	        {"fail nvmlEventSetCreate * 999\n", {false, false}},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		xid_store_free(f->xids);
		f->xids = xid_store_new(&e);
		nvml_fixture_play(f, cases[i].script);
		struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
		assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
		for (int k = 0; k < 2; k++) {
			if (sample_has(&s[k], FIELD_XID_ERRORS) != cases[i].told[k])
				fail_msg("%s: field of GPU %d", cases[i].script, k);
			if ((xid_store_read(f->xids, k ? UUID1 : UUID0, c) > 0) != cases[i].told[k])
				fail_msg("%s: counters of GPU %d", cases[i].script, k);
		}
		nvml_fixture_close(b);
	}
}

static void numbers_that_are_none_give_no_sample(void **state)
{
	struct nvml_fixture *f = *state;
	struct device_sample s[DEVICES_MAX];
	struct err e;
	static const struct {
		const char *script;
		enum field field;
		const char *want;
	} cases[] = {
	        {"set power_mw * 4294967295\n", FIELD_POWER_USAGE, "-"}, // all bits set: not available
	        {"set power_mw * 4000000000\n", FIELD_POWER_USAGE, "-"},
	        {"set pstate * 32\n", FIELD_PSTATE, "-"}, // "unknown"
	        {"set pstate * 15\n", FIELD_PSTATE, "15"},
	        {"set util_gpu * 101\n", FIELD_GPU_UTIL, "-"},
	        {"set util_gpu * 100\n", FIELD_GPU_UTIL, "100"},
	        {"set util_mem * 4294967295\n", FIELD_MEM_COPY_UTIL, "-"},
	        {"set temp * 4294967295\n", FIELD_GPU_TEMP, "-"},
	        {"set fan * 130\n", FIELD_FAN_SPEED, "130"}, // of what is asked for, may be above 100
	        {"set mem_temp * 4294967295\n", FIELD_MEMORY_TEMP, "-"},
	        {"set energy_mj * 9223372036854775808\n", FIELD_TOTAL_ENERGY, "-"},
	        {"set energy_mj * 4611686018427387905\n", FIELD_TOTAL_ENERGY, "4611686018427387905"},
	        {"set sbe_vol * 18446744073709551615\n", FIELD_ECC_SBE_VOL, "-"},
	        {"set field74 * 18446744073709551615\n", FIELD_POWER_VIOLATION, "-"},
	        {"set rows_correctable * 4294967295\n", FIELD_CORRECTABLE_REMAPPED_ROWS, "-"},
	        {"set mem_total_mib * 0\nset mem_used_mib * 0\nset mem_reserved_mib * 0\n", FIELD_FB_USED, "-"},
	        {"set mem_total_mib * 0\nset mem_used_mib * 0\nset mem_reserved_mib * 0\n", FIELD_FB_TOTAL, "-"},
	        {"set mem_used_mib * 1001\n", FIELD_FB_USED, "-"}, // of 1000
	        {"set bar1_total_mib * 0\nset bar1_used_mib * 0\n", FIELD_BAR1_USED, "-"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		nvml_fixture_play(f, cases[i].script);
		struct backend *b = nvml_fixture_open(f, LIB_WHOLE);
		char got[64];
		assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
		if (strcmp(nvml_fixture_show(&s[0], cases[i].field, got, sizeof got), cases[i].want) != 0)
			fail_msg("%s: got %s, want %s", cases[i].script, got, cases[i].want);
		nvml_fixture_close(b);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, nvml_fixture_setup, nvml_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(every_reading_arrives_in_its_field_and_unit),
	        TEST(unsupported_field_gives_no_sample_never_zero),
	        TEST(nvlink_bandwidth_is_the_rate_between_two_rounds),
	        TEST(costly_fields_are_read_every_five_seconds),
	        TEST(slow_fields_are_read_every_ten_seconds),
	        TEST(virtual_gpu_says_whether_it_has_a_licence),
	        TEST(memory_falls_back_to_the_first_version),
	        TEST(old_library_gives_what_it_has),
	        TEST(unusable_library_names_its_fault),
	        TEST(xid_events_are_counted_between_samples),
	        TEST(xid_is_absent_without_events),
	        TEST(numbers_that_are_none_give_no_sample),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
