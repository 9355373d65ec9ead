// SPDX-License-Identifier: Apache-2.0
// Memory stays flat: millions of samples go through sampler, history, windows, rendering and reading in virtual time,
// while a GPU is replaced again and again and XID codes never seen before come in. A sample is one value of one family
// of one device. SOAK_SAMPLES says how many (`make soak`: 10 million).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/process/process.h"
#include "exporter/backend.h"
#include "exporter/page/render_page.h"
#include "exporter/sampler.h"
#include "exporter/xid.h"

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
size_t __sanitizer_get_current_allocated_bytes(void); // gcc brings no header for it
#define RSS_GROWTH_MAX INT64_MAX                      // freed memory is kept in quarantine
#else
#define RSS_GROWTH_MAX (1024 * 1024)
#endif

#define SAMPLES_DEFAULT 1000000
#define SAMPLES_MAX     1000000000
#define INTERVAL_MS     1000
#define REPLACE_EVERY   10 // rounds: a GPU goes, another comes
#define SCRAPE_EVERY    15
#define LIVE_GROWTH_MAX (16 * 1024) // bytes in use
#define LEAK_BYTES      64
#define WARM_UP_ROUNDS  4000 // until the history forgets as many GPUs as come
#define LONGEST_PLAY_MS (INT64_C(1) << 40)

struct memory {
	int64_t live, rss;
};

struct leak {
	struct leak *next;
	char room[LEAK_BYTES - sizeof(struct leak *)];
};

// A backend around the mock: its last GPU is replaced every REPLACE_EVERY rounds.
struct soak {
	struct backend base; // must be first
	struct backend *mock;
	struct xid_store *xids;
	struct sampler *sampler;
	struct device devices[DEVICES_MAX];
	int64_t rounds, samples, samples_wanted, warm_up_rounds; // samples: after the warm-up
	struct memory warm, most;                                // at the end of the warm-up; the most after it
	bool leaks;
	struct leak *leaked;
	struct buf page;
};

static struct memory memory_now(void)
{
	struct process_stat st;
	process_stat_read(&st);
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
	return (struct memory){(int64_t)__sanitizer_get_current_allocated_bytes(), st.resident_bytes};
#else
	const struct mallinfo2 m = mallinfo2();
	return (struct memory){(int64_t)(m.uordblks + m.hblkhd), st.resident_bytes};
#endif
}

static void set_devices(struct soak *k)
{
	k->base.devices = k->devices;
	k->base.n = k->mock->n;
	k->base.driver_version = k->mock->driver_version;
	memcpy(k->devices, k->mock->devices, k->mock->n * sizeof *k->devices);
	snprintf(k->devices[k->mock->n - 1].uuid, sizeof k->devices[0].uuid, "GPU-%036lld",
	         (long long)(k->rounds / REPLACE_EVERY));
}

static int soak_open(struct backend *b, struct err *e)
{
	struct soak *k = (struct soak *)b;
	int rc = k->mock->ops->open(k->mock, e);
	set_devices(k);
	return rc;
}

static void watch(struct soak *k)
{
	const struct memory now = memory_now();
	if (k->rounds <= k->warm_up_rounds) {
		k->warm = k->most = now;
		return;
	}
	k->most.live = now.live > k->most.live ? now.live : k->most.live;
	k->most.rss = now.rss > k->most.rss ? now.rss : k->most.rss;
}

static int soak_sample(struct backend *b, int64_t mono_ms, int64_t wall_ms, struct device_sample *samples,
                       struct err *e)
{
	struct soak *k = (struct soak *)b;
	if (k->samples >= k->samples_wanted && k->rounds > k->warm_up_rounds + SCRAPE_EVERY)
		return err_set(e, ERR_TIMEOUT, "enough"); // ends the play
	if (k->mock->ops->sample(k->mock, mono_ms, wall_ms, samples, e) < 0)
		return -1;
	k->rounds++;
	set_devices(k);
	for (size_t i = 0; i < b->n && k->rounds > k->warm_up_rounds; i++)
		k->samples += (int64_t)sample_count(&samples[i]);
	xid_store_count(k->xids, b->devices[0].uuid, (int32_t)(k->rounds % 100000), wall_ms);
	if (k->leaks) {
		struct leak *l = malloc(sizeof *l);
		assert_non_null(l);
		l->next = k->leaked;
		k->leaked = l;
	}
	if (k->rounds % SCRAPE_EVERY == 0) {
		struct sampler_status status;
		buf_reset(&k->page);
		sampler_read(k->sampler, &k->page, &status);
		watch(k);
	}
	return 0;
}

