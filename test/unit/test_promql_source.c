// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a source that is down receives one probe at a time and recovers by itself; a source that hangs
// does not delay the others; each kind of server is queried with its own dialect.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/buf.h"
#include "promql/promql_source.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"
#include "test/support/promql_fixture.h"

#define OVERLOADED                                                                                                     \
	(struct promql_reply)                                                                                          \
	{                                                                                                              \
		503, "text/plain", "overloaded", NULL, 0                                                               \
	}

static const struct promql_ticket no_ticket;

static struct promql_sources *open_one(struct promql_fixture *f, struct promql_source_options o)
{
	o.name = "default";
	if (!o.query.url)
		o.query.url = f->url;
	struct promql_sources *s = promql_sources_new(f->loop, &f->clock, &o, 1, &f->e);
	assert_non_null(s);
	return s;
}

// 1 when the query was sent and answered, 0 when it was sent and failed, -1 when it was refused; f->e says why.
static int ask_at(struct promql_fixture *f, struct promql_source *s, const char *query)
{
	int n = f->n_done;
	struct promql_question q = {.query = query, .time_ms = 1000};
	if (promql_source_ask(s, &q, &no_ticket, promql_fixture_done, f, &f->e) < 0)
		return -1;
	promql_fixture_wait(f, n + 1);
	return f->e.kind == ERR_NONE;
}

static struct promql_source *only(struct promql_sources *s)
{
	return s->items[0];
}

static void recover(struct promql_fixture *f)
{
	f->replies[0] = (struct promql_reply){200, NULL, PROMQL_FIXTURE_BODY, NULL, 0};
}

static void bring_down(struct promql_fixture *f, struct promql_source *s)
{
	f->replies[0] = OVERLOADED;
	f->n_replies = 1;
	assert_int_equal(ask_at(f, s, "up"), 0);
	TEST_BECOMES(f->loop, promql_source_is_down(s));
}

static void source_that_is_down_is_asked_a_single_probe(void **state)
{
	struct promql_fixture *f = *state;
	struct promql_sources *set = open_one(f, (struct promql_source_options){0});
	struct promql_source *s = only(set);
	bring_down(f, s);
	assert_int_equal(f->n_requests, 2);
	assert_non_null(strstr(f->requests[1].body, "query=vector%281%29"));
	assert_int_equal(ask_at(f, s, "a"), -1); // the next probe is not due yet
	assert_non_null(strstr(f->e.msg, "source default is down: Prometheus at"));
	assert_non_null(strstr(f->e.msg, "HTTP 503: overloaded"));
	assert_int_equal(
	        promql_source_ask(
	                s,
	                &(struct promql_question){
	                        .query = "up", .is_range = true, .start_ms = 0, .end_ms = 1000, .step_ms = 100},
	                &no_ticket, promql_fixture_done, f, &f->e),
	        -1);
	assert_int_equal(f->n_requests, 2);
	assert_int_equal(s->stats.refused, 2);
	promql_sources_free(set);
}

static void source_is_up_again_once_its_probe_is_answered(void **state)
{
	struct promql_fixture *f = *state;
	struct promql_sources *set = open_one(f, (struct promql_source_options){0});
	struct promql_source *s = only(set);
	bring_down(f, s);
	uint64_t epoch = s->epoch;
	clock_advance_ms(&f->clock, PROMQL_PROBE_INTERVAL_MS);
	recover(f);
	assert_int_equal(ask_at(f, s, "up"), 1); // after the probe, and at once
	assert_int_equal(f->n_requests, 4);
	assert_non_null(strstr(f->requests[2].body, "query=vector%281%29"));
	assert_int_equal(s->health.state, PROMQL_UP);
	assert_int_equal(s->epoch, epoch + 1);
	assert_string_equal(s->error, "");
	promql_sources_free(set);
}

