// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the engine learns how long replicas take to start from counts alone, is not misled by outliers,
// cancelled orders, crashes, late writes and restarts; and what is starting is not ordered again.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/engine/startup.h"
#include "test/support/engine.h"

#define S 1000 // ms

// ---- learning: a walk of orders and looks ----

enum what { END, ORDER, LOOK };
struct move {
	enum what what;
	int64_t at_s;
	int32_t a, b; // ORDER: replicas, 0; LOOK: spec, ready
};

static const struct {
	const char *name;
	struct move moves[24];
	int64_t learnt_s; // -1 = nothing
} walks[] = {
        {"nothing is known at first", {{LOOK, 0, 2, 2}, {LOOK, 15, 2, 2}}, -1},
        {"an order that gets ready",
         {{LOOK, 0, 2, 2}, {ORDER, 0, 2, 0}, {LOOK, 15, 4, 2}, {LOOK, 60, 4, 2}, {LOOK, 90, 4, 4}},
         90},
        {"an order counts when the last of it is ready",
         {{LOOK, 0, 2, 2}, {ORDER, 0, 2, 0}, {LOOK, 15, 4, 2}, {LOOK, 60, 4, 3}, {LOOK, 90, 4, 4}},
         90},
        {"a scale-up that was not recorded is detected", {{LOOK, 0, 2, 2}, {LOOK, 15, 4, 2}, {LOOK, 105, 4, 4}}, 90},
        {"two orders: the first to be ready is the first ordered",
         {{LOOK, 0, 2, 2},
          {ORDER, 0, 2, 0},
          {LOOK, 30, 4, 2},
          {ORDER, 30, 4, 0},
          {LOOK, 45, 8, 2},
          {LOOK, 60, 8, 4},
          {LOOK, 100, 8, 8}},
         70}, // 60 and 70: the longer of two
        {"a cancelled order teaches nothing",
         {{LOOK, 0, 2, 2}, {ORDER, 0, 2, 0}, {LOOK, 15, 4, 2}, {LOOK, 30, 2, 2}, {LOOK, 60, 2, 2}},
         -1},
        {"a half cancelled order teaches what is left of it",
         {{LOOK, 0, 2, 2}, {ORDER, 0, 4, 0}, {LOOK, 15, 6, 2}, {LOOK, 30, 4, 2}, {LOOK, 60, 4, 4}},
         60},
        {"a pod that crashes and comes back is not a start", {{LOOK, 0, 4, 4}, {LOOK, 15, 4, 3}, {LOOK, 30, 4, 4}}, -1},
        {"a write that the scale does not show yet has not started",
         {{LOOK, 0, 2, 2}, {ORDER, 0, 2, 0}, {LOOK, 15, 2, 2}, {LOOK, 30, 4, 2}, {LOOK, 60, 4, 4}},
         60},
        {"orders from before a restart that are ready already teach nothing",
         {{ORDER, 0, 2, 0}, {LOOK, 300, 4, 4}, {LOOK, 315, 4, 4}},
         -1},
        {"orders from before a restart that still start do",
         {{ORDER, 0, 2, 0}, {LOOK, 60, 4, 2}, {LOOK, 90, 4, 4}},
         90},
        {"without a ready count nothing is learnt",
         {{LOOK, 0, 2, -1}, {ORDER, 0, 2, 0}, {LOOK, 15, 4, -1}, {LOOK, 900, 4, -1}},
         -1},
        {"a start of ten hours is not a start-up time",
         {{LOOK, 0, 2, 2}, {ORDER, 0, 2, 0}, {LOOK, 15, 4, 2}, {LOOK, 18000, 4, 3}, {LOOK, 36000, 4, 4}},
         -1},
        {"from zero", {{LOOK, 0, 0, 0}, {ORDER, 0, 1, 0}, {LOOK, 15, 1, 0}, {LOOK, 75, 1, 1}}, 75},
};

static void walk(struct startup *s, const struct policy *p, const struct move *m)
{
	for (; m->what != END; m++)
		if (m->what == ORDER)
			startup_record_order(s, m->at_s * S, m->a);
		else
			startup_observe(s, p, m->at_s * S, m->a, m->b);
}

