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
#include "exporter/page/render_page.h"
#include "exporter/sampler.h"
#include "exporter/xid.h"
#include "test/support/apart.h"
#include "test/support/nvml_fixture.h"

#define INTERVAL_MS 100
#define WINDOW_MS   15000 // the time to see a spike in
#define PATIENCE_MS 60000 // longest wait for anything; far above what it takes, even under valgrind
#define DROP_MS     15000 // the time to see that it is not ready but not dropped yet
#define RELEASE_MS  9000  // and one to see that it is released
#define PAGE_MAX    (1024 * 1024)

static void pause_ms(long ms)
{
	const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
	nanosleep(&t, NULL);
}

static struct render_page renderer; // of the sampler of the test in progress

static struct sampler *start(struct nvml_fixture *f, struct backend *b, const struct clock *clock,
                             int64_t drop_after_ms)
{
	const struct render_page_options page = {.hostname_label = "Hostname", .hostname = "n", .xids = f->xids};
	render_page_init(&renderer, &page);
	struct sampler_options o = {.backend = b,
	                            .clock = clock,
	                            .interval_ms = INTERVAL_MS,
	                            .drop_after_ms = drop_after_ms,
	                            .window_ms = WINDOW_MS,
	                            .render = render_page_round,
	                            .render_arg = &renderer,
	                            .text_bytes_max = RENDER_PAGE_BYTES_MAX};
	struct err e;
	struct sampler *s = sampler_new(&o, &e);
	assert_non_null(s);
	assert_int_equal(sampler_start(s, &e), 0);
	return s;
}

static void finish(struct sampler *s)
{
	sampler_free(s);
	render_page_done(&renderer);
}

struct view {
	struct sampler_status status;
	bool has_value; // the page has a sample of GPU_UTIL for GPU 0
	bool has_text;
	double util, util_max;
	double energy;
	int64_t gpus_up;   // of gpuscale_gpu_up, those that are 1
	int64_t gpus_down; // and 0
	double xids;       // of GPU 0, code 48
};

// The value of the first series on the page that begins with name, -1: there is none.
static double value_of(const char *page, const char *name)
{
	const char *at = strstr(page, name);
	at = at ? strstr(at, "} ") : NULL;
	double v = -1;
	if (at)
		assert_int_equal(num_parse_f64(at + 2, strcspn(at + 2, "\n"), &v, NULL), 0);
	return v;
}

