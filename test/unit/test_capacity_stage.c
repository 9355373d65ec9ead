// SPDX-License-Identifier: Apache-2.0
// Goal: the stage capacity remembers a withdrawal wherever the state goes, records none that was not ordered, and has a
// condition of its own. What it decides is pinned by test/policy/capacity_test.yaml.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "controller/status/status_doc.h"
#include "policies/schema/binding.h"
#include "test/support/engine.h"

#define GIVE_UP_MS 60000
#define RETRY_MS   600000

static int64_t since_ms[4];

// Eight replicas are wanted and ordered, four of them are unschedulable for age_ms.
static void begin(struct engine *e, int mode, int64_t age_ms)
{
	engine_init(e, 8);
	engine_add_replicas(e, "want");
	e->policy.capacity = (struct policy_capacity){mode, GIVE_UP_MS, RETRY_MS};
	engine_start(e);
	engine_show(e, 0, 8);
	for (size_t i = 0; i < 4; i++)
		since_ms[i] = e->now_ms - age_ms;
	e->seen.capacity =
	        (struct obs_capacity){.is_known = true, .unschedulable = 4, .since_ms = since_ms, .n_since = 4};
}

static void withdraw(struct engine *e)
{
	begin(e, CAPACITY_ELASTIC, GIVE_UP_MS);
	assert_int_equal(engine_tick(e)->desired, 4);
	engine_apply(e);
	e->seen.capacity = (struct obs_capacity){.is_known = true};
	e->now_ms += 15000;
}

static void expect_retry(struct engine *e, int64_t left_ms)
{
	assert_int_equal(engine_tick(e)->desired, 4);
	const struct trace_entry *t = engine_find(e, REASON_CAPACITY_RETRY);
	assert_non_null(t);
	assert_int_equal(t->duration_ms, left_ms);
}

static void withdrawal_survives_packing(void **state)
{
	struct engine e;
	withdraw(&e);
	void *packed = malloc(decide_state_packed_bytes(&e.policy, e.state));
	decide_state_pack(&e.policy, e.state, packed);
	engine_start(&e);
	decide_state_unpack(&e.policy, packed, e.state);
	free(packed);
	expect_retry(&e, RETRY_MS - 15000);
	engine_done(&e);
}

static void withdrawal_survives_a_restart_through_the_status(void **state)
{
	struct engine e;
	struct buf text;
	struct err error = {0};
	struct status_record record = {0}, read = {0};
	struct condition conditions[CONDITION_TYPE__COUNT];
	withdraw(&e);
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
	engine_start(&e);
	assert_int_equal(status_doc_read(buf_str(&text), text.len, &(struct binding){.policy = &e.policy}, e.state,
	                                 &read, e.now_ms, &error),
	                 0);
	status_record_done(&read);
	buf_done(&text);
	expect_retry(&e, RETRY_MS - 15000);
	engine_done(&e);
}

static void withdrawal_keeps_its_age_when_the_clock_is_set(void **state)
{
	struct engine e;
	withdraw(&e);
	decide_clock_was_set(&e.policy, e.state, 3600000);
	e.now_ms += 3600000;
	expect_retry(&e, RETRY_MS - 15000);
	engine_done(&e);
}

static void withdrawal_of_another_clock_is_not_in_the_future(void **state)
{
	struct engine e;
	withdraw(&e);
	engine_start(&e);
	decide_record_withdrawal(&e.policy, e.state, e.now_ms + 3600000);
	expect_retry(&e, RETRY_MS);
	assert_non_null(engine_find(&e, REASON_FUTURE_STAMP));
	engine_done(&e);
}

static void withdrawal_survives_a_change_of_the_policy(void **state)
{
	struct engine e;
	withdraw(&e);
	struct policy changed = e.policy;
	changed.max_replicas = 500;
	void *moved = calloc(1, decide_state_bytes(&changed));
	decide_state_init(&changed, moved);
	decide_state_migrate(&e.policy, e.state, &changed, moved);
	assert_int_equal(decide_withdrawn_ms(&changed, moved), e.now_ms - 15000);
	free(moved);
	engine_done(&e);
}

