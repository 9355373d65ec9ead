// SPDX-License-Identifier: Apache-2.0
// Output of `explain` for a field, laid out as `kubectl explain` does, and the reference page of a schema: both from
// the table alone.
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

// Appends the reference page in Markdown, a section per object and a row per field: "## path" for the root and each
// nested object, in the order of the table. Look at out->failed at the end.
void schema_page(const struct schema *root, struct buf *out);

#endif
