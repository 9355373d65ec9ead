// SPDX-License-Identifier: Apache-2.0
// Goal of this test: what a real Prometheus answers, about a history we know, comes out as exactly that history; and
// its refusals keep the server's own words. Skipped where prometheus is not installed.
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "base/http/http_server.h"
#include "promql/promql.h"
#include "test/support/loop.h"
#include "test/support/prometheus.h"
#include "test/support/promql_short.h"

#define LOOP_MAX_MS 60000 // also the deadline of a query that is to be answered
// 2025-01-01T00:00:00Z and an hour of history at 15 s: load = step number, temp = 60 + gpu.
#define T0_MS   INT64_C(1735689600000)
#define STEP_MS 15000
#define STEPS   240

// cmocka's assert_float_equal compares as float, which cannot distinguish two timestamps.
static void assert_near(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance))
		fail_msg("got %.17g, want %.17g", got, want);
}

struct seen {
	int n_done;
	struct err e;
	enum promql_type type;
	size_t n_series;
	char names[4][64];
	size_t n_samples[4];
	struct promql_sample first[4], last[4];
	double sum; // of the first series
	size_t n_warnings;
	char string[32];
};

static struct prometheus *prometheus; // one for all tests: a start takes a second
static struct event_base *loop;
static struct http_client *http;

static void on_done(void *arg, const struct promql_result *r, const struct err *error)
{
	struct seen *s = arg;
	s->n_done++;
	if (error) {
		s->e = *error;
	} else {
		s->type = r->type;
		s->n_series = r->n_series;
		s->n_warnings = r->n_warnings;
		snprintf(s->string, sizeof s->string, "%s", r->string ? r->string : "");
		for (size_t i = 0; i < r->n_series && i < 4; i++) {
			const struct promql_series *x = &r->series[i];
			snprintf(s->names[i], sizeof s->names[i], "%s/%s", promql_label(x, "__name__"),
			         promql_label(x, "gpu"));
			s->n_samples[i] = x->n_samples;
			s->first[i] = x->samples[0];
			s->last[i] = x->samples[x->n_samples - 1];
			for (size_t j = 0; i == 0 && j < x->n_samples; j++)
				s->sum += x->samples[j].value;
		}
	}
}

static struct promql *open_source(int64_t timeout_ms)
{
	struct err e = {0};
	struct promql *p = promql_new(
	        &(struct promql_options){.http = http, .url = prometheus_url(prometheus), .timeout_ms = timeout_ms},
	        &e);
	if (!p)
		fail_msg("%s", e.msg);
	return p;
}

static void wait_done(struct seen *s)
{
	assert_true(test_loop_until(loop, &s->n_done, 1, LOOP_MAX_MS));
	assert_int_equal(s->n_done, 1);
}

static struct seen ask(const char *query, int64_t time_ms)
{
	struct promql *p = open_source(LOOP_MAX_MS);
	struct seen s = {0};
	struct err e = {0};
	if (promql_query(p, query, time_ms, on_done, &s, &e) < 0)
		fail_msg("%s: %s", query, e.msg);
	wait_done(&s);
	promql_free(p);
	return s;
}

static struct seen ask_ok(const char *query, int64_t time_ms)
{
	struct seen s = ask(query, time_ms);
	if (s.e.kind != ERR_NONE)
		fail_msg("%s: %s", query, s.e.msg);
	return s;
}

static int start(void **state)
{
	(void)state;
	struct buf b;
	struct err e = {0};
	buf_init(&b, 1024 * 1024);
	buf_puts(&b, "# TYPE load gauge\n");
	for (int i = 0; i < STEPS; i++)
		buf_printf(&b, "load{gpu=\"0\"} %d %lld.000\n", i, (long long)(T0_MS + (int64_t)i * STEP_MS) / 1000);
	buf_puts(&b, "# TYPE temp gauge\n");
	for (int gpu = 0; gpu < 2; gpu++)
		for (int i = 0; i < STEPS; i++)
			buf_printf(&b, "temp{gpu=\"%d\"} %d %lld.250\n", gpu, 60 + gpu,
			           (long long)(T0_MS + (int64_t)i * STEP_MS) / 1000);
	buf_puts(&b, "# TYPE odd gauge\n");
	buf_printf(&b, "odd{gpu=\"nan\"} NaN %lld\nodd{gpu=\"inf\"} +Inf %lld\n", (long long)T0_MS / 1000,
	           (long long)T0_MS / 1000);
	buf_puts(&b, "# EOF\n");
	const char *const flags[] = {"--query.max-samples=100000", NULL};
	signal(SIGPIPE, SIG_IGN);
	prometheus = prometheus_start(&(struct prometheus_options){.openmetrics = b.data, .flags = flags}, &e);
	buf_done(&b);
	loop = event_base_new();
	http = http_client_new(&(struct http_client_options){.loop = loop, .connect_timeout_ms = LOOP_MAX_MS}, &e);
	if (!prometheus || !http) {
		print_error("%s\n", e.msg);
		return -1;
	}
	return 0;
}

