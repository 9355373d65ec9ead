// SPDX-License-Identifier: Apache-2.0
// Goal of this test: what a replica serves is learnt from work that waited, from work beyond what was taken to be
// possible, and from a measured busy share; and from nothing else.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "policies/engine/number.h"
#include "policies/engine/objective_capacity.h"

#define STEP_MS 15000

// A service of `ready` replicas that each serve `truth` replicas' worth of work.
struct service {
	struct objective_capacity c;
	double truth, backlog;
	int32_t ready;
	float busy_share; // as reported; below 0: not measured
	bool has_default;
	int64_t now_ms;
};

static struct service service(double truth)
{
	struct service s = {.truth = truth, .ready = 10, .busy_share = -1};
	objective_capacity_init(&s.c);
	return s;
}

// Runs n ticks of step_ms at that demand.
static void run_every(struct service *s, int n, double demand, int64_t step_ms)
{
	for (int i = 0; i < n; i++) {
		double seconds = (double)step_ms / 1000;
		s->backlog = fmax(0, s->backlog + (demand - s->truth * s->ready) * seconds);
		s->now_ms += step_ms;
		const struct objective_capacity_input in = {.demand = demand,
		                                            .backlog = s->backlog,
		                                            .ready = s->ready,
		                                            .unthrottled = 1,
		                                            .busy_share = s->busy_share,
		                                            .may_be_unmeasured = s->has_default};
		objective_capacity_observe(&s->c, &in, s->now_ms);
	}
}

static void run(struct service *s, int n, double demand)
{
	run_every(s, n, demand, STEP_MS);
}

static void assert_ratio(const struct service *s, double want, double within)
{
	double ratio = (double)objective_capacity_ratio(&s->c);
	if (!(fabs(ratio - want) <= within * want))
		fail_msg("the ratio is %g, must be %g", ratio, want);
}

static void nothing_is_learnt_without_a_queue_below_the_figure(void **state)
{
	struct service s = service(1);
	run(&s, 1000, 7);
	assert_ratio(&s, 1, 0);
	assert_true(s.c.learnt_s <= 0);
}

static void waiting_work_shows_the_capacity(void **state)
{
	static const double truths[] = {0.5, 0.7, 0.9, 1, 1.4, 2};
	for (size_t i = 0; i < sizeof truths / sizeof truths[0]; i++) {
		struct service s = service(truths[i]);
		run(&s, 60, 10 * truths[i] + 1);
		assert_ratio(&s, truths[i], 0.03);
		assert_true(s.c.learnt_s > 600);
	}
}

static void load_that_is_served_raises_the_ratio_without_a_queue(void **state)
{
	struct service s = service(2);
	s.backlog = 200; // work has waited at some time
	run(&s, 60, 16);
	assert_ratio(&s, 1.68, 0.06); // a lower bound, and a tenth beyond it
	run(&s, 60, 19);
	assert_ratio(&s, 1.95, 0.08);
	run(&s, 600, 5);
	assert_ratio(&s, 1.95, 0.08); // less load says nothing
}

static void ratio_hardly_exceeds_what_was_observed(void **state)
{
	struct service s = service(3);
	s.backlog = 500; // work has waited at some time
	for (int i = 0; i < 500; i++) {
		run(&s, 1, 10 + i % 7);
		assert_true(objective_capacity_ratio(&s.c) <= 1.1f * 1.6f);
	}
}

static void change_of_capacity_is_followed(void **state)
{
	struct service s = service(1.2);
	run(&s, 120, 12.5);
	s.truth = 0.75;
	run(&s, 480, 8);
	assert_ratio(&s, 0.75, 0.08);
}

static void replicas_that_come_or_leave_start_a_new_stretch(void **state)
{
	struct service s = service(0.5);
	run(&s, 2, 30);
	for (int i = 0; i < 100; i++) { // never the same number for 30 s
		s.ready = 11 - i % 2;
		run(&s, 2, 30);
	}
	assert_ratio(&s, 1, 0);
	s.ready = 0; // no replica serves: nothing is learnt, and nothing is divided by 0
	run(&s, 100, 30);
	assert_ratio(&s, 1, 0);
	s.ready = 10;
	run(&s, 40, 6);
	assert_ratio(&s, 0.5, 0.05);
}

static void interval_of_the_policy_does_not_matter(void **state)
{
	static const int64_t steps_ms[] = {1000, 5000, 15000, 60000, 120000};
	for (size_t i = 0; i < sizeof steps_ms / sizeof steps_ms[0]; i++) {
		struct service s = service(0.6);
		run_every(&s, (int)(1800000 / steps_ms[i]), 8, steps_ms[i]);
		assert_ratio(&s, 0.6, 0.03);
	}
}

