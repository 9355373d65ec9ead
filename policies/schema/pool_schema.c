// SPDX-License-Identifier: Apache-2.0
#include "policies/schema/pool_schema.h"

#include <stdbool.h>
#include <string.h>

#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "base/text.h"
#include "policies/pool/gpu_pool.h"
#include "policies/pool/pool_allocate.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/policy_schema_private.h"

#define MONEY_MAX       1e9 // per hour
#define MONTH_MONEY_MAX 1e12
#define PRICE_MAX       1000.0
#define RATIO_MAX       1000.0
#define WEIGHT_MAX      1000.0

// ---- metadata ----

static void check_metadata(const void *value, struct fault_list *l)
{
	const struct gpu_pool *p = value;
	if (!policy_schema_is_dns_name(p->name, true))
		fault_add(l, "name", -1, "must be lower-case letters, digits, '-' and '.', as in h100");
	if (p->annotations && p->annotations->kind != DOC_MAP)
		fault_add(l, "annotations", -1, "must be a map of names to texts");
	if (p->labels && p->labels->kind != DOC_MAP)
		fault_add(l, "labels", -1, "must be a map of names to texts");
}

// clang-format off
static const struct schema_field metadata_fields[] = {
	{ROW("name", STRING),     FIELD(struct gpu_pool, name),        REQUIRED, RANGE(1, 253), DOC("Name of the pool, unique in the cluster.")},
	{ROW("annotations", ANY), FIELD(struct gpu_pool, annotations), OPTIONAL,                DOC("Free text for tools; not used by gpuscale.")},
	{ROW("labels", ANY),      FIELD(struct gpu_pool, labels),      OPTIONAL,                DOC("Free text for selectors; not used by gpuscale.")},
};
static const struct schema metadata = {SCHEMA("GPUPool.metadata", struct gpu_pool, metadata_fields), VALIDATE(check_metadata), .ignored = policy_schema_served_metadata, DOC("Name, annotations and labels. A pool has no namespace, because GPUs have none.")};
// clang-format on

// ---- spec.budget ----

static void check_budget(const void *value, struct fault_list *l)
{
	const struct gpu_pool *p = value;
	if (!p->has_per_hour && !p->has_per_month)
		fault_add(l, "perHour", -1, "set perHour, perMonth or both");
}

// clang-format off
static const struct schema_field budget_fields[] = {
	{ROW("perHour", QUANTITY),     FIELD_SET(struct gpu_pool, per_hour, has_per_hour),   OPTIONAL, RANGE(0, MONEY_MAX),       DOC("Most that all replicas of the members may cost per hour, in the currency of the prices.")},
	{ROW("perMonth", QUANTITY),    FIELD_SET(struct gpu_pool, per_month, has_per_month), OPTIONAL, RANGE(0, MONTH_MONEY_MAX), DOC("Most that they may cost in a calendar month, UTC. It lowers what they may cost in this hour, so that the month stays within it.")},
	{ROW("pricePerGPU", QUANTITY), FIELD(struct gpu_pool, price),                        REQUIRED, RANGE(0, PRICE_MAX),       DOC("Price of one GPU for one hour, for members without a price of their own.")},
};
static const struct schema budget = {SCHEMA("GPUPool.spec.budget", struct gpu_pool, budget_fields), VALIDATE(check_budget), DOC("Caps in money per hour and per month, beside the cap in GPUs.")};
// clang-format on

// ---- spec.members[] ----

static void check_entry(const void *value, struct fault_list *l)
{
	const struct gpu_pool_entry *p = value;
	for (size_t i = 0; i < p->n_labels; i++) {
		const char *equals = strchr(p->labels[i], '=');
		if (!equals || equals == p->labels[i] || strpbrk(equals + 1, "=\n"))
			fault_add(l, "labels", (int32_t)i, "must be the name and the value of a label, as in team=ml");
	}
	for (size_t i = 0; i < p->n_namespaces; i++)
		if (!policy_schema_is_dns_name(p->namespaces[i], false))
			fault_add(l, "namespaces", (int32_t)i, "must be the name of a namespace, as in serving");
	if (p->namespace_name && p->namespace_name[0] && p->n_namespaces > 0)
		fault_add(l, "namespaces", -1, "is set in addition to namespace: keep one of the two");
	if (p->max_gpus > 0 && p->max_gpus < p->gpus_per_replica)
		fault_add(l, "maxGPUs", -1,
		          "is less than gpusPerReplica, so that no replica fits: raise it, or remove it");
}

