// SPDX-License-Identifier: Apache-2.0
// Collecting, sorting and printing the faults of a file.
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/doc.h"
#include "base/schema_private.h"
#include "base/text.h"

void schema_errors_init(struct schema_errors *e, const char *file)
{
	e->file = file;
	e->n = 0;
	e->dropped = 0;
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
	sort_by_position(e);
	for (size_t i = 0; i < e->n; i++) {
		const struct schema_error *error = &e->items[i];
		if (e->file)
			buf_printf(out, "%s:", e->file);
		if (error->line > 0)
			buf_printf(out, "%d:%d:", error->line, error->col);
		if (e->file || error->line > 0)
			buf_putc(out, ' ');
		if (error->path[0])
			buf_printf(out, "%s: ", error->path);
		buf_printf(out, "%s\n", error->message);
	}
	if (e->dropped > 0)
		buf_printf(out, "%s%s%zu more error%s\n", e->file ? e->file : "", e->file ? ": " : "", e->dropped,
		           e->dropped == 1 ? "" : "s");
}