static void added_source_serves_its_namespace_with_its_credentials(void **state)
{
	struct promql_fixture *f = *state;
	const struct promql_credentials login = {.bearer_token = "theirs"}, broken = {.bearer_token = "a\nb"};
	const struct promql_source_options configured = {
	        .name = "main", .query = {.url = f->url, .bearer_token = "ours"}, .access = {.label = "namespace"}};
	struct promql_sources *set = promql_sources_new(f->loop, &f->clock, &configured, 1, &f->e);
	assert_non_null(set);
	struct buf b;
	buf_init(&b, 1024);
	assert_int_equal(promql_sources_add(set, only(set), "theirs-1", "serving", &login, &f->e), 0);
	struct promql_source *s = promql_sources_find(set, "theirs-1", &f->e);
	assert_non_null(s);
	assert_string_equal(promql_sources_admit(set, "theirs-1", "serving", "up", &b, NULL, &f->e),
	                    "up{namespace=\"serving\"}");
	assert_null(promql_sources_admit(set, "theirs-1", "other", "up", &b, NULL, &f->e));
	assert_ptr_equal(promql_sources_find(set, NULL, &f->e),
	                 only(set)); // still the default, as the only configured one
	assert_int_equal(ask_at(f, s, "up"), 1);
	assert_string_equal(f->requests[0].authorization, "Bearer theirs");
	assert_int_equal(ask_at(f, only(set), "up"), 1);
	assert_string_equal(f->requests[1].authorization, "Bearer ours");
	assert_int_equal(promql_sources_add(set, only(set), "theirs-1", "serving", &login, &f->e), -1);
	assert_int_equal(promql_sources_add(set, only(set), "theirs-2", "serving", &broken, &f->e), -1);
	assert_int_equal(set->n, 2);
	while (set->n < PROMQL_SOURCES_MAX) {
		char name[16];
		snprintf(name, sizeof name, "more-%zu", set->n);
		assert_int_equal(promql_sources_add(set, only(set), name, "serving", &login, &f->e), 0);
	}
	assert_int_equal(promql_sources_add(set, only(set), "beyond", "serving", &login, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_LIMIT);
	buf_done(&b);
	promql_sources_free(set);
}

static void query_that_waits_for_a_failed_probe_fails(void **state)
{
	struct promql_fixture *f = *state;
	struct promql_sources *set = open_one(f, (struct promql_source_options){0});
	struct promql_source *s = only(set);
	bring_down(f, s);
	recover(f);
	clock_advance_ms(&f->clock, PROMQL_PROBE_INTERVAL_MS);
	assert_int_equal(ask_at(f, s, "up"), 1); // its probe was answered: failed probes count from now on
	bring_down(f, s);
	clock_advance_ms(&f->clock, PROMQL_PROBE_INTERVAL_MS);
	size_t n = f->n_requests;
	struct promql_question q = {.query = "up"};
	int n_done = f->n_done;
	for (int i = 0; i < 3; i++)
		assert_int_equal(promql_source_ask(s, &q, &no_ticket, promql_fixture_done, f, &f->e), 0);
	promql_fixture_wait(f, n_done + 3);
	assert_int_equal(f->e.code, PROMQL_NOT_SENT);
	assert_non_null(strstr(f->e.msg, "source default is down"));
	assert_int_equal(f->n_requests, n + 1);
	promql_sources_free(set);
}

static void single_query_suffices_to_notice_an_outage(void **state)
{
	struct promql_fixture *f = *state;
	struct promql_sources *set = open_one(f, (struct promql_source_options){0});
	bring_down(f, only(set)); // dead from the start
	recover(f);
	clock_advance_ms(&f->clock, PROMQL_PROBE_INTERVAL_MS);
	assert_int_equal(ask_at(f, only(set), "up"), 1);
	bring_down(f, only(set)); // and after its probe was answered
	promql_sources_free(set);
	set = open_one(f, (struct promql_source_options){0});
	recover(f);
	assert_int_equal(ask_at(f, only(set), "up"), 1);
	f->replies[0] = OVERLOADED; // before its probe was ever sent: the failure does not count
	for (int i = 0; i < PROMQL_HEALTH_FAILURES; i++) {
		assert_false(promql_source_is_down(only(set)));
		assert_int_equal(ask_at(f, only(set), "up"), 0);
	}
	assert_true(promql_source_is_down(only(set)));
	promql_sources_free(set);
}

static void retry_after_of_the_probe_holds_for_the_source(void **state)
{
	struct promql_fixture *f = *state;
	struct promql_sources *set = open_one(f, (struct promql_source_options){0});
	struct promql_source *s = only(set);
	f->replies[0] = OVERLOADED;
	f->replies[0].retry_after = "30";
	assert_int_equal(ask_at(f, s, "up"), 0);
	TEST_BECOMES(f->loop, promql_source_is_down(s));
	recover(f);
	clock_advance_ms(&f->clock, 29999);
	assert_int_equal(ask_at(f, s, "up"), -1);
	clock_advance_ms(&f->clock, 1);
	assert_int_equal(ask_at(f, s, "up"), 1);
	f->replies[0] = OVERLOADED;
	f->replies[0].retry_after = "3600"; // not for an hour
	assert_int_equal(ask_at(f, s, "up"), 0);
	TEST_BECOMES(f->loop, promql_source_is_down(s));
	recover(f);
	clock_advance_ms(&f->clock, PROMQL_RETRY_AFTER_MS);
	assert_int_equal(ask_at(f, s, "up"), 1);
	promql_sources_free(set);
}

static void queries_that_the_server_refuses_are_not_its_fault(void **state)
{
	struct promql_fixture *f = *state;
	struct promql_sources *set = open_one(f, (struct promql_source_options){0});
	f->replies[0] = (struct promql_reply){
	        400, NULL, "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error\"}", NULL, 0};
	for (int i = 0; i < 2 * PROMQL_HEALTH_OUTCOMES; i++)
		assert_int_equal(ask_at(f, only(set), "("), 0);
	assert_int_equal(only(set)->health.state, PROMQL_UP);
	assert_int_equal(only(set)->stats.failed[ERR_REJECTED], 2 * PROMQL_HEALTH_OUTCOMES);
	promql_sources_free(set);
}

static void hanging_source_does_not_delay_other_sources(void **state)
{
	struct promql_fixture *f = *state, other;
	void *second;
	assert_int_equal(promql_fixture_setup(&second), 0); // its server lives on a loop that never turns: it hangs
	other = *(struct promql_fixture *)second;
	const struct promql_source_options list[] = {{.name = "hangs", .max_in_flight = 2, .query = {.url = other.url}},
	                                             {.name = "works", .query = {.url = f->url}}};
	struct promql_sources *set = promql_sources_new(f->loop, &f->clock, list, 2, &f->e);
	assert_non_null(set);
	struct promql_fixture *lost = second;
	struct promql_question q = {.query = "up", .time_ms = 1000};
	for (int i = 0; i < 40; i++)
		assert_int_equal(promql_source_ask(set->items[0], &q, &no_ticket, promql_fixture_done, lost, &f->e), 0);
	for (int i = 0; i < 40; i++)
		assert_int_equal(promql_source_ask(set->items[1], &q, &no_ticket, promql_fixture_done, f, &f->e), 0);
	promql_fixture_wait(f, 40);
	assert_int_equal(lost->n_done, 0);
	promql_sources_free(set);
	assert_int_equal(lost->n_done, 40); // canceled
	assert_int_equal(promql_fixture_teardown(&second), 0);
}

// ---- kinds ----

#define BUILDINFO(data) "{\"status\":\"success\",\"data\":{" data "}}"

static void server_is_asked_for_its_kind_and_then_as_that_kind_requires(void **state)
{
	static const struct {
		int status;
		const char *body, *version, *instant, *range;
		enum promql_kind kind;
	} rows[] = {
	        {200, BUILDINFO("\"version\":\"2.42.0\",\"revision\":\"x\",\"goVersion\":\"go1.19\""), "2.42.0", "", "",
	         PROMQL_KIND_PROMETHEUS},
	        {200, BUILDINFO("\"version\":\"0.32.5\",\"revision\":\"x\",\"goVersion\":\"go1.21\""), "0.32.5",
	         "&dedup=true&partial_response=false", "&dedup=true&partial_response=false", PROMQL_KIND_THANOS},
	        {200, BUILDINFO("\"application\":\"Grafana Mimir\",\"version\":\"2.10.0\",\"revision\":\"x\""),
	         "2.10.0", "", "", PROMQL_KIND_MIMIR},
	        {200, BUILDINFO(""), "", "&nocache=1&max_lookback=300000ms", "&nocache=1&latency_offset=1ms",
	         PROMQL_KIND_VICTORIAMETRICS}, // Debian's 1.79.5
	        {200, BUILDINFO("\"version\":\"2.24.0\""), "", "&nocache=1&max_lookback=300000ms",
	         "&nocache=1&latency_offset=1ms", PROMQL_KIND_VICTORIAMETRICS}, // later ones
	        {404, "404 page not found", "", "", "", PROMQL_KIND_PROMETHEUS},
	        {403, "no", "", "", "", PROMQL_KIND_PROMETHEUS},
	        {200, "<html>", "", "", "", PROMQL_KIND_PROMETHEUS},
	        {503, "starting", "", "", "", PROMQL_KIND_AUTO}, // asked plainly, and who it is asked again
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct promql_fixture *f = *state;
		f->n_requests = 0;
		f->n_replies = 2;
		f->replies[0] = (struct promql_reply){rows[i].status, NULL, rows[i].body, NULL, 0};
		f->replies[1] = (struct promql_reply){200, NULL, PROMQL_FIXTURE_BODY, NULL, 0};
		struct promql_sources *set =
		        open_one(f, (struct promql_source_options){.query = {.kind = PROMQL_KIND_AUTO}});
		assert_int_equal(ask_at(f, only(set), "up"), 1);
		const char *version;
		assert_int_equal(promql_source_kind(only(set), &version), rows[i].kind);
		assert_string_equal(version, rows[i].version);
		assert_int_equal(f->n_requests, 2);
		assert_string_equal(f->requests[0].method, "GET");
		assert_string_equal(f->requests[0].path, "/api/v1/status/buildinfo");
		char want[256];
		snprintf(want, sizeof want, "query=up&time=1.000&timeout=10s%s", rows[i].instant);
		assert_string_equal(f->requests[1].body, want);
		if (rows[i].kind != PROMQL_KIND_AUTO) { // known now
			int n = f->n_done;
			f->replies[1].body =
			        "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}}";
			assert_int_equal(promql_source_ask(only(set),
			                                   &(struct promql_question){.query = "up",
			                                                             .is_range = true,
			                                                             .start_ms = 1000,
			                                                             .end_ms = 2000,
			                                                             .step_ms = 1000},
			                                   &no_ticket, promql_fixture_done, f, &f->e),
			                 0);
			promql_fixture_wait(f, n + 1);
			snprintf(want, sizeof want, "query=up&start=1.000&end=2.000&step=1.000&timeout=10s%s",
			         rows[i].range);
			assert_int_equal(f->n_requests, 3);
			assert_string_equal(f->requests[2].body, want);
		}
		promql_sources_free(set);
	}
}

static void call_that_waits_for_detection_fails_with_it(void **state)
{
	struct promql_fixture *f = *state;
	struct promql_sources *set = open_one(
	        f, (struct promql_source_options){.query = {.kind = PROMQL_KIND_AUTO, .url = "http://127.0.0.1:1"}});
	struct promql_question q = {.query = "up"};
	for (int i = 0; i < 3; i++)
		assert_int_equal(promql_source_ask(only(set), &q, &no_ticket, promql_fixture_done, f, &f->e), 0);
	promql_fixture_wait(f, 3);
	assert_int_equal(f->e.kind, ERR_UNREACHABLE);
	TEST_BECOMES(f->loop, promql_source_is_down(only(set)));
	promql_sources_free(set);
}

static void freeing_the_client_ends_calls_that_wait_for_detection(void **state)
{
	struct promql_fixture *f = *state;
	f->replies[0].delay_ms = 30000;
	struct promql_sources *set = open_one(f, (struct promql_source_options){.query = {.kind = PROMQL_KIND_AUTO}});
	struct promql_question q = {.query = "up"};
	for (int i = 0; i < 3; i++)
		assert_int_equal(promql_source_ask(only(set), &q, &no_ticket, promql_fixture_done, f, &f->e), 0);
	test_loop_for(f->loop, 50);
	promql_sources_cancel(set);
	assert_int_equal(f->n_done, 3);
	assert_int_equal(f->e.kind, ERR_CANCELED);
	assert_int_equal(promql_source_ask(only(set), &q, &no_ticket, promql_fixture_done, f, &f->e), -1);
	assert_int_equal(f->e.kind, ERR_CANCELED);
	promql_sources_free(set);
}

static void tenant_is_a_header_and_get_is_possible(void **state)
{
	struct promql_fixture *f = *state;
	struct promql_sources *set =
	        open_one(f, (struct promql_source_options){.tenant = "team-a", .query = {.use_get = true}});
	assert_int_equal(ask_at(f, only(set), "up"), 1);
	assert_string_equal(f->requests[0].extra, "team-a");
	assert_string_equal(f->requests[0].method, "GET");
	assert_string_equal(f->requests[0].body, "");
	promql_sources_free(set);
}

// ---- names ----

static void sources_are_found_by_name(void **state)
{
	struct promql_fixture *f = *state;
	const struct promql_source_options list[] = {{.name = "eu", .query = {.url = f->url}},
	                                             {.name = "us", .query = {.url = f->url}}};
	struct promql_sources *set = promql_sources_new(f->loop, NULL, list, 2, &f->e);
	assert_non_null(set);
	assert_ptr_equal(promql_sources_find(set, "us", &f->e), set->items[1]);
	assert_null(promql_sources_find(set, "asia", &f->e));
	assert_string_equal(f->e.msg, "there is no source asia");
	assert_null(promql_sources_find(set, NULL, &f->e));
	assert_non_null(strstr(f->e.msg, "there is no default source"));
	promql_sources_free(set);
	set = promql_sources_new(f->loop, NULL, list, 1, &f->e);
	assert_ptr_equal(promql_sources_find(set, "", &f->e), set->items[0]); // the only one
	promql_sources_free(set);
}

static void unusable_sources_are_refused_by_name(void **state)
{
	struct promql_fixture *f = *state;
	char long_name[80];
	memset(long_name, 'a', sizeof long_name);
	long_name[79] = '\0';
	const struct {
		struct promql_source_options o[2];
		const char *says;
	} rows[] = {
	        {{{.name = "", .query = {.url = f->url}}}, "0 bytes"},
	        {{{.name = long_name, .query = {.url = f->url}}}, "79 bytes; it must have 1 to 63"},
	        {{{.name = "a b", .query = {.url = f->url}}}, "must be letters"},
	        {{{.name = "a", .query = {.url = "x"}}}, "source a: the Prometheus URL"},
	        {{{.name = "a", .max_in_flight = 257, .query = {.url = f->url}}}, "257 queries at once"},
	        {{{.name = "a", .tenant = "", .query = {.url = f->url}}}, "tenant"},
	        {{{.name = "a", .query = {.url = f->url}}, {.name = "a", .query = {.url = f->url}}},
	         "source a: the name is given to two sources"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_null(promql_sources_new(f->loop, NULL, rows[i].o, rows[i].o[1].name ? 2 : 1, &f->e));
		if (!strstr(f->e.msg, rows[i].says))
			fail_msg("row %zu: \"%s\" does not say \"%s\"", i, f->e.msg, rows[i].says);
	}
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, promql_fixture_setup, promql_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        T(source_that_is_down_is_asked_a_single_probe),
	        T(source_is_up_again_once_its_probe_is_answered),
	        T(added_source_serves_its_namespace_with_its_credentials),
	        T(query_that_waits_for_a_failed_probe_fails),
	        T(single_query_suffices_to_notice_an_outage),
	        T(retry_after_of_the_probe_holds_for_the_source),
	        T(queries_that_the_server_refuses_are_not_its_fault),
	        T(hanging_source_does_not_delay_other_sources),
	        T(server_is_asked_for_its_kind_and_then_as_that_kind_requires),
	        T(call_that_waits_for_detection_fails_with_it),
	        T(freeing_the_client_ends_calls_that_wait_for_detection),
	        T(tenant_is_a_header_and_get_is_possible),
	        T(sources_are_found_by_name),
	        T(unusable_sources_are_refused_by_name),
	};
	return cmocka_run_group_tests_name("promql_source", tests, NULL, NULL);
}
