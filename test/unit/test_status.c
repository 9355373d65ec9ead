// SPDX-License-Identifier: Apache-2.0
// Goal: the status says what happened in the HPA's words, and a process that reads it decides as the one that wrote it
// would have.
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
#include "base/json/json_read.h"
#include "controller/status/status_doc.h"
#include "policies/schema/binding.h"
#include "test/support/engine.h"

static struct decided decided_of(const struct engine *e)
{
	return (struct decided){.policy = &e->policy, .decision = &e->decision};
}

static void write_status(struct buf *out, const struct engine *e, enum status_phase phase, struct status_record *record)
{
	struct decided decided = decided_of(e);
	struct status_facts facts = {.phase = phase, .decided = &decided, .paused = e->policy.paused};
	struct condition conditions[CONDITION_TYPE__COUNT];
	status_conditions(&facts, conditions);
	for (int i = 0; i < CONDITION_TYPE__COUNT; i++) {
		record->condition[i] = conditions[i].status;
		record->since_ms[i] = e->now_ms;
	}
	status_doc_write(out, &(struct status_doc){.facts = &facts,
	                                           .conditions = conditions,
	                                           .record = record,
	                                           .policy = &e->policy,
	                                           .state = e->state,
	                                           .generation = 3,
	                                           .now_ms = e->now_ms});
	assert_false(out->failed);
}

// ---- a restart ----

// A load with a saw on it: stabilization, rates and cooldown all have something to do.
static double load_at(int tick)
{
	return 8 + 6 * (tick / 12 % 3) + (tick % 5 == 0 ? 4 : 0) - (tick % 7 == 0 ? 5 : 0);
}

static void start_engine(struct engine *e)
{
	engine_init(e, 4);
	engine_add_value(e, "queue", 2);
	e->policy.scale_down.stabilization_window_ms = 120000;
	e->policy.scale_up.stabilization_window_ms = 30000;
	e->policy.cooldown = (struct policy_sustain){30000, 45000};
	engine_add_rate(e, +1, RATE_PODS, 3, 60000);
	engine_add_rate(e, -1, RATE_PERCENT, 50, 60000);
	engine_start(e);
}

static void restart(struct engine *e)
{
	struct buf text;
	struct status_record record = {0}, read = {0};
	struct err error = {0};
	buf_init(&text, STATUS_BYTES_MAX);
	write_status(&text, e, STATUS_DECIDED, &record);
	engine_start(e); // all forgotten
	if (status_doc_read(buf_str(&text), text.len, &(struct binding){.policy = &e->policy}, e->state, &read,
	                    e->now_ms, &error) < 0)
		fail_msg("%s", error.msg);
	for (int i = 0; i < CONDITION_TYPE__COUNT; i++)
		assert_int_equal(read.condition[i], record.condition[i]);
	status_record_done(&read);
	buf_done(&text);
}

static void process_that_reads_the_status_decides_as_the_one_that_wrote_it(void **state)
{
	struct engine e, other;
	int limited = 0, scaled = 0;
	start_engine(&e);
	start_engine(&other);
	for (int tick = 0; tick < 200; tick++) {
		engine_show(&e, 0, load_at(tick));
		engine_show(&other, 0, load_at(tick));
		const struct decision *a = engine_tick(&e), *b = engine_tick(&other);
		if (a->desired != b->desired || a->reason != b->reason)
			fail_msg("tick %d: %d (%s), after a restart %d (%s)", tick, a->desired,
			         reason_info(a->reason)->name, b->desired, reason_info(b->reason)->name);
		limited += engine_find(&e, REASON_SCALE_DOWN_STABILIZED) || engine_find(&e, REASON_COOLDOWN_ACTIVE) ||
		           engine_find(&e, REASON_SCALE_UP_LIMIT);
		scaled += a->write;
		engine_apply(&e);
		engine_apply(&other);
		restart(&other);
		e.now_ms += 15000;
		other.now_ms += 15000;
	}
	assert_true(limited > 20 && scaled > 5); // there was something to forget
	engine_done(&e);
	engine_done(&other);
}

// ---- the status of a host whose clock was wrong ----

