// SPDX-License-Identifier: Apache-2.0
// Replies no sane server sends, and servers that are not there.
#include <arpa/inet.h>
#include <event2/event.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/http/http_text.h"
#include "test/support/apart.h"
#include "test/support/http_fixture.h"

#define OK_HEAD "HTTP/1.1 200 OK\r\n"

static void every_broken_reply_gets_its_error(void **state)
{
	struct http_fixture *f = *state;
	static const struct {
		const char *reply;
		enum raw_step_kind end;
		enum err_kind kind;
		const char *part;
	} table[] = {
	        {"SSH-2.0-OpenSSH_9.2\r\n", RAW_CLOSE, ERR_PROTOCOL, "not a valid HTTP reply"},
	        {"HTTP/1.1 abc OK\r\n\r\n", RAW_CLOSE, ERR_PROTOCOL, "not a valid HTTP reply"},
	        {"\x16\x03\x01\x02\x00\x01\x01\r\n\r\n", RAW_CLOSE, ERR_PROTOCOL, "not a valid HTTP reply"},
	        {"HTTP/4.7 200 OK\r\n\r\n", RAW_CLOSE, ERR_PROTOCOL, "not a valid HTTP reply"},
	        {"", RAW_CLOSE, ERR_UNREACHABLE, "without a reply"},
	        {"", RAW_RESET, ERR_UNREACHABLE, "broke"},
	        {OK_HEAD "Content-Length: 10\r\n\r\n12345", RAW_CLOSE, ERR_UNREACHABLE, "in the middle of the reply"},
	        {OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n", RAW_CLOSE, ERR_UNREACHABLE,
	         "in the middle"},
	        {OK_HEAD "Transfer-Encoding: chunked\r\n\r\nxyz\r\n12345\r\n", RAW_CLOSE, ERR_PROTOCOL, "chunked"},
	        {OK_HEAD "Transfer-Encoding: chunked\r\n\r\n5\r\n1234567\r\n", RAW_CLOSE, ERR_PROTOCOL, "chunked"},
	        {OK_HEAD "Content-Length: -5\r\n\r\n12345", RAW_CLOSE, ERR_PROTOCOL, "not a valid HTTP reply"},
	        {OK_HEAD "Content-Encoding: gzip\r\nContent-Length: 8\r\n\r\nnot gzip", RAW_CLOSE, ERR_PROTOCOL,
	         "not a valid HTTP reply"},
	        {OK_HEAD "Content-Length: 99999999999\r\n\r\n1", RAW_CLOSE, ERR_LIMIT, "announces 99999999999 bytes"},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		const struct raw_step steps[] = {STEP(RAW_READ_REQUEST), STEP_SEND(table[i].reply), STEP_WAIT(5),
		                                 STEP(table[i].end)};
		http_fixture_play(f, steps, COUNT(steps));
		http_fixture_fetch(f, &(struct http_request){.method = "GET",
		                                             .url = http_fixture_url(f, "/api?secret-query"),
		                                             .bearer_token = "secret-token"});
		if (f->result.error.kind != table[i].kind || !strstr(f->result.error.msg, table[i].part))
			fail_msg("row %zu: %s: %s", i, err_kind_info(f->result.error.kind)->name, f->result.error.msg);
		assert_non_null(strstr(f->result.error.msg, "GET http://127.0.0.1:"));
		assert_non_null(strstr(f->result.error.msg, "/api: "));
		assert_null(strstr(f->result.error.msg, "secret"));
		assert_non_null(strstr(raw_server_request(f->raw), "Authorization: Bearer secret-token\r\n"));
	}
}

