// SPDX-License-Identifier: Apache-2.0
// Goal of this test: whatever fails in some of the queries of a combined request, the policies of the others lose at
// most one tick each time the failure starts, and the source is not marked down.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/clock.h"
#include "promql/promql_source.h"
#include "runtime/query/query_hub.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"
#include "test/support/query_server.h"

#define POLICIES    14
#define INTERVAL_MS 1000
#define HANGS_MS    500 // of real time: how long a query that hangs holds the others up
#define SICK_TICKS  6
#define LOST_MAX    1
#define HEALTHY_MAX 400 // ticks within which one that is healthy again travels with the others

struct policy_world {
	struct world *world;
	int index, n_answers, n_good;
	char query[16], namespace_name[16], detail[QUERY_DETAIL_BYTES];
	bool is_sick, is_waiting;
};

struct world {
	struct query_world q;
	struct policy_world policies[POLICIES];
	enum query_fault fault; // of the faulty queries
	int n_waiting, n_together_max;
	int n_done; // answers of the healthy queries in this tick
	bool was_down, is_away, refuses_probe;
	int wait_ms;
};

static struct query_reply classify(void *arg, const char *query, size_t n_together)
{
	struct world *w = arg;
	if (w->is_away)
		return (struct query_reply){w->fault, 0};
	if ((int)n_together > w->n_together_max)
		w->n_together_max = (int)n_together;
	for (int i = 0; i < POLICIES; i++)
		if (strncmp(query, w->policies[i].query, strlen(w->policies[i].query)) == 0)
			return (struct query_reply){w->policies[i].is_sick ? w->fault : QUERY_ANSWERED, 0};
	return (struct query_reply){w->refuses_probe ? QUERY_403 : QUERY_ANSWERED, 0};
}

static void on_answer(void *arg, struct query_answer *a)
{
	struct policy_world *p = arg;
	p->is_waiting = false;
	p->n_answers++;
	p->n_good += a->state == OBS_OK && a->n_series == 1 && a->series[0].value == 7;
	snprintf(p->detail, sizeof p->detail, "%s", a->detail);
	p->world->n_done += !p->is_sick;
}

// Runs one tick: all policies ask at the same moment, and the tick ends when the healthy ones have their answers. A
// faulty one may still wait for the answer of an earlier tick: it skips this one, as its policy would.
static void tick(struct world *w)
{
	int n_healthy = 0;
	w->n_done = 0;
	w->n_together_max = 0;
	clock_advance_ms(&w->q.clock, INTERVAL_MS);
	for (int i = 0; i < POLICIES; i++) {
		struct policy_world *p = &w->policies[i];
		n_healthy += !p->is_sick;
		if (p->is_waiting)
			continue;
		p->is_waiting = true;
		query_hub_ask(w->q.hub,
		              &(struct query_question){.query = p->query,
		                                       .stale_after_ms = 60000,
		                                       .namespace_name = p->namespace_name,
		                                       .wait_ms = w->wait_ms},
		              clock_wall_ms(&w->q.clock), on_answer, p);
	}
	assert_true(test_loop_until(w->q.loop, &w->n_done, n_healthy, TEST_PATIENCE_MS));
	w->was_down |= w->q.sources->items[0]->health.state == PROMQL_DOWN;
}

static void open_world(struct world *w)
{
	*w = (struct world){.wait_ms = TEST_PATIENCE_MS};
	for (int i = 0; i < POLICIES; i++) {
		struct policy_world *p = &w->policies[i];
		p->world = w;
		snprintf(p->query, sizeof p->query, "q%02d_x", i);
		snprintf(p->namespace_name, sizeof p->namespace_name, "n%d", i % 5);
	}
	query_world_open(&w->q, 0, classify, w);
}

static void sicken(struct world *w, const int *sick, bool is_sick)
{
	for (int i = 0; sick[i] >= 0; i++)
		w->policies[sick[i]].is_sick = is_sick;
	w->wait_ms = is_sick && w->fault == QUERY_HANGS ? HANGS_MS : TEST_PATIENCE_MS;
	if (is_sick)
		return;
	query_server_release(w->q.server, QUERY_504);
	for (int i = 0; i < POLICIES; i++)
		TEST_BECOMES(w->q.loop, !w->policies[i].is_waiting);
}

// Returns the number of ticks without data of the healthy query that lost most.
static int lost_in(struct world *w, int n_ticks)
{
	int before[POLICIES], lost = 0;
	for (int i = 0; i < POLICIES; i++)
		before[i] = w->policies[i].n_good;
	for (int t = 0; t < n_ticks; t++)
		tick(w);
	for (int i = 0; i < POLICIES; i++) {
		int l = n_ticks - (w->policies[i].n_good - before[i]);
		if (!w->policies[i].is_sick && l > lost)
			lost = l;
	}
	return lost;
}

