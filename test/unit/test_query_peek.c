// SPDX-License-Identifier: Apache-2.0
// Goal of this test: queries for their present value travel together when they are similar, and each gets its own
// answer.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "promql/promql_source.h"
#include "runtime/query/query_hub.h"
#include "test/support/loop.h"
#include "test/support/promql_fixture.h"

struct heard {
	int n;
	enum early_query_outcome outcome;
	size_t n_series;
	double value;
};

struct world {
	struct promql_fixture *f;
	struct promql_sources *sources;
	struct query_hub *hub;
};

static void on_early_value(void *arg, enum early_query_outcome outcome, size_t n_series, double value)
{
	struct heard *h = arg;
	*h = (struct heard){h->n + 1, outcome, n_series, value};
}

static struct world open_world(void **state, const struct promql_source_options *options)
{
	struct world w = {.f = *state};
	struct promql_source_options o = options ? *options : (struct promql_source_options){.name = "default"};
	o.query.url = w.f->url;
	w.sources = promql_sources_new(w.f->loop, &w.f->clock, &o, 1, &w.f->e);
	assert_non_null(w.sources);
	w.hub = query_hub_new(w.sources);
	assert_non_null(w.hub);
	return w;
}

static void close_world(struct world *w)
{
	promql_sources_cancel(w->sources);
	query_hub_flush(w->hub);
	query_hub_free(w->hub);
	promql_sources_free(w->sources);
}

static bool early(struct world *w, const char *query, int64_t now_ms, struct heard *h)
{
	return query_hub_check_early(w->hub, &(struct query_question){.query = query}, now_ms, on_early_value, h);
}

static void await(struct world *w, const struct heard *h, int n)
{
	assert_true(test_loop_until(w->f->loop, &h->n, n, 5000));
}

static void similar_queries_are_one_request(void **state)
{
	struct world w = open_world(state, NULL);
	struct heard a = {0}, b = {0}, again = {0}, none = {0}, two = {0};
	w.f->replies[0].body = "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
	                       "{\"metric\":{\"pod\":\"b\",\"zone\":\"z\"},\"value\":[1.5,\"2\"]},"
	                       "{\"metric\":{\"pod\":\"a\",\"zone\":\"z\"},\"value\":[1.5,\"1\"]},"
	                       "{\"metric\":{\"pod\":\"d\",\"zone\":\"y\"},\"value\":[1.5,\"4\"]},"
	                       "{\"metric\":{\"pod\":\"d\",\"zone\":\"z\"},\"value\":[1.5,\"5\"]}]}}";
	assert_true(early(&w, "load{pod=\"a\"}", 1000, &a));
	assert_true(early(&w, "load{pod=\"b\"}", 1000, &b));
	assert_true(early(&w, "load{pod=\"a\"}", 1000, &again));
	assert_true(early(&w, "load{pod=\"c\"}", 1000, &none));
	assert_true(early(&w, "load{pod=\"d\"}", 1000, &two));
	await(&w, &two, 1);
	assert_int_equal(w.f->n_requests, 1);
	assert_non_null(strstr(w.f->requests[0].body, "a%7Cb%7Cc%7Cd"));
	const struct heard *of[] = {&a, &b, &again, &none, &two};
	static const size_t series[] = {1, 1, 1, 0, 2};
	for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
		assert_int_equal(of[i]->outcome, EARLY_QUERY_ANSWERED);
		assert_int_equal(of[i]->n_series, series[i]);
	}
	assert_true(a.value == 1 && again.value == 1 && b.value == 2);
	close_world(&w);
}

static void other_shapes_and_moments_are_requests_of_their_own(void **state)
{
	struct world w = open_world(state, NULL);
	struct heard a = {0}, b = {0}, c = {0};
	assert_true(early(&w, "load{pod=\"a\"}", 1000, &a));
	assert_true(early(&w, "depth{pod=\"a\"}", 1000, &b));
	assert_true(early(&w, "load{pod=\"b\"}", 2000, &c));
	await(&w, &a, 1);
	await(&w, &b, 1);
	await(&w, &c, 1);
	assert_int_equal(w.f->n_requests, 3);
	close_world(&w);
}

static void query_that_cannot_be_combined_is_left_to_the_caller(void **state)
{
	const struct promql_source_options apart = {.name = "default", .never_fuse = true};
	struct world w = open_world(state, NULL);
	struct heard h = {0};
	assert_false(early(&w, "a + b", 1000, &h));
	close_world(&w);
	w = open_world(state, &apart);
	assert_false(early(&w, "load{pod=\"a\"}", 1000, &h));
	assert_int_equal(h.n, 0);
	close_world(&w);
}

static void refusal_is_unfit_and_a_fault_of_the_source_is_not(void **state)
{
	struct world w = open_world(state, NULL);
	struct heard h = {0};
	w.f->replies[0] = (struct promql_reply){
	        .status = 422, .body = "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"no\"}"};
	assert_true(early(&w, "load{pod=\"a\"}", 1000, &h));
	await(&w, &h, 1);
	assert_int_equal(h.outcome, EARLY_QUERY_UNFIT);
	w.f->replies[0] = (struct promql_reply){.status = 503, .body = "{}"};
	assert_true(early(&w, "load{pod=\"a\"}", 2000, &h));
	await(&w, &h, 2);
	assert_int_equal(h.outcome, EARLY_QUERY_FAILED);
	close_world(&w);
}

static void closing_answers_the_queued_queries(void **state)
{
	struct world w = open_world(state, NULL);
	struct heard h = {0};
	assert_true(early(&w, "load{pod=\"a\"}", 1000, &h));
	close_world(&w);
	assert_int_equal(h.n, 1);
	assert_int_equal(h.outcome, EARLY_QUERY_FAILED);
}

static void full_group_is_sent(void **state)
{
	struct world w = open_world(state, NULL);
	struct heard h[QUERY_PEEKS_TOGETHER + 1] = {0};
	for (int i = 0; i <= QUERY_PEEKS_TOGETHER; i++)
		assert_true(early(&w, "load{pod=\"a\"}", 1000, &h[i]));
	await(&w, &h[0], 1);
	await(&w, &h[QUERY_PEEKS_TOGETHER], 1);
	assert_int_equal(w.f->n_requests, 2);
	close_world(&w);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, promql_fixture_setup, promql_fixture_teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	        T(similar_queries_are_one_request),
	        T(other_shapes_and_moments_are_requests_of_their_own),
	        T(query_that_cannot_be_combined_is_left_to_the_caller),
	        T(refusal_is_unfit_and_a_fault_of_the_source_is_not),
	        T(closing_answers_the_queued_queries),
	        T(full_group_is_sent),
	};
	return cmocka_run_group_tests_name("query_peek", tests, NULL, NULL);
}
