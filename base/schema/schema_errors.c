// SPDX-License-Identifier: Apache-2.0
// Collecting, sorting and printing the faults of a file.

#include "base/base.h"
#include "base/schema/doc.h"
#include "base/schema/schema_private.h"

#define FILE_SHOWN_BYTES 4096

void schema_errors_init(struct schema_errors *e, const char *file)
{
	e->file = file;
	e->n = 0;
	e->dropped = 0;
	e->noun = "error";
	e->mark = "";
}

void schema_vreport_at(struct schema_errors *e, int line, int col, const char *path, const char *fmt, va_list ap)
{
	if (e->n == SCHEMA_ERRORS_MAX) {
		e->dropped++;
		return;
	}
	struct schema_error *error = &e->items[e->n++];
	error->line = line;
	error->col = col;
	error->excerpt[0] = '\0';
	text_show(error->path, sizeof error->path, path, strlen(path));
	char message[2 * SCHEMA_MESSAGE_BYTES]; // longer than what is kept, so that a cut one shows its "..."
	vsnprintf(message, sizeof message, fmt, ap);
	text_show(error->message, sizeof error->message, message, strlen(message));
}

void schema_report_at(struct schema_errors *e, int line, int col, const char *path, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	schema_vreport_at(e, line, col, path, fmt, ap);
	va_end(ap);
}

void schema_report(struct schema_errors *e, const struct doc_node *node, const char *path, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	schema_vreport_at(e, node ? node->line : 0, node ? node->col : 0, path, fmt, ap);
	va_end(ap);
}

static int columns_of(const char *s, size_t len)
{
	int n = 0;
	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)s[i] & 0xc0) != 0x80; // one per character
	return n;
}

// Shows the text around the place, short enough for one line.
static void show_excerpt(struct schema_error *error, const char *text, size_t text_len, size_t offset, size_t len)
{
	enum { BEFORE = 48, SHOWN = 96 };
	size_t from = offset > BEFORE ? offset - BEFORE : 0;
	while (from > 0 && from < text_len && ((unsigned char)text[from] & 0xc0) == 0x80)
		from--;
	size_t n = text_len - from < SHOWN ? text_len - from : SHOWN;
	char before[SCHEMA_EXCERPT_BYTES], marked[SCHEMA_EXCERPT_BYTES];
	size_t n_before = text_show(before, sizeof before, text + from, offset - from);
	size_t n_marked = text_show(marked, sizeof marked, text + offset, len < n ? len : n);
	text_show(error->excerpt, sizeof error->excerpt, text + from, n);
	error->caret = columns_of(before, n_before);
	error->caret_len = columns_of(marked, n_marked);
	int shown = columns_of(error->excerpt, strlen(error->excerpt));
	if (error->caret_len > shown - error->caret)
		error->caret_len = shown - error->caret;
	if (error->caret_len < 1)
		error->caret_len = 1; // behind the end
}

void schema_report_text(struct schema_errors *e, const struct doc_node *scalar, const char *path, size_t offset,
                        size_t len, const char *fmt, ...)
{
	va_list ap;
	bool as_it_is = scalar->line > 0 && !memchr(scalar->text, '\n', scalar->text_len);
	int col = scalar->col + (as_it_is ? (int)offset + scalar->quoted : 0);
	size_t n = e->n;
	va_start(ap, fmt);
	schema_vreport_at(e, scalar->line, col, path, fmt, ap);
	va_end(ap);
	if (e->n > n)
		show_excerpt(&e->items[n], scalar->text, scalar->text_len, offset, len);
}

static bool is_before(const struct schema_error *a, const struct schema_error *b)
{
	return a->line != b->line ? a->line < b->line : a->col < b->col;
}

// Insertion sort: at most 64 items, and errors at one place keep their order.
static void sort_by_position(struct schema_errors *e)
{
	for (size_t i = 1; i < e->n; i++) {
		struct schema_error moved = e->items[i];
		size_t at = i;
		for (; at > 0 && is_before(&moved, &e->items[at - 1]); at--)
			e->items[at] = e->items[at - 1];
		e->items[at] = moved;
	}
}

void schema_errors_print(struct schema_errors *e, struct buf *out)
{
	char file[FILE_SHOWN_BYTES] = "";
	sort_by_position(e);
	if (e->file)
		text_show(file, sizeof file, e->file, strlen(e->file));
	for (size_t i = 0; i < e->n; i++) {
		const struct schema_error *error = &e->items[i];
		if (e->file)
			buf_printf(out, "%s:", file);
		if (error->line > 0)
			buf_printf(out, "%d:%d:", error->line, error->col);
		if (e->file || error->line > 0)
			buf_putc(out, ' ');
		if (error->line > 0)
			buf_puts(out, e->mark);
		if (error->path[0])
			buf_printf(out, "%s: ", error->path);
		buf_printf(out, "%s\n", error->message);
		if (!error->excerpt[0])
			continue;
		buf_printf(out, "    %s\n    %*s", error->excerpt, error->caret, "");
		for (int k = 0; k < error->caret_len; k++)
			buf_putc(out, '^');
		buf_putc(out, '\n');
	}
	if (e->dropped > 0)
		buf_printf(out, "%s%s%zu more %s%s\n", file, e->file ? ": " : "", e->dropped, e->noun,
		           e->dropped == 1 ? "" : "s");
}
