// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the objective proposes for its two signals, whatever the interval of the policy is, stands still
// while data is missing, and keeps what it has learnt over clock steps, packing, changes of the policy and restarts.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/engine/objective_state.h"
#include "policies/engine/state.h"
#include "test/support/engine.h"

#define STEP_MS INT64_C(15000)
#define DAY_MS  INT64_C(86400000)

enum { DEMAND, BACKLOG };

static void make(struct engine *e, int32_t replicas)
{
	engine_init(e, replicas);
	e->now_ms = 1000 * DAY_MS;
	engine_add_objective(e);
}

static const struct objective_state *rules(const struct engine *e)
{
	return state_objective(state_of(&e->policy, e->state));
}

static int32_t steps(const struct engine *e)
{
	return rules(e)->objective.steps;
}

static void show(struct engine *e, double demand, double backlog)
{
	engine_show(e, DEMAND, demand);
	engine_show(e, BACKLOG, backlog);
}

// Ticks `n` times, `apart_ms` apart, and applies every decision.
static void run(struct engine *e, int n, int64_t apart_ms, double demand, double backlog)
{
	for (int i = 0; i < n; i++) {
		show(e, demand, backlog);
		engine_tick(e);
		engine_apply(e);
		state_of(&e->policy, e->state)->startup.n_starts = 0; // the stated time counts
		e->now_ms += apart_ms;
	}
}

static double wave(int tick)
{
	return 6 + (tick % 40 < 10 ? 8 : 0) + tick % 3;
}

static void both_signals_get_the_proposal_with_its_reasons(void **state)
{
	struct engine e;
	make(&e, 4);
	engine_start(&e);
	show(&e, 12, 300);
	engine_tick(&e);
	assert_int_equal(e.decision.action, ACTION_SCALE_UP);
	assert_int_equal(e.decision.reason, REASON_DESIRED_WITHIN_RANGE);
	assert_int_equal(e.decision.entries[e.decision.driver].reason, REASON_OBJECTIVE);
	for (int i = DEMAND; i <= BACKLOG; i++) {
		assert_int_equal(e.decision.signals[i].proposal, e.decision.desired);
		assert_int_equal(e.decision.signals[i].reason, REASON_OBJECTIVE);
		assert_int_equal(e.decision.signals[i].state, SIGNAL_OK);
	}
	assert_non_null(engine_find(&e, REASON_OBJECTIVE_RECORD));
	engine_done(&e);
}

static void scale_that_was_just_asked_for_is_kept(void **state)
{
	struct engine e;
	make(&e, 10);
	engine_start(&e);
	run(&e, 120, STEP_MS, 8, 0);
	show(&e, 8, 4000);
	engine_tick(&e);
	int32_t high = e.decision.desired;
	assert_true(high > 20);
	engine_apply(&e);
	e.now_ms += STEP_MS;
	show(&e, 8, 0);
	engine_tick(&e);
	assert_int_equal(e.decision.desired, high);
	assert_int_equal(e.decision.reason, REASON_OBJECTIVE_KEPT);
	assert_true(engine_find(&e, REASON_OBJECTIVE_KEPT)->before < high);
	engine_done(&e);
}

static void scale_that_was_found_is_not_reduced_at_first(void **state)
{
	struct engine e;
	make(&e, 40);
	engine_start(&e);
	run(&e, 10, STEP_MS, 8, 0);
	assert_int_equal(e.decision.desired, 40);
	assert_int_equal(e.decision.reason, REASON_OBJECTIVE_STARTING);
	engine_done(&e);
}

static void another_signal_may_ask_for_more(void **state)
{
	struct engine e;
	make(&e, 10);
	engine_add_replicas(&e, "floor");
	engine_start(&e);
	show(&e, 8, 0);
	engine_show(&e, 2, 50);
	engine_tick(&e);
	assert_int_equal(e.decision.desired, 50);
	engine_done(&e);
	make(&e, 10);
	engine_add_replicas(&e, "ceiling");
	e.policy.combine = COMBINE_MIN;
	engine_start(&e);
	show(&e, 8, 9000);
	engine_show(&e, 2, 11);
	engine_tick(&e);
	assert_int_equal(e.decision.desired, 11);
	engine_done(&e);
}

static void bounds_limit_the_proposal_and_say_so(void **state)
{
	struct engine e;
	make(&e, 10);
	e.policy.max_replicas = 12;
	engine_start(&e);
	for (int i = 0; i < 100; i++)
		run(&e, 1, STEP_MS, 30, 20000 + i * 18 * 15);
	assert_int_equal(e.decision.desired, 12);
	assert_int_equal(e.decision.reason, REASON_TOO_MANY_REPLICAS);
	const struct trace_entry *entry = engine_find(&e, REASON_OBJECTIVE_NOT_REACHABLE);
	assert_non_null(entry);
	assert_true(entry->count >= 30);
	assert_true(entry->limit == 12);
	engine_done(&e);
}

