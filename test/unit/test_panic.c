// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a burst is met as Knative meets it: from the threshold on the short window decides, nothing is
// taken away, and one stable window after the last time it is over.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "policies/engine/number.h"
#include "policies/engine/proposal.h"
#include "policies/engine/state.h"
#include "test/support/engine.h"

#define STABLE_MS 60000

// One decision each: what the two windows ask for (target 10), ready pods, and what must come out.
struct step {
	int64_t at_ms;
	int32_t stable, wanted, ready;
	int32_t want;
	bool panics;
};
struct sequence {
	const char *name;
	struct step steps[8];
};

static const struct sequence sequences[] = {
        {"below the threshold the stable window decides", {{0, 4, 5, 3, 4, false}, {2000, 5, 5, 3, 5, false}}},
        {"at the threshold the panic window does", {{0, 1, 6, 3, 6, true}}},
        {"the larger of both counts", {{0, 20, 10, 5, 20, true}}},
        {"none ready counts as one", {{0, 1, 1, 0, 1, false}, {2000, 1, 2, 0, 2, true}}},
        {"twice the load, then growth, then no way down",
         {{0, 5, 10, 1, 10, true},
          {2000, 5, 36, 10, 36, true},
          {4000, 30, 12, 36, 36, true},
          {6000, 40, 12, 36, 40, true}}},
        {"it ends more than one stable window after it was last over",
         {{0, 10, 10, 1, 10, true},
          {2000, 10, 5, 10, 10, true},
          {60000, 1, 1, 10, 10, true}, // exactly one window: not yet
          {60001, 1, 1, 10, 1, false}}},
        {"each time over the threshold starts the window again",
         {{0, 10, 10, 1, 10, true},
          {50000, 3, 20, 10, 20, true},
          {61000, 3, 3, 20, 20, true},
          {110001, 3, 3, 20, 3, false}}},
        {"a second panic does not remember the first",
         {{0, 10, 50, 1, 50, true}, {60001, 2, 2, 50, 2, false}, {70000, 2, 4, 2, 4, true}}},
};

static void sequences_end_as_knatives(void **state)
{
	for (size_t k = 0; k < sizeof sequences / sizeof sequences[0]; k++) {
		struct panic s = PANIC_NONE;
		for (size_t i = 0; i < 8 && (i == 0 || sequences[k].steps[i].at_ms > 0); i++) {
			const struct step *x = &sequences[k].steps[i];
			int32_t got;
			int64_t left_ms;
			bool panics = panic_observe(&s, x->at_ms, x->wanted, x->stable, x->ready, 2, STABLE_MS, &got,
			                            &left_ms);
			if (got != x->want || panics != x->panics)
				fail_msg("%s, step %zu: %d %d, must be %d %d", sequences[k].name, i, got, panics,
				         x->want, x->panics);
			assert_true(left_ms >= 0 && left_ms <= STABLE_MS && (panics || left_ms == 0));
		}
	}
}

// Knative's own words, one variable after the other, without its clamps.
static void random_traces_end_as_knatives(void **state)
{
	srand(11);
	int panics_seen = 0, ends_seen = 0;
	for (int trace = 0; trace < 200; trace++) {
		struct panic s = PANIC_NONE;
		int64_t panic_time = 0, now = 1000000;
		bool zero = true;
		int32_t max_panic_pods = 0;
		for (int i = 0; i < 500; i++, now += 1000 * (1 + rand() % 20)) {
			int32_t stable = rand() % 30, panic = rand() % (rand() % 6 ? 15 : 60), ready = rand() % 20;
			double threshold = 1.5 + rand() % 4 * 0.5;
			bool over = (double)panic / (double)(ready > 1 ? ready : 1) >= threshold;
			if (over) {
				panic_time = now;
				zero = false;
			} else if (!zero && panic_time + STABLE_MS < now) {
				zero = true;
				max_panic_pods = 0;
				ends_seen++;
			}
			int32_t desired = stable, got;
			if (!zero) {
				panics_seen++;
				if (desired < panic)
					desired = panic;
				if (desired > max_panic_pods)
					max_panic_pods = desired;
				else
					desired = max_panic_pods;
			}
			int64_t left_ms;
			bool panics =
			        panic_observe(&s, now, panic, stable, ready, threshold, STABLE_MS, &got, &left_ms);
			assert_int_equal(panics, !zero);
			assert_int_equal(got, desired);
		}
	}
	assert_true(panics_seen > 1000 && ends_seen > 100);
}

static void load_is_what_each_kind_of_signal_says(void **state)
{
	struct policy_signal total = {.target = {.set = true, .type = TARGET_AVERAGE_VALUE, .value = 10}};
	struct policy_signal value = {.target = {.set = true, .type = TARGET_VALUE, .value = 10}};
	struct policy_signal replicas = {.target = {.set = true, .type = TARGET_REPLICAS}};
	struct policy_signal average = {.watermarks = {.set = true, .high = 10, .algorithm = WATERMARK_AVERAGE}};
	struct policy_signal absolute = {.watermarks = {.set = true, .high = 10, .algorithm = WATERMARK_ABSOLUTE}};
	struct replica_counts counts = {.spec = 4, .status = 4, .ready = 3};
	assert_int_equal(panic_wanted(&total, 45, &counts), 5);
	assert_int_equal(panic_wanted(&value, 15, &counts), 5); // 4.5
	assert_int_equal(panic_wanted(&replicas, 4.2, &counts), 5);
	assert_int_equal(panic_wanted(&average, 45, &counts), 5);
	assert_int_equal(panic_wanted(&absolute, 15, &counts), 5);
	assert_int_equal(panic_wanted(&total, -45, &counts), 0);
	assert_int_equal(panic_wanted(&total, 1e300, &counts), INT32_MAX);
	counts.ready = 0;
	assert_int_equal(panic_wanted(&value, 15, &counts), 2);
}

