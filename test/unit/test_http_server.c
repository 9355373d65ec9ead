// SPDX-License-Identifier: Apache-2.0
#include "base/http/http_server.h"

#include <event2/event.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "test/support/apart.h"
#include "test/support/certs.h"
#include "test/support/http_fixture.h"
#include "test/support/raw_client.h"

#define HOST "Host: test\r\n"

static void wait_until_closed(struct http_fixture *f)
{
	struct http_server_stats stats = {.open = 1};
	int64_t end = test_now_ms() + FIXTURE_LIMIT_MS;
	while (stats.open > 0 && test_now_ms() < end) {
		test_loop_for(f->loop, 5);
		http_server_get_stats(f->server, &stats);
	}
	assert_int_equal(stats.open, 0);
}

static void unknown_path_gets_404_and_one_line(void **state)
{
	struct http_fixture *f = *state;
	http_fixture_get(f, "/nowhere");
	assert_int_equal(f->result.status, 404);
	assert_string_equal(f->result.body, "not found\n");
	http_fixture_get(f, "/echo/");
	assert_int_equal(f->result.status, 404);
}

static void handle_name(void *arg, struct http_exchange *x)
{
	http_exchange_reply_text(x, 200, arg);
}

static void longest_route_wins(void **state)
{
	struct http_fixture *f = *state;
	static const char *const routes[] = {"/apis/", "/apis/apps/", "/apis/apps", "/", "/apis/apps/v1/x"};
	static const char *const paths[][2] = {
	        {"/apis/", "/apis/\n"},
	        {"/apis/x", "/apis/\n"},
	        {"/apis", "/\n"},
	        {"/apis/apps", "/apis/apps\n"},
	        {"/apis/apps/v2", "/apis/apps/\n"},
	        {"/apis/apps/v1/x", "/apis/apps/v1/x\n"},
	        {"/apis/apps/v1/xy", "/apis/apps/\n"},
	};
	struct err e;
	for (size_t i = 0; i < COUNT(routes); i++) {
		char *name = (char *)(uintptr_t)routes[i];
		assert_int_equal(http_server_route(f->server, routes[i], handle_name, name, &e), 0);
	}
	for (size_t i = 0; i < COUNT(paths); i++) {
		http_fixture_get(f, paths[i][0]);
		assert_string_equal(f->result.body, paths[i][1]);
	}
	assert_int_equal(http_server_route(f->server, "/apis/", handle_name, NULL, &e), -1);
	assert_int_equal(http_server_route(f->server, "metrics", handle_name, NULL, &e), -1);
	for (int i = 0; i < HTTP_SERVER_ROUTES_MAX; i++) {
		char path[16];
		snprintf(path, sizeof path, "/r%d", i);
		http_server_route(f->server, path, handle_name, NULL, &e);
	}
	assert_int_equal(e.kind, ERR_LIMIT);
}

static void handle_probe(void *arg, struct http_exchange *x)
{
	const char *a = http_exchange_query(x, "a"), *none = http_exchange_query(x, "none");
	assert_string_equal(http_exchange_path(x), "/probe/x y");
	assert_string_equal(http_exchange_method(x), "PATCH");
	assert_string_equal(http_exchange_header(x, "x-CUSTOM"), "one");
	assert_null(http_exchange_header(x, "X-Missing"));
	assert_string_equal(http_exchange_peer(x), "127.0.0.1");
	assert_string_equal(a, "1 2&3");
	assert_null(none);
	assert_string_equal(http_exchange_query(x, "flag"), "");
	http_exchange_set_header(x, "X-Reply", "no\r\nX-Evil: split");
	http_exchange_reply_text(x, 200, "seen");
}

static void handler_sees_the_request_decoded(void **state)
{
	struct http_fixture *f = *state;
	struct err e;
	assert_int_equal(http_server_route(f->server, "/probe/", handle_probe, NULL, &e), 0);
	const char *reply = http_fixture_exchange(f, "PATCH /probe/x%20y?a=1+2%263&flag&=z HTTP/1.1\r\n" HOST
	                                             "X-Custom:  one \r\n\r\n");
	assert_non_null(strstr(reply, "\r\nX-Reply: no  X-Evil: split\r\n"));
	assert_non_null(strstr(reply, "seen\n"));
}

