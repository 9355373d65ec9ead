// SPDX-License-Identifier: Apache-2.0
// spec.variants of a GPUAutoscaler.
#include <string.h>

#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema_private.h"

#define VARIANT struct scale_variant
#define ONE_MAX "1000000" // POLICY_REPLICAS_MAX

// clang-format off
static const struct schema_field target_ref_fields[] = {
	{ROW("apiVersion", STRING), FIELD(VARIANT, target.api_version), DEFAULT("apps/v1"),    RANGE(1, 253), DOC("API group and version of the scaled object.")},
	{ROW("kind", STRING),       FIELD(VARIANT, target.kind),        DEFAULT("Deployment"), RANGE(1, 63),  DOC("Kind of the scaled object: anything with a scale subresource.")},
	{ROW("name", STRING),       FIELD(VARIANT, target.name),        REQUIRED,              RANGE(1, 253), DOC("Name of the scaled object, in the namespace of the policy.")},
};
static const struct schema target_ref = {SCHEMA("GPUAutoscaler.spec.variants[].scaleTargetRef", VARIANT, target_ref_fields), DOC("What is scaled.")};
// clang-format on

static void check_variant(const void *value, struct fault_list *l)
{
	const VARIANT *v = value;
	if (v->min_replicas > v->max_replicas)
		fault_add(l, "minReplicas", -1, "is larger than maxReplicas: lower it or raise maxReplicas");
	if (!v->price_set && (!v->gpus.set || !v->gpus.model[0]))
		fault_add(l, NULL, -1, "has no price: add pricePerHour, or gpus.model for the price book");
}

// clang-format off
static const struct schema_field variant_fields[] = {
	{ROW("name", STRING),               FIELD(VARIANT, name),                          REQUIRED,         RANGE(1, 63),                         DOC("Name of the variant, in status, metrics and traces.")},
	{ROW("scaleTargetRef", OBJECT),     IN_PARENT,                                     REQUIRED,         CHILD(target_ref),                    DOC("What is scaled, in the namespace of the policy.")},
	{ROW("capacity", QUANTITY),         FIELD(VARIANT, capacity),                      REQUIRED,         RANGE(0.001, VARIANT_CAPACITY_MAX),   DOC("Units that one replica serves: \"2.5\" for a GPU that serves as much as 2.5 units. The signals, minReplicas and maxReplicas of the policy count units.")},
	{ROW("gpus", OBJECT),               FIELD_SET(VARIANT, gpus, gpus.set),            OPTIONAL,         CHILD(policy_schema_gpus),            DOC("The GPUs of one replica. Their price comes from the price book, unless pricePerHour is given.")},
	{ROW("pricePerHour", QUANTITY),     FIELD_SET(VARIANT, price_per_hour, price_set), OPTIONAL,         RANGE(0, VARIANT_PRICE_MAX),          DOC("What one replica costs per hour, in the currency of the price book.")},
	{ROW("minReplicas", INT32),         FIELD(VARIANT, min_replicas),                  DEFAULT("0"),     RANGE(0, POLICY_REPLICAS_MAX),        DOC("Fewest replicas of the variant.")},
	{ROW("maxReplicas", INT32),         FIELD(VARIANT, max_replicas),                  DEFAULT(ONE_MAX), RANGE(1, POLICY_REPLICAS_MAX),        DOC("Most replicas of the variant.")},
	{ROW("startupSeconds", SECONDS_MS), FIELD(VARIANT, startup_ms),                    OPTIONAL,         RANGE(1, 86400),                      DOC("Time from requesting a replica until it is ready: for this long after the variant has grown, its replicas do not move to another variant. Default: the time that the policy has learnt, 5 minutes until then.")},
};
static const struct schema_rule variant_rules[] = {
	{"self.minReplicas <= self.maxReplicas", "minReplicas is larger than maxReplicas: lower it or raise maxReplicas"},
	{"has(self.pricePerHour) || (has(self.gpus) && has(self.gpus.model) && size(self.gpus.model) > 0)", "has no price: add pricePerHour, or gpus.model for the price book"},
};
const struct schema policy_schema_variant = {SCHEMA("GPUAutoscaler.spec.variants[]", VARIANT, variant_fields), VALIDATE(check_variant), RULES(variant_rules), DOC("One of several targets that serve the same requests on different GPUs.")};
// clang-format on

// ---- with the rest of the policy ----

static const char *repeated(const struct scale_variants *all, size_t i)
{
	const VARIANT *v = all->items;
	for (size_t k = 0; k < i; k++) {
		if (strcmp(v[k].name, v[i].name) == 0)
			return "has the name of an earlier variant: use unique names";
		if (strcmp(v[k].target.kind, v[i].target.kind) == 0 && strcmp(v[k].target.name, v[i].target.name) == 0)
			return "has the target of an earlier variant: each target may have one";
	}
	return NULL;
}

void policy_schema_check_variants(const struct policy_document *d, struct fault_list *l)
{
	const struct policy *p = &d->policy;
	if (d->variants.n == 0)
		return;
	for (size_t i = 0; i < d->variants.n; i++) {
		const char *fault = repeated(&d->variants, i);
		if (fault)
			fault_add(l, "variants", (int32_t)i, fault);
	}
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].target.set && p->signals[i].target.type == TARGET_PODS)
			fault_add(l, "signals", (int32_t)i, "not supported: a target of type Pods with variants");
	if (p->capacity.mode == CAPACITY_ELASTIC)
		fault_add(l, "capacity.mode", -1, "not supported: Elastic with variants; use Fixed");
	if (p->guards.unhealthy != UNHEALTHY_IGNORE)
		fault_add(l, "guards.unhealthyReplicas", -1, "not supported: with variants; remove it");
	if (p->replica_multiple > 1)
		fault_add(l, "replicaMultiple", -1,
		          "not supported: with variants, whose capacity states it; remove it");
	if (p->restore_set)
		fault_add(l, "restoreReplicas", -1, "not supported: with variants; remove it");
	if (p->scale_down.victims.set)
		fault_add(l, "behavior.scaleDown.victims", -1, "not supported: with variants; remove it");
	if (p->gpus.set)
		fault_add(l, "gpus", -1, "not supported: with variants, which have gpus of their own; move it there");
}