static int stop(void **state)
{
	(void)state;
	http_client_free(http);
	event_base_free(loop);
	prometheus_stop(prometheus);
	return 0;
}

static void test_vector_has_the_known_values(void **state)
{
	(void)state;
	struct seen s = ask_ok("sort(temp)", T0_MS + 60000);
	assert_int_equal(s.type, PROMQL_VECTOR);
	assert_int_equal(s.n_series, 2);
	assert_string_equal(s.names[0], "temp/0");
	assert_string_equal(s.names[1], "temp/1");
	assert_near(s.first[0].value, 60.0, 0.0);
	assert_near(s.first[1].value, 61.0, 0.0);
	assert_int_equal(s.first[0].time_ms, T0_MS + 60000); // an instant vector carries the query's time
}

static void test_query_time_keeps_its_milliseconds(void **state)
{
	(void)state;
	// temp is sampled 250 ms after each step: 1 ms decides which sample is the newest.
	struct seen before = ask_ok("timestamp(temp{gpu=\"0\"})", T0_MS + 30249);
	struct seen at = ask_ok("timestamp(temp{gpu=\"0\"})", T0_MS + 30250);
	assert_near(before.first[0].value, (double)(T0_MS + 15250) / 1000, 0.0005);
	assert_near(at.first[0].value, (double)(T0_MS + 30250) / 1000, 0.0005);
	assert_int_equal(at.first[0].time_ms, T0_MS + 30250);
}

static void test_scalar_and_string_keep_their_type(void **state)
{
	(void)state;
	struct seen s = ask_ok("scalar(sum(temp))", T0_MS + 1000);
	assert_int_equal(s.type, PROMQL_SCALAR);
	assert_near(s.first[0].value, 121.0, 0.0);
	s = ask_ok("\"caf\xc3\xa9\"", T0_MS);
	assert_int_equal(s.type, PROMQL_STRING);
	assert_string_equal(s.string, "caf\xc3\xa9");
}

static void test_range_vector_keeps_raw_samples_and_times(void **state)
{
	(void)state;
	struct seen s = ask_ok("temp{gpu=\"1\"}[1m]", T0_MS + 60500);
	assert_int_equal(s.type, PROMQL_MATRIX);
	assert_int_equal(s.n_samples[0], 4);
	assert_int_equal(s.first[0].time_ms, T0_MS + 15250);
	assert_int_equal(s.last[0].time_ms, T0_MS + 60250);
}

static void test_range_query_gives_every_step(void **state)
{
	(void)state;
	struct promql *p = open_source(LOOP_MAX_MS);
	struct seen s = {0};
	struct err e = {0};
	assert_int_equal(promql_ask(p,
	                            &(struct promql_question){.query = "load",
	                                                      .is_range = true,
	                                                      .start_ms = T0_MS,
	                                                      .end_ms = T0_MS + (STEPS - 1) * (int64_t)STEP_MS,
	                                                      .step_ms = STEP_MS},
	                            on_done, &s, &e),
	                 0);
	wait_done(&s);
	promql_free(p);
	if (s.e.kind != ERR_NONE)
		fail_msg("%s", s.e.msg);
	assert_int_equal(s.type, PROMQL_MATRIX);
	assert_int_equal(s.n_series, 1);
	assert_int_equal(s.n_samples[0], STEPS);
	assert_int_equal(s.first[0].time_ms, T0_MS);
	assert_int_equal(s.last[0].time_ms, T0_MS + (STEPS - 1) * (int64_t)STEP_MS);
	assert_near(s.last[0].value, STEPS - 1, 0.0);
	assert_near(s.sum, STEPS * (STEPS - 1) / 2.0, 0.0);
}

static void test_nan_and_infinity_come_through(void **state)
{
	(void)state;
	assert_true(isnan(ask_ok("vector(0) / 0", T0_MS).first[0].value));
	assert_true(isnan(ask_ok("0 / 0", T0_MS).first[0].value));
	assert_true(ask_ok("1 / 0", T0_MS).first[0].value == (double)INFINITY);
	assert_true(ask_ok("-1 / 0", T0_MS).first[0].value == -(double)INFINITY);
	assert_true(isnan(ask_ok("odd{gpu=\"nan\"}", T0_MS).first[0].value));
	assert_true(ask_ok("odd{gpu=\"inf\"}", T0_MS).first[0].value == (double)INFINITY);
}

static void test_missing_metric_is_an_empty_vector(void **state)
{
	(void)state;
	struct seen s = ask_ok("no_such_metric", T0_MS);
	assert_int_equal(s.type, PROMQL_VECTOR);
	assert_int_equal(s.n_series, 0);
	s = ask_ok("load", 0); // the history ended long ago: now is empty
	assert_int_equal(s.n_series, 0);
}