static void body_at_the_ceiling_is_taken_and_one_byte_more_gets_413(void **state)
{
	struct http_fixture *f = *state;
	enum { MAX = HTTP_SERVER_BODY_BYTES_MAX };
	char *body = malloc(MAX + 1);
	assert_non_null(body);
	memset(body, 'b', MAX + 1);
	struct http_request r = {.method = "POST", .url = http_fixture_url(f, "/echo"), .body = body, .body_len = MAX};
	http_fixture_fetch(f, &r);
	assert_int_equal(f->result.status, 200);
	assert_int_equal(f->result.body_len, MAX);
	r.body_len = MAX + 1;
	http_fixture_fetch(f, &r);
	assert_int_equal(f->result.status, 413);
	static const char *const chunked[] = {"Transfer-Encoding: chunked", NULL};
	r.headers = chunked;
	http_fixture_fetch(f, &r);
	assert_int_equal(f->result.status, 413);
	r.body_len = MAX;
	http_fixture_fetch(f, &r);
	assert_int_equal(f->result.status, 200);
	assert_int_equal(f->result.body_len, MAX);
	free(body);
}

static void slow_request_is_cut_however_often_it_sends_a_byte(void **state)
{
	struct http_fixture *f = *state;
	http_fixture_serve(
	        f, (struct http_server_options){.head_ms = 300, .body_ms = 300, .reply_ms = 300, .idle_ms = 300});
	static const char *const starts[] = {"GET /echo HTTP/1.1\r\nX: ",
	                                     "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n"};
	for (size_t i = 0; i < COUNT(starts); i++) {
		struct raw_client *c = http_fixture_dial(f);
		int64_t begin = test_now_ms();
		raw_client_send(c, starts[i], 0);
		for (int n = 0; n < 900 && !*raw_client_closed(c); n++) {
			raw_client_send(c, "x", 1);
			test_loop_for(f->loop, 10);
		}
		assert_true(*raw_client_closed(c));
		assert_in_range(test_now_ms() - begin, 290, 30000);
		http_fixture_assert_starts(raw_client_text(c), "HTTP/1.1 408 ");
		raw_client_free(c);
	}
	assert_int_equal(f->handled, 0);
}

static void idle_connection_is_closed_in_silence(void **state)
{
	struct http_fixture *f = *state;
	http_fixture_serve(
	        f, (struct http_server_options){.head_ms = 300, .body_ms = 300, .reply_ms = 300, .idle_ms = 300});
	struct raw_client *fresh = http_fixture_dial(f), *used = http_fixture_dial(f);
	raw_client_send(used, "GET /echo HTTP/1.1\r\n" HOST "\r\n", 0);
	assert_true(test_loop_until(f->loop, raw_client_closed(fresh), 1, FIXTURE_LIMIT_MS));
	assert_true(test_loop_until(f->loop, raw_client_closed(used), 1, FIXTURE_LIMIT_MS));
	assert_string_equal(raw_client_text(fresh), "");
	assert_int_equal(raw_client_count(used, "HTTP/1.1 "), 1);
	raw_client_free(fresh);
	raw_client_free(used);
}

static void client_that_does_not_read_its_reply_is_cut(void **state)
{
	struct http_fixture *f = *state;
	http_fixture_serve(
	        f, (struct http_server_options){.head_ms = 300, .body_ms = 300, .reply_ms = 300, .idle_ms = 300});
	int64_t begin = test_now_ms();
	struct sockaddr_in sin = {.sin_family = AF_INET,
	                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	                          .sin_port = htons(http_server_port(f->server))};
	static const char request[] = "GET /big?bytes=16000000 HTTP/1.1\r\n" HOST "\r\n";
	struct http_server_stats stats = {0};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof sin), 0);
	assert_int_equal(write(fd, request, sizeof request - 1), sizeof request - 1);
	while (stats.requests == 0 && test_now_ms() - begin < FIXTURE_LIMIT_MS) {
		test_loop_for(f->loop, 5);
		http_server_get_stats(f->server, &stats);
	}
	assert_int_equal(stats.requests, 1);
	wait_until_closed(f);
	assert_true(test_now_ms() - begin >= 290);
	close(fd);
}

