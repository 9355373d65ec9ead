// SPDX-License-Identifier: Apache-2.0
// Goal of this test: spec.variants is checked as a whole, each fault at its place; and the plan for the targets: rows
// that the laws (prop_variants) do not name.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/lint/lint.h"
#include "policies/load/policy_ref.h"
#include "policies/schema/policy_schema.h"
#include "policies/spread/spread.h"

#define N(a)  (sizeof(a) / sizeof((a)[0]))
#define VALUE "signals: [{name: q, query: q, target: {value: \"1\"}}]"
#define H100  "{name: h100, scaleTargetRef: {name: h}, capacity: \"2\", pricePerHour: \"4\"}"
#define A100  "{name: a100, scaleTargetRef: {name: a}, capacity: \"1\", gpus: {model: A100}}"

// ---- the document ----

static void variants_are_decoded_with_their_defaults(void **state)
{
	static const char text[] = "apiVersion: gpuscale.dev/v1alpha1\nkind: GPUAutoscaler\nmetadata: {name: a}\n"
	                           "spec: {maxReplicas: 8, variants: [" H100 ", " A100 "], " VALUE "}\n";
	struct doc_file doc;
	struct err e;
	static struct schema_errors errors;
	struct policy_ref *ref = policy_ref_new();
	struct policy_document document = {0};
	schema_errors_init(&errors, "a.yaml");
	assert_int_equal(doc_parse_yaml(&ref->arena, "a.yaml", text, strlen(text), &doc, &e), 0);
	assert_int_equal(policy_decode(doc.roots[0], &document, &ref->arena, &errors), 0);
	policy_ref_set(ref, &document);
	const struct binding *b = ref->bindings;
	assert_int_equal(ref->n_bindings, 1);
	assert_int_equal(binding_targets(b), 2);
	assert_string_equal(b->target->name, "h");
	assert_string_equal(binding_target(b, 1)->name, "a");
	assert_string_equal(binding_target(b, 1)->kind, "Deployment");
	const struct scale_variant *v = b->variants->items;
	assert_true(v[0].price_set && v[0].price_per_hour == 4 && v[0].capacity == 2);
	assert_int_equal(v[0].min_replicas, 0);
	assert_int_equal(v[0].max_replicas, POLICY_REPLICAS_MAX);
	assert_int_equal(v[1].gpus.per_replica, 1);
	policy_ref_release(ref);
}

static const struct {
	const char *spec;
	const char *path, *says; // of the first fault
} faulty[] = {
        // clang-format off
	{"",                                                                            "spec.scaleTargetRef",                   "required, but missing"},
	{"scaleTargetRef: {name: a}, variants: [" H100 "]",                             "spec.variants",                         "cannot be combined with scaleTargetRef"},
	{"variants: []",                                                                "spec.variants",                         ""},
	{"variants: [" H100 ", " H100 "]",                                              "spec.variants[1]",                      "name of an earlier variant"},
	{"variants: [" H100 ", {name: b, scaleTargetRef: {name: h}, capacity: \"1\", pricePerHour: \"1\"}]", "spec.variants[1]", "target of an earlier variant"},
	{"variants: [{name: b, scaleTargetRef: {name: h}, capacity: \"0\", pricePerHour: \"1\"}]", "spec.variants[0].capacity",  ""},
	{"variants: [{name: b, scaleTargetRef: {name: h}, capacity: \"-1\", pricePerHour: \"1\"}]", "spec.variants[0].capacity", ""},
	{"variants: [{name: b, scaleTargetRef: {name: h}, capacity: NaN, pricePerHour: \"1\"}]", "spec.variants[0].capacity",    ""},
	{"variants: [{name: b, scaleTargetRef: {name: h}, pricePerHour: \"1\"}]",       "spec.variants[0].capacity",             "required"},
	{"variants: [{name: b, scaleTargetRef: {name: h}, capacity: \"1\"}]",           "spec.variants[0]",                      "has no price"},
	{"variants: [{name: b, capacity: \"1\", pricePerHour: \"1\"}]",                 "spec.variants[0].scaleTargetRef",       "required"},
	{"variants: [{name: b, scaleTargetRef: {name: h}, capacity: \"1\", pricePerHour: \"1\", minReplicas: 3, maxReplicas: 2}]", "spec.variants[0].minReplicas", "larger than maxReplicas"},
	{"capacity: {mode: Elastic}, variants: [" H100 "]",                             "spec.capacity.mode",                    "not supported: Elastic with variants"},
	{"replicaMultiple: 2, variants: [" H100 "]",                                    "spec.replicaMultiple",                  "not supported"},
	{"restoreReplicas: 2, variants: [" H100 "]",                                    "spec.restoreReplicas",                  "not supported"},
	{"gpus: {perReplica: 2}, variants: [" H100 "]",                                 "spec.gpus",                             "not supported"},
	{"guards: {unhealthyReplicas: Report}, variants: [" H100 "]",                   "spec.guards.unhealthyReplicas",         "not supported"},
	{"variants: [{name: b, scaleTargetRef: {kind: deployment, name: h}, capacity: \"1\", pricePerHour: \"1\"}]", "spec.variants[0].scaleTargetRef.kind", "did you mean Deployment"},
        // clang-format on
};