// ---- in the engine ----

static void make(struct engine *e)
{
	engine_init(e, 2);
	struct policy_signal *s = engine_add_value(e, "load", 10);
	s->target.type = TARGET_AVERAGE_VALUE;
	s->window = (struct policy_window){true, 60000, WINDOW_AVG, 0};
	e->policy.interval_ms = 2000;
	e->policy.panic = (struct policy_panic){.set = true, .signal = "load", .window_ms = 6000, .threshold = 2};
	engine_start(e);
}

static const struct decision *tick(struct engine *e, double load)
{
	engine_show(e, 0, load);
	engine_tick(e);
	engine_apply(e);
	e->now_ms += 2000;
	return &e->decision;
}

static void burst_is_seen_within_the_panic_window(void **state)
{
	struct engine e, calm;
	make(&e);
	make(&calm);
	calm.policy.panic.set = false;
	for (int i = 0; i < 40; i++) {
		tick(&e, 20);
		assert_int_equal(tick(&calm, 20)->desired, 2);
		assert_int_equal(e.decision.desired, 2);
		assert_null(engine_find(&e, REASON_PANIC));
	}
	tick(&e, 100); // panic window 20 20 100: 46.7, 5 replicas of 2
	tick(&calm, 100);
	assert_int_equal(e.decision.desired, 5);
	assert_int_equal(e.decision.reason, REASON_PANIC);
	const struct trace_entry *entry = engine_find(&e, REASON_PANIC);
	assert_true(entry->value > 46 && entry->value < 47);
	assert_int_equal(entry->window_ms, 6000);
	assert_int_equal(entry->duration_ms, 60000);
	assert_true(calm.decision.desired <= 3);
	assert_int_equal(tick(&e, 100)->desired, 8);
	assert_int_equal(tick(&e, 100)->desired, 10);
	for (int i = 0; i < 25; i++) // quiet again: nothing is taken away
		assert_int_equal(tick(&e, 20)->desired, 10);
	assert_int_equal(tick(&e, 20)->action, ACTION_NONE);
	for (int i = 0; i < 10; i++)
		tick(&e, 20);
	assert_int_equal(e.decision.desired, 2);
	assert_null(engine_find(&e, REASON_PANIC));
	engine_done(&e);
	engine_done(&calm);
}

static void scale_that_others_asked_for_stays_too(void **state)
{
	struct engine e;
	make(&e);
	for (int i = 0; i < 40; i++)
		tick(&e, 20);
	tick(&e, 100);
	e.seen.spec_replicas = e.seen.status_replicas = e.seen.ready_replicas = 30;
	assert_int_equal(tick(&e, 20)->desired, 30);
	assert_int_equal(e.decision.reason, REASON_PANIC);
	engine_done(&e);
}

static void missing_data_neither_begins_nor_ends_it(void **state)
{
	struct engine e;
	make(&e);
	for (int i = 0; i < 40; i++)
		tick(&e, 20);
	tick(&e, 200);
	int32_t reached = e.decision.desired;
	assert_true(reached > 2);
	for (int i = 0; i < 40; i++) {
		engine_show_state(&e, 0, OBS_FAILED);
		engine_tick(&e);
		assert_int_equal(e.decision.desired, reached);
		assert_int_equal(e.decision.action, ACTION_HOLD);
		e.now_ms += 2000;
	}
	engine_done(&e);
}

static void fresh_state_does_not_panic(void **state)
{
	struct engine e; // restarted with 10 ready replicas: Knative would begin in panic
	make(&e);
	e.seen.spec_replicas = e.seen.status_replicas = e.seen.ready_replicas = 10;
	engine_start(&e);
	for (int i = 0; i < 40; i++) {
		tick(&e, 20);
		assert_null(engine_find(&e, REASON_PANIC));
	}
	assert_int_equal(e.decision.desired, 2);
	engine_done(&e);
}

static void panic_survives_a_copy_and_a_policy_change(void **state)
{
	struct engine e, next;
	make(&e);
	for (int i = 0; i < 40; i++)
		tick(&e, 20);
	tick(&e, 100);
	make(&next);
	next.policy.max_replicas = 4;
	engine_start(&next);
	decide_state_migrate(&e.policy, e.state, &next.policy, next.state);
	next.now_ms = e.now_ms;
	next.seen.spec_replicas = next.seen.status_replicas = next.seen.ready_replicas = 4;
	tick(&next, 20);
	assert_non_null(engine_find(&next, REASON_PANIC));
	assert_int_equal(next.decision.desired, 4); // the bounds win
	assert_int_equal(next.decision.reason, REASON_TOO_MANY_REPLICAS);
	engine_done(&e);
	engine_done(&next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(sequences_end_as_knatives),
	        cmocka_unit_test(random_traces_end_as_knatives),
	        cmocka_unit_test(load_is_what_each_kind_of_signal_says),
	        cmocka_unit_test(burst_is_seen_within_the_panic_window),
	        cmocka_unit_test(scale_that_others_asked_for_stays_too),
	        cmocka_unit_test(missing_data_neither_begins_nor_ends_it),
	        cmocka_unit_test(fresh_state_does_not_panic),
	        cmocka_unit_test(panic_survives_a_copy_and_a_policy_change),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