static void times_from_the_future_cost_one_cooldown_and_are_named(void **state)
{
	static const char ahead[] =
	        "{\"status\":{\"lastScaleTime\":\"2099-01-05T09:00:00Z\",\"scaleEvents\":[{\"time\":"
	        "\"2099-01-05T09:00:00Z\",\"change\":3}],\"recommendations\":[{\"time\":\"2099-01-05T09:00:00Z\","
	        "\"replicas\":9}],\"lastUpdateTime\":\"2099-01-05T09:00:00Z\"}}";
	struct engine e;
	struct status_record record = {0};
	struct err error;
	(void)state;
	engine_init(&e, 4);
	engine_add_replicas(&e, "asked");
	e.policy.cooldown = (struct policy_sustain){60000, 60000};
	engine_start(&e);
	e.now_ms = INT64_C(1767603600000);
	assert_int_equal(status_doc_read(ahead, sizeof ahead - 1, &(struct binding){.policy = &e.policy}, e.state,
	                                 &record, e.now_ms, &error),
	                 0);
	status_record_done(&record);
	engine_show(&e, 0, 6);
	assert_int_equal(engine_tick(&e)->reason, REASON_COOLDOWN_ACTIVE);
	assert_int_equal(engine_find(&e, REASON_COOLDOWN_ACTIVE)->duration_ms, 60000);
	assert_true(engine_find(&e, REASON_FUTURE_STAMP)->duration_ms > INT64_C(70) * 365 * 86400000);
	e.now_ms += 60000;
	assert_int_equal(engine_tick(&e)->desired, 6);
	assert_null(engine_find(&e, REASON_FUTURE_STAMP));
	engine_done(&e);
}

// ---- what is kept is small ----

static void many_recommendations_become_the_few_that_matter(void **state)
{
	struct engine e;
	struct buf text;
	struct status_record record = {0};
	struct err error;
	engine_init(&e, 10);
	engine_add_value(&e, "queue", 1);
	e.policy.scale_down.stabilization_window_ms = 3600000;
	engine_start(&e);
	for (int i = 0; i < 200; i++) {
		engine_show(&e, 0, i % 2 ? 3 : 4);
		engine_tick(&e);
		e.now_ms += 15000;
	}
	buf_init(&text, STATUS_BYTES_MAX);
	write_status(&text, &e, STATUS_DECIDED, &record);
	cJSON *root = json_read(buf_str(&text), text.len, &error);
	const cJSON *status = json_get(root, "status");
	int n = cJSON_GetArraySize(json_get(status, "recommendations"));
	if (n < 1 || n > 4)
		fail_msg("%d recommendations of two values", n);
	assert_string_equal(json_get_str(status, "signalsSummary", ""), "queue 3/1");
	assert_true(text.len < 4096);
	cJSON_Delete(root);
	buf_done(&text);
	engine_done(&e);
}

static void old_decisions_make_room(void **state)
{
	struct status_record record = {0};
	for (int i = 0; i < 3 * STATUS_DECISIONS_MAX; i++)
		status_record_add(&record, i, ACTION_NONE, REASON_ABOVE_TARGET, i, i + 1, "x");
	assert_int_equal(record.n_decisions, STATUS_DECISIONS_MAX);
	assert_int_equal(record.decisions[0].time_ms, 2 * STATUS_DECISIONS_MAX);
	assert_int_equal(record.decisions[STATUS_DECISIONS_MAX - 1].time_ms, 3 * STATUS_DECISIONS_MAX - 1);
	status_record_done(&record);
}

// ---- a status that another client wrote ----

static const char *const odd_statuses[] = {
        "{}",
        "{\"status\":null}",
        "{\"status\":[1,2]}",
        "{\"status\":{\"recommendations\":7,\"scaleEvents\":\"x\",\"decisions\":{},\"conditions\":[null,3]}}",
        "{\"status\":{\"recommendations\":[{\"time\":\"x\",\"replicas\":1},{\"replicas\":2},{\"time\":\"2026-01-05T09:"
        "00:00Z\"}]}}",
        "{\"status\":{\"recommendations\":[{\"time\":\"2026-01-05T09:00:00Z\",\"replicas\":99999999999}]}}",
        "{\"status\":{\"scaleEvents\":[{\"time\":\"2026-01-05T09:00:00Z\",\"change\":-99999999999}]}}",
        "{\"status\":{\"decisions\":[{\"time\":\"2026-01-05T09:00:00Z\",\"action\":\"Dance\",\"reason\":\"None\","
        "\"from\":1,\"to\":2}]}}",
        "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"Maybe\"},{\"type\":\"Nice\",\"status\":\"True\"}"
        "]}}",
        "{\"status\":{\"lastScaleTime\":\"9999-01-01T00:00:00Z\",\"startupSeconds\":-5}}",
};

