// SPDX-License-Identifier: Apache-2.0
// Goal: a watch goes on through nonsense, refusals, throttling and servers that end streams at once, without asking in
// a loop, and says what is wrong when it begins, when it changes and when it ends.
#include "k8s/cache/watch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/http/http_client.h"
#include "k8s/client/k8s_client.h"
#include "test/support/apart.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"
#include "test/support/watch_fixture.h"

static void nonsense_in_a_stream_is_an_error_and_is_tried_again(void **state)
{
	static const char *const events[] = {"nonsense", "{\"type\":\"ADDED\",\"object\":{}}",
	                                     ("{\"type\":\"CHANGED\",\"object\":" A1 "}"), "{]",
	                                     ("{\"type\":\"ERROR\",\"object\":{\"code\":500,\"kind\":\"Status\","
	                                      "\"message\":\"etcd is away\"}}")};
	for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
		struct watch_world *w;
		void *s;
		watch_fixture_setup(&s);
		w = s;
		watch_server_push(watch_fixture_sync(w), events[i]);
		assert_true(test_loop_until(w->loop, &w->errors, 1, WATCH_WAIT_MS));
		assert_non_null(strstr(w->last_error.msg, "watch of " WATCH_PATH));
		if (i == 4)
			assert_non_null(strstr(w->last_error.msg, "etcd is away"));
		watch_fixture_check(w, 2, "10");
		watch_server_begin(watch_fixture_expect(w, 3, "watch=true"));
		assert_true(test_loop_until(w->loop, &w->oks, 1, WATCH_WAIT_MS)); // open for a second
		watch_fixture_teardown(&s);
	}
}

static void error_is_reported_when_it_starts_changes_and_stops(void **state)
{
	struct watch_world *w = *state;
	static const char forbidden[] = "{\"kind\":\"Status\",\"message\":\"deployments is forbidden\",\"code\":403}";
	w->watch = watch_fixture_new(w, NULL);
	watch_server_reply(watch_fixture_expect(w, 0, "limit=100"), 403, forbidden, NULL);
	watch_server_reply(watch_fixture_expect(w, 1, "limit=100"), 403, forbidden, NULL);
	watch_fixture_expect(w, 2, "limit=100");
	assert_int_equal(w->errors, 1);
	assert_int_equal(w->last_error.kind, ERR_AUTH);
	assert_int_equal(w->last_error.code, 403);
	watch_server_reply(watch_fixture_expect(w, 2, "limit=100"), 404, "{}", NULL);
	assert_true(test_loop_until(w->loop, &w->errors, 2, WATCH_WAIT_MS));
	watch_server_reply(watch_fixture_expect(w, 3, "limit=100"), 200, EMPTY, NULL);
	watch_server_begin(watch_fixture_expect(w, 4, "watch=true"));
	assert_true(test_loop_until(w->loop, &w->oks, 1, WATCH_WAIT_MS));
	watch_fixture_assert_log(w, "list error list list error list synced ok ");
}

static void retry_after_is_waited_for(void **state)
{
	struct watch_world *w = *state;
	w->watch = watch_fixture_new(w, NULL);
	watch_server_reply(watch_fixture_expect(w, 0, "limit=100"), 429, "{}", "2");
	int64_t begin = test_now_ms();
	watch_fixture_expect(w, 1, "limit=100");
	assert_true(test_now_ms() - begin >= 1900);
	assert_int_equal(w->last_error.kind, ERR_THROTTLED);
}

static void stream_that_is_always_refused_leads_to_a_new_list(void **state)
{
	struct watch_world *w = *state;
	w->watch = watch_fixture_new(w, NULL);
	watch_server_reply(watch_fixture_expect(w, 0, "limit=100"), 200, EMPTY, NULL);
	int i = 1;
	for (; i < 10; i++) {
		struct watch_server_request *r = watch_server_wait(&w->server, i, 20000);
		assert_non_null(r);
		if (strstr(r->uri, "limit=100"))
			break;
		watch_server_reply(r, 504, "{\"kind\":\"Status\",\"message\":\"Too large resource version\"}", NULL);
	}
	assert_int_equal(i, 6);
}

#define TOO_LARGE                                                                                                      \
	"{\"kind\":\"Status\",\"code\":504,\"reason\":\"Timeout\",\"message\":"                                        \
	"\"Timeout: Too large resource version: 10, current: 5\",\"details\":{\"causes\":[{"                           \
	"\"reason\":\"ResourceVersionTooLarge\"}]}}"
