// SPDX-License-Identifier: Apache-2.0
// Goal: a request to the API server survives what servers do (throttle, fail, go away, refuse a token) within its
// bounds, and nothing is ever sent twice that could do harm.
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/http/http_client.h"
#include "test/fake/k8s_harness.h"
#include "test/support/apart.h"
#include "test/support/manual_clock.h"

#define SCALE_PATH "/apis/apps/v1/namespaces/default/deployments/web/scale"
#define MERGE      "application/merge-patch+json"

static void start(struct harness *h, const struct fake_apiserver_options *o)
{
	struct err e = {0};
	harness_start(h, o);
	if (fake_apiserver_add(h->server, "default/Deployment/web=2", &e) < 0)
		fail_msg("%s", e.msg);
}

static uint64_t total(const struct harness *h)
{
	struct fake_counts counts;
	fake_apiserver_get_counts(h->server, &counts);
	return counts.total;
}

struct retry_case {
	const char *name, *method, *body;
	struct fake_fault fault;
	int attempts;       // requests the server must see
	enum err_kind kind; // ERR_NONE: answered in the end
};
static const struct retry_case retry_cases[] = {
        {"a GET after 503", "GET", NULL, {.next = 2, .status = 503}, 3, ERR_NONE},
        {"a GET after 429", "GET", NULL, {.next = 1, .status = 429}, 2, ERR_NONE},
        {"a GET at most max_attempts times", "GET", NULL, {.next = 9, .status = 500}, 3, ERR_SERVER},
        {"a PATCH with a resourceVersion after 502",
         "PATCH",
         "{\"metadata\":{\"resourceVersion\":\"1\"}}",
         {.next = 1, .status = 502},
         2,
         ERR_CONFLICT},
        {"a PATCH without a resourceVersion is not sent again",
         "PATCH",
         "{\"spec\":{\"replicas\":3}}",
         {.next = 1, .status = 502},
         1,
         ERR_SERVER},
        {"but is after 429", "PATCH", "{\"spec\":{\"replicas\":3}}", {.next = 1, .status = 429}, 2, ERR_NONE},
        {"a POST after 503 is not", "POST", "{}", {.next = 1, .status = 503}, 1, ERR_SERVER},
        {"nor a GET after 403", "GET", NULL, {.next = 1, .status = 403}, 1, ERR_AUTH},
        {"nor after 409", "GET", NULL, {.next = 1, .status = 409}, 1, ERR_CONFLICT},
};

static void only_what_is_safe_is_sent_again(void **state)
{
	for (size_t i = 0; i < sizeof retry_cases / sizeof retry_cases[0]; i++) {
		const struct retry_case *c = &retry_cases[i];
		struct harness h;
		struct outcome o;
		start(&h, NULL);
		harness_start_client(&h, 3);
		fake_apiserver_fail(h.server, &c->fault);
		harness_request(&h, c->method, SCALE_PATH, c->body ? MERGE : NULL, c->body, &o);
		if (o.error.kind != c->kind || total(&h) != (uint64_t)c->attempts || h.observed != c->attempts)
			fail_msg("%s: %s after %d requests: %s", c->name, err_kind_info(o.error.kind)->name,
			         (int)total(&h), o.error.msg);
		harness_stop(&h);
	}
}

static void retry_after_is_obeyed(void **state)
{
	struct harness h;
	struct outcome o;
	start(&h, NULL);
	harness_start_client(&h, 0);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1, .status = 429, .retry_after_s = 1});
	int64_t begin = clock_mono_ms(&h.clock);
	harness_request(&h, "GET", SCALE_PATH, NULL, NULL, &o);
	int64_t took = clock_mono_ms(&h.clock) - begin;
	assert_false(o.is_error);
	assert_true(took >= 1000);
	assert_int_equal(h.last_status, 200);
	assert_string_equal(h.last_class, "deployments/scale");
	harness_stop(&h);
}

static void server_that_is_away_is_named(void **state)
{
	struct harness h;
	struct outcome o;
	start(&h, NULL);
	h.config.server = "http://127.0.0.1:1";
	harness_start_client(&h, 2);
	harness_request(&h, "GET", SCALE_PATH, NULL, NULL, &o);
	assert_int_equal(o.error.kind, ERR_UNREACHABLE);
	assert_non_null(strstr(o.error.msg, "http://127.0.0.1:1 (the test)"));
	assert_int_equal(h.observed, 2);
	assert_int_equal(h.last_status, 0);
	harness_stop(&h);
}

static void slow_server_ends_in_a_timeout(void **state)
{
	struct harness h;
	struct outcome o = {0};
	struct err e = {0};
	start(&h, NULL);
	harness_start_client(&h, 0);
	k8s_client_free(h.client);
	struct k8s_client_options ko = {
	        .loop = h.loop, .http = h.http, .clock = &h.clock, .config = &h.config, .timeout_ms = 9000};
	h.client = k8s_client_new(&ko, &e);
	assert_non_null(h.client);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 9, .hang = true});
	harness_request(&h, "GET", SCALE_PATH, NULL, NULL, &o);
	assert_int_equal(o.error.kind, ERR_TIMEOUT);
	assert_int_equal(total(&h), 1);
	harness_stop(&h);
}

