// SPDX-License-Identifier: Apache-2.0
// Goal of this test: every reason has a stable name of its own, a sentence whose placeholders a renderer can fill, a
// condition people know and an event type Kubernetes takes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ctype.h>

#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/reason.h"

static bool is_one_of(const char *s, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(s, *list) == 0)
			return true;
	return false;
}

static void check_camel_case(const char *name)
{
	assert_true(isupper((unsigned char)name[0]));
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c))
			fail_msg("%s is not CamelCase", name);
}

static void check_sentence(const char *name, const char *s)
{
	static const char *const placeholders[] = {"signal",  "value",  "limit",   "before",   "after",    "duration",
	                                           "count",   "window", "detail",  "schedule", "low",      "rule",
	                                           "late",    "wait",   "pool",    "victims",  "variants", "nth",
	                                           "formula", "input",  "divisor", NULL};
	if (strchr(s, '\n') || strlen(s) > 200 || s[strlen(s) - 1] == '.')
		fail_msg("%s: \"%s\" is not one line without a full stop", name, s);
	for (const char *p = s; (p = strchr(p, '{')); p++) {
		const char *end = strchr(p, '}');
		char word[16] = "";
		assert_non_null(end);
		snprintf(word, sizeof word, "%.*s", (int)(end - p - 1), p + 1);
		if (!is_one_of(word, placeholders))
			fail_msg("%s: unknown placeholder {%s}", name, word);
	}
}

static void every_reason_is_complete(void **state)
{
	static const char *const conditions[] = {"AbleToScale", "ScalingActive", "ScalingLimited",
	                                         "Paused",      "DryRun",        NULL};
	static const char *const event_types[] = {"Normal", "Warning", NULL};
	for (int i = 0; i < REASON__COUNT; i++) {
		const struct reason_info *r = reason_info((enum reason)i);
		assert_non_null(r->name);
		check_camel_case(r->name);
		for (int k = 0; k < i; k++)
			if (strcmp(reason_info((enum reason)k)->name, r->name) == 0)
				fail_msg("%s is there twice", r->name);
		if (r->condition)
			assert_true(is_one_of(r->condition, conditions));
		assert_true(is_one_of(r->event_type, event_types));
		if (i == REASON_NONE)
			continue;
		assert_true(strlen(r->sentence) > 10);
		check_sentence(r->name, r->sentence);
	}
}

static void names_that_scripts_depend_on_stay(void **state)
{
	static const struct {
		enum reason reason;
		const char *name;
	} rows[] = {
	        // the HPA's
	        {REASON_DESIRED_WITHIN_RANGE, "DesiredWithinRange"},
	        {REASON_SCALE_UP_LIMIT, "ScaleUpLimit"},
	        {REASON_SCALE_DOWN_LIMIT, "ScaleDownLimit"},
	        {REASON_TOO_MANY_REPLICAS, "TooManyReplicas"},
	        {REASON_TOO_FEW_REPLICAS, "TooFewReplicas"},
	        {REASON_SCALE_UP_STABILIZED, "ScaleUpStabilized"},
	        {REASON_SCALE_DOWN_STABILIZED, "ScaleDownStabilized"},
	        {REASON_SCALING_DISABLED, "ScalingDisabled"},
	        // ours
	        {REASON_NO_DATA, "NoData"},
	        {REASON_QUERY_FAILED, "QueryFailed"},
	        {REASON_PARTIAL_RESPONSE, "PartialResponse"},
	        {REASON_STALE_DATA, "StaleData"},
	        {REASON_NON_FINITE, "NonFinite"},
	        {REASON_AMBIGUOUS_SERIES, "AmbiguousSeries"},
	        {REASON_WINDOW_FILLING, "WindowFilling"},
	        {REASON_PARTIAL_SIGNALS, "PartialSignals"},
	        {REASON_ALL_SIGNALS_MISSING, "AllSignalsMissing"},
	        {REASON_NO_READY_REPLICAS, "NoReadyReplicas"},
	        {REASON_SUSTAIN_PENDING, "SustainPending"},
	        {REASON_COOLDOWN_ACTIVE, "CooldownActive"},
	        {REASON_REPLICA_MULTIPLE, "ReplicaMultiple"},
	        {REASON_PAUSED, "Paused"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_string_equal(reason_info(rows[i].reason)->name, rows[i].name);
}

static void stages_actions_and_states_have_names(void **state)
{
	static const char *const stages[] = {"sources",  "windows",   "signals", "sustain",   "panic",
	                                     "forecast", "objective", "combine", "stabilize", "rate",
	                                     "cooldown", "idle",      "bounds",  "multiple",  "guards",
	                                     "capacity", "mode",      "pool",    "victims",   "variants"};
	_Static_assert(sizeof stages / sizeof stages[0] == STAGE__COUNT, "one per stage");
	for (int i = 0; i < STAGE__COUNT; i++)
		assert_string_equal(stage_name((enum stage)i), stages[i]);
	assert_string_equal(action_names[ACTION_NONE], "None");
	assert_string_equal(action_names[ACTION_HOLD], "Hold");
	assert_string_equal(action_names[ACTION_SCALE_UP], "ScaleUp");
	assert_string_equal(action_names[ACTION_SCALE_DOWN], "ScaleDown");
	assert_string_equal(signal_state_names[SIGNAL_OK], "OK");
	assert_string_equal(signal_state_names[SIGNAL_MISSING], "Missing");
	assert_string_equal(signal_state_names[SIGNAL_IGNORED], "Ignored");
	assert_string_equal(signal_state_names[SIGNAL_FILLING], "Filling");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_reason_is_complete),
	        cmocka_unit_test(names_that_scripts_depend_on_stay),
	        cmocka_unit_test(stages_actions_and_states_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
