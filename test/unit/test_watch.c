// SPDX-License-Identifier: Apache-2.0
// Goal: a watch reports the existing objects and every change, through pages, resumptions and expired versions; while
// nothing changes it sends no request; and it can be freed at any time.
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
#include "test/support/watch_fixture.h"

static void list_comes_in_pages_then_changes_follow(void **state)
{
	struct watch_world *w = *state;
	struct k8s_watch_stats stats;
	w->watch = watch_fixture_new(w, "app=x,tier in (a, b)");
	assert_int_equal(w->calls, 0);
	watch_server_reply(watch_fixture_expect(w, 0, "labelSelector=app%3Dx%2Ctier%20in%20%28a%2C%20b%29"), 200,
	                   "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"t/+=\"},\"items\":[" A1 "]}", NULL);
	struct watch_server_request *page = watch_fixture_expect(w, 1, "&continue=t%2F%2B%3D");
	assert_non_null(strstr(page->uri, "labelSelector="));
	assert_null(strstr(page->uri, "resourceVersion="));
	watch_fixture_assert_log(w, "list +a ");
	watch_server_reply(page, 200, "{\"items\":[" B2 "],\"metadata\":{\"resourceVersion\":\"5\"}}", NULL);
	struct watch_server_request *stream =
	        watch_fixture_expect(w, 2, "watch=true&allowWatchBookmarks=true&timeoutSeconds=");
	assert_non_null(strstr(stream->uri, "&resourceVersion=5"));
	assert_non_null(strstr(stream->uri, "labelSelector="));
	watch_fixture_assert_log(w, "list +a +b synced ");
	watch_server_push(stream,
	                  "{\"type\":\"MODIFIED\",\"object\":" A1 "}\n{\"type\":\"DELETED\",\"object\":" B2 "}\n");
	watch_fixture_wait_calls(w, 6);
	watch_fixture_assert_log(w, "list +a +b synced +a -b ");
	k8s_watch_get_stats(w->watch, &stats);
	assert_true(stats.is_synced && stats.is_streaming && stats.last_heard_mono_ms > 0);
	assert_int_equal(stats.lists, 1);
	assert_int_equal(stats.streams, 1);
	assert_int_equal(stats.events, 2);
}

static void nothing_is_asked_while_nothing_happens(void **state)
{
	struct watch_world *w = *state;
	watch_fixture_sync(w);
	test_loop_for(w->loop, 1500);
	assert_int_equal(w->server.n, 2);
	watch_fixture_assert_log(w, "list synced ");
}

static void stream_goes_on_from_the_latest_bookmark_or_event(void **state)
{
	struct watch_world *w = *state;
	struct watch_server_request *stream = watch_fixture_sync(w);
	watch_server_push(stream, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"77\"}}}\n");
	watch_server_end(stream);
	watch_fixture_check(w, 2, "77"); // the stream ended before its time
	stream = watch_fixture_expect(w, 3, "resourceVersion=77");
	watch_server_push(stream, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"c\","
	                          "\"resourceVersion\":\"80\"}}}\n");
	watch_server_end(stream);
	watch_fixture_check(w, 4, "81");
	watch_fixture_expect(w, 5, "resourceVersion=80");
	watch_fixture_assert_log(w, "list synced +c ");
	assert_int_equal(w->errors, 0);
}

static void expired_version_leads_to_a_new_list(void **state)
{
	struct watch_world *w = *state;
	struct k8s_watch_stats stats;
	struct watch_server_request *stream = watch_fixture_sync(w);
	watch_server_push(stream, "{\"type\":\"ERROR\",\"object\":" GONE "}\n");
	watch_server_reply(watch_fixture_expect(w, 2, "limit=100"), 200,
	                   "{\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[" A1 "]}", NULL);
	watch_server_reply(watch_fixture_expect(w, 3, "resourceVersion=20"), 410, GONE, NULL);
	watch_server_reply(watch_fixture_expect(w, 4, "limit=100"), 200,
	                   "{\"metadata\":{\"resourceVersion\":\"30\"},\"items\":[]}", NULL);
	watch_server_begin(watch_fixture_expect(w, 5, "resourceVersion=30"));
	watch_fixture_assert_log(w, "list synced list +a synced list synced ");
	k8s_watch_get_stats(w->watch, &stats);
	assert_int_equal(stats.gone, 2);
	assert_int_equal(w->errors, 0);
}

