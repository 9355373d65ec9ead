// SPDX-License-Identifier: Apache-2.0
// Goal of this test: an object of the API server is the policy a file with the same spec is, whatever Kubernetes has
// added to it; fields of another version are reported and left alone; a bad object still carries its name.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/schema/schema.h"
#include "controller/source/policy_object.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"

#define ARENA_MAX_BYTES ((size_t)4 * 1024 * 1024)

struct decoded {
	struct arena arena;
	struct policy_object object;
	struct policy policy;
	struct schema_errors errors, unknown;
	struct buf faults, warnings;
	int rc;
};

// The test's only writer of JSON: metadata and spec as given, with ' for ".
static void decode(struct decoded *d, const char *metadata, const char *spec)
{
	struct buf text;
	buf_init(&text, 65536);
	buf_printf(&text,
	           "{'apiVersion':'gpuscale.dev/v1alpha1','kind':'GPUAutoscaler','metadata':%s,'spec':%s,"
	           "'status':{'observedGeneration':1,'conditions':[{'type':'Ready'}],'what':'ever'}}",
	           metadata, spec);
	for (size_t i = 0; i < text.len; i++)
		if (text.data[i] == '\'')
			text.data[i] = '"';
	arena_init(&d->arena, ARENA_MAX_BYTES);
	buf_init(&d->faults, 65536);
	buf_init(&d->warnings, 65536);
	schema_errors_init(&d->errors, NULL);
	schema_errors_init(&d->unknown, NULL);
	struct policy_document document;
	d->rc = policy_object_decode(text.data, text.len, &d->arena, &d->object, &document, &d->errors, &d->unknown);
	d->policy = document.policy;
	buf_done(&text); // nothing may point into it
	schema_errors_print(&d->errors, &d->faults);
	schema_errors_print(&d->unknown, &d->warnings);
}

static void done(struct decoded *d)
{
	buf_done(&d->faults);
	buf_done(&d->warnings);
	arena_done(&d->arena);
}

#define SPEC                                                                                                           \
	"'scaleTargetRef':{'name':'llama'},'maxReplicas':8,'signals':[{'name':'q','query':'sum(q)',"                   \
	"'target':{'value':'0.7'}}]"
#define NAMED "'name':'llama','namespace':'serving'"

static void fields_that_kubernetes_adds_are_ignored(void **state)
{
	(void)state;
	struct decoded d;
	decode(&d,
	       "{" NAMED ",'uid':'7c9f','generation':3,"
	       "'creationTimestamp':'2026-01-05T09:00:00Z','deletionTimestamp':'2026-01-05T10:00:00Z',"
	       "'deletionGracePeriodSeconds':0,'selfLink':'/apis/x','finalizers':['a/b'],"
	       "'ownerReferences':[{'apiVersion':'v1','kind':'ConfigMap','name':'x','uid':'1'}],"
	       "'labels':{'team':'ml'},'annotations':{'kubectl.kubernetes.io/last-applied-configuration':'{}'},"
	       "'managedFields':[{'manager':'kubectl','operation':'Apply','fieldsV1':{'f:spec':{'.':{}}}}]}",
	       "{" SPEC "}");
	assert_string_equal(buf_str(&d.faults), "");
	assert_string_equal(buf_str(&d.warnings), "");
	assert_int_equal(d.rc, 0);
	assert_string_equal(d.object.namespace_name, "serving");
	assert_string_equal(d.object.name, "llama");
	assert_string_equal(d.object.identity.uid, "7c9f");
	assert_int_equal(d.object.identity.generation, 3);
	assert_int_equal(d.object.identity.created_ms, 1767603600000);
	assert_string_equal(d.policy.name, "llama");
	assert_string_equal(d.policy.namespace_name, "serving");
	assert_int_equal(d.policy.max_replicas, 8);
	assert_int_equal(d.policy.min_replicas, 1);
	assert_true(d.policy.signals[0].target.value == 0.7);
	assert_false(d.policy.paused || d.policy.dry_run || d.policy.restore_set);
	done(&d);
}

static void omitted_fields_are_empty(void **state)
{
	(void)state;
	struct decoded d;
	decode(&d, "{'name':'llama','generation':null,'creationTimestamp':null}", "{" SPEC "}");
	assert_int_equal(d.rc, 0);
	assert_string_equal(d.object.namespace_name, "");
	assert_string_equal(d.object.identity.uid, "");
	assert_int_equal(d.object.identity.generation, 0);
	assert_int_equal(d.object.identity.created_ms, 0);
	done(&d);
}

