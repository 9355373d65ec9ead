// SPDX-License-Identifier: Apache-2.0
// Goal: the external metrics server answers whom the API server vouches for, asks it no more often than it must, and
// nobody when it cannot be asked.
#include "controller/delegated_auth.h"

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
#include "base/http_client.h"
#include "base/http_server.h"
#include "base/json_write.h"
#include "controller/external_metrics.h"
#include "k8s/access_review.h"
#include "k8s/k8s_client.h"
#include "k8s/k8s_config.h"
#include "policies/decision.h"
#include "policies/policy.h"
#include "test/support/certs.h"
#include "test/support/http_result.h"
#include "test/support/loop.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define NOW_MS   1767603600000
#define WAIT_MS  10000
#define BASE     "/apis/external.metrics.k8s.io/v1beta1"
#define QUEUE    BASE "/namespaces/serving/queue"

struct world {
	struct event_base *loop;
	struct clock clock;
	struct http_server *api;
	struct http_exchange *watch;                // the stream that is open
	int token_reviews, access_reviews, watches; // asked
	int status;                                 // of the next answers to reviews; 0: a good one
	bool hold;                                  // reviews are not answered
	struct http_exchange *held;                 // the last of those
	const char *garbage;                        // instead of an answer; NULL: none
	char *last_review;                          // its body
	bool settled;                               // what is_settled() says
	struct http_client *http, *visitor;
	struct k8s_client *client;
	struct external_metrics *metrics;
	struct http_result result;
};

static struct certs certs; // made once: keys cost time

static int make_certs(void **state)
{
	return certs_init(&certs);
}

static int remove_certs(void **state)
{
	certs_done(&certs);
	return 0;
}

// ---- the API server ----

static void member(struct json_writer *w, const char *key, const char *value)
{
	json_write_key(w, key);
	json_write_str(w, value);
}

// The ConfigMap of a cluster whose clients have this authority.
static void write_configmap(struct json_writer *w, const char *client_ca)
{
	json_write_object_begin(w);
	json_write_key(w, "metadata");
	json_write_object_begin(w);
	member(w, "name", "extension-apiserver-authentication");
	member(w, "namespace", "kube-system");
	member(w, "resourceVersion", "5");
	json_write_object_end(w);
	json_write_key(w, "data");
	json_write_object_begin(w);
	member(w, "client-ca-file", client_ca);
	json_write_object_end(w);
	json_write_object_end(w);
}

static void on_watch_closed(void *arg)
{
	struct world *w = arg;
	w->watch = NULL;
}

static void handle_configmaps(void *arg, struct http_exchange *x)
{
	struct world *w = arg;
	struct buf b;
	struct json_writer j;
	assert_string_equal(http_exchange_query(x, "fieldSelector"),
	                    "metadata.name=extension-apiserver-authentication");
	if (http_exchange_query(x, "watch")) {
		w->watches++;
		w->watch = x;
		assert_true(http_exchange_reply_start(x, 200, "application/json", on_watch_closed, w));
		return;
	}
	buf_init(&b, 1 << 20);
	json_write_init(&j, &b, 0);
	json_write_object_begin(&j);
	member(&j, "kind", "ConfigMapList");
	json_write_key(&j, "metadata");
	json_write_object_begin(&j);
	member(&j, "resourceVersion", "5");
	json_write_object_end(&j);
	json_write_key(&j, "items");
	json_write_array_begin(&j);
	write_configmap(&j, certs.pem[CERTS_CA]);
	json_write_array_end(&j);
	json_write_object_end(&j);
	http_exchange_reply(x, 200, "application/json", buf_str(&b), b.len);
	buf_done(&b);
}

// An event of the watch.
static void push(struct world *w, const char *type, const char *client_ca)
{
	struct buf b;
	struct json_writer j;
	int64_t end = test_now_ms() + WAIT_MS;
	while (!w->watch && test_now_ms() < end)
		test_loop_for(w->loop, 5);
	assert_non_null(w->watch);
	buf_init(&b, 1 << 20);
	json_write_init(&j, &b, 0);
	json_write_object_begin(&j);
	member(&j, "type", type);
	json_write_key(&j, "object");
	write_configmap(&j, client_ca);
	json_write_object_end(&j);
	buf_putc(&b, '\n');
	http_exchange_write(w->watch, buf_str(&b), b.len);
	buf_done(&b);
	test_loop_for(w->loop, 100);
}

