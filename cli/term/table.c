// SPDX-License-Identifier: Apache-2.0
#include "cli/term/table.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/print.h"
#include "base/text.h"

static bool starts_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

static void keep_larger(size_t *most, size_t n)
{
	*most = *most < n ? n : *most;
}

static void widen(struct table *t, size_t column, const char *cell)
{
	size_t width = 0, word = 0, part = 0;
	for (; *cell; cell++) {
		size_t n = starts_character(*cell);
		width += n;
		word = *cell == ' ' ? 0 : word + n;
		part = *cell == ' ' ? 0 : part + n;
		keep_larger(&t->words[column], word);
		keep_larger(&t->parts[column], part);
		if (*cell == '/' || *cell == '-')
			part = 0;
	}
	keep_larger(&t->widths[column], width);
}

void table_init(struct table *t, const char *head)
{
	table_init_wide(t, head, false, NULL);
}

void table_init_wide(struct table *t, const char *head, bool wide, table_tone_fn *tone)
{
	assert(strlen(head) < sizeof t->heads);
	*t = (struct table){.gap = 3, .columns = wide ? 0 : print_columns(), .cells = BUF(TABLE_BYTES_MAX)};
	snprintf(t->heads, sizeof t->heads, "%s", head);
	for (char *rest = t->heads, *name; (name = strsep(&rest, "\t")); t->n_given++) {
		assert(t->n_given < TABLE_COLUMNS_MAX);
		t->is_left_out[t->n_given] = name[0] == '+' && !wide;
		if (t->is_left_out[t->n_given])
			continue;
		name += name[0] == '+';
		t->tones[t->n_columns] = name[0] == '!' ? tone : NULL;
		t->head[t->n_columns] = name + (name[0] == '!');
		widen(t, t->n_columns, t->head[t->n_columns]);
		t->n_columns++;
	}
}

void table_done(struct table *t)
{
	buf_done(&t->cells);
}

static void add_cell(struct table *t, const char *text, size_t len)
{
	char shown[TABLE_CELL_BYTES];
	if (t->is_left_out[t->n_cells_given++ % t->n_given])
		return;
	len = text_show(shown, sizeof shown, text, len);
	buf_put(&t->cells, shown, len + 1);
	widen(t, t->n_cells++ % t->n_columns, shown);
}

void table_put(struct table *t, const char *fmt, ...)
{
	struct buf row = BUF(TABLE_BYTES_MAX);
	va_list ap;
	va_start(ap, fmt);
	print_vto(&row, fmt, ap);
	va_end(ap);
	for (const char *cell = buf_str(&row); cell; cell = strchr(cell, '\t') ? strchr(cell, '\t') + 1 : NULL)
		add_cell(t, cell, strcspn(cell, "\t"));
	t->cells.failed |= row.failed;
	buf_done(&row);
}

// Narrows the widest columns, none below its least width, until the table fits. Returns whether it does.
static bool narrow(const struct table *t, size_t indent, const size_t *least, int gap, size_t *widths)
{
	size_t total = indent + (size_t)gap * (t->n_columns - 1);
	for (size_t i = 0; i < t->n_columns; i++)
		total += widths[i] = t->widths[i];
	while (t->columns > 0 && total > t->columns) {
		size_t widest = t->n_columns;
		for (size_t i = 0; i < t->n_columns; i++)
			if (widths[i] > least[i] && (widest == t->n_columns || widths[i] > widths[widest]))
				widest = i;
		if (widest == t->n_columns)
			return false;
		widths[widest]--;
		total--;
	}
	return true;
}

// Returns the bytes of `cell` that fit into one line of `width` characters, up to the last place to break at, and in
// *ret_width their characters. A part that is too long for any line is taken as it is.
static size_t take_line(const char *cell, size_t width, size_t *ret_width)
{
	size_t n = 0, len = 0;
	*ret_width = 0;
	for (const char *p = cell;; n += starts_character(*p++)) {
		bool can_break = *p == '\0' || *p == ' ' || (p > cell && (p[-1] == '/' || p[-1] == '-'));
		if (can_break && n > width && len > 0)
			return len;
		if (can_break) {
			len = (size_t)(p - cell);
			*ret_width = n;
		}
		if (*p == '\0')
			return len;
	}
}

