// SPDX-License-Identifier: Apache-2.0
// Goal of this test: what goes over the wire is exactly the query API's request, and whatever comes back (or does not)
// ends in one callback with the right result or the right kind of error.
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "test/support/loop.h"
#include "test/support/promql_fixture.h"
#include "test/support/promql_short.h"

static void test_instant_query_is_the_exact_post(void **state)
{
	struct promql_fixture *f = *state;
	struct promql *p = promql_fixture_open(f, (struct promql_options){0});
	struct err e = {0};
	assert_int_equal(promql_query(p, "sum(up{a=\"b+c&d\"}) / 2%", 1735689600123, promql_fixture_done, f, &e), 0);
	assert_int_equal(f->n_requests, 0); // nothing happens before the loop runs
	promql_fixture_wait(f, 1);
	promql_fixture_expect_ok(f);
	const struct promql_request *q = &f->requests[0];
	assert_string_equal(q->method, "POST");
	assert_string_equal(q->path, "/api/v1/query");
	assert_string_equal(q->type, "application/x-www-form-urlencoded");
	assert_string_equal(q->authorization, "");
	assert_string_equal(q->body, "query=sum%28up%7Ba%3D%22b%2Bc%26d%22%7D%29%20%2F%202%25&time=1735689600.123"
	                             "&timeout=10s");
	promql_free(p);
}

// The fixture's server uses this machine's clock; the test sets the client's clock.
static void test_clock_that_differs_from_the_servers_is_measured(void **state)
{
	struct promql_fixture *f = *state;
	struct promql *p = promql_fixture_open(f, (struct promql_options){0});
	static const int64_t differences_ms[] = {0, 3600000, -3600000, 0};
	struct clock real;
	clock_init_real(&real);
	assert_int_equal(promql_skew_ms(p), 0); // unknown before the first reply
	for (size_t i = 0; i < sizeof differences_ms / sizeof differences_ms[0]; i++) {
		int64_t want_ms = differences_ms[i], before_ms = clock_wall_ms(&real);
		f->clock.manual_wall_ms = before_ms - want_ms;
		promql_fixture_ask(f, p);
		int64_t took_ms = clock_wall_ms(&real) - before_ms, got_ms = promql_skew_ms(p);
		// Whole seconds and the duration of the request do not count as skew; the manual clock does not
		// advance.
		if (got_ms < want_ms - 2000 - took_ms || got_ms > want_ms + 2000 + took_ms)
			fail_msg("%lld ms instead of %lld", (long long)got_ms, (long long)want_ms);
	}
	promql_free(p);
}

static void test_servers_now_needs_no_time(void **state)
{
	struct promql_fixture *f = *state;
	struct promql *p = promql_fixture_open(f, (struct promql_options){.timeout_ms = 22500});
	promql_fixture_ask(f, p);
	promql_fixture_expect_ok(f);
	assert_string_equal(f->requests[0].body, "query=up&timeout=22s500ms");
	promql_free(p);
}

static void test_range_query_is_the_exact_post(void **state)
{
	struct promql_fixture *f = *state;
	char url[96];
	snprintf(url, sizeof url, "%s/prefix//", f->url);
	struct promql *p = promql_fixture_open(f, (struct promql_options){.url = url});
	struct err e = {0};
	assert_int_equal(promql_ask(p,
	                            &(struct promql_question){.query = "up",
	                                                      .is_range = true,
	                                                      .start_ms = 1735689600000,
	                                                      .end_ms = 1735689660500,
	                                                      .step_ms = 15005},
	                            promql_fixture_done, f, &e),
	                 0);
	promql_fixture_wait(f, 1);
	promql_fixture_expect_ok(f);
	assert_string_equal(f->requests[0].path, "/prefix/api/v1/query_range");
	assert_string_equal(f->requests[0].body,
	                    "query=up&start=1735689600.000&end=1735689660.500&step=15.005&timeout=10s");
	promql_free(p);
}