static void wrong_demand_asks_for_the_maximum_and_teaches_nothing(void **state)
{
	struct engine e, other;
	make(&e, 10);
	make(&other, 10);
	e.policy.max_replicas = other.policy.max_replicas = 20;
	engine_start(&e);
	engine_start(&other);
	run(&e, 300, STEP_MS, 8, 0);
	run(&other, 300, STEP_MS, 8, 0);
	run(&e, 1, STEP_MS, 8e18, 0);
	run(&other, 1, STEP_MS, 8, 0);
	assert_int_equal(e.decision.desired, 20);
	assert_int_equal(e.decision.reason, REASON_TOO_MANY_REPLICAS);
	const struct trace_entry *entry = engine_find(&e, REASON_VALUE_NOT_LEARNT);
	assert_non_null(entry);
	assert_true(entry->value > 7e18 && entry->limit == 80);
	assert_memory_equal(&rules(&e)->objective.load, &rules(&other)->objective.load, sizeof(struct objective_load));
	run(&e, 8, STEP_MS, 8, 0); // the replicas that were ordered are kept for part of a start-up time
	assert_true(abs(e.decision.desired - other.decision.desired) <= 1);
	assert_null(engine_find(&e, REASON_VALUE_NOT_LEARNT));
	engine_done(&e);
	engine_done(&other);
}

// For as long as it lasts, more than the maximum can serve asks for the maximum. After a quarter of an hour it counts
// as real, and is remembered; the queue that it leaves is worked off.
static void lasting_overload_is_learnt_and_its_queue_is_worked_off(void **state)
{
	struct engine e;
	double backlog = 0;
	make(&e, 10);
	e.policy.max_replicas = 20;
	engine_start(&e);
	run(&e, 300, STEP_MS, 8, 0);
	for (int i = 0; i < 4 * 60 * 2; i++) {
		backlog += (200 - e.seen.ready_replicas) * 15.0;
		run(&e, 1, STEP_MS, 200, backlog);
		assert_int_equal(e.decision.desired, 20);
		assert_int_equal(rules(&e)->objective.load.recent[0] > 79, i >= 60);
	}
	assert_true(engine_find(&e, REASON_VALUE_LIMITED)->limit == 80);
	assert_true(engine_find(&e, REASON_OBJECTIVE_NOT_REACHABLE)->count >= 79);
	while (backlog > 0) {
		backlog += (8 - e.seen.ready_replicas) * 15.0;
		run(&e, 1, STEP_MS, 8, backlog > 0 ? backlog : 0);
		if (backlog > 20 * 120)
			assert_int_equal(e.decision.desired, 20);
	}
	engine_done(&e);
}

static void wrong_backlog_counts_for_its_tick_only(void **state)
{
	struct engine e;
	make(&e, 10);
	e.policy.max_replicas = 20;
	engine_start(&e);
	run(&e, 300, STEP_MS, 8, 0);
	float late = rules(&e)->objective.late;
	for (int i = 0; i < 40; i++)
		run(&e, 1, STEP_MS, 8, i % 2 ? 1e9 : 1e18);
	assert_int_equal(e.decision.desired, 20);
	assert_true(engine_find(&e, REASON_VALUE_NOT_LEARNT)->signal == BACKLOG);
	assert_true(rules(&e)->objective.late <= late);
	run(&e, 40, STEP_MS, 8, 0);
	assert_true(e.decision.desired <= 12);
	assert_null(engine_find(&e, REASON_CAPACITY_DOUBTFUL));
	engine_done(&e);
}

static void steps_are_15_seconds_whatever_the_interval(void **state)
{
	static const struct {
		int64_t apart_ms;
		int ticks;
		int32_t steps;
	} rows[] = {
	        {15000, 241, 241}, {1000, 3601, 241}, {5000, 721, 241},  {10000, 361, 241},
	        {14900, 242, 241}, {15100, 239, 241}, {20000, 181, 241}, {60000, 61, 241},
	        {120000, 31, 241}, {240000, 2, 17},   {250000, 10, 10}, // a gap of more than 16 steps is a pause
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct engine e;
		make(&e, 10);
		e.policy.interval_ms = rows[i].apart_ms;
		engine_start(&e);
		run(&e, rows[i].ticks, rows[i].apart_ms, 8, 0);
		if (abs(steps(&e) - rows[i].steps) > 1)
			fail_msg("every %lld ms: %d steps, want %d", (long long)rows[i].apart_ms, steps(&e),
			         rows[i].steps);
		engine_done(&e);
	}
}

