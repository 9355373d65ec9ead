// SPDX-License-Identifier: Apache-2.0
// Goal of this test: what the controller writes into a status is what the status table, and with it the CRD, knows;
// read by the table it says the same again.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "controller/status/status_doc.h"
#include "controller/status/status_schema.h"
#include "test/support/engine.h"

#define ARENA_MAX_BYTES ((size_t)4 * 1024 * 1024)

_Static_assert(STATUS_DECISIONS_MAX <= STATUS_VIEW_LIST_MAX && CONDITION_TYPE__COUNT <= STATUS_VIEW_LIST_MAX,
               "what is written fits the ceilings of the API server");
_Static_assert(STATUS_RECOMMENDATIONS_MAX <= STATUS_VIEW_HISTORY_MAX && STATUS_EVENTS_MAX <= STATUS_VIEW_HISTORY_MAX,
               "what is written fits the ceilings of the API server");

static void write_and_read(const struct status_doc *doc, struct arena *a, struct status_view *ret_view)
{
	struct buf text, faults;
	struct doc_node *root;
	struct err e;
	struct schema_errors errors;
	buf_init(&text, STATUS_BYTES_MAX);
	buf_init(&faults, 65536);
	status_doc_write(&text, doc);
	assert_false(text.failed);
	if (doc_from_json(a, buf_str(&text), text.len, &root, &e) < 0)
		fail_msg("%s", e.msg);
	schema_errors_init(&errors, NULL);
	memset(ret_view, 0, sizeof *ret_view);
	if (schema_decode(&status_schema, doc_get(root, "status"), ret_view, a, &errors, "status") < 0) {
		schema_errors_print(&errors, &faults);
		fail_msg("%s%s", buf_str(&faults), buf_str(&text));
	}
	buf_done(&faults);
	buf_done(&text);
}

static void full_status_fits_the_table(void **state)
{
	(void)state;
	struct engine e;
	struct arena a;
	struct status_view view;
	struct status_record record = {0};
	struct condition conditions[CONDITION_TYPE__COUNT];
	arena_init(&a, ARENA_MAX_BYTES);
	engine_init(&e, 2);
	e.policy.namespace_name = "serving";
	e.policy.name = "llama";
	engine_add_value(&e, "sm_active", 0.5);
	engine_add_watermarks(&e, "queue", 2, 8, WATERMARK_ABSOLUTE);
	e.policy.scale_down.stabilization_window_ms = 300000;
	engine_start(&e);
	for (int i = 0; i < 40; i++) {
		engine_show(&e, 0, 0.3 + 0.02 * (i % 9));
		if (i % 5)
			engine_show(&e, 1, 7 + i % 4);
		else
			engine_show_state(&e, 1, OBS_EMPTY);
		const struct decision *d = engine_tick(&e);
		struct decided decided = {.policy = &e.policy, .decision = d};
		struct status_facts facts = {.phase = STATUS_DECIDED, .decided = &decided};
		status_conditions(&facts, conditions);
		for (int k = 0; k < CONDITION_TYPE__COUNT; k++)
			record.since_ms[k] = e.now_ms;
		status_record_add(&record, e.now_ms, d->action, d->reason, d->current, d->desired, "because \"x\"");
		struct status_doc doc = {.facts = &facts,
		                         .conditions = conditions,
		                         .record = &record,
		                         .policy = &e.policy,
		                         .state = e.state,
		                         .generation = 3,
		                         .now_ms = e.now_ms};
		arena_reset(&a);
		write_and_read(&doc, &a, &view);
		assert_int_equal(view.observed_generation, 3);
		assert_int_equal(view.updated_ms, e.now_ms - e.now_ms % 1000);
		assert_true(view.current_set && view.desired_set);
		assert_int_equal(view.current, d->current);
		assert_int_equal(view.desired, d->desired);
		assert_string_equal(view.action, action_names[d->action]);
		assert_string_equal(view.reason, reason_info(d->reason)->name);
		assert_int_equal(view.n_signals, 2);
		assert_string_equal(view.signals[1].name, "queue");
		assert_int_equal(view.signals[1].value == NULL, i % 5 == 0);
		assert_string_equal(view.signals[0].target, "0.5");
		assert_int_equal(view.n_conditions,
		                 CONDITION_OBJECTIVE_NOT_REACHABLE); // the last one: without an objective
		assert_string_equal(view.conditions[0].type, "Ready");
		assert_int_equal(view.n_decisions, record.n_decisions);
		assert_string_equal(view.decisions[view.n_decisions - 1].message, "because \"x\"");
		engine_apply(&e);
		e.now_ms += 15000;
	}
	assert_true(view.n_recommendations > 0);
	assert_true(view.last_scale_ms > 0 && view.n_scale_events > 0);
	status_record_done(&record);
	engine_done(&e);
	arena_done(&a);
}

static void status_without_a_decision_fits_the_table(void **state)
{
	(void)state;
	static const enum status_phase phases[] = {STATUS_READ_FAILED, STATUS_CONFLICT, STATUS_INVALID};
	for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
		struct arena a;
		struct status_view view;
		struct status_record record = {0};
		struct condition conditions[CONDITION_TYPE__COUNT];
		struct status_facts facts = {.phase = phases[i], .text = "what it is"};
		struct status_doc doc = {
		        .facts = &facts, .conditions = conditions, .record = &record, .now_ms = 1767603600000};
		arena_init(&a, ARENA_MAX_BYTES);
		status_conditions(&facts, conditions);
		for (int k = 0; k < CONDITION_TYPE__COUNT; k++)
			record.since_ms[k] = doc.now_ms;
		write_and_read(&doc, &a, &view);
		assert_null(view.action);
		assert_false(view.ready_set || view.current_set);
		assert_non_null(view.reason);
		assert_true(strlen(view.message) > 0);
		assert_int_equal(view.n_conditions,
		                 CONDITION_OBJECTIVE_NOT_REACHABLE); // the last one: without an objective
		arena_done(&a);
	}
}

static void absent_status_is_empty(void **state)
{
	(void)state;
	struct status_view view = {0};
	struct doc_node empty = {.kind = DOC_MAP, .text = ""};
	struct schema_errors errors;
	struct arena a;
	arena_init(&a, ARENA_MAX_BYTES);
	schema_errors_init(&errors, NULL);
	assert_int_equal(schema_decode(&status_schema, &empty, &view, &a, &errors, ""), 0);
	assert_false(view.current_set || view.desired_set || view.ready_set || view.startup_set);
	assert_int_equal(view.n_signals + view.n_conditions + view.n_decisions, 0);
	assert_null(view.reason);
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(full_status_fits_the_table),
	        cmocka_unit_test(status_without_a_decision_fits_the_table),
	        cmocka_unit_test(absent_status_is_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
