// SPDX-License-Identifier: Apache-2.0
// Goal: who may not write any more writes nothing, not even by a retry of what was asked before; and a request can be
// given up in every state it can be in.
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/http/http_client.h"
#include "test/fake/k8s_harness.h"
#include "test/support/loop.h"

#define SCALE_PATH "/apis/apps/v1/namespaces/default/deployments/web/scale"
#define MERGE      "application/merge-patch+json"
#define THREE      "{\"spec\":{\"replicas\":3}}"

struct guard {
	int left; // so often the answer is yes: twice per attempt, when its turn has come and once it is connected
	int asked;
	uint64_t term;
};

static uint64_t write_term(void *arg)
{
	return ((const struct guard *)arg)->term;
}

static int may_write(void *arg, struct err *e)
{
	struct guard *g = arg;
	g->asked++;
	return g->left-- > 0 ? 0 : err_set(e, ERR_CANCELED, "this process does not lead any more");
}

static void observe(void *arg, const struct k8s_attempt *attempt)
{
	(void)attempt;
	((struct harness *)arg)->observed++;
}

static void start(struct harness *h, struct guard *g)
{
	struct err e = {0};
	harness_start(h, NULL);
	if (fake_apiserver_add(h->server, "default/Deployment/web=2", &e) < 0)
		fail_msg("%s", e.msg);
	h->http = http_client_new(&(struct http_client_options){.loop = h->loop, .connect_timeout_ms = HARNESS_WAIT_MS},
	                          &e);
	struct k8s_client_options o = {.loop = h->loop,
	                               .http = h->http,
	                               .clock = &h->clock,
	                               .config = &h->config,
	                               .observe = observe,
	                               .observe_arg = h,
	                               .may_write = g ? may_write : NULL,
	                               .write_term = g ? write_term : NULL,
	                               .may_write_arg = g};
	h->client = k8s_client_new(&o, &e);
	if (!h->client)
		fail_msg("%s", e.msg);
}

static int total(const struct harness *h)
{
	struct fake_counts counts;
	fake_apiserver_get_counts(h->server, &counts);
	return (int)counts.total;
}

static void request(struct harness *h, const struct k8s_request_options *base, struct outcome *o,
                    struct k8s_call **ret_call)
{
	struct err e = {0};
	struct k8s_request_options options = *base;
	*o = (struct outcome){0};
	options.path = SCALE_PATH;
	options.content_type = options.body ? MERGE : NULL;
	options.body_len = options.body ? strlen(options.body) : 0;
	options.done = outcome_of_request;
	options.arg = o;
	if (k8s_request_with(h->client, &options, ret_call, &e) < 0)
		fail_msg("%s", e.msg);
}

static void refused_write_is_not_sent_and_a_read_is(void **state)
{
	struct harness h;
	struct outcome o;
	struct guard g = {0};
	start(&h, &g);
	static const char *const methods[] = {"PATCH", "PUT", "POST", "DELETE"};
	for (int i = 0; i < 4; i++) {
		request(&h, &(struct k8s_request_options){.method = methods[i], .body = THREE}, &o, NULL);
		harness_wait(&h, &o);
		assert_int_equal(o.error.kind, ERR_CANCELED);
		assert_string_equal(o.error.msg, "this process does not lead any more");
	}
	assert_int_equal(total(&h), 0);
	request(&h, &(struct k8s_request_options){.method = "GET"}, &o, NULL);
	harness_wait(&h, &o);
	if (o.is_error)
		fail_msg("%s", o.error.msg);
	assert_int_equal(g.asked, 4);
	assert_int_equal(total(&h), 1);
	harness_stop(&h);
}

static void retry_is_asked_for_again(void **state)
{
	struct harness h;
	struct outcome o;
	struct guard g = {.left = 2};
	start(&h, &g);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1, .status = 429});
	request(&h, &(struct k8s_request_options){.method = "PATCH", .body = THREE}, &o, NULL);
	harness_wait(&h, &o);
	assert_int_equal(o.error.kind, ERR_CANCELED);
	assert_int_equal(g.asked, 3);
	assert_int_equal(total(&h), 1);
	harness_stop(&h);
}

