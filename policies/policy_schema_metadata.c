// SPDX-License-Identifier: Apache-2.0
// metadata of a GPUAutoscaler: its names, and the annotations that mean something.
#include <stdbool.h>
#include <string.h>

#include "base/doc.h"
#include "policies/policy_schema.h"
#include "policies/policy_schema_private.h"

static const struct schema_field metadata_fields[] = {
        {.name = "name",
         .type = SCHEMA_STRING,
         .doc = "Name of the policy, unique in its namespace.",
         FIELD(struct policy, name),
         .required = true,
         .min = 1,
         .max = 253},
        {.name = "namespace",
         .type = SCHEMA_STRING,
         .doc = "Namespace of the policy and of what it scales.",
         FIELD(struct policy, namespace_name),
         .default_text = "default",
         .min = 1,
         .max = 63},
        {.name = "annotations",
         .type = SCHEMA_ANY,
         .doc = "Free text for tools. " POLICY_ANNOTATION_PAUSED
                ": \"true\" pauses the policy, " POLICY_ANNOTATION_DRY_RUN ": \"true\" keeps it from writing.",
         FIELD(struct policy, annotations)},
        {.name = "labels",
         .type = SCHEMA_ANY,
         .doc = "Free text for selectors; not used by gpuscale.",
         FIELD(struct policy, labels)},
};

// RFC 1123: what the API server takes as the name of an object (with dots) or of a namespace (without).
static bool is_dns_name(const char *s, bool dots)
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

// As doc_get, which is beside what reads files: this folder links nothing that does.
static const struct doc_node *annotation(const struct doc_node *map, const char *key)
{
	if (!map || map->kind != DOC_MAP)
		return NULL;
	for (const struct doc_node *c = map->child; c; c = c->next)
		if (strcmp(c->key, key) == 0)
			return c;
	return NULL;
}

static bool is_text(const struct doc_node *n, const char *text)
{
	return n->kind == DOC_SCALAR && n->quoted && strcmp(n->text, text) == 0;
}

// Absent, "true" or "false".
static bool is_switch(const struct doc_node *annotations, const char *key)
{
	const struct doc_node *n = annotation(annotations, key);
	return !n || is_text(n, "true") || is_text(n, "false");
}

static bool is_switched_on(const struct doc_node *annotations, const char *key)
{
	const struct doc_node *n = annotation(annotations, key);
	return n && is_text(n, "true");
}

static size_t check_metadata(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct policy *p = value;
	struct fault_list l = {.faults = ret_faults, .max = max};
	if (!is_dns_name(p->name, true))
		fault_add(&l, "name", -1, "must be lower-case letters, digits, '-' and '.', as in llama-70b");
	if (!is_dns_name(p->namespace_name, false))
		fault_add(&l, "namespace", -1, "must be lower-case letters, digits and '-', as in serving");
	if (p->annotations && p->annotations->kind != DOC_MAP)
		fault_add(&l, "annotations", -1, "must be a map of names to texts");
	if (p->labels && p->labels->kind != DOC_MAP)
		fault_add(&l, "labels", -1, "must be a map of names to texts");
	if (!is_switch(p->annotations, POLICY_ANNOTATION_PAUSED))
		fault_add(&l, "annotations", -1, POLICY_ANNOTATION_PAUSED " must be \"true\" or \"false\", in quotes");
	if (!is_switch(p->annotations, POLICY_ANNOTATION_DRY_RUN))
		fault_add(&l, "annotations", -1, POLICY_ANNOTATION_DRY_RUN " must be \"true\" or \"false\", in quotes");
	return l.n;
}

const struct schema policy_schema_metadata = {
        .name = "GPUAutoscaler.metadata",
        .doc = "Name, namespace, annotations and labels, as of every Kubernetes object.",
        .struct_size = sizeof(struct policy),
        .fields = metadata_fields,
        .n_fields = COUNT_OF(metadata_fields),
        .validate = check_metadata,
};

void policy_schema_settle_metadata(struct policy *policy)
{
	policy->paused = policy->paused || is_switched_on(policy->annotations, POLICY_ANNOTATION_PAUSED);
	policy->dry_run = policy->dry_run || is_switched_on(policy->annotations, POLICY_ANNOTATION_DRY_RUN);
	policy->annotations = policy->labels = NULL; // the document may go now
}
