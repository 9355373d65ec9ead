// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the algorithm of the objective keeps its decisions on two loads, its bounds and its promise of a
// flat state, whatever the input. The decisions began as those of the reference algorithm; they are our own since the
// algorithm was improved, so the golden rows change only together with the constants in the headers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "policies/engine/objective.h"
#include "test/support/alloc_count.h"

#define TRACE_S 5 // of a row of the trace
#define TRACE   "test/support/traces/azure_llm_code_2023_5s.csv"
#define BIN_S   1
#define BIN_MAX 90000
#define STARTS  (OBJECTIVE_STARTUP_MAX_S / BIN_S + 1)

// ---- a service in a closed loop ----

struct load {
	double work[BIN_MAX]; // replica-seconds per bin
	double requests[BIN_MAX];
	size_t n;
};

struct world {
	int32_t ready, replicas;
	int32_t starting[STARTS]; // ring: replicas that become ready in the bin
	double backlog, last_work;
	size_t bin;
};

struct score {
	int64_t replica_bins, changes;
	double late_share;
	uint32_t digest; // of all decisions, FNV-1a
};

static void world_scale(struct world *w, int32_t replicas, int startup_s)
{
	int32_t change = replicas - w->replicas;
	w->replicas = replicas;
	if (change > 0)
		w->starting[(w->bin + (size_t)startup_s / BIN_S) % STARTS] += change;
	for (size_t i = STARTS; i-- > 0 && change < 0;) { // the newest first
		int32_t *slot = &w->starting[(w->bin + i) % STARTS];
		int32_t cancelled = *slot < -change ? *slot : -change;
		*slot -= cancelled;
		change += cancelled;
	}
	if (change < 0)
		w->ready += change;
}

static void world_serve(struct world *w, double work)
{
	int32_t *due = &w->starting[w->bin % STARTS];
	w->ready += *due;
	*due = 0;
	w->backlog = fmax(0, w->backlog + work - w->ready * BIN_S);
	w->bin++;
}

static struct score run(const struct load *load, const struct objective_goal *goal, int32_t replicas)
{
	static struct objective s;
	objective_init(&s);
	struct world w = {.ready = replicas, .replicas = replicas};
	struct score score = {.digest = 2166136261U};
	double total = 0, late = 0, arrived = 0;
	int last = 0;
	for (size_t i = 0; i < load->n; i++) {
		world_serve(&w, load->work[i]);
		total += load->requests[i];
		late += w.backlog > goal->wait_s * w.ready ? load->requests[i] : 0;
		score.replica_bins += w.replicas;
		arrived += load->work[i];
		if ((i + 1) * BIN_S % OBJECTIVE_STEP_S != 0)
			continue;
		double demand = arrived / OBJECTIVE_STEP_S;
		arrived = 0;
		struct objective_input in = {.demand = demand,
		                             .backlog = w.backlog,
		                             .replicas = w.replicas,
		                             .ready = w.ready,
		                             .time_s = (int64_t)(i + 1) * BIN_S};
		struct objective_result r;
		assert_true(objective_step(&s, goal, &in, &r));
		assert_in_range(r.replicas, goal->min_replicas, goal->max_replicas);
		score.digest = (score.digest ^ (uint32_t)r.replicas) * 16777619U;
		int way = (r.replicas > w.replicas) - (r.replicas < w.replicas);
		score.changes += way != 0 && last != 0 && way != last;
		last = way ? way : last;
		world_scale(&w, r.replicas, (int)goal->startup_s);
	}
	score.late_share = late / total;
	return score;
}

static void scale_mean(struct load *load, double mean)
{
	double total = 0;
	for (size_t i = 0; i < load->n; i++)
		total += load->work[i];
	for (size_t i = 0; i < load->n; i++)
		load->work[i] *= mean * BIN_S * (double)load->n / total;
}

// An hour of code completion, played `times` times: bursts that nothing announces.
static void load_code(struct load *load, int times)
{
	*load = (struct load){0};
	for (int i = 0; i < times; i++) {
		FILE *f = fopen(TRACE, "r");
		assert_non_null(f);
		double at, requests, context, generated;
		assert_int_equal(fscanf(f, "%*[^\n]"), 0);
		while (fscanf(f, "%lf,%lf,%lf,%lf", &at, &requests, &context, &generated) == 4)
			for (int bin = 0; bin < TRACE_S / BIN_S; bin++) {
				load->requests[load->n] = requests;
				load->work[load->n++] = context / 12000 + generated / 900;
			}
		fclose(f);
	}
	scale_mean(load, 6);
}

