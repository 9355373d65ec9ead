// SPDX-License-Identifier: Apache-2.0
// YAML files. Beyond "does not crash": what is accepted is a tree within its ceilings whose every position lies in the
// text, and what is refused says where and is one printable line.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/schema/doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

static size_t check_node(const struct doc_node *node, int depth, int max_line, size_t text_len)
{
	size_t n = 1, n_children = 0;
	require(depth <= DOC_DEPTH_MAX);
	require(node->line >= 1 && node->line <= max_line && node->col >= 1 && (size_t)node->col <= text_len + 1);
	require(node->text && strlen(node->text) <= node->text_len && node->text[node->text_len] == '\0');
	require(node->kind == DOC_SCALAR || node->text_len == 0);
	bool is_collection = node->kind == DOC_MAP || node->kind == DOC_SEQ;
	require(is_collection || !node->child);
	for (const struct doc_node *c = node->child; c; c = c->next) {
		require(c->key && (node->kind == DOC_MAP || c->key[0] == '\0'));
		require(node->kind != DOC_MAP || doc_get(node, c->key) == c); // no duplicates
		n += check_node(c, depth + is_collection, max_line, text_len);
		n_children++;
	}
	require(n_children == node->n_children);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 16384) // doc_get above is quadratic; the ceilings have tests of their own
		return 0;
	char *text = malloc(size ? size : 1); // exact size: the text has no terminator
	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	struct arena a;
	struct doc_file file;
	struct err e;
	arena_init(&a, (size_t)64 * 1024 * 1024);
	err_clear(&e);
	int max_line = 1;
	for (size_t i = 0; i < size; i++) // \n, \r, and the last byte of U+0085, U+2028, U+2029
		max_line += strchr("\n\r\x85\xa8\xa9", text[i]) != NULL;
	if (doc_parse_yaml(&a, "fuzz", text, size, &file, &e) == 0) {
		size_t n = 0;
		for (size_t i = 0; i < file.n_roots; i++) {
			require(file.roots[i]->kind != DOC_NULL && !file.roots[i]->next &&
			        file.roots[i]->key[0] == '\0');
			n += check_node(file.roots[i], 0, max_line, size);
		}
		require(n <= DOC_NODES_MAX && file.n_roots <= DOC_DOCUMENTS_MAX);
	} else {
		require(file.n_roots == 0 && e.kind != ERR_NONE && strncmp(e.msg, "fuzz:", 5) == 0);
		for (const char *p = e.msg; *p; p++)
			require((unsigned char)*p >= 0x20 && *p != 0x7f);
	}
	arena_done(&a);
	free(text);
	return 0;
}
