// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a target goes to its idle level only after being seen quiet, ready and with all data for long
// enough, never because of an outage; and it wakes by its activation signal alone, at once.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "test/support/engine.h"

#define GONE NAN
#define ASIS (-2) // ready: as many as spec

#define UP   ACTION_SCALE_UP
#define DOWN ACTION_SCALE_DOWN
#define HELD ACTION_HOLD
#define NONE ACTION_NONE

// One tick of 15 s: what the activation signal `queue` and the utilisation `load` show, and how many are ready.
struct tick_row {
	double queue, load; // GONE = the query fails
	int32_t ready;
	int32_t want;
	enum action action;
	enum reason reason;
};

struct walk {
	const char *name;
	int32_t min, replicas;
	struct policy_idle idle;
	struct tick_row ticks[12]; // until action HELD and want 0 and ready 0: an empty row
};

#define FINE    REASON_DESIRED_WITHIN_RANGE
#define REACHED REASON_IDLE_REACHED
#define FEW     REASON_TOO_FEW_REPLICAS
#define IDLE    REASON_IDLE
#define WAKE    REASON_ACTIVATED
#define BLIND   REASON_ACTIVATION_UNKNOWN
#define PART    REASON_PARTIAL_SIGNALS
#define END                                                                                                            \
	{                                                                                                              \
		0, 0, -9, 0, NONE, FINE                                                                                \
	}

// queue: watermarks 2 .. 8, Absolute; load: target 10.
static const struct walk walks[] = {
        {"quiet for long enough, it goes to zero and stays",
         1,
         2,
         {.after_ms = 30000},
         {{0, 10, ASIS, 2, NONE, FINE}, // the queue asks for 1, the load for 2
          {0, 10, ASIS, 2, NONE, FINE},
          {0, 10, ASIS, 0, DOWN, REACHED},
          {0, GONE, ASIS, 0, NONE, IDLE}, // without replicas there is no load
          {0, GONE, ASIS, 0, NONE, IDLE},
          END}},
        {"with minReplicas 0 it is never below 1 before",
         0,
         2,
         {.after_ms = 30000},
         {{0, 0, ASIS, 1, DOWN, FINE},
          {0, 0, ASIS, 1, NONE, FINE},
          {0, 0, ASIS, 0, DOWN, REACHED},
          {0, 0, ASIS, 0, NONE, IDLE},
          END}},
        {"activity winds the timer anew",
         1,
         2,
         {.after_ms = 30000},
         {{0, 10, ASIS, 2, NONE, FINE},
          {0, 10, ASIS, 2, NONE, FINE},
          {5, 10, ASIS, 2, NONE, FINE},
          {0, 10, ASIS, 2, NONE, FINE},
          {0, 10, ASIS, 2, NONE, FINE},
          {0, 10, ASIS, 0, DOWN, REACHED},
          END}},
        {"an outage of the activation signal is not a lack of activity, and restarts the timer",
         1,
         2,
         {.after_ms = 30000},
         {{0, 10, ASIS, 2, NONE, FINE},
          {0, 10, ASIS, 2, NONE, FINE},
          {GONE, 10, ASIS, 2, HELD, PART},
          {GONE, 10, ASIS, 2, HELD, PART},
          {GONE, GONE, ASIS, 2, HELD, REASON_QUERY_FAILED},
          {0, 10, ASIS, 2, NONE, FINE},
          {0, 10, ASIS, 2, NONE, FINE},
          {0, 10, ASIS, 0, DOWN, REACHED},
          END}},
        {"an outage of another signal holds too",
         1,
         2,
         {.after_ms = 15000},
         {{0, 10, ASIS, 2, NONE, FINE},
          {0, GONE, ASIS, 2, HELD, PART},
          {0, GONE, ASIS, 2, HELD, PART},
          {0, 10, ASIS, 0, DOWN, REACHED},
          END}},
        {"another signal that asks for more keeps it awake", 1, 2, {.after_ms = 0}, {{0, 30, ASIS, 6, UP, FINE}, END}},
        {"never while the workload is starting",
         1,
         2,
         {.after_ms = 30000},
         {{0, 10, 1, 2, NONE, FINE},
          {0, 10, 1, 2, NONE, FINE},
          {0, 10, 1, 2, NONE, FINE},
          {0, 10, 1, 2, NONE, FINE},
          {0, 10, 2, 2, NONE, FINE},
          {0, 10, 2, 2, NONE, FINE},
          {0, 10, 2, 0, DOWN, REACHED},
          END}},
        {"the initial cooldown is waited for",
         1,
         2,
         {.after_ms = 15000, .initial_cooldown_ms = 60000},
         {{0, 10, ASIS, 2, NONE, FINE},
          {0, 10, ASIS, 2, NONE, FINE},
          {0, 10, ASIS, 2, NONE, FINE},
          {0, 10, ASIS, 2, NONE, FINE},
          {0, 10, ASIS, 0, DOWN, REACHED},
          END}},
        {"at zero the activation signal alone wakes, to minReplicas",
         3,
         0,
         {.after_ms = 30000},
         {{0, 50, 0, 0, NONE, IDLE},
          {1, GONE, 0, 3, UP, WAKE},
          {0, GONE, 0, 3, HELD, REASON_ALL_SIGNALS_MISSING},
          END}},
        {"as many as the signals ask for, when they can", 1, 0, {.after_ms = 30000}, {{20, 50, 0, 5, UP, WAKE}, END}},
        {"at zero and without data, it stays and the trace says so",
         1,
         0,
         {.after_ms = 30000},
         {{GONE, 50, 0, 0, HELD, BLIND}, {GONE, GONE, 0, 0, HELD, BLIND}, {0, GONE, 0, 0, NONE, IDLE}, END}},
        {"an idle level above zero",
         4,
         4,
         {.after_ms = 15000, .replicas = 1},
         {{0, 10, ASIS, 4, NONE, FINE},
          {0, 10, ASIS, 1, DOWN, REACHED},
          {0, 10, ASIS, 1, NONE, IDLE},
          {3, 10, ASIS, 4, UP, WAKE},
          END}},
        {"a scale between idle and minimum goes up to the minimum",
         4,
         2,
         {.after_ms = 15000, .replicas = 1},
         {{0, 10, ASIS, 4, UP, FEW}, END}},
        {"a mark of its own: what is not above it is quiet",
         1,
         2,
         {.after_ms = 15000, .activation = {.above = 3}},
         {{3, 10, ASIS, 2, NONE, FINE},
          {3, 10, ASIS, 0, DOWN, REACHED},
          {3, GONE, ASIS, 0, NONE, IDLE},
          {3.01, GONE, ASIS, 1, UP, WAKE},
          END}},
};