// A day with a smooth season, a busy quarter of an hour every hour, and noise.
static void load_day(struct load *load)
{
	*load = (struct load){.n = 86400 / BIN_S};
	uint32_t seed = 1;
	for (size_t i = 0; i < load->n; i++) {
		seed = seed * 1664525U + 1013904223U;
		double t = (double)i * BIN_S, noise = (double)(seed >> 8) / 16777216;
		load->work[i] = (8 - 6 * cos(t * 6.283185307179586 / 86400)) * (0.5 + noise);
		load->work[i] *= i * BIN_S % 3600 < 900 ? 2 : 1;
		load->requests[i] = load->work[i];
	}
	scale_mean(load, 6);
}

// ---- the tests ----

static const struct objective_goal goal = {0.01, 10, 120, 1, 64};

static void decisions_stay_the_same(void **state)
{
	// Rows: the share that may be late, and what followed on six hours of code and on the day.
	static const struct {
		double late;
		struct score code, day;
	} rows[] = {
	        {0.001, {1107630, 17, 0.00000, 0xa6fc1905}, {950640, 46, 0.00073, 0x64fa2dac}},
	        {0.01, {1004115, 13, 0.00336, 0xe57607d4}, {809580, 47, 0.00174, 0x12a98ed2}},
	        {0.05, {757950, 19, 0.03258, 0x487ce691}, {740910, 47, 0.01121, 0x05922404}},
	};
	static struct load loads[2];
	load_code(&loads[0], 6);
	load_day(&loads[1]);
	int differ = 0;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		for (size_t k = 0; k < 2; k++) {
			struct objective_goal g = goal;
			g.late = rows[i].late;
			struct score got = run(&loads[k], &g, 6), want = k == 0 ? rows[i].code : rows[i].day;
			if (got.digest == want.digest && got.replica_bins == want.replica_bins &&
			    got.changes == want.changes && fabs(got.late_share - want.late_share) < 1e-5)
				continue;
			differ++;
			print_error("late %g, load %zu: now {%ld, %ld, %.5f, 0x%08x}\n", g.late, k,
			            (long)got.replica_bins, (long)got.changes, got.late_share, got.digest);
		}
	}
	assert_int_equal(differ, 0);
}

static void objective_is_kept_where_it_can_be(void **state)
{
	static const double lates[] = {0.001, 0.01, 0.05};
	static struct load loads[2];
	load_code(&loads[0], 6);
	load_day(&loads[1]);
	for (size_t i = 0; i < sizeof lates / sizeof lates[0]; i++) {
		struct objective_goal g = goal;
		g.late = lates[i];
		for (size_t k = 0; k < 2; k++)
			assert_true(run(&loads[k], &g, 6).late_share <= 1.2 * g.late);
	}
}

// A stream of inputs without a trace behind them: bursts, pauses, and a scale that a user changes by hand.
static struct objective_input input_at(uint32_t i)
{
	uint32_t x = i * 2654435761U;
	x ^= x >> 15;
	return (struct objective_input){
	        .demand = i % 97 < 10 ? 40.0 : (double)(x % 1000) / 100,
	        .backlog = x % 7 == 0 ? (double)(x % 500) : 0,
	        .replicas = 5 + (int32_t)(x % 3),
	        .ready = 4 + (int32_t)(x % 3),
	        .time_s = (int64_t)i * OBJECTIVE_STEP_S,
	};
}

static void copied_state_continues_the_same(void **state)
{
	static struct objective a, b;
	objective_init(&a);
	for (uint32_t i = 0; i < 3000; i++) {
		struct objective_input in = input_at(i);
		struct objective_result ra, rb;
		memcpy(&b, &a, sizeof b);
		objective_step(&a, &goal, &in, &ra);
		objective_step(&b, &goal, &in, &rb);
		assert_memory_equal(&a, &b, sizeof a);
		assert_int_equal(ra.replicas, rb.replicas);
	}
}

