// SPDX-License-Identifier: Apache-2.0
// Other autoscalers' objects: whatever is in a file, what convert prints of each object is one document, which says
// what the conversion holds, and of which `check` knows what it thinks.
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/convert/convert.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"

#define INPUT_MAX   (16 * 1024)
#define OBJECTS_MAX 8

static void same(const struct doc_node *map, const char *key, const char *text)
{
	const struct doc_node *node = doc_get(map, key);
	if (!text)
		assert(!node);
	else
		assert(node && node->kind == DOC_SCALAR && strcmp(node->text, text) == 0);
}

// What ends a query of several lines may go.
static void same_query(const struct doc_node *node, const char *text)
{
	assert(node && node->kind == DOC_SCALAR && strncmp(text, node->text, node->text_len) == 0);
	assert(strspn(text + node->text_len, " \n") == strlen(text + node->text_len));
}

static void check_policy(struct arena *a, const struct doc_node *root)
{
	struct schema_errors *errors = malloc(sizeof *errors);
	struct policy_document document = {0};
	assert(errors);
	schema_errors_init(errors, "result");
	int rc = policy_decode(root, &document, a, errors);
	assert((rc == 0) == (errors->n == 0));
	free(errors);
}

static void check_result(struct arena *a, const struct buf *out, const struct conversion *c)
{
	struct doc_file result;
	struct err e;
	if (doc_parse_yaml(a, "result", buf_str(out), out->len, &result, &e) < 0) {
		assert(e.kind == ERR_LIMIT || e.kind == ERR_INTERNAL);
		return;
	}
	assert(result.n_roots == 1);
	const struct doc_node *root = result.roots[0], *spec = doc_get(root, "spec"),
	                      *metadata = doc_get(root, "metadata");
	const struct doc_node *signals = doc_get(spec, "signals");
	assert(root->n_children == 4 && spec && signals);
	if (!metadata || metadata->kind == DOC_NULL)
		assert(!c->name && !c->namespace_name);
	same(metadata, "name", c->name);
	same(metadata, "namespace", c->namespace_name);
	same(doc_get(spec, "scaleTargetRef"), "name", c->target_name);
	same(spec, "minReplicas", c->min_replicas);
	same(spec, "maxReplicas", c->max_replicas);
	assert(signals->n_children == c->n_signals);
	const struct doc_node *s = signals->child;
	for (size_t i = 0; i < c->n_signals; i++, s = s->next) {
		const struct conversion_signal *from = &c->signals[i];
		same(s, "name", from->name);
		same_query(doc_get(s, from->formula ? "formula" : "query"), from->formula ? from->formula
		                                                            : from->query ? from->query
		                                                                          : "");
		if (from->is_input)
			assert(!doc_get(s, "target") && !doc_get(s, "watermarks"));
		else if (from->target_type && strcmp(from->target_type, "Replicas") == 0)
			same(doc_get(s, "target"), "value", NULL);
		else if (from->target_type)
			same(doc_get(s, "target"), "value", from->target_value ? from->target_value : "");
		else
			same(doc_get(s, "watermarks"), "high", from->high ? from->high : "");
	}
	check_policy(a, root);
}

static const char *source_of(void *arg, const struct convert_server *server, const char **ret_why)
{
	if (server->authentication && server->modes[0] == 'x')
		*ret_why = "refused";
	return strstr(server->url, "//") && !*ret_why ? "default" : NULL;
}

// A conversion that is used at once: what was lost is named, and the rest is one document.
static void convert_alive(struct arena *a, const struct doc_node *root, const struct doc_node *list)
{
	static const struct convert_live live = {.source_of = source_of};
	struct conversion *c = arena_alloc(a, sizeof *c);
	struct err e;
	struct buf out;
	assert(c);
	if (convert_object(c, a, root, list, &live, &e) < 0)
		return;
	assert(c->is_incomplete == (c->lost && c->lost[0]));
	buf_init(&out, 16 * 1024 * 1024);
	convert_write(&out, c);
	if (!c->is_incomplete)
		check_result(a, &out, c);
	buf_done(&out);
}

static void convert(struct arena *a, const struct doc_node *root, const struct doc_node *list, size_t *left)
{
	const struct doc_node *items = doc_get(root, "items");
	struct err e;
	for (const struct doc_node *item = items ? items->child : NULL; item; item = item->next)
		convert(a, item, root, left);
	if (items || *left == 0)
		return;
	--*left;
	struct conversion *c = arena_alloc(a, sizeof *c);
	assert(c);
	convert_alive(a, root, list);
	if (convert_object(c, a, root, list, NULL, &e) < 0) {
		assert((e.kind == ERR_UNSUPPORTED || e.kind == ERR_INPUT || e.kind == ERR_LIMIT) && e.msg[0]);
		return;
	}
	struct buf out;
	buf_init(&out, 16 * 1024 * 1024);
	convert_write(&out, c);
	assert(!out.failed);
	for (size_t i = 0; i < out.len; i++)
		assert((unsigned char)out.data[i] >= ' ' || out.data[i] == '\n');
	check_result(a, &out, c);
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct doc_file file;
	size_t left = OBJECTS_MAX;
	arena_init(&a, 64 * 1024 * 1024);
	if (size <= INPUT_MAX && doc_parse_yaml_anchors(&a, "fuzz", (const char *)data, size, &file, NULL) == 0)
		for (size_t i = 0; i < file.n_roots; i++)
			convert(&a, file.roots[i], NULL, &left);
	arena_done(&a);
	return 0;
}