// A process may be stopped while it connects.
static void answer_counts_once_the_connection_stands(void **state)
{
	struct harness h;
	struct outcome o;
	struct guard g = {.left = 1};
	start(&h, &g);
	request(&h, &(struct k8s_request_options){.method = "PATCH", .body = THREE}, &o, NULL);
	harness_wait(&h, &o);
	assert_int_equal(o.error.kind, ERR_CANCELED);
	assert_string_equal(o.error.msg, "this process does not lead any more");
	assert_int_equal(g.asked, 2);
	assert_int_equal(total(&h), 0);
	g.left = 2; // and the client goes on
	request(&h, &(struct k8s_request_options){.method = "PATCH", .body = THREE}, &o, NULL);
	harness_wait(&h, &o);
	assert_false(o.is_error);
	harness_stop(&h);
}

// Lost and won again while it waited: what was asked for in the first term is not sent in the second.
static void write_of_an_earlier_term_is_not_sent(void **state)
{
	struct harness h;
	struct outcome o;
	struct guard g = {.left = 100};
	start(&h, &g);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1, .status = 429, .retry_after_s = 1});
	request(&h, &(struct k8s_request_options){.method = "PATCH", .body = THREE}, &o, NULL);
	int64_t end = test_now_ms() + TEST_PATIENCE_MS;
	while (total(&h) < 1 && test_now_ms() < end) // not a turn more: it is sent again soon
		event_base_loop(h.loop, EVLOOP_ONCE);
	assert_int_equal(total(&h), 1);
	g.term++;
	harness_wait(&h, &o);
	assert_int_equal(o.error.kind, ERR_CANCELED);
	assert_int_equal(total(&h), 1);
	harness_stop(&h);
}

static void unguarded_write_is_sent_without_leadership(void **state)
{
	struct harness h;
	struct outcome o;
	struct guard g = {0};
	start(&h, &g);
	request(&h, &(struct k8s_request_options){.method = "PATCH", .body = THREE, .is_unguarded = true}, &o, NULL);
	harness_wait(&h, &o);
	assert_false(o.is_error);
	assert_int_equal(g.asked, 0);
	harness_stop(&h);
}

static void number_of_attempts_can_be_bounded_for_one_request(void **state)
{
	struct harness h;
	struct outcome o;
	start(&h, NULL);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 9, .status = 503});
	request(&h, &(struct k8s_request_options){.method = "GET", .max_attempts = 1}, &o, NULL);
	harness_wait(&h, &o);
	assert_int_equal(o.error.kind, ERR_SERVER);
	assert_int_equal(total(&h), 1);
	harness_stop(&h);
}

static void request_is_canceled_while_queued_in_flight_or_backing_off(void **state)
{
	struct harness h;
	struct outcome o;
	struct k8s_call *call;
	start(&h, NULL);
	for (int way = 0; way < 3; way++) {
		h.observed = 0;
		if (way == 1)
			fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1, .hang = true});
		if (way == 2)
			fake_apiserver_fail(h.server,
			                    &(struct fake_fault){.next = 1, .status = 429, .retry_after_s = 20});
		request(&h, &(struct k8s_request_options){.method = "GET"}, &o, &call);
		if (way > 0)
			TEST_BECOMES(h.loop, total(&h) == way);
		if (way == 2)
			TEST_BECOMES(h.loop, h.observed == 1);
		assert_false(o.is_done);
		k8s_call_cancel(call);
		assert_true(o.is_done);
		assert_int_equal(o.error.kind, ERR_CANCELED);
	}
	test_loop_for(h.loop, 50);
	assert_int_equal(total(&h), 2);
	harness_stop(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(refused_write_is_not_sent_and_a_read_is),
	        cmocka_unit_test(retry_is_asked_for_again),
	        cmocka_unit_test(answer_counts_once_the_connection_stands),
	        cmocka_unit_test(write_of_an_earlier_term_is_not_sent),
	        cmocka_unit_test(unguarded_write_is_sent_without_leadership),
	        cmocka_unit_test(number_of_attempts_can_be_bounded_for_one_request),
	        cmocka_unit_test(request_is_canceled_while_queued_in_flight_or_backing_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
