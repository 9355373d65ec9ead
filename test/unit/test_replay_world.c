// SPDX-License-Identifier: Apache-2.0
// The simulated workload by hand: orders, starts, the queue, a full cluster, gaps, and what a run is scored.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "replay/recording.h"
#include "replay/score.h"
#include "replay/world.h"

static const struct world_config plain = {.step_ms = 1000, .startups_s = {10}, .n_startups = 1};

static void replicas_serve_after_their_start_and_cost_before(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, &plain, 1);
	assert_true(world_step(&w, 3) == 1);
	assert_true(w.backlog == 2);
	assert_true(world_wait_s(&w) == 2);
	assert_int_equal(world_scale(&w, 3), 0); // ordered at 1 s, ready at 11 s
	assert_int_equal(world_replicas(&w), 3);
	assert_int_equal(world_paid(&w), 3);
	while (w.now_ms < 11000)
		world_step(&w, 1);
	assert_int_equal(w.ready, 1);
	world_step(&w, 1);
	assert_int_equal(w.ready, 3);
	assert_true(w.backlog == 0);
	world_done(&w);
}

// Where the figure in the queries is wrong: work, demand and backlog stay in its unit, and everything else follows.
static void capacity_ratio_changes_what_a_replica_serves(void **state)
{
	(void)state;
	struct world w;
	struct world_config half = plain;
	half.capacity_ratio = 0.5;
	world_init(&w, &half, 4);
	assert_true(world_step(&w, 3) == 2);
	assert_true(w.backlog == 1);
	assert_true(world_wait_s(&w) == 0.5);
	assert_true(world_demand(&w, 1) == 3);
	assert_true(world_utilization(&w, 1, 0) == 1);
	assert_true(world_step(&w, 0) == 1);
	assert_true(world_utilization(&w, 1, 0) == 0.5);
	world_done(&w);
}

static void scale_down_removes_the_newest_order_first(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, &plain, 2);
	world_scale(&w, 4);
	world_step(&w, 0);
	world_scale(&w, 7);
	world_scale(&w, 5);
	assert_int_equal(w.ready, 2);
	assert_int_equal(w.starting, 3);
	world_scale(&w, 3);
	assert_int_equal(w.starting, 1);
	world_scale(&w, 1);
	assert_int_equal(w.starting, 0);
	assert_int_equal(w.ready, 1);
	world_scale(&w, 0);
	world_step(&w, 1);
	assert_true(isinf(world_wait_s(&w)));
	assert_true(world_utilization(&w, 1, 0) == 1);
	world_done(&w);
}

static void full_cluster_keeps_orders_pending_and_free(void **state)
{
	(void)state;
	struct world_config full = plain;
	struct world w;
	full.capacity = 3;
	world_init(&w, &full, 2);
	world_scale(&w, 6);
	assert_int_equal(world_replicas(&w), 6);
	assert_int_equal(world_paid(&w), 3);
	for (int i = 0; i < 30; i++)
		world_step(&w, 0);
	assert_int_equal(w.ready, 3);
	assert_int_equal(world_replicas(&w), 6);
	world_scale(&w, 4);
	assert_int_equal(w.ready, 3);
	world_scale(&w, 2);
	assert_int_equal(w.ready, 2);
	world_done(&w);
}

static void drawn_starts_use_every_time_and_repeat_with_the_seed(void **state)
{
	(void)state;
	struct world_config drawn = {.step_ms = 1000, .startups_s = {5, 50, 500}, .n_startups = 3, .seed = 7};
	int32_t ready[3];
	for (int run = 0; run < 2; run++) {
		struct world w;
		world_init(&w, &drawn, 0);
		world_scale(&w, 300);
		for (int i = 0; i < 600; i++) {
			world_step(&w, 0);
			if (i == 20 || i == 200 || i == 599) {
				int slot = i == 20 ? 0 : i == 200 ? 1 : 2;
				assert_true(run == 0 || ready[slot] == w.ready);
				ready[slot] = w.ready;
			}
		}
		world_done(&w);
	}
	assert_in_range(ready[0], 60, 140);
	assert_in_range(ready[1] - ready[0], 60, 140);
	assert_int_equal(ready[2], 300);
}