static void start_up_times_are_learnt_from_counts(void **state)
{
	const struct policy p = {.interval_ms = 15 * S};
	for (size_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
		struct startup s = STARTUP_INIT;
		walk(&s, &p, walks[i].moves);
		int64_t want_ms = walks[i].learnt_s < 0 ? -1 : walks[i].learnt_s * S;
		if (startup_ms(&s, &p) != want_ms)
			fail_msg("%s: %lld ms, must be %lld", walks[i].name, (long long)startup_ms(&s, &p),
			         (long long)want_ms);
	}
}

static void median_shrugs_off_outliers(void **state)
{
	static const struct {
		size_t n;
		int64_t starts_s[12];
		int64_t learnt_s;
	} rows[] = {
	        {1, {120}, 120},
	        {2, {100, 120}, 120},
	        {3, {120, 7200, 110}, 120},
	        {5, {120, 7200, 110, 1, 115}, 115},
	        {9, {1, 2, 3, 4, 5, 6, 7, 8, 9}, 5},
	        {12, {900, 900, 900, 100, 100, 100, 100, 100, 60, 60, 60, 60}, 100}, // the last nine
	};
	const struct policy p = {.interval_ms = 15 * S};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct startup s = STARTUP_INIT;
		for (size_t k = 0; k < rows[i].n; k++)
			startup_record_start(&s, rows[i].starts_s[k] * S);
		assert_int_equal(startup_ms(&s, &p), rows[i].learnt_s * S);
	}
}

static void given_start_time_wins_over_the_learnt_one(void **state)
{
	const struct policy p = {.startup = {.set = true, .given = true, .start_ms = 60 * S}};
	struct startup s = STARTUP_INIT;
	startup_record_start(&s, 300 * S);
	assert_int_equal(startup_ms(&s, &p), 60 * S);
}

static void capacity_to_come_is_what_was_ordered_lately(void **state)
{
	const struct policy p = {.interval_ms = 15 * S, .startup = {.set = true, .given = true, .start_ms = 60 * S}};
	struct startup s = STARTUP_INIT;
	startup_observe(&s, &p, 0, 2, 2);
	startup_record_order(&s, 0, 2);
	startup_observe(&s, &p, 30 * S, 4, 2);
	startup_record_order(&s, 30 * S, 4);
	assert_int_equal(startup_starting(&s, &p, 30 * S), 6);
	startup_observe(&s, &p, 45 * S, 8, 8); // ready early: it counts until its time is over
	assert_int_equal(startup_starting(&s, &p, 59 * S), 6);
	assert_int_equal(startup_starting(&s, &p, 60 * S), 4);
	assert_int_equal(startup_starting(&s, &p, 90 * S), 0);
	startup_observe(&s, &p, 90 * S, 8, 8);
	assert_int_equal(s.n_orders, 0);
	// any number of orders is survived, and none is lost
	for (int i = 0; i < 100; i++)
		startup_record_order(&s, (100 + i) * S, 1);
	assert_int_equal(startup_starting(&s, &p, 100 * S), 100);
	startup_record_order(&s, 300 * S, INT32_MAX);
	assert_int_equal(startup_starting(&s, &p, 300 * S), INT32_MAX);
}

// ---- the engine ----

static void start(struct engine *e, int32_t replicas, int64_t start_ms)
{
	engine_init(e, replicas);
	engine_add_value(e, "load", 10);
	e->policy.startup = (struct policy_startup){.set = true, .given = start_ms > 0, .start_ms = start_ms};
	engine_start(e);
}

// Decides on `load`, applies it, and lets 15 s pass; the replicas ordered stay unready until make_ready.
static const struct decision *tick(struct engine *e, double load, int32_t ready)
{
	e->seen.ready_replicas = ready;
	engine_show(e, 0, load);
	engine_tick(e);
	engine_apply(e);
	e->now_ms += 15 * S;
	return &e->decision;
}

static void starting_replicas_are_not_ordered_again(void **state)
{
	struct engine e;
	start(&e, 2, 120 * S);
	assert_int_equal(tick(&e, 20, 2)->desired, 4);
	// three of four ready and the load still twice the target: 6 without, 4 with what comes
	const struct decision *d = tick(&e, 20, 3);
	assert_int_equal(d->desired, 4);
	assert_int_equal(d->action, ACTION_NONE);
	assert_int_equal(d->reason, REASON_REPLICAS_STARTING);
	const struct trace_entry *t = &d->entries[d->driver];
	assert_int_equal(t->before, 6);
	assert_int_equal(t->after, 4);
	assert_int_equal(t->count, 2);
	assert_int_equal(t->window_ms, 120 * S);
	// more load than they were ordered for: the rest is ordered
	d = tick(&e, 40, 3);
	assert_int_equal(d->desired, 8);
	assert_int_equal(d->reason, REASON_REPLICAS_STARTING);
	// once the time is over, the ready ones are the base again
	e.now_ms += 120 * S;
	assert_int_equal(tick(&e, 20, 8)->desired, 16);
	engine_done(&e);
}