static void unusable_fields_are_left_out(void **state)
{
	for (size_t i = 0; i < sizeof odd_statuses / sizeof odd_statuses[0]; i++) {
		struct engine e;
		struct status_record record = {0};
		struct err error = {0};
		struct decide_recommendation r[2 * DECIDE_HISTORY_MAX];
		engine_init(&e, 3);
		engine_add_value(&e, "queue", 1);
		engine_start(&e);
		if (status_doc_read(odd_statuses[i], strlen(odd_statuses[i]), &(struct binding){.policy = &e.policy},
		                    e.state, &record, e.now_ms, &error) < 0)
			fail_msg("%s: %s", odd_statuses[i], error.msg);
		assert_int_equal(decide_recommendations(&e.policy, e.state, r, 2 * DECIDE_HISTORY_MAX), 0);
		assert_int_equal(record.n_decisions, 0);
		assert_true(decide_last_scale_ms(&e.policy, e.state) <= e.now_ms); // no cooldown from the future
		status_record_done(&record);
		engine_done(&e);
	}
}

// A reply that is not the object says nothing of what was: it must not pass for an object without a past.
static void text_that_is_not_an_object_is_an_error(void **state)
{
	static const char *const replies[] = {
	        "",      "{\"status\":", "{\"metadata\":{\"name\":\"a\"},\"status\":{\"lastS",
	        "[]",    "[1]",          "[{\"status\":{}}]",
	        "7",     "null",         "\"status\"",
	        "<html>"};
	for (size_t i = 0; i < sizeof replies / sizeof replies[0]; i++) {
		struct engine e;
		struct status_record record = {0};
		struct err error = {0};
		engine_init(&e, 3);
		engine_start(&e);
		if (status_doc_read(replies[i], strlen(replies[i]), &(struct binding){.policy = &e.policy}, e.state,
		                    &record, e.now_ms, &error) == 0)
			fail_msg("taken: %s", replies[i]);
		assert_int_equal(error.kind, ERR_PROTOCOL);
		assert_int_equal(record.replicas, -1);
		engine_done(&e);
	}
}

