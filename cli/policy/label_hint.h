// SPDX-License-Identifier: Apache-2.0
// Finds out whether a query has no result because a label exists under another name: exported_namespace where the
// scrape keeps the labels of the pod (honor_labels), namespace where it does not.
#ifndef GPUSCALE_CLI_POLICY_LABEL_HINT_H
#define GPUSCALE_CLI_POLICY_LABEL_HINT_H

#include <stdbool.h>

struct buf;

#define LABEL_HINT_BYTES 64

// Appends to `out` a query that counts the series of the first selector of `query` with such a label, under the other
// name; it has no result while there are series under the written name. Writes both names. Returns false when no
// selector has such a label, or when the query cannot be parsed.
bool label_hint_query(const char *query, struct buf *out, char ret_written[LABEL_HINT_BYTES],
                      char ret_other[LABEL_HINT_BYTES]);

#endif