// clang-format off
static const struct schema_field entry_fields[] = {
	{ROW("namespace", STRING),      FIELD(struct gpu_pool_entry, namespace_name),   OPTIONAL,         RANGE(0, 63),                                   DOC("Namespace of the policies. Each entry has either this field or namespaces. Users who may create policies there may claim GPUs of the pool, as far as the entry allows.")},
	{ROW("namespaces", STRING_LIST), FIELD_LIST(struct gpu_pool_entry, namespaces, n_namespaces), OPTIONAL, ITEMS(1, GPU_POOL_NAMESPACES_MAX),   DOC("Namespaces of the policies, in place of namespace.")},
	{ROW("name", STRING),           FIELD(struct gpu_pool_entry, name),             DEFAULT(""),      RANGE(0, 253),                                  DOC("Name of the policy; every policy of the namespaces when empty.")},
	{ROW("labels", STRING_LIST),    FIELD_LIST(struct gpu_pool_entry, labels, n_labels), OPTIONAL, ITEMS(0, GPU_POOL_LABELS_MAX),               DOC("Labels of the policies, as team=ml; of the policies in the namespaces, the entry matches those that have all of them.")},
	{ROW("gpusPerReplica", INT32),  FIELD(struct gpu_pool_entry, gpus_per_replica), DEFAULT("1"),     RANGE(1, POOL_GPUS_PER_REPLICA_MAX),            DOC("GPUs that one replica of the target uses.")},
	{ROW("maxGPUs", INT32),         FIELD(struct gpu_pool_entry, max_gpus),         OPTIONAL,         RANGE(1, POOL_GPUS_MAX),                        DOC("GPUs that each member may have at most, in whole replicas; those of the pool by default. Whatever a member asks for, has or reports, it counts for no more.")},
	{ROW("maxMinReplicas", INT32),  FIELD(struct gpu_pool_entry, max_min_replicas), DEFAULT("0"),     RANGE(0, POOL_REPLICAS_MAX),                    DOC("The part of each member's minReplicas that is guaranteed: other members yield for it. The rest of minReplicas is an ordinary request.")},
	{ROW("priority", INT32),        FIELD(struct gpu_pool_entry, priority),         DEFAULT("0"),     RANGE(-POOL_PRIORITY_MAX, POOL_PRIORITY_MAX),   DOC("Members of a larger priority get what they ask for before members of a smaller one get more than their guaranteed minReplicas.")},
	{ROW("weight", QUANTITY),       FIELD(struct gpu_pool_entry, weight),           DEFAULT("1"),     RANGE(0.001, WEIGHT_MAX),                       DOC("Share of the GPUs at equal priority: a member of weight 2 gets twice the GPUs of a member of weight 1 when both want more than there is.")},
	{ROW("pricePerGPU", QUANTITY),  FIELD(struct gpu_pool_entry, price),            DEFAULT("0"),     RANGE(0, PRICE_MAX),                            DOC("Price of one GPU of this member for one hour; 0 = that of budget.")},
	{ROW("backfill", BOOL),         FIELD(struct gpu_pool_entry, backfill),         DEFAULT("false"),                                                 DOC("Uses only what all other members leave, and yields it before any of them waits. Its guaranteed minReplicas are kept.")},
};
// That a namespace is missing is reported by check_spec().
static const struct schema_rule entry_rules[] = {
	{"(has(self.namespace) && self.namespace != '') != has(self.namespaces)", "either namespace or namespaces is required, and not both"},
	{"!has(self.maxGPUs) || self.maxGPUs >= self.gpusPerReplica", "maxGPUs is less than gpusPerReplica, so that no replica fits"},
};
static const struct schema entry = {SCHEMA("GPUPool.spec.members[]", struct gpu_pool_entry, entry_fields), VALIDATE(check_entry), RULES(entry_rules), DOC("Policies that share the pool. Of several entries that match a policy, the first applies.")};
// clang-format on

