// SPDX-License-Identifier: Apache-2.0
#include "controller/policy_object.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/num.h"
#include "base/schema.h"
#include "controller/policy_body.h"
#include "controller/policy_zones.h"
#include "policies/policy.h"
#include "policies/policy_schema.h"

#define TREE_BYTES_MAX ((size_t)64 * 1024 * 1024)

// Of map, only the children with these names; the tree is ours to change.
static void keep(struct doc_node *map, const char *const *names, size_t n_names)
{
	struct doc_node **slot = &map->child;
	if (map->kind != DOC_MAP)
		return;
	map->n_children = 0;
	for (struct doc_node *c = map->child, *next; c; c = next) {
		next = c->next;
		bool is_kept = false;
		for (size_t i = 0; i < n_names; i++)
			is_kept = is_kept || strcmp(c->key, names[i]) == 0;
		if (!is_kept)
			continue;
		*slot = c;
		slot = &c->next;
		map->n_children++;
	}
	*slot = NULL;
}

static int64_t time_of(const struct doc_node *metadata, const char *key)
{
	const char *text = doc_get_text(metadata, key, "");
	int64_t ms = 0;
	return num_parse_rfc3339_ms(text, strlen(text), &ms, NULL) < 0 ? 0 : ms;
}

static int read_metadata(const struct doc_node *metadata, struct arena *a, struct policy_object *ret_object)
{
	const char *generation = doc_get_text(metadata, "generation", "0");
	const struct {
		const char *key;
		const char **slot;
	} texts[] = {{"namespace", &ret_object->namespace_name},
	             {"name", &ret_object->name},
	             {"uid", &ret_object->uid},
	             {"resourceVersion", &ret_object->resource_version}};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		const char *copy = arena_strdup(a, doc_get_text(metadata, texts[i].key, ""));
		if (!copy)
			return -1;
		*texts[i].slot = copy;
	}
	if (num_parse_i64(generation, strlen(generation), 0, INT64_MAX, &ret_object->generation, NULL) < 0)
		ret_object->generation = 0;
	ret_object->created_ms = time_of(metadata, "creationTimestamp");
	ret_object->deleted_ms = time_of(metadata, "deletionTimestamp");
	return 0;
}

static int decode_tree(struct doc_node *root, struct arena *a, struct policy_object *ret_object,
                       struct policy *ret_policy, struct schema_errors *errors, struct schema_errors *unknown)
{
	static const char *const root_names[] = {"apiVersion", "kind", "metadata", "spec"};
	static const char *const metadata_names[] = {"name", "namespace", "annotations", "labels"};
	size_t n_root = sizeof root_names / sizeof root_names[0],
	       n_metadata = sizeof metadata_names / sizeof metadata_names[0];
	const struct doc_node *status = doc_get(root, "status");
	ret_object->has_status = status && status->n_children > 0;
	keep(root, root_names, n_root);
	for (struct doc_node *c = root->child; c; c = c->next)
		if (strcmp(c->key, "metadata") == 0) {
			if (read_metadata(c, a, ret_object) < 0) {
				schema_report(errors, NULL, "", "does not fit into the memory allowed");
				return -1;
			}
			keep(c, metadata_names, n_metadata);
		}
	ret_object->fingerprint = policy_fingerprint(root, 0);
	size_t before = errors->n + errors->dropped;
	int rc = policy_decode_tolerant(root, ret_policy, a, errors, unknown);
	policy_zones_load(ret_policy, root, a, errors);
	return rc < 0 || errors->n + errors->dropped > before ? -1 : 0;
}

int policy_object_decode(const char *json, size_t len, struct arena *a, struct policy_object *ret_object,
                         struct policy *ret_policy, struct schema_errors *errors, struct schema_errors *unknown)
{
	*ret_object = (struct policy_object){.namespace_name = "", .name = "", .uid = "", .resource_version = ""};
	*ret_policy = (struct policy){0};
	struct arena tree; // the document itself is needed only while decoding
	struct doc_node *root;
	struct err e;
	int rc = -1;
	arena_init(&tree, TREE_BYTES_MAX);
	if (doc_from_json(&tree, json, len, &root, &e) < 0)
		schema_report(errors, NULL, "", "%s", e.msg);
	else
		rc = decode_tree(root, a, ret_object, ret_policy, errors, unknown);
	arena_done(&tree);
	return rc;
}
