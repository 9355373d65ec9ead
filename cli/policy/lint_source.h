// SPDX-License-Identifier: Apache-2.0
// Checks the queries of a policy against their sources: whether they parse, return data, and how many series.
#ifndef GPUSCALE_CLI_POLICY_LINT_SOURCE_H
#define GPUSCALE_CLI_POLICY_LINT_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct connections;
struct err;
struct lint_query;
struct policy_signal;
struct schema_errors;

// Sends the query once and waits for the reply, at most for the timeout of the source. A query that the server
// rejects is added to `errors`, at the position in the reply; a query without data, with unusable data, or with
// several series where one is needed is added to `warnings`; any other to `notes`, with its result. Returns -1 and
// fills `e` if the server could not be queried.
int lint_source_ask(struct connections *c, struct lint_query *q, struct schema_errors *errors,
                    struct schema_errors *warnings, struct schema_errors *notes, struct err *e);
// Returns 1 if the query of the signal had data at `time_ms`, 0 if not. Otherwise like the function above, but a
// rejected query is not an error.
int lint_source_had_data(struct connections *c, const char *namespace_name, const struct policy_signal *signal,
                         int64_t time_ms, struct err *e);
// Writes to `out` (LINT_HINT_BYTES) why the query of the signal selects no series: a label has another name ("no series
// with exported_namespace; 5 with namespace"), or the metrics of the GPUs have the names of another exporter, which
// rules can record; else "", also after an error of the source. Sends at most two queries.
#define LINT_HINT_BYTES 192
const char *lint_source_hint(struct connections *c, const char *namespace_name, const struct policy_signal *signal,
                             char out[LINT_HINT_BYTES]);
// Returns whether a policy of the namespace may query the source that the signal names, and send this query; else
// writes the reason to *e, as promql_sources_admit. Sends no request.
bool lint_source_admits(const struct connections *c, const char *namespace_name, const struct policy_signal *signal,
                        size_t *ret_offset, struct err *e);

#define LINT_LABEL_BYTES 64
// Finds out whether a query has no result because a label exists under another name: exported_namespace where the
// scrape keeps the labels of the pod (honor_labels), namespace where it does not.
// Appends to `out` a query that counts the series of the first selector of `query` with such a label, under the other
// name; it has no result while there are series under the written name. Writes both names. Returns false when no
// selector has such a label, or when the query cannot be parsed.
bool lint_source_label_query(const char *query, struct buf *out, char ret_written[LINT_LABEL_BYTES],
                             char ret_other[LINT_LABEL_BYTES]);

#endif
