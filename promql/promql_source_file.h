// SPDX-License-Identifier: Apache-2.0
// Files of kind Sources: the names and options of Prometheus-compatible servers.
#ifndef GPUSCALE_PROMQL_PROMQL_SOURCE_FILE_H
#define GPUSCALE_PROMQL_PROMQL_SOURCE_FILE_H

#include "promql/promql_source.h"

struct arena;
struct buf;
struct doc_node;
struct err;
struct schema;
struct schema_errors;

#define PROMQL_SOURCES_API_VERSION "gpuscale.dev/v1alpha1"
#define PROMQL_SOURCES_KIND        "Sources"

// The table of the format.
extern const struct schema promql_source_schema;
// Decodes one document; everything is allocated in `a`. File names are relative to the folder of `file` (the working
// directory when it has none). Returns 0, or -1 when an error was reported. Does not read secrets.
int promql_source_decode(const struct doc_node *root, const char *file, struct arena *a, struct schema_errors *errors,
                         struct promql_source_options **ret_list, size_t *ret_n);
// Reads the only document of kind Sources in the file at path ("-": standard input). Returns 0, or -1: errors are
// appended to report as `check` prints them, or *e is set when the file cannot be read (report is then unchanged).
int promql_source_read(const char *path, struct arena *a, struct promql_source_options **ret_list, size_t *ret_n,
                       struct buf *report, struct err *e);

#endif
