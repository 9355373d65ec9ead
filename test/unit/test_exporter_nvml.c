// SPDX-License-Identifier: Apache-2.0
// The NVML backend and the sampler thread, against the scripted library of test/fake/nvml.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "exporter/backend.h"
#include "exporter/sampler.h"
#include "exporter/xid.h"

#define INTERVAL_MS 100
#define PATIENCE_MS 10000 // longest wait for anything; far above what it takes, even under valgrind
#define PAGE_MAX    (1024 * 1024)
#define UUID0       "GPU-00000000-0000-0000-0000-000000000000"
#define UUID1       "GPU-00000000-0000-0000-0000-000000000001"

struct fixture {
	char script[32]; // what FAKE_NVML_SCRIPT names
	char library[3][PATH_MAX];
	struct xid_store *xids;
};
enum { LIB_WHOLE, LIB_OLD, LIB_EMPTY };

// The libraries lie beside this program's folder in the build tree.
static void find_libraries(struct fixture *f)
{
	static const char *const names[] = {"fake-nvml", "fake-nvml-old", "fake-nvml-empty"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	assert_true(n > 0);
	self[n] = '\0';
	for (int up = 0; up < 2; up++)
		*strrchr(self, '/') = '\0';
	for (int i = 0; i < 3; i++)
		assert_true(snprintf(f->library[i], PATH_MAX, "%s/%s/libnvidia-ml.so.1", self, names[i]) < PATH_MAX);
}

// Replaces the script in one step, as the library may read it at any time.
static void play(const struct fixture *f, const char *text)
{
	char temp[40];
	snprintf(temp, sizeof temp, "%s.new", f->script);
	FILE *out = fopen(temp, "w");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(rename(temp, f->script), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	snprintf(f->script, sizeof f->script, "/tmp/gpuscale-nvml-XXXXXX");
	int fd = mkstemp(f->script);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(setenv("FAKE_NVML_SCRIPT", f->script, 1), 0);
	find_libraries(f);
	f->xids = xid_store_new(NULL);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	unlink(f->script);
	xid_store_free(f->xids);
	free(f);
	return 0;
}

static struct backend *open_backend(struct fixture *f, int library)
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
	struct fixture *f = *state;
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
	struct fixture *f = *state;
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
			play(f, script);
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
	struct fixture *f = *state;
	struct backend *b = open_backend(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	play(f, "fail nvmlDeviceGetMemoryInfo_v2 * 3\n");
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_field(&s[0], FIELD_FB_TOTAL, "1000");
	assert_field(&s[0], FIELD_FB_USED, "350"); // with what the driver keeps
	assert_field(&s[0], FIELD_FB_FREE, "650");
	assert_field(&s[0], FIELD_FB_RESERVED, "-");
	play(f, "fail nvmlDeviceGetMemoryInfo_v2 * 3\nfail nvmlDeviceGetMemoryInfo * 3\n");
	assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
	assert_field(&s[0], FIELD_FB_USED, "-");
	close_backend(b);
}

static void an_old_library_gives_what_it_has(void **state)
{
	struct fixture *f = *state;
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
	struct fixture *f = *state;
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
		play(f, cases[i].script);
		assert_int_equal(b->ops->open(b, &e), -1);
		if (!strstr(e.msg, cases[i].in_message))
			fail_msg("message \"%s\" lacks \"%s\"", e.msg, cases[i].in_message);
		b->ops->destroy(b);
	}
}

static void a_gpu_that_cannot_be_addressed_is_left_out(void **state)
{
	struct fixture *f = *state;
	play(f, "devices 3\nfail nvmlDeviceGetHandleByIndex_v2 1 15\n");
	struct backend *b = open_backend(f, LIB_WHOLE);
	size_t n;
	const struct device *d = b->ops->devices(b, &n);
	assert_int_equal(n, 2);
	assert_int_equal(d[1].index, 2);
	close_backend(b);
}

static void a_lost_gpu_leaves_the_others_alone(void **state)
{
	struct fixture *f = *state;
	static const char *const functions[] = {"nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo_v2",
	                                        "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetFieldValues"};
	struct backend *b = open_backend(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	for (size_t i = 0; i < 4; i++) {
		char script[128];
		snprintf(script, sizeof script, "fail %s 0 %d\n", functions[i], i % 2 ? 16 : 15);
		play(f, script);
		assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
		assert_true(s[0].lost && s[0].valid == 0);
		assert_false(s[1].lost);
		assert_field(&s[1], FIELD_GPU_UTIL, "42");
	}
	play(f, "");
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

static uint64_t xids_of(struct fixture *f, const char *uuid, int32_t code)
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
	struct fixture *f = *state;
	struct backend *b = open_backend(f, LIB_WHOLE);
	struct device_sample s[DEVICES_MAX];
	struct err e;
	play(f, "xid 1 1 48\nxid 2 0 31\nxid 3 1 48\n");
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

// ---- the sampler ----

static struct sampler *start(struct fixture *f, struct backend *b, const struct clock *clock, int64_t drop_after_ms)
{
	struct sampler_options o = {.backend = b,
	                            .xids = f->xids,
	                            .clock = clock,
	                            .interval_ms = INTERVAL_MS,
	                            .drop_after_ms = drop_after_ms,
	                            .render = {.hostname_label = "Hostname", .hostname = "n", .driver_version = ""}};
	struct err e;
	struct sampler *s = sampler_new(&o, &e);
	assert_non_null(s);
	assert_int_equal(sampler_start(s, &e), 0);
	return s;
}

struct view {
	struct sampler_status status;
	bool has_value; // the page has a sample of GPU_UTIL for GPU 0
	bool has_text;
	double util;
};

static void look(struct sampler *s, struct view *v)
{
	struct buf page;
	buf_init(&page, PAGE_MAX);
	sampler_read(s, &page, &v->status);
	const char *at = strstr(buf_str(&page), "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"");
	at = at ? strstr(at, "} ") : NULL;
	v->has_text = page.len > 0;
	v->has_value = at != NULL;
	v->util = -1;
	if (at)
		assert_int_equal(num_parse_f64(at + 2, strcspn(at + 2, "\n"), &v->util, NULL), 0);
	buf_done(&page);
}

// Looks until `what` holds. False when PATIENCE_MS are over.
static bool wait_for(struct sampler *s, struct view *v, bool (*what)(const struct view *))
{
	for (int waited = 0; waited < PATIENCE_MS; waited += 10) {
		look(s, v);
		if (what(v))
			return true;
		pause_ms(10);
	}
	return false;
}

static bool is_ready(const struct view *v)
{
	return v->status.ready && v->has_value;
}
static bool is_not_ready(const struct view *v)
{
	return !v->status.ready;
}
static bool is_dropped(const struct view *v)
{
	return v->status.dropped;
}
static bool is_down(const struct view *v)
{
	return !v->status.up && v->status.errors > 0;
}
static bool is_ready_with_77(const struct view *v)
{
	return is_ready(v) && v->util == 77;
}

static void a_hanging_driver_call_blocks_no_reader(void **state)
{
	struct fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	struct backend *b = backend_nvml_new(f->library[LIB_WHOLE], f->xids, NULL, &e);
	struct sampler *s = start(f, b, &clock, 1500);
	assert_true(wait_for(s, &v, is_ready));

	play(f, "set util_gpu * 77\nsleep nvmlDeviceGetTemperature 0 60000\n");
	assert_true(wait_for(s, &v, is_not_ready));
	assert_true(v.status.up && v.has_value); // the last snapshot is still there
	assert_true(v.util == 42);
	int64_t before_ms = clock_mono_ms(&clock);
	for (int i = 0; i < 100; i++)
		look(s, &v);
	assert_true(clock_mono_ms(&clock) - before_ms < 5000);
	// Too old to pass for fresh: the page is empty rather than frozen.
	assert_true(wait_for(s, &v, is_dropped));
	assert_false(v.has_text);
	// It cannot be ended now, and says so.
	assert_false(sampler_stop(s, 50));

	play(f, "");
	assert_true(sampler_stop(s, PATIENCE_MS));
	sampler_free(s);
	b->ops->destroy(b);
}

static void a_slow_driver_recovers(void **state)
{
	struct fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	struct backend *b = backend_nvml_new(f->library[LIB_WHOLE], f->xids, NULL, &e);
	struct sampler *s = start(f, b, &clock, 0);
	assert_true(wait_for(s, &v, is_ready));
	play(f, "sleep nvmlDeviceGetPowerUsage 1 60000\n");
	assert_true(wait_for(s, &v, is_not_ready));
	play(f, "set util_gpu * 77\n");
	assert_true(wait_for(s, &v, is_ready_with_77));
	assert_true(sampler_stop(s, PATIENCE_MS));
	sampler_free(s);
	b->ops->destroy(b);
}

static void without_a_driver_it_stays_up_and_tries_again(void **state)
{
	struct fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	play(f, "fail nvmlInit_v2 * 9\n");
	struct backend *b = backend_nvml_new(f->library[LIB_WHOLE], f->xids, NULL, &e);
	struct sampler *s = start(f, b, &clock, 0);
	assert_true(wait_for(s, &v, is_down));
	assert_false(v.has_text);
	assert_non_null(strstr(v.status.message, "Driver Not Loaded"));
	play(f, "");
	assert_true(wait_for(s, &v, is_ready));
	// The driver goes away under way: no readings, XID counters stay, and it comes back.
	play(f, "fail nvmlDeviceGetUtilizationRates * 9\nfail nvmlInit_v2 * 9\n");
	assert_true(wait_for(s, &v, is_down));
	assert_false(v.has_value);
	play(f, "");
	assert_true(wait_for(s, &v, is_ready));
	assert_true(sampler_stop(s, PATIENCE_MS));
	sampler_free(s);
	b->ops->destroy(b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        TEST(every_reading_arrives_in_its_field_and_unit),
	        TEST(what_is_not_supported_gives_no_sample_never_zero),
	        TEST(memory_falls_back_to_the_first_version),
	        TEST(an_old_library_gives_what_it_has),
	        TEST(what_cannot_be_opened_says_why),
	        TEST(a_gpu_that_cannot_be_addressed_is_left_out),
	        TEST(a_lost_gpu_leaves_the_others_alone),
	        TEST(xid_events_are_counted_between_samples),
	        TEST(a_hanging_driver_call_blocks_no_reader),
	        TEST(a_slow_driver_recovers),
	        TEST(without_a_driver_it_stays_up_and_tries_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