static void early_and_late_ticks_are_one_step_each(void **state)
{
	struct engine e;
	make(&e, 10);
	engine_start(&e);
	int64_t start_ms = e.now_ms;
	for (int i = 0; i < 400; i++) {
		e.now_ms = start_ms + i * STEP_MS + (i * 7919 % 7000 - 3500);
		show(&e, wave(i), 0);
		engine_tick(&e);
		assert_int_equal(steps(&e), i + 1);
	}
	engine_done(&e);
}

static void short_intervals_use_the_mean_demand(void **state)
{
	struct engine fast, slow;
	make(&fast, 30);
	make(&slow, 30);
	fast.policy.interval_ms = 1000;
	engine_start(&fast);
	engine_start(&slow);
	for (int step = 0; step < 200; step++) {
		show(&slow, wave(step), 0);
		engine_tick(&slow);
		for (int i = 0; i < 15; i++) { // between the two steps of `slow`, as much above its demand as below it
			int64_t at_ms = slow.now_ms - 7000 + i * 1000;
			if (step == 0 && i < 7)
				continue;
			fast.now_ms = at_ms;
			show(&fast, wave(step) + (step == 0 ? 0 : i - 7), 0);
			engine_tick(&fast);
		}
		slow.now_ms += STEP_MS;
	}
	double a = (double)rules(&slow)->objective.work, b = (double)rules(&fast)->objective.work;
	if (!(a > 0.97 * b && a < 1.03 * b))
		fail_msg("work %g of one sample a step, %g of 15", a, b);
	engine_done(&fast);
	engine_done(&slow);
}

// ---- missing data ----

static void rules_stand_still_without_data(void **state)
{
	for (int missing = DEMAND; missing <= BACKLOG; missing++) {
		struct engine e;
		make(&e, 10);
		engine_start(&e);
		run(&e, 200, STEP_MS, 8, 0);
		struct objective before = rules(&e)->objective;
		int32_t scale = e.seen.spec_replicas;
		for (int i = 0; i < 30; i++, e.now_ms += STEP_MS) {
			show(&e, 1, 0);
			engine_show_state(&e, (size_t)missing, i % 2 ? OBS_EMPTY : OBS_FAILED);
			engine_tick(&e);
			assert_int_equal(e.decision.desired, scale);
			assert_int_equal(e.decision.action, ACTION_HOLD);
			assert_int_equal(e.decision.reason, REASON_PARTIAL_SIGNALS);
			assert_int_equal(engine_find(&e, REASON_OBJECTIVE_PAUSED)->signal, missing);
			assert_memory_equal(&rules(&e)->objective, &before, sizeof before);
		}
		run(&e, 1, STEP_MS, 8, 0);
		assert_int_equal(steps(&e), before.steps + 1);
		engine_done(&e);
	}
}

// Every other tick has data: the rules still see at most one step in 15 s.
static void data_that_comes_and_goes_does_not_speed_up_time(void **state)
{
	struct engine e;
	make(&e, 10);
	e.policy.interval_ms = 1000;
	engine_start(&e);
	for (int i = 0; i < 300; i++, e.now_ms += 1000) {
		show(&e, 8, 0);
		if (i % 2)
			engine_show_state(&e, DEMAND, OBS_EMPTY);
		engine_tick(&e);
	}
	assert_in_range(steps(&e), 15, 21);
	engine_done(&e);
}

// Ticks for a day in which no demand comes, and holds.
static void run_a_day_without_demand(struct engine *e)
{
	int32_t scale = e->seen.spec_replicas;
	for (int i = 0; i < DAY_MS / STEP_MS; i++, e->now_ms += STEP_MS) {
		show(e, 1, 0);
		engine_show_state(e, DEMAND, OBS_EMPTY);
		engine_tick(e);
		assert_int_equal(e->decision.action, ACTION_HOLD);
		assert_int_equal(e->decision.desired, scale);
	}
}

static void days_without_demand_hold_and_the_rules_continue(void **state)
{
	unsigned char bytes[DECIDE_OBJECTIVE_BYTES_MAX];
	struct engine kept, restarted;
	make(&kept, 10);
	make(&restarted, 10);
	engine_start(&kept);
	run_a_day_without_demand(&kept);
	assert_int_equal(steps(&kept), 0);
	for (int i = 0; i < 300; i++)
		run(&kept, 1, STEP_MS, wave(i), i % 50);
	assert_int_equal(steps(&kept), 300);
	size_t n = decide_objective_save(&kept.policy, kept.state, bytes);
	run_a_day_without_demand(&kept);
	// A process that starts in the middle of that day, with what the first one saved.
	engine_start(&restarted);
	restarted.now_ms = kept.now_ms - DAY_MS / 2;
	restarted.seen.spec_replicas = restarted.seen.status_replicas = restarted.seen.ready_replicas =
	        kept.seen.spec_replicas;
	assert_true(decide_objective_restore(&restarted.policy, restarted.state, bytes, n, restarted.now_ms));
	run_a_day_without_demand(&restarted);
	restarted.now_ms = kept.now_ms;
	for (int i = 0; i < 100; i++) {
		run(&kept, 1, STEP_MS, wave(i), i % 50);
		run(&restarted, 1, STEP_MS, wave(i), i % 50);
		assert_int_equal(kept.decision.desired, restarted.decision.desired);
		assert_int_equal(steps(&kept), 301 + i);
	}
	assert_memory_equal(&rules(&kept)->objective, &rules(&restarted)->objective, sizeof(struct objective));
	engine_done(&kept);
	engine_done(&restarted);
}