// ---- spec.ratios[] ----

static void check_ratio(const void *value, struct fault_list *l)
{
	const struct gpu_pool_ratio *r = value;
	if (gpu_pool_milli(r->min) >= gpu_pool_milli(r->max))
		fault_add(l, "min", -1,
		          "must be smaller than max by at least 0.001, because the two members cannot change in the "
		          "same moment: lower it or raise max");
	if (strcmp(r->of, r->to) == 0)
		fault_add(l, "to", -1, "is the same policy as `of`: name a different policy");
}

// clang-format off
static const struct schema_field ratio_fields[] = {
	{ROW("of", STRING),    FIELD(struct gpu_pool_ratio, of),  REQUIRED, RANGE(3, 317),           DOC("The one policy, as namespace/name: serving/prefill.")},
	{ROW("to", STRING),    FIELD(struct gpu_pool_ratio, to),  REQUIRED, RANGE(3, 317),           DOC("The other policy, as namespace/name: serving/decode.")},
	{ROW("min", QUANTITY), FIELD(struct gpu_pool_ratio, min), REQUIRED, RANGE(0, RATIO_MAX),     DOC("Fewest replicas of the one per replica of the other.")},
	{ROW("max", QUANTITY), FIELD(struct gpu_pool_ratio, max), REQUIRED, RANGE(0.001, RATIO_MAX), DOC("Most replicas of the one per replica of the other, more than min. A ratio holds to within one replica.")},
};
static const struct schema ratio = {SCHEMA("GPUPool.spec.ratios[]", struct gpu_pool_ratio, ratio_fields), VALIDATE(check_ratio), DOC("Keeps two members in proportion, as prefill and decode, even while only one of two writes succeeds.")};
// clang-format on

// ---- spec ----

// Whether the entry matches nothing that the earlier one does not match.
static bool is_covered(const struct gpu_pool_entry *e, const struct gpu_pool_entry *earlier)
{
	for (size_t i = 0; i < earlier->n_labels; i++)
		if (!text_is_one_of(earlier->labels[i], e->labels, e->n_labels))
			return false;
	if (strcmp(e->name, earlier->name) != 0 || !gpu_pool_entry_has_namespace(e))
		return false;
	for (size_t i = 0; i < e->n_namespaces; i++)
		if (!gpu_pool_entry_names(earlier, e->namespaces[i]))
			return false;
	return e->n_namespaces > 0 || gpu_pool_entry_names(earlier, e->namespace_name);
}

static bool is_paired(const struct gpu_pool_ratio *r, const char *name)
{
	return strcmp(r->of, name) == 0 || strcmp(r->to, name) == 0;
}

static bool is_member(const struct gpu_pool *p, const char *key)
{
	const char *slash = strchr(key, '/');
	char namespace_name[64];
	if (!slash || slash == key || (size_t)(slash - key) >= sizeof namespace_name)
		return false;
	memcpy(namespace_name, key, (size_t)(slash - key));
	namespace_name[slash - key] = '\0';
	return gpu_pool_claims(p, namespace_name, slash + 1, NULL) != NULL;
}

static void check_object_spec(const void *value, struct fault_list *l)
{
	const struct gpu_pool *p = value;
	for (size_t i = 0; i < p->n_entries; i++)
		for (size_t k = 0; k < i; k++)
			if (is_covered(&p->entries[i], &p->entries[k])) {
				fault_add(l, "members", (int32_t)i,
				          "is shadowed by an earlier entry that matches the same policies: remove one "
				          "of them");
				break;
			}
	for (size_t i = 0; i < p->n_ratios; i++) {
		const struct gpu_pool_ratio *r = &p->ratios[i];
		if (!is_member(p, r->of) || !is_member(p, r->to))
			fault_add(l, "ratios", (int32_t)i,
			          "names a policy that no entry of members matches: write namespace/name of a member");
		for (size_t k = 0; k < i; k++)
			if (is_paired(&p->ratios[k], r->of) || is_paired(&p->ratios[k], r->to)) {
				fault_add(l, "ratios", (int32_t)i,
				          "names a policy of an earlier ratio: a policy belongs to one pair at most");
				break;
			}
	}
}