static void answer(struct world *w, struct http_exchange *x, const char *kind, const char *status)
{
	char text[512];
	int n = snprintf(text, sizeof text, "{\"kind\":\"%s\",\"status\":%s}", kind, status);
	if (w->garbage)
		http_exchange_reply(x, 201, "application/json", w->garbage, strlen(w->garbage));
	else if (w->status)
		http_exchange_reply_text(x, w->status, "trouble");
	else
		http_exchange_reply(x, 201, "application/json", text, (size_t)n);
}

static void keep_review(struct world *w, struct http_exchange *x)
{
	free(w->last_review);
	w->last_review = strdup(http_exchange_body(x, NULL));
	assert_string_equal(http_exchange_method(x), "POST");
}

static void handle_token(void *arg, struct http_exchange *x)
{
	struct world *w = arg;
	keep_review(w, x);
	w->token_reviews++;
	if (w->hold)
		w->held = x;
	else if (strstr(w->last_review, "\"token\":\"good\""))
		answer(w, x, "TokenReview",
		       "{\"authenticated\":true,\"user\":{\"username\":\"tess\",\"groups\":[\"t\"]}}");
	else
		answer(w, x, "TokenReview", "{\"authenticated\":false}");
}

// Everything is allowed but metric "secret".
static void handle_access(void *arg, struct http_exchange *x)
{
	struct world *w = arg;
	keep_review(w, x);
	w->access_reviews++;
	if (w->hold)
		w->held = x;
	else if (strstr(w->last_review, "\"resource\":\"secret\""))
		answer(w, x, "SubjectAccessReview", "{\"allowed\":false,\"reason\":\"no role\"}");
	else
		answer(w, x, "SubjectAccessReview", "{\"allowed\":true}");
}

// ---- the server under test ----

static bool next_policy(void *arg, size_t i, struct external_source *ret_source)
{
	static const struct policy_signal signals[] = {{.name = "queue", .stale_after_ms = 60000},
	                                               {.name = "secret", .stale_after_ms = 60000}};
	static const struct policy policy = {.namespace_name = "serving",
	                                     .name = "llama",
	                                     .target_kind = "Deployment",
	                                     .target_name = "llama",
	                                     .interval_ms = 15000,
	                                     .signals = signals,
	                                     .n_signals = 2};
	static const struct decision decision = {
	        .time_ms = NOW_MS, .n_signals = 2, .signals = {{.value = 7}, {.value = 8}}};
	if (i > 0)
		return false;
	*ret_source = (struct external_source){&policy, &decision, ""};
	return true;
}

static bool is_settled(void *arg)
{
	const struct world *w = arg;
	return w->settled;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct err e;
	char url[64];
	signal(SIGPIPE, SIG_IGN);
	assert_non_null(w);
	w->settled = true;
	w->loop = event_base_new();
	clock_init_manual(&w->clock, NOW_MS);
	w->api = http_server_new(&(struct http_server_options){.loop = w->loop, .listen = "127.0.0.1:0"}, &e);
	assert_non_null(w->api);
	assert_int_equal(
	        http_server_route(w->api, "/api/v1/namespaces/kube-system/configmaps", handle_configmaps, w, &e), 0);
	assert_int_equal(http_server_route(w->api, TOKEN_REVIEW_PATH, handle_token, w, &e), 0);
	assert_int_equal(http_server_route(w->api, SUBJECT_ACCESS_REVIEW_PATH, handle_access, w, &e), 0);
	snprintf(url, sizeof url, "http://127.0.0.1:%d", http_server_port(w->api));
	const struct k8s_config config = {.server = url, .namespace_name = "default", .source = "test"};
	w->http = http_client_new(&(struct http_client_options){.loop = w->loop}, &e);
	w->visitor = http_client_new(&(struct http_client_options){.loop = w->loop}, &e);
	w->client = k8s_client_new(
	        &(struct k8s_client_options){
	                .loop = w->loop, .http = w->http, .clock = &w->clock, .config = &config, .max_attempts = 1},
	        &e);
	assert_non_null(w->client);
	const struct external_metrics_options options = {.loop = w->loop,
	                                                 .client = w->client,
	                                                 .clock = &w->clock,
	                                                 .listen = "127.0.0.1:0",
	                                                 .cert_file = certs.path[CERTS_SERVER],
	                                                 .key_file = certs.path[CERTS_SERVER_KEY],
	                                                 .next = next_policy,
	                                                 .is_settled = is_settled,
	                                                 .arg = w};
	w->metrics = external_metrics_new(&options, &e);
	if (!w->metrics)
		fail_msg("%s", e.msg);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	http_result_done(&w->result);
	external_metrics_stop(w->metrics);
	k8s_client_free(w->client);
	http_client_free(w->http);
	http_client_free(w->visitor);
	external_metrics_free(w->metrics);
	http_server_free(w->api);
	event_base_free(w->loop);
	free(w->last_review);
	free(w);
	return 0;
}