#define OLDER                                                                                                          \
	"{\"kind\":\"DeploymentList\",\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"x\"},\"items\":[" A1 "]}"

// The etcd of the server was restored from a backup.
static void version_too_large_for_the_server_leads_to_a_new_list(void **state)
{
	static const bool as_event[] = {false, true};
	for (size_t i = 0; i < 2; i++) {
		struct watch_world *w;
		void *s;
		watch_fixture_setup(&s);
		w = s;
		w->watch = watch_fixture_new(w, NULL);
		watch_server_reply(watch_fixture_expect(w, 0, "limit=100"), 200, EMPTY, NULL);
		struct watch_server_request *stream = watch_fixture_expect(w, 1, "resourceVersion=10");
		if (as_event[i]) {
			watch_server_begin(stream);
			watch_server_push(stream, "{\"type\":\"ERROR\",\"object\":" TOO_LARGE "}\n");
		} else {
			watch_server_reply(stream, 504, TOO_LARGE, NULL);
		}
		watch_fixture_expect(w, 2, "limit=100");
		assert_int_equal(w->errors, 0);
		watch_fixture_teardown(&s);
	}
	(void)state;
}

static void server_that_went_back_while_it_was_away_is_listed_again(void **state)
{
	struct watch_world *w = *state;
	watch_server_break(watch_fixture_sync(w));
	watch_server_reply(watch_fixture_expect(w, 2, "resourceVersion=10"), 503, "{}", NULL);
	watch_server_reply(watch_fixture_expect(w, 3, "limit=1"), 503, "{}", NULL);
	watch_server_reply(watch_fixture_expect(w, 4, "?limit=1"), 200, OLDER, NULL);
	watch_server_reply(watch_fixture_expect(w, 5, "limit=100"), 200,
	                   "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" A1 "]}", NULL);
	watch_server_begin(watch_fixture_expect(w, 6, "resourceVersion=5"));
	assert_true(test_loop_until(w->loop, &w->oks, 1, WATCH_WAIT_MS));
	watch_fixture_assert_log(w, "list synced error error list +a synced ok ");
}

static void server_that_has_not_gone_back_is_not_listed_again(void **state)
{
	struct watch_world *w = *state;
	watch_server_break(watch_fixture_sync(w));
	watch_server_reply(watch_fixture_expect(w, 2, "resourceVersion=10"), 503, "{}", NULL);
	watch_server_reply(watch_fixture_expect(w, 3, "limit=1"), 200, EMPTY, NULL);
	watch_server_begin(watch_fixture_expect(w, 4, "resourceVersion=10"));
	assert_true(test_loop_until(w->loop, &w->oks, 1, WATCH_WAIT_MS));
	watch_fixture_assert_log(w, "list synced error ok ");
}

// A server that resumes from a version that it does not have yet keeps the stream open and sends nothing.
static void silent_stream_is_not_resumed_before_the_version_is_checked(void **state)
{
	struct watch_world *w = *state;
	clock_init_manual(&w->clock, 1);
	struct watch_server_request *stream = watch_fixture_sync(w);
	assert_true(test_loop_until(w->loop, &w->oks, 0, WATCH_WAIT_MS));
	test_loop_for(w->loop, 1200); // it is open and works
	clock_advance_ms(&w->clock, 2 * K8S_WATCH_TIMEOUT_MS);
	watch_server_end(stream);
	watch_server_reply(watch_fixture_expect(w, 2, "?limit=1"), 200, OLDER, NULL);
	watch_server_reply(watch_fixture_expect(w, 3, "limit=100"), 200, EMPTY, NULL);
	stream = watch_fixture_expect(w, 4, "resourceVersion=10");
	watch_server_begin(stream);
	watch_server_push(stream, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"77\"}}}\n");
	test_loop_for(w->loop, 1200);
	clock_advance_ms(&w->clock, 2 * K8S_WATCH_TIMEOUT_MS);
	watch_server_end(stream);
	watch_fixture_expect(w, 5, "resourceVersion=77"); // a stream that sent something and ended on time is trusted
}

static void server_that_ends_streams_at_once_is_not_asked_in_a_loop(void **state)
{
	struct watch_world *w = *state;
	struct watch_server_request *stream = watch_fixture_sync(w);
	watch_server_end(stream);
	for (int i = 2; i < 6; i += 2) {
		watch_fixture_check(w, i, "10");
		stream = watch_fixture_expect(w, i + 1, "resourceVersion=10");
		watch_server_begin(stream);
		watch_server_end(stream);
	}
	assert_int_equal(w->server.n, 6);
	int64_t begin = test_now_ms();
	watch_fixture_check(w, 6, "10");
	assert_true(test_now_ms() - begin >= 1000);
	assert_int_equal(w->errors, 1);
	assert_non_null(strstr(w->last_error.msg, "closes the stream immediately after opening it"));
}

