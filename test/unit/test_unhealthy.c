// SPDX-License-Identifier: Apache-2.0
// Goal: the number of replacements in the present scale survives wherever the state goes, and counts only what was
// written; the condition UnhealthyReplicas reports them. What is decided is pinned by test/policy/unhealthy_test.yaml
// and prop_guards.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "controller/status/status_doc.h"
#include "policies/schema/binding.h"
#include "test/support/engine.h"

#define WINDOW_MS 60000

static void begin(struct engine *e, int mode)
{
	engine_init(e, 4);
	engine_add_value(e, "load", 10)->target.tolerance_ratio = 0.1;
	e->policy.guards = (struct policy_guards){.set = true, .unhealthy = mode};
	e->policy.scale_down.stabilization_window_ms = WINDOW_MS;
	engine_start(e);
	engine_show(e, 0, 10);
	e->seen.health = (struct obs_health){.is_known = true, .unhealthy = 1};
}

static void order(struct engine *e)
{
	begin(e, UNHEALTHY_REPLACE);
	assert_int_equal(engine_tick(e)->desired, 5);
	engine_apply(e);
	assert_int_equal(decide_replacements(&e->policy, e->state), 1);
	e->now_ms += 15000;
}

static void replacements_survive_packing(void **state)
{
	struct engine e;
	order(&e);
	void *packed = malloc(decide_state_packed_bytes(&e.policy, e.state));
	decide_state_pack(&e.policy, e.state, packed);
	engine_start(&e);
	decide_state_unpack(&e.policy, packed, e.state);
	free(packed);
	assert_int_equal(engine_tick(&e)->desired, 5);
	engine_done(&e);
}

static void replacements_survive_a_restart(void **state)
{
	struct engine e;
	struct buf text;
	struct err error = {0};
	struct status_record record = {0}, read = {0};
	struct condition conditions[CONDITION_TYPE__COUNT];
	order(&e);
	engine_tick(&e);
	struct decided decided = {.policy = &e.policy, .decision = &e.decision};
	struct status_facts facts = {.phase = STATUS_DECIDED, .decided = &decided};
	buf_init(&text, STATUS_BYTES_MAX);
	status_conditions(&facts, conditions);
	assert_int_equal(conditions[CONDITION_UNHEALTHY_REPLICAS].status, CONDITION_TRUE);
	assert_non_null(
	        strstr(conditions[CONDITION_UNHEALTHY_REPLICAS].message, "failing GPUs hold 1 of the replicas"));
	status_doc_write(&text, &(struct status_doc){.facts = &facts,
	                                             .conditions = conditions,
	                                             .record = &record,
	                                             .policy = &e.policy,
	                                             .state = e.state,
	                                             .now_ms = e.now_ms});
	engine_start(&e);
	assert_int_equal(status_doc_read(buf_str(&text), text.len, &(struct binding){.policy = &e.policy}, e.state,
	                                 &read, e.now_ms, &error),
	                 0);
	status_record_done(&read);
	buf_done(&text);
	assert_int_equal(decide_replacements(&e.policy, e.state), 1);
	decide_record_scale(&e.policy, e.state, e.now_ms, 4,
	                    5); // the process exited before it wrote this to the status
	assert_int_equal(decide_replacements(&e.policy, e.state), 1);
	assert_int_equal(engine_tick(&e)->desired, 5);
	engine_done(&e);
}