// A visitor with a token (NULL: none), or with a client certificate.
static int visit_as(struct world *w, const char *path, const char *token, bool with_certificate)
{
	char url[256];
	struct http_tls tls = {.ca_pem = certs.pem[CERTS_CA]};
	if (with_certificate) {
		tls.cert_pem = certs.pem[CERTS_CLIENT];
		tls.key_pem = certs.pem[CERTS_CLIENT_KEY];
	}
	snprintf(url, sizeof url, "https://127.0.0.1:%d%s", external_metrics_port(w->metrics), path);
	const struct http_request r = {.method = "GET", .url = url, .bearer_token = token, .tls = &tls};
	http_result_done(&w->result);
	w->result = (struct http_result){0};
	assert_int_equal(http_result_of(w->visitor, w->loop, &r, &w->result, WAIT_MS), 1);
	if (w->result.error.kind != ERR_NONE)
		fail_msg("%s", w->result.error.msg);
	return w->result.status;
}

static int visit(struct world *w, const char *path, const char *token)
{
	return visit_as(w, path, token, false);
}

static void wait_until_ready(struct world *w)
{
	int64_t end = test_now_ms() + WAIT_MS;
	while (visit(w, "/readyz", NULL) != 200)
		assert_true(test_now_ms() < end);
}

// ---- tests ----

static void what_is_allowed_is_asked_once_in_ten_seconds(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(visit(w, QUEUE, "good"), 200);
		assert_non_null(strstr(w->result.body, "\"value\":\"7\""));
	}
	assert_int_equal(w->token_reviews, 1);
	assert_int_equal(w->access_reviews, 1);
	assert_non_null(strstr(w->last_review, "\"user\":\"tess\",\"groups\":[\"t\",\"system:authenticated\"]"));
	assert_non_null(strstr(w->last_review, "\"verb\":\"list\",\"group\":\"external.metrics.k8s.io\",\"version\":"
	                                       "\"v1beta1\",\"resource\":\"queue\",\"namespace\":\"serving\""));
	assert_int_equal(visit(w, "/apis", "good"), 200); // another thing to do
	assert_int_equal(w->access_reviews, 2);
	assert_non_null(strstr(w->last_review, "\"nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/apis\"}"));
	clock_advance_ms(&w->clock, DELEGATED_AUTH_TTL_MS - 1);
	assert_int_equal(visit(w, QUEUE, "good"), 200);
	assert_int_equal(w->access_reviews, 2);
	clock_advance_ms(&w->clock, 1);
	assert_int_equal(visit(w, QUEUE, "good"), 200);
	assert_int_equal(w->token_reviews, 2);
	assert_int_equal(w->access_reviews, 3);
}

static void what_is_refused_is_refused_with_its_reason(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(visit(w, BASE "/namespaces/serving/secret", "good"), 403);
		assert_non_null(strstr(w->result.body,
		                       "User \\\"tess\\\" cannot list resource \\\"secret\\\" in API group "
		                       "\\\"external.metrics.k8s.io\\\" in the namespace \\\"serving\\\": no "
		                       "role"));
		assert_null(strstr(w->result.body, "\"value\""));
	}
	assert_int_equal(w->access_reviews, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(visit(w, QUEUE, "bad"), 401);
	assert_int_equal(w->token_reviews, 2);
	assert_int_equal(w->access_reviews, 1);
	wait_until_ready(w);
	assert_int_equal(visit(w, QUEUE, NULL), 401);
	assert_int_equal(w->token_reviews, 2);
}

