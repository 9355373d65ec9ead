// SPDX-License-Identifier: Apache-2.0
// Goal: a reply without end is handed on as it comes, takes no place from ordinary requests, is noticed when it falls
// silent or breaks, and can be given up at any time, from within any callback.
#include "base/http/http_client.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "test/support/apart.h"
#include "test/support/http_fixture.h"

#define HEAD     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
#define STREAMS  20
#define LIMIT_MS 60000

struct stream {
	int opened, chunks, done, ended; // done: how often; ended: without an error
	int status;
	struct err error;
	char text[256], body[64];
	struct http_call *call;
	struct stream *cancel_on_data; // canceled when bytes come here
};

static void on_data(void *arg, const char *data, size_t len)
{
	struct stream *s = arg;
	assert_int_equal(s->done, 0);
	if (len == 0) {
		assert_int_equal(s->opened++, 0);
		assert_int_equal(s->chunks, 0);
		return;
	}
	s->chunks++;
	size_t have = strlen(s->text);
	assert_true(have + len < sizeof s->text);
	memcpy(s->text + have, data, len);
	if (s->cancel_on_data) {
		http_call_cancel(s->cancel_on_data->call);
		assert_int_equal(s->cancel_on_data->done, 1);
	}
}

static void on_done(void *arg, const struct http_response *response, const struct err *error)
{
	struct stream *s = arg;
	s->done++;
	s->call = NULL;
	if (response) {
		s->ended = 1;
		s->status = response->status;
		snprintf(s->body, sizeof s->body, "%s", response->body);
	} else {
		s->error = *error;
	}
}

static void open_stream(struct http_fixture *f, struct stream *s, const char *path, int64_t idle_ms)
{
	struct err e = {0};
	struct http_request r = {.method = "GET",
	                         .url = http_fixture_url(f, path),
	                         .on_data = on_data,
	                         .timeout_ms = LIMIT_MS,
	                         .idle_timeout_ms = idle_ms};
	if (http_client_submit(f->client, &r, on_done, s, &s->call, &e) < 0)
		fail_msg("%s", e.msg);
}

static void bytes_are_handed_on_as_they_come_and_the_end_is_reported_once(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {
	        STEP(RAW_READ_REQUEST), STEP_SEND(HEAD),           STEP(RAW_HOLD), STEP_SEND("3\r\none\r\n"),
	        STEP(RAW_HOLD),         STEP_SEND("3\r\ntwo\r\n"), STEP(RAW_HOLD), STEP_SEND("0\r\n\r\n")};
	struct stream s = {0};
	http_fixture_play(f, steps, COUNT(steps));
	open_stream(f, &s, "/", 0);
	assert_true(test_loop_until(f->loop, &s.opened, 1, LIMIT_MS));
	assert_int_equal(s.chunks, 0); // before the first byte of the body
	raw_server_go(f->raw);
	assert_true(test_loop_until(f->loop, &s.chunks, 1, LIMIT_MS));
	assert_string_equal(s.text, "one");
	raw_server_go(f->raw);
	assert_true(test_loop_until(f->loop, &s.chunks, 2, LIMIT_MS));
	assert_string_equal(s.text, "onetwo");
	assert_int_equal(s.done, 0);
	raw_server_go(f->raw);
	assert_true(test_loop_until(f->loop, &s.done, 1, LIMIT_MS));
	assert_string_equal(s.text, "onetwo");
	assert_int_equal(s.ended, 1);
	assert_int_equal(s.status, 200);
	assert_string_equal(s.body, "");
	assert_int_equal(s.opened, 1);
}

static void reply_in_one_piece_is_delivered_before_its_end(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {STEP(RAW_READ_REQUEST), STEP_SEND(HEAD "3\r\none\r\n0\r\n\r\n")};
	struct stream s = {0};
	http_fixture_play(f, steps, COUNT(steps));
	open_stream(f, &s, "/", 0);
	assert_true(test_loop_until(f->loop, &s.done, 1, LIMIT_MS));
	assert_int_equal(s.opened, 1);
	assert_string_equal(s.text, "one");
	assert_int_equal(s.ended, 1);
}