static void unknown_startup_time_is_reported(void **state)
{
	struct engine e;
	make(&e, 10);
	e.policy.startup.given = false;
	engine_start(&e);
	run(&e, 1, STEP_MS, 8, 0);
	assert_int_equal(engine_find(&e, REASON_OBJECTIVE_STARTUP)->window_ms, OBJECTIVE_STARTUP_DEFAULT_MS);
	decide_record_start(&e.policy, e.state, 90000);
	run(&e, 1, STEP_MS, 8, 0);
	assert_null(engine_find(&e, REASON_OBJECTIVE_STARTUP));
	engine_done(&e);
}

// ---- capacity ----

static void capacity_that_the_queue_shows_is_learnt(void **state)
{
	static const struct {
		double demand, true_ratio; // what a replica really serves
		double learnt;             // 0: nothing
		enum reason reason;
	} rows[] = {{5, 1, 0, REASON_NONE},
	            {12, 1, 1, REASON_CAPACITY_LEARNT},
	            {7, 0.6, 0.6, REASON_CAPACITY_LEARNT},
	            {5, 0.1, 0.33, REASON_CAPACITY_DOUBTFUL},
	            {16, 2, 1.7, REASON_CAPACITY_LEARNT},
	            {5, 0.9, 0, REASON_NONE}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct engine e;
		make(&e, 10);
		e.policy.min_replicas = e.policy.max_replicas = 10;
		engine_start(&e);
		double backlog = 0.1; // work that has waited at some time
		for (int k = 0; k < 60; k++) {
			run(&e, 1, STEP_MS, rows[i].demand, backlog);
			backlog = fmax(0, backlog + 15 * (rows[i].demand - 10 * rows[i].true_ratio));
		}
		const struct trace_entry *entry = engine_find(&e, rows[i].reason);
		if (rows[i].learnt > 0 && (!entry || fabs(entry->value / rows[i].learnt - 1) > 0.08))
			fail_msg("row %zu: factor %g", i, entry ? entry->value : 0);
		if (rows[i].learnt <= 0)
			assert_null(engine_find(&e, REASON_CAPACITY_LEARNT));
		engine_done(&e);
	}
}

// Twice the work of a figure that is half of the truth: the same decisions, as soon as the capacity is learnt.
static void wrong_figure_costs_minutes(void **state)
{
	static const double figures[] = {0.5, 0.7, 1.4, 2};
	for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
		struct engine e;
		double backlog = 0;
		make(&e, 10);
		engine_start(&e);
		for (int k = 0; k < 4 * 60 * 8; k++) {
			double demand = 7 + k % 5; // of replicas as they are
			backlog = fmax(0, backlog + 15 * (demand - e.seen.ready_replicas));
			run(&e, 1, STEP_MS, demand * figures[i], backlog * figures[i]);
			if (k > 4 * 60 * 4 && (e.decision.desired < 9 || e.decision.desired > 15))
				fail_msg("figure %g: %d replicas in step %d", figures[i], e.decision.desired, k);
		}
		engine_done(&e);
	}
}

static void utilization_shows_a_capacity_that_is_off_either_way(void **state)
{
	// 7 of 10 replicas are busy. Rows: what a replica serves of the work that demand takes for one, whether the
	// utilization has data, and what is learnt.
	static const struct {
		double true_ratio;
		bool has_data;
		double learnt; // 0: nothing
	} rows[] = {{1, true, 1},     {2.5, true, 2.5}, {1.2, true, 1.2}, {0.8, true, 0.8},
	            {0.6, true, 0.6}, {0.5, true, 0.5}, {0.5, false, 0}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct engine e;
		make(&e, 10);
		engine_add_value(&e, "busy", 1)->target.set = false;
		e.policy.objective.utilization = "busy";
		e.policy.objective.utilization_index = 2;
		e.policy.min_replicas = e.policy.max_replicas = 10;
		engine_start(&e);
		for (int k = 0; k < 60; k++) {
			if (rows[i].has_data)
				engine_show(&e, 2, 0.7);
			else
				engine_show_state(&e, 2, OBS_EMPTY);
			run(&e, 1, STEP_MS, 7 * rows[i].true_ratio, 0);
		}
		const struct trace_entry *entry = engine_find(&e, REASON_CAPACITY_LEARNT);
		if ((entry != NULL) != (rows[i].learnt > 0) ||
		    (entry && fabs(entry->value / rows[i].learnt - 1) > 0.05))
			fail_msg("row %zu: factor %g", i, entry ? entry->value : 0);
		assert_int_equal(e.decision.desired, 10);
		engine_done(&e);
	}
}

