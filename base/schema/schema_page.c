// SPDX-License-Identifier: Apache-2.0
#include "base/schema/schema_page.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/schema/schema_private.h"

#define PAGE_DEPTH_MAX 16

static bool is_list(const struct schema_field *f)
{
	return f->type == SCHEMA_LIST || f->type == SCHEMA_STRING_LIST;
}

// A cell of a Markdown table: '|' would end it.
static void put_cell(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '|')
			buf_putc(out, '\\');
		buf_putc(out, *text);
	}
}

static void put_limits(struct buf *out, const struct schema_field *f)
{
	char text[SCHEMA_RANGE_BYTES];
	if (f->type == SCHEMA_ENUM) {
		for (size_t i = 0; f->enum_names[i]; i++)
			buf_printf(out, "%s`%s`", i ? ", " : "", f->enum_names[i]);
	} else if (is_list(f)) {
		buf_printf(out, "%.0f to %zu elements", f->min,
		           f->max_items ? f->max_items : (size_t)SCHEMA_LIST_ITEMS_MAX);
	} else {
		put_cell(out, schema_format_range(f, text));
	}
}

static void put_row(struct buf *out, const struct schema_field *f)
{
	buf_printf(out, "| `%s` | %s | ", f->name, schema_type_name(f->type));
	if (f->required)
		buf_puts(out, "required");
	else if (f->default_text)
		buf_printf(out, "`%s`", f->default_text[0] ? f->default_text : "\"\"");
	buf_puts(out, " | ");
	put_limits(out, f);
	buf_puts(out, " | ");
	if (f->unsupported)
		buf_puts(out, "**Not supported yet.** ");
	put_cell(out, f->doc);
	buf_puts(out, " |\n");
}

static void put_section(struct buf *out, const struct schema *s, const char *path, int depth)
{
	if (s->n_fields == 0 || depth == PAGE_DEPTH_MAX)
		return;
	buf_printf(out, "## %s\n\n%s\n\n| field | type | default | range | what |\n|---|---|---|---|---|\n", path,
	           s->doc);
	for (size_t i = 0; i < s->n_fields; i++)
		put_row(out, &s->fields[i]);
	buf_putc(out, '\n');
	for (size_t i = 0; i < s->n_fields; i++) {
		const struct schema_field *f = &s->fields[i];
		char sub[SCHEMA_PATH_BYTES];
		if (!f->child || f->unsupported)
			continue;
		snprintf(sub, sizeof sub, "%s%s%s%s", depth ? path : "", depth ? "." : "", f->name,
		         is_list(f) ? "[]" : "");
		put_section(out, f->child, sub, depth + 1);
	}
}

void schema_page(const struct schema *root, struct buf *out)
{
	put_section(out, root, root->name, 0);
}