static void odd_but_lawful_replies_are_taken(void **state)
{
	struct http_fixture *f = *state;
	static const struct {
		const char *reply, *body;
		int status;
	} table[] = {
	        {OK_HEAD "\r\nuntil close", "until close", 200},
	        {"HTTP/1.0 200\r\n\r\nold", "old", 200},
	        {"HTTP/1.1 100 Continue\r\n\r\n" OK_HEAD "Content-Length: 1\r\n\r\nx", "x", 200},
	        {OK_HEAD "Transfer-Encoding: chunked\r\n\r\n3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n",
	         "abcde", 200},
	        {"HTTP/1.1 204 No Content\r\n\r\n", "", 204},
	        {"HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\nbad\n", "bad\n", 500},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		const struct raw_step steps[] = {STEP(RAW_READ_REQUEST), STEP_SEND(table[i].reply), STEP_WAIT(5),
		                                 STEP(RAW_CLOSE)};
		http_fixture_play(f, steps, COUNT(steps));
		http_fixture_get(f, "/");
		if (f->result.status != table[i].status || strcmp(f->result.body, table[i].body) != 0)
			fail_msg("row %zu: %d \"%s\" %s", i, f->result.status, f->result.body ? f->result.body : "",
			         f->result.error.msg);
	}
}

static void ceiling_holds_for_a_body_of_unknown_length(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {
	        STEP(RAW_READ_REQUEST),
	        STEP_SEND(OK_HEAD "\r\n"),
	        STEP_TIMES("0123456789", 101),
	        STEP(RAW_CLOSE),
	};
	http_fixture_play(f, steps, COUNT(steps));
	http_fixture_fetch(
	        f, &(struct http_request){.method = "GET", .url = http_fixture_url(f, "/"), .max_body_bytes = 1009});
	http_fixture_assert_error(f, ERR_LIMIT, "more than 1009 bytes");
	http_fixture_fetch(
	        f, &(struct http_request){.method = "GET", .url = http_fixture_url(f, "/"), .max_body_bytes = 1010});
	assert_int_equal(f->result.body_len, 1010);
}

static void flood_of_reply_headers_is_cut(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {
	        STEP(RAW_READ_REQUEST),
	        STEP_SEND(OK_HEAD),
	        STEP_TIMES("X-Flood: 0123456789012345678901234567890123456789\r\n", 20000),
	        STEP_SEND("\r\n"),
	        STEP(RAW_CLOSE),
	};
	http_fixture_play(f, steps, COUNT(steps));
	http_fixture_get(f, "/");
	http_fixture_assert_error(f, ERR_LIMIT, "headers have at least");
}

// gzip of n bytes of blanks; *ret_len is its length.
static char *gzip_of_blanks(size_t n, size_t *ret_len)
{
	z_stream z = {0};
	static unsigned char blanks[65536];
	size_t cap = n / 500 + 4096;
	char *out = malloc(cap);
	assert_non_null(out);
	memset(blanks, ' ', sizeof blanks);
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_out = (unsigned char *)out;
	z.avail_out = (unsigned)cap;
	for (size_t left = n; left > 0;) {
		size_t piece = left < sizeof blanks ? left : sizeof blanks;
		left -= piece;
		z.next_in = blanks;
		z.avail_in = (unsigned)piece;
		assert_int_equal(deflate(&z, left ? Z_NO_FLUSH : Z_FINISH), left ? Z_OK : Z_STREAM_END);
	}
	*ret_len = z.total_out;
	deflateEnd(&z);
	return out;
}

static void ceiling_counts_decompressed_bytes(void **state)
{
	struct http_fixture *f = *state;
	static const struct {
		size_t bytes;
		enum err_kind kind;
	} table[] = {{1000, ERR_NONE}, {16 * 1024 * 1024, ERR_NONE}, {64 * 1024 * 1024, ERR_LIMIT}};
	for (size_t i = 0; i < COUNT(table); i++) {
		size_t len;
		char *gz = gzip_of_blanks(table[i].bytes, &len), head[128];
		snprintf(head, sizeof head, OK_HEAD "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", len);
		assert_true(len < 1024 * 1024);
		const struct raw_step steps[] = {STEP(RAW_READ_REQUEST), STEP_SEND(head), STEP_BYTES(gz, len),
		                                 STEP(RAW_CLOSE)};
		http_fixture_play(f, steps, COUNT(steps));
		http_fixture_get(f, "/");
		free(gz);
		assert_non_null(strstr(raw_server_request(f->raw), "Accept-Encoding: gzip\r\n"));
		assert_int_equal(f->result.error.kind, table[i].kind);
		if (table[i].kind == ERR_NONE)
			assert_int_equal(f->result.body_len, table[i].bytes);
	}
}