// Lateness that is measured corrects what the queue suggests: for each row, the share that is measured, and whether
// more or fewer replicas than without it are wanted in the end.
static void measured_lateness_corrects_the_aim(void **state)
{
	static const double shares[] = {0, 0.01, 0.2};
	double aim[3];
	for (size_t i = 0; i < 3; i++) {
		struct engine e;
		make(&e, 10);
		engine_add_value(&e, "late", 1)->target.set = false;
		e.policy.objective.measured = "late";
		e.policy.objective.measured_index = 2;
		engine_start(&e);
		for (int k = 0; k < 4 * 60 * 12; k++) {
			engine_show(&e, 2, shares[i]);
			run(&e, 1, STEP_MS, wave(k), 0);
		}
		aim[i] = (double)rules(&e)->answer.aim;
		assert_true(aim[i] >= 0.01 * 0.01 && aim[i] <= 0.01 * 3);
		// Without data, the aim stays where it is, and the queue counts again.
		engine_show_state(&e, 2, OBS_EMPTY);
		run(&e, 1, STEP_MS, wave(0), 0);
		assert_int_not_equal(e.decision.action, ACTION_HOLD);
		engine_done(&e);
	}
	assert_true(aim[0] > 0.012 && fabs(aim[1] / 0.01 - 1) < 0.05 && aim[2] < 0.002);
}

// Where a start-up is shorter than the wait, no request is late that finds no replica; where it is longer, the scale
// stays at one unless nearly nothing arrives.
static void zero_is_reached_where_the_record_allows_it(void **state)
{
	static const struct {
		int64_t wait_ms;
		bool is_zero; // after half an hour without demand
	} rows[] = {{300000, true}, {10000, false}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct engine e;
		double backlog = 0;
		make(&e, 1);
		e.policy.min_replicas = 0;
		e.policy.objective.wait_ms = rows[i].wait_ms;
		engine_start(&e);
		for (int k = 0; k < 4 * 60 * 24; k++) { // a few minutes of work every half an hour
			double demand = k % 120 < 12 ? 0.8 : 0;
			int32_t ready =
			        k % 120 < 8 ? 0 : e.seen.ready_replicas; // at zero, the first start takes two minutes
			backlog = fmax(0, backlog + 15 * (demand - ready));
			run(&e, 1, STEP_MS, demand, backlog);
			if (demand > 0 && k % 120 > 0)
				assert_true(e.decision.desired > 0);
		}
		if ((e.decision.desired == 0) != rows[i].is_zero)
			fail_msg("wait %lld: %d replicas", (long long)rows[i].wait_ms, e.decision.desired);
		engine_done(&e);
	}
}

// ---- the state ----

static void clock_that_is_set_changes_no_step(void **state)
{
	static const int64_t steps_ms[] = {-30 * DAY_MS, -60000, 60000, DAY_MS};
	for (size_t s = 0; s < sizeof steps_ms / sizeof steps_ms[0]; s++) {
		struct engine e;
		make(&e, 10);
		engine_start(&e);
		run(&e, 100, STEP_MS, 8, 0);
		int32_t before = steps(&e);
		e.now_ms += steps_ms[s];
		decide_clock_was_set(&e.policy, e.state, steps_ms[s]);
		run(&e, 1, STEP_MS, 8, 0);
		assert_int_equal(steps(&e), before + 1);
		engine_done(&e);
	}
}

static void packed_state_decides_as_before(void **state)
{
	struct engine e;
	make(&e, 10);
	engine_start(&e);
	for (int i = 0; i < 300; i++)
		run(&e, 1, STEP_MS, wave(i), 0);
	size_t bytes = decide_state_bytes(&e.policy), packed_bytes = decide_state_packed_bytes(&e.policy, e.state);
	void *packed = calloc(1, packed_bytes), *copy = calloc(1, bytes);
	decide_state_pack(&e.policy, e.state, packed);
	decide_state_unpack(&e.policy, packed, copy);
	struct engine other = e;
	other.state = copy;
	for (int i = 300; i < 400; i++) {
		run(&e, 1, STEP_MS, wave(i), 0);
		run(&other, 1, STEP_MS, wave(i), 0);
		assert_int_equal(e.decision.desired, other.decision.desired);
		assert_memory_equal(rules(&e), rules(&other), sizeof(struct objective_state));
	}
	free(packed);
	engine_done(&e);
	engine_done(&other);
}

