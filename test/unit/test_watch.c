// SPDX-License-Identifier: Apache-2.0
// Goal: a watch knows what is there and every change of it, through pages, resumptions, versions that are too old,
// broken streams and refusals; while nothing happens it asks for nothing.
#include "k8s/watch.h"

#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/http_client.h"
#include "k8s/k8s_client.h"
#include "k8s/k8s_config.h"
#include "test/support/loop.h"
#include "test/support/watch_server.h"

#define PATH    "/apis/apps/v1/namespaces/ns/deployments"
#define WAIT_MS 8000
#define A1      "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}"
#define B2      "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"2\"}}"
#define EMPTY   "{\"kind\":\"DeploymentList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}"
#define GONE                                                                                                           \
	"{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old resource version: 10 (99)\"}"

struct world {
	struct event_base *loop;
	struct watch_server server;
	struct http_client *http;
	struct clock clock;
	struct k8s_client *client;
	struct k8s_watch *watch;
	struct buf log; // what the callbacks got: "list", "+NAME", "-NAME", "synced", "error: ..", "ok", a blank each
	int calls, synced, errors, oks;
	struct err last_error;
	struct k8s_watch **free_on_object; // freed when an object comes
};

static void note(struct world *w, const char *text)
{
	w->calls++;
	buf_printf(&w->log, "%s ", text);
}

static void on_list(void *arg)
{
	note(arg, "list");
}

static void on_change(struct world *w, char sign, const char *json, size_t len)
{
	char name[64] = {sign};
	const char *at = memmem(json, len, "\"name\":\"", 8);
	assert_true(at != NULL && json[0] == '{' && json[len - 1] == '}');
	at += 8;
	for (size_t i = 1; i < sizeof name - 1 && *at != '"'; i++)
		name[i] = *at++;
	note(w, name);
}

static void on_object(void *arg, const char *json, size_t len)
{
	struct world *w = arg;
	on_change(w, '+', json, len);
	if (w->free_on_object) {
		k8s_watch_free(*w->free_on_object);
		*w->free_on_object = NULL;
	}
}

static void on_deleted(void *arg, const char *json, size_t len)
{
	on_change(arg, '-', json, len);
}

static void on_synced(void *arg)
{
	struct world *w = arg;
	w->synced++;
	note(w, "synced");
}

static void on_error(void *arg, const struct err *error)
{
	struct world *w = arg;
	if (error) {
		w->last_error = *error;
		w->errors++;
	} else {
		w->oks++;
	}
	note(w, error ? "error" : "ok");
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct err e = {0};
	char url[64];
	signal(SIGPIPE, SIG_IGN);
	*state = w;
	w->loop = event_base_new();
	clock_init_real(&w->clock);
	buf_init(&w->log, 65536);
	watch_server_start(&w->server, w->loop);
	snprintf(url, sizeof url, "http://127.0.0.1:%u", (unsigned)w->server.port);
	const struct k8s_config config = {.server = url, .namespace_name = "ns", .source = "the test"};
	w->http = http_client_new(&(struct http_client_options){.loop = w->loop}, &e);
	assert_non_null(w->http);
	w->client = k8s_client_new(
	        &(struct k8s_client_options){.loop = w->loop, .http = w->http, .clock = &w->clock, .config = &config},
	        &e);
	assert_non_null(w->client);
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	k8s_watch_free(w->watch);
	k8s_client_free(w->client);
	http_client_free(w->http);
	watch_server_stop(&w->server);
	event_base_free(w->loop);
	buf_done(&w->log);
	free(w);
	return 0;
}

static struct k8s_watch *watch_new(struct world *w, const char *labels)
{
	struct err e = {0};
	struct k8s_watch *watch = k8s_watch_new(
	        &(struct k8s_watch_options){
	                .client = w->client,
	                .path = PATH,
	                .label_selector = labels,
	                .callbacks = {on_list, on_object, on_deleted, on_synced, on_error},
	                .arg = w,
	        },
	        &e);
	if (!watch)
		fail_msg("%s", e.msg);
	return watch;
}

// Request i, which must have `part` in its URI.
static struct watch_server_request *expect(struct world *w, int i, const char *part)
{
	struct watch_server_request *r = watch_server_wait(&w->server, i, WAIT_MS);
	if (!r)
		fail_msg("request %d did not come; so far: %s", i, buf_str(&w->log));
	if (!strstr(r->uri, part))
		fail_msg("request %d is %s, expected \"%s\" in it", i, r->uri, part);
	return r;
}