static void freeing_the_client_cancels_requests_in_flight(void **state)
{
	struct harness h;
	struct outcome backing_off = {0}, answered = {0}, not_sent = {0};
	struct err e = {0};
	start(&h, NULL);
	harness_start_client(&h, 0);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1, .status = 503, .retry_after_s = 30});
	assert_int_equal(k8s_request(h.client, "GET", SCALE_PATH, NULL, NULL, 0, outcome_of_request, &backing_off, &e),
	                 0);
	while (h.observed == 0)
		event_base_loop(h.loop, EVLOOP_ONCE);
	assert_int_equal(k8s_request(h.client, "GET", SCALE_PATH, NULL, NULL, 0, outcome_of_request, &answered, &e), 0);
	harness_wait(&h, &answered);
	assert_int_equal(k8s_request(h.client, "GET", SCALE_PATH, NULL, NULL, 0, outcome_of_request, &not_sent, &e), 0);
	k8s_client_free(h.client);
	h.client = NULL;
	assert_false(answered.is_error);
	assert_int_equal(backing_off.error.kind, ERR_CANCELED);
	assert_int_equal(not_sent.error.kind, ERR_CANCELED);
	harness_stop(&h);
}

// ---- credentials ----

struct token_file {
	char folder[64], path[96];
};

static void write_token(const struct token_file *t, const char *text)
{
	FILE *out = fopen(t->path, "w");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static void make_token(struct token_file *t)
{
	snprintf(t->folder, sizeof t->folder, "/tmp/gpuscale-k8s-client.XXXXXX");
	assert_non_null(mkdtemp(t->folder));
	snprintf(t->path, sizeof t->path, "%s/token", t->folder);
}

static void remove_token(const struct token_file *t)
{
	unlink(t->path);
	assert_int_equal(rmdir(t->folder), 0);
}

static void token_changed_on_disk_is_read_after_a_401(void **state)
{
	struct token_file client_side, server_side;
	struct harness h;
	struct outcome o;
	make_token(&client_side);
	make_token(&server_side);
	write_token(&client_side, "first\n");
	write_token(&server_side, "first");
	start(&h, &(struct fake_apiserver_options){.gpus = -1, .token_file = server_side.path});
	h.config.token_file = client_side.path;
	harness_start_client(&h, 0);
	harness_request(&h, "GET", SCALE_PATH, NULL, NULL, &o);
	assert_false(o.is_error);
	// The server changed its mind and the client's file lags behind: an honest 401, and the token is not shown.
	write_token(&server_side, "second");
	harness_request(&h, "GET", SCALE_PATH, NULL, NULL, &o);
	assert_int_equal(o.error.kind, ERR_AUTH);
	assert_int_equal(o.error.code, 401);
	assert_null(strstr(o.error.msg, "first"));
	assert_non_null(strstr(o.error.msg, "the test"));
	write_token(&client_side, "second");
	harness_request(&h, "GET", SCALE_PATH, NULL, NULL, &o);
	if (o.is_error)
		fail_msg("%s", o.error.msg);
	assert_int_equal(h.observed, 5); // one without a token that is refused, and one that is repeated
	// A file that is gone for a moment does not take the good token away.
	unlink(client_side.path);
	harness_request(&h, "GET", SCALE_PATH, NULL, NULL, &o);
	assert_false(o.is_error);
	harness_stop(&h);
	remove_token(&client_side);
	remove_token(&server_side);
}

static void token_file_is_re_read_every_minute(void **state)
{
	struct token_file t;
	struct harness h;
	struct outcome o;
	make_token(&t);
	write_token(&t, "first");
	start(&h, &(struct fake_apiserver_options){.gpus = -1, .viewer_token = "second", .token = "first"});
	h.config.token_file = t.path;
	clock_init_manual(&h.clock, 1700000000000);
	harness_start_client(&h, 0);
	struct err e = {0};
	static const char patch[] = "{\"spec\":{\"replicas\":3}}";
	static const struct {
		int64_t advance_ms;
		int status;
	} steps[] = {{0, 200}, {59000, 200}, {2000, 403}}; // "second" may only look
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		o = (struct outcome){0};
		clock_advance_ms(&h.clock, steps[i].advance_ms);
		assert_int_equal(k8s_request(h.client, "PATCH", SCALE_PATH, MERGE, patch, strlen(patch),
		                             outcome_of_request, &o, &e),
		                 0);
		for (int turns = 0; !o.is_done && turns < 1000; turns++)
			event_base_loop(h.loop, EVLOOP_ONCE);
		assert_true(o.is_done);
		assert_int_equal(h.last_status, steps[i].status);
		write_token(&t, "second");
	}
	harness_stop(&h);
	remove_token(&t);
}

