// SPDX-License-Identifier: Apache-2.0
// Equal questions of one tick are asked once; failures are answers; the age of the data comes with the value.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "promql/promql_source.h"
#include "runtime/query/query_hub.h"
#include "runtime/query/query_record.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"
#include "test/support/promql_fixture.h"

struct heard {
	int n;
	enum obs_state state;
	size_t n_series;
	double value;
	int64_t time_ms;
	char pod[32], detail[QUERY_DETAIL_BYTES];
};

static void on_answer(void *arg, struct query_answer *a)
{
	struct heard *h = arg;
	h->n++;
	h->state = a->state;
	h->n_series = a->n_series;
	snprintf(h->detail, sizeof h->detail, "%s", a->detail);
	if (a->state == OBS_OK) {
		h->value = a->series[0].value;
		h->time_ms = a->series[0].time_ms;
		snprintf(h->pod, sizeof h->pod, "%s", a->series[0].pod);
	}
}

struct hub_fixture {
	struct promql_fixture *f;
	struct promql_sources *sources;
	struct query_hub *hub;
};

static struct hub_fixture open_sources(void **state, size_t n)
{
	struct hub_fixture h = {.f = *state};
	const struct promql_source_options list[] = {{.name = "default", .query = {.url = h.f->url}},
	                                             {.name = "other", .query = {.url = h.f->url}}};
	h.sources = promql_sources_new(h.f->loop, &h.f->clock, list, n, &h.f->e);
	assert_non_null(h.sources);
	h.hub = query_hub_new(h.sources);
	assert_non_null(h.hub);
	return h;
}

static struct hub_fixture open_hub(void **state)
{
	return open_sources(state, 1);
}

static void close_hub(struct hub_fixture *h)
{
	promql_sources_cancel(h->sources);
	query_hub_flush(h->hub);
	query_hub_free(h->hub);
	promql_sources_free(h->sources);
}

static void ask_of(struct hub_fixture *h, const char *source, const char *query, int64_t now_ms, struct heard *heard)
{
	query_hub_ask(h->hub, &(struct query_question){.source = source, .query = query, .stale_after_ms = 60000},
	              now_ms, on_answer, heard);
}

static void ask(struct hub_fixture *h, const char *query, int64_t now_ms, struct heard *heard)
{
	ask_of(h, NULL, query, now_ms, heard);
}

static void wait_for(struct hub_fixture *h, const struct heard *heard, int n)
{
	assert_true(test_loop_until(h->f->loop, &heard->n, n, 5000));
}

static void equal_questions_of_one_tick_are_asked_once(void **state)
{
	struct hub_fixture h = open_hub(state);
	struct heard a = {0}, b = {0}, c = {0};
	ask(&h, "up", 1000, &a);
	ask(&h, "up", 1000, &b); // joins the request in flight
	wait_for(&h, &a, 1);
	assert_int_equal(b.n, 1);
	ask(&h, "up", 1000, &c); // known already: answered at once
	assert_int_equal(c.n, 1);
	assert_int_equal(h.f->n_requests, 1);
	ask(&h, "up", 2000, &a); // the next tick asks again
	wait_for(&h, &a, 2);
	assert_int_equal(h.f->n_requests, 2);
	assert_int_equal(h.sources->items[0]->stats.queries, 2);
	assert_int_equal(h.hub->shared, 2);
	assert_string_equal(a.pod, "a");
	assert_true(a.value == 0.7);
	close_hub(&h);
}

static void age_of_the_data_comes_with_the_value(void **state)
{
	struct hub_fixture h = open_hub(state);
	h.f->replies[0].body = "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
	                       "{\"metric\":{\"exported_pod\":\"p\",\"pod\":\"exporter\"},\"value\":[100,\"3\"]},"
	                       "{\"metric\":{\"__gpuscale_freshness__\":\"newest\"},\"value\":[100,\"40.5\"]}]}}";
	struct heard a = {0};
	ask(&h, "x", 100000, &a);
	wait_for(&h, &a, 1);
	assert_int_equal(a.n_series, 1); // the extra series does not count as data
	assert_int_equal(a.time_ms, 40500);
	assert_string_equal(a.pod, "p"); // the workload's pod, not the exporter's
	close_hub(&h);
}

static void only_the_extra_series_means_no_data(void **state)
{
	struct hub_fixture h = open_hub(state);
	h.f->replies[0].body = "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
	                       "{\"metric\":{\"__gpuscale_freshness__\":\"newest\"},\"value\":[100,\"40\"]}]}}";
	struct heard a = {0};
	ask(&h, "x > 5", 100000, &a);
	wait_for(&h, &a, 1);
	assert_int_equal(a.state, OBS_EMPTY);
	close_hub(&h);
}

