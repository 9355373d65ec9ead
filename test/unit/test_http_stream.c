// SPDX-License-Identifier: Apache-2.0
// Goal: a reply that comes piece by piece arrives piece by piece, its owner hears once when the client leaves, and a
// client that does not read costs no more than the ceiling.
#include "base/http/http_server.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/apart.h"
#include "test/support/certs.h"
#include "test/support/http_fixture.h"
#include "test/support/http_stream.h"

#define GET      "GET /stream HTTP/1.1\r\nHost: test\r\n\r\n"
#define GET_ECHO "GET /echo HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"

// The one owner of streams in these tests.
struct stream {
	struct http_exchange *x;
	int started, closed, refused;
};

static void on_close(void *arg)
{
	struct stream *s = arg;
	s->closed++;
	s->x = NULL;
}

static void handle_stream(void *arg, struct http_exchange *x)
{
	struct stream *s = arg;
	if (http_exchange_query(x, "big")) {
		char value[200];
		memset(value, 'v', sizeof value - 1);
		value[sizeof value - 1] = '\0';
		for (int i = 0; i < 100; i++)
			http_exchange_set_header(x, "X-Big", value);
	}
	http_exchange_set_header(x, "X-Stream", "yes");
	if (http_exchange_reply_start(x, 200, "application/x-stream", on_close, s)) {
		s->started++;
		s->x = x;
	} else {
		s->refused++;
	}
}

static void serve(struct http_fixture *f, struct stream *s, struct http_server_options options)
{
	struct err e;
	*s = (struct stream){0};
	http_fixture_serve(f, options);
	assert_int_equal(http_server_route(f->server, "/stream", handle_stream, s, &e), 0);
}

static void say(struct stream *s, const char *text)
{
	assert_non_null(s->x);
	http_exchange_write(s->x, text, strlen(text));
}

static struct raw_client *dial(struct http_fixture *f, struct stream *s, const char *request)
{
	int before = s->started;
	struct raw_client *c = http_fixture_dial(f);
	raw_client_send(c, request, 0);
	assert_true(test_loop_until(f->loop, &s->started, before + 1, FIXTURE_LIMIT_MS));
	return c;
}

// Turns the loop until the text has come.
static void wait_for_text(struct http_fixture *f, struct raw_client *c, const char *text)
{
	int64_t end = test_now_ms() + FIXTURE_LIMIT_MS;
	while (!strstr(raw_client_text(c), text) && test_now_ms() < end)
		test_loop_for(f->loop, 2);
	if (!strstr(raw_client_text(c), text))
		fail_msg("no \"%s\" in \"%.300s\"", text, raw_client_text(c));
}

static int open_connections(struct http_fixture *f)
{
	struct http_server_stats stats;
	http_server_get_stats(f->server, &stats);
	return stats.open;
}

static void pieces_arrive_one_by_one_as_chunks(void **state)
{
	struct http_fixture *f = *state;
	struct stream s;
	serve(f, &s, (struct http_server_options){0});
	struct raw_client *c = dial(f, &s, GET GET_ECHO); // the second one waits for the end of the first
	wait_for_text(f, c, "Transfer-Encoding: chunked\r\n");
	wait_for_text(f, c, "X-Stream: yes\r\n");
	wait_for_text(f, c, "Content-Type: application/x-stream\r\n");
	assert_null(strstr(raw_client_text(c), "Content-Length"));
	say(&s, "first\n");
	wait_for_text(f, c, "\r\n\r\n6\r\nfirst\n\r\n");
	say(&s, "");
	say(&s, "the second one, longer\n");
	wait_for_text(f, c, "17\r\nthe second one, longer\n\r\n");
	http_exchange_end(s.x);
	wait_for_text(f, c, "longer\n\r\n0\r\n\r\nHTTP/1.1 200 ");
	assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS));
	raw_client_free(c);
	assert_int_equal(s.closed, 0);
	assert_int_equal(f->handled, 1);
}

static void http_1_0_gets_the_body_as_it_is_and_the_end_of_the_connection(void **state)
{
	struct http_fixture *f = *state;
	struct stream s;
	serve(f, &s, (struct http_server_options){0});
	struct raw_client *c = dial(f, &s, "GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
	say(&s, "one,");
	say(&s, "two");
	wait_for_text(f, c, "\r\n\r\none,two");
	assert_null(strstr(raw_client_text(c), "chunked"));
	assert_non_null(strstr(raw_client_text(c), "Connection: close\r\n"));
	http_exchange_end(s.x); // with nothing left to write
	assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS));
	raw_client_free(c);
	assert_int_equal(s.closed, 0);
}