static void static_token_that_is_refused_is_not_tried_twice(void **state)
{
	struct harness h;
	struct outcome o;
	start(&h, &(struct fake_apiserver_options){.gpus = -1, .token = "good"});
	h.config.token = "bad-and-secret";
	harness_start_client(&h, 0);
	harness_request(&h, "GET", SCALE_PATH, NULL, NULL, &o);
	assert_int_equal(o.error.kind, ERR_AUTH);
	assert_null(strstr(o.error.msg, "bad-and-secret"));
	assert_int_equal(total(&h), 1);
	harness_stop(&h);
}

static void missing_token_file_is_an_error_at_once(void **state)
{
	struct harness h;
	struct outcome o;
	start(&h, NULL);
	h.config.token_file = "/nowhere/token";
	harness_start_client(&h, 0);
	harness_request(&h, "GET", SCALE_PATH, NULL, NULL, &o);
	assert_int_equal(o.error.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(o.error.msg, "/nowhere/token"));
	assert_int_equal(total(&h), 0);
	harness_stop(&h);
}

// A plugin that prints one token more each time it is called; its input is kept beside it.
#define PLUGIN                                                                                                         \
	"n=$(cat $0.n 2>/dev/null || echo 0); n=$((n+1)); echo $n >$0.n; "                                             \
	"printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1\","                     \
	"\"status\":{\"token\":\"token-%d\"}}' $n"

static void plugin_is_asked_once_for_many_and_again_after_a_401(void **state)
{
	enum { N = 20 };
	static struct outcome o[N];
	struct token_file t, server_side;
	struct harness h;
	struct err e = {0};
	make_token(&t);
	make_token(&server_side);
	write_token(&server_side, "token-1");
	const char *const args[] = {"-c", PLUGIN, t.path, NULL};
	const struct k8s_exec exec = {.api_version = "client.authentication.k8s.io/v1",
	                              .command = "sh",
	                              .args = args,
	                              .source = "user \"u\" in the test"};
	start(&h, &(struct fake_apiserver_options){.gpus = -1, .token_file = server_side.path});
	h.config.exec = &exec;
	harness_start_client(&h, 0);
	memset(o, 0, sizeof o);
	for (int i = 0; i < N; i++)
		assert_int_equal(k8s_request(h.client, "GET", SCALE_PATH, NULL, NULL, 0, outcome_of_request, &o[i], &e),
		                 0);
	for (int i = 0; i < N; i++) {
		harness_wait(&h, &o[i]);
		if (o[i].is_error)
			fail_msg("%s", o[i].error.msg);
	}
	write_token(&server_side, "token-2");
	memset(o, 0, sizeof o);
	for (int i = 0; i < N; i++)
		assert_int_equal(k8s_request(h.client, "GET", SCALE_PATH, NULL, NULL, 0, outcome_of_request, &o[i], &e),
		                 0);
	for (int i = 0; i < N; i++) {
		harness_wait(&h, &o[i]);
		if (o[i].is_error)
			fail_msg("%s", o[i].error.msg);
	}
	harness_stop(&h);
	char counter[128], runs[8] = "";
	snprintf(counter, sizeof counter, "%s.n", t.path);
	FILE *file = fopen(counter, "re");
	assert_non_null(file);
	assert_non_null(fgets(runs, sizeof runs, file));
	fclose(file);
	assert_string_equal(runs, "2\n");
	assert_int_equal(unlink(counter), 0);
	remove_token(&t);
	remove_token(&server_side);
}

static void plugin_that_fails_fails_the_requests_that_wait(void **state)
{
	struct harness h;
	struct outcome o;
	const char *const args[] = {"-c", "echo 'session expired, log in again' >&2; exit 3", NULL};
	const struct k8s_exec exec = {.api_version = "client.authentication.k8s.io/v1",
	                              .command = "sh",
	                              .args = args,
	                              .source = "user \"u\" in the test"};
	start(&h, NULL);
	h.config.exec = &exec;
	harness_start_client(&h, 0);
	harness_request(&h, "GET", SCALE_PATH, NULL, NULL, &o);
	assert_int_equal(o.error.kind, ERR_AUTH);
	assert_non_null(strstr(o.error.msg,
	                       "credential plugin \"sh\" (user \"u\" in the test) exited with status 3: session "
	                       "expired, log in again"));
	assert_int_equal(total(&h), 0);
	harness_stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(only_what_is_safe_is_sent_again),
	        cmocka_unit_test(retry_after_is_obeyed),
	        cmocka_unit_test(server_that_is_away_is_named),
	        cmocka_unit_test(slow_server_ends_in_a_timeout),
	        cmocka_unit_test(freeing_the_client_cancels_requests_in_flight),
	        cmocka_unit_test(token_changed_on_disk_is_read_after_a_401),
	        cmocka_unit_test(token_file_is_re_read_every_minute),
	        cmocka_unit_test(static_token_that_is_refused_is_not_tried_twice),
	        cmocka_unit_test(missing_token_file_is_an_error_at_once),
	        cmocka_unit_test(plugin_is_asked_once_for_many_and_again_after_a_401),
	        cmocka_unit_test(plugin_that_fails_fails_the_requests_that_wait),
	};
	return test_run_apart(tests, sizeof tests / sizeof tests[0]);
}