static void dripping_reply_ends_at_the_deadline(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {
	        STEP_SEND(OK_HEAD "Content-Length: 1000\r\n\r\n"),
	        STEP_SEND("x"),
	        STEP_WAIT(20),
	        STEP_SEND("x"),
	        STEP_WAIT(20),
	        STEP_SEND("x"),
	        STEP_WAIT(20),
	        STEP_SEND("x"),
	};
	http_fixture_play(f, steps, COUNT(steps));
	int64_t begin = test_now_ms();
	http_fixture_fetch(
	        f, &(struct http_request){.method = "GET", .url = http_fixture_url(f, "/"), .timeout_ms = 9000});
	http_fixture_assert_error(f, ERR_TIMEOUT, "within 9000 ms: 4 bytes of the body had come");
	assert_in_range(test_now_ms() - begin, 8990, 40000);
}

static void silent_server_ends_at_the_deadline(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {STEP(RAW_READ_REQUEST)};
	http_fixture_play(f, steps, COUNT(steps));
	http_fixture_fetch(
	        f, &(struct http_request){.method = "GET", .url = http_fixture_url(f, "/"), .timeout_ms = 9000});
	http_fixture_assert_error(f, ERR_TIMEOUT, "the request was sent, no reply had come");
}

// A port that was free a moment ago; held open but not listening when *ret_fd is wanted.
static int unused_port(int *ret_fd, int backlog)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof sin;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof sin), 0);
	if (backlog >= 0)
		assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	*ret_fd = fd;
	return ntohs(sin.sin_port);
}

static void refused_connection_is_reported(void **state)
{
	struct http_fixture *f = *state;
	char url[64];
	int fd; // bound and not listening: no other process can take the port meanwhile
	snprintf(url, sizeof url, "http://127.0.0.1:%d/-/ready", unused_port(&fd, -1));
	http_fixture_fetch(f, &(struct http_request){.method = "GET", .url = url});
	close(fd);
	http_fixture_assert_error(f, ERR_UNREACHABLE, "/-/ready: connection refused; is the server running");
}

static void unaccepted_connection_fails_at_the_connect_timeout(void **state)
{
	struct http_fixture *f = *state;
	enum { N = 8 };
	struct http_result *results = http_fixture_results(f, N);
	struct err e;
	char url[64];
	int fd, timed_out = 0; // a full backlog: further SYNs stay unanswered
	snprintf(url, sizeof url, "http://127.0.0.1:%d/", unused_port(&fd, 0));
	struct http_request r = {.method = "GET", .url = url, .connect_timeout_ms = 150, .timeout_ms = 9000};
	for (int i = 0; i < N; i++)
		assert_int_equal(http_client_submit(f->client, &r, http_result_keep, &results[i], NULL, &e), 0);
	for (int i = 0; i < N; i++) {
		assert_true(test_loop_until(f->loop, &results[i].done, 1, FIXTURE_LIMIT_MS));
		assert_int_equal(results[i].error.kind, ERR_TIMEOUT);
		timed_out += strstr(results[i].error.msg, "no connection within 150 ms") != NULL;
	}
	close(fd);
	assert_true(timed_out > 0);
}

static void unresolvable_name_is_reported(void **state)
{
	struct http_fixture *f = *state;
	http_fixture_fetch(f, &(struct http_request){.method = "GET",
	                                             .url = "http://nowhere.invalid:9090/api/v1/query?query=secret",
	                                             .timeout_ms = 9000});
	// Without any DNS the resolver may take longer than the deadline: then the error must report that.
	if (f->result.error.kind == ERR_TIMEOUT) {
		http_fixture_assert_error(f, ERR_TIMEOUT, "the host name was not resolved yet");
	} else {
		http_fixture_assert_error(f, ERR_UNREACHABLE, "\"nowhere.invalid\" does not resolve");
	}
	assert_null(strstr(f->result.error.msg, "secret"));
}