static void fields_of_another_version_are_warnings(void **state)
{
	(void)state;
	struct decoded d;
	decode(&d, "{" NAMED "}", "{" SPEC ",'mixReplicas':2,'turbo':{'a':[1]}}");
	assert_int_equal(d.rc, 0);
	assert_string_equal(buf_str(&d.faults), "");
	assert_non_null(strstr(buf_str(&d.warnings), "spec.mixReplicas: unknown field: did you mean minReplicas?\n"));
	assert_non_null(strstr(buf_str(&d.warnings), "spec.turbo: unknown field: known here are "));
	assert_int_equal(d.policy.max_replicas, 8);
	done(&d);
	// Inside a list, beside a real fault.
	decode(&d, "{" NAMED "}",
	       "{'scaleTargetRef':{'name':'x','uid':'y'},'maxReplicas':0,'signals':[{'name':'q','query':'sum(q)','"
	       "weight':3,"
	       "'target':{'value':1}}]}");
	assert_int_equal(d.rc, -1);
	assert_string_equal(buf_str(&d.faults), "spec.maxReplicas: must be between 1 and 1000000, is 0\n");
	assert_non_null(strstr(buf_str(&d.warnings), "spec.signals[0].weight: unknown field"));
	assert_non_null(strstr(buf_str(&d.warnings), "spec.scaleTargetRef.uid: unknown field"));
	done(&d);
}