#define NO_SERIES "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}"

// A Prometheus that starts anew has not scraped yet: onMissing Zero must not take this for an absence of load.
static void absence_of_series_proves_nothing_just_after_an_outage(void **state)
{
	struct hub_fixture h = open_hub(state);
	struct heard a = {0};
	h.f->replies[0] = (struct promql_reply){503, "text/plain", "starting", NULL, 0};
	h.f->n_replies = 1;
	ask(&h, "x", 100000, &a);
	wait_for(&h, &a, 1);
	TEST_BECOMES(h.f->loop, promql_source_is_down(h.sources->items[0]));
	h.f->replies[0] = (struct promql_reply){200, NULL, NO_SERIES, NULL, 0};
	clock_advance_ms(&h.f->clock, PROMQL_PROBE_INTERVAL_MS);
	ask(&h, "x", 101000, &a);
	wait_for(&h, &a, 2);
	assert_int_equal(a.state, OBS_FAILED);
	assert_string_equal(a.detail,
	                    "source default was down less than 60 s ago and may not have scraped yet: no series");
	h.f->replies[0].body = "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
	                       "{\"metric\":{\"__gpuscale_freshness__\":\"newest\"},\"value\":[100,\"102\"]}]}}";
	ask(&h, "x", 102000, &a); // there is data behind the query
	wait_for(&h, &a, 3);
	assert_int_equal(a.state, OBS_EMPTY);
	h.f->replies[0].body = NO_SERIES;
	clock_advance_ms(&h.f->clock, PROMQL_SETTLES_MS);
	ask(&h, "x", 161000, &a);
	wait_for(&h, &a, 4);
	assert_int_equal(a.state, OBS_EMPTY);
	close_hub(&h);
}

static void query_that_cannot_carry_its_age_is_asked_plainly(void **state)
{
	struct hub_fixture h = open_hub(state);
	h.f->n_replies = 2;
	h.f->replies[0] = (struct promql_reply){400, NULL,
	                                        "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"set "
	                                        "operator \\\"or\\\" not allowed in binary scalar expression\"}",
	                                        NULL, 0};
	h.f->replies[1] = (struct promql_reply){
	        200, NULL, "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1,\"2\"]}}", NULL,
	        0};
	struct heard a = {0};
	ask(&h, "scalar(x)", 1000, &a);
	wait_for(&h, &a, 1);
	assert_int_equal(a.state, OBS_OK);
	assert_int_equal(h.f->n_requests, 2);
	assert_non_null(strstr(h.f->requests[0].body, "freshness"));
	assert_null(strstr(h.f->requests[1].body, "freshness"));
	ask(&h, "scalar(x)", 2000, &a); // remembered
	wait_for(&h, &a, 2);
	assert_int_equal(h.f->n_requests, 3);
	close_hub(&h);
}

#define EXECUTION_ERROR "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"duplicate series\"}"

// What was refused for what passes must not go without its age for ever: a source that stops would stay fresh.
static void vector_that_was_refused_once_is_asked_for_its_age_again(void **state)
{
	struct hub_fixture h = open_hub(state);
	struct heard a = {0};
	h.f->replies[0] = (struct promql_reply){422, NULL, EXECUTION_ERROR, NULL, 0};
	ask(&h, "x / y", 1000, &a); // wrong by itself
	wait_for(&h, &a, 1);
	assert_int_equal(a.state, OBS_FAILED);
	assert_int_equal(h.f->n_requests, 2);
	assert_null(strstr(h.f->requests[1].body, "freshness"));
	ask(&h, "x / y", 2000, &a);
	wait_for(&h, &a, 2);
	assert_int_equal(h.f->n_requests, 4);
	assert_non_null(strstr(h.f->requests[2].body, "freshness"));
	close_hub(&h);
}

static void vector_whose_age_is_refused_each_time_is_asked_plainly_in_the_end(void **state)
{
	struct hub_fixture h = open_hub(state);
	struct heard a = {0};
	h.f->replies[1] = h.f->replies[0];
	h.f->replies[0] = (struct promql_reply){422, NULL, EXECUTION_ERROR, NULL, 0};
	h.f->n_replies = 2;
	for (int i = 1; i <= 4; i++) {
		bool is_last = i == 4;
		h.f->n_requests = is_last; // the good reply is the second
		ask(&h, "x", 1000 * i, &a);
		wait_for(&h, &a, i);
		assert_int_equal(a.state, OBS_OK);
		assert_int_equal(h.f->n_requests, 2);
		assert_true(!strstr(h.f->requests[is_last].body, "freshness") == is_last);
	}
	close_hub(&h);
}

