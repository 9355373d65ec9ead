// SPDX-License-Identifier: Apache-2.0
// The targets of a policy that has several: spec.scaleTargets, its fleet, and spec.variants.
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/schema/doc.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema_private.h"

// ---- spec.scaleTargets ----

#define FLEET       struct fleet_selection
#define LABELS      struct fleet_labels
#define REQUIREMENT struct fleet_requirement

ENUM_NAMES(operator_names, FLEET_OPERATOR__COUNT, [FLEET_IN] = "In", [FLEET_NOT_IN] = "NotIn",
           [FLEET_EXISTS] = "Exists", [FLEET_DOES_NOT_EXIST] = "DoesNotExist");

static void check_requirement(const void *value, struct fault_list *l)
{
	const REQUIREMENT *r = value;
	bool takes_values = r->op == FLEET_IN || r->op == FLEET_NOT_IN;
	if (takes_values != (r->n_values > 0))
		fault_add(l, "values", -1,
		          takes_values ? "is required by In and NotIn"
		                       : "is not for Exists and DoesNotExist: remove it");
}

// clang-format off
static const struct schema_field requirement_fields[] = {
	{ROW("key", STRING),         FIELD(REQUIREMENT, key),                   REQUIRED, RANGE(1, 317),           DOC("Label of the object.")},
	{ROW("operator", ENUM),      FIELD(REQUIREMENT, op),                    REQUIRED, ONE_OF(operator_names),  DOC("How the label is compared with `values`.")},
	{ROW("values", STRING_LIST), FIELD_LIST(REQUIREMENT, values, n_values), OPTIONAL, ITEMS(0, 64),            DOC("Values, for In and NotIn.")},
};
static const struct schema requirement = {SCHEMA("GPUAutoscaler.spec.scaleTargets.selector.matchExpressions[]", REQUIREMENT, requirement_fields), VALIDATE(check_requirement), DOC("A requirement on one label.")};

static const struct schema_field selector_fields[] = {
	{ROW("matchLabels", ANY),       FIELD(LABELS, match_labels),                      OPTIONAL,                                                           DOC("Labels that an object must have, with these values.")},
	{ROW("matchExpressions", LIST), FIELD_LIST(LABELS, requirements, n_requirements), OPTIONAL, ITEMS(0, FLEET_REQUIREMENTS_MAX), CHILD(requirement), DOC("Further requirements; an object must meet all of them.")},
};
static const struct schema selector = {SCHEMA("GPUAutoscaler.spec.scaleTargets.selector", LABELS, selector_fields), DOC("Which objects belong to the fleet.")};

static const struct schema_field series_fields[] = {
	{ROW("label", STRING), FIELD(FLEET, label), REQUIRED, RANGE(1, 128), PATTERN("^[a-zA-Z_][a-zA-Z0-9_]*$"), DOC("Label of the series with the name of the target, such as deployment. Signals with series Sum, Max, Min or Avg are grouped by it and by the label namespace.")},
};
static const struct schema series = {SCHEMA("GPUAutoscaler.spec.scaleTargets.seriesOf", FLEET, series_fields), DOC("Which series belong to which target.")};

static const struct schema_field fleet_fields[] = {
	{ROW("apiVersion", STRING), FIELD(FLEET, api_version), DEFAULT("apps/v1"),    RANGE(1, 253),   DOC("API group and version of the scaled objects.")},
	{ROW("kind", STRING),       FIELD(FLEET, kind),        DEFAULT("Deployment"), RANGE(1, 63),    DOC("Kind of the scaled objects: Deployment, StatefulSet or ReplicaSet.")},
	{ROW("selector", OBJECT),   FIELD(FLEET, selector),    REQUIRED,              CHILD(selector), DOC("Label selector of the objects, as in a Deployment. `{}` selects all objects of the kind in the namespace of the policy.")},
	{ROW("namespaceSelector", OBJECT), FIELD_SET(FLEET, namespaces, spans), OPTIONAL, CHILD(selector), DOC("Label selector of namespaces: objects of all of them, except kube-system and the namespace of the controller. `{}` selects all namespaces. Only for policies in the namespace of the controller, unless it runs with --cluster-fleets. Without it, the objects are in the namespace of the policy.")},
	{ROW("seriesOf", OBJECT),   IN_PARENT,                 REQUIRED,              CHILD(series),   DOC("How series are dealt out to the targets. It applies to all signals: a target is known by one name.")},
};
const struct schema policy_schema_fleet = {SCHEMA("GPUAutoscaler.spec.scaleTargets", FLEET, fleet_fields), DOC("Many objects that are scaled by one policy, each by its own series.")};
// clang-format on

