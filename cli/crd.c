// SPDX-License-Identifier: Apache-2.0
#include "cli/crd.h"

#include <assert.h>
#include <string.h>

#include "base/json_write.h"
#include "base/schema.h"
#include "base/schema_openapi.h"
#include "controller/status_schema.h"
#include "policies/policy_schema.h"

// NOLINTNEXTLINE(misc-redundant-expression): equal is what they must be
_Static_assert(sizeof CRD_GROUP "/" CRD_VERSION == sizeof POLICY_API_VERSION, "the group and version of the policy");

struct column {
	const char *name, *type, *path, *doc;
	int priority; // 1: only with -o wide
};
// kubectl prints the last one last, whatever its priority.
static const struct column columns[] = {
        {"Target", "string", ".spec.scaleTargetRef.name", "Name of what is scaled.", 0},
        {"Min", "integer", ".spec.minReplicas", "Lower bound.", 0},
        {"Max", "integer", ".spec.maxReplicas", "Upper bound.", 0},
        {"Current", "integer", ".status.currentReplicas", "Replicas of the target.", 0},
        {"Desired", "integer", ".status.desiredReplicas", "Replicas that the last decision wants.", 0},
        {"Reason", "string", ".status.reason", "Why.", 0},
        {"Signals", "string", ".status.signalsSummary", "Signals and what they are held against.", 1},
        {"Last Scale", "date", ".status.lastScaleTime", "When the target was last scaled.", 1},
        {"Age", "date", ".metadata.creationTimestamp", "Age of the policy.", 0},
};

static void put_list_of_one(struct json_writer *w, const char *key, const char *value)
{
	json_write_key(w, key);
	json_write_array_begin(w);
	json_write_str(w, value);
	json_write_array_end(w);
}

static void put_names(struct json_writer *w)
{
	json_write_key(w, "names");
	json_write_object_begin(w);
	json_write_member_str(w, "kind", POLICY_KIND);
	json_write_member_str(w, "listKind", POLICY_KIND "List");
	json_write_member_str(w, "plural", CRD_PLURAL);
	json_write_member_str(w, "singular", "gpuautoscaler");
	put_list_of_one(w, "shortNames", "gpua");
	put_list_of_one(w, "categories", "all");
	json_write_object_end(w);
}

static void put_columns(struct json_writer *w)
{
	json_write_key(w, "additionalPrinterColumns");
	json_write_array_begin(w);
	for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
		json_write_object_begin(w);
		json_write_member_str(w, "name", columns[i].name);
		json_write_member_str(w, "type", columns[i].type);
		json_write_member_str(w, "jsonPath", columns[i].path);
		json_write_member_str(w, "description", columns[i].doc);
		if (columns[i].priority) {
			json_write_key(w, "priority");
			json_write_i64(w, columns[i].priority);
		}
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void put_typed(struct json_writer *w, const char *key, const char *type)
{
	json_write_key(w, key);
	json_write_object_begin(w);
	json_write_member_str(w, "type", type);
	json_write_object_end(w);
}

// metadata is the API server's own: a CRD may say little about it.
static void put_schema(struct json_writer *w, bool with_rules)
{
	const struct schema_field *spec = schema_find(policy_schema(), "spec", NULL, NULL);
	assert(spec && spec->child);
	json_write_key(w, "schema");
	json_write_object_begin(w);
	json_write_key(w, "openAPIV3Schema");
	json_write_object_begin(w);
	json_write_member_str(w, "description", policy_schema()->doc);
	json_write_member_str(w, "type", "object");
	put_list_of_one(w, "required", "spec");
	json_write_key(w, "properties");
	json_write_object_begin(w);
	put_typed(w, "apiVersion", "string");
	put_typed(w, "kind", "string");
	put_typed(w, "metadata", "object");
	json_write_key(w, "spec");
	schema_openapi(spec->child, with_rules, w);
	json_write_key(w, "status");
	schema_openapi(status_schema(), false, w);
	json_write_object_end(w);
	json_write_object_end(w);
	json_write_object_end(w);
}

static void put_version(struct json_writer *w, bool with_rules)
{
	json_write_object_begin(w);
	json_write_member_str(w, "name", CRD_VERSION);
	json_write_member_bool(w, "served", true);
	json_write_member_bool(w, "storage", true);
	json_write_key(w, "subresources");
	json_write_object_begin(w);
	json_write_key(w, "status");
	json_write_object_begin(w);
	json_write_object_end(w);
	json_write_object_end(w);
	put_columns(w);
	put_schema(w, with_rules);
	json_write_object_end(w);
}

void crd_write(struct json_writer *w, bool with_rules)
{
	json_write_object_begin(w);
	json_write_member_str(w, "apiVersion", "apiextensions.k8s.io/v1");
	json_write_member_str(w, "kind", "CustomResourceDefinition");
	json_write_key(w, "metadata");
	json_write_object_begin(w);
	json_write_member_str(w, "name", CRD_PLURAL "." CRD_GROUP);
	json_write_key(w, "labels");
	json_write_object_begin(w);
	json_write_member_str(w, "app.kubernetes.io/name", "gpuscale");
	json_write_member_str(w, "app.kubernetes.io/part-of", "gpuscale");
	json_write_object_end(w);
	json_write_object_end(w);
	json_write_key(w, "spec");
	json_write_object_begin(w);
	json_write_member_str(w, "group", CRD_GROUP);
	json_write_member_str(w, "scope", "Namespaced");
	put_names(w);
	json_write_key(w, "versions");
	json_write_array_begin(w);
	put_version(w, with_rules);
	json_write_array_end(w);
	json_write_object_end(w);
	json_write_object_end(w);
}
