// SPDX-License-Identifier: Apache-2.0
// JSON from an API server as a document tree, so that one decoder serves files and objects.

#include "base/arena.h"
#include "base/base.h"
#include "base/json/json_read.h"
#include "base/schema/doc.h"

#define KEY_SHOWN_BYTES 64

struct converter {
	struct arena *arena;
	size_t n_nodes, depth;
	struct err *e;
};

static int no_memory(const struct converter *c)
{
	return err_set(c->e, ERR_LIMIT, "JSON: needs more than the %zu bytes set aside for it (%zu used)",
	               c->arena->max_bytes, c->arena->used_bytes);
}

static int set_text(struct converter *c, struct doc_node *node, const char *text)
{
	node->kind = DOC_SCALAR;
	node->text_len = strlen(text);
	node->text = arena_strndup(c->arena, text, node->text_len);
	return node->text ? 0 : no_memory(c);
}

static int check_duplicates(struct converter *c, const struct doc_node *map)
{
	const struct doc_node *first, *again;
	char shown[KEY_SHOWN_BYTES];
	if (doc_find_twice(map, &first, &again, c->e) < 0)
		return err_wrap(c->e, "JSON");
	if (!again)
		return 0;
	text_show(shown, sizeof shown, again->key, strlen(again->key));
	return err_set(c->e, ERR_INPUT, "JSON: member \"%s\" is here a second time: remove one of them", shown);
}

static int convert(struct converter *c, const cJSON *item, struct doc_node *node);

static int convert_children(struct converter *c, const cJSON *item, struct doc_node *node)
{
	if (c->depth == DOC_DEPTH_MAX)
		return err_set(c->e, ERR_LIMIT, "JSON: nested %zu deep, the ceiling is %d: flatten it", c->depth + 1,
		               DOC_DEPTH_MAX);
	c->depth++;
	struct doc_node **slot = &node->child;
	for (const cJSON *i = item->child; i; i = i->next) {
		struct doc_node *child = arena_alloc(c->arena, sizeof *child);
		if (!child)
			return no_memory(c);
		child->text = child->key = "";
		if (node->kind == DOC_MAP && !(child->key = arena_strdup(c->arena, i->string)))
			return no_memory(c);
		*slot = child;
		slot = &child->next;
		node->n_children++;
		if (convert(c, i, child) < 0)
			return -1;
	}
	c->depth--;
	return node->kind == DOC_MAP ? check_duplicates(c, node) : 0;
}

// Numbers are printed anew: 1.0 and 1e0 are the whole number 1, as to the API server's validation.
static int convert(struct converter *c, const cJSON *item, struct doc_node *node)
{
	if (++c->n_nodes > DOC_NODES_MAX)
		return err_set(c->e, ERR_LIMIT, "JSON: %zu values up to here, the ceiling is %d: split it", c->n_nodes,
		               DOC_NODES_MAX);
	if (cJSON_IsNull(item))
		return 0;
	if (cJSON_IsBool(item))
		return set_text(c, node, cJSON_IsTrue(item) ? "true" : "false");
	if (cJSON_IsString(item)) {
		node->quoted = true;
		return set_text(c, node, item->valuestring);
	}
	if (cJSON_IsNumber(item)) {
		char text[NUM_TEXT_BYTES];
		num_format_f64(text, item->valuedouble);
		return set_text(c, node, text);
	}
	node->kind = cJSON_IsArray(item) ? DOC_SEQ : DOC_MAP;
	return convert_children(c, item, node);
}

int doc_from_json(struct arena *a, const char *text, size_t len, struct doc_node **ret_root, struct err *e)
{
	*ret_root = NULL;
	if (len > DOC_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "JSON of %zu bytes, the ceiling is %d: split it", len, DOC_BYTES_MAX);
	cJSON *tree = json_read(text, len, e);
	if (!tree)
		return -1;
	struct converter c = {.arena = a, .e = e};
	struct doc_node *root = arena_alloc(a, sizeof *root);
	int rc = root ? 0 : no_memory(&c);
	if (root) {
		root->text = root->key = "";
		rc = convert(&c, tree, root);
	}
	cJSON_Delete(tree);
	if (rc == 0)
		*ret_root = root;
	return rc;
}