static void nothing_is_recorded_that_was_not_ordered(void **state)
{
	struct engine e;
	begin(&e, CAPACITY_ELASTIC, GIVE_UP_MS);
	e.policy.dry_run = true;
	assert_int_equal(engine_tick(&e)->desired, 4);
	assert_int_equal(decide_withdrawn_ms(&e.policy, e.state), -1);
	e.policy.dry_run = false;
	e.policy.paused = true;
	assert_int_equal(engine_tick(&e)->desired, 8);
	assert_int_equal(decide_withdrawn_ms(&e.policy, e.state), -1);
	engine_done(&e);
}

static void replicas_younger_than_give_up_after_are_kept(void **state)
{
	struct engine e;
	begin(&e, CAPACITY_ELASTIC, GIVE_UP_MS - 1);
	assert_int_equal(engine_tick(&e)->desired, 8);
	assert_non_null(engine_find(&e, REASON_CAPACITY_PENDING));
	engine_done(&e);
}

static void condition_states_the_rest_and_why(void **state)
{
	static const char *const details[] = {NULL, "0/1 nodes are available: 1 Insufficient nvidia.com/gpu."};
	static const struct {
		int mode;
		bool is_known;
		int32_t fit, unschedulable;
		enum condition_status status;
		const char *reason, *message;
	} rows[] = {
	        {CAPACITY_OFF, false, 0, 0, CONDITION_UNKNOWN, "", ""},
	        {CAPACITY_FIXED, true, 9, 0, CONDITION_FALSE, "CapacityAvailable", "every replica has room"},
	        {CAPACITY_FIXED, true, 2, 0, CONDITION_TRUE, "CapacityLimited",
	         "8 is wanted, but only 2 more fit, so 4 are not ordered: 4 (0/1 nodes are available: 1 Insufficient "
	         "nvidia.com/gpu.)"},
	        {CAPACITY_ELASTIC, true, 0, 3, CONDITION_TRUE, "CapacityPending",
	         "3 replicas are unschedulable (0/1 nodes are available: 1 Insufficient nvidia.com/gpu.)"},
	        {CAPACITY_ELASTIC, false, 0, 0, CONDITION_UNKNOWN, "CapacityUnknown",
	         "the capacity of the cluster is unknown and limits nothing (0/1 nodes are available: 1 Insufficient "
	         "nvidia.com/gpu.)"},
	};
	struct condition conditions[CONDITION_TYPE__COUNT];
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct engine e;
		engine_init(&e, 2);
		engine_add_replicas(&e, "want");
		e.policy.capacity = (struct policy_capacity){rows[i].mode, GIVE_UP_MS, RETRY_MS};
		engine_start(&e);
		engine_show(&e, 0, 8);
		e.seen.capacity = (struct obs_capacity){
		        .is_known = rows[i].is_known, .fit = rows[i].fit, .unschedulable = rows[i].unschedulable};
		engine_tick(&e);
		struct decided decided = {.policy = &e.policy, .decision = &e.decision, .details = details};
		status_conditions(&(struct status_facts){.phase = STATUS_DECIDED, .decided = &decided}, conditions);
		const struct condition *c = &conditions[CONDITION_CAPACITY_LIMITED];
		assert_int_equal(c->status, rows[i].status);
		assert_string_equal(c->reason, rows[i].reason);
		assert_string_equal(c->message, rows[i].message);
		engine_done(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(withdrawal_survives_packing),
	        cmocka_unit_test(withdrawal_survives_a_restart_through_the_status),
	        cmocka_unit_test(withdrawal_keeps_its_age_when_the_clock_is_set),
	        cmocka_unit_test(withdrawal_of_another_clock_is_not_in_the_future),
	        cmocka_unit_test(withdrawal_survives_a_change_of_the_policy),
	        cmocka_unit_test(nothing_is_recorded_that_was_not_ordered),
	        cmocka_unit_test(replicas_younger_than_give_up_after_are_kept),
	        cmocka_unit_test(condition_states_the_rest_and_why),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