static void change_of_the_policy_keeps_what_was_learnt_from_the_same_queries(void **state)
{
	for (int change = 0; change < 3; change++) {
		struct engine old, new;
		make(&old, 10);
		make(&new, 10);
		engine_start(&old);
		run(&old, 100, STEP_MS, 8, 0);
		new.policy.max_replicas = 500;
		new.policy.objective.late_ratio = 0.05;
		if (change == 1)
			new.signals[DEMAND].query = "other";
		if (change == 2)
			new.policy.objective.set = false;
		engine_start(&new);
		decide_state_migrate(&old.policy, old.state, &new.policy, new.state);
		if (change == 0)
			assert_memory_equal(&rules(&new)->objective, &rules(&old)->objective, sizeof(struct objective));
		else
			assert_true(change == 2 ? rules(&new) == NULL : steps(&new) == 0);
		engine_done(&old);
		engine_done(&new);
	}
}

static void state_of_an_objective_is_at_most_4_kib(void **state)
{
	struct engine e;
	make(&e, 10);
	size_t with = decide_state_bytes(&e.policy);
	e.policy.objective.set = false;
	assert_true(with - decide_state_bytes(&e.policy) <= 4096);
}

// ---- history ----

static void day_of_history_replaces_the_first_day(void **state)
{
	enum { N = 5760 };
	struct obs_series *samples = calloc(N, sizeof *samples);
	struct engine live, fresh;
	make(&live, 10);
	make(&fresh, 10);
	engine_start(&live);
	int64_t start_ms = live.now_ms;
	double backlog = 0;
	for (int i = 0; i < N; i++) {
		samples[i] = (struct obs_series){.pod = "", .value = wave(i), .time_ms = start_ms + i * STEP_MS};
		backlog = fmax(0, backlog + 15 * (wave(i) - live.seen.ready_replicas));
		run(&live, 1, STEP_MS, wave(i), backlog);
	}
	fresh.now_ms = live.now_ms;
	engine_start(&fresh);
	int64_t step_ms;
	assert_int_equal(decide_objective_history_ms(&fresh.policy, fresh.state, fresh.now_ms, &step_ms), DAY_MS);
	assert_int_equal(step_ms, STEP_MS);
	decide_refill_objective(&fresh.policy, fresh.state, samples, N, live.seen.spec_replicas, fresh.now_ms);
	assert_int_equal(steps(&fresh), N);
	assert_int_equal(decide_objective_history_ms(&fresh.policy, fresh.state, fresh.now_ms, &step_ms), STEP_MS);
	// The same demand gives the same load and nearly the same records: only the scale at the start differs.
	assert_memory_equal(&rules(&fresh)->objective.load, &rules(&live)->objective.load,
	                    sizeof(struct objective_load));
	fresh.seen.spec_replicas = fresh.seen.status_replicas = fresh.seen.ready_replicas = live.seen.spec_replicas;
	run(&live, 1, STEP_MS, wave(N), 0);
	run(&fresh, 1, STEP_MS, wave(N), 0);
	assert_true(abs(live.decision.desired - fresh.decision.desired) <= 1);
	assert_null(engine_find(&fresh, REASON_OBJECTIVE_STARTING));
	// Samples that are known already, and those of the future, are ignored.
	int32_t before = steps(&fresh);
	decide_refill_objective(&fresh.policy, fresh.state, samples, N, 10, fresh.now_ms);
	assert_int_equal(steps(&fresh), before);
	samples[0].time_ms = fresh.now_ms + DAY_MS;
	decide_refill_objective(&fresh.policy, fresh.state, samples, 1, 10, fresh.now_ms);
	assert_int_equal(steps(&fresh), before);
	free(samples);
	engine_done(&live);
	engine_done(&fresh);
}

// A source that did not answer at first is asked again, after steps of the present.
static void history_that_comes_late_replaces_the_first_steps(void **state)
{
	enum { N = 1000 };
	struct obs_series *samples = calloc(N, sizeof *samples);
	struct engine e;
	make(&e, 10);
	int64_t start_ms = e.now_ms, step_ms;
	for (int i = 0; i < N; i++)
		samples[i] = (struct obs_series){.pod = "", .value = wave(i), .time_ms = start_ms + i * STEP_MS};
	e.now_ms = start_ms + (N - 20) * STEP_MS;
	engine_start(&e);
	run(&e, 20, STEP_MS, 8, 0);
	assert_int_equal(decide_objective_history_ms(&e.policy, e.state, e.now_ms, &step_ms), DAY_MS);
	decide_refill_objective(&e.policy, e.state, samples, N, 10, e.now_ms);
	assert_int_equal(steps(&e), N);
	run(&e, 1, STEP_MS, 8, 0);
	assert_int_equal(steps(&e), N + 1);
	free(samples);
	engine_done(&e);
}

