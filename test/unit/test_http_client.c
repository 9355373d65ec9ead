// SPDX-License-Identifier: Apache-2.0
#include "base/http/http_client.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "test/support/http_fixture.h"

#define MIB (1024 * 1024)

static void every_method_reaches_the_server_with_its_body(void **state)
{
	struct http_fixture *f = *state;
	static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"};
	static const char body[] = "{\"spec\":{\"replicas\":3}}";
	for (size_t i = 0; i < COUNT(methods); i++) {
		http_fixture_fetch(f, &(struct http_request){.method = methods[i],
		                                             .url = http_fixture_url(f, "/echo"),
		                                             .body = body,
		                                             .body_len = sizeof body - 1});
		assert_int_equal(f->result.status, 200);
		assert_string_equal(f->result.body, body);
		assert_int_equal(f->result.body_len, sizeof body - 1);
		assert_string_equal(f->result.content_type, "application/x-echo");
		assert_true(f->result.elapsed_us > 0);
	}
	http_fixture_fetch(f,
	                   &(struct http_request){.method = "HEAD", .url = http_fixture_url(f, "/big?bytes=20000000")});
	assert_int_equal(f->result.status, 200);
	assert_int_equal(f->result.body_len, 0);
	http_fixture_fetch(f, &(struct http_request){.method = "POST", .url = http_fixture_url(f, "/echo")});
	assert_int_equal(f->result.status, 200);
	assert_int_equal(f->result.body_len, 0);
}

static void large_body_arrives_whole(void **state)
{
	struct http_fixture *f = *state;
	static char body[40000]; // several times what is sent at once
	for (size_t i = 0; i < sizeof body; i++)
		body[i] = (char)('a' + i % 23);
	for (int i = 0; i < 4; i++) {
		http_fixture_fetch(f, &(struct http_request){.method = "POST",
		                                             .url = http_fixture_url(f, "/echo"),
		                                             .body = body,
		                                             .body_len = sizeof body});
		assert_int_equal(f->result.status, 200);
		assert_int_equal(f->result.body_len, sizeof body);
		assert_memory_equal(f->result.body, body, sizeof body);
	}
}

static void reply_at_the_ceiling_is_accepted_and_one_byte_more_is_not(void **state)
{
	struct http_fixture *f = *state;
	http_fixture_get(f, "/big?bytes=16777216");
	assert_int_equal(f->result.status, 200);
	assert_int_equal(f->result.body_len, 16 * MIB);
	http_fixture_get(f, "/big?bytes=16777217");
	http_fixture_assert_error(f, ERR_LIMIT, "announces 16777217 bytes, the ceiling is 16777216");
	http_fixture_fetch(f, &(struct http_request){.method = "GET",
	                                             .url = http_fixture_url(f, "/big?bytes=101"),
	                                             .max_body_bytes = 100});
	http_fixture_assert_error(f, ERR_LIMIT, "the ceiling is 100");
}

static void any_status_is_a_response(void **state)
{
	struct http_fixture *f = *state;
	static const int statuses[] = {200, 201, 400, 401, 403, 404, 409, 422, 429, 500, 503, 504};
	for (size_t i = 0; i < COUNT(statuses); i++) {
		char path[32];
		snprintf(path, sizeof path, "/echo?status=%d", statuses[i]);
		http_fixture_get(f, path);
		assert_int_equal(f->result.status, statuses[i]);
	}
}

static void redirect_is_a_response_and_is_not_followed(void **state)
{
	struct http_fixture *f = *state;
	http_fixture_get(f, "/echo?status=302");
	assert_int_equal(f->result.status, 302);
	test_loop_for(f->loop, 50);
	assert_int_equal(f->handled, 1);
}

static void requests_in_a_row_use_one_connection(void **state)
{
	struct http_fixture *f = *state;
	struct http_server_stats stats;
	for (int i = 0; i < 100; i++) {
		http_fixture_get(f, "/echo");
		assert_int_equal(f->result.status, 200);
	}
	http_server_get_stats(f->server, &stats);
	assert_int_equal(stats.accepted, 1);
	assert_int_equal(stats.requests, 100);
}