static void failures_warnings_and_wrong_types_are_answers(void **state)
{
	static const struct {
		struct promql_reply reply;
		enum obs_state state;
		const char *detail;
	} rows[] = {
	        {{503, "text/plain", "overloaded", NULL, 0}, OBS_FAILED, "overloaded"},
	        {{200, NULL, "{", NULL, 0}, OBS_FAILED, ""},
	        {{400, NULL, "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"1:3: parse error\"}", NULL,
	          0},
	         OBS_FAILED,
	         "parse error"},
	        {{200, NULL,
	          "{\"status\":\"success\",\"warnings\":[\"one store is "
	          "away\"],\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
	          NULL, 0},
	         OBS_PARTIAL,
	         "one store is away"},
	        {{200, NULL, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}", NULL, 0},
	         OBS_EMPTY,
	         ""},
	        {{200, NULL, "{\"status\":\"success\",\"data\":{\"resultType\":\"string\",\"result\":[1,\"x\"]}}", NULL,
	          0},
	         OBS_FAILED,
	         "a number per series is needed"},
	        {{200, NULL, "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1,\"2\"]}}", NULL,
	          0},
	         OBS_OK,
	         ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct hub_fixture h = open_hub(state);
		struct heard a = {0};
		h.f->replies[0] = rows[i].reply;
		h.f->n_replies = 1;
		ask(&h, "x", 1000, &a);
		wait_for(&h, &a, 1);
		assert_int_equal(a.state, rows[i].state);
		assert_non_null(strstr(a.detail, rows[i].detail));
		close_hub(&h);
	}
}

static void closing_answers_the_requests_in_flight(void **state)
{
	struct hub_fixture h = open_hub(state);
	h.f->replies[0].delay_ms = 30000;
	struct heard a = {0};
	ask(&h, "x", 1000, &a);
	test_loop_for(h.f->loop, 50);
	assert_int_equal(a.n, 0);
	close_hub(&h);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.state, OBS_FAILED);
}

static void forgotten_queries_are_asked_anew(void **state)
{
	struct hub_fixture h = open_hub(state);
	struct heard a = {0};
	ask(&h, "x", 1000, &a);
	wait_for(&h, &a, 1);
	query_hub_forget(h.hub, 1000); // asked at 1000: stays
	ask(&h, "x", 1000, &a);
	assert_int_equal(a.n, 2);
	query_hub_forget(h.hub, 1001);
	ask(&h, "x", 1000, &a);
	assert_int_equal(a.n, 2);
	wait_for(&h, &a, 3);
	close_hub(&h);
}

static void each_source_is_asked_for_itself(void **state)
{
	struct hub_fixture h = open_sources(state, 2);
	struct heard a = {0}, b = {0}, c = {0};
	ask_of(&h, "default", "up", 1000, &a);
	ask_of(&h, "other", "up", 1000, &b);
	ask_of(&h, NULL, "up", 1000, &c); // the same as default
	wait_for(&h, &a, 1);
	wait_for(&h, &b, 1);
	assert_int_equal(c.n, 1);
	assert_int_equal(h.f->n_requests, 2);
	close_hub(&h);
}

static void unknown_source_is_a_failed_signal_that_names_it(void **state)
{
	struct hub_fixture h = open_sources(state, 2);
	struct heard a = {0};
	ask_of(&h, "othre", "up", 1000, &a);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.state, OBS_FAILED);
	assert_string_equal(a.detail, "there is no source othre; did you mean other?");
	assert_int_equal(h.f->n_requests, 0);
	close_hub(&h);
}

static void failure_names_its_source_among_several(void **state)
{
	struct hub_fixture h = open_sources(state, 2);
	h.f->replies[0] = (struct promql_reply){503, "text/plain", "overloaded", NULL, 0};
	struct heard a = {0};
	ask_of(&h, "other", "up", 1000, &a);
	wait_for(&h, &a, 1);
	assert_non_null(strstr(a.detail, "source other: Prometheus at http://"));
	close_hub(&h);
}

static void long_stale_after_is_asked_with_a_longer_lookback(void **state)
{
	struct hub_fixture h = open_hub(state);
	struct heard a = {0};
	ask(&h, "x", 1000, &a); // 60 s: what the server does by itself will do
	wait_for(&h, &a, 1);
	assert_null(strstr(h.f->requests[0].body, "lookback"));
	query_hub_ask(h.hub, &(struct query_question){.query = "x", .stale_after_ms = 1200000}, 2000, on_answer, &a);
	wait_for(&h, &a, 2);
	assert_non_null(strstr(h.f->requests[1].body, "&lookback_delta=2400000ms"));
	close_hub(&h);
}