static void bad_object_says_who_it_is(void **state)
{
	(void)state;
	static const struct {
		const char *metadata, *spec, *fault;
	} rows[] = {
	        {"{" NAMED ",'uid':'7'}", "{}", "spec.scaleTargetRef: required, but missing"},
	        {"{" NAMED ",'uid':'7'}", "null", "spec: required, but empty"},
	        {"{" NAMED ",'uid':'7'}", "[]", "spec: must be a map, found a list"},
	        {"{" NAMED ",'uid':'7'}", "{" SPEC ",'minReplicas':9}", "spec.minReplicas: is larger than maxReplicas"},
	        {"{" NAMED ",'uid':'7'}", "{" SPEC ",'minReplicas':1.5}", "spec.minReplicas: must be a whole number"},
	        {"{" NAMED ",'uid':'7'}", "{" SPEC ",'restoreReplicas':-1}",
	         "spec.restoreReplicas: must be between 0 and 1000000"},
	        {"{" NAMED ",'uid':'7'}", "{" SPEC ",'combine':'max(q, x)'}", "spec.combine: x is not a signal"},
	        {"{" NAMED ",'uid':'7'}",
	         "{" SPEC ",'schedules':[{'name':'a','start':'0 8 * * *','end':'0 9 * * *','minReplicas':2,"
	         "'timeZone':'Mars/Olympus'}]}",
	         "spec.schedules[0].timeZone: "},
	        {"{" NAMED ",'uid':'7','annotations':{'gpuscale.dev/paused':'yes'}}", "{" SPEC "}",
	         "metadata.annotations: gpuscale.dev/paused must be \"true\" or \"false\", in quotes"},
	        {"{" NAMED ",'uid':'7','annotations':{'gpuscale.dev/dry-run':'1'}}", "{" SPEC "}",
	         "metadata.annotations: gpuscale.dev/dry-run must be \"true\" or \"false\", in quotes"},
	        {"{" NAMED ",'uid':'7','generation':'three'}", "{" SPEC "}",
	         "metadata.generation: must be a whole number"},
	        {"{" NAMED ",'uid':'7','generation':1e300}", "{" SPEC "}",
	         "metadata.generation: must be a whole number"},
	        {"{" NAMED ",'uid':'7','creationTimestamp':7}", "{" SPEC "}",
	         "metadata.creationTimestamp: must be a time"},
	        {"{" NAMED ",'uid':'7','deletionTimestamp':{}}", "{" SPEC "}",
	         "metadata.deletionTimestamp: must be a time"},
	        {"{" NAMED ",'uid':'7','deletionTimestamp':'soon'}", "{" SPEC "}",
	         "metadata.deletionTimestamp: must be a time"},
	        // No tree for us, but an object of the API server all the same.
	        {"{" NAMED ",'uid':'7','annotations':{'a':'\\u0000'}}", "{" SPEC "}", "\\u0000 inside a string"},
	        {"{" NAMED ",'uid':'7','annotations':{'a':'\\ud800'}}", "{" SPEC "}", "surrogate pair"},
	        {"{" NAMED ",'uid':'7'}",
	         "{" SPEC ",'deep':[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
	         "nested 33 deep"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct decoded d;
		decode(&d, rows[i].metadata, rows[i].spec);
		assert_int_equal(d.rc, -1);
		if (!strstr(buf_str(&d.faults), rows[i].fault))
			fail_msg("%s: %s", rows[i].fault, buf_str(&d.faults));
		assert_string_equal(d.object.name, "llama");
		assert_string_equal(d.object.namespace_name, "serving");
		assert_string_equal(d.object.identity.uid, "7");
		done(&d);
	}
}

static void text_without_a_policy_object_is_rejected(void **state)
{
	(void)state;
	static const char *const texts[] = {"",
	                                    "{",
	                                    "[]",
	                                    "[1]",
	                                    "[{\"metadata\":{\"name\":\"a\"}}]",
	                                    "{\"metadata\":[7],\"spec\":[[]]}",
	                                    "7",
	                                    "{\"metadata\":7}",
	                                    "{\"metadata\":{\"name\":{}}}",
	                                    "{\"metadata\":{\"name\":\"../a\"}}",
	                                    "{\"metadata\":{\"name\":\"a/status?x\"}}",
	                                    "{\"metadata\":{\"name\":\"a\\u0000\"}}",
	                                    "{\"metadata\":{\"name\":\"a\"",
	                                    "{\"kind\":\"A\",\"kind\":\"B\"}"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct decoded d;
		struct policy_document document;
		arena_init(&d.arena, ARENA_MAX_BYTES);
		schema_errors_init(&d.errors, NULL);
		schema_errors_init(&d.unknown, NULL);
		assert_int_equal(policy_object_decode(texts[i], strlen(texts[i]), &d.arena, &d.object, &document,
		                                      &d.errors, &d.unknown),
		                 -1);
		assert_true(d.errors.n > 0);
		assert_string_equal(d.object.name, "");
		arena_done(&d.arena);
	}
}

// Nothing of an object is lost with a text in it that we do not take.
static void object_that_is_not_a_tree_still_names_itself(void **state)
{
	(void)state;
	struct decoded d;
	decode(&d,
	       "{" NAMED ",'uid':'7c9f','generation':3,'annotations':{'a':'\\u0000'},"
	       "'creationTimestamp':'2026-01-05T09:00:00Z','deletionTimestamp':'2026-01-05T10:00:00Z'}",
	       "{" SPEC "}");
	assert_int_equal(d.rc, -1);
	assert_string_equal(d.object.namespace_name, "serving");
	assert_string_equal(d.object.name, "llama");
	assert_string_equal(d.object.identity.uid, "7c9f");
	assert_int_equal(d.object.identity.generation, 3);
	assert_int_equal(d.object.identity.created_ms, 1767603600000);
	assert_true(d.object.identity.has_status);
	done(&d);
}

static void annotations_pause_and_keep_from_writing(void **state)
{
	(void)state;
	static const struct {
		const char *annotations, *spec;
		bool paused, dry_run;
	} rows[] = {
	        {"{}", "{" SPEC "}", false, false},
	        {"{'gpuscale.dev/paused':'true'}", "{" SPEC "}", true, false},
	        {"{'gpuscale.dev/dry-run':'true'}", "{" SPEC "}", false, true},
	        {"{'gpuscale.dev/dry-run':'false','gpuscale.dev/paused':'false'}", "{" SPEC "}", false, false},
	        {"{'gpuscale.dev/dry-run':'false','gpuscale.dev/paused':'false'}",
	         "{" SPEC ",'paused':true,'dryRun':true}", true, true},
	        {"{'gpuscale.dev/pause':'true'}", "{" SPEC "}", false, false},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct decoded d;
		char metadata[256];
		snprintf(metadata, sizeof metadata, "{" NAMED ",'annotations':%s}", rows[i].annotations);
		decode(&d, metadata, rows[i].spec);
		assert_string_equal(buf_str(&d.faults), "");
		assert_int_equal(d.policy.paused, rows[i].paused);
		assert_int_equal(d.policy.dry_run, rows[i].dry_run);
		done(&d);
	}
}

static void restore_replicas_may_be_zero(void **state)
{
	(void)state;
	struct decoded d;
	decode(&d, "{" NAMED "}", "{" SPEC ",'restoreReplicas':0}");
	assert_int_equal(d.rc, 0);
	assert_true(d.policy.restore_set);
	assert_int_equal(d.policy.restore_replicas, 0);
	done(&d);
}

static void schedules_get_their_zone(void **state)
{
	(void)state;
	struct decoded d;
	decode(&d, "{" NAMED "}",
	       "{" SPEC ",'schedules':[{'name':'a','start':'0 8 * * *','end':'0 9 * * *','minReplicas':2,"
	       "'timeZone':'Europe/Zurich'}]}");
	assert_string_equal(buf_str(&d.faults), "");
	assert_int_equal(d.rc, 0);
	assert_non_null(d.policy.schedules[0].zone);
	done(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(fields_that_kubernetes_adds_are_ignored),
	        cmocka_unit_test(omitted_fields_are_empty),
	        cmocka_unit_test(fields_of_another_version_are_warnings),
	        cmocka_unit_test(bad_object_says_who_it_is),
	        cmocka_unit_test(text_without_a_policy_object_is_rejected),
	        cmocka_unit_test(object_that_is_not_a_tree_still_names_itself),
	        cmocka_unit_test(annotations_pause_and_keep_from_writing),
	        cmocka_unit_test(restore_replicas_may_be_zero),
	        cmocka_unit_test(schedules_get_their_zone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