static void gap_and_pause_end_a_stretch(void **state)
{
	struct service s = service(1);
	run(&s, 10, 7);
	s.now_ms += 3600000; // an hour in which a queue came and went
	s.backlog = 5000;
	run(&s, 1, 7);
	assert_ratio(&s, 1, 0);
	s = service(1);
	run(&s, 10, 7);
	objective_capacity_pause(&s.c);
	s.backlog = 5000;
	run(&s, 1, 7);
	assert_ratio(&s, 1, 0);
	s.now_ms -= 7200000; // a clock that is set back
	run(&s, 1, 7);
	assert_ratio(&s, 1, 0);
}

static void wrong_sample_moves_little(void **state)
{
	struct service s = service(1);
	run(&s, 200, 10.5);
	double right = s.backlog;
	s.backlog = 1e6;
	run(&s, 1, 10.5);
	s.backlog = right;
	run(&s, 1, 10.5);
	assert_ratio(&s, 1, 0.05);
	run(&s, 40, 10.5);
	assert_ratio(&s, 1, 0.03);
}

static void ratio_has_limits(void **state)
{
	struct service s = service(0.01);
	run(&s, 400, 12);
	assert_ratio(&s, (double)OBJECTIVE_CAPACITY_LEAST, 0.001);
	s = service(4);
	run(&s, 400, 50);
	assert_ratio(&s, (double)OBJECTIVE_CAPACITY_MOST, 0.001);
}

static void backlog_that_is_always_zero_is_doubted(void **state)
{
	struct service s = service(1e9); // nothing ever waits, as far as the signal shows
	run(&s, 400, 40);
	assert_ratio(&s, 1, 0);
	assert_true(objective_capacity_doubts_backlog(&s.c));
	run(&s, 400, 90);
	assert_ratio(&s, 1, 0);
	s.truth = 1; // the signal is mended
	run(&s, 10, 11);
	assert_false(objective_capacity_doubts_backlog(&s.c));
	assert_ratio(&s, 1, 0.03);
}

static void backlog_with_a_default_raises_nothing_until_it_is_seen(void **state)
{
	struct service s = service(1e9);
	s.has_default = true;
	run(&s, 400, 11);
	assert_ratio(&s, 1, 0);
	assert_false(objective_capacity_doubts_backlog(&s.c));
	run(&s, 40, 15);
	assert_ratio(&s, 1, 0);
	assert_true(objective_capacity_doubts_backlog(&s.c));
}

static void busy_share_shows_the_capacity_without_a_queue(void **state)
{
	static const double truths[] = {0.5, 0.8, 1, 1.5, 2.5};
	for (size_t i = 0; i < sizeof truths / sizeof truths[0]; i++) {
		struct service s = service(truths[i]);
		s.busy_share = 0.7f;
		run(&s, 100, 7 * truths[i]);
		assert_ratio(&s, truths[i], 0.03);
	}
	struct service s = service(2);
	s.busy_share = 0.1f; // too few replicas are busy to say anything
	run(&s, 100, 2);
	assert_ratio(&s, 1, 0);
}

static void throttled_replicas_are_no_smaller_replicas(void **state)
{
	struct objective_capacity c;
	double backlog = 100;
	objective_capacity_init(&c);
	for (int i = 0; i < 60; i++) {
		const struct objective_capacity_input in = {
		        .demand = 8, .backlog = backlog, .ready = 10, .unthrottled = 0.7f, .busy_share = -1};
		objective_capacity_observe(&c, &in, (int64_t)i * STEP_MS);
		backlog += 15; // 10 replicas at 0.7 serve 7
	}
	assert_true(fabsf(objective_capacity_ratio(&c) - 1) < 0.02f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(nothing_is_learnt_without_a_queue_below_the_figure),
	        cmocka_unit_test(waiting_work_shows_the_capacity),
	        cmocka_unit_test(load_that_is_served_raises_the_ratio_without_a_queue),
	        cmocka_unit_test(ratio_hardly_exceeds_what_was_observed),
	        cmocka_unit_test(change_of_capacity_is_followed),
	        cmocka_unit_test(replicas_that_come_or_leave_start_a_new_stretch),
	        cmocka_unit_test(interval_of_the_policy_does_not_matter),
	        cmocka_unit_test(gap_and_pause_end_a_stretch),
	        cmocka_unit_test(wrong_sample_moves_little),
	        cmocka_unit_test(ratio_has_limits),
	        cmocka_unit_test(backlog_that_is_always_zero_is_doubted),
	        cmocka_unit_test(backlog_with_a_default_raises_nothing_until_it_is_seen),
	        cmocka_unit_test(busy_share_shows_the_capacity_without_a_queue),
	        cmocka_unit_test(throttled_replicas_are_no_smaller_replicas),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