static void test_every_bad_reply_has_its_kind_and_says_why(void **state)
{
	static const struct {
		struct promql_reply reply;
		enum err_kind kind;
		const char *says;
	} rows[] = {
	        {{400, NULL,
	          "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"invalid parameter \\\"query\\\": 1:5: "
	          "parse error: x\"}",
	          NULL, 0},
	         ERR_REJECTED,
	         "(bad_data): invalid parameter \"query\": 1:5: parse error: x"},
	        {{422, NULL, "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"too many samples\"}", NULL,
	          0},
	         ERR_REJECTED,
	         "too many samples"},
	        {{503, NULL, "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"query timed out\"}", NULL, 0},
	         ERR_TIMEOUT,
	         "query timed out"},
	        {{500, NULL, "{\"status\":\"error\",\"errorType\":\"internal\",\"error\":\"oops\"}", NULL, 0},
	         ERR_SERVER,
	         "oops"},
	        {{403, NULL, "{\"status\":\"error\",\"errorType\":\"forbidden\",\"error\":\"tenant\"}", NULL, 0},
	         ERR_AUTH,
	         "tenant"},
	        {{429, NULL, "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"too fast\"}", "7", 0},
	         ERR_THROTTLED,
	         "too fast"},
	        {{429, "text/plain", "slow down", "2", 0}, ERR_THROTTLED, "HTTP 429: slow down"},
	        {{503, "text/html", "\n<html><h1>503 Service Unavailable</h1>\n<p>nginx", NULL, 0},
	         ERR_SERVER,
	         "HTTP 503: <html><h1>503 Service Unavailable</h1>"},
	        {{502, "text/html", "", NULL, 0}, ERR_SERVER, "HTTP 502: empty body"},
	        {{504, "text/plain", "upstream", NULL, 0}, ERR_TIMEOUT, "HTTP 504: upstream"},
	        {{404, "text/plain", "404 page not found\n", NULL, 0},
	         ERR_NOT_FOUND,
	         "HTTP 404: 404 page not found; is this the base URL of a query API, with its prefix (Mimir: "
	         "/prometheus)?"},
	        {{401, "text/plain", "Unauthorized\n", NULL, 0}, ERR_AUTH, "HTTP 401: Unauthorized"},
	        {{403, NULL, "{\"message\":\"RBAC: access denied\"}", NULL, 0}, ERR_AUTH, "RBAC: access denied"},
	        {{302, "text/html", "<a href=\"/login\">Found</a>", NULL, 0}, ERR_PROTOCOL, "HTTP 302"},
	        {{200, "text/html; charset=utf-8", "<html>log in", NULL, 0},
	         ERR_PROTOCOL,
	         "text/html; charset=utf-8 instead of a reply of the query API: <html>log in"},
	        {{200, NULL, "", NULL, 0}, ERR_PROTOCOL, "empty body"},
	        {{200, NULL, "{\"status\":\"success\",\"data\":{\"resultType\":\"vec", NULL, 0},
	         ERR_PROTOCOL,
	         "JSON 1:"},
	        {{200, NULL, "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"1:1: x\"}", NULL, 0},
	         ERR_REJECTED,
	         "1:1: x"},
	        {{500, NULL, PROMQL_FIXTURE_BODY, NULL, 0}, ERR_PROTOCOL, "HTTP 500 with a body that says success"},
	};
	struct promql_fixture *f = *state;
	struct promql *p = promql_fixture_open(f, (struct promql_options){0});
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		f->replies[0] = rows[i].reply;
		promql_fixture_ask(f, p);
		if (f->e.kind != rows[i].kind || !strstr(f->e.msg, rows[i].says))
			fail_msg("row %zu: got %s \"%s\", want %s \"...%s...\"", i, err_kind_info(f->e.kind)->name,
			         f->e.msg, err_kind_info(rows[i].kind)->name, rows[i].says);
		assert_int_equal(f->e.code, rows[i].reply.status);
		int64_t retry_ms = rows[i].reply.retry_after ? (rows[i].reply.retry_after[0] - '0') * 1000 : 0;
		assert_int_equal(f->e.retry_after_ms, retry_ms);
		assert_non_null(strstr(f->e.msg, f->url));
	}
	// The source is as good as before.
	f->replies[0] = (struct promql_reply){.status = 200, .body = PROMQL_FIXTURE_BODY};
	promql_fixture_ask(f, p);
	promql_fixture_expect_ok(f);
	promql_free(p);
}

static void test_warnings_reach_the_caller(void **state)
{
	struct promql_fixture *f = *state;
	f->replies[0] =
	        (struct promql_reply){.status = 200,
	                              .body = "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":"
	                                      "[]},\"warnings\":[\"w\"]}"};
	struct promql *p = promql_fixture_open(f, (struct promql_options){0});
	promql_fixture_ask(f, p);
	assert_int_equal(f->e.kind, ERR_NONE);
	assert_int_equal(f->n_series, 0);
	assert_int_equal(f->n_warnings, 1);
	promql_free(p);
}

static void test_slow_server_is_a_timeout(void **state)
{
	struct promql_fixture *f = *state;
	f->replies[0] = (struct promql_reply){.status = 200, .body = PROMQL_FIXTURE_BODY, .delay_ms = 30000};
	struct promql *p = promql_fixture_open(f, (struct promql_options){.timeout_ms = 150});
	struct clock real;
	clock_init_real(&real);
	int64_t start_ms = clock_mono_ms(&real);
	promql_fixture_ask(f, p);
	assert_int_equal(f->e.kind, ERR_TIMEOUT);
	assert_in_range(clock_mono_ms(&real) - start_ms, 100, 20000);
	promql_free(p);
}

static void test_body_over_the_ceiling_is_refused(void **state)
{
	struct promql_fixture *f = *state;
	struct buf b;
	buf_init(&b, 64 * 1024);
	buf_puts(&b, "{\"status\":\"success\",\"pad\":\"");
	while (b.len < 20000)
		buf_puts(&b, "xxxxxxxxxx");
	buf_puts(&b, "\"}");
	f->replies[0] = (struct promql_reply){.status = 200, .body = b.data};
	struct promql *p = promql_fixture_open(f, (struct promql_options){.max_body_bytes = 10000});
	promql_fixture_ask(f, p);
	assert_int_equal(f->e.kind, ERR_TOO_LARGE);
	assert_non_null(strstr(f->e.msg, "the ceiling is 10000"));
	promql_free(p);
	buf_done(&b);
}

