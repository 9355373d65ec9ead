// SPDX-License-Identifier: Apache-2.0
// What the server makes of the bytes of a request: RFC 9112, and the ways to break it.
#include <errno.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/http/http_parse.h"
#include "test/support/http_fixture.h"
#include "test/support/http_request.h"

#define HOST "Host: test\r\n"

static void requests_that_break_the_rules_get_their_status(void **state)
{
	struct http_fixture *f = *state;
	static const struct {
		const char *request, *reply;
	} table[] = {
	        {"GARBAGE\r\n\r\n", "HTTP/1.1 400 "},
	        {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 "}, // no Host
	        {"GET / HTTP/1.1\r\n" HOST HOST "\r\n", "HTTP/1.1 400 "},
	        {"GET  / HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
	        {"GET /%zz HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
	        {"GET /%00 HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
	        {"GET nowhere HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
	        {"GET http:///echo HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "}, // an empty host
	        {"GET / HTTP/2.0\r\n" HOST "\r\n", "HTTP/1.1 505 "},
	        {"GET / FTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 400 "},
	        {"GET / HTTP/1.1\r\n" HOST "Folded: a\r\n b\r\n\r\n", "HTTP/1.1 400 "},
	        {"GET / HTTP/1.1\r\n" HOST "Blank : a\r\n\r\n", "HTTP/1.1 400 "},
	        {"GET / HTTP/1.1\r\n" HOST "No colon\r\n\r\n", "HTTP/1.1 400 "},
	        {"GET / HTTP/1.1\r\n" HOST "X: a\x01\r\n\r\n", "HTTP/1.1 400 "},
	        {"GET / HTTP/1.1\r\n" HOST "X: a\nY: b\r\n\r\n", "HTTP/1.1 400 "},
	        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", "HTTP/1.1 400 "},
	        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n", "HTTP/1.1 400 "},
	        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1x\r\n\r\n", "HTTP/1.1 400 "},
	        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	         "HTTP/1.1 400 "},
	        {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n", "HTTP/1.1 501 "},
	        {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400 "},
	        {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n2\r\nabc", "HTTP/1.1 400 "},
	        {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nffffffffff\r\n", "HTTP/1.1 413 "},
	        {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n100001\r\n", "HTTP/1.1 413 "},
	        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1048577\r\n\r\n", "HTTP/1.1 413 "},
	        {"\x16\x03\x01\x02", "HTTP/1.1 400 "},
	        {"GET /echo HTTP/1.1\r\n" HOST, ""}, // ends in the middle
	        {"", ""},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		const char *reply = http_fixture_exchange(f, table[i].request);
		if (table[i].reply[0] ? strncmp(reply, table[i].reply, strlen(table[i].reply)) != 0 : reply[0] != '\0')
			fail_msg("row %zu: wanted \"%s\", got \"%.60s\"", i, table[i].reply, reply);
		if (reply[0])
			assert_non_null(strstr(reply, "\r\nConnection: close\r\n"));
	}
	assert_int_equal(f->handled, 0);
}

static void odd_but_lawful_requests_are_served(void **state)
{
	struct http_fixture *f = *state;
	static const struct {
		const char *request, *reply, *body;
	} table[] = {
	        {"\r\n\r\nGET /echo HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200 ", ""},
	        {"GET /echo HTTP/1.0\r\n\r\n", "HTTP/1.1 200 ", ""},
	        {"GET http://any.test:80/echo?status=201 HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 201 ", ""},
	        {"GET /%65cho HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200 ", ""},
	        {"GET /echo?x=%zz&status=202&status=500 HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 202 ", ""},
	        {"OPTIONS * HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 404 ", "not found\n"},
	        {"BREW /echo HTTP/1.1\r\n" HOST "\r\n", "HTTP/1.1 200 ", ""},
	        {"POST /echo HTTP/1.1\r\nhost:test\r\ncontent-LENGTH:\t3 \r\n\r\nabc", "HTTP/1.1 200 ", "abc"},
	        {"POST /echo HTTP/1.1\r\n" HOST
	         "Transfer-Encoding: Chunked\r\n\r\n3;x=y\r\nabc\r\n02\r\nde\r\n0\r\nTrailer: t\r\n\r\n",
	         "HTTP/1.1 200 ", "abcde"},
	        {"POST /echo HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
	         "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ", "x"},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		const char *reply = http_fixture_exchange(f, table[i].request);
		const char *body = strstr(reply, "\r\nConnection: ");
		body = body ? strstr(body, "\r\n\r\n") : NULL;
		if (strncmp(reply, table[i].reply, strlen(table[i].reply)) != 0 || !body ||
		    strcmp(body + 4, table[i].body))
			fail_msg("row %zu: got \"%.400s\"", i, reply);
	}
}

static void head_gets_the_length_and_no_body(void **state)
{
	struct http_fixture *f = *state;
	const char *reply = http_fixture_exchange(f, "HEAD /big?bytes=100 HTTP/1.1\r\n" HOST "\r\n");
	http_fixture_assert_starts(reply, "HTTP/1.1 200 OK\r\n");
	assert_non_null(strstr(reply, "\r\nContent-Length: 100\r\n"));
	assert_string_equal(strstr(reply, "\r\n\r\n"), "\r\n\r\n");
	reply = http_fixture_exchange(f, "GET /echo?status=204 HTTP/1.1\r\n" HOST "\r\n");
	http_fixture_assert_starts(reply, "HTTP/1.1 204 No Content\r\n");
	assert_null(strstr(reply, "Content-Length"));
}

static void flood_of_headers_gets_431_and_a_long_line_414(void **state)
{
	struct http_fixture *f = *state;
	static const struct {
		const char *start, *piece, *reply;
	} table[] = {
	        {"GET /echo HTTP/1.1\r\n" HOST, "X-Flood: 0123456789\r\n", "HTTP/1.1 431 "},
	        {"GET /echo?", "0123456789", "HTTP/1.1 414 "},
	        {"GET /echo HTTP/1.1\r\n" HOST "X: ", "0123456789", "HTTP/1.1 431 "},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		struct raw_client *c = http_fixture_dial(f);
		raw_client_send(c, table[i].start, 0);
		for (int n = 0; n < 20000; n++)
			raw_client_send(c, table[i].piece, 0);
		assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS));
		http_fixture_assert_starts(raw_client_text(c), table[i].reply);
		raw_client_free(c);
	}
	char many[8192] = "GET /echo HTTP/1.1\r\n" HOST; // few bytes, too many headers
	for (int i = 0; i < HTTP_PARSE_FIELDS_MAX; i++)  // and HOST
		strncat(many, "a: b\r\n", sizeof many - strlen(many) - 1);
	strncat(many, "\r\n", sizeof many - strlen(many) - 1);
	http_fixture_assert_starts(http_fixture_exchange(f, many), "HTTP/1.1 431 ");
	assert_int_equal(f->handled, 0);
}

// Sends a request that is refused at once and, piece by piece, what it announces; pause_ms before the server gets to
// read each piece. Closing with unread bytes in the socket would reset the connection, and with it the reply on its
// way.
static void send_on_after_a_refusal(struct http_fixture *f, int pieces, long pause_ms)
{
	static char junk[16384], reply[4096];
	struct sockaddr_in sin = {.sin_family = AF_INET,
	                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	                          .sin_port = htons(http_server_port(f->server))};
	static const char head[] = "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 99999999\r\n\r\n";
	const struct timespec pause = {.tv_sec = pause_ms / 1000, .tv_nsec = pause_ms % 1000 * 1000000};
	ssize_t n = 0;
	memset(junk, 'j', sizeof junk);
	memset(reply, 0, sizeof reply);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof sin), 0);
	assert_int_equal(write(fd, head, sizeof head - 1), sizeof head - 1);
	int64_t end = test_now_ms() + FIXTURE_LIMIT_MS;
	while (recv(fd, reply, 1, MSG_DONTWAIT | MSG_PEEK) != 1 && test_now_ms() < end)
		event_base_loop(f->loop, EVLOOP_NONBLOCK); // not a turn more: from the reply on time is short
	for (int i = 0; i < pieces; i++) {
		n = send(fd, junk, sizeof junk, MSG_DONTWAIT);
		assert_true(n > 0 || errno == EAGAIN);
		nanosleep(&pause, NULL);
		event_base_loop(f->loop, EVLOOP_NONBLOCK); // with bytes to read
	}
	shutdown(fd, SHUT_WR);
	size_t have = 0;
	end = test_now_ms() + FIXTURE_LIMIT_MS;
	do {
		test_loop_for(f->loop, 2);
		n = recv(fd, reply + have, sizeof reply - 1 - have, MSG_DONTWAIT);
		have += n > 0 ? (size_t)n : 0;
	} while ((n > 0 || (n < 0 && errno == EAGAIN)) && test_now_ms() < end);
	assert_int_equal(n, 0); // an orderly end, no reset
	http_fixture_assert_starts(reply, "HTTP/1.1 413 ");
	close(fd);
}

static void refusal_is_not_reset_away_by_what_the_client_still_sends(void **state)
{
	send_on_after_a_refusal(*state, 40, 1);
}

static void refusal_is_not_reset_away_when_the_server_was_held_up(void **state)
{
	send_on_after_a_refusal(*state, 3, 1200);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	struct http_fixture *f = *state;
	struct raw_client *c = http_fixture_dial(f);
	raw_client_send(c,
	                "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nfirst"
	                "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n6\r\nsecond\r\n0\r\n\r\n"
	                "GET /nowhere HTTP/1.1\r\n" HOST "\r\n"
	                "POST /echo HTTP/1.1\r\n" HOST "Connection: close\r\nContent-Length: 5\r\n\r\nthird"
	                "GET /echo HTTP/1.1\r\n" HOST "\r\n",
	                0);
	assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS));
	const char *text = raw_client_text(c);
	const char *first = strstr(text, "\r\n\r\nfirstHTTP/1.1 200"),
	           *second = strstr(text, "\r\n\r\nsecondHTTP/1.1 404");
	const char *third = strstr(text, "\r\n\r\nthird");
	assert_true(first && second && third && first < second && second < third);
	assert_int_equal(raw_client_count(c, "HTTP/1.1 "), 4); // nothing after "Connection: close"
	assert_int_equal(f->handled, 3);
	raw_client_free(c);
}

static void pipelined_request_waits_for_a_late_reply(void **state)
{
	struct http_fixture *f = *state;
	struct raw_client *c = http_fixture_dial(f);
	raw_client_send(c, "GET /hold HTTP/1.1\r\n" HOST "\r\nGET /echo HTTP/1.1\r\n" HOST "\r\n", 0);
	assert_true(test_loop_until(f->loop, &f->handled, 1, FIXTURE_LIMIT_MS));
	test_loop_for(f->loop, 50);
	assert_int_equal(f->handled, 1);
	assert_string_equal(raw_client_text(c), "");
	http_fixture_release(f);
	assert_true(test_loop_until(f->loop, &f->handled, 2, FIXTURE_LIMIT_MS));
	raw_client_free(c);
}

static void idle_connections_can_be_dropped_and_others_go_on(void **state)
{
	struct http_fixture *f = *state;
	struct raw_client *idle = http_fixture_dial(f), *busy = http_fixture_dial(f);
	raw_client_send(idle, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2\r\n\r\nhi", 0);
	raw_client_send(busy, "GET /hold HTTP/1.1\r\n" HOST "\r\n", 0);
	assert_true(test_loop_until(f->loop, &f->handled, 2, FIXTURE_LIMIT_MS));
	for (int i = 0; i < 1000 && raw_client_count(idle, "hi") == 0; i++)
		test_loop_for(f->loop, 10);
	http_server_drop_idle(f->server);
	assert_true(test_loop_until(f->loop, raw_client_closed(idle), 1, FIXTURE_LIMIT_MS));
	http_fixture_release(f);
	for (int i = 0; i < 1000 && raw_client_count(busy, "HTTP/1.1 200") == 0; i++)
		test_loop_for(f->loop, 10);
	assert_int_equal(raw_client_count(busy, "HTTP/1.1 200"), 1);
	raw_client_free(idle);
	raw_client_free(busy);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, http_fixture_setup, http_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(requests_that_break_the_rules_get_their_status),
	        TEST(odd_but_lawful_requests_are_served),
	        TEST(head_gets_the_length_and_no_body),
	        TEST(flood_of_headers_gets_431_and_a_long_line_414),
	        TEST(refusal_is_not_reset_away_by_what_the_client_still_sends),
	        TEST(refusal_is_not_reset_away_when_the_server_was_held_up),
	        TEST(pipelined_requests_are_answered_in_order),
	        TEST(pipelined_request_waits_for_a_late_reply),
	        TEST(idle_connections_can_be_dropped_and_others_go_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
