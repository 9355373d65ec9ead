// SPDX-License-Identifier: Apache-2.0
// Rules about the target: which kinds can be scaled.
#include <ctype.h>
#include <strings.h>

#include "base/base.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/engine/policy.h"
#include "policies/lint/lint.h"
#include "policies/schema/binding.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))
#define KIND_BYTES  64

// The built-in kinds that have a scale subresource, and Jobs, whose parallelism is scaled. Kinds of custom resources
// are in groups with a dot, which a policy may name freely.
static const struct {
	const char *kind, *api_version;
} built_in[] = {
        {"Deployment", "apps/v1"},       {"ReplicaSet", "apps/v1"}, {"StatefulSet", "apps/v1"},
        {"ReplicationController", "v1"}, {"Job", "batch/v1"},
};

static bool is_built_in_group(const char *api_version)
{
	return !memchr(api_version, '.', strcspn(api_version, "/"));
}

static const struct doc_node *written(const struct doc_node *ref, const char *key)
{
	const struct doc_node *node = doc_get(ref, key);
	return node ? node : ref;
}

// The API server matches kinds by their exact name, so a misspelt kind stays "not found".
static void report_kind(const struct scale_target *t, const struct doc_node *ref, const char *path,
                        struct schema_errors *errors)
{
	const char *kinds[COUNT_OF(built_in)];
	char upper[KIND_BYTES];
	for (size_t i = 0; i < COUNT_OF(built_in); i++)
		kinds[i] = built_in[i].kind;
	snprintf(upper, sizeof upper, "%s", t->kind);
	upper[0] = (char)toupper((unsigned char)upper[0]);
	const char *meant = num_closest_name(upper, kinds, COUNT_OF(kinds));
	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		if (strcasecmp(kinds[i], upper) == 0)
			meant = kinds[i];
	bool is_custom = !is_built_in_group(t->api_version);
	if (meant && !is_custom)
		schema_report(errors, written(ref, "kind"), path, "%s has no kind %s: did you mean %s?", t->api_version,
		              t->kind, meant);
	else if (is_custom)
		schema_report(errors, written(ref, "kind"), path,
		              "expected the name of a kind, which starts with a capital letter, got %s", t->kind);
	else
		schema_report(errors, written(ref, "kind"), path,
		              "%s has no kind %s that can be scaled: expected Deployment, StatefulSet or ReplicaSet of "
		              "apps/v1, Job of batch/v1, or a custom resource with a scale subresource",
		              t->api_version, t->kind);
}

static void lint_one(const struct scale_target *target, const struct doc_node *ref, const char *path,
                     struct schema_errors *errors)
{
	char field[SCHEMA_PATH_BYTES];
	const char *version = NULL;
	for (size_t i = 0; i < COUNT_OF(built_in) && !version; i++)
		if (strcmp(target->kind, built_in[i].kind) == 0)
			version = built_in[i].api_version;
	snprintf(field, sizeof field, "%s.kind", path);
	if (!is_built_in_group(target->api_version)) {
		if (!isupper((unsigned char)target->kind[0]))
			report_kind(target, ref, field, errors);
	} else if (!version) {
		report_kind(target, ref, field, errors);
	} else if (strcmp(target->api_version, version) != 0) {
		snprintf(field, sizeof field, "%s.apiVersion", path);
		schema_report(errors, written(ref, "apiVersion"), field, "%s is in %s, got %s", target->kind, version,
		              target->api_version);
	}
}

void lint_target(const struct policy_document *document, const struct doc_node *root, struct schema_errors *errors)
{
	const struct doc_node *spec = doc_get(root, "spec"), *list = doc_get(spec, "variants");
	const struct scale_variants *all = &document->variants;
	char path[SCHEMA_PATH_BYTES];
	if (all->n == 0)
		lint_one(&document->target, doc_get(spec, "scaleTargetRef"), "spec.scaleTargetRef", errors);
	for (size_t i = 0; i < all->n; i++) {
		snprintf(path, sizeof path, "spec.variants[%zu].scaleTargetRef", i);
		lint_one(&all->items[i].target, doc_get(lint_element(list, i), "scaleTargetRef"), path, errors);
	}
}

// Kubernetes: pkg/controller/statefulset; LeaderWorkerSet: pkg/controllers, which creates StatefulSets.
void lint_victims(const struct policy *policy, const struct scale_target *target, const struct doc_node *root,
                  struct schema_errors *warnings)
{
	static const char *const by_ordinal[] = {"StatefulSet", "LeaderWorkerSet"};
	const struct doc_node *down = doc_get(doc_get(doc_get(root, "spec"), "behavior"), "scaleDown");
	for (size_t i = 0; policy->scale_down.victims.set && i < COUNT_OF(by_ordinal); i++)
		if (strcmp(target->kind, by_ordinal[i]) == 0)
			schema_report(warnings, lint_nearest(down, "victims", NULL), "spec.behavior.scaleDown.victims",
			              "has no effect: a %s removes the highest number first, whatever the deletion "
			              "costs of its pods: remove it, or use a Deployment",
			              by_ordinal[i]);
}