static void scale_down_stands_on_the_ready_ones(void **state)
{
	struct engine e;
	start(&e, 2, 120 * S);
	tick(&e, 40, 2);
	assert_int_equal(e.seen.spec_replicas, 8);
	assert_int_equal(tick(&e, 5, 8)->desired, 4); // not 1, as on the two from before
	engine_done(&e);
}

static void arithmetic_is_that_of_the_hpa_without_startup(void **state)
{
	struct engine e;
	start(&e, 2, 0);
	e.policy.startup.set = false;
	assert_int_equal(tick(&e, 20, 2)->desired, 4);
	assert_int_equal(tick(&e, 20, 3)->desired, 6);
	engine_done(&e);
}

static void learnt_time_is_used_shown_and_carried_over(void **state)
{
	struct engine e;
	start(&e, 2, 0);
	assert_int_equal(decide_startup_ms(&e.policy, e.state), -1);
	tick(&e, 20, 2);
	for (int i = 0; i < 5; i++)
		tick(&e, 20, 2);
	assert_int_equal(e.seen.spec_replicas, 4);
	tick(&e, 10, 4); // at 90 s
	assert_int_equal(decide_startup_ms(&e.policy, e.state), 90 * S);
	const struct trace_entry *t = engine_find(&e, REASON_STARTUP_LEARNT);
	assert_non_null(t);
	assert_int_equal(t->duration_ms, 90 * S);
	assert_int_equal(t->window_ms, 90 * S);
	assert_int_equal(t->count, 1);
	assert_int_equal(tick(&e, 20, 4)->desired, 8);
	assert_int_equal(tick(&e, 20, 5)->reason, REASON_REPLICAS_STARTING);

	struct engine next = e; // another policy for the same target keeps what was learnt
	next.policy.max_replicas = 500;
	next.state = NULL;
	engine_start(&next);
	decide_state_migrate(&e.policy, e.state, &next.policy, next.state);
	assert_int_equal(decide_startup_ms(&next.policy, next.state), 90 * S);
	engine_done(&next);
	engine_done(&e);
}

static void restart_goes_on_counting_what_comes(void **state)
{
	struct engine e;
	start(&e, 4, 120 * S); // 2 of them ordered 30 s ago, by the process before
	decide_record_scale(&e.policy, e.state, e.now_ms - 30 * S, 2, 4);
	decide_record_start(&e.policy, e.state, 100 * S);
	assert_int_equal(tick(&e, 20, 3)->desired, 4);
	assert_int_equal(e.decision.reason, REASON_REPLICAS_STARTING);
	engine_done(&e);
}

static void recent_orders_replace_a_missing_ready_count(void **state)
{
	struct engine e;
	start(&e, 2, 120 * S);
	assert_int_equal(tick(&e, 20, -1)->desired, 4);
	assert_int_equal(tick(&e, 20, -1)->desired, 4); // 8 on a base of 4
	e.now_ms += 120 * S;
	assert_int_equal(tick(&e, 20, -1)->desired, 8);
	engine_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(start_up_times_are_learnt_from_counts),
	        cmocka_unit_test(median_shrugs_off_outliers),
	        cmocka_unit_test(given_start_time_wins_over_the_learnt_one),
	        cmocka_unit_test(capacity_to_come_is_what_was_ordered_lately),
	        cmocka_unit_test(starting_replicas_are_not_ordered_again),
	        cmocka_unit_test(scale_down_stands_on_the_ready_ones),
	        cmocka_unit_test(arithmetic_is_that_of_the_hpa_without_startup),
	        cmocka_unit_test(learnt_time_is_used_shown_and_carried_over),
	        cmocka_unit_test(restart_goes_on_counting_what_comes),
	        cmocka_unit_test(recent_orders_replace_a_missing_ready_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
