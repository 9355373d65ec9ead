// SPDX-License-Identifier: Apache-2.0
// Prints tables like kubectl: left-aligned columns three blanks apart, ages in short form. On a terminal, a table that
// is too wide wraps its widest columns between words, then after '/' and '-', and at last moves its columns together:
// nothing is cut.
#ifndef GPUSCALE_CLI_TERM_TABLE_H
#define GPUSCALE_CLI_TERM_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define TABLE_COLUMNS_MAX 16
#define TABLE_CELL_BYTES  512 // what is longer is cut with "..."
#define TABLE_BYTES_MAX   ((size_t)256 * 1024 * 1024)

// The colour of a state, on a terminal.
enum table_tone { TONE_PLAIN, TONE_GOOD, TONE_WAITING, TONE_BAD, TONE__COUNT };
typedef enum table_tone table_tone_fn(const char *word);

struct table {
	char heads[TABLE_CELL_BYTES]; // names of the columns, each NUL-terminated
	const char *head[TABLE_COLUMNS_MAX];
	size_t n_columns;
	bool is_left_out[TABLE_COLUMNS_MAX];     // by column of the caller
	size_t n_given, n_cells_given;           // columns and cells of the caller, with those left out
	table_tone_fn *tones[TABLE_COLUMNS_MAX]; // of the columns with states; NULL: plain
	int gap;                                 // blanks between two columns; table_init() sets 3
	size_t widths[TABLE_COLUMNS_MAX]; // minimum widths; set them between table_init() and table_print() to align
	                                  // two tables
	// The longest part of each column that is not broken: between blanks, and with breaks after '/' and '-' too.
	size_t words[TABLE_COLUMNS_MAX], parts[TABLE_COLUMNS_MAX];
	size_t columns;   // of the terminal, 0: any width
	struct buf cells; // each NUL-terminated
	size_t n_cells;
};

// Starts a table with the columns of `head`, whose names are separated by tabs: at most TABLE_COLUMNS_MAX, shorter than
// TABLE_CELL_BYTES together. It must not be copied.
void table_init(struct table *t, const char *head);
// The same, for a table of -o table and -o wide. A column whose name starts with '+' is left out with its cells, unless
// `wide`; a wide table never wraps. The cells of a column whose name starts with '!', behind a '+', are states: `tone`
// returns the colour of each.
void table_init_wide(struct table *t, const char *head, bool wide, table_tone_fn *tone);
void table_done(struct table *t);
// Adds the next cells, as print_to() formats them: tabs of `fmt` separate them, "%s\t%d". A row is complete when every
// column has a cell. Non-printable characters are escaped.
void table_put(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Prints the head and the rows, indented by `indent` blanks. The table is empty afterwards and keeps its widths.
// Check out->failed and t->cells.failed at the end.
void table_print(struct table *t, struct buf *out, int indent, bool with_head);

// Prints the table as table_print() and frees it; `out` fails when the memory for the cells is exhausted.
void table_finish(struct table *t, struct buf *out, int indent, bool with_head);

// The text of a cell, as in table_put(t, "%s\t%s", table_or_none(name), table_age(since_ms, now_ms).text).
struct table_text {
	char text[64];
};
// Returns the text, or "<none>" for NULL and "".
const char *table_or_none(const char *text);
// Returns the number, or `unknown` unless `is_known`.
struct table_text table_number(bool is_known, int64_t number, const char *unknown);
// Returns the number with two decimals and its unit, "-" for NaN.
struct table_text table_amount(double number, const char *unit);
// Returns an age in kubectl's short form: "45s", "5m30s", "3h", "2d4h", "400d"; "<unknown>" if `since_ms` is 0, "0s"
// for the future. Kubernetes: apimachinery util/duration, HumanDuration.
struct table_text table_age(int64_t since_ms, int64_t now_ms);
// Returns the same, but "<none>" if `since_ms` is 0.
struct table_text table_since(int64_t since_ms, int64_t now_ms);

#endif
