// SPDX-License-Identifier: Apache-2.0
// Any text as a query: the lint reads it as words and as PromQL, and must stay inside it, in the query and in the file
// around it.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/engine/policy.h"
#include "policies/lint/lint.h"
#include "promql/promql.h"
#include "promql/syntax.h"

#define QUERY_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require_messages(const struct schema_errors *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (strlen(list->items[i].message) == 0)
			abort();
}

static int kind_of(void *arg, const char *source)
{
	return source ? PROMQL_KIND_AUTO : *(int *)arg;
}

// The query as that of the only signal of a document. A query that Prometheus can read has bounds in their order.
static void check_grammar(const struct doc_node *query, const char *text, int kind)
{
	static struct schema_errors errors, odd;
	struct doc_node key = *query;
	key.key = "query";
	struct doc_node signal = {.kind = DOC_MAP, .child = &key, .n_children = 1};
	struct doc_node signals = {.kind = DOC_SEQ, .key = "signals", .child = &signal, .n_children = 1};
	struct doc_node spec = {.kind = DOC_MAP, .key = "spec", .child = &signals, .n_children = 1};
	struct doc_node root = {.kind = DOC_MAP, .child = &spec, .n_children = 1};
	bool bad[POLICY_SIGNALS_MAX] = {false};
	struct promql_value v;
	schema_errors_init(&errors, "fuzz");
	schema_errors_init(&odd, "fuzz");
	lint_queries(&root, text, kind_of, &kind, &errors, &odd, bad);
	if (bad[0] != (errors.n > 0))
		abort();
	require_messages(&errors);
	require_messages(&odd);
	if (lint_query_value(query->text, &v) && !(v.low <= v.high))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct schema_errors warnings;
	if (size < 2 || size > QUERY_MAX)
		return 0;
	char *query = malloc(size), *file = malloc(size + 16); // exact sizes: a byte too far is seen
	if (!query || !file)
		abort();
	memcpy(query, data + 1, size - 1);
	query[size - 1] = '\0';
	size_t len = strlen(query);
	memcpy(file, "query:\n  |", 10);
	memcpy(file + 10, query, len + 1);
	struct doc_node node = {.kind = DOC_SCALAR,
	                        .line = 2,
	                        .col = 3 + data[0] % 4,
	                        .text = query,
	                        .text_len = len,
	                        .quoted = data[0] & 8};
	struct policy_signal signal = {.name = "q", .query = query};
	signal.target.set = !(data[0] & 16);
	signal.watermarks.set = data[0] & 16;
	signal.target.value = data[0] & 32 ? 70 : 0.7;
	signal.watermarks.high = signal.target.value;
	struct lint_query q = {.signal = &signal,
	                       .node = &node,
	                       .text = data[0] & 64 ? file : NULL,
	                       .path = "spec.signals[0].query",
	                       .warnings = &warnings};
	schema_errors_init(&warnings, "fuzz");
	lint_query_check(&q);
	require_messages(&warnings);
	check_grammar(&node, q.text, data[0] & 128 ? PROMQL_KIND_VICTORIAMETRICS : PROMQL_KIND_PROMETHEUS);
	free(query);
	free(file);
	return 0;
}
