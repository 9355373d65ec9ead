// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the fields of the stages around the signals (startup, guards, fallback, idle, schedules) reach the
// engine, and every rule they can break is answered with its place and the fix.
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

#define TEXT_BYTES 2048

// A policy of two signals, with `spec_lines` added to its spec.
static void decode(struct decoded_policy *d, const char *spec_lines)
{
	char text[TEXT_BYTES];
	snprintf(text, sizeof text,
	         "apiVersion: gpuscale.dev/v1alpha1\n"
	         "kind: GPUAutoscaler\n"
	         "metadata: {name: llama}\n"
	         "spec:\n"
	         "  scaleTargetRef: {name: llama}\n"
	         "  maxReplicas: 16\n"
	         "  signals:\n"
	         "  - {name: load, query: load, target: {value: 10}}\n"
	         "  - {name: queue, query: queue, watermarks: {high: 8, low: 2}}\n"
	         "%s\n",
	         spec_lines);
	decoded_policy_init(d, text);
}

static void decode_good(struct decoded_policy *d, const char *spec_lines)
{
	decode(d, spec_lines);
	assert_string_equal(buf_str(&d->printed), "");
	assert_int_equal(d->rc, 0);
}

static void every_field_reaches_its_place(void **state)
{
	struct decoded_policy d;
	decode_good(
	        &d,
	        "  minReplicas: 2\n"
	        "  schedules:\n"
	        "  - {name: office, start: \"0 8 * * MON-FRI\", end: \"0 20 * * 1-5\", timeZone: Europe/Zurich,\n"
	        "     minReplicas: 4, maxReplicas: 20}\n"
	        "  - {name: night, start: \"30 22 * * *\", end: \"0 6 * * *\", replicas: 0}\n"
	        "  idle: {after: 15m, replicas: 1, initialCooldown: 1h, activation: {signal: queue, above: \"0.5\"}}\n"
	        "  fallback: {failureThreshold: 5, replicas: 6, behavior: CurrentReplicasIfHigher, when: Any}\n"
	        "  startup: {seconds: 120}\n"
	        "  guards: {maxPendingPods: 0, minAvailablePercent: 80, maxStep: 4}\n");
	const struct policy *p = &d.policy;
	assert_int_equal(p->n_schedules, 2);
	const struct policy_schedule *s = p->schedules;
	assert_string_equal(s[0].name, "office");
	assert_string_equal(s[0].time_zone, "Europe/Zurich");
	assert_true(s[0].min_set && s[0].max_set && !s[0].replicas_set && !s[0].zone);
	assert_int_equal(s[0].min_replicas, 4);
	assert_int_equal(s[0].max_replicas, 20);
	assert_int_equal(s[0].start.hours, 1 << 8);
	assert_int_equal(s[0].start.weekdays, 0x3e);
	assert_int_equal(s[0].end.hours, 1 << 20);
	assert_string_equal(s[1].time_zone, "UTC");
	assert_true(s[1].replicas_set && s[1].replicas == 0 && !s[1].min_set);
	assert_true(s[1].start.minutes == UINT64_C(1) << 30);
	assert_true(p->idle.set);
	assert_int_equal(p->idle.after_ms, 900000);
	assert_int_equal(p->idle.initial_cooldown_ms, 3600000);
	assert_int_equal(p->idle.replicas, 1);
	assert_int_equal(p->idle.activation.index, 1);
	assert_true(p->idle.activation.above == 0.5);
	assert_true(p->fallback.set);
	assert_int_equal(p->fallback.failure_threshold, 5);
	assert_int_equal(p->fallback.replicas, 6);
	assert_int_equal(p->fallback.behavior, FALLBACK_CURRENT_IF_HIGHER);
	assert_int_equal(p->fallback.when, FALLBACK_ANY);
	assert_true(p->startup.set && p->startup.given);
	assert_int_equal(p->startup.start_ms, 120000);
	assert_true(p->guards.set && p->guards.max_pending_set);
	assert_int_equal(p->guards.max_pending_pods, 0);
	assert_int_equal(p->guards.min_available_percent, 80);
	assert_int_equal(p->guards.max_step, 4);
	decoded_policy_done(&d);
}

static void omitted_sections_are_off(void **state)
{
	struct decoded_policy d;
	decode_good(&d, "");
	assert_false(d.policy.idle.set || d.policy.fallback.set || d.policy.startup.set || d.policy.guards.set);
	decoded_policy_done(&d);
	decode_good(&d, "  minReplicas: 0\n  idle: {activation: {signal: load}}\n");
	assert_int_equal(d.policy.idle.after_ms, 300000); // KEDA's cooldownPeriod
	assert_int_equal(d.policy.idle.replicas, 0);
	assert_int_equal(d.policy.idle.initial_cooldown_ms, 0);
	assert_true(d.policy.idle.activation.above == 0);
	decoded_policy_done(&d);
	decode_good(&d, "  fallback: {replicas: 6}\n");
	assert_int_equal(d.policy.fallback.failure_threshold, 3); // KEDA's example
	assert_int_equal(d.policy.fallback.behavior, FALLBACK_STATIC);
	assert_int_equal(d.policy.fallback.when, FALLBACK_ALL);
	decoded_policy_done(&d);
	decode_good(&d, "  startup: {}\n  guards: {maxStep: 1}\n");
	assert_true(d.policy.startup.set);
	assert_false(d.policy.startup.given);
	assert_false(d.policy.guards.max_pending_set);
	assert_int_equal(d.policy.guards.min_available_percent, 0);
	decoded_policy_done(&d);
}