static void put_series(struct buf *b, size_t n)
{
	buf_puts(b, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[");
	for (size_t i = 0; i < n; i++)
		buf_printf(b, "%s{\"metric\":{\"i\":\"%zu\"},\"value\":[1,\"1\"]}", i ? "," : "", i);
	buf_puts(b, "]}}");
	assert_false(b->failed);
}

static void test_answer_with_too_many_series_is_cut_off(void **state)
{
	struct promql_fixture *f = *state;
	struct err e;
	struct buf b;
	buf_init(&b, (size_t)16 * 1024 * 1024);
	put_series(&b, 300000);
	f->replies[0] = (struct promql_reply){.status = 200, .body = b.data};
	struct promql *p = promql_fixture_open(f, (struct promql_options){0});
	assert_int_equal(
	        promql_ask(p, &(struct promql_question){.query = "up", .max_series = 8}, promql_fixture_done, f, &e),
	        0);
	promql_fixture_wait(f, 1);
	assert_int_equal(f->e.kind, ERR_TOO_LARGE);
	assert_int_equal(f->e.code, 8);
	assert_non_null(strstr(f->e.msg, "the answer has 9 series or more; the ceiling is 8"));
	assert_non_null(strstr(f->e.msg, f->url));
	f->replies[0].body = PROMQL_FIXTURE_BODY;
	promql_fixture_ask(f, p);
	promql_fixture_expect_ok(f);
	struct http_server_stats stats;
	http_server_get_stats(f->server, &stats);
	assert_int_equal(stats.accepted, 2); // the first connection was closed in the middle of the answer
	promql_free(p);
	buf_done(&b);
}

static void test_closed_port_is_unreachable(void **state)
{
	struct promql_fixture *f = *state;
	// Bound and not listening, so that no other process can take the port.
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof sin;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof sin), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	char url[64];
	snprintf(url, sizeof url, "http://127.0.0.1:%u", ntohs(sin.sin_port));
	struct promql *p = promql_fixture_open(f, (struct promql_options){.url = url});
	promql_fixture_ask(f, p);
	assert_int_equal(f->e.kind, ERR_UNREACHABLE);
	assert_non_null(strstr(f->e.msg, url));
	promql_free(p);
	close(fd);
}

static void test_connection_serves_query_after_query(void **state)
{
	struct promql_fixture *f = *state;
	struct promql *p = promql_fixture_open(f, (struct promql_options){0});
	for (int i = 0; i < 10; i++)
		promql_fixture_ask(f, p);
	struct http_server_stats stats;
	http_server_get_stats(f->server, &stats);
	assert_int_equal(stats.requests, 10);
	assert_int_equal(stats.accepted, 1);
	promql_free(p);
}

static void test_many_queries_at_once_all_end(void **state)
{
	struct promql_fixture *f = *state;
	struct promql *p = promql_fixture_open(f, (struct promql_options){.timeout_ms = 60000});
	for (int i = 0; i < 200; i++)
		assert_int_equal(promql_query(p, "up", 0, promql_fixture_done, f, NULL), 0);
	promql_fixture_wait(f, 200);
	promql_fixture_expect_ok(f);
	assert_int_equal(f->n_requests, 200);
	promql_free(p);
}

static void test_free_cancels_what_is_outstanding(void **state)
{
	struct promql_fixture *f = *state;
	f->replies[0] = (struct promql_reply){.status = 200, .body = PROMQL_FIXTURE_BODY, .delay_ms = 50};
	struct promql *p = promql_fixture_open(f, (struct promql_options){0});
	for (int i = 0; i < 20; i++)
		assert_int_equal(promql_query(p, "up", 0, promql_fixture_done, f, NULL), 0);

	promql_free(p);
	assert_int_equal(f->n_done, 20);
	assert_int_equal(f->e.kind, ERR_CANCELED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(test_instant_query_is_the_exact_post, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_clock_that_differs_from_the_servers_is_measured,
	                                        promql_fixture_setup, promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_servers_now_needs_no_time, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_range_query_is_the_exact_post, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_every_bad_reply_has_its_kind_and_says_why, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_warnings_reach_the_caller, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_slow_server_is_a_timeout, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_body_over_the_ceiling_is_refused, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_answer_with_too_many_series_is_cut_off, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_closed_port_is_unreachable, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_connection_serves_query_after_query, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_many_queries_at_once_all_end, promql_fixture_setup,
	                                        promql_fixture_teardown),
	        cmocka_unit_test_setup_teardown(test_free_cancels_what_is_outstanding, promql_fixture_setup,
	                                        promql_fixture_teardown),
	};
	return cmocka_run_group_tests_name("promql", tests, NULL, NULL);
}