// Prints a row, in several lines if a cell is wrapped. cells[i] is the text of a column.
static void put_row(const struct table *t, struct buf *out, int indent, int gap, const size_t *widths,
                    const char **cells)
{
	static const char *const colours[TONE__COUNT] = {
	        [TONE_GOOD] = "\033[32m", [TONE_WAITING] = "\033[33m", [TONE_BAD] = "\033[31m"};
	bool with_colour = print_has_colour(), is_first = true, is_more = true;
	const char *colour[TABLE_COLUMNS_MAX];
	for (size_t i = 0; i < t->n_columns; i++)
		colour[i] = t->tones[i] && with_colour ? colours[t->tones[i](cells[i])] : NULL;
	for (; is_more; is_first = false) {
		is_more = false;
		print_to(out, "%*s", indent, "");
		for (size_t i = 0; i < t->n_columns; i++) {
			size_t width, len = take_line(cells[i], widths[i], &width);
			bool is_coloured = colour[i] && len > 0;
			buf_puts(out, is_coloured ? colour[i] : "");
			buf_put(out, cells[i], len);
			buf_puts(out, is_coloured ? "\033[0m" : "");
			if (i + 1 < t->n_columns) // the last cell of a row is not padded
				print_to(out, "%*s", (int)(widths[i] > width ? widths[i] - width : 0) + gap, "");
			cells[i] += len + (cells[i][len] == ' ');
			is_more |= cells[i][0] != '\0';
		}
		while (!is_first && !out->failed && out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
		buf_putc(out, '\n');
	}
}

void table_print(struct table *t, struct buf *out, int indent, bool with_head)
{
	size_t widths[TABLE_COLUMNS_MAX];
	const char *row[TABLE_COLUMNS_MAX], *cell = buf_str(&t->cells);
	assert(t->n_cells % t->n_columns == 0 || t->cells.failed);
	int gap = t->gap;
	if (!narrow(t, (size_t)indent, t->words, gap, widths) && !narrow(t, (size_t)indent, t->parts, gap, widths))
		narrow(t, (size_t)indent, t->parts, gap = 1, widths);
	if (with_head) {
		memcpy(row, t->head, t->n_columns * sizeof *row);
		put_row(t, out, indent, gap, widths, row);
	}
	for (size_t i = 0; i < t->n_cells && !t->cells.failed; i += t->n_columns) {
		for (size_t k = 0; k < t->n_columns; k++) {
			row[k] = cell;
			cell += strlen(cell) + 1;
		}
		put_row(t, out, indent, gap, widths, row);
	}
	if (!t->cells.failed)
		buf_reset(&t->cells);
	t->n_cells = 0;
}

void table_finish(struct table *t, struct buf *out, int indent, bool with_head)
{
	table_print(t, out, indent, with_head);
	out->failed |= t->cells.failed;
	table_done(t);
}

// ---- texts of cells ----

const char *table_or_none(const char *text)
{
	return text && text[0] ? text : "<none>";
}

struct table_text table_number(bool is_known, int64_t number, const char *unknown)
{
	struct table_text t;
	if (is_known)
		snprintf(t.text, sizeof t.text, "%lld", (long long)number);
	else
		snprintf(t.text, sizeof t.text, "%s", unknown);
	return t;
}

struct table_text table_amount(double number, const char *unit)
{
	struct table_text t = {"-"};
	if (!isnan(number))
		snprintf(t.text, sizeof t.text, "%.2f%s", number, unit);
	return t;
}

struct table_text table_since(int64_t since_ms, int64_t now_ms)
{
	return since_ms ? table_age(since_ms, now_ms) : (struct table_text){"<none>"};
}

struct table_text table_age(int64_t since_ms, int64_t now_ms)
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
	struct table_text t = {"<unknown>"};
	if (since_ms == 0)
		return t;
	while (seconds >= rows[i].below_s)
		i++;
	int n = snprintf(t.text, sizeof t.text, "%lld%s", (long long)(seconds / rows[i].unit_s), rows[i].unit);
	int64_t rest = rows[i].rest_s ? seconds % rows[i].unit_s / rows[i].rest_s : 0;
	if (rest)
		snprintf(t.text + n, sizeof t.text - (size_t)n, "%lld%s", (long long)rest, rows[i].rest);
	return t;
}