void policy_schema_check_fleet(const struct policy_document *d, struct fault_list *l)
{
	const struct policy *p = &d->policy;
	if (!d->fleet.set)
		return;
	const char *kind = d->fleet.kind;
	bool is_supported =
	        strcmp(kind, "Deployment") == 0 || strcmp(kind, "StatefulSet") == 0 || strcmp(kind, "ReplicaSet") == 0;
	const struct fault_rule refused[] = {
	        // clang-format off
	        {!is_supported || strcmp(d->fleet.api_version, "apps/v1") != 0, "scaleTargets.kind", "not supported: a fleet of this kind; expected Deployment, StatefulSet or ReplicaSet of apps/v1"},
	        {p->objective.set,                           "objective",                "not supported in a fleet: what it learns for each target is not kept over a restart"},
	        {p->capacity.mode != CAPACITY_OFF,           "capacity.mode",            "not supported in a fleet: use Off"},
	        {p->guards.unhealthy != UNHEALTHY_IGNORE,    "guards.unhealthyReplicas", "not supported in a fleet: use Ignore"},
	        {p->restore_set,                             "restoreReplicas",          "not supported in a fleet: remove it"},
	        {p->scale_down.victims.set,                  "behavior.scaleDown.victims", "not supported in a fleet: remove it"},
	        // clang-format on
	};
	fault_add_broken(l, refused, COUNT_OF(refused));
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].target.set && p->signals[i].target.type == TARGET_PODS)
			fault_add(l, "signals", (int32_t)i, "not supported in a fleet: a target of type Pods");
}

// The API server checks the rest of a key or a value; this keeps the text of the selector unambiguous.
static bool is_label_text(const char *s)
{
	return s[strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./")] == '\0';
}

static bool put_requirement(struct buf *out, const REQUIREMENT *r)
{
	static const char *const before[] = {"", "", "", "!"}, *const after[] = {" in (", " notin (", "", ""};
	bool is_valid = is_label_text(r->key);
	buf_printf(out, "%s%s%s%s", out->len ? "," : "", before[r->op], r->key, after[r->op]);
	for (size_t i = 0; i < r->n_values; i++) {
		is_valid = is_valid && is_label_text(r->values[i]);
		buf_printf(out, "%s%s", i ? "," : "", r->values[i]);
	}
	buf_puts(out, r->op <= FLEET_NOT_IN ? ")" : "");
	return is_valid;
}

// Writes the text of a selector.
static void read_labels(LABELS *l, const char *path, const struct doc_node *written, struct arena *a,
                        struct schema_errors *errors)
{
	const struct doc_node *labels = l->match_labels;
	struct buf text;
	l->match_labels = NULL; // the tree goes
	buf_init(&text, FLEET_SELECTOR_BYTES_MAX);
	bool is_valid = !labels || labels->kind == DOC_MAP;
	for (const struct doc_node *n = is_valid && labels ? labels->child : NULL; n; n = n->next) {
		is_valid = is_valid && n->kind == DOC_SCALAR && n->key[0] && is_label_text(n->key) &&
		           is_label_text(n->text);
		buf_printf(&text, "%s%s=%s", text.len ? "," : "", n->key, n->text);
	}
	for (size_t i = 0; i < l->n_requirements; i++)
		is_valid = l->requirements[i].key && put_requirement(&text, &l->requirements[i]) && is_valid;
	l->text = is_valid && !text.failed ? arena_strdup(a, buf_str(&text)) : NULL;
	if (!is_valid)
		schema_report(errors, written, path,
		              "expected labels with values of letters, digits, '-', '_' and '.'");
	else if (!l->text)
		schema_report(errors, written, path, "is longer than %d bytes", FLEET_SELECTOR_BYTES_MAX);
	buf_done(&text);
}

void policy_schema_read_fleet(const struct doc_node *root, struct policy_document *d, struct arena *a,
                              struct schema_errors *errors)
{
	FLEET *f = &d->fleet;
	const struct doc_node *fleet = doc_get(doc_get(root, "spec"), "scaleTargets");
	if (!f->set || !f->kind || !f->api_version)
		return;
	if (!d->target.name)
		d->target = (struct scale_target){f->api_version, f->kind, FLEET_TARGET_NAME, NULL};
	read_labels(&f->selector, "spec.scaleTargets.selector", doc_get(fleet, "selector"), a, errors);
	read_labels(&f->namespaces, "spec.scaleTargets.namespaceSelector", doc_get(fleet, "namespaceSelector"), a,
	            errors);
}

// ---- spec.variants ----

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
	// clang-format off
	const struct fault_rule refused[] = {
		{p->capacity.mode == CAPACITY_ELASTIC,    "capacity.mode",              "not supported: Elastic with variants; use Fixed"},
		{p->guards.unhealthy != UNHEALTHY_IGNORE, "guards.unhealthyReplicas",   "not supported: with variants; remove it"},
		{p->replica_multiple > 1,                 "replicaMultiple",            "not supported: with variants, whose capacity states it; remove it"},
		{p->restore_set,                          "restoreReplicas",            "not supported: with variants; remove it"},
		{p->scale_down.victims.set,               "behavior.scaleDown.victims", "not supported: with variants; remove it"},
		{p->gpus.set,                             "gpus",                       "not supported: with variants, which have gpus of their own; move it there"},
	};
	// clang-format on
	fault_add_broken(l, refused, COUNT_OF(refused));
}
