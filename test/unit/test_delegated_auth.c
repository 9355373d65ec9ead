// SPDX-License-Identifier: Apache-2.0
// Goal: the external metrics server answers the users that the API server vouches for, asks it no more often than
// it must, and answers no user when it cannot be asked.

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
#include <openssl/sha.h>

#include "base/clock.h"
#include "base/http/http_client.h"
#include "base/http/http_server.h"
#include "controller/external/external_metrics_server.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/k8s_config.h"
#include "k8s/server/access_review.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "test/support/certs.h"
#include "test/support/http_result.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"
#include "test/support/review_api.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])
#define NOW_MS   1767603600000
#define WAIT_MS  60000
#define BASE     "/apis/external.metrics.k8s.io/v1beta1"
#define QUEUE    BASE "/namespaces/serving/queue"

struct world {
	struct event_base *loop;
	struct clock clock;
	struct review_api api;
	bool settled; // what is_settled() says
	struct http_client *http, *visitor;
	struct k8s_client *client;
	struct external_metrics_server *metrics;
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

// ---- the server under test ----

static bool next_policy(void *arg, size_t i, struct external_source *ret_source)
{
	static const struct policy_signal signals[] = {{.name = "queue", .stale_after_ms = 60000},
	                                               {.name = "secret", .stale_after_ms = 60000}};
	static const struct policy policy = {
	        .namespace_name = "serving", .name = "llama", .interval_ms = 15000, .signals = signals, .n_signals = 2};
	static const struct scale_target target = {.kind = "Deployment", .name = "llama"};
	static const struct decision decision = {
	        .time_ms = NOW_MS, .n_signals = 2, .signals = {{.value = 7}, {.value = 8}}};
	if (i > 0)
		return false;
	*ret_source = (struct external_source){&policy, &target, &decision, ""};
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
	static char url[64];
	static const struct k8s_config config = {.server = url, .namespace_name = "default", .source = "test"};
	signal(SIGPIPE, SIG_IGN);
	assert_non_null(w);
	w->settled = true;
	w->loop = event_base_new();
	clock_init_manual(&w->clock, NOW_MS);
	review_api_start(&w->api, w->loop, certs.pem[CERTS_CA]);
	review_api_url(&w->api, url);
	w->http = http_client_new(&(struct http_client_options){.loop = w->loop, .connect_timeout_ms = WAIT_MS}, &e);
	w->visitor = http_client_new(&(struct http_client_options){.loop = w->loop, .connect_timeout_ms = WAIT_MS}, &e);
	w->client = k8s_client_new(
	        &(struct k8s_client_options){
	                .loop = w->loop, .http = w->http, .clock = &w->clock, .config = &config, .max_attempts = 1},
	        &e);
	assert_non_null(w->client);
	const struct external_metrics_server_options options = {.loop = w->loop,
	                                                        .client = w->client,
	                                                        .clock = &w->clock,
	                                                        .listen = "127.0.0.1:0",
	                                                        .cert_file = certs.path[CERTS_SERVER],
	                                                        .key_file = certs.path[CERTS_SERVER_KEY],
	                                                        .next = next_policy,
	                                                        .has_synced = is_settled,
	                                                        .arg = w};
	w->metrics = external_metrics_server_new(&options, &e);
	if (!w->metrics)
		fail_msg("%s", e.msg);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	http_result_done(&w->result);
	external_metrics_server_stop(w->metrics);
	k8s_client_free(w->client);
	http_client_free(w->http);
	http_client_free(w->visitor);
	external_metrics_server_free(w->metrics);
	review_api_stop(&w->api);
	event_base_free(w->loop);
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
	snprintf(url, sizeof url, "https://127.0.0.1:%d%s", external_metrics_server_port(w->metrics), path);
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

static void permitted_request_is_reviewed_once_in_ten_seconds(void **state)
{
	struct world *w = *state;
	for (int i = 0; i < 5; i++) {
		assert_int_equal(visit(w, QUEUE, "good"), 200);
		assert_non_null(strstr(w->result.body, "\"value\":\"7\""));
	}
	assert_int_equal(w->api.token_reviews, 1);
	assert_int_equal(w->api.access_reviews, 1);
	assert_non_null(strstr(w->api.last_review, "\"user\":\"tess\",\"groups\":[\"t\",\"system:authenticated\"]"));
	assert_non_null(strstr(w->api.last_review,
	                       "\"verb\":\"list\",\"group\":\"external.metrics.k8s.io\",\"version\":"
	                       "\"v1beta1\",\"resource\":\"queue\",\"namespace\":\"serving\""));
	assert_int_equal(visit(w, "/apis", "good"), 200); // another thing to do
	assert_int_equal(w->api.access_reviews, 2);
	assert_non_null(strstr(w->api.last_review, "\"nonResourceAttributes\":{\"verb\":\"get\",\"path\":\"/apis\"}"));
	clock_advance_ms(&w->clock, DELEGATED_AUTH_TTL_MS - 1);
	assert_int_equal(visit(w, QUEUE, "good"), 200);
	assert_int_equal(w->api.access_reviews, 2);
	clock_advance_ms(&w->clock, 1);
	assert_int_equal(visit(w, QUEUE, "good"), 200);
	assert_int_equal(w->api.token_reviews, 2);
	assert_int_equal(w->api.access_reviews, 3);
}

static void refusal_carries_its_reason(void **state)
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
	assert_int_equal(w->api.access_reviews, 1);
	for (int i = 0; i < 2; i++)
		assert_int_equal(visit(w, QUEUE, "bad"), 401);
	assert_int_equal(w->api.token_reviews, 2);
	assert_int_equal(w->api.access_reviews, 1);
	wait_until_ready(w);
	assert_int_equal(visit(w, QUEUE, NULL), 401);
	assert_int_equal(w->api.token_reviews, 2);
}

static void when_the_api_server_cannot_be_asked_nothing_is_served(void **state)
{
	struct world *w = *state;
	static const int statuses[] = {500, 503, 403, 404, 429};
	static const char *const garbage[] = {"", "{}", "[]", "{\"kind\":\"Status\"}",
	                                      "{\"kind\":\"TokenReview\",\"status\":{\"authenticated\":true}}"};
	for (size_t i = 0; i < COUNT(statuses); i++) {
		w->api.status = statuses[i];
		assert_int_equal(visit(w, QUEUE, "good"), 500);
		assert_null(strstr(w->result.body, "\"value\""));
	}
	w->api.status = 0;
	for (size_t i = 0; i < COUNT(garbage); i++) {
		w->api.garbage = garbage[i];
		assert_int_equal(visit(w, QUEUE, "good"), 500);
	}
	w->api.garbage = NULL;
	assert_int_equal(w->api.access_reviews, 0);
	assert_int_equal(visit(w, QUEUE, "good"), 200); // no failure is remembered
	// The owner of the token is known now, but not what else they may.
	w->api.status = 500;
	assert_int_equal(visit(w, BASE "/namespaces/serving/llama:queue", "good"), 500);
	w->api.status = 0;
	w->api.garbage = "{\"kind\":\"SubjectAccessReview\",\"status\":{\"allowed\":\"yes\"}}";
	assert_int_equal(visit(w, BASE "/namespaces/serving/llama:queue", "good"), 500);
	w->api.garbage = NULL;
	assert_int_equal(visit(w, BASE "/namespaces/serving/llama:queue", "good"), 200);
}

// Visits with the client certificate until what was pushed has arrived.
static void visit_until(struct world *w, int status)
{
	int64_t end = test_now_ms() + WAIT_MS;
	int now;
	while ((now = visit_as(w, QUEUE, NULL, true)) != status && test_now_ms() < end)
		test_loop_for(w->loop, 20);
	assert_int_equal(now, status);
}

static void client_certificates_count_while_their_authority_does(void **state)
{
	struct world *w = *state;
	wait_until_ready(w);
	assert_int_equal(visit_as(w, QUEUE, NULL, true), 200);
	assert_non_null(strstr(w->api.last_review, "\"user\":\"gpuscale-client\",\"groups\":[\"gpuscale-testers\","));
	review_api_push(&w->api, "MODIFIED", "no certificate"); // cannot be used: what was stays
	assert_int_equal(visit_as(w, QUEUE, NULL, true), 200);
	review_api_push(&w->api, "MODIFIED", certs.pem[CERTS_OTHER_CA]);
	visit_until(w, 401);
	review_api_push(&w->api, "MODIFIED", certs.pem[CERTS_CA]);
	visit_until(w, 200);
	review_api_push(&w->api, "DELETED", certs.pem[CERTS_CA]);
	visit_until(w, 503);
	assert_int_equal(visit(w, "/readyz", NULL), 503);
	assert_int_equal(visit(w, "/healthz", NULL), 200);
	review_api_push(&w->api, "ADDED", certs.pem[CERTS_CA]);
	visit_until(w, 200);
	assert_int_equal(w->api.watches, 1);
}

static void request_before_the_policies_are_known_is_not_answered_404(void **state)
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

// A visit that waits for its review, which is in w->api.held.
static struct http_call *begin_visit(struct world *w)
{
	char url[256];
	const struct http_tls tls = {.ca_pem = certs.pem[CERTS_CA]};
	struct http_call *call;
	struct err e;
	w->api.hold = true;
	snprintf(url, sizeof url, "https://127.0.0.1:%d" QUEUE, external_metrics_server_port(w->metrics));
	const struct http_request r = {.method = "GET", .url = url, .bearer_token = "good", .tls = &tls};
	assert_int_equal(http_client_submit(w->visitor, &r, http_result_keep, &w->result, &call, &e), 0);
	int64_t end = test_now_ms() + WAIT_MS;
	while (!w->api.held && test_now_ms() < end)
		test_loop_for(w->loop, 5);
	assert_non_null(w->api.held);
	return call;
}

static void review_in_flight_at_the_end_is_not_answered(void **state)
{
	struct world *w = *state;
	begin_visit(w);
	external_metrics_server_stop(w->metrics);
	k8s_client_free(w->client); // the review ends with it
	w->client = NULL;
	assert_true(test_loop_until(w->loop, &w->result.done, 1, WAIT_MS));
	assert_int_equal(w->result.status, 500);
}

static void visitor_who_leaves_during_a_review_does_no_harm(void **state)
{
	struct world *w = *state;
	struct http_call *call = begin_visit(w);
	http_call_cancel(call);
	test_loop_for(w->loop, 50);
	review_api_release(&w->api);
	assert_true(test_loop_until(w->loop, &w->api.access_reviews, 1, WAIT_MS));
	test_loop_for(w->loop, 100);
	assert_int_equal(w->api.access_reviews, 1);
	assert_int_equal(visit(w, QUEUE, "good"), 200);
	assert_int_equal(w->api.token_reviews, 1);
}

static void on_checked(void *arg, int status, const char *message)
{
	http_exchange_reply_text(arg, status, message);
}

static void handle_check(void *arg, struct http_exchange *x)
{
	const struct access_attributes attributes = {.verb = "get", .path = http_exchange_path(x)};
	delegated_auth_check(arg, x, &attributes, on_checked, x);
}

static void bearer_tokens_cannot_crowd_out_what_else_is_asked(void **state)
{
	struct world *w = *state;
	enum { N = DELEGATED_AUTH_STRANGERS_MAX + 8 };       // fewer than the connections of one address
	static struct http_result results[N], before, after; // a test that fails leaves its frame before the calls end
	char url[64], other_url[64], token[32];
	struct err e;
	int refused = 0;
	const struct http_client_options many = {.loop = w->loop, .max_in_flight = N, .connect_timeout_ms = WAIT_MS};
	const struct http_server_options plain = {.loop = w->loop,
	                                          .listen = "127.0.0.1:0", // many handshakes take long
	                                          .max_peer_connections = N + 2};
	struct http_client *crowd = http_client_new(&many, &e);
	struct http_server *server = http_server_new(&plain, &e);
	struct delegated_auth *auth = delegated_auth_new(w->client, NULL, &e);
	assert_true(crowd && server && auth);
	assert_int_equal(http_server_route(server, "/check/", handle_check, auth, &e), 0);
	snprintf(url, sizeof url, "http://127.0.0.1:%d/check/", http_server_port(server));
	const struct http_request known = {.method = "GET", .url = url, .bearer_token = "good"};
	before = after = (struct http_result){0};
	assert_int_equal(http_client_submit(crowd, &known, http_result_keep, &before, NULL, &e), 0);
	TEST_BECOMES(w->loop, before.status != 0);
	assert_int_equal(before.status, 200);
	w->api.hold = true;
	for (int i = 0; i < N; i++) {
		snprintf(token, sizeof token, "made-up-%d", i);
		snprintf(other_url, sizeof other_url, "%s%d", url, i);
		const struct http_request r = {
		        .method = "GET", .url = i % 2 ? other_url : url, .bearer_token = i % 2 ? "good" : token};
		results[i] = (struct http_result){0};
		assert_int_equal(http_client_submit(crowd, &r, http_result_keep, &results[i], NULL, &e), 0);
	}
	int64_t end = test_now_ms() + WAIT_MS;
	while (refused < N - DELEGATED_AUTH_STRANGERS_MAX && test_now_ms() < end) {
		test_loop_for(w->loop, 20);
		refused = 0;
		for (int i = 0; i < N; i++)
			refused += results[i].status == 429;
	}
	assert_int_equal(refused, N - DELEGATED_AUTH_STRANGERS_MAX);
	assert_int_equal(http_client_submit(crowd, &known, http_result_keep, &after, NULL, &e), 0);
	TEST_BECOMES(w->loop, after.status != 0);
	assert_int_equal(after.status, 200); // a cached answer does not wait for a review
	http_result_done(&before);
	http_result_done(&after);
	http_client_free(crowd); // they leave; their reviews end with the client
	delegated_auth_stop(auth);
	external_metrics_server_stop(w->metrics);
	k8s_client_free(w->client);
	w->client = NULL;
	http_server_free(server);
	delegated_auth_free(auth);
	for (int i = 0; i < N; i++)
		http_result_done(&results[i]);
}

// An address that fills the places of bearer tokens does not keep out the first request of another.
static void another_address_finds_a_place_for_its_token(void **state)
{
	struct world *w = *state;
	enum { N = DELEGATED_AUTH_STRANGERS_MAX + 1 };
	static struct http_result results[N], other, last;
	char url[64], url6[64], token[32];
	struct err e;
	const struct http_client_options many = {
	        .loop = w->loop, .max_in_flight = N + 2, .connect_timeout_ms = WAIT_MS};
	struct http_server_options plain = {.loop = w->loop, .listen = "127.0.0.1:0", .max_peer_connections = N + 2};
	struct http_client *crowd = http_client_new(&many, &e);
	struct http_server *server = http_server_new(&plain, &e);
	plain.listen = "[::1]:0";
	struct http_server *server6 = http_server_new(&plain, &e);
	struct delegated_auth *auth = delegated_auth_new(w->client, NULL, &e);
	assert_true(crowd && server && auth);
	if (!server6)
		print_message("no IPv6 here: %s\n", e.msg);
	assert_int_equal(http_server_route(server, "/check/", handle_check, auth, &e), 0);
	if (server6)
		assert_int_equal(http_server_route(server6, "/check/", handle_check, auth, &e), 0);
	snprintf(url, sizeof url, "http://127.0.0.1:%d/check/", http_server_port(server));
	snprintf(url6, sizeof url6, "http://[::1]:%d/check/", server6 ? http_server_port(server6) : 0);
	w->api.hold = true;
	for (int i = 0; i < N; i++) {
		snprintf(token, sizeof token, "made-up-%d", i);
		const struct http_request r = {.method = "GET", .url = url, .bearer_token = token};
		results[i] = (struct http_result){0};
		assert_int_equal(http_client_submit(crowd, &r, http_result_keep, &results[i], NULL, &e), 0);
	}
	int refused = 0;
	for (int64_t end = test_now_ms() + WAIT_MS; refused == 0 && test_now_ms() < end;) {
		test_loop_for(w->loop, 20);
		for (int i = 0; i < N; i++)
			refused += results[i].status == 429;
	}
	assert_int_equal(refused, 1); // the others wait
	const struct http_request good = {.method = "GET", .url = url6, .bearer_token = "good"};
	const struct http_request bad = {.method = "GET", .url = url, .bearer_token = "made-up"};
	other = last = (struct http_result){0};
	if (server6)
		assert_int_equal(http_client_submit(crowd, &good, http_result_keep, &other, NULL, &e), 0);
	assert_int_equal(http_client_submit(crowd, &bad, http_result_keep, &last, NULL, &e), 0);
	TEST_BECOMES(w->loop, last.status != 0);
	assert_int_equal(last.status, 429);
	test_loop_for(w->loop, 200);
	assert_int_equal(other.status, 0); // it waits for the review
	http_client_free(crowd);
	delegated_auth_stop(auth);
	external_metrics_server_stop(w->metrics);
	k8s_client_free(w->client);
	w->client = NULL;
	http_server_free(server);
	http_server_free(server6);
	delegated_auth_free(auth);
	http_result_done(&last);
	http_result_done(&other);
	for (int i = 0; i < N; i++)
		http_result_done(&results[i]);
}

// However many tokens are invented, they do not make a valid one be reviewed again.
static void negative_answers_evict_no_positive_one(void **state)
{
	(void)state;
	enum { MAX = 4 };
	unsigned char good[REVIEW_KEY_BYTES], bad[REVIEW_KEY_BYTES];
	struct review_cache *c = review_cache_new(MAX, 1000);
	assert_non_null(c);
	SHA256((const unsigned char *)"good", 4, good);
	review_cache_put(c, good, &(struct review_answer){.yes = 1}, 0);
	for (int i = 0; i < 10 * MAX; i++) {
		SHA256((const unsigned char *)&i, sizeof i, bad);
		review_cache_put(c, bad, &(struct review_answer){.yes = 0}, 1);
	}
	assert_true(review_cache_get(c, good, 2)->yes);
	assert_false(review_cache_get(c, bad, 2)->yes);
	review_cache_put(c, good, &(struct review_answer){.yes = 0}, 3); // another answer to the same question
	assert_false(review_cache_get(c, good, 4)->yes);
	assert_null(review_cache_get(c, good, 1003));
	review_cache_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(permitted_request_is_reviewed_once_in_ten_seconds, setup, teardown),
	        cmocka_unit_test_setup_teardown(refusal_carries_its_reason, setup, teardown),
	        cmocka_unit_test_setup_teardown(when_the_api_server_cannot_be_asked_nothing_is_served, setup, teardown),
	        cmocka_unit_test_setup_teardown(client_certificates_count_while_their_authority_does, setup, teardown),
	        cmocka_unit_test_setup_teardown(request_before_the_policies_are_known_is_not_answered_404, setup,
	                                        teardown),
	        cmocka_unit_test_setup_teardown(review_in_flight_at_the_end_is_not_answered, setup, teardown),
	        cmocka_unit_test_setup_teardown(bearer_tokens_cannot_crowd_out_what_else_is_asked, setup, teardown),
	        cmocka_unit_test_setup_teardown(another_address_finds_a_place_for_its_token, setup, teardown),
	        cmocka_unit_test(negative_answers_evict_no_positive_one),
	        cmocka_unit_test_setup_teardown(visitor_who_leaves_during_a_review_does_no_harm, setup, teardown),
	};
	return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