static void state_has_no_padding(void **state)
{
	// Every byte changes with the field that it belongs to: the sizes of the fields add up to the whole.
	struct objective s;
	size_t queue = 4 * sizeof(uint16_t) + OBJECTIVE_START_SLOTS + 3 * sizeof(float);
	size_t maximum = BLOCK_MAX_BLOCKS * sizeof(float) + 2 * sizeof(uint16_t);
	assert_int_equal(sizeof s.queues, queue * OBJECTIVE_RULES);
	assert_int_equal(sizeof s.wanted, maximum);
	assert_int_equal(sizeof s.load, sizeof s.load.recent + sizeof s.load.level + sizeof s.load.trend +
	                                        sizeof s.load.mean + sizeof s.load.variance + sizeof s.load.hour +
	                                        sizeof s.load.day + 4 * sizeof(float) +
	                                        maximum * OBJECTIVE_PEAK__COUNT);
	assert_int_equal(sizeof s,
	                 14 * sizeof(int32_t) + sizeof s.wanted + sizeof s.burst + sizeof s.load + sizeof s.queues);
	assert_true(sizeof s <= OBJECTIVE_STATE_MAX_BYTES);
}

static void step_allocates_nothing(void **state)
{
	if (!alloc_count_works())
		skip();
	static struct objective s;
	objective_init(&s);
	size_t before = alloc_count;
	for (uint32_t i = 0; i < 100; i++) {
		struct objective_input in = input_at(i);
		struct objective_result r;
		objective_step(&s, &goal, &in, &r);
	}
	assert_int_equal(alloc_count, before);
}

static bool is_finite_state(const struct objective *s)
{
	bool finite = isfinite(s->work) && isfinite(s->time) && isfinite(s->late) && isfinite(s->rung);
	for (int i = 0; i < 2; i++)
		finite = finite && isfinite(s->load.level[i]) && isfinite(s->load.trend[i]) &&
		         isfinite(s->load.mean[i]) && isfinite(s->load.variance[i]);
	const struct objective_queues *q = &s->queues;
	for (int i = 0; i < OBJECTIVE_RULES; i++)
		finite = finite && isfinite(q->backlog[i]) && isfinite(q->late[i]) && isfinite(q->cost[i]) &&
		         q->ready[i] <= q->replicas[i];
	return finite;
}

static void input_that_is_not_finite_holds(void **state)
{
	static const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
	static struct objective s, before;
	objective_init(&s);
	for (uint32_t i = 0; i < 50; i++) {
		struct objective_input in = input_at(i);
		struct objective_result r;
		objective_step(&s, &goal, &in, &r);
		memcpy(&before, &s, sizeof s);
		in.demand = bad[i % 3];
		assert_false(objective_step(&s, &goal, &in, &r));
		assert_int_equal(r.replicas, in.replicas);
		in.demand = 1;
		in.backlog = bad[i % 3];
		assert_false(objective_step(&s, &goal, &in, &r));
		assert_memory_equal(&s, &before, sizeof s);
	}
}

static void absurd_input_keeps_bounds(void **state)
{
	static const struct objective_goal goals[] = {
	        {0.01, 10, 0, 1, 64},      {0.01, 10, 3600, 1, 64},        {0.01, 0, 120, 1, 1000000},
	        {0.01, 10, 120, 7, 7},     {1e-9, 1e9, 1e9, 0, INT32_MAX}, {2, -1, -1, -5, 0},
	        {0.5, 1e-9, 14.9, 0, 300}, {0.01, 10, 241, 1, 100000000},
	};
	static const double extremes[] = {0, -1, 1e30, 1e-30, 1e6, 3, 1e300, 65535, 0.01, 250};
	for (size_t k = 0; k < sizeof goals / sizeof goals[0]; k++) {
		static struct objective s;
		objective_init(&s);
		const struct objective_goal *g = &goals[k];
		int32_t replicas = 3;
		for (uint32_t i = 0; i < 2000; i++) {
			struct objective_input in = input_at(i);
			in.demand = extremes[i / 7 % 10];
			in.backlog = extremes[i / 11 % 10];
			in.replicas = i % 50 ? replicas : i % 100 ? INT32_MAX : -1;
			in.ready = i % 3 ? replicas : i % 5 ? INT32_MAX : -7;
			in.time_s = i % 13 == 0 ? INT64_MIN + i : i % 17 == 0 ? INT64_MAX : in.time_s;
			struct objective_result r;
			assert_true(objective_step(&s, g, &in, &r));
			assert_true(is_finite_state(&s));
			assert_true(isfinite(r.rule.level) && isfinite(r.rule.late) && isfinite(r.rule.replicas));
			assert_true(isfinite(r.leaner.late) && isfinite(r.backlog_adds) && isfinite(r.aim));
			int32_t max =
			        g->max_replicas < OBJECTIVE_REPLICAS_MAX ? g->max_replicas : OBJECTIVE_REPLICAS_MAX;
			assert_true(r.replicas <= max && r.replicas >= (g->min_replicas > 0 ? g->min_replicas : 0));
			replicas = r.replicas;
		}
	}
}

