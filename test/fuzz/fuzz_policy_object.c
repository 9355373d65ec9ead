// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as an object of the API server. Beyond "does not crash": every answer is either a policy within its
// bounds or at least one fault, and the object's identity is always readable.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/schema.h"
#include "controller/policy_object.h"
#include "policies/policy.h"

#define ARENA_BYTES_MAX ((size_t)16 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static size_t check_node(const struct doc_node *node, int depth)
{
	size_t n = 1, n_children = 0;
	bool is_collection = node->kind == DOC_MAP || node->kind == DOC_SEQ;
	require(depth <= DOC_DEPTH_MAX && node->line == 0 && node->col == 0);
	require(node->text && strlen(node->text) == node->text_len && (is_collection || !node->child));
	for (const struct doc_node *c = node->child; c; c = c->next, n_children++) {
		require(c->key && (node->kind == DOC_MAP || c->key[0] == '\0'));
		n += check_node(c, depth + is_collection);
	}
	require(n_children == node->n_children);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct schema_errors errors, unknown;
	struct arena a;
	struct doc_node *root;
	struct policy_object object;
	struct policy policy;
	struct err e;
	char *text = malloc(size ? size : 1); // exact size: the text has no terminator
	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	arena_init(&a, ARENA_BYTES_MAX);
	err_clear(&e);
	if (doc_from_json(&a, text, size, &root, &e) == 0)
		require(check_node(root, 0) <= DOC_NODES_MAX);
	else
		require(!root && e.kind != ERR_NONE && e.msg[0]);
	arena_reset(&a);
	schema_errors_init(&errors, NULL);
	schema_errors_init(&unknown, NULL);
	int rc = policy_object_decode(text, size, &a, &object, &policy, &errors, &unknown);
	require((rc == 0) == (errors.n == 0));
	require(object.namespace_name && object.name && object.uid && object.resource_version &&
	        object.generation >= 0);
	if (rc == 0)
		require(policy.name && strcmp(policy.name, object.name) == 0 && policy.n_signals >= 1 &&
		        policy.min_replicas <= policy.max_replicas && policy.max_replicas <= POLICY_REPLICAS_MAX);
	arena_done(&a);
	free(text);
	return 0;
}
