// SPDX-License-Identifier: Apache-2.0
// Which pods a scale-down removes, which are marked, and when it waits.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/engine/decision.h"
#include "policies/engine/victims.h"

#define NOW    INT64_C(1000000000)
#define SECOND 1000
#define PODS   10

struct row {
	const char *name;
	int32_t desired;
	int64_t drain_ms;
	// One letter a pod, in any order: its state (r ready, u unready, p pending, d deleted).
	const char *states;
	const char *loads;   // one digit a pod, - for none
	const char *marks;   // m marked 10 s ago, f marked just now, + and - a cost of 5 and -5 that another client set
	const char *actions; // expected: M mark, U unmark, . keep
	int32_t n_victims, n_busy;
};
static const struct row rows[] = {
        {"least work first", 3, 0, "rrrrr", "50913", ".....", ".M.M.", 2, 0},
        {"names decide between equals", 3, 0, "rrrrr", "00000", ".....", "MM...", 2, 0},
        {"pending pods go unmarked", 3, 0, "rrrrp", "50913", ".....", ".M...", 2, 0},
        {"unready pods go before ready ones", 3, 0, "rrrru", "50919", ".....", ".M...", 2, 0},
        {"deleted pods stay out", 3, 0, "rrrrd", "50913", ".....", ".M...", 1, 0},
        {"pod without a value is busy", 3, 0, "rrrrr", "5-9-3", ".....", "M...M", 2, 0},
        {"nothing is marked when all go", 0, 0, "rrrrr", "50913", ".....", ".....", 5, 0},
        {"mark is not repeated", 3, 0, "rrrrr", "50913", ".m.m.", ".....", 2, 0},
        {"mark of a smaller scale-down is extended", 3, 0, "rrrrr", "50913", "...m.", ".M...", 2, 0},
        {"surplus mark is removed with the write", 4, 0, "rrrrr", "50913", ".m.m.", "...U.", 1, 0},
        {"low cost of another client goes first, unmarked", 3, 0, "rrrrr", "50913", "..-..", ".M...", 2, 0},
        {"high cost of another client goes last", 3, 0, "rrrrr", "50913", ".+...", "...MM", 2, 0},
        {"drain marks and waits at first", 3, 60000, "rrrrr", "50913", ".....", ".M.M.", 2, 2},
        {"drain waits for the busy one", 3, 60000, "rrrrr", "50913", ".m.m.", ".....", 2, 1},
        {"drain ends with the last work", 3, 60000, "rrrrr", "50903", ".m.m.", ".....", 2, 0},
        {"drain ends with its time", 3, 10000, "rrrrr", "59913", ".m.m.", ".....", 2, 0},
        {"work measured before the mark was noticed is not trusted", 3, 60000, "rrrrr", "50903", ".f.f.", ".....", 2,
         2},
        {"drain keeps a surplus mark while it waits", 4, 60000, "rrrrr", "52913", ".m.m.", ".....", 1, 1},
        {"drain does not wait for pending pods", 4, 60000, "rrrrp", "5091-", ".....", ".....", 1, 0},
        {"drain waits for the pod with a cost of another client", 4, 60000, "rrrrr", "50913", "..-..", ".....", 1, 1},
        {"drain to zero marks all", 0, 60000, "rrrrr", "50913", ".....", "MMMMM", 5, 5},
};

static struct victim_pod pod_of(const struct row *row, size_t i)
{
	static const char *const names[] = {"a", "b", "c", "d", "e"};
	char mark = row->marks[i], state = row->states[i];
	return (struct victim_pod){.name = names[i],
	                           .index = i,
	                           .state = state == 'r'   ? POD_READY
	                                    : state == 'u' ? POD_UNREADY
	                                    : state == 'p' ? POD_PENDING
	                                                   : POD_DELETED,
	                           .has_cost = mark == '+' || mark == '-',
	                           .cost = mark == '+'   ? 5
	                                   : mark == '-' ? -5
	                                                 : 0,
	                           .marked_ms = mark == 'm'   ? NOW - 10 * SECOND
	                                        : mark == 'f' ? NOW - 500
	                                                      : 0,
	                           .load = row->loads[i] == '-' ? NAN : row->loads[i] - '0',
	                           .load_ms = NOW};
}