static void show(struct engine *e, size_t signal, double value)
{
	if (isnan(value))
		engine_show_state(e, signal, OBS_FAILED);
	else
		engine_show(e, signal, value);
}

static void start(struct engine *e, int32_t min, int32_t replicas, const struct policy_idle *idle)
{
	engine_init(e, replicas);
	e->policy.min_replicas = min;
	e->policy.idle = *idle;
	e->policy.idle.set = true;
	e->policy.idle.activation.signal = "queue";
	e->policy.idle.activation.index = 0;
	engine_add_watermarks(e, "queue", 2, 8, WATERMARK_ABSOLUTE);
	engine_add_value(e, "load", 10);
	engine_start(e);
}

static void target_follows_each_sequence(void **state)
{
	for (size_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
		const struct walk *w = &walks[i];
		struct engine e;
		start(&e, w->min, w->replicas, &w->idle);
		for (size_t k = 0; w->ticks[k].ready != -9; k++) {
			const struct tick_row *r = &w->ticks[k];
			show(&e, 0, r->queue);
			show(&e, 1, r->load);
			e.seen.ready_replicas = r->ready == ASIS ? e.seen.spec_replicas : r->ready;
			const struct decision *d = engine_tick(&e);
			if (d->desired != r->want || d->action != r->action || d->reason != r->reason)
				fail_msg("%s: tick %zu: %d %s %s, must be %d %s %s", w->name, k, d->desired,
				         action_names[d->action], reason_info(d->reason)->name, r->want,
				         action_names[r->action], reason_info(r->reason)->name);
			if (d->desired < d->min_replicas || d->desired > d->max_replicas)
				fail_msg("%s: tick %zu: %d is outside of %d..%d", w->name, k, d->desired,
				         d->min_replicas, d->max_replicas);
			engine_apply(&e);
			e.now_ms += 15000;
		}
		engine_done(&e);
	}
}