static void when_the_api_server_cannot_be_asked_nothing_is_served(void **state)
{
	struct world *w = *state;
	static const int statuses[] = {500, 503, 403, 404, 429};
	static const char *const garbage[] = {"", "{}", "[]", "{\"kind\":\"Status\"}",
	                                      "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true}}"};
	for (size_t i = 0; i < COUNT(statuses); i++) {
		w->status = statuses[i];
		assert_int_equal(visit(w, QUEUE, "good"), 500);
		assert_null(strstr(w->result.body, "\"value\""));
	}
	w->status = 0;
	for (size_t i = 0; i < COUNT(garbage); i++) {
		w->garbage = garbage[i];
		assert_int_equal(visit(w, QUEUE, "good"), 500);
	}
	w->garbage = NULL;
	assert_int_equal(w->access_reviews, 0);
	assert_int_equal(visit(w, QUEUE, "good"), 200); // no failure is remembered
	// The owner of the token is known now, but not what else they may.
	w->status = 500;
	assert_int_equal(visit(w, BASE "/namespaces/serving/llama:queue", "good"), 500);
	w->status = 0;
	w->garbage = "{\"kind\":\"SubjectAccessReview\",\"status\":{\"allowed\":\"yes\"}}";
	assert_int_equal(visit(w, BASE "/namespaces/serving/llama:queue", "good"), 500);
	w->garbage = NULL;
	assert_int_equal(visit(w, BASE "/namespaces/serving/llama:queue", "good"), 200);
}

static void client_certificates_count_while_their_authority_does(void **state)
{
	struct world *w = *state;
	wait_until_ready(w);
	assert_int_equal(visit_as(w, QUEUE, NULL, true), 200);
	assert_non_null(strstr(w->last_review, "\"user\":\"gpuscale-client\",\"groups\":[\"gpuscale-testers\","));
	push(w, "MODIFIED", "no certificate"); // cannot be used: what was stays
	assert_int_equal(visit_as(w, QUEUE, NULL, true), 200);
	push(w, "MODIFIED", certs.pem[CERTS_OTHER_CA]);
	assert_int_equal(visit_as(w, QUEUE, NULL, true), 401);
	push(w, "MODIFIED", certs.pem[CERTS_CA]);
	assert_int_equal(visit_as(w, QUEUE, NULL, true), 200);
	push(w, "DELETED", certs.pem[CERTS_CA]);
	assert_int_equal(visit_as(w, QUEUE, NULL, true), 503);
	assert_int_equal(visit(w, "/readyz", NULL), 503);
	assert_int_equal(visit(w, "/healthz", NULL), 200);
	push(w, "ADDED", certs.pem[CERTS_CA]);
	assert_int_equal(visit_as(w, QUEUE, NULL, true), 200);
	assert_int_equal(w->watches, 1);
}

static void before_the_policies_are_known_none_is_said_not_to_be_there(void **state)
{
	struct world *w = *state;
	wait_until_ready(w);
	w->settled = false;
	assert_int_equal(visit(w, "/readyz", NULL), 503);
	assert_int_equal(visit(w, BASE "/namespaces/serving/other", "good"), 503);
	assert_int_equal(visit(w, QUEUE, "good"), 200);
	w->settled = true;
	assert_int_equal(visit(w, BASE "/namespaces/serving/other", "good"), 404);
	assert_int_equal(visit(w, BASE "/other", "good"), 404);
}

static void a_review_under_way_at_the_end_serves_nobody(void **state)
{
	struct world *w = *state;
	char url[256];
	const struct http_tls tls = {.ca_pem = certs.pem[CERTS_CA]};
	struct http_call *call;
	struct err e;
	w->hold = true;
	snprintf(url, sizeof url, "https://127.0.0.1:%d" QUEUE, external_metrics_port(w->metrics));
	const struct http_request r = {.method = "GET", .url = url, .bearer_token = "good", .tls = &tls};
	assert_int_equal(http_client_submit(w->visitor, &r, http_result_keep, &w->result, &call, &e), 0);
	int64_t end = test_now_ms() + WAIT_MS;
	while (!w->held && test_now_ms() < end)
		test_loop_for(w->loop, 5);
	assert_non_null(w->held);
	external_metrics_stop(w->metrics);
	k8s_client_free(w->client); // the review ends with it
	w->client = NULL;
	while (!w->result.done && test_now_ms() < end)
		test_loop_for(w->loop, 5);
	assert_int_equal(w->result.status, 500);
}