static void no_more_than_max_in_flight_run_at_once_and_the_rest_wait_in_order(void **state)
{
	struct http_fixture *f = *state;
	enum { N = 200 };
	struct http_result *results = http_fixture_results(f, N);
	struct http_server_stats stats;
	int all = 0;
	for (int i = 0; i < N; i++) {
		struct err e;
		struct http_request r = {
		        .method = "GET", .url = http_fixture_url(f, "/hold"), .timeout_ms = FIXTURE_LIMIT_MS};
		assert_int_equal(http_client_submit(f->client, &r, http_result_keep, &results[i], NULL, &e), 0);
		assert_int_equal(results[i].done, 0); // never from submit
	}
	for (int turn = 0; turn < N && all < N; turn++) {
		int wanted = f->handled + 16 < N ? f->handled + 16 : N;
		assert_true(test_loop_until(f->loop, &f->handled, wanted, FIXTURE_LIMIT_MS));
		test_loop_for(f->loop, 5);
		assert_true(f->n_held <= 16);
		for (int i = 0; i < N; i++) { // what waited longest has gone first
			if (i >= wanted)
				assert_int_equal(results[i].done, 0);
		}
		http_fixture_release(f);
		int last = wanted - 1;
		assert_true(test_loop_until(f->loop, &results[last].done, 1, FIXTURE_LIMIT_MS));
		all = 0;
		for (int i = 0; i < N; i++)
			all += results[i].done;
	}
	assert_int_equal(all, N);
	http_server_get_stats(f->server, &stats);
	assert_int_equal(stats.open_max, 16);
	for (int i = 0; i < N; i++) {
		assert_int_equal(results[i].status, 200);
		http_result_done(&results[i]);
	}
}

static void full_queue_refuses(void **state)
{
	struct http_fixture *f = *state;
	struct http_result *results = http_fixture_results(f, 3);
	struct err e;
	struct http_client *small = http_client_new(
	        &(struct http_client_options){.loop = f->loop, .max_in_flight = 1, .max_queued = 2}, &e);
	struct http_request r = {.method = "GET", .url = http_fixture_url(f, "/echo")};
	assert_int_equal(http_client_submit(small, &r, http_result_keep, &results[0], NULL, &e), 0);
	assert_int_equal(http_client_submit(small, &r, http_result_keep, &results[1], NULL, &e), 0);
	assert_int_equal(http_client_submit(small, &r, http_result_keep, &results[2], NULL, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "2 requests wait already, the ceiling is 2"));
	http_client_free(small);
	assert_int_equal(results[0].error.kind, ERR_CANCELED);
	assert_int_equal(results[1].error.kind, ERR_CANCELED);
	assert_int_equal(results[2].done, 0);
}

static void call_can_be_canceled_in_flight_and_in_the_queue(void **state)
{
	struct http_fixture *f = *state;
	struct http_result *results = http_fixture_results(f, 18);
	struct http_call *calls[18];
	struct err e;
	struct http_request r = {.method = "GET", .url = http_fixture_url(f, "/hold")};
	for (int i = 0; i < 18; i++)
		assert_int_equal(http_client_submit(f->client, &r, http_result_keep, &results[i], &calls[i], &e), 0);
	assert_true(test_loop_until(f->loop, &f->handled, 16, FIXTURE_LIMIT_MS));
	http_call_cancel(calls[17]); // queued
	assert_int_equal(results[17].done, 1);
	assert_int_equal(results[17].error.kind, ERR_CANCELED);
	http_call_cancel(calls[0]); // in flight; its place goes to the one that waits
	assert_int_equal(results[0].done, 1);
	assert_int_equal(results[0].error.kind, ERR_CANCELED);
	assert_non_null(strstr(results[0].error.msg, "GET http://127.0.0.1:"));
	assert_true(test_loop_until(f->loop, &f->handled, 17, FIXTURE_LIMIT_MS));
	http_fixture_release(f);
	for (int i = 1; i < 17; i++) {
		assert_true(test_loop_until(f->loop, &results[i].done, 1, FIXTURE_LIMIT_MS));
		assert_int_equal(results[i].status, 200);
		http_result_done(&results[i]);
	}
	assert_int_equal(results[0].done, 1);
	assert_int_equal(results[17].done, 1);
}