static void soak_close(struct backend *b)
{
	struct soak *k = (struct soak *)b;
	k->mock->ops->close(k->mock);
}

static const struct backend_ops soak_ops = {
        .name = "soak", .open = soak_open, .sample = soak_sample, .close = soak_close};

// Plays so many samples after the warm-up; what it found is in k.
static void play(struct soak *k, int64_t samples, int64_t warm_up_rounds, bool leaks)
{
	struct err e;
	struct clock clock;
	clock_init_real(&clock);
	*k = (struct soak){.base = {.ops = &soak_ops},
	                   .samples_wanted = samples,
	                   .warm_up_rounds = warm_up_rounds,
	                   .leaks = leaks};
	buf_init(&k->page, RENDER_PAGE_BYTES_MAX);
	k->xids = xid_store_new(&e);
	assert_non_null(k->xids);
	struct buf errors;
	buf_init(&errors, 4096);
	k->mock = backend_mock_new(
	        &(struct backend_config){.mock_script = NULL, .xids = k->xids, .ret_errors = &errors}, &e);
	assert_non_null(k->mock);
	struct render_page renderer;
	const struct render_page_options page = {.hostname_label = "Hostname", .hostname = "n", .xids = k->xids};
	render_page_init(&renderer, &page);
	const struct sampler_options o = {.backend = &k->base,
	                                  .clock = &clock,
	                                  .interval_ms = INTERVAL_MS,
	                                  .window_ms = SAMPLER_WINDOW_MS,
	                                  .render = render_page_round,
	                                  .render_arg = &renderer,
	                                  .text_bytes_max = RENDER_PAGE_BYTES_MAX};
	k->sampler = sampler_new(&o, &e);
	assert_non_null(k->sampler);
	assert_int_equal(sampler_run_once(k->sampler, LONGEST_PLAY_MS, &e), -1);
	assert_string_equal(e.msg, "enough");
	assert_true(k->page.len > 10000);
	sampler_free(k->sampler);
	render_page_done(&renderer);
	k->mock->ops->destroy(k->mock);
	xid_store_free(k->xids);
	buf_done(&k->page);
	buf_done(&errors);
	for (struct leak *l = k->leaked, *next; l; l = next) {
		next = l->next;
		free(l);
	}
}

static int64_t samples_wanted(void)
{
	const char *text = getenv("SOAK_SAMPLES");
	int64_t n = SAMPLES_DEFAULT;
	struct err e;
	if (text && num_parse_i64(text, strlen(text), 1, SAMPLES_MAX, &n, &e) < 0)
		fail_msg("SOAK_SAMPLES: %s", e.msg);
	return n;
}

static void millions_of_samples_leave_memory_flat(void **state)
{
	(void)state;
	static struct soak k;
	play(&k, samples_wanted(), WARM_UP_ROUNDS, false);
	print_message(
	        "# %lld samples in %lld rounds: %lld bytes in use, at most %+lld; resident %lld KiB, at most %+lld\n",
	        (long long)k.samples, (long long)k.rounds, (long long)k.warm.live,
	        (long long)(k.most.live - k.warm.live), (long long)k.warm.rss / 1024,
	        (long long)(k.most.rss - k.warm.rss) / 1024);
	assert_true(k.samples >= samples_wanted());
	if (k.warm.live == 0)
		skip(); // valgrind's malloc has no statistics
	assert_true(k.most.live - k.warm.live <= LIVE_GROWTH_MAX);
	assert_true(k.most.rss - k.warm.rss <= RSS_GROWTH_MAX);
}

// Else the test above could not fail.
static void leak_of_64_bytes_a_round_is_seen(void **state)
{
	(void)state;
	static struct soak k;
	play(&k, 200000, 100, true);
	if (k.warm.live == 0)
		skip();
	assert_true(k.most.live - k.warm.live > LIVE_GROWTH_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(millions_of_samples_leave_memory_flat),
	        cmocka_unit_test(leak_of_64_bytes_a_round_is_seen),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