static void expect_law(struct world *w, const char *when)
{
	int lost = lost_in(w, SICK_TICKS);
	if (lost > LOST_MAX || w->was_down)
		fail_msg("%s: %s: the others lost %d of %d ticks%s", query_fault_names[w->fault], when, lost,
		         SICK_TICKS, w->was_down ? ", and the source was taken for down" : "");
}

// Runs until all queries are combined again.
static void recover(struct world *w, const int *sick)
{
	sicken(w, sick, false);
	for (int t = 0; t < HEALTHY_MAX; t++) {
		if (lost_in(w, 1) > 0 && t > SICK_TICKS && w->fault != QUERY_429_RETRY && w->fault != QUERY_503_RETRY)
			fail_msg("%s: no data %d ticks after it was healthy again: %s", query_fault_names[w->fault], t,
			         w->policies[sick[0]].detail);
		if (w->n_together_max == POLICIES)
			return;
	}
	fail_msg("%s: still apart after %d healthy ticks", query_fault_names[w->fault], HEALTHY_MAX);
}

static void run(enum query_fault fault, const int *sick, bool refuses_probe)
{
	struct world w;
	open_world(&w);
	w.fault = fault;
	w.refuses_probe = refuses_probe;
	assert_int_equal(lost_in(&w, 2), 0);
	assert_int_equal(w.n_together_max, POLICIES);
	sicken(&w, sick, true);
	expect_law(&w, "at first");
	if (sick[1] < 0) { // the recovery is the same for several
		recover(&w, sick);
		sicken(&w, sick, true);
		expect_law(&w, "again");
	}
	query_world_close(&w.q);
}

static void others_lose_one_tick_at_most_when_one_query_fails(void **state)
{
	(void)state;
	for (int f = QUERY_ANSWERED + 1; f < QUERY_FAULT__COUNT; f++)
		run((enum query_fault)f, (const int[]){3, -1}, false);
}

static void others_lose_one_tick_at_most_when_several_queries_fail(void **state)
{
	(void)state;
	for (int f = QUERY_ANSWERED + 1; f < QUERY_FAULT__COUNT; f++)
		run((enum query_fault)f, (const int[]){0, 1, 7, 13, -1}, false);
}

static void law_holds_where_a_gateway_refuses_the_probe(void **state)
{
	(void)state;
	run(QUERY_403, (const int[]){3, 9, -1}, true);
	run(QUERY_503, (const int[]){0, 1, -1}, true);
	run(QUERY_RESET, (const int[]){5, -1}, true);
}

// Each tick of a source that is down costs one probe; when the source recovers, the next tick has its data.
static void outage_is_noticed_and_left_within_a_tick(void **state)
{
	(void)state;
	static const enum query_fault faults[] = {QUERY_503, QUERY_429, QUERY_403, QUERY_RESET, QUERY_HTML, QUERY_502};
	for (size_t i = 0; i < 2 * (sizeof faults / sizeof faults[0]); i++) {
		struct world w;
		open_world(&w);
		w.fault = faults[i / 2];
		w.refuses_probe = i % 2;
		lost_in(&w, 3);
		for (int outage = 0; outage < 2; outage++) {
			w.is_away = true;
			lost_in(&w, 1);
			TEST_BECOMES(w.q.loop, promql_source_is_down(w.q.sources->items[0]));
			int before = query_server_requests(w.q.server);
			lost_in(&w, 5);
			int n = query_server_requests(w.q.server) - before;
			// A request whose connection broke is sent again. Where the probe is refused, a query is sent
			// along with it.
			if (n > 5 * 2 * 2)
				fail_msg("%s: %d requests in 5 ticks while it is away", query_fault_names[w.fault], n);
			w.is_away = false;
			int lost = lost_in(&w, 5);
			if (lost > w.refuses_probe)
				fail_msg("%s: %d ticks lost after it was back: %s", query_fault_names[w.fault], lost,
				         w.policies[0].detail);
			w.was_down = false;
		}
		query_world_close(&w.q);
	}
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(others_lose_one_tick_at_most_when_one_query_fails),
	        cmocka_unit_test(others_lose_one_tick_at_most_when_several_queries_fail),
	        cmocka_unit_test(law_holds_where_a_gateway_refuses_the_probe),
	        cmocka_unit_test(outage_is_noticed_and_left_within_a_tick),
	};
	return cmocka_run_group_tests_name("query_faults", tests, NULL, NULL);
}
