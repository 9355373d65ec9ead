// SPDX-License-Identifier: Apache-2.0
#include "policies/load/policy_ref.h"

#include "base/base.h"
#include "base/hash.h"
#include "base/schema/doc.h"

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

const struct binding *policy_ref_binding(const struct policy_ref *b, const char *key)
{
	size_t low = 0, high = b->n_bindings;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = binding_key_compare(b->bindings[middle].key, key);
		if (order == 0)
			return &b->bindings[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
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