static void connection_closed_while_idle_is_replaced(void **state)
{
	struct http_fixture *f = *state;
	http_fixture_serve(f, (struct http_server_options){.idle_ms = 300});
	http_fixture_get(f, "/echo");
	assert_int_equal(f->result.status, 200);
	struct http_server_stats stats;
	TEST_BECOMES(f->loop, (http_server_get_stats(f->server, &stats), stats.open == 0)); // the server hangs up
	test_loop_for(f->loop, 20);
	http_fixture_fetch(
	        f, &(struct http_request){
	                   .method = "POST", .url = http_fixture_url(f, "/echo"), .body = "whole", .body_len = 5});
	assert_int_equal(f->result.status, 200);
	assert_string_equal(f->result.body, "whole");
	http_server_get_stats(f->server, &stats);
	assert_int_equal(stats.accepted, 2);
}

static void retry_after_is_read_from_the_reply(void **state)
{
	struct http_fixture *f = *state;
	static const struct raw_step steps[] = {
	        STEP(RAW_READ_REQUEST),
	        STEP_SEND("HTTP/1.1 429 Too Many\r\nretry-AFTER:  7 \r\nContent-Length: 0\r\n\r\n"),
	        STEP(RAW_REPEAT),
	};
	http_fixture_play(f, steps, COUNT(steps));
	http_fixture_get(f, "/");
	assert_int_equal(f->result.status, 429);
	assert_int_equal(f->result.retry_after_ms, 7000);
	raw_server_free(f->raw);
	f->raw = NULL;
	http_fixture_get(f, "/echo"); // the handle is used again: nothing is left over
	assert_int_equal(f->result.retry_after_ms, 0);
}

static void retry_after_takes_seconds_and_dates_and_nothing_else(void **state)
{
	// 2026-01-05T09:00:00Z is 1767603600
	static const struct {
		const char *text;
		int64_t ms;
	} table[] = {
	        {"0", 0},
	        {"1", 1000},
	        {"  120\t", 120000},
	        {"3600", 3600000},
	        {"3601", 3600000},
	        {"99999999999999999999999999999999", 3600000},
	        {"Mon, 05 Jan 2026 09:00:30 GMT", 30000},
	        {"Monday, 05-Jan-26 09:00:30 GMT", 30000},
	        {"Mon Jan  5 09:00:30 2026", 30000},
	        {"Mon, 05 Jan 2026 08:59:59 GMT", 0},
	        {"Tue, 06 Jan 2026 09:00:30 GMT", 3600000},
	        {"-5", 0},
	        {"1.5", 0},
	        {"0x10", 0},
	        {"soon", 0},
	        {"", 0},
	        {"Monday", 0},
	        {"5 s", 0},
	        {"Mon, 99 Foo 2026 99:99:99 GMT", 0},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		int64_t ms = http_parse_retry_after_ms(table[i].text, strlen(table[i].text), 1767603600);
		if (ms != table[i].ms)
			fail_msg("\"%s\": %lld", table[i].text, (long long)ms);
	}
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, http_fixture_setup, http_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(every_broken_reply_gets_its_error),
	        TEST(odd_but_lawful_replies_are_taken),
	        TEST(ceiling_holds_for_a_body_of_unknown_length),
	        TEST(flood_of_reply_headers_is_cut),
	        TEST(ceiling_counts_decompressed_bytes),
	        TEST(dripping_reply_ends_at_the_deadline),
	        TEST(silent_server_ends_at_the_deadline),
	        TEST(refused_connection_is_reported),
	        TEST(unaccepted_connection_fails_at_the_connect_timeout),
	        TEST(unresolvable_name_is_reported),
	        TEST(connection_closed_while_idle_is_replaced),
	        TEST(retry_after_is_read_from_the_reply),
	        cmocka_unit_test(retry_after_takes_seconds_and_dates_and_nothing_else),
	};
	return test_run_apart(tests, COUNT(tests));
}