static void look(struct sampler *s, struct view *v)
{
	struct buf page;
	buf_init(&page, PAGE_MAX);
	sampler_read(s, &page, &v->status);
	v->has_text = page.len > 0;
	v->util = value_of(buf_str(&page), "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"");
	v->has_value = v->util >= 0;
	v->util_max = value_of(buf_str(&page), "gpuscale_gpu_gpu_util_window_max{gpu=\"0\"");
	v->energy = value_of(buf_str(&page), "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu=\"0\"");
	v->gpus_up = v->gpus_down = 0;
	v->xids = value_of(buf_str(&page), "gpuscale_gpu_xid_errors_total{gpu=\"0\"");
	for (const char *at = buf_str(&page); (at = strstr(at, "\ngpuscale_gpu_up{")); at++)
		*(value_of(at, "gpuscale_gpu_up") == 1 ? &v->gpus_up : &v->gpus_down) += 1;
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

static bool is_spike(const struct view *v)
{
	return v->util == 99;
}
static bool is_spike_over(const struct view *v)
{
	return v->util == 42 && v->util_max == 99;
}
static bool is_spike_forgotten(const struct view *v)
{
	return v->util == 42 && v->util_max == 42;
}
static bool is_energy_carried_on(const struct view *v)
{
	return is_ready(v) && v->energy == 1005;
}
static bool is_one_missing(const struct view *v)
{
	return v->status.ready && v->status.devices == 1 && v->status.missing == 1;
}
static bool is_one_lost(const struct view *v)
{
	return v->status.ready && v->status.devices == 2 && v->status.lost == 1 && v->gpus_up == 1;
}
static bool is_released(const struct view *v)
{
	return v->status.released;
}

static void hanging_driver_call_blocks_no_reader(void **state)
{
	struct nvml_fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	struct backend *b =
	        backend_nvml_new(&(struct backend_config){.nvml_library = f->library[LIB_WHOLE], .xids = f->xids}, &e);
	struct sampler *s = start(f, b, &clock, DROP_MS);
	assert_true(wait_for(s, &v, is_ready));

	nvml_fixture_play(f, "set util_gpu * 77\nsleep nvmlDeviceGetTemperature 0 60000\n");
	assert_true(wait_for(s, &v, is_not_ready));
	assert_true(v.status.up && v.has_value); // the last snapshot is still there
	assert_true(v.util == 42);
	int64_t before_ms = clock_mono_ms(&clock);
	for (int i = 0; i < 100; i++)
		look(s, &v);
	assert_true(clock_mono_ms(&clock) - before_ms < 30000);
	// Too old to pass for fresh: the page is empty rather than frozen.
	assert_true(wait_for(s, &v, is_dropped));
	assert_false(v.has_text);
	// It cannot be ended now, and says so.
	assert_false(sampler_stop(s, 50));

	nvml_fixture_play(f, "");
	assert_true(sampler_stop(s, PATIENCE_MS));
	finish(s);
	b->ops->destroy(b);
}

static void slow_driver_recovers(void **state)
{
	struct nvml_fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	struct backend *b =
	        backend_nvml_new(&(struct backend_config){.nvml_library = f->library[LIB_WHOLE], .xids = f->xids}, &e);
	struct sampler *s = start(f, b, &clock, 0);
	assert_true(wait_for(s, &v, is_ready));
	nvml_fixture_play(f, "sleep nvmlDeviceGetPowerUsage 1 60000\n");
	assert_true(wait_for(s, &v, is_not_ready));
	nvml_fixture_play(f, "set util_gpu * 77\n");
	assert_true(wait_for(s, &v, is_ready_with_77));
	assert_true(sampler_stop(s, PATIENCE_MS));
	finish(s);
	b->ops->destroy(b);
}

static void sampler_retries_without_a_driver(void **state)
{
	struct nvml_fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	nvml_fixture_play(f, "fail nvmlInit_v2 * 9\n");
	struct backend *b =
	        backend_nvml_new(&(struct backend_config){.nvml_library = f->library[LIB_WHOLE], .xids = f->xids}, &e);
	struct sampler *s = start(f, b, &clock, 0);
	assert_true(wait_for(s, &v, is_down));
	assert_false(v.has_text);
	assert_non_null(strstr(v.status.message, "Driver Not Loaded"));
	assert_true(v.status.read_seconds >= 0 && !v.status.read_ok);
	nvml_fixture_play(f, "");
	assert_true(wait_for(s, &v, is_ready));
	assert_true(v.status.read_ok);
	// The driver goes away during a run: no readings, XID counters stay, and it comes back.
	nvml_fixture_play(f, "fail nvmlDeviceGetUtilizationRates * 9\nfail nvmlInit_v2 * 9\n");
	assert_true(wait_for(s, &v, is_down));
	assert_false(v.has_value);
	nvml_fixture_play(f, "");
	assert_true(wait_for(s, &v, is_ready));
	assert_true(sampler_stop(s, PATIENCE_MS));
	finish(s);
	b->ops->destroy(b);
}

static void spike_between_two_scrapes_is_seen_by_every_scraper(void **state)
{
	struct nvml_fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	struct backend *b =
	        backend_nvml_new(&(struct backend_config){.nvml_library = f->library[LIB_WHOLE], .xids = f->xids}, &e);
	struct sampler *s = start(f, b, &clock, 0);
	assert_true(wait_for(s, &v, is_ready));
	nvml_fixture_play(f, "set util_gpu * 99\n");
	assert_true(wait_for(s, &v, is_spike));
	nvml_fixture_play(f, "");
	assert_true(wait_for(s, &v, is_spike_over));
	// Reading does not reset it: the next scraper sees it as well.
	look(s, &v);
	assert_true(is_spike_over(&v));
	assert_true(wait_for(s, &v, is_spike_forgotten));
	assert_true(sampler_stop(s, PATIENCE_MS));
	finish(s);
	b->ops->destroy(b);
}

static bool is_read_slow(const struct view *v)
{
	return v->status.read_ok && v->status.read_seconds >= 0.2;
}
static bool is_read_bad(const struct view *v)
{
	assert_true(v->status.read_ok || !v->status.up); // the outcome and the page are of the same round
	return !v->status.read_ok;
}

static void driver_duration_and_failure_are_reported(void **state)
{
	struct nvml_fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	struct backend *b =
	        backend_nvml_new(&(struct backend_config){.nvml_library = f->library[LIB_WHOLE], .xids = f->xids}, &e);
	struct sampler *s = start(f, b, &clock, 0);
	assert_true(wait_for(s, &v, is_ready));
	assert_true(v.status.read_ok && v.status.read_seconds >= 0 && v.status.read_seconds < PATIENCE_MS / 1e3);
	nvml_fixture_play(f, "sleep nvmlDeviceGetPowerUsage 1 200\n");
	assert_true(wait_for(s, &v, is_read_slow));
	nvml_fixture_play(f, "fail nvmlDeviceGetUtilizationRates * 9\nfail nvmlInit_v2 * 9\n");
	assert_true(wait_for(s, &v, is_read_bad));
	nvml_fixture_play(f, "");
	assert_true(wait_for(s, &v, is_ready));
	assert_true(v.status.read_ok);
	assert_true(sampler_stop(s, PATIENCE_MS));
	finish(s);
	b->ops->destroy(b);
}

static void driver_restart_leaves_counters_rising(void **state)
{
	struct nvml_fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	nvml_fixture_play(f, "set energy_mj * 1000\n");
	struct backend *b =
	        backend_nvml_new(&(struct backend_config){.nvml_library = f->library[LIB_WHOLE], .xids = f->xids}, &e);
	struct sampler *s = start(f, b, &clock, 0);
	assert_true(wait_for(s, &v, is_ready));
	assert_true(v.energy == 1000);
	xid_store_count(f->xids, "GPU-00000000-0000-0000-0000-000000000000", 48, 1);
	nvml_fixture_play(f, "fail nvmlDeviceGetUtilizationRates * 9\nfail nvmlInit_v2 * 9\n");
	assert_true(wait_for(s, &v, is_down));
	assert_int_equal(v.status.devices + v.status.missing, 2); // not forgotten
	assert_int_equal(v.gpus_down, 2);
	assert_true(v.xids == 1); // true whatever the driver does
	nvml_fixture_play(f, "set energy_mj * 5\n");
	assert_true(wait_for(s, &v, is_energy_carried_on));
	assert_int_equal(v.status.missing, 0);
	assert_true(sampler_stop(s, PATIENCE_MS));
	finish(s);
	b->ops->destroy(b);
}

static void lost_and_missing_gpus_are_counted(void **state)
{
	struct nvml_fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	struct backend *b =
	        backend_nvml_new(&(struct backend_config){.nvml_library = f->library[LIB_WHOLE], .xids = f->xids}, &e);
	struct sampler *s = start(f, b, &clock, 0);
	assert_true(wait_for(s, &v, is_ready));
	assert_int_equal(v.gpus_up, 2);
	nvml_fixture_play(f, "fail nvmlDeviceGetUtilizationRates 1 15\n");
	assert_true(wait_for(s, &v, is_one_lost));
	// The driver comes back without it.
	nvml_fixture_play(f, "devices 1\nfail nvmlDeviceGetUtilizationRates * 9\n");
	assert_true(wait_for(s, &v, is_down));
	nvml_fixture_play(f, "devices 1\n");
	assert_true(wait_for(s, &v, is_one_missing));
	assert_true(sampler_stop(s, PATIENCE_MS));
	finish(s);
	b->ops->destroy(b);
}

static void released_gpus_are_closed_and_opened_again(void **state)
{
	struct nvml_fixture *f = *state;
	struct clock clock;
	struct err e;
	struct view v;
	clock_init_real(&clock);
	struct backend *b =
	        backend_nvml_new(&(struct backend_config){.nvml_library = f->library[LIB_WHOLE], .xids = f->xids}, &e);
	struct sampler *s = start(f, b, &clock, 0);
	assert_true(wait_for(s, &v, is_ready));
	sampler_release(s, 60000);
	assert_true(wait_for(s, &v, is_released));
	assert_false(v.status.up || v.status.ready || v.has_value);
	assert_int_equal(v.status.missing, 2);
	assert_in_range(v.status.release_left_ms, 1, 60000);
	assert_int_equal(v.status.errors, 0); // it was asked for
	assert_non_null(strstr(v.status.message, "released"));
	// No driver call while it lasts: the next one would hang.
	nvml_fixture_play(f, "sleep nvmlInit_v2 * 60000\n");
	pause_ms(5 * INTERVAL_MS);
	look(s, &v);
	assert_true(v.status.released);
	nvml_fixture_play(f, "");
	sampler_release(s, 0); // the reset is done
	assert_true(wait_for(s, &v, is_ready));
	assert_false(v.status.released);
	// A release that runs out by itself.
	sampler_release(s, RELEASE_MS);
	assert_true(wait_for(s, &v, is_released));
	assert_true(wait_for(s, &v, is_ready));
	// A round in progress does not delay the stop.
	sampler_release(s, 60000);
	assert_true(wait_for(s, &v, is_released));
	assert_true(sampler_stop(s, PATIENCE_MS));
	finish(s);
	b->ops->destroy(b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, nvml_fixture_setup, nvml_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(hanging_driver_call_blocks_no_reader),
	        TEST(slow_driver_recovers),
	        TEST(spike_between_two_scrapes_is_seen_by_every_scraper),
	        TEST(driver_duration_and_failure_are_reported),
	        TEST(driver_restart_leaves_counters_rising),
	        TEST(lost_and_missing_gpus_are_counted),
	        TEST(released_gpus_are_closed_and_opened_again),
	        TEST(sampler_retries_without_a_driver),
	};
	return test_run_apart(tests, sizeof tests / sizeof tests[0]);
}
