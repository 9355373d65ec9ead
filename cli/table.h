// SPDX-License-Identifier: Apache-2.0
// Tables as kubectl prints them: left-aligned columns three blanks apart, ages in its short form.
#ifndef GPUSCALE_CLI_TABLE_H
#define GPUSCALE_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define TABLE_COLUMNS_MAX 16
#define TABLE_CELL_BYTES  512 // what is longer is cut with "..."
#define TABLE_BYTES_MAX   ((size_t)256 * 1024 * 1024)
#define TABLE_AGE_BYTES   24

struct table {
	const char *const *head; // NULL-terminated; the caller's
	size_t n_columns;
	size_t widths[TABLE_COLUMNS_MAX]; // at least; set it between table_init and table_print to align with another
	struct buf cells;                 // each with its NUL
	size_t n_cells;
};

void table_init(struct table *t, const char *const *head);
void table_done(struct table *t);
// The next cell of the row; a row is full when every column has one. What is not printable becomes visible.
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// The rows (and the head above them), `indent` blanks in; widths are as they were used. They go: the table is empty
// again, and keeps its widths. Look at out->failed and t->cells.failed at the end.
void table_print(struct table *t, struct buf *out, int indent, bool with_head);

// "45s", "5m30s", "3h", "2d4h", "400d": kubectl's short form; "<unknown>" for since_ms 0, "0s" for the future.
// Kubernetes: apimachinery util/duration, HumanDuration.
const char *table_age(char out[TABLE_AGE_BYTES], int64_t since_ms, int64_t now_ms);

#endif
