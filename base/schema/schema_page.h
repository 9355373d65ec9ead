// SPDX-License-Identifier: Apache-2.0
// The reference page of a schema in Markdown, from the table alone: a section per object, a row per field.
#ifndef GPUSCALE_BASE_SCHEMA_SCHEMA_PAGE_H
#define GPUSCALE_BASE_SCHEMA_SCHEMA_PAGE_H

struct buf;
struct schema;

// Appends the page: "## path" for the root and each nested object, in the order of the table. Look at out->failed at
// the end.
void schema_page(const struct schema *root, struct buf *out);

#endif
