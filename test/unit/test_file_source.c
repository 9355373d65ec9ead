// SPDX-License-Identifier: Apache-2.0
// Goal: policies in files are read when they are complete: a file still being written is not read, a file at rest is,
// and a bad file affects no other policy.
#include "controller/source/file_source.h"

#include <event2/event.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "controller/source/policy_store.h"
#include "runtime/metrics/metrics.h"
#include "test/support/loop.h"

#define FILE_BYTES 1024
#define EVERY_MS   (FILE_SOURCE_REST_MS / 10)
#define WRITES     (2 * FILE_SOURCE_WATCH_MS / EVERY_MS) // as long as two looks

struct world {
	char folder[64], path[128];
	const char *paths[1];
	struct event_base *loop;
	struct clock clock;
	struct metrics *metrics;
	struct policy_store *store;
	struct file_source *policies;
	struct event *writer;
	int puts, removals, writes;
};

static void on_change(void *arg, struct stored_binding *b)
{
	(void)b;
	((struct world *)arg)->puts++;
}

static void on_remove(void *arg, struct stored_binding *b, bool deleted)
{
	(void)b;
	(void)deleted;
	((struct world *)arg)->removals++;
}

static void write_file(struct world *w, const char *text)
{
	FILE *file = fopen(w->path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static const char *policy(char ret_text[FILE_BYTES], int max)
{
	snprintf(ret_text, FILE_BYTES,
	         "apiVersion: gpuscale.dev/v1alpha1\nkind: GPUAutoscaler\nmetadata: {name: llama, namespace: ns}\n"
	         "spec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}\n  maxReplicas: %d\n"
	         "  signals: [{name: queue, query: sum(queue), target: {type: AverageValue, value: 10}}]\n",
	         max);
	return ret_text;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct policy_listener listener = {on_change, on_remove, w};
	struct err e = {0};
	char text[FILE_BYTES];
	assert_non_null(w);
	snprintf(w->folder, sizeof w->folder, "/tmp/gpuscale-folder-XXXXXX");
	assert_non_null(mkdtemp(w->folder));
	snprintf(w->path, sizeof w->path, "%s/policies.yaml", w->folder);
	write_file(w, policy(text, 4));
	clock_init_real(&w->clock);
	w->loop = event_base_new();
	w->metrics = metrics_new();
	w->store = policy_store_new(&listener);
	w->paths[0] = w->path;
	w->policies = file_source_new(&(struct file_source_options){.loop = w->loop,
	                                                            .clock = &w->clock,
	                                                            .store = w->store,
	                                                            .metrics = w->metrics,
	                                                            .paths = w->paths,
	                                                            .n_paths = 1},
	                              &e);
	if (!w->policies)
		fail_msg("%s", e.msg);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	if (w->writer)
		event_free(w->writer);
	file_source_free(w->policies);
	policy_store_free(w->store);
	free(w->metrics);
	event_base_free(w->loop);
	unlink(w->path);
	rmdir(w->folder);
	free(w);
	return 0;
}

// Now empty, now cut within a comment, a little longer each time: valid files, all of them, and none that was meant.
static void on_write(evutil_socket_t fd, short what, void *arg)
{
	struct world *w = arg;
	char text[FILE_BYTES] = "#";
	(void)fd;
	(void)what;
	size_t n = (size_t)w->writes++ % (sizeof text - 2);
	memset(text, '#', n);
	text[n] = '\0';
	write_file(w, text);
}

static void file_being_written_is_left_alone_until_it_rests(void **state)
{
	struct world *w = *state;
	struct timeval every = {0, EVERY_MS * 1000};
	char text[FILE_BYTES];
	assert_int_equal(w->puts, 1);
	on_write(-1, 0, w);
	w->writer = event_new(w->loop, -1, EV_PERSIST, on_write, w);
	assert_int_equal(event_add(w->writer, &every), 0);
	// The loop runs both timers in the order they are due: however late this process is, the file has changed
	// again.
	assert_true(test_loop_until(w->loop, &w->writes, WRITES, 60000));
	assert_int_equal(w->removals, 0);
	event_del(w->writer);
	write_file(w, policy(text, 5));
	assert_true(test_loop_until(w->loop, &w->puts, 2, 60000));
	assert_int_equal(w->removals, 0);
}

static void file_that_rests_is_taken_at_its_word(void **state)
{
	struct world *w = *state;
	write_file(w, "# nothing any more\n");
	assert_true(test_loop_until(w->loop, &w->removals, 1, 60000));
	assert_null(policy_store_find(w->store, "ns", "llama"));
}

static bool has_failed(const struct world *w)
{
	return w->policies->failed;
}

static void bad_file_leaves_the_last_good_policy(void **state)
{
	struct world *w = *state;
	write_file(w, "kind: [\n");
	TEST_BECOMES(w->loop, has_failed(w));
	assert_int_equal(w->policies->set.n_policies, 1);
	assert_non_null(strstr(buf_str(&w->policies->report), "policies.yaml"));
	assert_non_null(policy_store_find(w->store, "ns", "llama"));
	assert_int_equal(w->removals, 0);
}

static void unreadable_file_is_reported_and_its_policy_stays(void **state)
{
	struct world *w = *state;
	char text[FILE_BYTES], aside[sizeof w->path + 8];
	snprintf(aside, sizeof aside, "%s.aside", w->path);
	assert_int_equal(rename(w->path, aside), 0);
	TEST_BECOMES(w->loop, has_failed(w));
	assert_non_null(strstr(buf_str(&w->policies->report), "No such file"));
	assert_non_null(policy_store_find(w->store, "ns", "llama"));
	assert_int_equal(w->removals, 0);
	assert_int_equal(rename(aside, w->path), 0); // as it was
	TEST_BECOMES(w->loop, !has_failed(w));
	assert_int_equal(w->puts, 1);
	write_file(w, policy(text, 7));
	assert_true(test_loop_until(w->loop, &w->puts, 2, 60000));
	assert_int_equal(w->removals, 0);
}

static void reload_does_not_wait(void **state)
{
	struct world *w = *state;
	char text[FILE_BYTES];
	write_file(w, policy(text, 6));
	file_source_reload(w->policies, "a test");
	assert_int_equal(w->puts, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	        TEST(file_being_written_is_left_alone_until_it_rests),
	        TEST(file_that_rests_is_taken_at_its_word),
	        TEST(bad_file_leaves_the_last_good_policy),
	        TEST(unreadable_file_is_reported_and_its_policy_stays),
	        TEST(reload_does_not_wait),
	};
	return cmocka_run_group_tests_name("policy folder", tests, NULL, NULL);
}