static void check_spec(const void *value, struct fault_list *l)
{
	const struct gpu_pool *p = value;
	check_object_spec(value, l);
	for (size_t i = 0; i < p->n_entries; i++)
		if (!gpu_pool_entry_has_namespace(&p->entries[i]))
			fault_add(l, "members", (int32_t)i,
			          "names no namespace, so that it matches no policy: add namespace or namespaces");
}

// clang-format off
static const struct schema_field spec_fields[] = {
	{ROW("gpus", INT32),            FIELD(struct gpu_pool, gpus),                REQUIRED,       RANGE(1, POOL_GPUS_MAX),                      DOC("The cap: all replicas of all members together never use more GPUs.")},
	{ROW("budget", OBJECT),         .offset = 0, .set_offset = offsetof(struct gpu_pool, has_budget), OPTIONAL, CHILD(budget),              DOC("Caps in money per hour and per month, beside the cap in GPUs.")},
	{ROW("turnEvery", DURATION_MS), FIELD(struct gpu_pool, turn_every_ms),       DEFAULT("30m"), RANGE(60 * SECOND_MS, 7 * DAY_MS),            DOC("When members of equal priority and weight cannot all get one more replica, the next one is first after this time. Longer than a replica takes to start.")},
	{ROW("members", LIST),          FIELD_LIST(struct gpu_pool, entries, n_entries), REQUIRED,   ITEMS(1, GPU_POOL_ENTRIES_MAX), CHILD(entry), DOC("Policies that share the pool. Of several entries that match a policy, the first applies.")},
	{ROW("ratios", LIST),           FIELD_LIST(struct gpu_pool, ratios, n_ratios),   OPTIONAL,   ITEMS(0, GPU_POOL_RATIOS_MAX), CHILD(ratio),  DOC("Pairs of members that stay in proportion. A policy belongs to one pair at most.")},
};
static const struct schema spec = {SCHEMA("GPUPool.spec", struct gpu_pool, spec_fields), VALIDATE(check_spec), DOC("How many GPUs there are, and who shares them in which order.")};

// Schema of an object: one that was stored before namespaces were required is shared by members of its other entries.
static const struct schema object_spec = {SCHEMA("GPUPool.spec", struct gpu_pool, spec_fields), VALIDATE(check_object_spec)};
// clang-format on

// ---- root ----

static const char *const api_versions[] = {POLICY_API_VERSION, NULL};
static const char *const kinds[] = {POOL_KIND, NULL};

// clang-format off
static const struct schema_field root_fields[] = {
	{ROW("apiVersion", ENUM), FIELD(struct gpu_pool, api_version), REQUIRED, ONE_OF(api_versions), DOC("Version of this format.")},
	{ROW("kind", ENUM),       FIELD(struct gpu_pool, kind),        REQUIRED, ONE_OF(kinds),        DOC("What this document is.")},
	{ROW("metadata", OBJECT), IN_PARENT,                           REQUIRED, CHILD(metadata),      DOC("Name, annotations and labels.")},
	{ROW("spec", OBJECT),     IN_PARENT,                           REQUIRED, CHILD(spec),          DOC("How many GPUs there are, and who shares them in which order.")},
};
const struct schema pool_schema = {SCHEMA(POOL_KIND, struct gpu_pool, root_fields), .ignored = policy_schema_served, DOC("Shares one number of GPUs among policies.")};
// clang-format on

int pool_decode(const struct doc_node *node, struct gpu_pool *pool, struct arena *a, struct schema_errors *errors)
{
	int rc = schema_decode(&pool_schema, node, pool, a, errors, "");
	pool->annotations = pool->labels = NULL; // they point into the document
	return rc;
}

int pool_decode_spec(const struct doc_node *node, struct gpu_pool *pool, struct arena *a, struct schema_errors *errors,
                     struct schema_errors *unknown)
{
	return schema_decode_tolerant(&object_spec, node, pool, a, errors, unknown, "spec");
}