static void late_reply_to_a_client_that_left_goes_nowhere(void **state)
{
	struct http_fixture *f = *state;
	for (int reset = 0; reset < 2; reset++) {
		struct sockaddr_in sin = {.sin_family = AF_INET,
		                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		                          .sin_port = htons(http_server_port(f->server))};
		struct linger linger = {.l_onoff = reset};
		static const char request[] = "GET /hold HTTP/1.1\r\n" HOST "\r\n";
		int fd = socket(AF_INET, SOCK_STREAM, 0), before = f->handled;
		assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof sin), 0);
		assert_int_equal(write(fd, request, sizeof request - 1), sizeof request - 1);
		assert_true(test_loop_until(f->loop, &f->handled, before + 1, FIXTURE_LIMIT_MS));
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
		close(fd);
		test_loop_for(f->loop, 20);
		http_fixture_release(f);
		wait_until_closed(f);
	}
}

static void freeing_the_server_drops_what_is_held(void **state)
{
	struct http_fixture *f = *state;
	http_fixture_fetch(
	        f, &(struct http_request){.method = "GET", .url = http_fixture_url(f, "/hold"), .timeout_ms = 9000});
	http_fixture_assert_error(f, ERR_TIMEOUT, "no reply had come"); // one exchange whose client has left
	struct raw_client *c = http_fixture_dial(f);
	raw_client_send(c, "GET /hold HTTP/1.1\r\n" HOST "\r\n", 0); // and one whose client waits
	assert_true(test_loop_until(f->loop, &f->handled, 2, FIXTURE_LIMIT_MS));
	http_server_free(f->server); // leaks are the sanitizer's to find
	f->server = NULL;
	assert_true(test_loop_until(f->loop, raw_client_closed(c), 1, FIXTURE_LIMIT_MS));
	raw_client_free(c);
}

struct loan {
	char *text;
	size_t len;
	int n_released;
};

static void on_released(const void *body, size_t len, void *arg)
{
	struct loan *loan = arg;
	assert_ptr_equal(body, loan->text);
	assert_int_equal(len, loan->len);
	loan->n_released++;
}

static void handle_loan(void *arg, struct http_exchange *x)
{
	struct loan *loan = arg;
	http_exchange_reply_lent(x, 200, "text/plain", loan->text, loan->len, on_released, loan);
}

// Sent or not, a body that was lent comes back exactly once: read, by HEAD, small, and unread when the server is freed.
static void lent_body_is_released_once(void **state)
{
	struct http_fixture *f = *state;
	struct loan loan = {.len = 8 * 1024 * 1024};
	struct err e;
	loan.text = malloc(loan.len + 1);
	assert_non_null(loan.text);
	memset(loan.text, 'x', loan.len);
	loan.text[loan.len] = '\0';
	assert_int_equal(http_server_route(f->server, "/loan", handle_loan, &loan, &e), 0);
	http_fixture_get(f, "/loan");
	assert_int_equal(f->result.status, 200);
	assert_int_equal(f->result.body_len, loan.len);
	assert_int_equal(loan.n_released, 1);
	http_fixture_fetch(f, &(struct http_request){.method = "HEAD", .url = http_fixture_url(f, "/loan")});
	assert_int_equal(loan.n_released, 2);
	loan.len = 10;
	http_fixture_get(f, "/loan");
	assert_int_equal(loan.n_released, 3);
	loan.len = 8 * 1024 * 1024;
	struct raw_client *c = http_fixture_dial(f);
	struct http_server_stats stats = {0};
	http_server_get_stats(f->server, &stats);
	uint64_t before = stats.requests;
	raw_client_send(c, "GET /loan HTTP/1.1\r\n" HOST "\r\n", 0);
	for (int64_t end = test_now_ms() + FIXTURE_LIMIT_MS; stats.requests == before && test_now_ms() < end;) {
		test_loop_for(f->loop, 1);
		http_server_get_stats(f->server, &stats);
	}
	raw_client_free(c);
	http_server_free(f->server);
	f->server = NULL;
	assert_int_equal(loan.n_released, 4);
	free(loan.text);
}