// ---- saved bytes ----

// The bytes in the status of an object outlive the controller that wrote them: a change of the layout in memory must
// not change them. A new STATE_VERSION does, and so does a new constant of the algorithm.
static void saved_bytes_keep_their_layout(void **state)
{
	struct engine e;
	unsigned char bytes[DECIDE_OBJECTIVE_BYTES_MAX];
	make(&e, 6);
	engine_start(&e);
	for (int i = 0; i < 500; i++)
		run(&e, 1, STEP_MS, wave(i), i % 9 * 10);
	size_t n = decide_objective_save(&e.policy, e.state, bytes);
	uint32_t digest = 2166136261U; // FNV-1a
	for (size_t i = sizeof(uint64_t); i < n; i++)
		digest = (digest ^ bytes[i]) * 16777619U;
	assert_int_equal(n, 3856);
	assert_int_equal(digest, 0x4fa962c1);
	engine_done(&e);
}

static void saved_objective_decides_as_before(void **state)
{
	unsigned char bytes[DECIDE_OBJECTIVE_BYTES_MAX];
	struct engine e, other;
	make(&e, 10);
	make(&other, 10);
	engine_start(&e);
	assert_int_equal(decide_objective_save(&e.policy, e.state, bytes), 0); // nothing is known yet
	for (int i = 0; i < 300; i++)
		run(&e, 1, STEP_MS, wave(i), i % 50);
	size_t n = decide_objective_save(&e.policy, e.state, bytes);
	assert_true(n > 3000 && n <= sizeof bytes);
	engine_start(&other);
	other.now_ms = e.now_ms;
	assert_true(decide_objective_restore(&other.policy, other.state, bytes, n, other.now_ms));
	assert_memory_equal(rules(&other), rules(&e), sizeof(struct objective_state));
	assert_false(decide_objective_restore(&other.policy, other.state, bytes, n - 1, other.now_ms));
	other.signals[DEMAND].query = "another";
	assert_false(decide_objective_restore(&other.policy, other.state, bytes, n, other.now_ms));
	other.policy.objective.set = false;
	engine_done(&e);
	engine_done(&other);
}

static void stamps_of_a_clock_that_was_ahead_count_as_now(void **state)
{
	unsigned char bytes[DECIDE_OBJECTIVE_BYTES_MAX];
	struct engine e;
	make(&e, 10);
	engine_start(&e);
	run(&e, 100, STEP_MS, 8, 0);
	size_t n = decide_objective_save(&e.policy, e.state, bytes);
	e.now_ms -= DAY_MS;
	engine_start(&e);
	assert_true(decide_objective_restore(&e.policy, e.state, bytes, n, e.now_ms));
	assert_int_equal(rules(&e)->simulated_ms, e.now_ms);
	int32_t before = steps(&e);
	run(&e, 10, STEP_MS, 8, 0);
	assert_true(steps(&e) >= before + 9);
	engine_done(&e);
}

// What an engine without limits learnt from a wrong sample is refused, and learnt again from the history.
static void poisoned_bytes_are_refused(void **state)
{
	unsigned char bytes[DECIDE_OBJECTIVE_BYTES_MAX];
	struct engine e;
	make(&e, 10);
	e.policy.max_replicas = 20;
	engine_start(&e);
	run(&e, 300, STEP_MS, 8, 0);
	struct objective *o = &state_objective(state_of(&e.policy, e.state))->objective;
	float *const learnt[] = {&o->load.recent[0],  &o->load.mean[1],
	                         &o->load.hour[7],    &o->load.day_now,
	                         &o->load.level[0],   &o->load.variance[1],
	                         &o->queues.late[71], &o->load.peaks[OBJECTIVE_PEAK_LONG].blocks[3]};
	size_t n = decide_objective_save(&e.policy, e.state, bytes);
	assert_true(decide_objective_restore(&e.policy, e.state, bytes, n, e.now_ms));
	for (size_t i = 0; i < sizeof learnt / sizeof learnt[0]; i++) {
		float good = *learnt[i];
		*learnt[i] = 1e6f;
		n = decide_objective_save(&e.policy, e.state, bytes);
		*learnt[i] = good;
		if (decide_objective_restore(&e.policy, e.state, bytes, n, e.now_ms))
			fail_msg("number %zu is taken", i);
	}
	o->late_squares = 1e20f;
	decide_objective_save(&e.policy, e.state, bytes);
	assert_false(decide_objective_restore(&e.policy, e.state, bytes, n, e.now_ms));
	engine_done(&e);
}