// The last process was killed between the PATCH and the status: what it ordered is not ordered again.
static void replacements_that_a_killed_process_ordered_are_counted(void **state)
{
	static const struct {
		int32_t from, recorded, to, unhealthy; // replicas and replacements in the status, present replicas
		int32_t multiple, replacements, desired;
	} rows[] = {
	        {4, 0, 5, 1, 1, 1, 5}, // a replacement
	        {4, 0, 6, 1, 1, 1, 6}, // and one more replica for the load
	        {4, 0, 5, 2, 1, 1, 6}, // another replica has become unhealthy since
	        {4, 1, 5, 1, 1, 1, 5}, // the load alone: its replacement was recorded
	        {5, 1, 4, 0, 1, 0, 4}, // the replacement was removed
	        {9, 1, 6, 1, 1, 1, 6}, // less load
	        {4, 0, 6, 1, 2, 0, 6}, // half a multiple is not replaced
	        {4, 0, 6, 2, 2, 2, 6},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct engine e;
		begin(&e, UNHEALTHY_REPLACE);
		e.policy.replica_multiple = rows[i].multiple;
		decide_record_replacements(&e.policy, e.state, rows[i].recorded);
		decide_record_scale(&e.policy, e.state, e.now_ms, rows[i].from, rows[i].to);
		decide_adopt_scale(&e.policy, e.state, rows[i].to - rows[i].from);
		e.seen.spec_replicas = e.seen.status_replicas = e.seen.ready_replicas = rows[i].to;
		e.seen.health = (struct obs_health){.is_known = false};
		assert_int_equal(engine_tick(&e)->desired, rows[i].to);
		e.now_ms += 15000;
		e.seen.health = (struct obs_health){.is_known = true, .unhealthy = rows[i].unhealthy};
		int32_t desired = engine_tick(&e)->desired, replacements = decide_replacements(&e.policy, e.state);
		if (desired != rows[i].desired || (desired == rows[i].to && replacements != rows[i].replacements))
			fail_msg("row %zu: %d replicas, %d replacements", i, desired, replacements);
		engine_done(&e);
	}
}

// The status is written as a merge patch: a field that is left out keeps its last value.
static void status_without_replacements_removes_their_number(void **state)
{
	struct engine e;
	struct buf text;
	struct status_record record = {0};
	struct condition conditions[CONDITION_TYPE__COUNT];
	begin(&e, UNHEALTHY_REPLACE);
	engine_tick(&e);
	struct decided decided = {.policy = &e.policy, .decision = &e.decision};
	struct status_facts facts = {.phase = STATUS_DECIDED, .decided = &decided};
	buf_init(&text, STATUS_BYTES_MAX);
	status_conditions(&facts, conditions);
	status_doc_write(&text, &(struct status_doc){.facts = &facts,
	                                             .conditions = conditions,
	                                             .record = &record,
	                                             .policy = &e.policy,
	                                             .state = e.state,
	                                             .now_ms = e.now_ms});
	assert_non_null(strstr(buf_str(&text), "\"replacements\":null"));
	buf_done(&text);
	engine_done(&e);
}

// The guard was removed while no process ran.
static void replacements_of_a_policy_without_replace_are_not_restored(void **state)
{
	struct engine e;
	begin(&e, UNHEALTHY_REPORT);
	decide_record_replacements(&e.policy, e.state, 2);
	assert_int_equal(decide_replacements(&e.policy, e.state), 0);
	engine_done(&e);
}

static void replacements_survive_a_change_of_the_policy(void **state)
{
	struct engine e;
	order(&e);
	struct policy changed = e.policy;
	changed.max_replicas = 500;
	void *moved = calloc(1, decide_state_bytes(&changed));
	decide_state_init(&changed, moved);
	decide_state_migrate(&e.policy, e.state, &changed, moved);
	assert_int_equal(decide_replacements(&changed, moved), 1);
	changed.guards.unhealthy = UNHEALTHY_REPORT;
	decide_state_init(&changed, moved);
	decide_state_migrate(&e.policy, e.state, &changed, moved);
	assert_int_equal(decide_replacements(&changed, moved), 0);
	free(moved);
	engine_done(&e);
}

static void condition_reports_with_and_without_replace(void **state)
{
	static const struct {
		int mode;
		struct obs_health health;
		enum condition_status status;
		const char *reason;
	} rows[] = {
	        {UNHEALTHY_REPORT, {true, 2}, CONDITION_TRUE, "UnhealthyReplicas"},
	        {UNHEALTHY_REPORT, {true, 0}, CONDITION_FALSE, "ReplicasHealthy"},
	        {UNHEALTHY_REPORT, {false, 0}, CONDITION_UNKNOWN, "UnhealthyUnknown"},
	        {UNHEALTHY_REPLACE, {true, 2}, CONDITION_TRUE, "UnhealthyReplaced"},
	        {UNHEALTHY_REPLACE, {false, 0}, CONDITION_UNKNOWN, "UnhealthyUnknown"},
	        {UNHEALTHY_IGNORE, {true, 2}, CONDITION_UNKNOWN, ""}, // absent
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct engine e;
		struct condition conditions[CONDITION_TYPE__COUNT];
		begin(&e, rows[i].mode);
		e.seen.health = rows[i].health;
		engine_tick(&e);
		struct decided decided = {.policy = &e.policy, .decision = &e.decision};
		status_conditions(&(struct status_facts){.phase = STATUS_DECIDED, .decided = &decided}, conditions);
		const struct condition *c = &conditions[CONDITION_UNHEALTHY_REPLICAS];
		if (c->status != rows[i].status || strcmp(c->reason, rows[i].reason) != 0)
			fail_msg("row %zu: %d %s", i, (int)c->status, c->reason);
		engine_done(&e);
	}
}

