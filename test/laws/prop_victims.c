// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of the pods that a scale-down removes, whatever their states, work and costs, with a model of
// the controller that deletes them: the pods with the least work go, no pod is written more than twice, no busy pod
// goes before its time, and a cancelled scale-down leaves no mark.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/engine/victims.h"
#include "test/laws/prop.h"

#define PODS_MAX    12
#define TICK_MS     5000
#define DRAIN_MS    60000
#define EPISODE_MAX 40 // ticks

struct world {
	struct victim_pod pods[PODS_MAX];
	char names[PODS_MAX][8];
	int n_writes[PODS_MAX]; // by index
	size_t n;
};

static void break_law(const char *what, const struct world *w, const struct victim_pod *p)
{
	fail_msg("%s: pod %s of %zu, load %g, cost %d, marked %lld, written %d times (PROP_SEED=%llu)", what, p->name,
	         w->n, p->load, p->cost, (long long)p->marked_ms, w->n_writes[p->index],
	         (unsigned long long)prop_seed());
}

static void any_world(struct prop_random *r, struct world *w, int32_t odd_percent)
{
	static const enum pod_state states[] = {POD_READY, POD_READY, POD_UNREADY, POD_PENDING, POD_DELETED};
	*w = (struct world){.n = (size_t)(2 + prop_up_to(r, PODS_MAX - 2))};
	for (size_t i = 0; i < w->n; i++) {
		bool is_odd = prop_chance(r, odd_percent), has_cost = prop_chance(r, odd_percent);
		snprintf(w->names[i], sizeof w->names[i], "p%02zu", i);
		w->pods[i] = (struct victim_pod){.name = w->names[i],
		                                 .index = i,
		                                 .state = is_odd ? states[prop_up_to(r, 4)] : POD_READY,
		                                 .has_cost = has_cost,
		                                 .cost = has_cost ? prop_up_to(r, 20) - 10 : 0,
		                                 .load = is_odd && prop_chance(r, 30) ? (double)NAN : prop_up_to(r, 6)};
	}
}

// Carries out the plan of one tick.
static void tick(struct world *w, const struct victim_rules *rules, struct victims_plan *ret_plan)
{
	for (size_t i = 0; i < w->n; i++)
		w->pods[i].load_ms = rules->now_ms;
	qsort(w->pods, w->n, sizeof w->pods[0], victims_compare);
	victims_plan(rules, w->pods, w->n, ret_plan);
	for (size_t i = 0; i < w->n; i++) {
		struct victim_pod *p = &w->pods[i];
		if (p->action == VICTIM_KEEP)
			continue;
		if (p->has_cost && p->action == VICTIM_MARK)
			break_law("the cost of another client is overwritten", w, p);
		p->marked_ms = p->action == VICTIM_MARK ? rules->now_ms : 0;
		if (++w->n_writes[p->index] > 2)
			break_law("a pod is written more than twice", w, p);
	}
}

// Returns whether the controller of ReplicaSets deletes `a` before `b`; false: it may choose either.
static bool goes_before(const struct victim_pod *a, const struct victim_pod *b)
{
	bool is_pending = a->state == POD_PENDING, is_ready = a->state == POD_READY;
	int64_t a_cost = a->has_cost ? a->cost : a->marked_ms > 0 ? VICTIM_COST : 0;
	int64_t b_cost = b->has_cost ? b->cost : b->marked_ms > 0 ? VICTIM_COST : 0;
	if (is_pending != (b->state == POD_PENDING))
		return is_pending;
	if (is_ready != (b->state == POD_READY))
		return !is_ready;
	return a_cost < b_cost;
}

static bool is_live(const struct victim_pod *p)
{
	return p->state != POD_FAILED && p->state != POD_DELETED;
}

static int32_t count_live(const struct world *w)
{
	int32_t n = 0;
	for (size_t i = 0; i < w->n; i++)
		n += is_live(&w->pods[i]);
	return n;
}

