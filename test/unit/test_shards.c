// SPDX-License-Identifier: Apache-2.0
// Goal of this test: options that would make leases of other names than the requested ones are refused at the start,
// and an operator learns why leases cannot be read or written, whatever went wrong before.
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/process/log.h"
#include "runtime/shard/shards.h"
#include "runtime/shard/shards_private.h"
#include "test/fake/k8s_harness.h"
#include "test/fake/lease_holder.h"
#include "test/support/loop.h"

static void options_that_cannot_be_are_refused(void **state)
{
	(void)state;
	char long_name[300];
	memset(long_name, 'a', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = '\0';
	const struct {
		const char *namespace_name, *lease_name, *identity;
		int32_t n_shards;
		const char *fault;
	} rows[] = {
	        {"", "gpuscale", "a", 1, "--lease-namespace"},
	        {"..", "gpuscale", "a", 1, "--lease-namespace"},
	        {"a/b", "gpuscale", "a", 1, "--lease-namespace"},
	        {"a?b", "gpuscale", "a", 1, "--lease-namespace"},
	        {long_name, "gpuscale", "a", 1, "--lease-namespace"},
	        {"ns", "", "a", 1, "--lease-name"},
	        {"ns", "-a", "a", 1, "--lease-name"},
	        {"ns", "a/b", "a", 1, "--lease-name"},
	        {"ns", long_name, "a", 1, "--lease-name"},
	        {"ns", "gpuscale", "", 1, "--identity"},
	        {"ns", "gpuscale", long_name, 1, "--identity"},
	        {"ns", "gpuscale", "a", 0, "--shards"},
	        {"ns", "gpuscale", "a", SHARDS_MAX + 1, "--shards"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct err e = {0};
		struct shards_options o = {
		        .namespace_name = rows[i].namespace_name,
		        .lease_name = rows[i].lease_name,
		        .identity = rows[i].identity,
		        .n_shards = rows[i].n_shards,
		        .timing = {.duration_ms = 15000, .renew_deadline_ms = 10000, .retry_period_ms = 2000}};
		assert_null(shards_new(&o, &e));
		assert_int_equal(e.kind, ERR_USAGE);
		if (!strstr(e.msg, rows[i].fault))
			fail_msg("row %zu: %s", i, e.msg);
	}
}

// ---- on a server ----

struct world {
	struct harness h;
	struct shards *shards;
	struct log *log;
	int log_fd;
	char text[16384]; // of the log, as last read
};

static void on_shard(void *arg, int32_t shard)
{
	(void)arg;
	(void)shard;
}

static bool is_busy(void *arg, int32_t shard)
{
	(void)arg;
	(void)shard;
	return false;
}

// Starts one process, called "b", that shares one shard; it logs into memory.
static void world_start_shards(struct world *w)
{
	struct err e = {0};
	w->log_fd = memfd_create("log", MFD_CLOEXEC);
	assert_true(w->log_fd >= 0);
	w->log = log_new(w->log_fd, LOG_FORMAT_TEXT, LOG_INFO, &w->h.clock);
	struct shards_options o = {.config = &w->h.config,
	                           .loop = w->h.loop,
	                           .clock = &w->h.clock,
	                           .log = w->log,
	                           .namespace_name = "default",
	                           .lease_name = "x",
	                           .identity = "b",
	                           .timing = lease_test_timing,
	                           .n_shards = 1,
	                           .callbacks = {on_shard, on_shard, is_busy},
	                           .arg = w};
	w->shards = shards_new(&o, &e);
	if (!w->shards)
		fail_msg("%s", e.msg);
}

static void world_stop(struct world *w)
{
	shards_free(w->shards);
	log_free(w->log);
	close(w->log_fd);
	harness_stop(&w->h);
}

// Returns how many lines of the log contain text.
static int logged(struct world *w, const char *text)
{
	int n = 0;
	ssize_t len = pread(w->log_fd, w->text, sizeof w->text - 1, 0);
	w->text[len > 0 ? len : 0] = '\0';
	for (const char *at = w->text; (at = strstr(at, text)); at += strlen(text))
		n++;
	return n;
}

// The watch and the poll both list at the start. One of them fails, and the other finds the lease free.
static void missing_right_is_logged_although_another_error_came_first(void **state)
{
	(void)state;
	struct world w = {0};
	lease_world_start(&w.h);
	fake_apiserver_fail(
	        w.h.server,
	        &(struct fake_fault){.next = 1, .skip = 1, .verb = "list", .resource = "leases", .status = 503});
	fake_apiserver_fail_also(w.h.server, &(struct fake_fault){.next = 1000, .match = "GET " LEASE, .status = 403});
	world_start_shards(&w);
	TEST_BECOMES(w.h.loop, logged(&w, "kind=\"Auth\"") == 1);
	test_loop_for(w.h.loop, 3 * lease_test_timing.retry_period_ms);
	assert_int_equal(logged(&w, "Cannot read or write leases"), 2); // one line per cause, not per attempt
	int recovered = logged(&w, "Lease access recovered");
	fake_apiserver_fail(w.h.server, &(struct fake_fault){0});
	TEST_BECOMES(w.h.loop, logged(&w, "Lease access recovered") > recovered);
	world_stop(&w);
}

static void failed_list_is_forgotten_once_the_watch_streams_again(void **state)
{
	(void)state;
	struct world w = {0};
	struct lease_holder a;
	struct shards_view view;
	lease_world_start(&w.h);
	lease_put_free(&w.h);
	lease_merge(&w.h, "{\"metadata\":{\"labels\":{\"" LEASE_LABEL_GROUP "\":\"x\"}}}");
	lease_holder_start(&a, &w.h, "a");
	TEST_BECOMES(w.h.loop, a.gained == 1);
	world_start_shards(&w);
	TEST_BECOMES(w.h.loop, shards_watch_is_fresh(w.shards));
	fake_apiserver_fail(w.h.server,
	                    &(struct fake_fault){.next = 1000, .verb = "list", .resource = "leases", .status = 503});
	fake_apiserver_mute(w.h.server, true);
	TEST_BECOMES(w.h.loop, logged(&w, "Cannot read or write leases") == 1);
	fake_apiserver_mute(w.h.server, false);
	TEST_BECOMES(w.h.loop, (shards_get_view(w.shards, &view), view.error[0] == '\0'));
	assert_int_equal(logged(&w, "Lease access recovered"), 1);
	assert_int_equal(view.n_owned, 0);
	lease_free(a.lease);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(options_that_cannot_be_are_refused),
	        cmocka_unit_test(missing_right_is_logged_although_another_error_came_first),
	        cmocka_unit_test(failed_list_is_forgotten_once_the_watch_streams_again),
	};
	return cmocka_run_group_tests_name("shards", tests, NULL, NULL);
}