static void object_above_the_ceiling_is_left_out_and_reported(void **state)
{
	struct watch_world *w = *state;
	struct k8s_watch_stats stats;
	char *large = malloc(K8S_WATCH_OBJECT_BYTES_MAX + 200);
	int n = snprintf(large, 100,
	                 "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"12\",\"x\":\"");
	memset(large + n, 'x', K8S_WATCH_OBJECT_BYTES_MAX);
	snprintf(large + n + K8S_WATCH_OBJECT_BYTES_MAX, 90, "\"}}}\n{\"type\":\"ADDED\",\"object\":" A1 "}\n");
	struct watch_server_request *stream = watch_fixture_sync(w);
	watch_server_push(stream, large);
	free(large);
	watch_fixture_wait_calls(w, 4);
	watch_fixture_assert_log(w, "list synced error +a ");
	assert_int_equal(w->last_error.kind, ERR_LIMIT);
	assert_non_null(strstr(w->last_error.msg, "the ceiling is 2097152"));
	k8s_watch_get_stats(w->watch, &stats);
	assert_int_equal(stats.too_large, 1);
	// A new list without it ends the error.
	watch_server_push(stream, "{\"type\":\"ERROR\",\"object\":" GONE "}\n");
	watch_server_reply(watch_fixture_expect(w, 2, "limit=100"), 200, EMPTY, NULL);
	watch_server_begin(watch_fixture_expect(w, 3, "watch=true"));
	assert_true(test_loop_until(w->loop, &w->oks, 1, WATCH_WAIT_MS));
}

static void object_left_out_of_a_list_is_reported_before_the_list_is_complete(void **state)
{
	struct watch_world *w = *state;
	char *large = malloc(K8S_WATCH_OBJECT_BYTES_MAX + 400);
	int n = snprintf(large, 200, "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" A1 ",{\"x\":\"");
	memset(large + n, 'x', K8S_WATCH_OBJECT_BYTES_MAX);
	snprintf(large + n + K8S_WATCH_OBJECT_BYTES_MAX, 90, "\"}]}");
	w->watch = watch_fixture_new(w, NULL);
	watch_server_reply(watch_fixture_expect(w, 0, "limit=100"), 200, large, NULL);
	struct watch_server_request *stream = watch_fixture_expect(w, 1, "watch=true");
	watch_server_begin(stream);
	watch_fixture_assert_log(w, "list +a error synced ");
	assert_int_equal(w->last_error.kind, ERR_LIMIT);
	// Of the next list, too: the caller must not consider the object deleted.
	watch_server_push(stream, "{\"type\":\"ERROR\",\"object\":" GONE "}\n");
	watch_server_reply(watch_fixture_expect(w, 2, "limit=100"), 200, large, NULL);
	free(large);
	watch_server_begin(watch_fixture_expect(w, 3, "watch=true"));
	watch_fixture_assert_log(w, "list +a error synced list +a error synced ");
}

static void client_that_closes_stops_it(void **state)
{
	struct watch_world *w = *state;
	watch_fixture_sync(w);
	k8s_client_free(w->client);
	w->client = NULL;
	test_loop_for(w->loop, 1200);
	assert_int_equal(w->server.n, 2);
	assert_int_equal(w->errors, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, watch_fixture_setup, watch_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(nonsense_in_a_stream_is_an_error_and_is_tried_again),
	        TEST(error_is_reported_when_it_starts_changes_and_stops),
	        TEST(retry_after_is_waited_for),
	        TEST(stream_that_is_always_refused_leads_to_a_new_list),
	        TEST(version_too_large_for_the_server_leads_to_a_new_list),
	        TEST(server_that_went_back_while_it_was_away_is_listed_again),
	        TEST(server_that_has_not_gone_back_is_not_listed_again),
	        TEST(silent_stream_is_not_resumed_before_the_version_is_checked),
	        TEST(server_that_ends_streams_at_once_is_not_asked_in_a_loop),
	        TEST(object_above_the_ceiling_is_left_out_and_reported),
	        TEST(object_left_out_of_a_list_is_reported_before_the_list_is_complete),
	        TEST(client_that_closes_stops_it),
	};
	return test_run_apart(tests, sizeof tests / sizeof tests[0]);
}