static void faults_are_reported_at_their_place(void **state)
{
	for (size_t i = 0; i < N(faulty); i++) {
		char text[1024];
		struct arena a;
		struct doc_file doc;
		struct err e;
		struct policy_document document = {0};
		static struct schema_errors errors;
		snprintf(text, sizeof text,
		         "apiVersion: gpuscale.dev/v1alpha1\nkind: GPUAutoscaler\nmetadata: {name: a}\n"
		         "spec: {maxReplicas: 8, %s%s" VALUE "}\n",
		         faulty[i].spec, faulty[i].spec[0] ? ", " : "");
		arena_init(&a, 1 << 24);
		schema_errors_init(&errors, "a.yaml");
		assert_int_equal(doc_parse_yaml(&a, "a.yaml", text, strlen(text), &doc, &e), 0);
		if (policy_decode(doc.roots[0], &document, &a, &errors) == 0)
			lint_target(&document, doc.roots[0], &errors);
		if (errors.n == 0 || strcmp(errors.items[0].path, faulty[i].path) != 0 ||
		    !strstr(errors.items[0].message, faulty[i].says))
			fail_msg("%s: %zu errors: %s: %s", faulty[i].spec, errors.n,
			         errors.n ? errors.items[0].path : "", errors.n ? errors.items[0].message : "");
		arena_done(&a);
	}
}

// ---- the plan ----

#define HOUR_MS 3600000
#define ROOM    VARIANT_NO_LIMIT