#define SCHEDULE(start, end, what) "  schedules:\n  - {name: a, start: \"" start "\", end: \"" end "\", " what "}\n"

static const struct {
	const char *lines, *message;
} fault_rows[] = {
        {SCHEDULE("0 25 * * *", "0 20 * * *", "minReplicas: 4"),
         "spec.schedules[0].start: hour, the second field, must consist of 0 to 23"},
        {SCHEDULE("0 8 * * *", "0 20 * *", "minReplicas: 4"), "spec.schedules[0].end: must have five fields"},
        {SCHEDULE("0 8 * * *", "0 20 * * *", "timeZone: UTC"), "spec.schedules[0]: changes nothing"},
        {SCHEDULE("0 8 * * *", "0 20 * * *", "replicas: 2, minReplicas: 1"),
         "spec.schedules[0].replicas: cannot be combined with"},
        {SCHEDULE("0 8 * * *", "0 20 * * *", "minReplicas: 5, maxReplicas: 4"),
         "spec.schedules[0].minReplicas: is larger than maxReplicas"},
        {SCHEDULE("0 8 * * *", "0 20 * * *", "minReplicas: 17"), "larger than the policy's maxReplicas"},
        {"  minReplicas: 4\n" SCHEDULE("0 8 * * *", "0 20 * * *", "maxReplicas: 3"),
         "smaller than the policy's minReplicas"},
        {SCHEDULE("0 8 * * *", "0 20 * * *", "minReplicas: 0"), "spec.schedules[0]: minReplicas 0 needs idle"},
        {SCHEDULE("0 8 * * *", "0 20 * * *", "maxReplicas: 0"), "maxReplicas: must be between 1 and 1000000"},
        // windows that never open
        {SCHEDULE("0 8 30 2 *", "0 20 * * *", "replicas: 2"), "spec.schedules[0]: start never comes"},
        {SCHEDULE("0 8 * * *", "0 20 31 4,6 *", "replicas: 2"), "spec.schedules[0]: end never comes"},
        {SCHEDULE("0 8 * * 1", "0 8 * * *", "replicas: 2"), "spec.schedules[0]: ends whenever it starts"},
        {SCHEDULE("0 8 * * *", "0 20 * * *",
                  "replicas: 2") "  - {name: b, start: \"0 8 * * *\", end: \"0 21 * * *\", replicas: 3}",
         "spec.schedules[0]: is never in force"},
        {SCHEDULE("0 8 * * *", "0 20 * * *",
                  "replicas: 2") "  - {name: a, start: \"0 9 * * *\", end: \"0 21 * * *\", replicas: 3}",
         "spec.schedules[1]: has the name of an earlier schedule"},
        {"  minReplicas: 0", "spec.minReplicas: 0 needs idle"},
        {"  idle: {after: 5m}", "spec.idle.activation: required, but missing"},
        {"  idle: {activation: {}}", "spec.idle.activation.signal: required, but missing"},
        {"  idle: {activation: {signal: requests}}", "spec.idle.activation.signal: must be the name of one of"},
        {"  idle: {activation: {signal: queue, above: 0.5}}", "write \"0.5\""},
        {"  idle: {replicas: 1, activation: {signal: queue}}", "spec.idle.replicas: must be smaller than minReplicas"},
        {"  idle: {replicas: 1, activation: {signal: queue}}\n  minReplicas: 4\n  replicaMultiple: 2",
         "spec.idle.replicas: must be a multiple of replicaMultiple"},
        {"  idle: {after: 8d, activation: {signal: queue}}", "spec.idle.after: must be between 0s and 1w"},
        {"  fallback: {}", "spec.fallback.replicas: required, but missing"},
        {"  fallback: {replicas: 0}", "spec.fallback.replicas: must be between 1 and 1000000"},
        {"  fallback: {replicas: 17}", "spec.fallback.replicas: is larger than maxReplicas"},
        {"  fallback: {replicas: 2}\n  minReplicas: 3", "spec.fallback.replicas: is smaller than minReplicas"},
        {"  fallback: {replicas: 6, behavior: ScalingModifiers}",
         "spec.fallback.replicas: has no meaning with behavior ScalingModifiers"},
        {"  fallback: {behavior: ScalingModifiers}",
         "spec.fallback.behavior: ScalingModifiers needs a formula in combine"},
        {"  fallback: {replicas: 6, behavior: CurrentReplicas}", "spec.fallback.replicas: has no meaning with"},
        {"  fallback: {replicas: 6, behavior: static}", "did you mean Static?"},
        {"  fallback: {replicas: 6, failureThreshold: -1}",
         "spec.fallback.failureThreshold: must be between 0 and 10000"},
        {"  startup: {seconds: 0}", "spec.startup.seconds: must be between 1 and 86400 seconds"},
        {"  startup: {seconds: 90s}", "spec.startup.seconds: must be a whole number of seconds"},
        {"  startup: {seconds: 301}", "spec.startup.seconds: is longer than anything that delays a scale-down"},
        {"  guards: {}", "spec.guards: guards nothing: set maxPendingPods, minAvailablePercent, maxStep"},
        {"  guards: {minMarginalGain: {signal: nowhere, gain: \"0.7\"}}",
         "spec.guards.minMarginalGain.signal: must be the name of one of the signals"},
        {"  guards: {minMarginalGain: {signal: load, gain: \"1\"}}",
         "spec.guards.minMarginalGain.gain: must be between 0.01 and 0.99"},
        {"  guards: {maxThrottledShare: {signal: nowhere}}",
         "spec.guards.maxThrottledShare.signal: must be the name of one of the signals"},
        {"  guards: {maxThrottledShare: {signal: load, share: 4}}",
         "spec.guards.maxThrottledShare.share: must be between 0 and 1"},
        {"  guards: {unhealthyReplicas: replace}", "did you mean Replace?"},
        {"  guards: {unhealthyReplicas: Ignore}", "spec.guards: guards nothing: set maxPendingPods"},
        {"  guards: {maxPendingPods: -1}", "spec.guards.maxPendingPods: must be between 0 and 1000000"},
        {"  guards: {minAvailablePercent: 101}", "spec.guards.minAvailablePercent: must be between 1 and 100"},
        {"  guards: {maxStep: 0}", "spec.guards.maxStep: must be between 1 and 1000000"},
        {"  guards: {maxStep: 3}\n  replicaMultiple: 4", "spec.guards.maxStep: is smaller than replicaMultiple"},
        {"  guards: {maxPendingPod: 3}", "spec.guards.maxPendingPod: unknown field: did you mean maxPendingPods?"},
};