// Data that could be partly of any age is not queried.
static void query_with_more_selectors_than_can_be_checked_fails_and_says_so(void **state)
{
	struct hub_fixture h = open_hub(state);
	struct heard a = {0};
	struct buf query;
	buf_init(&query, 4096);
	for (int i = 0; i < 9; i++)
		buf_printf(&query, "%sm%d", i ? " + " : "", i);
	ask(&h, buf_str(&query), 1000, &a);
	wait_for(&h, &a, 1);
	assert_int_equal(a.state, OBS_OK);
	assert_non_null(strstr(h.f->requests[0].body, "timestamp%28m0"));
	for (int i = 9; i < 33; i++)
		buf_printf(&query, " + m%d", i);
	for (int tick = 2; tick <= 3; tick++) {
		ask(&h, buf_str(&query), 1000 * tick, &a);
		assert_int_equal(a.n, tick);
		assert_int_equal(a.state, OBS_FAILED);
		assert_non_null(strstr(a.detail, "more than 32 different selectors"));
	}
	assert_int_equal(h.f->n_requests, 1);
	buf_done(&query);
	close_hub(&h);
}

// ---- several in one request ----

#define MARKED(i, value) "{\"metric\":{\"__gpuscale_query__\":\"" i "\"},\"value\":[2,\"" value "\"]}"
#define ANSWER(series, more)                                                                                           \
	"{\"status\":\"success\"," more "\"data\":{\"resultType\":\"vector\",\"result\":[" series "]}}"

// Two queries have had their answers, and are asked again with the third reply for both.
static struct hub_fixture ask_two_again(void **state, struct promql_reply third, struct heard *a, struct heard *b)
{
	struct hub_fixture h = open_hub(state);
	h.f->n_replies = 4;
	for (int i = 0; i < 4; i++)
		h.f->replies[i] = (struct promql_reply){200, NULL, PROMQL_FIXTURE_BODY, NULL, 0};
	h.f->replies[2] = third;
	ask(&h, "a", 1000, a);
	ask(&h, "b # to the end", 1000, b);
	wait_for(&h, a, 1);
	wait_for(&h, b, 1);
	assert_int_equal(h.f->n_requests, 2);
	ask(&h, "a", 2000, a);
	ask(&h, "b # to the end", 2000, b);
	wait_for(&h, a, 2);
	wait_for(&h, b, 2);
	return h;
}

static void queries_that_were_answered_travel_together(void **state)
{
	struct heard a = {0}, b = {0};
	struct hub_fixture h = ask_two_again(
	        state, (struct promql_reply){200, NULL, ANSWER(MARKED("1", "8") "," MARKED("0", "7"), ""), NULL, 0}, &a,
	        &b);
	assert_int_equal(h.f->n_requests, 3);
	assert_non_null(strstr(h.f->requests[2].body, "query=label_replace%28%28a%0Aor"));
	assert_true(a.state == OBS_OK && a.value == 7 && a.n_series == 1);
	assert_true(b.state == OBS_OK && b.value == 8 && b.n_series == 1);
	assert_int_equal(h.hub->fused, 2);
	close_hub(&h);
}

static void slow_query_is_sent_alone(void **state)
{
	struct hub_fixture h = open_hub(state);
	struct heard slow = {0}, fast = {0};
	ask(&h, "slow", 1000, &slow);
	clock_advance_ms(&h.f->clock, 250);
	wait_for(&h, &slow, 1);
	ask(&h, "fast", 1000, &fast);
	clock_advance_ms(&h.f->clock, 249);
	wait_for(&h, &fast, 1);
	ask(&h, "slow", 2000, &slow);
	ask(&h, "fast", 2000, &fast);
	wait_for(&h, &slow, 2);
	wait_for(&h, &fast, 2);
	assert_int_equal(h.f->n_requests, 4);
	assert_int_equal(h.hub->fused, 0);
	close_hub(&h);
}

static void query_without_data_is_empty_in_a_combined_answer(void **state)
{
	struct heard a = {0}, b = {0};
	struct hub_fixture h =
	        ask_two_again(state, (struct promql_reply){200, NULL, ANSWER(MARKED("1", "8"), ""), NULL, 0}, &a, &b);
	assert_int_equal(a.state, OBS_EMPTY);
	assert_int_equal(b.state, OBS_OK);
	close_hub(&h);
}