// Two variants: the first serves 2 units for 4, the second 1 unit for 3.
static const struct {
	const char *what;
	int32_t current[2], ready[2], unschedulable[2], fit[2];
	int64_t grown_ms[2]; // ago
	double units;
	int32_t replicas[2], share[2];
	enum spread_reason reason[2];
} plans[] = {
        // clang-format off
	{"cheapest first",                         {0, 0}, {0, 0}, {0, 0}, {ROOM, ROOM}, {HOUR_MS, HOUR_MS}, 6, {3, 0}, {3, 0}, {SPREAD_CHEAPEST, SPREAD_AT_MIN}},
	{"the odd unit",                           {0, 0}, {0, 0}, {0, 0}, {ROOM, ROOM}, {HOUR_MS, HOUR_MS}, 5, {2, 1}, {2, 1}, {SPREAD_CHEAPEST, SPREAD_CHEAPEST}},
	{"no room for the cheaper one",            {1, 0}, {1, 0}, {0, 0}, {0, ROOM},    {HOUR_MS, HOUR_MS}, 4, {1, 2}, {1, 2}, {SPREAD_CAPACITY_LIMITED, SPREAD_SPILL_OVER}},
	{"unschedulable replicas move at once",    {3, 0}, {1, 0}, {2, 0}, {0, ROOM},    {0, HOUR_MS},       6, {1, 4}, {1, 4}, {SPREAD_CAPACITY_LIMITED, SPREAD_SPILL_OVER}},
	{"replacements start first",               {2, 2}, {2, 2}, {0, 0}, {ROOM, ROOM}, {HOUR_MS, HOUR_MS}, 6, {3, 2}, {3, 0}, {SPREAD_CHEAPEST, SPREAD_AT_MIN}},
	{"and leave when they are ready",          {3, 2}, {3, 2}, {0, 0}, {ROOM, ROOM}, {1, HOUR_MS},       6, {3, 0}, {3, 0}, {SPREAD_KEPT, SPREAD_AT_MIN}},
	{"one by one, as far as the rest serves",  {3, 3}, {2, 3}, {0, 0}, {ROOM, ROOM}, {1, HOUR_MS},       6, {3, 2}, {3, 0}, {SPREAD_KEPT, SPREAD_AT_MIN}},
	{"young replicas do not move back",        {2, 2}, {2, 2}, {0, 0}, {ROOM, ROOM}, {HOUR_MS, 1},       6, {2, 2}, {2, 2}, {SPREAD_KEPT, SPREAD_KEPT}},
	{"but go when they are not needed",        {2, 2}, {2, 2}, {0, 0}, {ROOM, ROOM}, {1, 1},             4, {2, 0}, {2, 0}, {SPREAD_KEPT, SPREAD_AT_MIN}},
	{"replicas that never start go first",     {0, 4}, {0, 1}, {0, 0}, {ROOM, ROOM}, {HOUR_MS, HOUR_MS}, 1, {0, 1}, {0, 1}, {SPREAD_AT_MIN, SPREAD_REDUCED}},
        // clang-format on
};

static void plans_are_as_expected(void **state)
{
	for (size_t i = 0; i < N(plans); i++) {
		struct variant_now now[2];
		struct variant_order orders[2];
		struct spread_total total;
		for (size_t k = 0; k < 2; k++)
			now[k] = (struct variant_now){.capacity = k ? 1 : 2,
			                              .price = k ? 3 : 4,
			                              .max = 20,
			                              .current = plans[i].current[k],
			                              .ready = plans[i].ready[k],
			                              .unschedulable = plans[i].unschedulable[k],
			                              .fit = plans[i].fit[k],
			                              .startup_ms = 60000,
			                              .grown_ms = HOUR_MS - plans[i].grown_ms[k]};
		variant_plan(now, 2, plans[i].units, 0, HOUR_MS, orders, &total);
		for (size_t k = 0; k < 2; k++)
			if (orders[k].replicas != plans[i].replicas[k] || orders[k].share != plans[i].share[k] ||
			    orders[k].reason != plans[i].reason[k])
				fail_msg("%s: variant %zu: %d replicas, share %d, %s", plans[i].what, k,
				         orders[k].replicas, orders[k].share, spread_reason_names[orders[k].reason]);
	}
}

static void units_are_whole_and_rounded_down(void **state)
{
	const struct variant_now now[2] = {{.capacity = 2.5}, {.capacity = 0.1}};
	assert_int_equal(variant_units(now, (const int32_t[]){1, 0}, 2), 2);
	assert_int_equal(variant_units(now, (const int32_t[]){1, 5}, 2), 3);
	assert_int_equal(variant_units(now, (const int32_t[]){0, 10}, 2), 1); // 10 x 0.1
	assert_int_equal(variant_units(now, (const int32_t[]){0, 3}, 2), 1);
	assert_int_equal(variant_units(now, (const int32_t[]){0, 0}, 2), 0);
	assert_int_equal(variant_units(now, (const int32_t[]){1000000, 0}, 2), SPREAD_REPLICAS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(variants_are_decoded_with_their_defaults),
	        cmocka_unit_test(faults_are_reported_at_their_place),
	        cmocka_unit_test(plans_are_as_expected),
	        cmocka_unit_test(units_are_whole_and_rounded_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
