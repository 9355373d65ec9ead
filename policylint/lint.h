// SPDX-License-Identifier: Apache-2.0
// Warnings about policies that are valid and probably wrong: the mistakes that are made again and again with the
// metrics of GPUs, and settings that work against each other. Each names the place, what is wrong, and the fix.
#ifndef GPUSCALE_POLICYLINT_LINT_H
#define GPUSCALE_POLICYLINT_LINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct connections;
struct doc_node;
struct err;
struct policy;
struct policy_signal;
struct schema_errors;

#define LINT_SCRAPE_MS 15000 // what is assumed of the metrics behind a query

// Looks at one policy that was decoded without errors from `root`. text is the file it was read from (NUL-terminated;
// NULL when not at hand: then places inside long queries are those of their first line).
void lint_policy(const struct policy *policy, const struct doc_node *root, const char *text,
                 struct schema_errors *warnings);

struct lint_totals {
	size_t errors, warnings; // errors: queries that a source refuses
};

// Reads the file at path ("-": standard input, which must be one that can be read from its beginning again) and appends
// what there is to say about its valid policies to `out`, as "file:line:col: warning: path: message" with the line of
// the query and a caret. With sources (else NULL) a signal that names none of them is an error, and with ask_source
// each query is asked, too. Adds to *totals. -1 and *e when the file cannot be read any more or the source cannot be
// asked.
int lint_file(const char *path, struct connections *source, bool ask_source, struct buf *out,
              struct lint_totals *totals, struct err *e);

// ---- private to lint*.c ----

struct lint_query {
	const struct policy_signal *signal;
	const struct doc_node *node; // of the query
	const char *text;            // of the file, or NULL
	const char *path;            // "spec.signals[0].query"
	struct schema_errors *warnings;
	// found by lint_query_check
	size_t n_metrics, n_busy; // metrics named, and those of them that only tell that something runs
};
// The rules about one query.
void lint_query_check(struct lint_query *q);
// Adds a warning about query[offset..offset + len), placed in the file.
void lint_query_warn(const struct lint_query *q, size_t offset, size_t len, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));
// Line and column (from 1) in the file of offset in the scalar `node` as decoded; the line's own text in the decoded
// scalar is [*ret_from, *ret_to).
void lint_place(const char *text, const struct doc_node *node, size_t offset, int *ret_line, int *ret_col);

#endif
