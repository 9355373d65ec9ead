// SPDX-License-Identifier: Apache-2.0
#include "policies/load/policy_ref.h"

#include "base/base.h"
#include "base/hash.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "base/tz/tzfile.h"

struct policy_ref *policy_ref_new(void)
{
	struct policy_ref *b = calloc(1, sizeof *b);
	if (!b)
		return NULL;
	b->refs = 1;
	b->binding = (struct binding){.policy = &b->policy, .target = &b->target};
	b->bindings = &b->binding;
	b->n_bindings = 1;
	arena_init(&b->arena, POLICY_BODY_ARENA_MAX);
	return b;
}

struct policy_ref *policy_ref_acquire(struct policy_ref *b)
{
	b->refs++;
	return b;
}

void policy_ref_release(struct policy_ref *b)
{
	if (!b)
		return;
	assert(b->refs > 0);
	if (--b->refs > 0)
		return;
	arena_done(&b->arena);
	free(b);
}

void policy_ref_set(struct policy_ref *b, const struct policy_document *document)
{
	b->policy = document->policy;
	b->target = document->target;
	b->variants = document->variants;
	b->binding.variants = b->variants.n ? &b->variants : NULL;
	b->fleet = document->fleet;
}

static int compare_by_key(const void *a, const void *b)
{
	const struct binding *x = a, *y = b;
	return binding_key_compare(x->key, y->key);
}

const struct binding *policy_ref_binding(const struct policy_ref *b, const char *key)
{
	const struct binding wanted = {.key = key};
	return bsearch(&wanted, b->bindings, b->n_bindings, sizeof *b->bindings, compare_by_key);
}

struct policy_ref *policy_ref_of(const struct policy *policy)
{
	uintptr_t at = (uintptr_t)policy - offsetof(struct policy_ref, policy);
	return (struct policy_ref *)at; // only the policy is const, not the struct around it
}

// As deep as DOC_DEPTH_MAX lets a document be.
static uint64_t hash_node(uint64_t h, const struct doc_node *n)
{
	unsigned char what[2] = {(unsigned char)n->kind, (unsigned char)n->quoted};
	h = hash_bytes(h, what, sizeof what);
	h = hash_text(h, n->key ? n->key : "");
	h = hash_bytes(h, n->text, n->text_len);
	h = hash_bytes(h, &n->n_children, sizeof n->n_children);
	for (const struct doc_node *child = n->child; child; child = child->next)
		h = hash_node(h, child);
	return h;
}

uint64_t policy_fingerprint(const struct doc_node *node, uint64_t seed)
{
	uint64_t h = seed ? seed : HASH_START;
	return node ? hash_node(h, node) : hash_bytes(h, "", 1);
}

// ---- time zones ----

// Returns the table of an earlier schedule with the same zone, or a new one; NULL when the zone cannot be read.
static const struct tz_table *table_of(const struct policy *policy, size_t i, struct arena *a, struct err *e)
{
	const char *name = policy->schedules[i].time_zone;
	for (size_t k = 0; k < i; k++)
		if (policy->schedules[k].zone && strcmp(policy->schedules[k].time_zone, name) == 0)
			return policy->schedules[k].zone;
	struct tz_table *table = arena_alloc(a, sizeof *table);
	if (!table) {
		err_set(e, ERR_INTERNAL, "out of memory for time zone %s", name);
		return NULL;
	}
	return tzfile_load(NULL, name, a, table, e) < 0 ? NULL : table;
}

int policy_zones_load(struct policy *policy, const struct doc_node *root, struct arena *a, struct schema_errors *errors)
{
	int rc = 0;
	const struct doc_node *list = doc_get(doc_get(root, "spec"), "schedules");
	const struct doc_node *item = list && list->kind == DOC_SEQ ? list->child : NULL;
	for (size_t i = 0; item && i < POLICY_SCHEDULES_MAX && i < policy->n_schedules; item = item->next, i++) {
		const struct doc_node *node = doc_get(item, "timeZone");
		char path[SCHEMA_PATH_BYTES];
		struct err e;
		err_clear(&e);
		if (!policy->schedules[i].time_zone)
			continue; // without a text: already reported
		policy->schedules[i].zone = table_of(policy, i, a, &e);
		if (e.kind == ERR_NONE)
			continue;
		snprintf(path, sizeof path, "spec.schedules[%zu].timeZone", i);
		schema_report(errors, node ? node : item, path, "%s", e.msg);
		rc = -1;
	}
	return rc;
}
