// SPDX-License-Identifier: Apache-2.0
// The one table of the fields of a PriceBook. Decoder, ranges, `check`, `explain` and the reference in docs/cost.md
// come from it.
#ifndef GPUSCALE_POLICIES_PRICE_PRICE_SCHEMA_H
#define GPUSCALE_POLICIES_PRICE_PRICE_SCHEMA_H

#include <stddef.h>

struct arena;
struct buf;
struct doc_node;
struct err;
struct price_book;
struct schema;
struct schema_errors;

#define PRICE_BOOK_KIND "PriceBook"

const struct schema *price_schema(void);
// Decodes `node` into `book`, which the caller has zeroed. Strings and lists of the book live in `a`; the document may
// be freed afterwards. Returns 0, or -1 with every fault appended to `errors`.
int price_book_decode(const struct doc_node *node, struct price_book *book, struct arena *a,
                      struct schema_errors *errors);
// Reads the only document of the file at `path` ("-": standard input, NULL: the shipped prices). Returns 0, or -1:
// errors are appended to `report` as `check` prints them and *e counts them, or *e is set when the file cannot be read
// (report is then unchanged).
int price_book_read(const char *path, struct arena *a, struct price_book *ret_book, struct buf *report, struct err *e);
// The text of the shipped prices, prices.yaml, as it was compiled in; not NUL-terminated.
const char *price_shipped_text(size_t *ret_len);

#endif
