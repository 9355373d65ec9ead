// SPDX-License-Identifier: Apache-2.0
// Writes text as cells of CSV (RFC 4180).
#ifndef GPUSCALE_BASE_CSV_TEXT_H
#define GPUSCALE_BASE_CSV_TEXT_H

struct buf;

// Appends one cell of text, without a comma. A cell that contains a separator or a quote is quoted, with its quotes
// doubled; what base/text.h calls unsafe becomes visible, so that a cell is one line. A cell that a spreadsheet would
// evaluate as a formula (its first character is = + - @, also in their full-width forms, a tab or a line end) gets an
// apostrophe in front. Numbers are not text: append them with buf_printf or csv_put_number().
void csv_put_text(struct buf *out, const char *text);
// Appends a comma and a number with four decimals: "+Inf" when it is infinite, nothing when it is NaN.
void csv_put_number(struct buf *out, double v);

#endif