// Objects on the partly read page may be gone when it is requested again.
static void first_page_that_fails_half_way_starts_the_list_over(void **state)
{
	struct watch_world *w = *state;
	w->watch = watch_fixture_new(w, NULL);
	struct watch_server_request *page = watch_fixture_expect(w, 0, "limit=100");
	watch_server_push(page, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" A1 ",");
	watch_fixture_wait_calls(w, 2);
	watch_server_break(page);
	watch_server_reply(watch_fixture_expect(w, 1, "limit=100"), 200,
	                   "{\"metadata\":{\"resourceVersion\":\"6\"},\"items\":[" B2 "]}", NULL);
	watch_fixture_expect(w, 2, "resourceVersion=6");
	watch_fixture_assert_log(w, "list +a error list +b synced ");
}

static void changes_are_followed_from_the_version_of_the_first_page(void **state)
{
	struct watch_world *w = *state;
	w->watch = watch_fixture_new(w, NULL);
	watch_server_reply(watch_fixture_expect(w, 0, "limit=100"), 200,
	                   "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"t\"},\"items\":[" A1 "]}", NULL);
	watch_server_reply(watch_fixture_expect(w, 1, "continue=t"), 200,
	                   "{\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[" B2 "]}", NULL);
	watch_fixture_expect(w, 2, "resourceVersion=5");
	watch_fixture_assert_log(w, "list +a +b synced ");
}

static void continue_token_too_old_begins_the_list_anew_and_ends_nothing_before(void **state)
{
	struct watch_world *w = *state;
	w->watch = watch_fixture_new(w, NULL);
	watch_server_reply(watch_fixture_expect(w, 0, "limit=100"), 200,
	                   "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"t\"},\"items\":[" A1 "]}", NULL);
	watch_server_reply(watch_fixture_expect(w, 1, "continue=t"), 410, GONE, NULL);
	struct watch_server_request *again = watch_fixture_expect(w, 2, "limit=100");
	assert_null(strstr(again->uri, "continue="));
	watch_server_reply(again, 200, "{\"metadata\":{\"resourceVersion\":\"6\"},\"items\":[" B2 "]}", NULL);
	watch_fixture_expect(w, 3, "resourceVersion=6");
	watch_fixture_assert_log(w, "list +a list +b synced ");
}

static void list_that_fails_half_way_goes_on_with_its_page_and_is_not_synced_before(void **state)
{
	struct watch_world *w = *state;
	w->watch = watch_fixture_new(w, NULL);
	watch_server_reply(watch_fixture_expect(w, 0, "limit=100"), 200,
	                   "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"t\"},\"items\":[" A1 "]}", NULL);
	struct watch_server_request *page = watch_fixture_expect(w, 1, "continue=t");
	watch_server_push(page, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" B2);
	watch_fixture_wait_calls(w, 3);
	watch_server_break(page);
	watch_server_reply(watch_fixture_expect(w, 2, "continue=t"), 503, "{}", NULL);
	assert_int_equal(w->synced, 0);
	assert_int_equal(w->errors, 1);
	page = watch_fixture_expect(w, 3, "continue=t");
	assert_int_equal(w->errors, 2); // another message
	watch_server_reply(page, 200, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" B2 "]}", NULL);
	watch_server_begin(watch_fixture_expect(w, 4, "resourceVersion=5"));
	assert_true(test_loop_until(w->loop, &w->oks, 1, WATCH_WAIT_MS));
	watch_fixture_assert_log(w, "list +a +b error error +b synced ok ");
}

static void reply_that_is_not_a_list_restarts_the_list(void **state)
{
	static const char *const bodies[] = {"", "[]", "{\"items\":[}", "{\"items\":[]}",
	                                     "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":["};
	for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
		struct watch_world *w;
		void *s;
		watch_fixture_setup(&s);
		w = s;
		w->watch = watch_fixture_new(w, NULL);
		watch_server_reply(watch_fixture_expect(w, 0, "limit=100"), 200, bodies[i], NULL);
		assert_true(test_loop_until(w->loop, &w->errors, 1, WATCH_WAIT_MS));
		assert_int_equal(w->last_error.kind, ERR_PROTOCOL);
		assert_non_null(strstr(w->last_error.msg, "list of " WATCH_PATH));
		watch_fixture_expect(w, 1, "limit=100");
		assert_int_equal(w->synced, 0);
		watch_fixture_teardown(&s);
	}
}

static void event_may_come_byte_by_byte(void **state)
{
	struct watch_world *w = *state;
	struct watch_server_request *stream = watch_fixture_sync(w);
	static const char event[] = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"c\",\"resourceVersion\":"
	                            "\"11\",\"x\":\"}\\\"{\"}}}\n";
	for (size_t i = 0; event[i]; i++) {
		watch_server_push(stream, (char[]){event[i], '\0'});
		test_loop_for(w->loop, 1);
	}
	watch_fixture_wait_calls(w, 3);
	watch_fixture_assert_log(w, "list synced +c ");
}

static void stream_that_breaks_in_an_event_is_resumed_without_it_and_without_an_error(void **state)
{
	struct watch_world *w = *state;
	struct watch_server_request *stream = watch_fixture_sync(w);
	watch_server_push(stream, "{\"type\":\"ADDED\",\"object\":" A1 "}\n{\"type\":\"ADDED\",\"object\":{\"meta");
	watch_fixture_wait_calls(w, 3);
	watch_server_break(stream);
	watch_fixture_check(w, 2, "1");
	stream = watch_fixture_expect(w, 3, "resourceVersion=1");
	watch_server_push(stream, "{\"type\":\"ADDED\",\"object\":" B2 "}\n{\"type");
	watch_fixture_wait_calls(w, 4);
	watch_server_end(stream); // a clean end in the middle
	watch_fixture_check(w, 4, "2");
	watch_fixture_expect(w, 5, "resourceVersion=2");
	watch_fixture_assert_log(w, "list synced +a +b ");
}

static void watch_can_be_freed_while_it_waits_lists_or_streams(void **state)
{
	struct watch_world *w = *state;
	w->watch = watch_fixture_new(w, NULL);
	k8s_watch_free(w->watch); // before anything was asked
	w->watch = watch_fixture_new(w, NULL);
	struct watch_server_request *page = watch_fixture_expect(w, 0, "limit=100");
	watch_server_push(page, "{\"items\":[" A1);
	watch_fixture_wait_calls(w, 2);
	k8s_watch_free(w->watch); // within a page
	w->watch = watch_fixture_new(w, NULL);
	watch_server_reply(watch_fixture_expect(w, 1, "limit=100"), 500, "{}", NULL);
	assert_true(test_loop_until(w->loop, &w->errors, 1, WATCH_WAIT_MS));
	k8s_watch_free(w->watch); // while it backs off
	w->watch = watch_fixture_new(w, NULL);
	watch_server_reply(watch_fixture_expect(w, 2, "limit=100"), 200, EMPTY, NULL);
	watch_server_begin(watch_fixture_expect(w, 3, "watch=true"));
	test_loop_for(w->loop, 20);
	int calls = w->calls;
	k8s_watch_free(w->watch); // with an open stream
	w->watch = NULL;
	for (int i = 0; i < 1200 && w->server.requests[3].raw;
	     i++) { // the server notices the closed connection when it writes
		watch_server_push(&w->server.requests[3], " ");
		test_loop_for(w->loop, 50);
	}
	assert_null(w->server.requests[3].raw);
	test_loop_for(w->loop, 1000);
	assert_int_equal(w->calls, calls);
	assert_int_equal(w->server.n, 4);
}

static void watch_can_be_freed_from_the_callback_of_another_watch(void **state)
{
	struct watch_world *w = *state;
	struct k8s_watch *other = watch_fixture_new(w, NULL);
	w->watch = watch_fixture_new(w, NULL);
	watch_server_reply(watch_fixture_expect(w, 0, "limit=100"), 200, EMPTY, NULL);
	watch_server_reply(watch_fixture_expect(w, 1, "limit=100"), 200, EMPTY, NULL);
	struct watch_server_request *first = watch_fixture_expect(w, 2, "watch=true"),
	                            *second = watch_fixture_expect(w, 3, "watch=true");
	watch_server_begin(first);
	watch_server_begin(second);
	test_loop_for(w->loop, 20);
	// Either stream may be the other's: what comes for both at once is handed on by one of them only.
	w->free_on_object = &other;
	watch_server_push(second, "{\"type\":\"ADDED\",\"object\":" A1 "}\n");
	watch_fixture_wait_calls(w, 5);
	assert_null(other);
	test_loop_for(w->loop, 100);
	// On a slow machine the first list ends before the second begins.
	bool overlapped = strcmp(buf_str(&w->log), "list list synced synced +a ") == 0;
	if (!overlapped)
		watch_fixture_assert_log(w, "list synced list synced +a ");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, watch_fixture_setup, watch_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(list_comes_in_pages_then_changes_follow),
	        TEST(nothing_is_asked_while_nothing_happens),
	        TEST(stream_goes_on_from_the_latest_bookmark_or_event),
	        TEST(expired_version_leads_to_a_new_list),
	        TEST(continue_token_too_old_begins_the_list_anew_and_ends_nothing_before),
	        TEST(first_page_that_fails_half_way_starts_the_list_over),
	        TEST(changes_are_followed_from_the_version_of_the_first_page),
	        TEST(list_that_fails_half_way_goes_on_with_its_page_and_is_not_synced_before),
	        TEST(reply_that_is_not_a_list_restarts_the_list),
	        TEST(event_may_come_byte_by_byte),
	        TEST(stream_that_breaks_in_an_event_is_resumed_without_it_and_without_an_error),
	        TEST(watch_can_be_freed_while_it_waits_lists_or_streams),
	        TEST(watch_can_be_freed_from_the_callback_of_another_watch),
	};
	return test_run_apart(tests, sizeof tests / sizeof tests[0]);
}
