// SPDX-License-Identifier: Apache-2.0
// Output of `explain` for a field, from the table alone; laid out as `kubectl explain` does.
#ifndef GPUSCALE_BASE_SCHEMA_SCHEMA_EXPLAIN_H
#define GPUSCALE_BASE_SCHEMA_SCHEMA_EXPLAIN_H

struct buf;
struct err;
struct schema;

// Appends to out what is known of the field at `path` ("spec.signals.window", "spec.signals[].window", with or without
// the kind in front; "" or the kind alone = the whole object): type, default, range, choices, whether it is required,
// its description, and its own fields. Lines are wrapped at 80 columns. -1 and ERR_NOT_FOUND with a did-you-mean when
// there is no such field (out is unchanged), ERR_LIMIT when out is full.
int schema_explain(const struct schema *root, const char *path, struct buf *out, struct err *e);

#endif