static void connections_over_the_ceiling_get_503(void **state)
{
	struct http_fixture *f = *state;
	http_fixture_serve(f, (struct http_server_options){.max_connections = 4});
	struct raw_client *held[4], *over[60];
	struct http_server_stats stats;
	for (int i = 0; i < 4; i++) {
		held[i] = http_fixture_dial(f);
		raw_client_send(held[i], "GET /hold HTTP/1.1\r\n" HOST "\r\n", 0);
	}
	assert_true(test_loop_until(f->loop, &f->handled, 4, FIXTURE_LIMIT_MS));
	for (int i = 0; i < 60; i++) {
		over[i] = http_fixture_dial(f);
		raw_client_send(over[i], "GET /echo HTTP/1.1\r\n" HOST "\r\n", 0);
	}
	int refused = 0;
	for (int i = 0; i < 60; i++) {
		assert_true(test_loop_until(f->loop, raw_client_closed(over[i]), 1, FIXTURE_LIMIT_MS));
		refused += strncmp(raw_client_text(over[i]), "HTTP/1.1 503 ", 13) == 0;
		assert_null(strstr(raw_client_text(over[i]), "200 OK"));
		raw_client_free(over[i]);
	}
	http_server_get_stats(f->server, &stats);
	assert_int_equal(refused, 60);
	assert_int_equal(stats.closed[HTTP_CLOSE_REFUSED], 60);
	http_fixture_release(f);
	for (int i = 0; i < 4; i++) {
		TEST_BECOMES(f->loop, strlen(raw_client_text(held[i])) >= 13);
		http_fixture_assert_starts(raw_client_text(held[i]), "HTTP/1.1 200 ");
		raw_client_free(held[i]);
	}
	wait_until_closed(f);
	http_fixture_get(f, "/echo"); // and there is room again
	assert_int_equal(f->result.status, 200);
}

static void addresses_are_checked_and_ports_in_use_are_named(void **state)
{
	struct http_fixture *f = *state;
	char taken[32];
	snprintf(taken, sizeof taken, "127.0.0.1:%d", http_server_port(f->server));
	const struct {
		const char *listen;
		enum err_kind kind;
		const char *part;
	} table[] = {
	        {"", ERR_USAGE, "host:port"},
	        {"127.0.0.1", ERR_USAGE, "host:port"},
	        {"127.0.0.1:", ERR_USAGE, "host:port"},
	        {"127.0.0.1:http", ERR_USAGE, "host:port"},
	        {"127.0.0.1:65536", ERR_USAGE, "0 to 65535"},
	        {"127.0.0.1:99999999999999999999", ERR_USAGE, "host:port"},
	        {"::1:9400", ERR_USAGE, "brackets"},
	        {"192.0.2.1:0", ERR_IO, "192.0.2.1:0"},
	        {"nowhere.invalid:0", ERR_IO, "nowhere.invalid"},
	        {taken, ERR_IO, "port in use"},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		struct err e = {0};
		struct http_server *s =
		        http_server_new(&(struct http_server_options){.loop = f->loop, .listen = table[i].listen}, &e);
		if (s || e.kind != table[i].kind || !strstr(e.msg, table[i].part))
			fail_msg("row %zu: %s: %s", i, err_kind_info(e.kind)->name, e.msg);
	}
}