static void decision_that_is_not_written_orders_nothing(void **state)
{
	struct engine e;
	begin(&e, UNHEALTHY_REPLACE);
	for (int i = 0; i < 3; i++, e.now_ms += 15000)
		assert_int_equal(engine_tick(&e)->desired, 5);
	assert_int_equal(decide_replacements(&e.policy, e.state), 0);
	engine_done(&e);
}

static void part_of_a_decision_that_is_written_counts(void **state)
{
	struct engine e;
	begin(&e, UNHEALTHY_REPLACE);
	e.seen.health.unhealthy = 3;
	assert_int_equal(engine_tick(&e)->desired, 7);
	decide_record_scale(&e.policy, e.state, e.now_ms, 4, 6); // as when a pool grants less
	assert_int_equal(decide_replacements(&e.policy, e.state), 2);
	e.seen.spec_replicas = e.seen.status_replicas = e.seen.ready_replicas = 6;
	e.now_ms += 15000;
	assert_int_equal(engine_tick(&e)->desired, 7);
	engine_done(&e);
}

static void return_waits_for_the_window_although_the_clock_is_set(void **state)
{
	struct engine e;
	order(&e);
	e.seen.health.unhealthy = 0;
	assert_int_equal(engine_tick(&e)->desired, 5);
	decide_clock_was_set(&e.policy, e.state, 3600000);
	e.now_ms += 3600000 + WINDOW_MS - 1;
	assert_int_equal(engine_tick(&e)->desired, 5);
	e.now_ms += 1;
	assert_int_equal(engine_tick(&e)->desired, 4);
	engine_done(&e);
}

static void scale_that_was_lowered_by_hand_keeps_one_replica(void **state)
{
	struct engine e;
	order(&e);
	e.seen.spec_replicas = e.seen.status_replicas = e.seen.ready_replicas = 1;
	assert_int_equal(engine_tick(&e)->desired, 2);
	engine_done(&e);
}

static void numbers_at_their_limits_stay_within_the_bounds(void **state)
{
	static const int32_t numbers[] = {INT32_MIN, -1, 0, 1, POLICY_REPLICAS_MAX, INT32_MAX};
	enum { N = sizeof numbers / sizeof numbers[0] };
	for (size_t i = 0; i < (size_t)N * N * N; i++) {
		struct engine e;
		begin(&e, UNHEALTHY_REPLACE);
		e.policy.max_replicas = POLICY_REPLICAS_MAX;
		e.policy.replica_multiple = i % 2 ? 7 : 1;
		decide_record_replacements(&e.policy, e.state, numbers[i % N]);
		e.seen.health.unhealthy = numbers[i / N % N];
		e.seen.spec_replicas = e.seen.status_replicas = e.seen.ready_replicas = numbers[i / N / N];
		const struct decision *d = engine_tick(&e);
		if (d->desired < 0 || d->desired > POLICY_REPLICAS_MAX)
			fail_msg("row %zu: %d replicas", i, d->desired);
		engine_done(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(replacements_survive_packing),
	        cmocka_unit_test(replacements_survive_a_restart),
	        cmocka_unit_test(replacements_that_a_killed_process_ordered_are_counted),
	        cmocka_unit_test(status_without_replacements_removes_their_number),
	        cmocka_unit_test(replacements_of_a_policy_without_replace_are_not_restored),
	        cmocka_unit_test(replacements_survive_a_change_of_the_policy),
	        cmocka_unit_test(condition_reports_with_and_without_replace),
	        cmocka_unit_test(decision_that_is_not_written_orders_nothing),
	        cmocka_unit_test(part_of_a_decision_that_is_written_counts),
	        cmocka_unit_test(return_waits_for_the_window_although_the_clock_is_set),
	        cmocka_unit_test(scale_that_was_lowered_by_hand_keeps_one_replica),
	        cmocka_unit_test(numbers_at_their_limits_stay_within_the_bounds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