static void waking_does_not_wait_for_rate_cooldown_or_windows(void **state)
{
	struct engine e;
	start(&e, 2, 0, &(struct policy_idle){.after_ms = 30000});
	e.policy.cooldown.up_ms = 600000;
	e.signals[0].window = (struct policy_window){true, 120000, WINDOW_AVG, 0};
	e.policy.scale_up.stabilization_window_ms = 300000;
	engine_add_rate(&e, +1, RATE_PODS, 1, 60000);
	engine_start(&e);
	decide_record_scale(&e.policy, e.state, e.now_ms, 4, 0);
	engine_show(&e, 0, 1);
	engine_show_state(&e, 1, OBS_EMPTY);
	assert_int_equal(engine_tick(&e)->desired, 2);
	assert_int_equal(e.decision.reason, REASON_ACTIVATED);
	engine_done(&e);
}

static void guards_do_not_keep_it_below_its_minimum(void **state)
{
	struct engine e;
	start(&e, 4, 2, &(struct policy_idle){.after_ms = 30000, .replicas = 2});
	e.policy.guards = (struct policy_guards){.set = true, .max_step = 1, .min_available_percent = 100};
	e.seen.ready_replicas = 1;
	engine_show(&e, 0, 1);
	engine_show(&e, 1, 10);
	assert_int_equal(engine_tick(&e)->desired, 4);
	engine_show(&e, 1, 90); // nine times the target
	e.seen.ready_replicas = 2;
	assert_int_equal(engine_tick(&e)->desired, 4); // and no further in one step
	assert_int_equal(e.decision.reason, REASON_MAX_STEP);
	engine_done(&e);
}

static void window_that_still_shows_activity_keeps_it_awake(void **state)
{
	struct engine e;
	start(&e, 1, 2, &(struct policy_idle){.after_ms = 0});
	e.signals[0].window = (struct policy_window){true, 45000, WINDOW_MAX, 1};
	engine_start(&e);
	static const double shown[] = {5, 0, 0, 0};
	for (size_t i = 0; i < 4; i++, e.now_ms += 15000) {
		engine_show(&e, 0, shown[i]);
		engine_show(&e, 1, 10);
		assert_int_equal(engine_tick(&e)->desired, i < 3 ? 2 : 0);
	}
	engine_done(&e);
}

static void pending_idle_is_traced(void **state)
{
	struct engine e;
	start(&e, 1, 2, &(struct policy_idle){.after_ms = 60000});
	engine_show(&e, 0, 0);
	engine_show(&e, 1, 10);
	engine_tick(&e);
	e.now_ms += 15000;
	engine_tick(&e);
	const struct trace_entry *t = engine_find(&e, REASON_IDLE_PENDING);
	assert_non_null(t);
	assert_int_equal(t->duration_ms, 45000);
	assert_int_equal(e.decision.reason, REASON_DESIRED_WITHIN_RANGE);
	engine_done(&e);
}

static void scale_outside_its_bounds_says_why_it_is_not_idle(void **state)
{
	struct engine e;
	start(&e, 1, 20000, &(struct policy_idle){.after_ms = 60000});
	engine_show(&e, 0, 0);
	engine_show(&e, 1, 10);
	assert_int_equal(engine_tick(&e)->reason, REASON_TOO_MANY_REPLICAS);
	assert_non_null(engine_find(&e, REASON_IDLE_SUSPENDED));
	engine_done(&e);
}

// Ticks for two hours without demand while no replica is ready for longer than a tick. Returns the number of ticks
// until the target is idle; -1 when it never is. Every tick says why not.
static int ticks_of_a_crash_loop(struct engine *e, int ready_every, double queue, double load)
{
	for (int i = 0; i < 480; i++, e->now_ms += 15000) {
		e->seen.ready_replicas = ready_every > 0 && i % ready_every == 0 ? e->seen.spec_replicas : 0;
		e->seen.pending_replicas = 0;
		show(e, 0, queue);
		if (isnan(load))
			engine_show_state(e, 1, OBS_EMPTY);
		else
			engine_show(e, 1, load);
		if (engine_tick(e)->desired == 0)
			return i;
		bool says_why = false;
		for (size_t k = 0; k < e->decision.n_trace; k++)
			says_why |= e->decision.entries[k].stage == STAGE_IDLE;
		assert_true(says_why);
	}
	return -1;
}

