// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a namespace whose queries take nearly their whole deadline does not delay the queries of others,
// its own queries are sent as well, and a query that gets no slot fails with the reason.
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
#include "promql/fair_queue.h"
#include "promql/promql_source.h"
#include "runtime/query/query_hub.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"
#include "test/support/query_server.h"

#define HOSTILE    24
#define GOOD       6
#define POLICIES   (HOSTILE + GOOD)
#define TICKS      61
#define TICK_MS    1000
#define SLOW_TICKS 9 // that a hostile query takes
#define LOST_MAX   1 // ticks that a good one is not asked in

struct asker {
	struct world *world;
	char query[16];
	const char *namespace_name;
	bool is_hostile, is_waiting;
	int n_asked, n_answers; // n_asked: by the server's count
	char detail[QUERY_DETAIL_BYTES];
};

struct world {
	struct query_world q;
	struct asker askers[POLICIES];
	int n_good_answers, n_answers;
	int hanging_max;
};

static struct query_reply classify(void *arg, const char *query, size_t n_together)
{
	struct world *w = arg;
	(void)n_together;
	for (int i = 0; i < POLICIES; i++) {
		struct asker *a = &w->askers[i];
		if (strncmp(query, a->query, strlen(a->query)) != 0)
			continue;
		a->n_asked++;
		if (a->is_hostile && query_server_hanging(w->q.server) + 1 > w->hanging_max)
			w->hanging_max = query_server_hanging(w->q.server) + 1;
		return (struct query_reply){a->is_hostile ? QUERY_HANGS : QUERY_ANSWERED, 0};
	}
	return (struct query_reply){QUERY_ANSWERED, 0};
}

static void on_answer(void *arg, struct query_answer *answer)
{
	struct asker *a = arg;
	a->is_waiting = false;
	a->n_answers++;
	a->world->n_answers++;
	a->world->n_good_answers += !a->is_hostile;
	snprintf(a->detail, sizeof a->detail, "%s", answer->detail);
}

static void open_world(struct world *w, int slots)
{
	*w = (struct world){0};
	for (int i = 0; i < POLICIES; i++) {
		struct asker *a = &w->askers[i];
		a->world = w;
		a->is_hostile = i < HOSTILE; // first: their queries are in flight when the others arrive
		a->namespace_name = a->is_hostile ? "hostile" : i % 2 ? "good" : "other";
		snprintf(a->query, sizeof a->query, "q%02d_x", i);
	}
	query_world_open(&w->q, slots, classify, w);
}

static void ask(struct asker *a, int64_t wait_ms)
{
	struct world *w = a->world;
	if (a->is_waiting)
		return; // its tick is in progress
	a->is_waiting = true;
	query_hub_ask(w->q.hub,
	              &(struct query_question){.query = a->query,
	                                       .stale_after_ms = 60000,
	                                       .namespace_name = a->namespace_name,
	                                       .wait_ms = wait_ms},
	              clock_wall_ms(&w->q.clock), on_answer, a);
}

static const struct fair_queue *queue_of(const struct world *w)
{
	return w->q.sources->items[0]->queue;
}

// Runs the loop until the good policies have their answers, or requests that hang hold every slot.
static void turn(struct world *w, int n_good_answers)
{
	int used, hanging;
	do {
		test_loop_for(w->q.loop, 1);
		used = queue_of(w)->used[FAIR_FAST] + queue_of(w)->used[FAIR_SLOW];
		hanging = query_server_hanging(w->q.server);
	} while (w->n_good_answers < n_good_answers && used > hanging);
}

// The queries use the manual clock, so that 61 s take a few milliseconds.
static void slow_queries_of_one_namespace_do_not_keep_others_from_being_asked(void **state)
{
	(void)state;
	struct world w;
	open_world(&w, 0);
	for (int t = 1; t <= TICKS; t++) {
		for (int i = 0; i < POLICIES; i++)
			ask(&w.askers[i], TEST_PATIENCE_MS);
		turn(&w, GOOD * t);
		clock_advance_ms(&w.q.clock, TICK_MS);
		if (t % SLOW_TICKS == 0)
			query_server_release(w.q.server, QUERY_ANSWERED);
	}
	for (int i = HOSTILE; i < POLICIES; i++)
		if (w.askers[i].n_asked < TICKS - LOST_MAX)
			fail_msg("%s was asked %d times in %d ticks", w.askers[i].query, w.askers[i].n_asked, TICKS);
	assert_in_range(w.hanging_max, 2, PROMQL_CONCURRENCY / 2);
	for (int i = 0; i < HOSTILE; i++)
		assert_true(w.askers[i].n_asked > 0);
	query_world_close(&w.q);
}

static void query_without_a_slot_in_time_fails_with_why(void **state)
{
	(void)state;
	struct world w;
	open_world(&w, 2);
	ask(&w.askers[0], TEST_PATIENCE_MS);
	ask(&w.askers[1], 20);
	assert_true(test_loop_until(w.q.loop, &w.askers[1].n_answers, 1, TEST_PATIENCE_MS));
	assert_string_equal(
	        w.askers[1].detail,
	        "source default: not sent within 20 ms: 1 of 2 slots are in use, 1 of them by slow queries; queued: 1");
	assert_int_equal(w.askers[1].n_asked, 0);
	assert_int_equal(w.q.sources->items[0]->stats.unsent, 1);
	assert_int_equal(query_hub_source_stats(w.q.hub, 0).isolated,
	                 0); // the failure is not evidence against the query
	query_world_close(&w.q);
}

static void waiting_for_a_turn_does_not_count_against_the_deadline(void **state)
{
	(void)state;
	struct world w;
	open_world(&w, 1);
	ask(&w.askers[0], TEST_PATIENCE_MS);
	ask(&w.askers[HOSTILE], TEST_PATIENCE_MS);
	TEST_BECOMES(w.q.loop, query_server_hanging(w.q.server) == 1);
	assert_int_equal(queue_of(&w)->n_waiting, 1);
	assert_int_equal(w.q.sources->items[0]->stats.queries, 1);
	clock_advance_ms(&w.q.clock, 2 * PROMQL_TIMEOUT_MS);
	query_server_release(w.q.server, QUERY_ANSWERED);
	assert_true(test_loop_until(w.q.loop, &w.n_answers, 2, TEST_PATIENCE_MS));
	assert_string_equal(w.askers[HOSTILE].detail, "");
	assert_int_equal(queue_of(&w)->used[FAIR_SLOW], 0);
	query_world_close(&w.q);
}

static void closing_ends_queued_queries(void **state)
{
	(void)state;
	struct world w;
	open_world(&w, 1);
	for (int i = 0; i < POLICIES; i++)
		ask(&w.askers[i], TEST_PATIENCE_MS);
	TEST_BECOMES(w.q.loop, query_server_hanging(w.q.server) == 1);
	query_world_close(&w.q);
	assert_int_equal(w.n_answers, POLICIES);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(slow_queries_of_one_namespace_do_not_keep_others_from_being_asked),
	        cmocka_unit_test(query_without_a_slot_in_time_fails_with_why),
	        cmocka_unit_test(waiting_for_a_turn_does_not_count_against_the_deadline),
	        cmocka_unit_test(closing_ends_queued_queries),
	};
	return cmocka_run_group_tests_name("query_fairness", tests, NULL, NULL);
}