// The controller deletes exactly the victims that the plan names, however it breaks ties.
static void check_removal(const struct world *w, const struct victims_plan *plan)
{
	for (size_t i = 0; i < (size_t)plan->n_victims; i++)
		for (size_t k = (size_t)plan->n_victims; k < w->n; k++)
			if (is_live(&w->pods[k]) && w->pods[i].state != POD_PENDING && !w->pods[i].has_cost &&
			    !w->pods[k].has_cost && w->pods[i].state == POD_READY &&
			    !goes_before(&w->pods[i], &w->pods[k]))
				break_law("another pod may be deleted instead", w, &w->pods[i]);
}

static void pods_with_the_least_work_go(void **state)
{
	struct prop_random r = {prop_seed() + 1};
	for (int64_t i = 0; i < prop_ticks(); i++) {
		struct world w;
		struct victims_plan plan;
		any_world(&r, &w, prop_chance(&r, 50) ? 0 : 20);
		int32_t live = count_live(&w);
		const struct victim_rules rules = {.desired = prop_up_to(&r, live),
		                                   .is_down = true,
		                                   .has_loads = true,
		                                   .now_ms = INT64_C(1000000000)};
		tick(&w, &rules, &plan);
		if (plan.waits || plan.n_victims != live - rules.desired)
			break_law("the number of victims is not that of the scale-down", &w, &w.pods[0]);
		if (rules.desired > 0)
			check_removal(&w, &plan);
		for (size_t v = 0; v < (size_t)plan.n_victims; v++)
			for (size_t k = (size_t)plan.n_victims; k < w.n; k++)
				if (w.pods[v].state == POD_READY && w.pods[k].state == POD_READY &&
				    !w.pods[v].has_cost && !w.pods[k].has_cost && w.pods[k].load < w.pods[v].load)
					break_law("a pod with more work goes", &w, &w.pods[v]);
	}
}

// The wanted scale moves, work comes to pods without a mark and ends, and sometimes the scale-down is cancelled.
static void drain_removes_no_busy_pod_before_its_time(void **state)
{
	struct prop_random r = {prop_seed() + 2};
	for (int64_t i = 0; i < prop_ticks() / 20; i++) {
		struct world w;
		struct victims_plan plan = {0};
		any_world(&r, &w, prop_chance(&r, 50) ? 0 : 20);
		struct victim_rules rules = {.is_down = true,
		                             .has_loads = true,
		                             .drain_ms = DRAIN_MS,
		                             .since_ms = INT64_C(1000000000),
		                             .now_ms = INT64_C(1000000000)};
		int32_t live = count_live(&w), ticks = 0;
		bool is_cancelled = false;
		rules.desired = prop_up_to(&r, live);
		for (;; ticks++, rules.now_ms += TICK_MS) {
			is_cancelled = prop_chance(&r, 3);
			if (is_cancelled)
				break;
			if (prop_chance(&r, 10) && rules.desired > 0)
				rules.desired -= prop_up_to(&r, 1);
			tick(&w, &rules, &plan);
			if (!plan.waits)
				break;
			if (ticks > EPISODE_MAX + (int32_t)w.n * DRAIN_MS / TICK_MS)
				break_law("the wait does not end", &w, &w.pods[0]);
			for (size_t k = 0; k < w.n; k++) {
				struct victim_pod *p = &w.pods[k];
				if (p->load > 0 && prop_chance(&r, 20))
					p->load -= 1;
				else if (p->marked_ms == 0 && prop_chance(&r, 20))
					p->load += 1;
			}
		}
		for (size_t k = 0; !is_cancelled && k < (size_t)plan.n_victims; k++) {
			const struct victim_pod *p = &w.pods[k];
			int64_t since_ms = p->marked_ms > 0 ? p->marked_ms : rules.since_ms;
			if (p->state != POD_PENDING && p->load > 0 && rules.now_ms - since_ms < DRAIN_MS)
				break_law("a busy pod goes before its time", &w, p);
		}
		if (!is_cancelled)
			continue;
		rules.is_down = false;
		rules.desired = live;
		tick(&w, &rules, &plan);
		for (size_t k = 0; k < w.n; k++)
			if (w.pods[k].marked_ms > 0)
				break_law("a mark outlives its scale-down", &w, &w.pods[k]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(pods_with_the_least_work_go),
	        cmocka_unit_test(drain_removes_no_busy_pod_before_its_time),
	};
	prop_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