// Starts the watch and brings it to an open stream from version 10: requests 0 and 1.
static struct watch_server_request *synced(struct world *w)
{
	w->watch = watch_new(w, NULL);
	watch_server_reply(expect(w, 0, "limit=100"), 200, EMPTY, NULL);
	struct watch_server_request *stream = expect(w, 1, "resourceVersion=10");
	watch_server_begin(stream);
	return stream;
}

static void wait_calls(struct world *w, int n)
{
	if (!test_loop_until(w->loop, &w->calls, n, WAIT_MS))
		fail_msg("%d callbacks, expected %d: %s", w->calls, n, buf_str(&w->log));
}

static void assert_log(struct world *w, const char *log)
{
	assert_string_equal(buf_str(&w->log), log);
}

static void a_list_comes_in_pages_then_changes_follow(void **state)
{
	struct world *w = *state;
	struct k8s_watch_stats stats;
	w->watch = watch_new(w, "app=x,tier in (a, b)");
	assert_int_equal(w->calls, 0);
	watch_server_reply(expect(w, 0, "labelSelector=app%3Dx%2Ctier%20in%20%28a%2C%20b%29"), 200,
	                   "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"t/+=\"},\"items\":[" A1 "]}", NULL);
	struct watch_server_request *page = expect(w, 1, "&continue=t%2F%2B%3D");
	assert_non_null(strstr(page->uri, "labelSelector="));
	assert_null(strstr(page->uri, "resourceVersion="));
	assert_log(w, "list +a ");
	watch_server_reply(page, 200, "{\"items\":[" B2 "],\"metadata\":{\"resourceVersion\":\"5\"}}", NULL);
	struct watch_server_request *stream = expect(w, 2, "watch=true&allowWatchBookmarks=true&timeoutSeconds=");
	assert_non_null(strstr(stream->uri, "&resourceVersion=5"));
	assert_non_null(strstr(stream->uri, "labelSelector="));
	assert_log(w, "list +a +b synced ");
	watch_server_push(stream,
	                  "{\"type\":\"MODIFIED\",\"object\":" A1 "}\n{\"type\":\"DELETED\",\"object\":" B2 "}\n");
	wait_calls(w, 6);
	assert_log(w, "list +a +b synced +a -b ");
	k8s_watch_get_stats(w->watch, &stats);
	assert_true(stats.is_synced && stats.is_streaming && stats.last_heard_mono_ms > 0);
	assert_int_equal(stats.lists, 1);
	assert_int_equal(stats.streams, 1);
	assert_int_equal(stats.events, 2);
}

static void nothing_is_asked_while_nothing_happens(void **state)
{
	struct world *w = *state;
	synced(w);
	test_loop_for(w->loop, 1500);
	assert_int_equal(w->server.n, 2);
	assert_log(w, "list synced ");
}

static void a_stream_goes_on_from_the_latest_bookmark_or_event(void **state)
{
	struct world *w = *state;
	struct watch_server_request *stream = synced(w);
	watch_server_push(stream, "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"77\"}}}\n");
	watch_server_end(stream);
	stream = expect(w, 2, "resourceVersion=77");
	watch_server_push(stream, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"c\","
	                          "\"resourceVersion\":\"80\"}}}\n");
	watch_server_end(stream);
	expect(w, 3, "resourceVersion=80");
	assert_log(w, "list synced +c ");
	assert_int_equal(w->errors, 0);
}

static void a_version_too_old_leads_to_a_new_list_however_it_is_said(void **state)
{
	struct world *w = *state;
	struct k8s_watch_stats stats;
	struct watch_server_request *stream = synced(w);
	watch_server_push(stream, "{\"type\":\"ERROR\",\"object\":" GONE "}\n");
	watch_server_reply(expect(w, 2, "limit=100"), 200,
	                   "{\"metadata\":{\"resourceVersion\":\"20\"},\"items\":[" A1 "]}", NULL);
	watch_server_reply(expect(w, 3, "resourceVersion=20"), 410, GONE, NULL);
	watch_server_reply(expect(w, 4, "limit=100"), 200, "{\"metadata\":{\"resourceVersion\":\"30\"},\"items\":[]}",
	                   NULL);
	watch_server_begin(expect(w, 5, "resourceVersion=30"));
	assert_log(w, "list synced list +a synced list synced ");
	k8s_watch_get_stats(w->watch, &stats);
	assert_int_equal(stats.gone, 2);
	assert_int_equal(w->errors, 0);
}

