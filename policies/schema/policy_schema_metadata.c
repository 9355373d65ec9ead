// SPDX-License-Identifier: Apache-2.0
// metadata of a GPUAutoscaler: its names, and the annotations that mean something.
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/schema/doc.h"
#include "policies/engine/policy.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/policy_schema_private.h"

const char *const policy_schema_served[] = {"status", NULL};
const char *const policy_schema_served_metadata[] = {"creationTimestamp",
                                                     "deletionGracePeriodSeconds",
                                                     "deletionTimestamp",
                                                     "finalizers",
                                                     "generation",
                                                     "managedFields",
                                                     "ownerReferences",
                                                     "resourceVersion",
                                                     "selfLink",
                                                     "uid",
                                                     NULL};

bool policy_schema_is_dns_name(const char *s, bool dots)
{
	char before = '.';
	for (; *s; before = *s++) {
		bool alnum = (*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9');
		bool edge = before == '.' || before == '-';
		if (alnum || (*s == '-' && before != '.') || (dots && *s == '.' && !edge))
			continue;
		return false;
	}
	return before != '-' && before != '.';
}

static bool is_text(const struct doc_node *n, const char *text)
{
	return n->kind == DOC_SCALAR && n->quoted && strcmp(n->text, text) == 0;
}

// Absent, "true" or "false".
static bool is_switch(const struct doc_node *annotations, const char *key)
{
	const struct doc_node *n = doc_get(annotations, key);
	return !n || is_text(n, "true") || is_text(n, "false");
}

static bool is_switched_on(const struct doc_node *annotations, const char *key)
{
	const struct doc_node *n = doc_get(annotations, key);
	return n && is_text(n, "true");
}

// clang-format off
static void check_metadata(const void *value, struct fault_list *l)
{
	const struct policy *p = value;
	const struct fault_rule rules[] = {
		{!policy_schema_is_dns_name(p->name, true), "name", "must be lower-case letters, digits, '-' and '.', as in llama-70b"},
		{!policy_schema_is_dns_name(p->namespace_name, false), "namespace", "must be lower-case letters, digits and '-', as in serving"},
		{p->annotations && p->annotations->kind != DOC_MAP, "annotations", "must be a map of names to texts"},
		{p->labels && p->labels->kind != DOC_MAP, "labels", "must be a map of names to texts"},
		{!is_switch(p->annotations, POLICY_ANNOTATION_PAUSED), "annotations", POLICY_ANNOTATION_PAUSED " must be \"true\" or \"false\", in quotes"},
		{!is_switch(p->annotations, POLICY_ANNOTATION_DRY_RUN), "annotations", POLICY_ANNOTATION_DRY_RUN " must be \"true\" or \"false\", in quotes"},
	};
	fault_add_broken(l, rules, COUNT_OF(rules));
}

static const struct schema_field metadata_fields[] = {
	{ROW("name", STRING),      FIELD(struct policy, name),           REQUIRED,           RANGE(1, 253), DOC("Name of the policy, unique in its namespace.")},
	{ROW("namespace", STRING), FIELD(struct policy, namespace_name), DEFAULT("default"), RANGE(1, 63),  DOC("Namespace of the policy and of what it scales.")},
	{ROW("annotations", ANY),  FIELD(struct policy, annotations),    OPTIONAL,                          DOC("Free text for tools. " POLICY_ANNOTATION_PAUSED ": \"true\" pauses the policy, " POLICY_ANNOTATION_DRY_RUN ": \"true\" keeps it from writing.")},
	{ROW("labels", ANY),       FIELD(struct policy, labels),         OPTIONAL,                          DOC("Free text for selectors; gpuscale uses them for the members of a GPUPool.")},
};
const struct schema policy_schema_metadata = {SCHEMA("GPUAutoscaler.metadata", struct policy, metadata_fields), VALIDATE(check_metadata), .ignored = policy_schema_served_metadata, DOC("Name, namespace, annotations and labels, as of every Kubernetes object.")};
// clang-format on

void policy_schema_read_metadata(const struct doc_node *root, struct policy *policy, struct arena *a,
                                 struct schema_errors *errors)
{
	const char *lines = "";
	policy->paused = policy->paused || is_switched_on(policy->annotations, POLICY_ANNOTATION_PAUSED);
	policy->dry_run = policy->dry_run || is_switched_on(policy->annotations, POLICY_ANNOTATION_DRY_RUN);
	for (const struct doc_node *c = policy->labels ? policy->labels->child : NULL; c && lines; c = c->next)
		if (c->kind == DOC_SCALAR)
			lines = arena_printf(a, "%s%s=%s\n", lines, c->key, c->text);
	if (!lines)
		schema_report(errors, root, "metadata.labels", "out of memory");
	policy->label_lines = lines;
	policy->annotations = policy->labels = NULL;
}
