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
#include "exporter/xid.h"
#include "test/support/nvml_fixture.h"

#define PATIENCE_MS 10000 // longest wait for anything; far above what it takes, even under valgrind
#define UUID0       "GPU-00000000-0000-0000-0000-000000000000"
#define UUID1       "GPU-00000000-0000-0000-0000-000000000001"

static struct backend *open_backend(struct nvml_fixture *f, int library)
{
	struct err e;
	struct backend *b = backend_nvml_new(f->library[library], f->xids, NULL, &e);
	assert_non_null(b);
	if (b->ops->open(b, &e) < 0)
		fail_msg("%s", e.msg);
	return b;
}

static void close_backend(struct backend *b)
{
	b->ops->close(b);
	b->ops->destroy(b);
}

// The value of a field, or "-".
static const char *show(const struct device_sample *s, enum field f, char *out, size_t size)
{
	if (!sample_has(s, f))
		snprintf(out, size, "-");
	else if (family_of(f)->kind == FIELD_DOUBLE)
		snprintf(out, size, "%g", s->value[f].f);
	else
		snprintf(out, size, "%lld", (long long)s->value[f].i);
	return out;
}

#define assert_field(s, f, want)                                                                                       \
	do {                                                                                                           \
		char got_[64];                                                                                         \
		if (strcmp(show(s, f, got_, sizeof got_), want) != 0)                                                  \
			fail_msg("%s: got %s, want %s", family_of(f)->name, got_, want);                               \
	} while (0)

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
	struct backend *b = open_backend(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	for (enum field k = 0; k < FIELD__COUNT; k++)
		assert_field(&s[1], k, want[k] ? want[k] : "-"); // profiling fields are not NVML's
	size_t n;
	const struct device *d = b->ops->devices(b, &n);
	assert_int_equal(n, 2);
	assert_int_equal(d[1].index, 1);
	assert_string_equal(d[1].uuid, UUID1);
	assert_string_equal(d[1].pci_bus_id, "00000000:05:00.0");
	assert_string_equal(d[1].node, "nvidia1");
	assert_string_equal(d[1].model, "NVIDIA Fake 9000");
	assert_string_equal(b->ops->driver_version(b), "580.65.06");
	close_backend(b);
}

static void what_is_not_supported_gives_no_sample_never_zero(void **state)
{
	struct nvml_fixture *f = *state;
	static const struct {
		const char *function;
		uint64_t fields; // that must be absent
	} cases[] = {
#define BIT(f) (UINT64_C(1) << (f))
	        {"nvmlDeviceGetUtilizationRates", BIT(FIELD_GPU_UTIL) | BIT(FIELD_MEM_COPY_UTIL)},
	        {"nvmlDeviceGetEncoderUtilization", BIT(FIELD_ENC_UTIL)},
	        {"nvmlDeviceGetDecoderUtilization", BIT(FIELD_DEC_UTIL)},
	        {"nvmlDeviceGetPowerUsage", BIT(FIELD_POWER_USAGE)},
	        {"nvmlDeviceGetEnforcedPowerLimit", BIT(FIELD_POWER_LIMIT)},
	        {"nvmlDeviceGetTotalEnergyConsumption", BIT(FIELD_TOTAL_ENERGY)},
	        {"nvmlDeviceGetTemperature", BIT(FIELD_GPU_TEMP)},
	        {"nvmlDeviceGetFieldValues", BIT(FIELD_MEMORY_TEMP)},
	        {"field82", BIT(FIELD_MEMORY_TEMP)},
	        {"nvmlDeviceGetClockInfo", BIT(FIELD_SM_CLOCK) | BIT(FIELD_MEM_CLOCK)},
	        {"nvmlDeviceGetCurrentClocksEventReasons", BIT(FIELD_CLOCKS_EVENT_REASONS)},
	        {"nvmlDeviceGetPcieReplayCounter", BIT(FIELD_PCIE_REPLAY)},
	        {"nvmlDeviceGetTotalEccErrors",
	         BIT(FIELD_ECC_SBE_VOL) | BIT(FIELD_ECC_DBE_VOL) | BIT(FIELD_ECC_SBE_AGG) | BIT(FIELD_ECC_DBE_AGG)},
	};
	struct backend *b = open_backend(f, LIB_WHOLE);
	struct device_sample all[DEVICES_MAX], s[DEVICES_MAX];
	struct err e;
	assert_int_equal(b->ops->sample(b, 0, 0, all, &e), 0);
	// 3 not supported, 4 no permission, 27 not ready, 999 unknown
	static const int results[] = {3, 4, 27, 999};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		for (size_t k = 0; k < 4; k++) {
			char script[128];
			snprintf(script, sizeof script, "fail %s 1 %d\n", cases[i].function, results[k]);
			nvml_fixture_play(f, script);
			assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
			assert_true(s[0].valid == all[0].valid); // the other GPU is not concerned
			if (s[1].valid != (all[1].valid & ~cases[i].fields))
				fail_msg("%s = %d: fields %llx", cases[i].function, results[k],
				         (unsigned long long)s[1].valid);
		}
	}
	close_backend(b);
}

