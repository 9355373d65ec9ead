// SPDX-License-Identifier: Apache-2.0
// Goal of this test: fallback decides only when the signals have failed for long, never makes zero of an error, leaves
// healthy signals alone unless asked, and lifts by itself once the data has come back to stay.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "policies/engine/state.h"
#include "test/support/engine.h"

#define GONE NAN

// KEDA: pkg/fallback/fallback.go, and 1 where KEDA would take zero.
static void each_behavior_has_its_number(void **state)
{
	static const struct {
		int behavior;
		int32_t replicas, current, want;
	} rows[] = {
	        {FALLBACK_STATIC, 6, 3, 6},
	        {FALLBACK_STATIC, 6, 9, 6},
	        {FALLBACK_STATIC, 6, 0, 6},
	        {FALLBACK_CURRENT, 0, 3, 3},
	        {FALLBACK_CURRENT, 0, 0, 1}, // as KEDA wakes a target whose triggers have failed
	        {FALLBACK_CURRENT_IF_HIGHER, 6, 3, 6},
	        {FALLBACK_CURRENT_IF_HIGHER, 6, 9, 9},
	        {FALLBACK_CURRENT_IF_HIGHER, 6, 0, 6},
	        {FALLBACK_CURRENT_IF_LOWER, 6, 3, 3},
	        {FALLBACK_CURRENT_IF_LOWER, 6, 9, 6},
	        {FALLBACK_CURRENT_IF_LOWER, 6, 0, 1},
	        {FALLBACK_STATIC, 0, 4, 1}, // an error is not zero
	        {FALLBACK_CURRENT_IF_LOWER, 0, 4, 1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct policy_fallback f = {
		        .set = true, .behavior = rows[i].behavior, .replicas = rows[i].replicas};
		assert_int_equal(fallback_replicas(&f, rows[i].current), rows[i].want);
	}
}

// Two signals of type Replicas at 10 replicas; each row is one walk, a tick per column.
struct tick_row {
	double first, second; // GONE = the query fails
	int32_t want;
	enum action action;
	enum reason reason;
};

#define UP   ACTION_SCALE_UP
#define DOWN ACTION_SCALE_DOWN
#define HELD ACTION_HOLD
#define NONE ACTION_NONE
#define FINE REASON_DESIRED_WITHIN_RANGE
#define PART REASON_PARTIAL_SIGNALS
#define FAIL REASON_QUERY_FAILED
#define BACK REASON_FALLBACK_ACTIVE
#define LIFT REASON_FALLBACK_LIFTING

static const struct {
	const char *name;
	struct policy_fallback fallback;
	int combine, on_missing;
	struct tick_row ticks[10]; // until want 0
} walks[] = {
        {"below the threshold the scale is held",
         {.failure_threshold = 2, .replicas = 20},
         COMBINE_MAX,
         ON_MISSING_HOLD,
         {{GONE, GONE, 10, HELD, FAIL},
          {GONE, GONE, 10, HELD, FAIL},
          {10, 10, 10, NONE, FINE},
          {GONE, GONE, 10, HELD, FAIL}}},
        {"beyond it the fallback decides, and lifts after as many good ticks",
         {.failure_threshold = 2, .replicas = 20},
         COMBINE_MAX,
         ON_MISSING_HOLD,
         {{GONE, GONE, 10, HELD, FAIL},
          {GONE, GONE, 10, HELD, FAIL},
          {GONE, GONE, 20, UP, BACK},
          {GONE, GONE, 20, HELD, BACK},
          {5, 5, 20, NONE, LIFT},
          {5, 5, 5, DOWN, FINE}}},
        {"data that comes and goes does not pull the scale up and down",
         {.failure_threshold = 1, .replicas = 20},
         COMBINE_MAX,
         ON_MISSING_HOLD,
         {{GONE, GONE, 10, HELD, FAIL},
          {GONE, GONE, 20, UP, BACK},
          {5, GONE, 20, HELD, PART},
          {GONE, GONE, 20, HELD, FAIL},
          {5, GONE, 20, HELD, PART},
          {5, 30, 30, UP, FINE}, // more is given at once
          {5, 5, 5, DOWN, FINE}}},
        {"a healthy signal goes on deciding",
         {.failure_threshold = 1, .replicas = 20},
         COMBINE_MAX,
         ON_MISSING_HOLD,
         {{5, GONE, 10, HELD, PART}, {5, GONE, 10, HELD, PART}, {5, GONE, 10, HELD, PART}, {12, GONE, 12, UP, FINE}}},
        {"with Any, each failed signal asks for the fallback",
         {.failure_threshold = 1, .replicas = 8, .when = FALLBACK_ANY},
         COMBINE_MAX,
         ON_MISSING_HOLD,
         {{5, GONE, 10, HELD, PART}, {5, GONE, 8, DOWN, BACK}, {12, GONE, 12, UP, BACK}, {2, 2, 2, DOWN, FINE}}},
        {"with Any and Min, the smaller of both",
         {.failure_threshold = 0, .replicas = 8, .when = FALLBACK_ANY},
         COMBINE_MIN,
         ON_MISSING_HOLD,
         {{5, GONE, 5, DOWN, BACK}, {12, GONE, 8, UP, BACK}}},
        {"with Any, a signal that is only just missing is not overruled downwards",
         {.failure_threshold = 1, .replicas = 3, .when = FALLBACK_ANY},
         COMBINE_MAX,
         ON_MISSING_HOLD,
         {{10, GONE, 10, HELD, PART}, {GONE, GONE, 10, HELD, BACK}, {GONE, GONE, 3, DOWN, BACK}}},
        {"Static can go down, but not at once: the threshold holds first",
         {.failure_threshold = 1, .replicas = 4},
         COMBINE_MAX,
         ON_MISSING_HOLD,
         {{GONE, GONE, 10, HELD, FAIL}, {GONE, GONE, 4, DOWN, BACK}, {GONE, GONE, 4, HELD, BACK}}},
        {"IfHigher never goes down",
         {.failure_threshold = 0, .replicas = 4, .behavior = FALLBACK_CURRENT_IF_HIGHER},
         COMBINE_MAX,
         ON_MISSING_HOLD,
         {{GONE, GONE, 10, HELD, BACK}, {GONE, GONE, 10, HELD, BACK}}},
        {"ignored signals alone count when there is no other",
         {.failure_threshold = 1, .replicas = 20},
         COMBINE_MAX,
         ON_MISSING_IGNORE,
         {{GONE, GONE, 10, HELD, FAIL}, {GONE, GONE, 20, UP, BACK}}},
        {"a signal that is ignored does not count beside one that is read",
         {.failure_threshold = 0, .replicas = 20, .when = FALLBACK_ANY},
         COMBINE_MAX,
         ON_MISSING_IGNORE,
         {{5, GONE, 5, DOWN, FINE}, {5, GONE, 5, NONE, FINE}}},
        {"bounds win",
         {.failure_threshold = 0, .replicas = 2000},
         COMBINE_MAX,
         ON_MISSING_HOLD,
         {{GONE, GONE, 1000, UP, REASON_TOO_MANY_REPLICAS}}},
};

static void show(struct engine *e, size_t signal, double value)
{
	if (isnan(value))
		engine_show_state(e, signal, OBS_FAILED);
	else
		engine_show(e, signal, value);
}

static void fallback_follows_each_sequence(void **state)
{
	for (size_t i = 0; i < sizeof walks / sizeof walks[0]; i++) {
		struct engine e;
		engine_init(&e, 10);
		e.policy.combine = walks[i].combine;
		e.policy.fallback = walks[i].fallback;
		e.policy.fallback.set = true;
		engine_add_replicas(&e, "first")->on_missing = walks[i].on_missing;
		engine_add_replicas(&e, "second")->on_missing = walks[i].on_missing;
		engine_start(&e);
		for (size_t k = 0; walks[i].ticks[k].want != 0; k++) {
			const struct tick_row *r = &walks[i].ticks[k];
			show(&e, 0, r->first);
			show(&e, 1, r->second);
			const struct decision *d = engine_tick(&e);
			if (d->desired != r->want || d->action != r->action || d->reason != r->reason)
				fail_msg("%s: tick %zu: %d %s %s, must be %d %s %s", walks[i].name, k, d->desired,
				         action_names[d->action], reason_info(d->reason)->name, r->want,
				         action_names[r->action], reason_info(r->reason)->name);
			engine_apply(&e);
			e.now_ms += 15000;
		}
		engine_done(&e);
	}
}

static void missing_ready_replica_is_not_a_failure(void **state)
{
	struct engine e;
	engine_init(&e, 4);
	engine_add_value(&e, "load", 10);
	e.policy.fallback = (struct policy_fallback){.set = true, .failure_threshold = 0, .replicas = 9};
	engine_start(&e);
	engine_show(&e, 0, 20);
	e.seen.ready_replicas = 0;
	assert_int_equal(engine_tick(&e)->desired, 4);
	assert_int_equal(e.decision.reason, REASON_NO_READY_REPLICAS);
	engine_done(&e);
}

static void window_that_fills_is_not_a_failure(void **state)
{
	struct engine e;
	engine_init(&e, 4);
	engine_add_value(&e, "load", 10)->window = (struct policy_window){true, 60000, WINDOW_AVG, 0};
	e.policy.fallback = (struct policy_fallback){.set = true, .failure_threshold = 1, .replicas = 9};
	engine_start(&e);
	for (int i = 0; i < 3; i++, e.now_ms += 15000) {
		engine_show(&e, 0, 10);
		assert_int_equal(engine_tick(&e)->reason, REASON_WINDOW_FILLING);
	}
	engine_done(&e);
}

static void limits_apply_to_a_fallback_too(void **state)
{
	struct engine e;
	engine_init(&e, 10);
	engine_add_replicas(&e, "asked");
	engine_add_rate(&e, +1, RATE_PODS, 2, 60000);
	e.policy.fallback = (struct policy_fallback){.set = true, .failure_threshold = 0, .replicas = 20};
	engine_start(&e);
	engine_show_state(&e, 0, OBS_FAILED);
	assert_int_equal(engine_tick(&e)->desired, 12);
	assert_int_equal(e.decision.reason, REASON_SCALE_UP_LIMIT);
	engine_done(&e);
}

static void failures_are_counted_while_the_scale_is_out_of_its_bounds(void **state)
{
	struct engine e;
	engine_init(&e, 2000);
	engine_add_replicas(&e, "asked");
	e.policy.fallback = (struct policy_fallback){.set = true, .failure_threshold = 1, .replicas = 20};
	engine_start(&e);
	engine_show_state(&e, 0, OBS_FAILED);
	assert_int_equal(engine_tick(&e)->desired, 1000);
	engine_apply(&e);
	e.now_ms += 15000;
	assert_int_equal(engine_tick(&e)->desired, 20);
	const struct trace_entry *t = engine_find(&e, REASON_FALLBACK_ACTIVE);
	assert_int_equal(t->count, 2);
	assert_true(t->limit == 1);
	engine_done(&e);
}

static void another_policy_does_not_forget_the_failures(void **state)
{
	struct engine e, next;
	engine_init(&e, 10);
	engine_add_replicas(&e, "asked");
	e.policy.fallback = (struct policy_fallback){.set = true, .failure_threshold = 1, .replicas = 20};
	engine_start(&e);
	engine_show_state(&e, 0, OBS_FAILED);
	engine_tick(&e);
	next = e;
	next.policy.signals = next.signals;
	next.policy.fallback.replicas = 30;
	next.state = NULL;
	engine_start(&next);
	decide_state_migrate(&e.policy, e.state, &next.policy, next.state);
	next.seen.signals = next.seen_signals;
	next.now_ms += 15000;
	assert_int_equal(engine_tick(&next)->desired, 30);
	engine_done(&e);
	engine_done(&next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(each_behavior_has_its_number),
	        cmocka_unit_test(fallback_follows_each_sequence),
	        cmocka_unit_test(missing_ready_replica_is_not_a_failure),
	        cmocka_unit_test(window_that_fills_is_not_a_failure),
	        cmocka_unit_test(limits_apply_to_a_fallback_too),
	        cmocka_unit_test(failures_are_counted_while_the_scale_is_out_of_its_bounds),
	        cmocka_unit_test(another_policy_does_not_forget_the_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