// Whatever was done to the bytes, they are refused or the engine decides with them.
static void odd_bytes_do_no_harm(void **state)
{
	unsigned char good[DECIDE_OBJECTIVE_BYTES_MAX], bytes[DECIDE_OBJECTIVE_BYTES_MAX];
	struct engine e;
	make(&e, 10);
	e.policy.max_replicas = 50;
	engine_start(&e);
	run(&e, 100, STEP_MS, 8, 0);
	size_t n = decide_objective_save(&e.policy, e.state, good);
	int64_t now_ms = e.now_ms;
	uint32_t random = 1;
	int refused = 0;
	for (int i = 0; i < 4000; i++) {
		memcpy(bytes, good, n);
		for (int k = 0; k <= i % 3; k++) {
			random = random * 1664525 + 1013904223;
			// past the key; every fourth byte is the one with a float's exponent and the sign
			bytes[8 + (random >> 8) % (n - 8)] = (unsigned char)(i % 2 ? 0xff : random >> 3);
		}
		engine_start(&e);
		e.now_ms = now_ms;
		e.seen.spec_replicas = e.seen.status_replicas = e.seen.ready_replicas = 10;
		if (!decide_objective_restore(&e.policy, e.state, bytes, n, now_ms)) {
			refused++;
			continue;
		}
		for (int k = 0; k < 3; k++) {
			run(&e, 1, STEP_MS, 8, 100);
			assert_true(e.decision.desired >= 1 && e.decision.desired <= 50);
		}
	}
	assert_true(refused > 400 && refused < 3900);
	engine_done(&e);
}

static void rule_survives_its_code(void **state)
{
	for (int f = 0; f < OBJECTIVE_FAMILY__COUNT; f++)
		for (int r = 0; r <= 100 * (OBJECTIVE_RUNGS - 1); r++) {
			enum objective_family family;
			float rung;
			objective_rule_decode(objective_rule_code((enum objective_family)f, (float)r / 100), &family,
			                      &rung);
			assert_int_equal(family, f);
			assert_int_equal((int)(rung * 100 + 0.5f), r);
		}
	static const int32_t odd[] = {-1, INT32_MIN, INT32_MAX, 999, 8000};
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		enum objective_family family;
		float rung;
		objective_rule_decode(odd[i], &family, &rung);
		assert_true(family < OBJECTIVE_FAMILY__COUNT && rung >= 0 && rung <= OBJECTIVE_RUNGS - 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(both_signals_get_the_proposal_with_its_reasons),
	        cmocka_unit_test(scale_that_was_just_asked_for_is_kept),
	        cmocka_unit_test(scale_that_was_found_is_not_reduced_at_first),
	        cmocka_unit_test(another_signal_may_ask_for_more),
	        cmocka_unit_test(bounds_limit_the_proposal_and_say_so),
	        cmocka_unit_test(wrong_demand_asks_for_the_maximum_and_teaches_nothing),
	        cmocka_unit_test(lasting_overload_is_learnt_and_its_queue_is_worked_off),
	        cmocka_unit_test(wrong_backlog_counts_for_its_tick_only),
	        cmocka_unit_test(steps_are_15_seconds_whatever_the_interval),
	        cmocka_unit_test(early_and_late_ticks_are_one_step_each),
	        cmocka_unit_test(short_intervals_use_the_mean_demand),
	        cmocka_unit_test(rules_stand_still_without_data),
	        cmocka_unit_test(data_that_comes_and_goes_does_not_speed_up_time),
	        cmocka_unit_test(days_without_demand_hold_and_the_rules_continue),
	        cmocka_unit_test(unknown_startup_time_is_reported),
	        cmocka_unit_test(capacity_that_the_queue_shows_is_learnt),
	        cmocka_unit_test(wrong_figure_costs_minutes),
	        cmocka_unit_test(measured_lateness_corrects_the_aim),
	        cmocka_unit_test(zero_is_reached_where_the_record_allows_it),
	        cmocka_unit_test(utilization_shows_a_capacity_that_is_off_either_way),
	        cmocka_unit_test(clock_that_is_set_changes_no_step),
	        cmocka_unit_test(packed_state_decides_as_before),
	        cmocka_unit_test(change_of_the_policy_keeps_what_was_learnt_from_the_same_queries),
	        cmocka_unit_test(state_of_an_objective_is_at_most_4_kib),
	        cmocka_unit_test(day_of_history_replaces_the_first_day),
	        cmocka_unit_test(history_that_comes_late_replaces_the_first_steps),
	        cmocka_unit_test(saved_bytes_keep_their_layout),
	        cmocka_unit_test(saved_objective_decides_as_before),
	        cmocka_unit_test(stamps_of_a_clock_that_was_ahead_count_as_now),
	        cmocka_unit_test(poisoned_bytes_are_refused),
	        cmocka_unit_test(odd_bytes_do_no_harm),
	        cmocka_unit_test(rule_survives_its_code),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