// Where the start-up is learnt, it changes while replicas start.
static void start_up_changes_while_replicas_start(void **state)
{
	static struct objective s;
	objective_init(&s);
	struct objective_goal g = goal;
	for (uint32_t i = 0; i < 4000; i++) {
		struct objective_input in = input_at(i);
		struct objective_result r;
		g.startup_s = i / 25 % 2 ? 60 : 300;
		assert_true(objective_step(&s, &g, &in, &r));
		assert_true(is_finite_state(&s));
	}
}

static void goal_out_of_reach_names_the_replicas(void **state)
{
	static struct objective s;
	objective_init(&s);
	struct objective_goal g = goal;
	g.max_replicas = 10;
	struct objective_result r;
	for (int i = 0; i < 400; i++) {
		struct objective_input in = {.demand = 20,
		                             .backlog = 10.0 * i * OBJECTIVE_STEP_S,
		                             .replicas = 10,
		                             .ready = 10,
		                             .time_s = (int64_t)i * OBJECTIVE_STEP_S};
		objective_step(&s, &g, &in, &r);
	}
	assert_int_equal(r.replicas, 10);
	assert_in_range(r.reachable_at, 19, 22); // a wait of 10 s over 4 minutes saves some
	g.max_replicas = 64;
	struct objective_input in = {.demand = 20, .replicas = 20, .ready = 20, .time_s = 400 * OBJECTIVE_STEP_S};
	objective_step(&s, &g, &in, &r);
	assert_int_equal(r.reachable_at, 0);
}

// Returns the aim after `steps`, in the first `late_steps` of which the real queue had `backlog`.
static float aim_after_late(int steps, int late_steps, double backlog)
{
	static struct objective s;
	const struct objective_goal asked = {
	        .late = 0.01, .wait_s = 10, .startup_s = 120, .min_replicas = 1, .max_replicas = 64};
	struct objective_input in = {.demand = 6, .replicas = 8, .ready = 8};
	struct objective_result r = {0};
	objective_init(&s);
	for (int i = 0; i < steps; i++) {
		in.time_s = 15 * i;
		in.backlog = i < late_steps ? backlog : 0;
		assert_true(objective_step(&s, &asked, &in, &r));
	}
	return r.aim;
}

static float aim_after(int steps, double backlog)
{
	return aim_after_late(steps, steps, backlog);
}

static void aim_follows_real_lateness(void **state)
{
	(void)state;
	const int day = 5760;
	assert_true(fabsf(aim_after(1, 0) / 0.01f - 1) < 0.01f);
	assert_true(aim_after(day, 0) > 0.0115f); // the record of a day is not yet a full one
	assert_true(aim_after(4 * day, 0) <= 0.013f + 1e-6f);
	assert_true(aim_after(day, 1000) < 0.0025f);
	// Three times the goal: the aim is a quarter of it, the square of 2 / (1 + 3).
	assert_true(fabsf(aim_after_late(1000, 30, 1000) / 0.0025f - 1) < 0.15f);
}

// The records of the rules start after six minutes, that of the real queue at once.
static void late_work_of_the_first_minutes_counts(void **state)
{
	(void)state;
	assert_true(aim_after_late(240, 16, 1000) < 0.2f * 0.01f);
	assert_true(aim_after_late(5760, 16, 1000) > 0.01f);
}

// Returns the aim after `bursts` of two minutes, each `period` steps after the one before, of which nothing is really
// late.
static float aim_after_bursts(int bursts, int period, double wait_s)
{
	static struct objective s;
	const struct objective_goal asked = {
	        .late = 0.04, .wait_s = wait_s, .startup_s = 120, .min_replicas = 1, .max_replicas = 64};
	struct objective_input in = {.replicas = 8, .ready = 8};
	struct objective_result r = {0};
	objective_init(&s);
	for (int i = 0; i < bursts * period; i++) {
		in.time_s = 15 * i;
		in.demand = i % period >= period / 4 && i % period < period / 4 + 8 ? 7 : 1;
		assert_true(objective_step(&s, &asked, &in, &r));
	}
	return r.aim;
}