static void all_interfaces_means_both_families(void **state)
{
	struct http_fixture *f = *state;
	char url[64];
	http_fixture_serve(f, (struct http_server_options){.listen = ":0"});
	http_fixture_get(f, "/echo");
	assert_int_equal(f->result.status, 200);
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	bool has_v6 = fd >= 0 && bind(fd, (struct sockaddr *)&sin6, sizeof sin6) == 0;
	if (fd >= 0)
		close(fd);
	if (!has_v6)
		return; // a machine without IPv6: the fallback to 0.0.0.0 was what has just been shown
	snprintf(url, sizeof url, "http://[::1]:%d/echo", http_server_port(f->server));
	http_fixture_fetch(f, &(struct http_request){.method = "GET", .url = url});
	assert_int_equal(f->result.status, 200);
	http_fixture_serve(f, (struct http_server_options){.listen = "[::1]:0"});
	snprintf(url, sizeof url, "http://[::1]:%d/echo", http_server_port(f->server));
	http_fixture_fetch(f, &(struct http_request){.method = "GET", .url = url});
	assert_int_equal(f->result.status, 200);
	assert_non_null(strstr(url, "[::1]"));
}

static void all_ceilings_hold_over_tls_too(void **state)
{
	struct http_fixture *f = *state;
	struct certs certs;
	assert_int_equal(certs_init(&certs), 0);
	http_fixture_serve(f, (struct http_server_options){.tls_cert_file = certs.path[CERTS_SERVER],
	                                                   .tls_key_file = certs.path[CERTS_SERVER_KEY],
	                                                   .head_ms = 9000});
	const struct http_tls tls = {.ca_pem = certs.pem[CERTS_CA]};
	enum { MAX = HTTP_SERVER_BODY_BYTES_MAX };
	char url[64], *body = calloc(1, MAX + 1);
	snprintf(url, sizeof url, "https://127.0.0.1:%d/echo", http_server_port(f->server));
	struct http_request r = {.method = "POST", .url = url, .tls = &tls, .body = body, .body_len = MAX};
	http_fixture_fetch(f, &r);
	assert_int_equal(f->result.body_len, MAX);
	r.body_len = MAX + 1;
	http_fixture_fetch(f, &r);
	assert_int_equal(f->result.status, 413);
	free(body);
	r = (struct http_request){.method = "GET", .url = url, .tls = &tls, .timeout_ms = 9000};
	snprintf(url, sizeof url, "https://127.0.0.1:%d/hold", http_server_port(f->server));
	http_fixture_fetch(f, &r); // the client leaves, the late reply goes nowhere
	http_fixture_assert_error(f, ERR_TIMEOUT, "no reply had come");
	test_loop_for(f->loop, 20);
	http_fixture_release(f);
	struct raw_client *mute = http_fixture_dial(f); // never shakes hands
	int64_t begin = test_now_ms();
	assert_true(test_loop_until(f->loop, raw_client_closed(mute), 1, FIXTURE_LIMIT_MS));
	assert_in_range(test_now_ms() - begin, 8900, 40000);
	raw_client_free(mute);
	certs_done(&certs);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, http_fixture_setup, http_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(unknown_path_gets_404_and_one_line),
	        TEST(longest_route_wins),
	        TEST(handler_sees_the_request_decoded),
	        TEST(body_at_the_ceiling_is_taken_and_one_byte_more_gets_413),
	        TEST(slow_request_is_cut_however_often_it_sends_a_byte),
	        TEST(idle_connection_is_closed_in_silence),
	        TEST(client_that_does_not_read_its_reply_is_cut),
	        TEST(late_reply_to_a_client_that_left_goes_nowhere),
	        TEST(freeing_the_server_drops_what_is_held),
	        TEST(lent_body_is_released_once),
	        TEST(connections_over_the_ceiling_get_503),
	        TEST(addresses_are_checked_and_ports_in_use_are_named),
	        TEST(all_interfaces_means_both_families),
	        TEST(all_ceilings_hold_over_tls_too),
	};
	return test_run_apart(tests, COUNT(tests));
}