static void error_status_is_collected_and_no_data(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {
	        STEP(RAW_READ_REQUEST),
	        STEP_SEND("HTTP/1.1 410 Gone\r\nContent-Length: 4\r\nRetry-After: 2\r\n\r\ngone")};
	struct stream s = {0};
	http_fixture_play(f, steps, COUNT(steps));
	open_stream(f, &s, "/", 0);
	assert_true(test_loop_until(f->loop, &s.done, 1, LIMIT_MS));
	assert_int_equal(s.opened, 0);
	assert_int_equal(s.status, 410);
	assert_string_equal(s.body, "gone");
}

static void stream_that_breaks_is_an_error_after_its_bytes(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {STEP(RAW_READ_REQUEST), STEP_SEND(HEAD "5\r\none"), STEP_WAIT(30),
	                                        STEP(RAW_CLOSE)};
	struct stream s = {0};
	http_fixture_play(f, steps, COUNT(steps));
	open_stream(f, &s, "/", 0);
	assert_true(test_loop_until(f->loop, &s.done, 1, LIMIT_MS));
	assert_string_equal(s.text, "one");
	assert_int_equal(s.error.kind, ERR_UNREACHABLE);
}

static void silent_stream_ends_at_its_idle_limit_and_a_talking_one_does_not(void **state)
{
	struct http_fixture *f = *state;
	enum { BYTES = 9 }; // one a second; the limit is far above that, as the machine may be busy
	struct raw_step steps[2 + 2 * BYTES] = {STEP(RAW_READ_REQUEST), STEP_SEND(HEAD)};
	for (int i = 0; i < BYTES; i++) {
		steps[2 + 2 * i] = (struct raw_step)STEP_WAIT(1000);
		steps[3 + 2 * i] = (struct raw_step)STEP_SEND("1\r\na\r\n");
	}
	struct stream s = {0};
	http_fixture_play(f, steps, COUNT(steps));
	open_stream(f, &s, "/", 8000);
	assert_true(test_loop_until(f->loop, &s.done, 1, LIMIT_MS));
	assert_string_equal(s.text, "aaaaaaaaa"); // 9000 ms in all
	assert_int_equal(s.error.kind, ERR_TIMEOUT);
	assert_non_null(strstr(s.error.msg, "silent for 8000 ms"));
}

static void no_headers_within_the_timeout_is_a_timeout(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {STEP(RAW_READ_REQUEST)};
	struct stream s = {0};
	struct err e;
	http_fixture_play(f, steps, COUNT(steps));
	struct http_request r = {
	        .method = "GET", .url = http_fixture_url(f, "/"), .on_data = on_data, .timeout_ms = 9000};
	assert_int_equal(http_client_submit(f->client, &r, on_done, &s, &s.call, &e), 0);
	assert_true(test_loop_until(f->loop, &s.done, 1, LIMIT_MS));
	assert_int_equal(s.error.kind, ERR_TIMEOUT);
	assert_non_null(strstr(s.error.msg, "no reply had come"));
}

// Twenty streams on a client with two places; then ordinary requests go through, and keep their connection.
static void streams_take_no_place_from_requests(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {STEP(RAW_READ_REQUEST), STEP_SEND(HEAD "1\r\nx\r\n")};
	struct stream streams[STREAMS] = {0};
	struct http_server_stats stats;
	struct err e;
	char server_url[64];
	snprintf(server_url, sizeof server_url, "http://127.0.0.1:%d/echo", http_server_port(f->server));
	http_fixture_play(f, steps, COUNT(steps));
	struct http_client *own = f->client;
	f->client = http_client_new(
	        &(struct http_client_options){.loop = f->loop, .max_in_flight = 2, .connect_timeout_ms = LIMIT_MS}, &e);
	assert_non_null(f->client);
	for (int i = 0; i < STREAMS; i++)
		open_stream(f, &streams[i], "/", 0);
	for (int i = 0; i < STREAMS; i++)
		assert_true(test_loop_until(f->loop, &streams[i].chunks, 1, LIMIT_MS));
	for (int i = 0; i < 10; i++) {
		http_fixture_fetch(f, &(struct http_request){.method = "GET", .url = server_url});
		assert_int_equal(f->result.status, 200);
	}
	http_server_get_stats(f->server, &stats);
	assert_int_equal(stats.accepted, 1);
	for (int i = 0; i < STREAMS; i++)
		http_call_cancel(streams[i].call);
	for (int i = 0; i < STREAMS; i++) {
		assert_int_equal(streams[i].done, 1);
		assert_int_equal(streams[i].error.kind, ERR_CANCELED);
	}
	http_client_free(f->client);
	f->client = own;
}

