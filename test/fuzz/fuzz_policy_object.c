// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as an object of the API server. Beyond "does not crash": every answer is either a policy within its
// bounds or at least one fault, and the object's identity is always readable, also when something else in the object
// keeps it from being a tree.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "controller/source/policy_object.h"
#include "policies/schema/binding.h"

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

static void check_object(const struct policy_object *o)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
	require(o->identity.generation >= 0 && o->identity.created_ms >= 0);
	require(strspn(o->name, allowed) == strlen(o->name) && strlen(o->name) <= POLICY_OBJECT_NAME_MAX);
	require(strspn(o->namespace_name, allowed) == strlen(o->namespace_name) &&
	        strlen(o->namespace_name) <= POLICY_OBJECT_NAMESPACE_MAX);
}

// What is read by itself is what stands in the tree, or nothing.
static bool is_same_text(const char *alone, const char *of_tree)
{
	return alone[0] == '\0' || strcmp(alone, of_tree) == 0;
}

static bool is_same_number(int64_t alone, int64_t of_tree)
{
	return alone == 0 || alone == of_tree;
}

// Decodes the same object with a string that our JSON reader rejects.
static void check_broken_twin(const char *text, size_t size, const struct policy_object *whole)
{
	static const char tail[] = ",\"x\":\"\\u0000\"}";
	struct schema_errors errors, unknown;
	struct arena a;
	struct policy_object object;
	struct policy_document document;
	while (size > 0 && text[size - 1] != '}')
		size--;
	char *twin = size > 0 ? malloc(size + sizeof tail) : NULL;
	if (!twin)
		return;
	memcpy(twin, text, size - 1);
	memcpy(twin + size - 1, tail, sizeof tail - 1);
	arena_init(&a, ARENA_BYTES_MAX);
	schema_errors_init(&errors, NULL);
	schema_errors_init(&unknown, NULL);
	require(policy_object_decode(twin, size - 1 + sizeof tail - 1, &a, &object, &document, &errors, &unknown) < 0 &&
	        errors.n > 0);
	check_object(&object);
	require(is_same_text(object.name, whole->name) && is_same_text(object.namespace_name, whole->namespace_name) &&
	        is_same_text(object.identity.uid, whole->identity.uid));
	require(is_same_number(object.identity.generation, whole->identity.generation) &&
	        is_same_number(object.identity.created_ms, whole->identity.created_ms));
	arena_done(&a);
	free(twin);
}

// With little memory a good object is a fault, at whatever place memory ends.
static void check_little_memory(const char *text, size_t size)
{
	for (size_t room = 64; room < 8192; room *= 16) {
		struct schema_errors errors, unknown;
		struct arena a;
		struct policy_object object;
		struct policy_document document;
		arena_init(&a, room);
		schema_errors_init(&errors, NULL);
		schema_errors_init(&unknown, NULL);
		int rc = policy_object_decode(text, size, &a, &object, &document, &errors, &unknown);
		require((rc == 0) == (errors.n == 0));
		check_object(&object);
		arena_done(&a);
		if (rc == 0)
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct schema_errors errors, unknown;
	struct arena a;
	struct doc_node *root;
	struct policy_object object;
	struct policy_document document;
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
	int rc = policy_object_decode(text, size, &a, &object, &document, &errors, &unknown);
	require((rc == 0) == (errors.n == 0));
	check_object(&object);
	if (rc == 0) {
		require(document.policy.name && strcmp(document.policy.name, object.name) == 0 &&
		        document.policy.n_signals >= 1 &&
		        document.policy.min_replicas <= document.policy.max_replicas &&
		        document.policy.max_replicas <= POLICY_REPLICAS_MAX);
		check_broken_twin(text, size, &object);
		check_little_memory(text, size);
	}
	arena_done(&a);
	free(text);
	return 0;
}
