// SPDX-License-Identifier: Apache-2.0
// Goal of this test: spec.objective reaches the engine, and every rule it can break is answered with its place and the
// fix.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "policies/engine/policy.h"
#include "test/support/decoded_policy.h"

#define TEXT_BYTES 4096

static const char whole[] = "apiVersion: gpuscale.dev/v1alpha1\n"
                            "kind: GPUAutoscaler\n"
                            "metadata: {name: llama}\n"
                            "spec:\n"
                            "  scaleTargetRef: {name: llama}\n"
                            "  maxReplicas: 16\n"
                            "  interval: 15s\n"
                            "  startup: {seconds: 900}\n"
                            "  signals:\n"
                            "  - {name: load, query: load, target: {value: 10}}\n"
                            "  - {name: demand, query: demand}\n"
                            "  - {name: backlog, query: backlog}\n"
                            "  objective: {late: 1%, wait: 10s, demand: demand, backlog: backlog}\n";

// Decodes `whole` with `with` in place of `what`.
static void decode(struct decoded_policy *d, const char *what, const char *with)
{
	char text[TEXT_BYTES];
	const char *at = strstr(whole, what);
	if (!at)
		fail_msg("\"%s\" is not in the policy", what);
	snprintf(text, sizeof text, "%.*s%s%s", (int)(at - whole), whole, with, at + strlen(what));
	decoded_policy_init(d, text);
}

static void objective_reaches_the_engine(void **state)
{
	struct decoded_policy d;
	decode(&d, "late: 1%", "late: 0.25%");
	assert_string_equal(buf_str(&d.printed), "");
	assert_int_equal(d.rc, 0);
	const struct policy_objective *o = &d.policy.objective;
	assert_true(o->set);
	assert_true(o->late_ratio == 0.0025);
	assert_int_equal(o->wait_ms, 10000);
	assert_string_equal(o->demand, "demand");
	assert_int_equal(o->demand_index, 1);
	assert_int_equal(o->backlog_index, 2);
	assert_null(o->utilization);
	decoded_policy_done(&d);
	decode(&d, "query: backlog}\n  objective: {",
	       "query: backlog}\n  - {name: busy, query: busy}\n  objective: {utilization: busy, ");
	assert_string_equal(buf_str(&d.printed), "");
	assert_string_equal(o->utilization, "busy");
	assert_int_equal(o->utilization_index, 3);
	decoded_policy_done(&d);
	// learnt start-up times, and the limits of each number
	static const char *const rows[][2] = {
	        {"{seconds: 900}", "{}"},          {"late: 1%", "late: 0.01%"}, {"late: 1%", "late: \"50%\""},
	        {"wait: 10s", "wait: 1s"},         {"wait: 10s", "wait: 1h"},   {"interval: 15s", "interval: 1s"},
	        {"interval: 15s", "interval: 2m"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		decode(&d, rows[i][0], rows[i][1]);
		assert_string_equal(buf_str(&d.printed), "");
		decoded_policy_done(&d);
	}
}

static const struct {
	const char *what, *with, *message;
} fault_rows[] = {
        {"late: 1%", "late: \"1\"",
         "p.yaml:13:21: spec.objective.late: must be a percentage from 0.01% to 50%, as in 1%"},
        {"late: 1%", "late: one%", "spec.objective.late: must be a percentage"},
        {"late: 1%", "late: 0.009%", "spec.objective.late: must be a percentage"},
        {"late: 1%", "late: 50.1%", "spec.objective.late: must be a percentage"},
        {"late: 1%", "late: -1%", "spec.objective.late: must be a percentage"},
        {"late: 1%", "late: \"%\"", "spec.objective.late: must be a percentage"},
        {"late: 1%, ", "", "spec.objective.late: required, but missing"},
        {"wait: 10s", "wait: 500ms", "spec.objective.wait: must be between 1s and 1h, is 500ms"},
        {"wait: 10s", "wait: 2h", "spec.objective.wait: must be between 1s and 1h, is 2h"},
        {"wait: 10s, ", "", "spec.objective.wait: required, but missing"},
        {", backlog: backlog}", "}", "spec.objective.backlog: required, but missing"},
        {"demand: demand", "demand: demnd", "spec.objective.demand: must be the name of one of the signals"},
        {"backlog: backlog", "backlog: queue", "spec.objective.backlog: must be the name of one of the signals"},
        {"backlog: backlog", "backlog: demand", "spec.objective.backlog: must be another signal than demand"},
        {"backlog: backlog", "backlog: backlog, utilization: busy",
         "spec.objective.utilization: must be the name of one of the signals"},
        {"backlog: backlog", "backlog: backlog, utilization: demand",
         "spec.objective.utilization: must be another signal than demand and backlog"},
        {"demand: demand", "demand: load", "spec.signals[0]: is named by the objective, which asks for replicas"},
        {"query: demand", "query: demand, target: {type: Replicas}", "spec.signals[1]: is named by the objective"},
        {"query: demand", "query: demand, watermarks: {high: 2, low: 1}", "spec.signals[1]: is named by"},
        {"query: demand", "query: demand, window: {duration: 1m}", "remove window and sustain"},
        {"query: backlog", "query: backlog, sustain: {up: 1m}", "spec.signals[2]: is named by the objective, which"},
        {"  startup: {seconds: 900}\n", "", "spec.objective: needs to know how long a replica takes to start"},
        {"interval: 15s", "interval: 121s", "spec.interval: must be at most 2m with an objective"},
        {"  objective", "  forecast: {signal: demand, season: 1d}\n  objective",
         "spec.forecast.signal: is a signal of the objective"},
        {", target: {value: 10}", "",
         "spec.signals[0]: needs target or watermarks: add one of them; only the signals that objective names"},
};

// An unknown name also leaves a signal without a purpose, so that one mistake may give two errors.
static void each_broken_rule_is_answered_with_its_place_and_the_fix(void **state)
{
	for (size_t i = 0; i < sizeof fault_rows / sizeof fault_rows[0]; i++) {
		struct decoded_policy d;
		decode(&d, fault_rows[i].what, fault_rows[i].with);
		if (d.rc == 0 || d.errors.n == 0 || d.errors.n > 2 ||
		    !strstr(buf_str(&d.printed), fault_rows[i].message))
			fail_msg("%s -> %s: want\n  %s\ngot %zu:\n%s", fault_rows[i].what, fault_rows[i].with,
			         fault_rows[i].message, d.errors.n, buf_str(&d.printed));
		for (size_t k = 0; k < d.errors.n; k++)
			assert_true(d.errors.items[k].line > 0 && d.errors.items[k].col > 0);
		decoded_policy_done(&d);
	}
}

static void every_signal_needs_a_threshold_without_an_objective(void **state)
{
	struct decoded_policy d;
	decode(&d, "  objective: {late: 1%, wait: 10s, demand: demand, backlog: backlog}\n", "");
	assert_int_equal(d.errors.n, 3); // the third: nothing delays a scale-down for 900 s
	assert_non_null(strstr(buf_str(&d.printed), "spec.signals[1]: needs target or watermarks: add one of them\n"));
	assert_non_null(strstr(buf_str(&d.printed), "spec.signals[2]: needs target or watermarks: add one of them\n"));
	decoded_policy_done(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(objective_reaches_the_engine),
	        cmocka_unit_test(each_broken_rule_is_answered_with_its_place_and_the_fix),
	        cmocka_unit_test(every_signal_needs_a_threshold_without_an_objective),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
