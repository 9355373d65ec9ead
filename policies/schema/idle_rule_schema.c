// SPDX-License-Identifier: Apache-2.0
#include "policies/schema/idle_rule_schema.h"

#include <string.h>

#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/policy_schema_private.h"

#define REPLICAS_MAX 10000

// clang-format off
static const struct schema_field metadata_fields[] = {
	{ROW("name", STRING),     FIELD(struct idle_rule, name),        REQUIRED, RANGE(1, 253), DOC("Name of the rule, unique in the cluster.")},
	{ROW("annotations", ANY), FIELD(struct idle_rule, annotations), OPTIONAL,                DOC("Free text for tools; not used by gpuscale.")},
	{ROW("labels", ANY),      FIELD(struct idle_rule, labels),      OPTIONAL,                DOC("Free text for selectors; not used by gpuscale.")},
};
// clang-format on

static size_t check_metadata(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct idle_rule *r = value;
	struct fault_list l = {.faults = ret_faults, .max = max};
	if (!policy_schema_is_dns_name(r->name, true))
		fault_add(&l, "name", -1, "must be lower-case letters, digits, '-' and '.', as in nights");
	return l.n;
}

static const struct schema metadata = {
        .name = "GPUIdleRule.metadata",
        .doc = "Name, annotations and labels. A rule has no namespace, because it covers the whole cluster.",
        .struct_size = sizeof(struct idle_rule),
        .fields = metadata_fields,
        .n_fields = COUNT_OF(metadata_fields),
        .ignored = policy_schema_served_metadata,
        .validate = check_metadata,
};

static const char *const actions[] = {"Report", "Scale", NULL};

// clang-format off
static const struct schema_field spec_fields[] = {
	{ROW("source", STRING),          FIELD(struct idle_rule, source),       DEFAULT(""),       RANGE(0, 63),                        DOC("Source of the exporter's series; the default source when empty.")},
	{ROW("namespaces", STRING_LIST), FIELD_LIST(struct idle_rule, namespaces, n_namespaces), OPTIONAL, ITEMS(1, IDLE_RULE_NAMESPACES_MAX), DOC("Namespaces of the workloads; every namespace when absent.")},
	{ROW("after", DURATION_MS),      FIELD(struct idle_rule, after_ms),     DEFAULT("1h"),     RANGE(60 * SECOND_MS, 14 * DAY_MS),  DOC("A GPU is idle when it was below 5 % busy for this long, and the same pod held it at the start of that time.")},
	{ROW("interval", DURATION_MS),   FIELD(struct idle_rule, interval_ms),  DEFAULT("5m"),     RANGE(10 * SECOND_MS, DAY_MS),       DOC("Time between two evaluations.")},
	{ROW("action", ENUM),            FIELD(struct idle_rule, action),       DEFAULT("Report"), ONE_OF(actions),                     DOC("Report writes the status, metrics and Events. Scale also scales a Deployment or StatefulSet whose pods are all idle to `replicas`, after a Warning Event about it and `grace`.")},
	{ROW("replicas", INT32),         FIELD(struct idle_rule, replicas),     DEFAULT("0"),      RANGE(0, REPLICAS_MAX),              DOC("Replicas that an idle workload is scaled to.")},
	{ROW("grace", DURATION_MS),      FIELD(struct idle_rule, grace_ms),     DEFAULT("1h"),     RANGE(10 * SECOND_MS, 30 * DAY_MS),  DOC("Time from the Warning Event to the scale. The workload must stay idle until then.")},
	{ROW("maxPerHour", INT32),       FIELD(struct idle_rule, max_per_hour), DEFAULT("4"),      RANGE(1, 360),                       DOC("Largest number of workloads that the rule scales in an hour, evenly spaced: 4 means one every 15 minutes.")},
};
// clang-format on

static size_t check_spec(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct idle_rule *r = value;
	struct fault_list l = {.faults = ret_faults, .max = max};
	for (size_t i = 0; i < r->n_namespaces; i++)
		if (!policy_schema_is_dns_name(r->namespaces[i], false))
			fault_add(&l, "namespaces", (int32_t)i,
			          "must be lower-case letters, digits and '-', as in serving");
	return l.n;
}

static const struct schema spec = {
        .name = "GPUIdleRule.spec",
        .doc = "Which workloads count as idle, and what the controller does about them.",
        .struct_size = sizeof(struct idle_rule),
        .fields = spec_fields,
        .n_fields = COUNT_OF(spec_fields),
        .validate = check_spec,
};

static const char *const api_versions[] = {POLICY_API_VERSION, NULL};
static const char *const kinds[] = {IDLE_RULE_KIND, NULL};

// clang-format off
static const struct schema_field root_fields[] = {
	{ROW("apiVersion", ENUM), FIELD(struct idle_rule, api_version), REQUIRED, ONE_OF(api_versions), DOC("Version of this format.")},
	{ROW("kind", ENUM),       FIELD(struct idle_rule, kind),        REQUIRED, ONE_OF(kinds),        DOC("What this document is.")},
	{ROW("metadata", OBJECT), IN_PARENT,                            REQUIRED, CHILD(metadata),      DOC("Name, annotations and labels.")},
	{ROW("spec", OBJECT),     IN_PARENT,                            REQUIRED, CHILD(spec),          DOC("Which workloads count as idle, and what the controller does about them.")},
};
// clang-format on

static const struct schema root = {
        .name = IDLE_RULE_KIND,
        .doc = "Reports workloads whose GPUs do nothing and, if asked to, scales them down.",
        .struct_size = sizeof(struct idle_rule),
        .fields = root_fields,
        .n_fields = COUNT_OF(root_fields),
        .ignored = policy_schema_served,
};

const struct schema *idle_rule_schema(void)
{
	return &root;
}

int idle_rule_decode(const struct doc_node *node, struct idle_rule *rule, struct arena *a, struct schema_errors *errors)
{
	int rc = schema_decode(&root, node, rule, a, errors, "");
	rule->annotations = rule->labels = NULL; // they point into the document
	return rc;
}

int idle_rule_decode_spec(const struct doc_node *node, struct idle_rule *rule, struct arena *a,
                          struct schema_errors *errors, struct schema_errors *unknown)
{
	return schema_decode_tolerant(&spec, node, rule, a, errors, unknown, "spec");
}

bool idle_rule_covers(const struct idle_rule *rule, const char *namespace_name)
{
	for (size_t i = 0; i < rule->n_namespaces; i++)
		if (strcmp(rule->namespaces[i], namespace_name) == 0)
			return true;
	return rule->n_namespaces == 0;
}
