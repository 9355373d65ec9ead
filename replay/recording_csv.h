// SPDX-License-Identifier: Apache-2.0
// Reads a recording from a CSV file with a header.
#ifndef GPUSCALE_REPLAY_RECORDING_CSV_H
#define GPUSCALE_REPLAY_RECORDING_CSV_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct recording;

// Reads text[0..len), which `file` names in errors, into the zeroed *ret. The header names the columns; the time is in
// the column time, timestamp or t_s, as seconds or as RFC 3339. Returns 0, or -1 and *e ("FILE:LINE: ..."): ERR_INPUT
// (no header, no time column, a name twice, a wrong number of cells, a cell that is not a number, a time that does not
// grow, fewer than two rows), ERR_LIMIT, ERR_INTERNAL.
int recording_csv_parse(const char *text, size_t len, const char *file, struct recording *ret, struct err *e);

// A line without its end, cut into cells one after the other.
struct csv_line {
	const char *at, *end;
	bool done;
};
// The first line of text[0..len); *ret_next is the offset of the next one.
struct csv_line csv_line_at(const char *text, size_t len, size_t *ret_next);
// The next cell without spaces and quotes around it, in the text. Returns false after the last one.
bool csv_next_cell(struct csv_line *l, const char **ret_cell, size_t *ret_len);

#endif