static void freeing_the_client_ends_every_call(void **state)
{
	struct http_fixture *f = *state;
	struct http_result *results = http_fixture_results(f, 20);
	struct err e;
	struct http_request r = {.method = "GET", .url = http_fixture_url(f, "/hold")};
	for (int i = 0; i < 20; i++)
		assert_int_equal(http_client_submit(f->client, &r, http_result_keep, &results[i], NULL, &e), 0);
	assert_true(test_loop_until(f->loop, &f->handled, 16, FIXTURE_LIMIT_MS));
	http_client_free(f->client);
	f->client = NULL;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(results[i].done, 1);
		assert_int_equal(results[i].error.kind, ERR_CANCELED);
	}
}

struct chain {
	struct http_fixture *f;
	struct http_call *other, *self;
	struct http_result other_result;
	int hops, finished;
};

static void on_hop(void *arg, const struct http_response *response, const struct err *error)
{
	struct chain *c = arg;
	struct err e;
	assert_non_null(response);
	http_call_cancel(c->self); // its own end has come already: nothing happens
	if (++c->hops == 5) {
		http_call_cancel(c->other);
		c->finished = 1;
		return;
	}
	struct http_request r = {.method = "GET", .url = http_fixture_url(c->f, "/echo")};
	assert_int_equal(http_client_submit(c->f->client, &r, on_hop, c, &c->self, &e), 0);
}

static void callback_may_submit_and_cancel(void **state)
{
	struct http_fixture *f = *state;
	static struct chain c; // a test that fails leaves its frame before the calls end
	c = (struct chain){.f = f};
	struct err e;
	struct http_request hold = {.method = "GET", .url = http_fixture_url(f, "/hold")};
	assert_int_equal(http_client_submit(f->client, &hold, http_result_keep, &c.other_result, &c.other, &e), 0);
	struct http_request r = {.method = "GET", .url = http_fixture_url(f, "/echo")};
	assert_int_equal(http_client_submit(f->client, &r, on_hop, &c, &c.self, &e), 0);
	assert_true(test_loop_until(f->loop, &c.finished, 1, FIXTURE_LIMIT_MS));
	assert_int_equal(c.hops, 5);
	assert_int_equal(c.other_result.done, 1);
	assert_int_equal(c.other_result.error.kind, ERR_CANCELED);
}

static void call_queued_past_its_deadline_reports_it(void **state)
{
	struct http_fixture *f = *state;
	struct http_result *results = http_fixture_results(f, 17);
	struct err e;
	for (int i = 0; i < 17; i++) {
		struct http_request r = {
		        .method = "GET", .url = http_fixture_url(f, "/hold"), .timeout_ms = i == 16 ? 300 : 60000};
		assert_int_equal(http_client_submit(f->client, &r, http_result_keep, &results[i], NULL, &e), 0);
	}
	assert_true(test_loop_until(f->loop, &results[16].done, 1, FIXTURE_LIMIT_MS));
	assert_int_equal(results[16].error.kind, ERR_TIMEOUT);
	assert_non_null(strstr(results[16].error.msg, "waited in the queue"));
	http_fixture_release(f);
	for (int i = 0; i < 16; i++) {
		assert_true(test_loop_until(f->loop, &results[i].done, 1, FIXTURE_LIMIT_MS));
		http_result_done(&results[i]);
	}
}

static void background_call_lets_others_go_first_but_never_starves(void **state)
{
	struct http_fixture *f = *state;
	enum { BACKGROUND = 20, OTHERS = 40, N = BACKGROUND + OTHERS };
	struct http_result *results = http_fixture_results(f, N);
	struct err e;
	for (int i = 0; i < N; i++) {
		struct http_request r = {.method = "GET",
		                         .url = http_fixture_url(f, "/hold"),
		                         .timeout_ms = FIXTURE_LIMIT_MS,
		                         .is_background = i < BACKGROUND};
		assert_int_equal(http_client_submit(f->client, &r, http_result_keep, &results[i], NULL, &e), 0);
	}
	static const int background_after[] = {1, 2, 8, 20}, others_after[] = {15, 30, 40, 40};
	for (size_t turn = 0; turn < sizeof background_after / sizeof background_after[0]; turn++) {
		int n = background_after[turn] + others_after[turn];
		assert_true(test_loop_until(f->loop, &f->handled, n, FIXTURE_LIMIT_MS));
		http_fixture_release(f);
		test_loop_until(f->loop, &results[background_after[turn] - 1].done, 1, FIXTURE_LIMIT_MS);
		test_loop_until(f->loop, &results[BACKGROUND + others_after[turn] - 1].done, 1, FIXTURE_LIMIT_MS);
		for (int i = 0; i < N; i++)
			assert_int_equal(results[i].done, i < BACKGROUND ? i < background_after[turn]
			                                                 : i - BACKGROUND < others_after[turn]);
	}
	for (int i = 0; i < N; i++) {
		assert_int_equal(results[i].status, 200);
		http_result_done(&results[i]);
	}
}

