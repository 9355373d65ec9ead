// SPDX-License-Identifier: Apache-2.0
#include "controller/policy_body.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/doc.h"

struct policy_body *policy_body_new(void)
{
	struct policy_body *b = calloc(1, sizeof *b);
	if (!b)
		return NULL;
	b->refs = 1;
	arena_init(&b->arena, POLICY_BODY_ARENA_MAX);
	return b;
}

struct policy_body *policy_body_ref(struct policy_body *b)
{
	b->refs++;
	return b;
}

void policy_body_unref(struct policy_body *b)
{
	if (!b)
		return;
	assert(b->refs > 0);
	if (--b->refs > 0)
		return;
	arena_done(&b->arena);
	free(b);
}

struct policy_body *policy_body_of(const struct policy *policy)
{
	uintptr_t at = (uintptr_t)policy - offsetof(struct policy_body, policy);
	return (struct policy_body *)at; // the body is not const, only what it shows is
}

// FNV-1a, 64 bit (Fowler, Noll, Vo).
static uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
	const unsigned char *p = data;
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
	for (; text && *text; text++)
		h = (h ^ (unsigned char)*text) * 0x100000001b3u;
	return hash_bytes(h, "", 1);
}

// As deep as DOC_DEPTH_MAX lets a document be.
static uint64_t hash_node(uint64_t h, const struct doc_node *n)
{
	unsigned char what[2] = {(unsigned char)n->kind, (unsigned char)n->quoted};
	h = hash_bytes(h, what, sizeof what);
	h = hash_text(h, n->key);
	h = hash_bytes(h, n->text, n->text_len);
	h = hash_bytes(h, &n->n_children, sizeof n->n_children);
	for (const struct doc_node *child = n->child; child; child = child->next)
		h = hash_node(h, child);
	return h;
}

uint64_t policy_fingerprint(const struct doc_node *node, uint64_t seed)
{
	uint64_t h = seed ? seed : 0xcbf29ce484222325u;
	return node ? hash_node(h, node) : hash_bytes(h, "", 1);
}
