// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of the simulator behind `gpuscale backtest`, on random demand: work is neither lost nor
// invented, more replicas are never later, no fixed count beats the clairvoyant bound over days, equal inputs give
// equal results, and a policy with an objective stays within its bounds, on a state that survives a restart in the
// middle, without an allocation per step.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "replay/clairvoyant.h"
#include "replay/policy_candidate.h"
#include "replay/recording.h"
#include "replay/score.h"
#include "replay/world.h"
#include "test/laws/prop.h"
#include "test/support/alloc_count.h"

#define STEP_MS     5000
#define TRACE_STEPS 1440 // two hours
#define TRACES      20   // of PROP_TICKS decisions; more ticks, more traces
#define DAY_STEPS   17280
#define BOUND_DAYS  3
#define LATE_ALIKE  0.001 // of the requests: a bound at less than half the cost may be that much later
#define BOUND_GRID  1.01  // how far the grid of the bound may be off
#define TINY        1e-6
// The queue of orders grows by doubling; everything else is allocated once.
#define ALLOCATIONS_OF_A_RUN 8

static int64_t n_traces(void)
{
	return TRACES * prop_ticks() / 100000 + 1;
}

static double random_level(struct prop_random *r, double level)
{
	return prop_chance(r, 1) ? prop_up_to(r, 300) / 10.0 : level;
}

// Levels up to 30 replicas' worth that hold for minutes, and noise.
static void make_long_demand(struct prop_random *r, struct demand *d, double *work, size_t n, bool with_gaps)
{
	double level = 5;
	bool is_gap = false;
	for (size_t i = 0; i < n; i++) {
		level = random_level(r, level);
		is_gap = with_gaps && prop_chance(r, is_gap ? 90 : 1);
		work[i] = is_gap ? (double)NAN : level * (0.5 + prop_up_to(r, 100) / 100.0) * STEP_MS / 1000;
	}
	*d = (struct demand){.work = work, .n = n, .step_ms = STEP_MS};
}

static void make_demand(struct prop_random *r, struct demand *d, double *work, bool with_gaps)
{
	make_long_demand(r, d, work, TRACE_STEPS, with_gaps);
}

static struct world_config random_world(struct prop_random *r)
{
	struct world_config c = {.step_ms = STEP_MS, .n_startups = (size_t)(1 + prop_up_to(r, 3)), .seed = 7};
	for (size_t i = 0; i < c.n_startups; i++)
		c.startups_s[i] = prop_up_to(r, 300);
	c.capacity = prop_chance(r, 30) ? 1 + prop_up_to(r, 30) : 0;
	return c;
}

static void work_is_neither_lost_nor_invented(void **state)
{
	struct prop_random r = {prop_seed()};
	int64_t n = prop_ticks();
	for (int64_t done = 0; done < n;) {
		struct world_config c = random_world(&r);
		struct world w;
		double arrived = 0, served = 0;
		world_init(&w, &c, prop_up_to(&r, 30));
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			double work = prop_up_to(&r, 1000) / 10.0;
			double most = (double)world_paid(&w) * STEP_MS / 1000, now = world_step(&w, work);
			arrived += work;
			served += now;
			if (now > most + TINY || w.backlog < 0)
				fail_msg("work is served by replicas: %g of at most %g in step %lld", now, most,
				         (long long)done);
			if (fabs(arrived - served - w.backlog) > TINY * (1 + arrived))
				fail_msg("work is neither lost nor invented: %g arrived, %g served, %g queued", arrived,
				         served, w.backlog);
			int32_t want = prop_chance(&r, 20) ? prop_up_to(&r, 40) : world_replicas(&w);
			assert_int_equal(world_scale(&w, want), 0);
			if (world_replicas(&w) != want || world_paid(&w) > want ||
			    (c.capacity > 0 && world_paid(&w) > c.capacity))
				fail_msg("ordered replicas exist: %d wanted, %d exist, %d cost", want,
				         world_replicas(&w), world_paid(&w));
		}
		world_done(&w);
	}
}

static int32_t decide_fixed(void *self, const struct world *w, bool has_data)
{
	return *(int32_t *)self;
}

static void more_replicas_are_never_later(void **state)
{
	struct prop_random r = {prop_seed() + 1};
	double *work = calloc(TRACE_STEPS, sizeof *work);
	struct score *few = calloc(2, sizeof *few), *many = few + 1;
	for (int64_t t = n_traces(); t > 0; t--) {
		struct demand d;
		make_demand(&r, &d, work, prop_chance(&r, 50));
		struct world_config c = random_world(&r);
		c.capacity = 0;
		int32_t less = 1 + prop_up_to(&r, 30), more = less + 1 + prop_up_to(&r, 5);
		struct closed_loop loop = {.demand = &d, .world = &c, .max = 100, .late_s = 10};
		loop.first = less;
		closed_loop_run(&loop, &(struct candidate){decide_fixed, &less, 15000}, few);
		loop.first = more;
		closed_loop_run(&loop, &(struct candidate){decide_fixed, &more, 15000}, many);
		if (many->late > few->late + TINY ||
		    score_wait_quantile_s(many, 0.95) > score_wait_quantile_s(few, 0.95))
			fail_msg("more replicas are never later: %d are late with %g, %d with %g", less, few->late,
			         more, many->late);
		if (many->replica_s < few->replica_s)
			fail_msg("more replicas cost more: %d cost %g, %d cost %g", less, few->replica_s, more,
			         many->replica_s);
	}
	free(few);
	free(work);
}

