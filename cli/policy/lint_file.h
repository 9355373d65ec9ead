// SPDX-License-Identifier: Apache-2.0
// Reports the findings of `gpuscale check` in one file of policies: the warnings of policies/lint, and the replies of
// the sources of the signals.
#ifndef GPUSCALE_CLI_POLICY_LINT_FILE_H
#define GPUSCALE_CLI_POLICY_LINT_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct connections;
struct err;

struct lint_totals {
	size_t errors, warnings; // errors: impossible targets and queries that Prometheus or a source refuses
	size_t n_invalid;        // policies that the decoder accepts and that have such errors
	bool has_note;           // a name of dcgm-exporter 4.9 was mentioned: once per run is enough
};

// Reads the file at `path` ("-" is standard input, which must be seekable) and appends the findings about its policies
// to `out`, as "file:line:col: warning: path: message" with the line of the query and a caret. With
// `sources` (may be NULL), a signal with an unknown source is an error; with `ask_source`, each query is also sent.
// dialect: of the queries (enum promql_kind); PROMQL_KIND_AUTO: that of the source, else Prometheus. Of policies with
// other errors, the queries are checked without a source. Adds to `totals`. Returns -1 and fills `e` if the file cannot
// be read again or the source cannot be queried.
int lint_file(const char *path, struct connections *source, bool ask_source, int dialect, struct buf *out,
              struct lint_totals *totals, struct err *e);

#endif