static void head_gets_the_headers_only(void **state)
{
	struct http_fixture *f = *state;
	struct stream s;
	serve(f, &s, (struct http_server_options){0});
	struct raw_client *c = dial(f, &s, "HEAD /stream HTTP/1.1\r\nHost: test\r\n\r\n");
	say(&s, "never seen");
	http_exchange_end(s.x);
	assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS));
	raw_client_free(c);
	c = dial(f, &s, "HEAD /stream HTTP/1.1\r\nHost: test\r\n\r\n");
	wait_for_text(f, c, "\r\n\r\n");
	http_exchange_end(s.x);
	assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS));
	const char *text = raw_client_text(c);
	assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
	raw_client_free(c);
}

static void owner_is_notified_once_when_the_client_leaves(void **state)
{
	struct http_fixture *f = *state;
	for (int how = 0; how < 3; how++) {
		struct stream s;
		serve(f, &s, (struct http_server_options){0});
		struct raw_client *c = dial(f, &s, GET);
		say(&s, "hello");
		wait_for_text(f, c, "hello");
		if (how == 1)
			raw_client_shutdown(c); // half-closed is gone too: a stream has no other way to hear of it
		if (how == 2) {                 // sends more than is read ahead, which would hide its leaving
			char *noise = calloc(1, 256 * 1024);
			assert_non_null(noise);
			raw_client_send(c, noise, 256 * 1024);
			free(noise);
		}
		if (how == 0)
			raw_client_free(c);
		assert_true(test_loop_until(f->loop, &s.closed, 1, FIXTURE_LIMIT_MS));
		TEST_BECOMES(f->loop, open_connections(f) == 0);
		test_loop_for(f->loop, 20);
		assert_int_equal(s.closed, 1);
		if (how != 0)
			raw_client_free(c);
	}
}

static void stream_outlives_the_idle_time_and_then_ends_like_any_reply(void **state)
{
	struct http_fixture *f = *state;
	struct stream s;
	serve(f, &s, (struct http_server_options){.idle_ms = 100});
	struct raw_client *c = dial(f, &s, GET);
	test_loop_for(f->loop, 350);
	say(&s, "late");
	wait_for_text(f, c, "late");
	test_loop_for(f->loop, 250);
	assert_int_equal(s.closed, 0);
	http_exchange_end(s.x);
	assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS)); // idle again
	assert_non_null(strstr(raw_client_text(c), "late\r\n0\r\n\r\n"));
	raw_client_free(c);
	assert_int_equal(s.closed, 0);
}

// The client's event loop is the server's: a client that shall not read gets a reply that is written without a turn.
static void reader_over_the_backlog_is_cut_off(void **state)
{
	struct http_fixture *f = *state;
	struct stream s;
	enum { MAX = 64 * 1024, PIECE = 4096 };
	char piece[PIECE];
	memset(piece, 'p', sizeof piece);
	serve(f, &s, (struct http_server_options){0});
	struct raw_client *c = dial(f, &s, GET);
	struct http_exchange *x = s.x;
	http_exchange_limit_backlog(x, MAX);
	for (int i = 0; i < 2 * MAX / PIECE; i++)
		http_exchange_write(x, piece, sizeof piece);
	assert_int_equal(s.closed, 0); // never from within a write
	assert_true(test_loop_until(f->loop, &s.closed, 1, FIXTURE_LIMIT_MS));
	assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS));
	assert_true(strlen(raw_client_text(c)) <= MAX + 512);
	assert_null(strstr(raw_client_text(c), "\r\n0\r\n\r\n"));
	raw_client_free(c);
	c = dial(f, &s, GET); // one piece that alone is too large; and its owner ends it before it hears
	char *large = calloc(1, MAX + 1);
	assert_non_null(large);
	http_exchange_limit_backlog(s.x, MAX);
	http_exchange_write(s.x, large, MAX + 1);
	http_exchange_write(s.x, "more", 4);
	http_exchange_end(s.x);
	free(large);
	assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS));
	test_loop_for(f->loop, 20);
	assert_int_equal(s.closed, 1);
	raw_client_free(c);
}

static void client_that_takes_nothing_is_cut_after_the_idle_time(void **state)
{
	struct http_fixture *f = *state;
	struct stream s;
	enum { LARGE = 8 * 1024 * 1024 }; // more than the kernel's buffers hold
	serve(f, &s, (struct http_server_options){.idle_ms = 300});
	struct raw_client *c = dial(f, &s, GET);
	raw_client_pause(c);
	char *large = calloc(1, LARGE);
	assert_non_null(large);
	http_exchange_write(s.x, large, LARGE);
	free(large);
	int64_t begin = test_now_ms();
	assert_true(test_loop_until(f->loop, &s.closed, 1, FIXTURE_LIMIT_MS));
	assert_in_range(test_now_ms() - begin, 250, 30000);
	raw_client_free(c);
	TEST_BECOMES(f->loop, open_connections(f) == 0);
}