static void compare_with_fixed(const struct closed_loop *loop, double late_ratio, const struct score *bound)
{
	struct score *fixed = calloc(1, sizeof *fixed);
	bool keeps = score_keeps(bound, 100 * late_ratio);
	for (int32_t n = 1; n <= loop->max; n++) {
		closed_loop_run(loop, &(struct candidate){decide_fixed, &n, STEP_MS}, fixed);
		bool is_late = !score_keeps(fixed, 100 * late_ratio);
		double alike = 2 * bound->replica_s < fixed->replica_s ? LATE_ALIKE * fixed->requests : TINY;
		if (keeps ? !is_late && bound->replica_s > BOUND_GRID * fixed->replica_s
		          : !is_late || bound->late > BOUND_GRID * fixed->late + alike)
			fail_msg("no fixed count beats the bound: %d cost %g with %g %% late, the bound %g with %g %%, "
			         "of which %g %% may be",
			         n, fixed->replica_s, score_late_percent(fixed), bound->replica_s,
			         score_late_percent(bound), 100 * late_ratio);
	}
	free(fixed);
}

static void no_fixed_count_beats_the_bound_over_days(void **state)
{
	struct prop_random r = {prop_seed() + 5};
	double *work = calloc((size_t)BOUND_DAYS * DAY_STEPS, sizeof *work);
	struct score *bound = calloc(1, sizeof *bound);
	for (int64_t t = 1 + n_traces() / 10; t > 0; t--) {
		struct demand d;
		size_t days = 2 + (size_t)prop_up_to(&r, BOUND_DAYS - 2);
		make_long_demand(&r, &d, work, days * DAY_STEPS, prop_chance(&r, 50));
		for (size_t i = 0; i < d.n; i++)
			d.total += isnan(work[i]) ? 0 : work[i];
		struct world_config c = random_world(&r);
		c.n_startups = 1;
		double late_ratio = (1 + prop_up_to(&r, 100)) / 1000.0;
		const struct closed_loop loop = {.demand = &d,
		                                 .world = &c,
		                                 .first = 1 + prop_up_to(&r, 30),
		                                 .max = 10 + prop_up_to(&r, 50),
		                                 .late_s = 1 + prop_up_to(&r, 60)};
		bool ignored;
		assert_int_equal(clairvoyant_run(&loop, 1, loop.max, late_ratio, NULL, bound, &ignored), 0);
		compare_with_fixed(&loop, late_ratio, bound);
	}
	free(bound);
	free(work);
}

// A policy with an objective, as a candidate whose bounds are looked at, and which starts again from its bytes at
// restart_ms (0: never).
struct watched {
	struct policy_candidate candidate;
	struct engine engine;
	int64_t restart_ms;
	int32_t outside; // the last replicas that were out of bounds
};

static void restart(struct watched *w)
{
	const struct policy *p = &w->engine.policy;
	void *packed = calloc(1, decide_state_packed_bytes(p, w->candidate.state));
	void *fresh = calloc(1, decide_state_bytes(p));
	decide_state_pack(p, w->candidate.state, packed);
	decide_state_unpack(p, packed, fresh);
	free(packed);
	free(w->candidate.state);
	w->candidate.state = fresh;
}

static int32_t decide_watched(void *self, const struct world *world, bool has_data)
{
	struct watched *w = self;
	if (w->restart_ms > 0 && world->now_ms >= w->restart_ms) {
		restart(w);
		w->restart_ms = 0;
	}
	int32_t replicas = policy_candidate_decide(&w->candidate, world, has_data);
	if (replicas < w->engine.policy.min_replicas || replicas > w->engine.policy.max_replicas)
		w->outside = replicas;
	return replicas;
}

static void random_objective(struct prop_random *r, struct engine *e)
{
	engine_init(e, 5);
	engine_add_objective(e);
	e->policy.min_replicas = 1 + prop_up_to(r, 5);
	e->policy.max_replicas = e->policy.min_replicas + prop_up_to(r, 60);
	e->policy.objective.late_ratio = (1 + prop_up_to(r, 300)) / 1000.0;
	e->policy.objective.wait_ms = 1000 * (1 + prop_up_to(r, 60));
	e->policy.startup.start_ms = 15000 * (1 + prop_up_to(r, 20));
}