static void few_bursts_of_late_work_lower_the_aim(void **state)
{
	(void)state;
	const int day = 28, fifty_minutes = 200; // bursts, and steps from one to the next
	assert_true(aim_after_bursts(2, fifty_minutes, 2) < 0.5f * 0.04f);
	float after_six = aim_after_bursts(6, fifty_minutes, 2);
	assert_true(after_six > 0.4f * 0.04f && after_six < 0.7f * 0.04f);
	assert_true(aim_after_bursts(day, fifty_minutes, 2) > 0.04f);
	// A wait of 10 s and more has its margin in the burst of a step.
	assert_true(aim_after_bursts(2, fifty_minutes, 10) > 0.04f);
}

static void removal_waits_after_an_addition(void **state)
{
	// Replicas, what is wanted in every step, and the step in which the removal happens: a large surplus costs its
	// price sooner. A second removal does not wait.
	static const struct {
		float replicas, wanted;
		int steps;
	} rows[] = {{10, 9, 5}, {10, 8, 3}, {20, 10, 2}, {200, 10, 2}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct objective_hold h = {0};
		assert_float_equal(objective_hold_step(&h, 5, rows[i].replicas, 8), rows[i].replicas, 0);
		int steps = 1;
		while (objective_hold_step(&h, rows[i].replicas, rows[i].wanted, 8) > rows[i].wanted)
			steps++;
		assert_int_equal(steps, rows[i].steps);
		assert_float_equal(objective_hold_step(&h, rows[i].wanted, rows[i].wanted - 1, 8), rows[i].wanted - 1,
		                   0);
	}
}

static void removal_waits_again_when_all_were_wanted(void **state)
{
	struct objective_hold h = {0};
	objective_hold_step(&h, 5, 10, 8);
	for (int i = 0; i < 20; i++)
		assert_float_equal(objective_hold_step(&h, 10, i % 4 == 3 ? 10 : 9, 8), 10, 0);
}

// A day in which 6 replicas serve a demand around 5.5. All work arrives in burst_s of every 15.5 s, so that a burst
// begins anywhere in a step.
static void burst_learn_day(struct objective_burst *b, int burst_s, float wait_s)
{
	const float period_s = 15.5f;
	uint32_t x = 1;
	float backlog = 0, rate = 0, into = period_s;
	for (int step = 0; step < 5760; step++) {
		float arrived = 0;
		for (int second = 0; second < OBJECTIVE_STEP_S; second++, into += 1) {
			if (into >= period_s) {
				x = x * 1664525U + 1013904223U;
				rate = (4.5f + (float)(x >> 8) / (1 << 24) * 2) * period_s / (float)burst_s;
				into -= period_s;
			}
			float work = into < (float)burst_s ? rate : 0;
			arrived += work;
			backlog = backlog + work > 6 ? backlog + work - 6 : 0;
		}
		objective_burst_learn(b, arrived / OBJECTIVE_STEP_S, backlog, 6, wait_s);
	}
}

static void burst_of_a_long_wait_is_constant(void **state)
{
	struct objective_burst b = {0}, none = {0};
	assert_true(objective_burst(&none, 10) > 1.7f && objective_burst(&none, 10) == objective_burst(&none, 3600));
	burst_learn_day(&b, OBJECTIVE_STEP_S, 10);
	assert_memory_equal(&b, &none, sizeof b);
}

static void burst_shrinks_with_the_wait_until_it_is_learnt(void **state)
{
	struct objective_burst none = {0};
	assert_true(objective_burst(&none, 0) == 1);
	assert_true(objective_burst(&none, 2) > 1.1f && objective_burst(&none, 2) < 1.2f);
	assert_true(objective_burst(&none, 5) > 1.3f && objective_burst(&none, 5) < 1.5f);
}

