// SPDX-License-Identifier: Apache-2.0
// Arbitrary documents as a file of sources. Beyond "does not crash": what is accepted is within the ceilings, and is
// taken by the client or refused by it with a reason.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "promql/promql_source_file.h"

#define ARENA_BYTES_MAX ((size_t)16 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct doc_file doc;
	arena_init(&a, ARENA_BYTES_MAX);
	struct schema_errors *errors = malloc(sizeof *errors);
	require(errors != NULL);
	if (doc_parse_yaml(&a, "f", (const char *)data, size, &doc, NULL) == 0)
		for (size_t i = 0; i < doc.n_roots; i++) {
			struct promql_source_options *list;
			size_t n;
			schema_errors_init(errors, "f");
			int rc = promql_source_decode(doc.roots[i], "dir/f", &a, errors, &list, &n);
			require((rc == 0) == (errors->n == 0));
			for (size_t k = 0; rc == 0 && k < n; k++) {
				require(list[k].name && list[k].query.url);
				require(list[k].max_in_flight >= 1 && list[k].max_in_flight <= PROMQL_CONCURRENCY_MAX);
				require(list[k].query.timeout_ms >= 1 && list[k].query.kind < PROMQL_KIND__COUNT);
				require(!list[k].query.bearer_token && !strchr(list[k].query.url, '@'));
			}
		}
	free(errors);
	arena_done(&a);
	return 0;
}