// Else a cooldown would be over that was not.
static void last_scale_that_cannot_be_read_was_just_now(void **state)
{
	static const struct {
		const char *json;
		bool is_unsure;
	} rows[] = {
	        {"{\"status\":{\"lastScaleTime\":7}}", true},
	        {"{\"status\":{\"lastScaleTime\":\"\"}}", true},
	        {"{\"status\":{\"lastScaleTime\":\"yesterday\"}}", true},
	        {"{\"status\":{\"lastScaleTime\":[\"2026-01-05T09:00:00Z\"]}}", true},
	        {"{\"status\":[1,2]}", true},
	        {"{\"status\":\"x\"}", true},
	        {"{\"status\":{\"lastScaleTime\":\"2020-01-05T09:00:00Z\",\"message\":\"\\u0000\"}}", true},
	        {"{\"status\":{\"lastScaleTime\":null}}", false},
	        {"{\"status\":{}}", false},
	        {"{\"status\":null}", false},
	        {"{\"a\":\"\\u0000\",\"status\":{\"currentReplicas\":3}}", false},
	        {"{}", false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct engine e;
		struct status_record record = {0};
		struct err error = {0};
		engine_init(&e, 3);
		engine_start(&e);
		if (status_doc_read(rows[i].json, strlen(rows[i].json), &(struct binding){.policy = &e.policy}, e.state,
		                    &record, e.now_ms, &error) < 0)
			fail_msg("%s: %s", rows[i].json, error.msg);
		assert_int_equal(record.is_unsure, rows[i].is_unsure);
		assert_int_equal(decide_last_scale_ms(&e.policy, e.state), rows[i].is_unsure ? e.now_ms : -1);
		engine_done(&e);
	}
	// The status is read although something else in the object is not valid JSON for us.
	static const char json[] = "{\"metadata\":{\"annotations\":{\"a\":\"\\u0000\"}},"
	                           "\"status\":{\"lastScaleTime\":\"2026-01-05T09:00:00Z\"}}";
	struct engine e;
	struct status_record record = {0};
	struct err error = {0};
	engine_init(&e, 3);
	engine_start(&e);
	e.now_ms = 1767607200000;
	assert_int_equal(status_doc_read(json, strlen(json), &(struct binding){.policy = &e.policy}, e.state, &record,
	                                 e.now_ms, &error),
	                 0);
	assert_int_equal(decide_last_scale_ms(&e.policy, e.state), 1767603600000);
	engine_done(&e);
}

// ---- conditions ----

struct condition_case {
	const char *name;
	enum status_phase phase;
	double value; // of a signal with target 2 and 4 replicas; < 0: none
	int cooldown_s, max_replicas;
	bool paused, dry_run;
	const char *text, *fault;
	const char *expected; // "Type=Status/Reason" each
};
static const struct condition_case condition_cases[] = {
        {"nothing to do", STATUS_DECIDED, 8, 0, 1000, false, false, NULL, NULL,
         "Ready=True/Reconciled AbleToScale=True/ReadyForNewScale ScalingActive=True/ValidMetricFound "
         "ScalingLimited=False/DesiredWithinRange Conflict=False/NoConflict DryRun=False/Writing "
         "Paused=False/NotPaused"},
        {"scaled", STATUS_SCALED, 12, 0, 1000, false, false, NULL, NULL,
         "Ready=True/Reconciled AbleToScale=True/SucceededRescale ScalingActive=True/ValidMetricFound"},
        {"at the ceiling", STATUS_DECIDED, 40, 0, 5, false, false, NULL, NULL,
         "Ready=True/Reconciled ScalingLimited=True/TooManyReplicas"},
        {"no data", STATUS_DECIDED, -1, 0, 1000, false, false, NULL, NULL,
         "Ready=False/NoData AbleToScale=True/ReadyForNewScale ScalingActive=False/NoData"},
        {"cooling down is not a fault", STATUS_DECIDED, 12, 600, 1000, false, false, NULL, NULL,
         "Ready=True/Reconciled AbleToScale=False/CooldownActive"},
        {"the write failed", STATUS_WRITE_FAILED, 12, 0, 1000, false, false, "forbidden", NULL,
         "Ready=False/FailedUpdateScale AbleToScale=False/FailedUpdateScale ScalingActive=True/ValidMetricFound"},
        {"no target", STATUS_READ_FAILED, -1, 0, 1000, false, false, "not found", NULL,
         "Ready=False/FailedGetScale AbleToScale=False/FailedGetScale ScalingActive=Unknown/FailedGetScale"},
        {"two masters", STATUS_CONFLICT, -1, 0, 1000, false, false, "HorizontalPodAutoscaler a/b", NULL,
         "Ready=False/DrivenByAnother AbleToScale=False/DrivenByAnother Conflict=True/DrivenByAnother"},
        {"never valid", STATUS_INVALID, -1, 0, 1000, false, false, "spec.signals: missing", NULL,
         "Ready=False/InvalidPolicy AbleToScale=False/InvalidPolicy ScalingActive=Unknown/InvalidPolicy"},
        {"not valid any more", STATUS_DECIDED, 8, 0, 1000, false, false, NULL, "spec.signals: missing",
         "Ready=False/InvalidPolicy AbleToScale=True/ReadyForNewScale"},
        {"paused", STATUS_DECIDED, 12, 0, 1000, true, false, NULL, NULL, "Ready=True/Reconciled Paused=True/Paused"},
        {"dry run", STATUS_DECIDED, 12, 0, 1000, false, true, NULL, NULL, "Ready=True/Reconciled DryRun=True/DryRun"},
};

static void conditions_have_the_reasons_of_the_hpa(void **state)
{
	for (size_t i = 0; i < sizeof condition_cases / sizeof condition_cases[0]; i++) {
		const struct condition_case *c = &condition_cases[i];
		struct engine e;
		struct condition conditions[CONDITION_TYPE__COUNT];
		engine_init(&e, 4);
		engine_add_value(&e, "queue", 2);
		e.policy.max_replicas = c->max_replicas;
		e.policy.paused = c->paused;
		e.policy.dry_run = c->dry_run;
		e.policy.cooldown.up_ms = c->cooldown_s * 1000;
		engine_start(&e);
		if (c->cooldown_s)
			decide_record_last_scale(&e.policy, e.state, e.now_ms - 1000);
		if (c->value >= 0)
			engine_show(&e, 0, c->value);
		else
			engine_show_state(&e, 0, OBS_EMPTY);
		engine_tick(&e);
		struct decided decided = decided_of(&e);
		bool is_decided = c->phase <= STATUS_WRITE_FAILED;
		struct status_facts facts = {.phase = c->phase,
		                             .decided = is_decided ? &decided : NULL,
		                             .text = c->text,
		                             .fault = c->fault,
		                             .dry_run = c->dry_run,
		                             .paused = c->paused};
		status_conditions(&facts, conditions);
		struct buf said;
		buf_init(&said, 4096);
		for (int k = 0; k < CONDITION_TYPE__COUNT; k++)
			buf_printf(&said, "%s=%s/%s ", condition_type_names[k],
			           condition_status_names[conditions[k].status], conditions[k].reason);
		char expected[512];
		snprintf(expected, sizeof expected, "%s", c->expected);
		char *rest = expected;
		for (char *word; (word = strsep(&rest, " ")) != NULL;)
			if (!strstr(buf_str(&said), word))
				fail_msg("%s: no %s in %s", c->name, word, buf_str(&said));
		buf_done(&said);
		engine_done(&e);
	}
}

static void objective_has_a_condition_of_its_own(void **state)
{
	static const struct {
		int32_t max;
		enum obs_state backlog;
		enum condition_status status;
		const char *reason;
	} rows[] = {{1000, OBS_OK, CONDITION_FALSE, "ObjectiveReachable"},
	            {5, OBS_OK, CONDITION_TRUE, "ObjectiveNotReachable"},
	            {1000, OBS_EMPTY, CONDITION_UNKNOWN, "ObjectivePaused"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct engine e;
		struct condition conditions[CONDITION_TYPE__COUNT];
		engine_init(&e, 4);
		engine_add_replicas(&e, "demand")->target = (struct policy_target){0};
		engine_add_replicas(&e, "backlog")->target = (struct policy_target){0};
		e.policy.max_replicas = rows[i].max;
		e.policy.startup = (struct policy_startup){true, true, 60000};
		e.policy.objective = (struct policy_objective){
		        .set = true, .late_ratio = 0.01, .wait_ms = 10000, .demand_index = 0, .backlog_index = 1};
		engine_start(&e);
		for (int k = 0; k < 100; k++, e.now_ms += 15000) {
			engine_show(&e, 0, 40);
			engine_show(&e, 1, 100);
			if (rows[i].backlog != OBS_OK)
				engine_show_state(&e, 1, rows[i].backlog);
			engine_tick(&e);
			engine_apply(&e);
		}
		struct decided decided = decided_of(&e);
		struct status_facts facts = {.phase = STATUS_DECIDED, .decided = &decided};
		status_conditions(&facts, conditions);
		const struct condition *c = &conditions[CONDITION_OBJECTIVE_NOT_REACHABLE];
		assert_int_equal(c->status, rows[i].status);
		assert_string_equal(c->reason, rows[i].reason);
		assert_true(strlen(c->message) > 10);
		engine_done(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(process_that_reads_the_status_decides_as_the_one_that_wrote_it),
	        cmocka_unit_test(times_from_the_future_cost_one_cooldown_and_are_named),
	        cmocka_unit_test(many_recommendations_become_the_few_that_matter),
	        cmocka_unit_test(old_decisions_make_room),
	        cmocka_unit_test(unusable_fields_are_left_out),
	        cmocka_unit_test(text_that_is_not_an_object_is_an_error),
	        cmocka_unit_test(last_scale_that_cannot_be_read_was_just_now),
	        cmocka_unit_test(conditions_have_the_reasons_of_the_hpa),
	        cmocka_unit_test(objective_has_a_condition_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