static void deadline_of_a_background_call_starts_when_it_is_sent(void **state)
{
	struct http_fixture *f = *state;
	struct http_result *results = http_fixture_results(f, 17);
	struct err e;
	for (int i = 0; i < 17; i++) {
		struct http_request r = {.method = "GET",
		                         .url = http_fixture_url(f, "/hold"),
		                         .timeout_ms = i == 16 ? 200 : 400,
		                         .is_background = true};
		assert_int_equal(http_client_submit(f->client, &r, http_result_keep, &results[i], NULL, &e), 0);
	}
	assert_true(test_loop_until(f->loop, &results[0].done, 1, FIXTURE_LIMIT_MS));
	assert_int_equal(results[0].error.kind, ERR_TIMEOUT);
	assert_int_equal(results[16].done, 0); // it waited longer than its 200 ms
	assert_true(test_loop_until(f->loop, &results[16].done, 1, FIXTURE_LIMIT_MS));
	assert_int_equal(results[16].error.kind, ERR_TIMEOUT);
	assert_null(strstr(results[16].error.msg, "waited in the queue"));
}

static void credentials_are_sent(void **state)
{
	struct http_fixture *f = *state;
	static const char *const headers[] = {"Content-Type: application/json", "X-Scope-OrgID: team-a", NULL};
	http_fixture_fetch(f, &(struct http_request){.method = "POST",
	                                             .url = http_fixture_url(f, "/headers"),
	                                             .headers = headers,
	                                             .bearer_token = "sesame.123-_~+/="});
	assert_non_null(strstr(f->result.body, "auth=Bearer sesame.123-_~+/= type=application/json agent=gpuscale/"));
	http_fixture_fetch(f, &(struct http_request){.method = "POST",
	                                             .url = http_fixture_url(f, "/headers"),
	                                             .basic_user = "alice",
	                                             .basic_password = "open:sesame"});
	assert_non_null(strstr(f->result.body, "auth=Basic YWxpY2U6b3BlbjpzZXNhbWU= type=none"));
	char url[128];
	snprintf(url, sizeof url, "http://alice:open%%3Asesame@127.0.0.1:%d/headers", http_server_port(f->server));
	http_fixture_fetch(f, &(struct http_request){.method = "GET", .url = url});
	assert_non_null(strstr(f->result.body, "auth=Basic YWxpY2U6b3BlbjpzZXNhbWU="));
	http_fixture_get(f, "/headers");
	assert_non_null(strstr(f->result.body, "auth=none")); // and never kept for the next one
}