static void burst_is_learnt_from_the_real_queue(void **state)
{
	// Rows: the seconds in which the work of a step arrives, and the bounds of what is learnt.
	static const struct {
		int burst_s;
		float least, most;
	} rows[] = {{15, 1, 1.3f}, {10, 1.3f, 1.9f}, {7, 1.9f, 3}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct objective_burst b = {0};
		burst_learn_day(&b, rows[i].burst_s, 5);
		float learnt = objective_burst(&b, 5);
		if (learnt < rows[i].least || learnt > rows[i].most)
			fail_msg("work within %d s: learnt %.3f", rows[i].burst_s, (double)learnt);
	}
}

static void history_teaches_no_burst(void **state)
{
	static struct objective s;
	struct objective_goal g = goal;
	g.wait_s = 5;
	objective_init(&s);
	for (uint32_t i = 0; i < 200; i++) {
		struct objective_input in = input_at(i);
		struct objective_result r;
		in.is_history = true;
		objective_step(&s, &g, &in, &r);
	}
	const struct objective_burst none = {0};
	assert_memory_equal(&s.burst, &none, sizeof none);
}

static void orders_start_after_the_start_up(void **state)
{
	struct objective_pipeline p = {.steps = 8, .steps_a_slot = 1, .slots = 8, .shifts = true};
	struct objective_queues q = {0};
	const int rule = 5;
	q.ready[rule] = q.replicas[rule] = 2;
	objective_queues_scale(&q, rule, &p, 5, 120);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(q.ready[rule], 2);
		objective_queues_serve(&q, &p, 1, 1, 10, 0, 1);
	}
	assert_int_equal(q.ready[rule], 5);
	assert_int_equal(q.ready[rule - 1] + q.ready[rule + 1], 0);
	// A removal cancels what starts first, and costs a start-up.
	objective_queues_scale(&q, rule, &p, 7, 120);
	float cost = q.cost[rule];
	objective_queues_scale(&q, rule, &p, 4, 120);
	assert_int_equal(q.starting[0][rule], 0);
	assert_int_equal(q.ready[rule], 4);
	assert_true(q.cost[rule] == cost + 120);
}

static void late_share_counts_arrivals_behind_the_limit(void **state)
{
	assert_true(objective_late_share(0, 10, 20) == 0);
	assert_true(objective_late_share(30, 25, 20) == 1);
	assert_true(objective_late_share(0, 40, 10) == 0.75f);
	assert_true(objective_late_share(40, 0, 10) == 0.75f);
}

static void rules_have_names_and_rising_factors(void **state)
{
	for (int f = 0; f < OBJECTIVE_FAMILY__COUNT; f++) {
		assert_true(strlen(objective_family_name((enum objective_family)f)) > 0);
		for (int i = 1; i < OBJECTIVE_RUNGS; i++) {
			float low = objective_rule_factor((enum objective_family)f, (float)i - 1, 10);
			float middle = objective_rule_factor((enum objective_family)f, (float)i - 0.5f, 10);
			assert_true(low < middle &&
			            middle < objective_rule_factor((enum objective_family)f, (float)i, 10));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(decisions_stay_the_same),
	        cmocka_unit_test(objective_is_kept_where_it_can_be),
	        cmocka_unit_test(copied_state_continues_the_same),
	        cmocka_unit_test(state_has_no_padding),
	        cmocka_unit_test(step_allocates_nothing),
	        cmocka_unit_test(input_that_is_not_finite_holds),
	        cmocka_unit_test(absurd_input_keeps_bounds),
	        cmocka_unit_test(start_up_changes_while_replicas_start),
	        cmocka_unit_test(goal_out_of_reach_names_the_replicas),
	        cmocka_unit_test(aim_follows_real_lateness),
	        cmocka_unit_test(late_work_of_the_first_minutes_counts),
	        cmocka_unit_test(few_bursts_of_late_work_lower_the_aim),
	        cmocka_unit_test(removal_waits_after_an_addition),
	        cmocka_unit_test(removal_waits_again_when_all_were_wanted),
	        cmocka_unit_test(burst_of_a_long_wait_is_constant),
	        cmocka_unit_test(burst_shrinks_with_the_wait_until_it_is_learnt),
	        cmocka_unit_test(burst_is_learnt_from_the_real_queue),
	        cmocka_unit_test(history_teaches_no_burst),
	        cmocka_unit_test(orders_start_after_the_start_up),
	        cmocka_unit_test(late_share_counts_arrivals_behind_the_limit),
	        cmocka_unit_test(rules_have_names_and_rising_factors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
