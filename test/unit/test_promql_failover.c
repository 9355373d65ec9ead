// SPDX-License-Identifier: Apache-2.0
// Goal of this test: of the servers of one source, the first that has data answers a query; without data, the result
// says as much as the servers do.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "promql/promql_source.h"
#include "test/support/loop.h"
#include "test/support/raw_server.h"

#define HEAD(length) "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " #length "\r\n\r\n"

enum { DATA, EMPTY, WARNS, REJECTS, FAILS, DEAD, REPLIES };

static const char *const replies[REPLIES] = {
        [DATA] = HEAD(92) "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
                          "{\"metric\":{},\"value\":[1,\"7\"]}]}}",
        [EMPTY] = HEAD(63) "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}",
        [WARNS] = HEAD(83) "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]},"
                           "\"warnings\":[\"half\"]}",
        [REJECTS] = ("HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\nContent-Length: 54\r\n\r\n"
                     "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"no\"}"),
        [FAILS] = "HTTP/1.1 500 Error\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\noops",
};

struct outcome {
	int n_done;
	size_t n_series;
	enum err_kind error;
};

static void keep(void *arg, const struct promql_result *result, const struct err *error)
{
	struct outcome *o = arg;
	o->n_done++;
	o->n_series = result ? result->n_series : 0;
	o->error = error ? error->kind : ERR_NONE;
}

struct pair {
	struct event_base *loop;
	struct clock clock;
	struct raw_server *servers[2];
	struct raw_step steps[2][3];
	char urls[2][64];
	struct promql_sources *sources;
};

static void open_pair(struct pair *p, const int *kinds)
{
	struct err e;
	p->loop = event_base_new();
	clock_init_real(&p->clock);
	for (int i = 0; i < 2; i++) {
		const struct raw_step steps[3] = {STEP(RAW_READ_REQUEST), STEP_SEND(replies[kinds[i]]),
		                                  STEP(RAW_REPEAT)};
		memcpy(p->steps[i], steps, sizeof steps);
		p->servers[i] = raw_server_new(p->loop, p->steps[i], 3);
		snprintf(p->urls[i], sizeof p->urls[i], "http://127.0.0.1:%d", raw_server_port(p->servers[i]));
		if (kinds[i] == DEAD) {
			raw_server_free(p->servers[i]);
			p->servers[i] = NULL;
		}
	}
	const char *const more[] = {p->urls[1], NULL};
	const struct promql_source_options options = {
	        .name = "default", .query = {.url = p->urls[0], .kind = PROMQL_KIND_PROMETHEUS}, .more_urls = more};
	p->sources = promql_sources_new(p->loop, &p->clock, &options, 1, &e);
	assert_non_null(p->sources);
}

static void close_pair(struct pair *p)
{
	promql_sources_free(p->sources);
	for (int i = 0; i < 2; i++)
		raw_server_free(p->servers[i]);
	event_base_free(p->loop);
}

static void first_server_with_data_answers(void **state)
{
	(void)state;
	static const struct {
		int kinds[2];
		size_t n_series;
		enum err_kind error;
		int n_asked; // queries that the second server received
	} rows[] = {
	        // clang-format off
	        {{DATA,    FAILS},   1, ERR_NONE,        0},
	        {{FAILS,   DATA},    1, ERR_NONE,        1},
	        {{DEAD,    DATA},    1, ERR_NONE,        1},
	        {{EMPTY,   DATA},    1, ERR_NONE,        1},
	        {{WARNS,   DATA},    1, ERR_NONE,        1},
	        {{EMPTY,   EMPTY},   0, ERR_NONE,        1},
	        {{EMPTY,   DEAD},    0, ERR_NONE,        0},
	        {{DEAD,    EMPTY},   0, ERR_NONE,        1},
	        {{WARNS,   EMPTY},   0, ERR_PROTOCOL,    1},
	        {{EMPTY,   WARNS},   0, ERR_PROTOCOL,    1},
	        {{REJECTS, DATA},    0, ERR_REJECTED,    0},
	        {{DEAD,    REJECTS}, 0, ERR_REJECTED,    1},
	        {{DEAD,    DEAD},    0, ERR_UNREACHABLE, 0},
	        // clang-format on
	};
	const struct promql_ticket ticket = {.namespace_name = "serving"};
	const struct promql_question question = {.query = "q", .time_ms = 1000};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct pair p = {0};
		struct outcome o = {0};
		struct err e;
		open_pair(&p, rows[i].kinds);
		struct promql_source *first = p.sources->items[0];
		assert_int_equal(promql_failover_ask(first, &question, &ticket, keep, &o, &e), 0);
		TEST_BECOMES(p.loop, o.n_done == 1);
		if (o.n_series != rows[i].n_series || o.error != rows[i].error)
			fail_msg("row %zu: %zu series, error %d", i, o.n_series, (int)o.error);
		if (p.servers[1])
			assert_in_range(raw_server_stats(p.servers[1]).requests, rows[i].n_asked,
			                rows[i].n_asked ? 8 : 0); // and probes
		close_pair(&p);
	}
}

static void range_goes_to_the_next_server(void **state)
{
	(void)state;
	const struct promql_ticket ticket = {.namespace_name = "serving"};
	struct pair p = {0};
	struct outcome o = {0};
	struct err e;
	open_pair(&p, (const int[2]){DEAD, DATA});
	assert_int_equal(
	        promql_failover_ask(
	                p.sources->items[0],
	                &(struct promql_question){
	                        .query = "q", .is_range = true, .start_ms = 0, .end_ms = 60000, .step_ms = 15000},
	                &ticket, keep, &o, &e),
	        0);
	TEST_BECOMES(p.loop, o.n_done == 1);
	assert_int_equal(o.n_series, 1);
	assert_non_null(strstr(raw_server_request(p.servers[1]), "/api/v1/query_range"));
	close_pair(&p);
}

static void closing_ends_a_query_once(void **state)
{
	(void)state;
	const struct promql_ticket ticket = {0};
	const struct promql_question question = {.query = "q", .time_ms = 1000};
	struct pair p = {0};
	struct outcome o = {0};
	struct err e;
	open_pair(&p, (const int[2]){EMPTY, EMPTY});
	assert_int_equal(promql_failover_ask(p.sources->items[0], &question, &ticket, keep, &o, &e), 0);
	promql_sources_cancel(p.sources);
	assert_int_equal(o.n_done, 1);
	assert_int_equal(o.error, ERR_CANCELED);
	close_pair(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(first_server_with_data_answers),
	        cmocka_unit_test(range_goes_to_the_next_server),
	        cmocka_unit_test(closing_ends_a_query_once),
	};
	return cmocka_run_group_tests_name("promql_failover", tests, NULL, NULL);
}