static void a_continue_token_too_old_begins_the_list_anew_and_ends_nothing_before(void **state)
{
	struct world *w = *state;
	w->watch = watch_new(w, NULL);
	watch_server_reply(expect(w, 0, "limit=100"), 200,
	                   "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"t\"},\"items\":[" A1 "]}", NULL);
	watch_server_reply(expect(w, 1, "continue=t"), 410, GONE, NULL);
	struct watch_server_request *again = expect(w, 2, "limit=100");
	assert_null(strstr(again->uri, "continue="));
	watch_server_reply(again, 200, "{\"metadata\":{\"resourceVersion\":\"6\"},\"items\":[" B2 "]}", NULL);
	expect(w, 3, "resourceVersion=6");
	assert_log(w, "list +a list +b synced ");
}

static void a_list_that_fails_half_way_goes_on_with_its_page_and_is_not_synced_before(void **state)
{
	struct world *w = *state;
	w->watch = watch_new(w, NULL);
	watch_server_reply(expect(w, 0, "limit=100"), 200,
	                   "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"t\"},\"items\":[" A1 "]}", NULL);
	struct watch_server_request *page = expect(w, 1, "continue=t");
	watch_server_push(page, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" B2);
	wait_calls(w, 3);
	watch_server_break(page);
	watch_server_reply(expect(w, 2, "continue=t"), 503, "{}", NULL);
	assert_int_equal(w->synced, 0);
	assert_int_equal(w->errors, 1);
	page = expect(w, 3, "continue=t");
	assert_int_equal(w->errors, 2); // another message
	watch_server_reply(page, 200, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[" B2 "]}", NULL);
	watch_server_begin(expect(w, 4, "resourceVersion=5"));
	assert_true(test_loop_until(w->loop, &w->oks, 1, WAIT_MS));
	assert_log(w, "list +a +b error error +b synced ok ");
}

static void a_list_that_is_no_list_begins_anew(void **state)
{
	static const char *const bodies[] = {"", "[]", "{\"items\":[}", "{\"items\":[]}",
	                                     "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":["};
	for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
		struct world *w;
		void *s;
		setup(&s);
		w = s;
		w->watch = watch_new(w, NULL);
		watch_server_reply(expect(w, 0, "limit=100"), 200, bodies[i], NULL);
		assert_true(test_loop_until(w->loop, &w->errors, 1, WAIT_MS));
		assert_int_equal(w->last_error.kind, ERR_PROTOCOL);
		assert_non_null(strstr(w->last_error.msg, "list of " PATH));
		expect(w, 1, "limit=100");
		assert_int_equal(w->synced, 0);
		teardown(&s);
	}
}

static void an_event_may_come_byte_by_byte(void **state)
{
	struct world *w = *state;
	struct watch_server_request *stream = synced(w);
	static const char event[] = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"c\",\"resourceVersion\":"
	                            "\"11\",\"x\":\"}\\\"{\"}}}\n";
	for (size_t i = 0; event[i]; i++) {
		watch_server_push(stream, (char[]){event[i], '\0'});
		test_loop_for(w->loop, 1);
	}
	wait_calls(w, 3);
	assert_log(w, "list synced +c ");
}

static void a_stream_that_breaks_in_an_event_is_resumed_without_it_and_without_an_error(void **state)
{
	struct world *w = *state;
	struct watch_server_request *stream = synced(w);
	watch_server_push(stream, "{\"type\":\"ADDED\",\"object\":" A1 "}\n{\"type\":\"ADDED\",\"object\":{\"meta");
	wait_calls(w, 3);
	watch_server_break(stream);
	stream = expect(w, 2, "resourceVersion=1");
	watch_server_push(stream, "{\"type\":\"ADDED\",\"object\":" B2 "}\n{\"type");
	wait_calls(w, 4);
	watch_server_end(stream); // a clean end in the middle
	expect(w, 3, "resourceVersion=2");
	assert_log(w, "list synced +a +b ");
}

static void nonsense_in_a_stream_is_an_error_and_is_tried_again(void **state)
{
	static const char *const events[] = {"nonsense", "{\"type\":\"ADDED\",\"object\":{}}",
	                                     "{\"type\":\"CHANGED\",\"object\":" A1 "}", "{]",
	                                     "{\"type\":\"ERROR\",\"object\":{\"code\":500,\"kind\":\"Status\","
	                                     "\"message\":\"etcd is away\"}}"};
	for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
		struct world *w;
		void *s;
		setup(&s);
		w = s;
		watch_server_push(synced(w), events[i]);
		assert_true(test_loop_until(w->loop, &w->errors, 1, WAIT_MS));
		assert_non_null(strstr(w->last_error.msg, "watch of " PATH));
		if (i == 4)
			assert_non_null(strstr(w->last_error.msg, "etcd is away"));
		watch_server_begin(expect(w, 2, "watch=true"));
		assert_true(test_loop_until(w->loop, &w->oks, 1, WAIT_MS)); // open for a second
		teardown(&s);
	}
}

static void a_refusal_is_told_when_it_begins_when_it_changes_and_when_it_ends(void **state)
{
	struct world *w = *state;
	static const char forbidden[] = "{\"kind\":\"Status\",\"message\":\"deployments is forbidden\",\"code\":403}";
	w->watch = watch_new(w, NULL);
	watch_server_reply(expect(w, 0, "limit=100"), 403, forbidden, NULL);
	watch_server_reply(expect(w, 1, "limit=100"), 403, forbidden, NULL);
	expect(w, 2, "limit=100");
	assert_int_equal(w->errors, 1);
	assert_int_equal(w->last_error.kind, ERR_AUTH);
	assert_int_equal(w->last_error.code, 403);
	watch_server_reply(expect(w, 2, "limit=100"), 404, "{}", NULL);
	assert_true(test_loop_until(w->loop, &w->errors, 2, WAIT_MS));
	watch_server_reply(expect(w, 3, "limit=100"), 200, EMPTY, NULL);
	watch_server_begin(expect(w, 4, "watch=true"));
	assert_true(test_loop_until(w->loop, &w->oks, 1, WAIT_MS));
	assert_log(w, "error error list synced ok ");
}

static void a_retry_after_is_waited_for(void **state)
{
	struct world *w = *state;
	w->watch = watch_new(w, NULL);
	watch_server_reply(expect(w, 0, "limit=100"), 429, "{}", "2");
	int64_t begin = test_now_ms();
	expect(w, 1, "limit=100");
	assert_true(test_now_ms() - begin >= 1900);
	assert_int_equal(w->last_error.kind, ERR_THROTTLED);
}

static void a_stream_that_is_always_refused_leads_to_a_new_list(void **state)
{
	struct world *w = *state;
	w->watch = watch_new(w, NULL);
	watch_server_reply(expect(w, 0, "limit=100"), 200, EMPTY, NULL);
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

static void a_server_that_ends_streams_at_once_is_not_asked_in_a_loop(void **state)
{
	struct world *w = *state;
	struct watch_server_request *stream = synced(w);
	watch_server_end(stream);
	for (int i = 2; i < 4; i++) {
		stream = expect(w, i, "resourceVersion=10");
		watch_server_begin(stream);
		watch_server_end(stream);
	}
	assert_int_equal(w->server.n, 4);
	int64_t begin = test_now_ms();
	expect(w, 4, "resourceVersion=10");
	assert_true(test_now_ms() - begin >= 1000);
	assert_int_equal(w->errors, 1);
	assert_non_null(strstr(w->last_error.msg, "ends the stream as soon as it is open"));
}

static void an_object_that_is_too_large_is_left_out_and_said(void **state)
{
	struct world *w = *state;
	struct k8s_watch_stats stats;
	char *large = malloc(K8S_WATCH_OBJECT_BYTES_MAX + 200);
	int n = snprintf(large, 100,
	                 "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"12\",\"x\":\"");
	memset(large + n, 'x', K8S_WATCH_OBJECT_BYTES_MAX);
	snprintf(large + n + K8S_WATCH_OBJECT_BYTES_MAX, 90, "\"}}}\n{\"type\":\"ADDED\",\"object\":" A1 "}\n");
	struct watch_server_request *stream = synced(w);
	watch_server_push(stream, large);
	free(large);
	wait_calls(w, 4);
	assert_log(w, "list synced error +a ");
	assert_int_equal(w->last_error.kind, ERR_LIMIT);
	assert_non_null(strstr(w->last_error.msg, "the ceiling is 2097152"));
	k8s_watch_get_stats(w->watch, &stats);
	assert_int_equal(stats.too_large, 1);
	// A new list without it ends the error.
	watch_server_push(stream, "{\"type\":\"ERROR\",\"object\":" GONE "}\n");
	watch_server_reply(expect(w, 2, "limit=100"), 200, EMPTY, NULL);
	watch_server_begin(expect(w, 3, "watch=true"));
	assert_true(test_loop_until(w->loop, &w->oks, 1, WAIT_MS));
}

static void it_can_be_freed_while_it_waits_lists_or_streams(void **state)
{
	struct world *w = *state;
	w->watch = watch_new(w, NULL);
	k8s_watch_free(w->watch); // before anything was asked
	w->watch = watch_new(w, NULL);
	struct watch_server_request *page = expect(w, 0, "limit=100");
	watch_server_push(page, "{\"items\":[" A1);
	wait_calls(w, 2);
	k8s_watch_free(w->watch); // within a page
	w->watch = watch_new(w, NULL);
	watch_server_reply(expect(w, 1, "limit=100"), 500, "{}", NULL);
	assert_true(test_loop_until(w->loop, &w->errors, 1, WAIT_MS));
	k8s_watch_free(w->watch); // while it backs off
	w->watch = watch_new(w, NULL);
	watch_server_reply(expect(w, 2, "limit=100"), 200, EMPTY, NULL);
	watch_server_begin(expect(w, 3, "watch=true"));
	test_loop_for(w->loop, 20);
	int calls = w->calls;
	k8s_watch_free(w->watch); // with an open stream
	w->watch = NULL;
	for (int i = 0; i < 20 && w->server.requests[3].raw; i++) { // the server learns by writing that nobody listens
		watch_server_push(&w->server.requests[3], " ");
		test_loop_for(w->loop, 50);
	}
	assert_null(w->server.requests[3].raw);
	test_loop_for(w->loop, 1000);
	assert_int_equal(w->calls, calls);
	assert_int_equal(w->server.n, 4);
}

static void it_can_be_freed_from_the_callback_of_another_watch(void **state)
{
	struct world *w = *state;
	struct k8s_watch *other = watch_new(w, NULL);
	w->watch = watch_new(w, NULL);
	watch_server_reply(expect(w, 0, "limit=100"), 200, EMPTY, NULL);
	watch_server_reply(expect(w, 1, "limit=100"), 200, EMPTY, NULL);
	struct watch_server_request *first = expect(w, 2, "watch=true"), *second = expect(w, 3, "watch=true");
	watch_server_begin(first);
	watch_server_begin(second);
	test_loop_for(w->loop, 20);
	// Either stream may be the other's: what comes for both at once is handed on by one of them only.
	w->free_on_object = &other;
	watch_server_push(second, "{\"type\":\"ADDED\",\"object\":" A1 "}\n");
	test_loop_for(w->loop, 100);
	assert_null(other);
	assert_log(w, "list synced list synced +a ");
}

static void a_client_that_closes_stops_it(void **state)
{
	struct world *w = *state;
	synced(w);
	k8s_client_free(w->client);
	w->client = NULL;
	test_loop_for(w->loop, 1200);
	assert_int_equal(w->server.n, 2);
	assert_int_equal(w->errors, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        TEST(a_list_comes_in_pages_then_changes_follow),
	        TEST(nothing_is_asked_while_nothing_happens),
	        TEST(a_stream_goes_on_from_the_latest_bookmark_or_event),
	        TEST(a_version_too_old_leads_to_a_new_list_however_it_is_said),
	        TEST(a_continue_token_too_old_begins_the_list_anew_and_ends_nothing_before),
	        TEST(a_list_that_fails_half_way_goes_on_with_its_page_and_is_not_synced_before),
	        TEST(a_list_that_is_no_list_begins_anew),
	        TEST(an_event_may_come_byte_by_byte),
	        TEST(a_stream_that_breaks_in_an_event_is_resumed_without_it_and_without_an_error),
	        TEST(nonsense_in_a_stream_is_an_error_and_is_tried_again),
	        TEST(a_refusal_is_told_when_it_begins_when_it_changes_and_when_it_ends),
	        TEST(a_retry_after_is_waited_for),
	        TEST(a_stream_that_is_always_refused_leads_to_a_new_list),
	        TEST(a_server_that_ends_streams_at_once_is_not_asked_in_a_loop),
	        TEST(an_object_that_is_too_large_is_left_out_and_said),
	        TEST(it_can_be_freed_while_it_waits_lists_or_streams),
	        TEST(it_can_be_freed_from_the_callback_of_another_watch),
	        TEST(a_client_that_closes_stops_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