static void crash_loop_without_demand_becomes_idle(void **state)
{
	static const struct {
		const char *name;
		int64_t startup_ms; // 0: unknown
		int ready_every;
		double queue, load;
		int want;
	} cases[] = {
	        {"three times five minutes, then idle.after", 0, 0, 0, 10, 60 + 8},
	        {"three times the start-up time", 120000, 0, 0, 10, 24 + 8},
	        {"at least three minutes", 5000, 0, 0, 10, 12 + 8},
	        {"ready for moments only", 120000, 5, 0, 10, 24 + 1 + 8},
	        {"without replicas there is no load", 120000, 0, 0, NAN, 24 + 8},
	        {"demand keeps it", 120000, 0, 3, 10, -1},
	        {"a load that asks for more keeps it", 120000, 0, 0, 30, -1},
	        {"missing demand keeps it", 120000, 0, GONE, 10, -1},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct engine e;
		start(&e, 1, 1, &(struct policy_idle){.after_ms = 120000});
		e.policy.startup = (struct policy_startup){true, cases[i].startup_ms > 0, cases[i].startup_ms};
		engine_start(&e);
		int n = ticks_of_a_crash_loop(&e, cases[i].ready_every, cases[i].queue, cases[i].load);
		if (n != cases[i].want)
			fail_msg("%s: %d ticks, must be %d", cases[i].name, n, cases[i].want);
		engine_done(&e);
	}
}

static void fallback_brings_it_back_when_nothing_can_be_seen(void **state)
{
	struct engine e;
	start(&e, 1, 0, &(struct policy_idle){.after_ms = 60000});
	e.policy.fallback = (struct policy_fallback){.set = true, .failure_threshold = 1, .replicas = 3};
	engine_start(&e);
	engine_show_state(&e, 1, OBS_EMPTY);
	engine_show(&e, 0, 0);
	for (int i = 0; i < 5; i++, e.now_ms += 15000) // missing load without pods is not a failure
		assert_int_equal(engine_tick(&e)->desired, 0);
	engine_show_state(&e, 0, OBS_FAILED);
	assert_int_equal(engine_tick(&e)->desired, 0);
	e.now_ms += 15000;
	assert_int_equal(engine_tick(&e)->desired, 3);
	assert_int_equal(e.decision.reason, REASON_FALLBACK_ACTIVE);
	engine_done(&e);
}

static void target_at_zero_is_left_alone_without_idle(void **state)
{
	struct engine e;
	start(&e, 1, 0, &(struct policy_idle){.after_ms = 60000});
	e.policy.idle.set = false;
	engine_show(&e, 0, 50);
	engine_show(&e, 1, 50);
	assert_int_equal(engine_tick(&e)->reason, REASON_SCALING_DISABLED);
	e.policy.idle.set = true; // and so it is when zero is not the idle level
	e.policy.min_replicas = 4;
	e.policy.idle.replicas = 1;
	assert_int_equal(engine_tick(&e)->reason, REASON_SCALING_DISABLED);
	engine_done(&e);
}

static void timer_survives_another_policy_that_means_the_same(void **state)
{
	for (int same = 0; same <= 1; same++) {
		struct engine e, next;
		start(&e, 1, 2, &(struct policy_idle){.after_ms = 30000});
		engine_show(&e, 0, 0);
		engine_show(&e, 1, 10);
		engine_tick(&e);
		next = e;
		next.policy.signals = next.signals;
		next.seen.signals = next.seen_signals;
		next.policy.max_replicas = 50;
		next.policy.idle.activation.above = same ? 0 : -1;
		next.state = NULL;
		engine_start(&next);
		decide_state_migrate(&e.policy, e.state, &next.policy, next.state);
		next.policy.idle.activation.above = 0;
		next.now_ms += 30000;
		engine_show(&next, 0, 0);
		engine_show(&next, 1, 10);
		assert_int_equal(engine_tick(&next)->desired, same ? 0 : 2);
		engine_done(&e);
		engine_done(&next);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(target_follows_each_sequence),
	        cmocka_unit_test(waking_does_not_wait_for_rate_cooldown_or_windows),
	        cmocka_unit_test(guards_do_not_keep_it_below_its_minimum),
	        cmocka_unit_test(window_that_still_shows_activity_keeps_it_awake),
	        cmocka_unit_test(pending_idle_is_traced),
	        cmocka_unit_test(scale_outside_its_bounds_says_why_it_is_not_idle),
	        cmocka_unit_test(crash_loop_without_demand_becomes_idle),
	        cmocka_unit_test(fallback_brings_it_back_when_nothing_can_be_seen),
	        cmocka_unit_test(target_at_zero_is_left_alone_without_idle),
	        cmocka_unit_test(timer_survives_another_policy_that_means_the_same),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
