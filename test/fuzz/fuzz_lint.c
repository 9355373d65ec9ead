// SPDX-License-Identifier: Apache-2.0
// Any text as a query: the lint reads it as words and must stay inside it, in the query and in the file around it.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/engine/policy.h"
#include "policies/lint/lint.h"

#define QUERY_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
	for (size_t i = 0; i < warnings.n; i++)
		if (strlen(warnings.items[i].message) == 0)
			abort();
	free(query);
	free(file);
	return 0;
}