static void stream_can_be_canceled_from_any_callback(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {STEP(RAW_READ_REQUEST), STEP_SEND(HEAD), STEP_WAIT(30),
	                                        STEP_SEND("1\r\nx\r\n1\r\ny\r\n0\r\n\r\n")};
	struct stream own = {0}, first = {0}, second = {0};
	http_fixture_play(f, steps, COUNT(steps));
	own.cancel_on_data = &own;
	open_stream(f, &own, "/", 0);
	assert_true(test_loop_until(f->loop, &own.done, 1, LIMIT_MS));
	assert_int_equal(own.error.kind, ERR_CANCELED);
	first.cancel_on_data = &second;
	second.cancel_on_data = &first;
	open_stream(f, &first, "/", 0);
	open_stream(f, &second, "/", 0);
	assert_true(test_loop_until(f->loop, &first.done, 1, LIMIT_MS));
	assert_true(test_loop_until(f->loop, &second.done, 1, LIMIT_MS));
	assert_int_equal(first.ended + second.ended, 1); // the one whose bytes came first went on to its end
	test_loop_for(f->loop, 50);
	assert_int_equal(first.done + second.done + own.done, 3);
}

static void freeing_the_client_ends_streams_and_queued_requests_for_one(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {STEP(RAW_READ_REQUEST), STEP_SEND(HEAD)};
	struct stream open = {0}, waiting = {0};
	struct err e;
	http_fixture_play(f, steps, COUNT(steps));
	struct http_client *own = f->client;
	f->client = http_client_new(&(struct http_client_options){.loop = f->loop, .connect_timeout_ms = LIMIT_MS}, &e);
	open_stream(f, &open, "/", 0);
	assert_true(test_loop_until(f->loop, &open.opened, 1, LIMIT_MS));
	open_stream(f, &waiting, "/", 0);
	http_client_free(f->client);
	f->client = own;
	assert_int_equal(open.done, 1);
	assert_int_equal(open.error.kind, ERR_CANCELED);
	assert_int_equal(waiting.done, 1);
	assert_int_equal(waiting.error.kind, ERR_CANCELED);
}

static void more_streams_than_the_ceiling_are_refused(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {STEP(RAW_READ_REQUEST)};
	static struct stream streams[HTTP_STREAMS_MAX + 1];
	struct err e = {0};
	http_fixture_play(f, steps, COUNT(steps));
	for (int i = 0; i < HTTP_STREAMS_MAX; i++)
		open_stream(f, &streams[i], "/", 0);
	struct http_request r = {.method = "GET", .url = http_fixture_url(f, "/"), .on_data = on_data};
	assert_int_equal(http_client_submit(f->client, &r, on_done, &streams[HTTP_STREAMS_MAX], NULL, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "256 streams"));
	for (int i = 0; i < HTTP_STREAMS_MAX; i++)
		http_call_cancel(streams[i].call);
}

static int may_not(void *arg, struct err *e)
{
	return err_set(e, ERR_CANCELED, "not any more");
}

static void request_that_may_not_start_never_reaches_the_server(void **state)
{
	struct http_fixture *f = *state;
	struct http_request r = {.method = "POST", .url = http_fixture_url(f, "/echo"), .may_start = may_not};
	http_fixture_fetch(f, &r);
	http_fixture_assert_error(f, ERR_CANCELED, "not any more");
	assert_int_equal(f->handled, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, http_fixture_setup, http_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(bytes_are_handed_on_as_they_come_and_the_end_is_reported_once),
	        TEST(reply_in_one_piece_is_delivered_before_its_end),
	        TEST(error_status_is_collected_and_no_data),
	        TEST(stream_that_breaks_is_an_error_after_its_bytes),
	        TEST(silent_stream_ends_at_its_idle_limit_and_a_talking_one_does_not),
	        TEST(no_headers_within_the_timeout_is_a_timeout),
	        TEST(streams_take_no_place_from_requests),
	        TEST(stream_can_be_canceled_from_any_callback),
	        TEST(freeing_the_client_ends_streams_and_queued_requests_for_one),
	        TEST(more_streams_than_the_ceiling_are_refused),
	        TEST(request_that_may_not_start_never_reaches_the_server),
	};
	return test_run_apart(tests, COUNT(tests));
}