static void pods_of_a_scale_down_are_chosen_and_marked(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		const struct row *row = &rows[k];
		struct victim_pod pods[PODS];
		struct victims_plan plan;
		char actions[PODS] = "";
		size_t n = strlen(row->states);
		for (size_t i = 0; i < n; i++)
			pods[n - 1 - i] = pod_of(row, i);
		qsort(pods, n, sizeof pods[0], victims_compare);
		const struct victim_rules rules = {.desired = row->desired,
		                                   .is_down = true,
		                                   .has_loads = true,
		                                   .drain_ms = row->drain_ms,
		                                   .now_ms = NOW};
		victims_plan(&rules, pods, n, &plan);
		for (size_t i = 0; i < n; i++)
			actions[pods[i].index] = ".MU"[pods[i].action];
		if (strcmp(actions, row->actions) != 0 || plan.n_victims != row->n_victims ||
		    plan.n_busy != row->n_busy || plan.waits != (row->n_busy > 0))
			fail_msg("%s: actions %s, %d victims, %d busy", row->name, actions, plan.n_victims,
			         plan.n_busy);
	}
}

static void marks_are_removed_when_no_scale_down_explains_them(void **state)
{
	(void)state;
	const struct row row = {.states = "rrrr", .loads = "0000", .marks = "mm+."};
	struct victim_pod pods[4];
	struct victims_plan plan;
	for (int32_t replicas = 3; replicas <= 5; replicas++) {
		for (size_t i = 0; i < 4; i++)
			pods[i] = pod_of(&row, i);
		qsort(pods, 4, sizeof pods[0], victims_compare);
		// The controller of the pods has not removed the surplus of a scale-down yet.
		victims_plan(&(struct victim_rules){.desired = replicas, .has_loads = true, .now_ms = NOW}, pods, 4,
		             &plan);
		assert_int_equal(plan.n_unmarks, replicas == 3 ? 1 : 2);
		assert_int_equal(plan.n_marks, 0);
		assert_false(plan.waits);
	}
}

static void pods_are_not_marked_without_any_value_but_waited_for(void **state)
{
	(void)state;
	const struct row row = {.states = "rrrr", .loads = "----", .marks = "...."};
	struct victim_pod pods[4];
	struct victims_plan plan;
	for (size_t i = 0; i < 4; i++)
		pods[i] = pod_of(&row, i);
	struct victim_rules rules = {.desired = 2, .is_down = true, .drain_ms = 60000, .now_ms = NOW};
	victims_plan(&rules, pods, 4, &plan);
	assert_int_equal(plan.n_marks, 0);
	assert_int_equal(plan.left_ms, 60000);
	rules.since_ms = NOW - 60000;
	victims_plan(&rules, pods, 4, &plan);
	assert_false(plan.waits);
}

static void waiting_decision_keeps_the_scale_and_says_why(void **state)
{
	(void)state;
	struct decision d = {.current = 5, .desired = 3, .action = ACTION_SCALE_DOWN, .write = true};
	const struct victims_plan plan = {.n_victims = 2, .n_busy = 1, .waits = true, .left_ms = 7000};
	decide_victims(&plan, VICTIMS_CHOSEN, &d);
	assert_int_equal(d.desired, 5);
	assert_int_equal(d.action, ACTION_NONE);
	assert_false(d.write);
	assert_int_equal(d.reason, REASON_DRAINING);
	assert_int_equal(d.n_trace, 2);
	assert_int_equal(d.entries[d.driver].reason, REASON_DRAINING);
	assert_int_equal(d.entries[d.driver].duration_ms, 7000);
	assert_int_equal(d.entries[0].reason, REASON_VICTIMS_CHOSEN);
	d = (struct decision){.current = 5, .desired = 3, .write = true, .n_trace = DECISION_TRACE_MAX};
	decide_victims(&plan, VICTIMS_CHOSEN, &d);
	assert_int_equal(d.desired, 5);
	assert_true(d.trace_cut);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(pods_of_a_scale_down_are_chosen_and_marked),
	        cmocka_unit_test(marks_are_removed_when_no_scale_down_explains_them),
	        cmocka_unit_test(pods_are_not_marked_without_any_value_but_waited_for),
	        cmocka_unit_test(waiting_decision_keeps_the_scale_and_says_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
