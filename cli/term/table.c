// SPDX-License-Identifier: Apache-2.0
#include "cli/term/table.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/print.h"
#include "base/text.h"

#define GAP 3

static size_t width_of(const char *s)
{
	size_t n = 0;
	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80; // one per character
	return n;
}

static void widen(struct table *t, size_t column, const char *cell)
{
	size_t width = width_of(cell);
	if (t->widths[column] < width)
		t->widths[column] = width;
}

void table_init(struct table *t, const char *const *head)
{
	*t = (struct table){.head = head};
	buf_init(&t->cells, TABLE_BYTES_MAX);
	for (; head[t->n_columns]; t->n_columns++) {
		assert(t->n_columns < TABLE_COLUMNS_MAX);
		widen(t, t->n_columns, head[t->n_columns]);
	}
}

void table_done(struct table *t)
{
	buf_done(&t->cells);
}

void table_cell(struct table *t, const char *fmt, ...)
{
	char text[2 * TABLE_CELL_BYTES], shown[TABLE_CELL_BYTES];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	size_t len = text_show(shown, sizeof shown, text, strlen(text));
	buf_put(&t->cells, shown, len + 1);
	widen(t, t->n_cells++ % t->n_columns, shown);
}

// The last cell of a row is not padded.
static void put_cell(const struct table *t, struct buf *out, size_t column, const char *cell)
{
	bool is_last = column + 1 == t->n_columns;
	print_to(out, "%-*s", is_last ? 0 : (int)t->widths[column] + GAP, cell);
	if (is_last)
		buf_putc(out, '\n');
}

void table_print(struct table *t, struct buf *out, int indent, bool with_head)
{
	const char *cell = buf_str(&t->cells);
	assert(t->n_cells % t->n_columns == 0 || t->cells.failed);
	for (size_t i = 0; with_head && i < t->n_columns; i++) {
		if (i == 0)
			print_to(out, "%*s", indent, "");
		put_cell(t, out, i, t->head[i]);
	}
	for (size_t i = 0; i < t->n_cells && !t->cells.failed; i++) {
		if (i % t->n_columns == 0)
			print_to(out, "%*s", indent, "");
		put_cell(t, out, i % t->n_columns, cell);
		cell += strlen(cell) + 1;
	}
	if (!t->cells.failed)
		buf_reset(&t->cells);
	t->n_cells = 0;
}

const char *table_age(char out[TABLE_AGE_BYTES], int64_t since_ms, int64_t now_ms)
{
	static const struct {
		int64_t below_s, unit_s;
		const char *unit;
		int64_t rest_s; // unit of the second number; 0: no second number
		const char *rest;
	} rows[] = {
	        {120, 1, "s", 0, ""},
	        {600, 60, "m", 1, "s"},
	        {3 * 3600, 60, "m", 0, ""},
	        {8 * 3600, 3600, "h", 60, "m"},
	        {48 * 3600, 3600, "h", 0, ""},
	        {8 * 86400, 86400, "d", 3600, "h"},
	        {2 * 365 * 86400, 86400, "d", 0, ""},
	        {8LL * 365 * 86400, 365 * 86400, "y", 86400, "d"},
	        {INT64_MAX, 365 * 86400, "y", 0, ""},
	};
	int64_t seconds = now_ms > since_ms ? (now_ms - since_ms) / 1000 : 0;
	size_t i = 0;
	if (since_ms == 0) {
		snprintf(out, TABLE_AGE_BYTES, "<unknown>");
		return out;
	}
	while (seconds >= rows[i].below_s)
		i++;
	int n = snprintf(out, TABLE_AGE_BYTES, "%lld%s", (long long)(seconds / rows[i].unit_s), rows[i].unit);
	int64_t rest = rows[i].rest_s ? seconds % rows[i].unit_s / rows[i].rest_s : 0;
	if (rest)
		snprintf(out + n, TABLE_AGE_BYTES - (size_t)n, "%lld%s", (long long)rest, rows[i].rest);
	return out;
}