static void unusable_requests_are_refused_before_anything_is_sent(void **state)
{
	struct http_fixture *f = *state;
	static const char *const bad_header[] = {"X-A: b\r\nX-Evil: c", NULL};
	static const char *const no_colon[] = {"X-A", NULL};
	static const char *const auth_header[] = {"Authorization: Bearer secret-1", NULL};
	const struct {
		struct http_request r;
		enum err_kind kind;
		const char *part;
	} table[] = {
	        {{.method = "GET"}, ERR_USAGE, "no URL"},
	        {{.method = "G ET", .url = "http://a/"}, ERR_USAGE, "method"},
	        {{.method = NULL, .url = "http://a/"}, ERR_USAGE, "method"},
	        {{.method = "GET", .url = "127.0.0.1:9090/secret-1"}, ERR_USAGE, "http://host:port/path"},
	        {{.method = "GET", .url = "prometheus/secret-1"}, ERR_USAGE, "no scheme"},
	        {{.method = "GET", .url = "file:///secret-1"}, ERR_USAGE, "\"file\" is not supported"},
	        {{.method = "GET", .url = "http://"}, ERR_USAGE, "unusable URL"},
	        {{.method = "GET", .url = "http://a:99999/secret-1"}, ERR_USAGE, "unusable URL"},
	        {{.method = "GET", .url = "http://a/secret-1\r\nX: y"}, ERR_USAGE, "unusable URL"},
	        {{.method = "GET", .url = "http://a/b", .headers = bad_header}, ERR_USAGE, "header 1 is not"},
	        {{.method = "GET", .url = "http://a/b", .headers = no_colon}, ERR_USAGE, "header 1 is not"},
	        {{.method = "GET", .url = "http://a/b", .bearer_token = "secret-1\n"}, ERR_USAGE, "position 9 of 9"},
	        {{.method = "GET", .url = "http://a/b", .bearer_token = "secret-1\x01"}, ERR_USAGE, "bearer token"},
	        {{.method = "GET", .url = "http://a/b", .bearer_token = ""}, ERR_USAGE, "0 bytes"},
	        {{.method = "GET", .url = "http://a/b", .bearer_token = "secret-1", .basic_user = "u"},
	         ERR_USAGE,
	         "credentials given twice"},
	        {{.method = "GET", .url = "http://u:secret-1@a/b", .headers = auth_header},
	         ERR_USAGE,
	         "credentials given twice"},
	        {{.method = "GET", .url = "http://a/b", .basic_user = "u:secret-1"}, ERR_USAGE, "colon"},
	        {{.method = "GET", .url = "http://a/b", .timeout_ms = -1}, ERR_USAGE, "negative timeout"},
	        {{.method = "GET", .url = "https://a/b", .tls = &(struct http_tls){.cert_pem = "x"}},
	         ERR_USAGE,
	         "needs its key"},
	};
	for (size_t i = 0; i < COUNT(table); i++) {
		struct http_result result = {0};
		struct err e = {0};
		int rc = http_client_submit(f->client, &table[i].r, http_result_keep, &result, NULL, &e);
		if (rc != -1 || e.kind != table[i].kind || !strstr(e.msg, table[i].part) || strstr(e.msg, "secret-1"))
			fail_msg("row %zu: %d, %s: %s", i, rc, err_kind_info(e.kind)->name, e.msg);
		test_loop_for(f->loop, 1);
		assert_int_equal(result.done, 0);
	}
}

static void text_is_urlencoded(void **state)
{
	struct buf b;
	buf_init(&b, 64);
	assert_int_equal(http_append_urlencoded(&b, "a b&c=d+\"{}~-._\xc3\xa9"), 0);
	assert_string_equal(buf_str(&b), "a%20b%26c%3Dd%2B%22%7B%7D~-._%C3%A9");
	assert_int_equal(http_append_urlencoded(&b, "{{{{{{{{{{{{{{{{{{{{{{"), -1);
	buf_done(&b);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, http_fixture_setup, http_fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(every_method_reaches_the_server_with_its_body),
	        TEST(large_body_arrives_whole),
	        TEST(reply_at_the_ceiling_is_accepted_and_one_byte_more_is_not),
	        TEST(any_status_is_a_response),
	        TEST(redirect_is_a_response_and_is_not_followed),
	        TEST(requests_in_a_row_use_one_connection),
	        TEST(no_more_than_max_in_flight_run_at_once_and_the_rest_wait_in_order),
	        TEST(full_queue_refuses),
	        TEST(call_can_be_canceled_in_flight_and_in_the_queue),
	        TEST(freeing_the_client_ends_every_call),
	        TEST(callback_may_submit_and_cancel),
	        TEST(call_queued_past_its_deadline_reports_it),
	        TEST(background_call_lets_others_go_first_but_never_starves),
	        TEST(deadline_of_a_background_call_starts_when_it_is_sent),
	        TEST(credentials_are_sent),
	        TEST(unusable_requests_are_refused_before_anything_is_sent),
	        cmocka_unit_test(text_is_urlencoded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