static void each_broken_rule_is_answered_with_its_place_and_the_fix(void **state)
{
	for (size_t i = 0; i < sizeof fault_rows / sizeof fault_rows[0]; i++) {
		struct decoded_policy d;
		decode(&d, fault_rows[i].lines);
		if (d.rc == 0 || d.errors.n != 1 || !strstr(buf_str(&d.printed), fault_rows[i].message))
			fail_msg("%s: want one error with\n  %s\ngot %zu:\n%s", fault_rows[i].lines,
			         fault_rows[i].message, d.errors.n, buf_str(&d.printed));
		assert_true(d.errors.items[0].line > 0 && d.errors.items[0].col > 0);
		decoded_policy_done(&d);
	}
}

static void schedules_that_take_turns_are_fine(void **state)
{
	static const char *const rows[] = {
	        SCHEDULE("0 8 * * *", "0 20 * * *",
	                 "replicas: 2") "  - {name: b, start: \"0 12 * * *\", end: \"0 13 * * *\", replicas: 3}",
	        // on Saturdays the other one wins, on other days it does not open
	        SCHEDULE("0 8 * * *", "0 20 * * *",
	                 "replicas: 2") "  - {name: b, start: \"0 8 * * 6\", end: \"0 21 * * *\", replicas: 3}",
	        // two zones cannot be compared without their tables
	        SCHEDULE("0 8 * * *", "0 20 * * *", "replicas: 2") "  - {name: b, start: \"0 8 * * *\", end: \"0 21 * "
	                                                           "* *\", timeZone: Asia/Tokyo, replicas: 3}",
	        "  minReplicas: 0\n  idle: {activation: {signal: queue}}\n" //
	        SCHEDULE("0 8 * * *", "0 20 * * *", "minReplicas: 0, maxReplicas: 3"),
	        SCHEDULE("0 8 29 2 *", "0 20 * * *", "replicas: 2"),
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct decoded_policy d;
		decode_good(&d, rows[i]);
		decoded_policy_done(&d);
	}
}

static void slow_start_is_fine_when_scale_downs_wait_for_it(void **state)
{
	static const char *const rows[] = {
	        "  startup: {seconds: 300}",
	        "  startup: {seconds: 600}\n  cooldown: {down: 10m}",
	        "  startup: {seconds: 600}\n  behavior: {scaleDown: {stabilizationWindowSeconds: 600}}",
	        "  startup: {seconds: 600}\n  behavior: {scaleDown: {selectPolicy: Disabled}}",
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct decoded_policy d;
		decode_good(&d, rows[i]);
		decoded_policy_done(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_field_reaches_its_place),
	        cmocka_unit_test(omitted_sections_are_off),
	        cmocka_unit_test(each_broken_rule_is_answered_with_its_place_and_the_fix),
	        cmocka_unit_test(schedules_that_take_turns_are_fine),
	        cmocka_unit_test(slow_start_is_fine_when_scale_downs_wait_for_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