// Plays the demand; returns the heap allocations of the run.
static size_t play(struct watched *w, const struct demand *d, const struct world_config *c, int64_t restart_ms,
                   struct score *ret_score)
{
	static const char *const names[ORIGIN_SIMULATED];
	struct err e;
	w->restart_ms = restart_ms;
	w->outside = -1;
	if (policy_candidate_init(&w->candidate, &w->engine.policy,
	                          &(struct candidate_input){.file = "f.csv", .names = names}, &e) < 0)
		fail_msg("%s", e.msg);
	const struct closed_loop loop = {.demand = d,
	                                 .world = c,
	                                 .first = w->engine.policy.min_replicas,
	                                 .max = w->engine.policy.max_replicas,
	                                 .late_s = 10};
	size_t before = alloc_count;
	assert_int_equal(closed_loop_run(&loop, &(struct candidate){decide_watched, w, 15000}, ret_score), 0);
	size_t allocations = alloc_count - before;
	policy_candidate_done(&w->candidate);
	return allocations;
}

static bool is_same(const struct score *a, const struct score *b)
{
	bool same = a->replica_s == b->replica_s && a->requests == b->requests && a->late == b->late &&
	            a->at_max_ms == b->at_max_ms && a->counted_ms == b->counted_ms && a->direction == b->direction &&
	            a->changes == b->changes && a->has_waits == b->has_waits;
	for (size_t i = 0; i < SCORE_WAIT_BUCKETS; i++)
		same = same && a->waits[i] == b->waits[i];
	return same;
}

static void same_run_again_scores_the_same(void **state)
{
	struct prop_random r = {prop_seed() + 2};
	double *work = calloc(TRACE_STEPS, sizeof *work);
	struct score *once = calloc(2, sizeof *once), *again = once + 1;
	struct watched *w = calloc(1, sizeof *w);
	for (int64_t t = n_traces(); t > 0; t--) {
		struct demand d;
		make_demand(&r, &d, work, prop_chance(&r, 50));
		struct world_config c = random_world(&r);
		random_objective(&r, &w->engine);
		play(w, &d, &c, 0, once);
		play(w, &d, &c, 0, again);
		if (!is_same(once, again))
			fail_msg("the same run again scores the same: %g and %g replica-seconds", once->replica_s,
			         again->replica_s);
	}
	free(w);
	free(once);
	free(work);
}

static void policy_that_restarts_scores_the_same(void **state)
{
	struct prop_random r = {prop_seed() + 3};
	double *work = calloc(TRACE_STEPS, sizeof *work);
	struct score *once = calloc(2, sizeof *once), *again = once + 1;
	struct watched *w = calloc(1, sizeof *w);
	for (int64_t t = n_traces(); t > 0; t--) {
		struct demand d;
		make_demand(&r, &d, work, prop_chance(&r, 50));
		struct world_config c = random_world(&r);
		random_objective(&r, &w->engine);
		play(w, &d, &c, 0, once);
		play(w, &d, &c, 15000 * (1 + (int64_t)prop_up_to(&r, 400)), again);
		if (!is_same(once, again))
			fail_msg("a restart changes nothing: %g and %g replica-seconds", once->replica_s,
			         again->replica_s);
	}
	free(w);
	free(once);
	free(work);
}

static void policy_keeps_its_bounds_and_allocates_nothing(void **state)
{
	struct prop_random r = {prop_seed() + 4};
	double *work = calloc(TRACE_STEPS, sizeof *work);
	struct score *score = calloc(1, sizeof *score);
	struct watched *w = calloc(1, sizeof *w);
	bool counts = alloc_count_works();
	for (int64_t t = n_traces(); t > 0; t--) {
		struct demand d;
		make_demand(&r, &d, work, prop_chance(&r, 50));
		struct world_config c = random_world(&r);
		random_objective(&r, &w->engine);
		size_t allocations = play(w, &d, &c, 0, score);
		if (w->outside >= 0)
			fail_msg("replicas stay within the bounds: %d, bounds %d to %d", w->outside,
			         w->engine.policy.min_replicas, w->engine.policy.max_replicas);
		if (counts && allocations > ALLOCATIONS_OF_A_RUN)
			fail_msg("a step allocates nothing: %zu allocations in %d steps", allocations, TRACE_STEPS);
	}
	free(w);
	free(score);
	free(work);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(work_is_neither_lost_nor_invented),
	        cmocka_unit_test(more_replicas_are_never_later),
	        cmocka_unit_test(no_fixed_count_beats_the_bound_over_days),
	        cmocka_unit_test(same_run_again_scores_the_same),
	        cmocka_unit_test(policy_that_restarts_scores_the_same),
	        cmocka_unit_test(policy_keeps_its_bounds_and_allocates_nothing),
	};
	prop_begin();
	return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
