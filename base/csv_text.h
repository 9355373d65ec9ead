// SPDX-License-Identifier: Apache-2.0
// Writes text as cells of CSV (RFC 4180), and reads lines of cells.
#ifndef GPUSCALE_BASE_CSV_TEXT_H
#define GPUSCALE_BASE_CSV_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

// Appends one cell of text, without a comma. A cell that contains a separator or a quote is quoted, with its quotes
// doubled; what base/text.h calls unsafe becomes visible, so that a cell is one line. A cell that a spreadsheet would
// evaluate as a formula (its first character is = + - @, also in their full-width forms, a tab or a line end) gets an
// apostrophe in front. Numbers are not text: append them with buf_printf or csv_put_number().
void csv_put_text(struct buf *out, const char *text);
// Appends a comma and a number with four decimals: "+Inf" when it is infinite, nothing when it is NaN.
void csv_put_number(struct buf *out, double v);

// A line without its end, cut into cells one after the other. Cells contain no commas.
struct csv_line {
	const char *at, *end;
	bool done;
	bool keeps_quotes; // around its cells
};
// The first line of text[0..len); *ret_next is the offset of the next one.
struct csv_line csv_line_at(const char *text, size_t len, size_t *ret_next);
// The next cell without spaces and quotes around it, in the text. Returns false after the last one.
bool csv_next_cell(struct csv_line *l, const char **ret_cell, size_t *ret_len);
// The cell number `column`, from 0. Returns false if the line has fewer.
bool csv_cell_at(struct csv_line l, int column, const char **ret_cell, size_t *ret_len);
// The number of the first cell with this text, from 0; -1 if there is none.
int csv_find_column(struct csv_line header, const char *name);

#endif
