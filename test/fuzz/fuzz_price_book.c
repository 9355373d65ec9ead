// SPDX-License-Identifier: Apache-2.0
// Arbitrary documents as a price book. Beyond "does not crash": what is accepted is within the ceilings, and every name
// of a model is found at a price of at most PRICE_MAX.
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/price/price_book.h"

#define ARENA_BYTES_MAX ((size_t)16 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_book(const struct price_book *b)
{
	require(strlen(b->currency) == 3 && b->n_models >= 1 && b->n_models <= PRICE_BOOK_MODELS_MAX);
	for (size_t i = 0; i < b->n_models; i++)
		for (size_t k = 0; k < b->models[i].n_names; k++) {
			const char *name = b->models[i].names[k];
			bool is_priced;
			int64_t micro = price_book_micro(b, name, NULL, &is_priced);
			require(price_book_find(b, name) == &b->models[i]);
			require(is_priced && micro >= 0 && micro <= (int64_t)PRICE_MAX * 1000000);
			for (size_t d = 0; d < b->n_discounts; d++)
				require(price_book_micro(b, name, &b->discounts[d], &is_priced) <= micro);
		}
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
			struct price_book book = {0};
			schema_errors_init(errors, "f");
			int rc = price_book_decode(doc.roots[i], &book, &a, errors);
			require((rc == 0) == (errors->n == 0));
			if (rc == 0)
				check_book(&book);
		}
	free(errors);
	arena_done(&a);
	return 0;
}