static void aborting_closes_without_an_end(void **state)
{
	struct http_fixture *f = *state;
	struct stream s;
	serve(f, &s, (struct http_server_options){0});
	struct raw_client *c = dial(f, &s, GET);
	say(&s, "cut");
	wait_for_text(f, c, "cut");
	http_exchange_abort(s.x);
	assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS));
	assert_null(strstr(raw_client_text(c), "\r\n0\r\n\r\n"));
	raw_client_free(c);
	c = http_fixture_dial(f);
	raw_client_send(c, "GET /hold HTTP/1.1\r\nHost: test\r\n\r\n" GET_ECHO, 0);
	assert_true(test_loop_until(f->loop, &f->n_held, 1, FIXTURE_LIMIT_MS));
	http_exchange_abort(f->held[--f->n_held]);
	assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS));
	assert_string_equal(raw_client_text(c), "");
	raw_client_free(c);
	assert_int_equal(s.closed, 0);
	TEST_BECOMES(f->loop, open_connections(f) == 0);
}

static void handle_abort(void *arg, struct http_exchange *x)
{
	http_exchange_abort(x);
}

static void handler_may_abort_at_once(void **state)
{
	struct http_fixture *f = *state;
	struct err e;
	assert_int_equal(http_server_route(f->server, "/abort", handle_abort, NULL, &e), 0);
	assert_string_equal(http_fixture_exchange(f, "GET /abort HTTP/1.1\r\nHost: test\r\n\r\n" GET_ECHO), "");
	http_fixture_get(f, "/abort");
	http_fixture_assert_error(f, ERR_UNREACHABLE, "closed the connection without a reply");
}

static void missing_client_is_reported_at_the_start_of_a_stream(void **state)
{
	struct http_fixture *f = *state;
	struct stream s;
	serve(f, &s, (struct http_server_options){0});
	const char *reply = http_fixture_exchange(f, "GET /stream?big=1 HTTP/1.1\r\nHost: test\r\n\r\n");
	http_fixture_assert_starts(reply, "HTTP/1.1 500 ");
	assert_int_equal(s.refused, 1);
	struct raw_client *c = http_fixture_dial(f);
	raw_client_send(c, "GET /hold HTTP/1.1\r\nHost: test\r\n\r\n", 0);
	assert_true(test_loop_until(f->loop, &f->n_held, 1, FIXTURE_LIMIT_MS));
	raw_client_shutdown(c); // has half-closed while the handler thought
	TEST_BECOMES(f->loop, raw_client_is_shut(c));
	test_loop_for(f->loop, 50);
	assert_false(http_exchange_reply_start(f->held[--f->n_held], 200, "text/plain", on_close, &s));
	assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS));
	raw_client_free(c);
	assert_int_equal(s.closed, 0);
	TEST_BECOMES(f->loop, open_connections(f) == 0);
}

static void freeing_the_server_notifies_the_owners(void **state)
{
	struct http_fixture *f = *state;
	struct stream s;
	serve(f, &s, (struct http_server_options){0});
	struct raw_client *one = dial(f, &s, GET), *two = dial(f, &s, GET);
	say(&s, "still here");
	http_server_free(f->server);
	f->server = NULL;
	assert_int_equal(s.closed, 2);
	raw_client_free(one);
	raw_client_free(two);
}

static void streams_work_over_tls_too(void **state)
{
	struct http_fixture *f = *state;
	struct stream s;
	struct certs certs;
	assert_int_equal(certs_init(&certs), 0);
	serve(f, &s,
	      (struct http_server_options){.tls_cert_file = certs.path[CERTS_SERVER],
	                                   .tls_key_file = certs.path[CERTS_SERVER_KEY]});
	const struct http_tls tls = {.ca_pem = certs.pem[CERTS_CA]};
	char url[64];
	snprintf(url, sizeof url, "https://127.0.0.1:%d/stream", http_server_port(f->server));
	struct http_request r = {.method = "GET", .url = url, .tls = &tls, .timeout_ms = 9000};
	http_fixture_fetch(f, &r); // leaves after its time
	http_fixture_assert_error(f, ERR_TIMEOUT, "");
	assert_true(test_loop_until(f->loop, &s.closed, 1, FIXTURE_LIMIT_MS));
	assert_int_equal(s.started, 1);
	certs_done(&certs);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, http_fixture_setup, http_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(pieces_arrive_one_by_one_as_chunks),
	        TEST(http_1_0_gets_the_body_as_it_is_and_the_end_of_the_connection),
	        TEST(head_gets_the_headers_only),
	        TEST(owner_is_notified_once_when_the_client_leaves),
	        TEST(stream_outlives_the_idle_time_and_then_ends_like_any_reply),
	        TEST(reader_over_the_backlog_is_cut_off),
	        TEST(client_that_takes_nothing_is_cut_after_the_idle_time),
	        TEST(aborting_closes_without_an_end),
	        TEST(handler_may_abort_at_once),
	        TEST(missing_client_is_reported_at_the_start_of_a_stream),
	        TEST(freeing_the_server_notifies_the_owners),
	        TEST(streams_work_over_tls_too),
	};
	return test_run_apart(tests, COUNT(tests));
}