static void memory_falls_back_to_the_first_version(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = open_backend(f, LIB_WHOLE);
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
	close_backend(b);
}

static void an_old_library_gives_what_it_has(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = open_backend(f, LIB_OLD);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_field(&s[0], FIELD_GPU_UTIL, "42");
	assert_field(&s[0], FIELD_FB_USED, "350");
	assert_field(&s[0], FIELD_POWER_LIMIT, "700");        // by the older function
	assert_field(&s[0], FIELD_CLOCKS_EVENT_REASONS, "4"); // by its older name
	assert_field(&s[0], FIELD_TOTAL_ENERGY, "-");
	assert_field(&s[0], FIELD_ECC_SBE_VOL, "-");
	assert_field(&s[0], FIELD_ENC_UTIL, "-");
	assert_field(&s[0], FIELD_MEMORY_TEMP, "-");
	close_backend(b);
}

static void what_cannot_be_opened_says_why(void **state)
{
	struct nvml_fixture *f = *state;
	const struct {
		const char *library, *script, *in_message;
	} cases[] = {
	        {"/nonexistent/libnvidia-ml.so.1", "", "cannot load NVML: /nonexistent/libnvidia-ml.so.1"},
	        {f->library[LIB_EMPTY], "", "has no function nvmlInit_v2: is it NVML?"},
	        {f->library[LIB_WHOLE], "fail nvmlInit_v2 * 9\n", "NVML does not start: Driver Not Loaded"},
	        {f->library[LIB_WHOLE], "fail nvmlDeviceGetCount_v2 * 999\n", "cannot count GPUs"},
	        {f->library[LIB_WHOLE], "devices 0\n", "no GPU on this node"},
	        {f->library[LIB_WHOLE], "fail nvmlDeviceGetHandleByIndex_v2 * 15\n", "no GPU answers: GPU is lost"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct err e;
		struct backend *b = backend_nvml_new(cases[i].library, f->xids, NULL, &e);
		nvml_fixture_play(f, cases[i].script);
		assert_int_equal(b->ops->open(b, &e), -1);
		if (!strstr(e.msg, cases[i].in_message))
			fail_msg("message \"%s\" lacks \"%s\"", e.msg, cases[i].in_message);
		b->ops->destroy(b);
	}
}

static void a_gpu_that_cannot_be_addressed_is_left_out(void **state)
{
	struct nvml_fixture *f = *state;
	nvml_fixture_play(f, "devices 3\nfail nvmlDeviceGetHandleByIndex_v2 1 15\n");
	struct backend *b = open_backend(f, LIB_WHOLE);
	size_t n;
	const struct device *d = b->ops->devices(b, &n);
	assert_int_equal(n, 2);
	assert_int_equal(d[1].index, 2);
	close_backend(b);
}

static void a_lost_gpu_leaves_the_others_alone(void **state)
{
	struct nvml_fixture *f = *state;
	static const char *const functions[] = {"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo_v2",
	                                        "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetFieldValues"};
	struct backend *b = open_backend(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	for (size_t i = 0; i < 4; i++) {
		char script[128];
		snprintf(script, sizeof script, "fail %s 0 %d\n", functions[i], i % 2 ? 16 : 15);
		nvml_fixture_play(f, script);
		assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
		assert_true(s[0].lost && s[0].valid == 0);
		assert_false(s[1].lost);
		assert_field(&s[1], FIELD_GPU_UTIL, "42");
	}
	nvml_fixture_play(f, "");
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_false(s[0].lost);
	assert_field(&s[0], FIELD_GPU_UTIL, "42");
	close_backend(b);
}

static void pause_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

static uint64_t xids_of(struct nvml_fixture *f, const char *uuid, int32_t code)
{
	struct xid_count c[XID_CODES_MAX + 1];
	size_t n = xid_store_read(f->xids, uuid, c, XID_CODES_MAX + 1);
	for (size_t i = 0; i < n; i++)
		if (c[i].code == code)
			return c[i].count;
	return 0;
}

static void xid_events_are_counted_between_samples(void **state)
{
	struct nvml_fixture *f = *state;
	struct backend *b = open_backend(f, LIB_WHOLE);
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
	close_backend(b); // joins the thread
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, nvml_fixture_setup, nvml_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(every_reading_arrives_in_its_field_and_unit),
	        TEST(what_is_not_supported_gives_no_sample_never_zero),
	        TEST(memory_falls_back_to_the_first_version),
	        TEST(an_old_library_gives_what_it_has),
	        TEST(what_cannot_be_opened_says_why),
	        TEST(a_gpu_that_cannot_be_addressed_is_left_out),
	        TEST(a_lost_gpu_leaves_the_others_alone),
	        TEST(xid_events_are_counted_between_samples),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
