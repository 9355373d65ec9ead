// SPDX-License-Identifier: Apache-2.0
// The sampler thread against the scripted library of test/fake/nvml: a driver that hangs, is slow, or is not there.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "exporter/backend.h"
#include "exporter/sampler.h"
#include "test/support/nvml_fixture.h"

#define INTERVAL_MS 100
#define PATIENCE_MS 10000 // longest wait for anything; far above what it takes, even under valgrind
#define PAGE_MAX    (1024 * 1024)

static void pause_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

static struct sampler *start(struct nvml_fixture *f, struct backend *b, const struct clock *clock,
                             int64_t drop_after_ms)
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
	struct nvml_fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	struct backend *b = backend_nvml_new(f->library[LIB_WHOLE], f->xids, NULL, &e);
	struct sampler *s = start(f, b, &clock, 1500);
	assert_true(wait_for(s, &v, is_ready));

	nvml_fixture_play(f, "set util_gpu * 77\nsleep nvmlDeviceGetTemperature 0 60000\n");
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

	nvml_fixture_play(f, "");
	assert_true(sampler_stop(s, PATIENCE_MS));
	sampler_free(s);
	b->ops->destroy(b);
}

static void a_slow_driver_recovers(void **state)
{
	struct nvml_fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	struct backend *b = backend_nvml_new(f->library[LIB_WHOLE], f->xids, NULL, &e);
	struct sampler *s = start(f, b, &clock, 0);
	assert_true(wait_for(s, &v, is_ready));
	nvml_fixture_play(f, "sleep nvmlDeviceGetPowerUsage 1 60000\n");
	assert_true(wait_for(s, &v, is_not_ready));
	nvml_fixture_play(f, "set util_gpu * 77\n");
	assert_true(wait_for(s, &v, is_ready_with_77));
	assert_true(sampler_stop(s, PATIENCE_MS));
	sampler_free(s);
	b->ops->destroy(b);
}

static void without_a_driver_it_stays_up_and_tries_again(void **state)
{
	struct nvml_fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	nvml_fixture_play(f, "fail nvmlInit_v2 * 9\n");
	struct backend *b = backend_nvml_new(f->library[LIB_WHOLE], f->xids, NULL, &e);
	struct sampler *s = start(f, b, &clock, 0);
	assert_true(wait_for(s, &v, is_down));
	assert_false(v.has_text);
	assert_non_null(strstr(v.status.message, "Driver Not Loaded"));
	nvml_fixture_play(f, "");
	assert_true(wait_for(s, &v, is_ready));
	// The driver goes away under way: no readings, XID counters stay, and it comes back.
	nvml_fixture_play(f, "fail nvmlDeviceGetUtilizationRates * 9\nfail nvmlInit_v2 * 9\n");
	assert_true(wait_for(s, &v, is_down));
	assert_false(v.has_value);
	nvml_fixture_play(f, "");
	assert_true(wait_for(s, &v, is_ready));
	assert_true(sampler_stop(s, PATIENCE_MS));
	sampler_free(s);
	b->ops->destroy(b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, nvml_fixture_setup, nvml_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(a_hanging_driver_call_blocks_no_reader),
	        TEST(a_slow_driver_recovers),
	        TEST(without_a_driver_it_stays_up_and_tries_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