static void test_refusals_keep_the_servers_words_and_position(void **state)
{
	(void)state;
	static const struct {
		const char *query, *says;
	} rows[] = {
	        {"sum(up", "1:7: parse error: unclosed left parenthesis"},
	        {"up +", "1:5: parse error"},
	        {"up\n  and )", "2:8: parse error: unexpected right parenthesis"},
	        {"rate(up)", "expected type range vector"},
	        {"temp * on() temp", "many-to-many matching not allowed"},
	        {"count_over_time(vector(1)[1d:1ms])", "too many samples"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct seen s = ask(rows[i].query, T0_MS + 1000);
		if (s.e.kind != ERR_REJECTED || !strstr(s.e.msg, rows[i].says))
			fail_msg("%s: got %s \"%s\", want \"...%s...\"", rows[i].query, err_kind_info(s.e.kind)->name,
			         s.e.msg, rows[i].says);
	}
}

static void test_hanging_server_is_a_timeout(void **state)
{
	(void)state;
	struct promql *p = open_source(200);
	struct seen s = {0};
	struct err e = {0};
	assert_true(prometheus_freeze(prometheus));
	int rc = promql_query(p, "load", T0_MS, on_done, &s, &e);
	if (rc == 0)
		wait_done(&s);
	prometheus_thaw(prometheus);
	promql_free(p);
	assert_int_equal(rc, 0);
	assert_int_equal(s.e.kind, ERR_TIMEOUT);
	assert_int_equal(ask_ok("load", T0_MS).n_series, 1); // and back
}

static void test_outage_is_unreachable_and_ends_with_it(void **state)
{
	(void)state;
	struct err e = {0};
	prometheus_interrupt(prometheus);
	struct seen s = ask("load", T0_MS);
	assert_int_equal(s.e.kind, ERR_UNREACHABLE);
	assert_int_equal(prometheus_continue(prometheus, &e), 0);
	s = ask_ok("load", T0_MS);
	assert_int_equal(s.n_series, 1);
}

static void on_scrape(void *arg, struct http_exchange *x)
{
	int *scrapes = arg;
	++*scrapes;
	http_exchange_reply(x, 200, "text/plain; version=0.0.4", "queue_depth 7\n", strlen("queue_depth 7\n"));
}

static void test_scraped_target_can_be_asked_within_seconds(void **state)
{
	(void)state;
	struct err e = {0};
	int scrapes = 0;
	struct http_server *target =
	        http_server_new(&(struct http_server_options){.loop = loop, .listen = "127.0.0.1:0"}, &e);
	assert_non_null(target);
	assert_int_equal(http_server_route(target, "/metrics", on_scrape, &scrapes, &e), 0);
	char address[32];
	snprintf(address, sizeof address, "127.0.0.1:%u", http_server_port(target));
	struct prometheus *scraping = prometheus_start(&(struct prometheus_options){.scrape_target = address}, &e);
	if (!scraping)
		fail_msg("%s", e.msg);
	struct promql *p = promql_new(
	        &(struct promql_options){.http = http, .url = prometheus_url(scraping), .timeout_ms = LOOP_MAX_MS}, &e);
	assert_non_null(p);
	struct seen s = {0};
	for (int i = 0; i < 600 && s.n_series == 0; i++) {
		s = (struct seen){0};
		test_loop_for(loop, 100);
		assert_int_equal(promql_query(p, "queue_depth{job=\"test\"}", 0, on_done, &s, &e), 0);
		wait_done(&s);
	}
	promql_free(p);
	prometheus_stop(scraping);
	http_server_free(target);
	assert_int_equal(s.n_series, 1);
	assert_near(s.first[0].value, 7.0, 0.0);
	assert_true(scrapes > 0);
}

static void test_prometheus_is_not_installed(void **state)
{
	(void)state;
	print_message("prometheus and promtool are not installed: nothing was checked\n");
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_vector_has_the_known_values),
	        cmocka_unit_test(test_query_time_keeps_its_milliseconds),
	        cmocka_unit_test(test_scalar_and_string_keep_their_type),
	        cmocka_unit_test(test_range_vector_keeps_raw_samples_and_times),
	        cmocka_unit_test(test_range_query_gives_every_step),
	        cmocka_unit_test(test_nan_and_infinity_come_through),
	        cmocka_unit_test(test_missing_metric_is_an_empty_vector),
	        cmocka_unit_test(test_refusals_keep_the_servers_words_and_position),
	        cmocka_unit_test(test_hanging_server_is_a_timeout),
	        cmocka_unit_test(test_outage_is_unreachable_and_ends_with_it),
	        cmocka_unit_test(test_scraped_target_can_be_asked_within_seconds),
	};
	const struct CMUnitTest without[] = {cmocka_unit_test(test_prometheus_is_not_installed)};
	if (!prometheus_is_installed())
		return cmocka_run_group_tests_name("promql_real", without, NULL, NULL);
	return cmocka_run_group_tests_name("promql_real", tests, start, stop);
}