static void a_visitor_who_leaves_during_a_review_does_no_harm(void **state)
{
	struct world *w = *state;
	char url[256];
	const struct http_tls tls = {.ca_pem = certs.pem[CERTS_CA]};
	struct http_call *call;
	struct err e;
	w->hold = true;
	snprintf(url, sizeof url, "https://127.0.0.1:%d" QUEUE, external_metrics_port(w->metrics));
	const struct http_request r = {.method = "GET", .url = url, .bearer_token = "good", .tls = &tls};
	assert_int_equal(http_client_submit(w->visitor, &r, http_result_keep, &w->result, &call, &e), 0);
	int64_t end = test_now_ms() + WAIT_MS;
	while (!w->held && test_now_ms() < end)
		test_loop_for(w->loop, 5);
	http_call_cancel(call);
	test_loop_for(w->loop, 50);
	w->hold = false;
	answer(w, w->held, "TokenReview", "{\"authenticated\":true,\"user\":{\"username\":\"tess\"}}");
	test_loop_for(w->loop, 100);
	assert_int_equal(w->access_reviews, 1);
	assert_int_equal(visit(w, QUEUE, "good"), 200);
	assert_int_equal(w->token_reviews, 1);
}

static void strangers_cannot_crowd_out_what_else_is_asked(void **state)
{
	struct world *w = *state;
	enum { N = DELEGATED_AUTH_CHECKS_MAX + 8 };
	static struct http_result results[N];
	const struct http_tls tls = {.ca_pem = certs.pem[CERTS_CA]};
	char url[256], token[32];
	struct err e;
	int done = 0, refused = 0;
	struct http_client *crowd =
	        http_client_new(&(struct http_client_options){.loop = w->loop, .max_in_flight = N}, &e);
	assert_non_null(crowd);
	w->hold = true;
	snprintf(url, sizeof url, "https://127.0.0.1:%d" QUEUE, external_metrics_port(w->metrics));
	for (int i = 0; i < N; i++) {
		snprintf(token, sizeof token, "made-up-%d", i);
		const struct http_request r = {.method = "GET", .url = url, .bearer_token = token, .tls = &tls};
		results[i] = (struct http_result){0};
		assert_int_equal(http_client_submit(crowd, &r, http_result_keep, &results[i], NULL, &e), 0);
	}
	int64_t end = test_now_ms() + WAIT_MS;
	while (done < N - DELEGATED_AUTH_CHECKS_MAX && test_now_ms() < end) {
		test_loop_for(w->loop, 20);
		done = refused = 0;
		for (int i = 0; i < N; i++) {
			done += results[i].done;
			refused += results[i].done && results[i].status == 429 && results[i].retry_after_ms == 1000;
		}
	}
	assert_int_equal(done, N - DELEGATED_AUTH_CHECKS_MAX);
	assert_int_equal(refused, done);
	assert_int_equal(w->access_reviews, 0);
	http_client_free(crowd); // they leave; their reviews end with the client
	for (int i = 0; i < N; i++)
		http_result_done(&results[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(what_is_allowed_is_asked_once_in_ten_seconds, setup, teardown),
	        cmocka_unit_test_setup_teardown(what_is_refused_is_refused_with_its_reason, setup, teardown),
	        cmocka_unit_test_setup_teardown(when_the_api_server_cannot_be_asked_nothing_is_served, setup, teardown),
	        cmocka_unit_test_setup_teardown(client_certificates_count_while_their_authority_does, setup, teardown),
	        cmocka_unit_test_setup_teardown(before_the_policies_are_known_none_is_said_not_to_be_there, setup,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(a_review_under_way_at_the_end_serves_nobody, setup, teardown),
	        cmocka_unit_test_setup_teardown(strangers_cannot_crowd_out_what_else_is_asked, setup, teardown),
	        cmocka_unit_test_setup_teardown(a_visitor_who_leaves_during_a_review_does_no_harm, setup, teardown),
	};
	return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