static void combined_query_that_is_refused_is_asked_one_by_one(void **state)
{
	static const struct {
		struct promql_reply reply;
		size_t n_probes; // where the source may be the cause
	} rows[] = {
	        {{400, NULL, "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"no\"}", NULL, 0}, 0},
	        {{422, NULL, "{\"status\":\"error\",\"errorType\":\"execution\",\"error\":\"too many samples\"}", NULL,
	          0},
	         0},
	        {{200, NULL, ANSWER(MARKED("0", "7"), "\"warnings\":[\"about one of them\"],"), NULL, 0}, 0},
	        {{200, NULL, ANSWER(MARKED("0", "7"), "\"isPartial\":true,"), NULL, 0}, 0},
	        {{200, NULL, "{", NULL, 0}, 1},
	        {{503, "text/plain", "overloaded", NULL, 0}, 1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct heard a = {0}, b = {0};
		((struct promql_fixture *)*state)->n_requests = 0;
		struct hub_fixture h = ask_two_again(state, rows[i].reply, &a, &b);
		assert_int_equal(h.f->n_requests, 5 + rows[i].n_probes);
		assert_null(strstr(h.f->requests[h.f->n_requests - 1].body, "gpuscale_query"));
		assert_int_equal(query_hub_source_stats(h.hub, 0).apart, 1);
		assert_true(a.state == OBS_OK && a.value == 0.7);
		assert_true(b.state == OBS_OK && b.value == 0.7);
		ask(&h, "a", 3000, &a); // and for a while stays so
		ask(&h, "b # to the end", 3000, &b);
		wait_for(&h, &a, 3);
		wait_for(&h, &b, 3);
		assert_int_equal(h.f->n_requests, 7 + rows[i].n_probes);
		close_hub(&h);
	}
}

static void source_that_fails_fails_for_all_of_them(void **state)
{
	struct hub_fixture h = open_hub(state);
	struct heard a = {0}, b = {0};
	for (int i = 1; i <= 2; i++) {
		if (i == 2)
			h.f->replies[0] = (struct promql_reply){503, "text/plain", "away", NULL, 0};
		ask(&h, "a", 1000 * i, &a);
		ask(&h, "b", 1000 * i, &b);
		wait_for(&h, &a, i);
		wait_for(&h, &b, i);
	}
	// The first time, it is unknown whether the probe counts: the batch, the probe, and each query alone are sent.
	assert_int_equal(h.f->n_requests, 2 + 4);
	assert_int_equal(h.sources->items[0]->health.state, PROMQL_DOWN);
	assert_true(a.state == OBS_FAILED && strstr(a.detail, "away"));
	assert_true(b.state == OBS_FAILED && strstr(b.detail, "away"));
	h.f->replies[0] = (struct promql_reply){200, NULL, PROMQL_FIXTURE_BODY, NULL, 0};
	clock_advance_ms(&h.f->clock, PROMQL_PROBE_INTERVAL_MS);
	ask(&h, "a", 3000, &a); // waits for the probe, and is sent in the same tick
	ask(&h, "b", 3000, &b);
	wait_for(&h, &a, 3);
	wait_for(&h, &b, 3);
	assert_true(a.state == OBS_OK && b.state == OBS_OK);
	// From now on the probe distinguishes an outage from a bad query: no query is sent alone.
	h.f->replies[0].body = ANSWER(MARKED("0", "7") "," MARKED("1", "8"), "");
	ask(&h, "a", 4000, &a);
	ask(&h, "b", 4000, &b);
	wait_for(&h, &a, 4);
	assert_true(a.value == 7 && b.value == 8);
	h.f->replies[0] = (struct promql_reply){503, "text/plain", "away again", NULL, 0};
	size_t n = h.f->n_requests;
	ask(&h, "a", 5000, &a);
	ask(&h, "b", 5000, &b);
	wait_for(&h, &a, 5);
	wait_for(&h, &b, 5);
	assert_int_equal(h.f->n_requests, n + 2);
	assert_non_null(strstr(h.f->requests[n + 1].body, "query=vector%281%29"));
	assert_true(a.state == OBS_FAILED && b.state == OBS_FAILED);
	assert_int_equal(h.sources->items[0]->health.state, PROMQL_DOWN);
	close_hub(&h);
}

static void slow_batch_is_measured_one_by_one(void **state)
{
	struct heard a = {0}, b = {0};
	const struct promql_reply both = {200, NULL, ANSWER(MARKED("0", "7") "," MARKED("1", "8"), ""), NULL, 0};
	struct hub_fixture h = ask_two_again(state, both, &a, &b);
	for (int i = 3; i <= 5; i++) {
		h.f->replies[0] = i == 3 ? both : (struct promql_reply){200, NULL, PROMQL_FIXTURE_BODY, NULL, 0};
		h.f->n_replies = 1;
		size_t n = h.f->n_requests;
		ask(&h, "a", 1000 * i, &a);
		ask(&h, "b # to the end", 1000 * i, &b);
		query_hub_flush(h.hub);
		clock_advance_ms(&h.f->clock, i == 3 ? 2 * QUERY_FAST_MS : i == 4 ? QUERY_FAST_MS : 0);
		wait_for(&h, &a, i);
		wait_for(&h, &b, i);
		// At 4 both are slow alone, so they are not combined again.
		assert_int_equal(h.f->n_requests - n, i == 3 ? 1 : 2);
		assert_int_equal(query_hub_source_stats(h.hub, 0).apart, 1);
	}
	close_hub(&h);
}

static void retry_after_holds_for_the_query_that_received_it(void **state)
{
	struct hub_fixture h = open_hub(state);
	struct heard a = {0}, b = {0};
	h.f->n_replies = 2;
	h.f->replies[0] = (struct promql_reply){429, "text/plain", "slow down", "30", 0};
	h.f->replies[1] = (struct promql_reply){200, NULL, PROMQL_FIXTURE_BODY, NULL, 0};
	ask(&h, "a", 1000, &a);
	wait_for(&h, &a, 1);
	TEST_BECOMES(h.f->loop, h.f->n_requests == 2); // the probe
	ask(&h, "a", 30999, &a);
	assert_int_equal(a.n, 2);
	assert_non_null(strstr(a.detail, "asked again after 30 s: Prometheus at"));
	assert_int_equal(query_hub_source_stats(h.hub, 0).postponed, 1);
	ask(&h, "b", 30999, &b);
	wait_for(&h, &b, 1);
	assert_int_equal(b.state, OBS_OK);
	ask(&h, "a", 31000, &a);
	wait_for(&h, &a, 3);
	assert_int_equal(a.state, OBS_OK);
	close_hub(&h);
}

static void different_moments_do_not_travel_together(void **state)
{
	struct heard a = {0}, b = {0};
	struct hub_fixture h = ask_two_again(
	        state, (struct promql_reply){200, NULL, ANSWER(MARKED("0", "7") "," MARKED("1", "8"), ""), NULL, 0}, &a,
	        &b);
	ask(&h, "a", 3000, &a);
	ask(&h, "b # to the end", 3001, &b);
	wait_for(&h, &a, 3);
	wait_for(&h, &b, 3);
	assert_int_equal(h.f->n_requests, 5);
	close_hub(&h);
}

// ---- ceilings ----

// Writes a vector of n series for query number `mark` of a request (NULL: it was sent alone), then those of `more`.
static const char *many_series(struct buf *b, size_t n, const char *mark, const char *more)
{
	buf_init(b, (size_t)16 * 1024 * 1024);
	buf_puts(b, "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[");
	for (size_t i = 0; i < n; i++) {
		buf_printf(b, "%s{\"metric\":{\"pod\":\"pod-%zu\",\"unread\":\"label\"", i ? "," : "", i);
		if (mark)
			buf_printf(b, ",\"__gpuscale_query__\":\"%s\"", mark);
		buf_printf(b, "},\"value\":[2,\"%zu\"]}", i);
	}
	buf_printf(b, "%s]}}", more);
	assert_false(b->failed);
	return b->data;
}

static void ask_for(struct hub_fixture *h, const char *query, int64_t now_ms, size_t max_series, struct heard *heard)
{
	struct query_question question = {.query = query, .stale_after_ms = 60000, .max_series = max_series};
	query_hub_ask(h->hub, &question, now_ms, on_answer, heard);
}

static void more_series_than_a_signal_can_use_are_counted_and_not_kept(void **state)
{
	static const struct {
		size_t max_series, n;
		enum obs_state state;
		size_t n_series;
		const char *says;
	} rows[] = {
	        {QUERY_SERIES_SINGLE, QUERY_SERIES_SINGLE, OBS_OK, QUERY_SERIES_SINGLE, ""},
	        {QUERY_SERIES_SINGLE, 100000, OBS_TOO_MANY, QUERY_SERIES_SINGLE, "more than 8 series"},
	        {0, PROMQL_SERIES_MAX, OBS_OK, PROMQL_SERIES_MAX, ""},
	        {0, 100000, OBS_TOO_MANY, PROMQL_SERIES_MAX, "more than 5000 series"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct hub_fixture h = open_hub(state);
		struct heard a = {0};
		struct buf body;
		h.f->replies[0] = (struct promql_reply){.status = 200, .body = many_series(&body, rows[i].n, NULL, "")};
		ask_for(&h, "some_metric", 1000, rows[i].max_series, &a);
		wait_for(&h, &a, 1);
		assert_int_equal(a.state, rows[i].state);
		assert_int_equal(a.n_series, rows[i].n_series);
		assert_non_null(strstr(a.detail, rows[i].says));
		assert_int_equal(h.sources->items[0]->health.state, PROMQL_UP);
		close_hub(&h);
		buf_done(&body);
	}
}

static void query_with_the_highest_limit_decides_how_many_series_are_read(void **state)
{
	struct hub_fixture h = open_hub(state);
	struct heard one = {0}, sum = {0};
	struct buf body;
	h.f->replies[0] = (struct promql_reply){.status = 200, .body = many_series(&body, 100, NULL, "")};
	ask_for(&h, "some_metric", 1000, 0, &sum);
	ask_for(&h, "some_metric", 1000, QUERY_SERIES_SINGLE, &one);
	wait_for(&h, &sum, 1);
	assert_int_equal(h.f->n_requests, 1);
	assert_true(sum.state == OBS_OK && sum.n_series == 100);
	assert_true(one.state == OBS_OK && one.n_series == 100); // ambiguous to the engine, as ever
	close_hub(&h);
	buf_done(&body);
}

// When one query makes a combined request too large, each is sent alone, and only the query at fault fails.
static void query_with_too_many_series_fails_alone(void **state)
{
	static const struct {
		size_t n;            // series of the query at fault
	} rows[] = {{20}, {100000}}; // more than its own ceiling; more than that of all of them together
	for (size_t i = 0; i < 2; i++) {
		struct hub_fixture h = {.f = *state};
		const struct promql_source_options o = {
		        .name = "default", .max_in_flight = 1, .query = {.url = h.f->url}};
		h.sources = promql_sources_new(h.f->loop, &h.f->clock, &o, 1, &h.f->e);
		h.hub = query_hub_new(h.sources);
		struct heard a = {0}, b = {0};
		struct buf together, alone;
		many_series(&together, rows[i].n, "0", "," MARKED("1", "8"));
		many_series(&alone, rows[i].n, NULL, "");
		h.f->n_requests = 0;
		h.f->n_replies = 5;
		h.f->replies[0] = h.f->replies[1] = h.f->replies[4] =
		        (struct promql_reply){.status = 200, .body = PROMQL_FIXTURE_BODY};
		h.f->replies[2] = (struct promql_reply){.status = 200, .body = together.data};
		h.f->replies[3] = (struct promql_reply){.status = 200, .body = alone.data};
		for (int tick = 1; tick <= 2; tick++) {
			ask_for(&h, "a", 1000 * tick, QUERY_SERIES_SINGLE, &a);
			ask_for(&h, "b", 1000 * tick, QUERY_SERIES_SINGLE, &b);
			wait_for(&h, &a, tick);
			wait_for(&h, &b, tick);
		}
		assert_int_equal(a.state, OBS_TOO_MANY);
		assert_int_equal(a.n_series, QUERY_SERIES_SINGLE);
		assert_int_equal(b.state, OBS_OK);
		close_hub(&h);
		buf_done(&together);
		buf_done(&alone);
	}
}

static void keep_answer(void *arg, struct query_answer *a)
{
	struct query_answer **slot = arg;
	*slot = query_answer_ref(a);
}

static void answers_that_wait_share_a_ceiling_and_leave_room_for_small_ones(void **state)
{
	struct hub_fixture h = open_hub(state);
	struct query_answer *held[64] = {NULL}, *late = NULL;
	struct heard small = {0};
	struct buf body;
	size_t n_ok = 0;
	h.f->replies[0] = (struct promql_reply){.status = 200, .body = many_series(&body, PROMQL_SERIES_MAX, NULL, "")};
	for (int i = 0; i < 64; i++) {
		query_hub_ask(h.hub, &(struct query_question){.query = "x"}, 1000 + i, keep_answer, &held[i]);
		while (!held[i])
			event_base_loop(h.f->loop, EVLOOP_ONCE);
		n_ok += held[i]->state == OBS_OK;
		assert_true(held[i]->state == OBS_OK || strstr(held[i]->detail, "the ceiling is 8388608"));
	}
	assert_in_range(n_ok, 10, 60);
	h.f->replies[0] = (struct promql_reply){.status = 200, .body = PROMQL_FIXTURE_BODY};
	ask(&h, "y", 2000, &small);
	wait_for(&h, &small, 1);
	assert_int_equal(small.state, OBS_OK);
	h.f->replies[0] = (struct promql_reply){.status = 200, .body = body.data};
	for (int i = 0; i < 63; i++)
		query_answer_unref(held[i]);
	query_hub_ask(h.hub, &(struct query_question){.query = "x"}, 3000, keep_answer, &late);
	while (!late)
		event_base_loop(h.f->loop, EVLOOP_ONCE);
	assert_int_equal(late->state, OBS_OK);
	close_hub(&h);
	query_answer_unref(held[63]); // answers may outlive the hub
	query_answer_unref(late);
	buf_done(&body);
}

// Only the latest answers are kept for further policies of the tick. A failure stands until its query may be sent
// again, whatever was answered since.
static void answers_are_kept_up_to_a_ceiling(void **state)
{
	struct hub_fixture h = open_hub(state);
	struct heard a = {0}, later = {0}, failing = {0};
	const struct promql_source_stats *stats = &h.sources->items[0]->stats;
	h.f->n_replies = 1;
	h.f->replies[0] = (struct promql_reply){429, "text/plain", "slow down", "30", 0};
	ask(&h, "failing", 1000, &failing);
	wait_for(&h, &failing, 1);
	h.f->replies[0] = (struct promql_reply){200, NULL, PROMQL_FIXTURE_BODY, NULL, 0};
	for (int i = 0; i <= QUERY_RECENT_MAX; i++) {
		char query[32];
		snprintf(query, sizeof query, "query_%d", i);
		ask(&h, query, 2000, &a);
		wait_for(&h, &a, i + 1);
		h.f->n_requests = 0; // it has no room for all of them
	}
	uint64_t n = stats->queries;
	ask(&h, "query_1024", 2000, &later); // the latest
	ask(&h, "query_1", 2000, &later);    // the oldest that is kept
	ask(&h, "failing", 2000, &failing);
	assert_int_equal(later.n, 2);
	assert_int_equal(failing.n, 2);
	assert_int_equal(stats->queries, n);
	ask(&h, "query_0", 2000, &later);
	wait_for(&h, &later, 3);
	assert_int_equal(stats->queries, n + 1);
	close_hub(&h);
}
_Static_assert(QUERY_RECENT_MAX == 1024, "the names of the queries above");

static void closing_answers_queries_that_wait_to_be_combined(void **state)
{
	struct heard a = {0}, b = {0};
	struct hub_fixture h = ask_two_again(
	        state, (struct promql_reply){200, NULL, ANSWER(MARKED("0", "7") "," MARKED("1", "8"), ""), NULL, 0}, &a,
	        &b);
	ask(&h, "a", 3000, &a);
	assert_int_equal(a.n, 2);
	close_hub(&h);
	assert_int_equal(a.n, 3);
	assert_int_equal(a.state, OBS_FAILED);
}

static void source_may_want_one_query_a_request(void **state)
{
	struct hub_fixture h = {.f = *state};
	const struct promql_source_options o = {.name = "default", .never_fuse = true, .query = {.url = h.f->url}};
	h.sources = promql_sources_new(h.f->loop, &h.f->clock, &o, 1, &h.f->e);
	h.hub = query_hub_new(h.sources);
	struct heard a = {0}, b = {0};
	for (int i = 1; i <= 3; i++) {
		ask(&h, "a", 1000 * i, &a);
		ask(&h, "b", 1000 * i, &b);
		wait_for(&h, &a, i);
		wait_for(&h, &b, i);
	}
	assert_int_equal(h.f->n_requests, 6);
	close_hub(&h);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, promql_fixture_setup, promql_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        T(equal_questions_of_one_tick_are_asked_once),
	        T(age_of_the_data_comes_with_the_value),
	        T(only_the_extra_series_means_no_data),
	        T(absence_of_series_proves_nothing_just_after_an_outage),
	        T(query_that_cannot_carry_its_age_is_asked_plainly),
	        T(vector_that_was_refused_once_is_asked_for_its_age_again),
	        T(vector_whose_age_is_refused_each_time_is_asked_plainly_in_the_end),
	        T(failures_warnings_and_wrong_types_are_answers),
	        T(closing_answers_the_requests_in_flight),
	        T(forgotten_queries_are_asked_anew),
	        T(each_source_is_asked_for_itself),
	        T(unknown_source_is_a_failed_signal_that_names_it),
	        T(failure_names_its_source_among_several),
	        T(long_stale_after_is_asked_with_a_longer_lookback),
	        T(query_with_more_selectors_than_can_be_checked_fails_and_says_so),
	        T(queries_that_were_answered_travel_together),
	        T(slow_query_is_sent_alone),
	        T(query_without_data_is_empty_in_a_combined_answer),
	        T(combined_query_that_is_refused_is_asked_one_by_one),
	        T(source_that_fails_fails_for_all_of_them),
	        T(slow_batch_is_measured_one_by_one),
	        T(retry_after_holds_for_the_query_that_received_it),
	        T(different_moments_do_not_travel_together),
	        T(answers_are_kept_up_to_a_ceiling),
	        T(closing_answers_queries_that_wait_to_be_combined),
	        T(source_may_want_one_query_a_request),
	        T(more_series_than_a_signal_can_use_are_counted_and_not_kept),
	        T(query_with_the_highest_limit_decides_how_many_series_are_read),
	        T(query_with_too_many_series_fails_alone),
	        T(answers_that_wait_share_a_ceiling_and_leave_room_for_small_ones),
	};
	return cmocka_run_group_tests_name("query_hub", tests, NULL, NULL);
}