static void metrics_look_back_and_forget_at_a_gap(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, &plain, 4);
	for (int i = 0; i < 40; i++)
		world_step(&w, i < 20 ? 1 : 3);
	assert_true(fabs(world_demand(&w, 15) - 3) < 1e-9);
	assert_true(fabs(world_demand(&w, 40) - 2) < 1e-9);
	assert_true(fabs(world_utilization(&w, 60, 0) - 0.5) < 1e-9);
	assert_true(fabs(world_utilization(&w, 60, 20) - 0.25) < 1e-9);
	world_skip(&w);
	assert_true(world_demand(&w, 15) == 0);
	world_step(&w, 2);
	assert_true(world_demand(&w, 15) == 2);
	assert_true(world_utilization(&w, 60, 15) == 0.5);
	world_done(&w);
}

static int32_t constant(void *self, const struct world *w, bool has_data)
{
	(void)w;
	(void)has_data;
	return *(int32_t *)self;
}

static void gaps_cost_nothing_and_zero_demand_is_never_late(void **state)
{
	(void)state;
	double work[100];
	int32_t two = 2;
	struct demand d = {.work = work, .n = 100, .step_ms = 1000};
	const struct closed_loop loop = {.demand = &d, .world = &plain, .first = 2, .max = 2, .late_s = 10};
	const struct candidate c = {constant, &two, 1000};
	struct score s;
	for (size_t i = 0; i < 100; i++)
		work[i] = i < 40 ? NAN : 0;
	assert_int_equal(closed_loop_run(&loop, &c, &s), 0);
	assert_true(s.replica_s == 120);
	assert_true(isnan(score_late_percent(&s)));
	assert_true(isnan(score_wait_quantile_s(&s, 0.95)));
	assert_true(score_at_max_percent(&s) == 100);
}

static void score_counts_late_requests_waits_and_changes(void **state)
{
	(void)state;
	struct score s;
	score_init(&s, true);
	score_add_requests(&s, 90, 0, 10);
	score_add_requests(&s, 8, 10, 10);
	score_add_requests(&s, 2, 100, 10);
	assert_true(fabs(score_late_percent(&s) - 2) < 1e-9);
	assert_true(score_wait_quantile_s(&s, 0.9) == 0);
	assert_true(fabs(score_wait_quantile_s(&s, 0.95) / 10 - 1) < 0.02);
	assert_true(fabs(score_wait_quantile_s(&s, 0.99) / 100 - 1) < 0.02);
	score_add_requests(&s, 900, INFINITY, 10);
	assert_true(isinf(score_wait_quantile_s(&s, 0.5)));
	static const int32_t replicas[] = {3, 5, 5, 6, 4, 4, 2, 7, 6};
	for (size_t i = 1; i < sizeof replicas / sizeof *replicas; i++)
		score_add_scale(&s, replicas[i - 1], replicas[i]);
	assert_int_equal(s.changes, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(replicas_serve_after_their_start_and_cost_before),
	        cmocka_unit_test(capacity_ratio_changes_what_a_replica_serves),
	        cmocka_unit_test(scale_down_removes_the_newest_order_first),
	        cmocka_unit_test(full_cluster_keeps_orders_pending_and_free),
	        cmocka_unit_test(drawn_starts_use_every_time_and_repeat_with_the_seed),
	        cmocka_unit_test(metrics_look_back_and_forget_at_a_gap),
	        cmocka_unit_test(gaps_cost_nothing_and_zero_demand_is_never_late),
	        cmocka_unit_test(score_counts_late_requests_waits_and_changes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
