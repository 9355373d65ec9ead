// SPDX-License-Identifier: Apache-2.0
// What is known of a field, for people: `explain`, and the reference page of a schema.
#include <strings.h>

#include "base/base.h"
#include "base/schema/schema_private.h"

#define LINE_COLUMNS     80
#define TEXT_COLUMNS_MIN 30 // least width of a description next to the names, however long those are

// Text word by word, from column `at`; further lines begin at column `indent`. Ends the line.
static void put_wrapped(struct buf *out, const char *text, size_t len, size_t at, size_t indent)
{
	size_t end = indent + TEXT_COLUMNS_MIN > LINE_COLUMNS ? indent + TEXT_COLUMNS_MIN : LINE_COLUMNS;
	const char *stop = text + len;
	for (bool is_first = true; text < stop; is_first = false) {
		const char *space = memchr(text, ' ', (size_t)(stop - text));
		size_t word = (size_t)((space ? space : stop) - text);
		if (!is_first && at + 1 + word > end) {
			buf_printf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (!is_first) {
			buf_putc(out, ' ');
			at++;
		}
		buf_put(out, text, word);
		at += word;
		text += word + (space != NULL);
	}
	buf_putc(out, '\n');
}

static size_t first_sentence(const char *doc)
{
	const char *end = strstr(doc, ". ");
	return end ? (size_t)(end - doc) + 1 : strlen(doc);
}

static void put_fields(struct buf *out, const struct schema *schema)
{
	size_t name_width = 0, type_width = 0;
	for (size_t i = 0; i < schema->n_fields; i++) {
		const struct schema_field *f = &schema->fields[i];
		size_t name = strlen(f->name), type = strlen(schema_type_name(f->type)) + 2;
		name_width = name > name_width ? name : name_width;
		type_width = type > type_width ? type : type_width;
	}
	size_t indent = 2 + name_width + 2 + type_width + 2;
	buf_puts(out, "\nFIELDS:\n");
	for (size_t i = 0; i < schema->n_fields; i++) {
		const struct schema_field *f = &schema->fields[i];
		char type[48];
		snprintf(type, sizeof type, "<%s>", schema_type_name(f->type));
		buf_printf(out, "  %-*s  %-*s  ", (int)name_width, f->name, (int)type_width, type);
		const char *note = f->unsupported ? "(not supported yet) " : f->required ? "(required) " : "";
		buf_puts(out, note);
		put_wrapped(out, f->doc, first_sentence(f->doc), indent + strlen(note), indent);
	}
}

static void put_label(struct buf *out, const char *label, const char *text)
{
	buf_printf(out, "%-11s", label);
	put_wrapped(out, text, strlen(text), 11, 11);
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

// Writes the choices, the number of elements or the range of a field.
static void put_limits(struct buf *out, const struct schema_field *f, const char *quote, const char *noun)
{
	char range[SCHEMA_RANGE_BYTES];
	if (f->type == SCHEMA_ENUM) {
		for (size_t i = 0; f->enum_names[i]; i++)
			buf_printf(out, "%s%s%s%s", i ? ", " : "", quote, f->enum_names[i], quote);
	} else if (schema_is_list(f)) {
		size_t max = f->max_items ? f->max_items : SCHEMA_LIST_ITEMS_MAX;
		buf_printf(out, "%.0f to %zu%s", f->min, max, noun);
	} else {
		put_cell(out, schema_format_range(f, range));
	}
}

static void put_properties(struct buf *out, const struct schema_field *f)
{
	char range[SCHEMA_RANGE_BYTES];
	if (f->required)
		put_label(out, "REQUIRED:", "yes");
	if (f->default_text) {
		bool needs_quotes = f->type == SCHEMA_QUANTITY && strpbrk(f->default_text, ".eE");
		buf_printf(out, "%-11s%s%s%s\n", "DEFAULT:", needs_quotes ? "\"" : "", f->default_text,
		           needs_quotes ? "\"" : "");
	}
	bool is_enum = f->type == SCHEMA_ENUM, is_list = schema_is_list(f);
	if (!is_enum && !is_list && !schema_format_range(f, range)[0])
		return;
	buf_printf(out, "%-11s", is_enum ? "CHOICES:" : is_list ? "ELEMENTS:" : "RANGE:");
	put_limits(out, f, "", "");
	buf_putc(out, '\n');
}

// "spec.signals.window" -> "spec.signals[].window": how errors write it. `path` is known to exist.
static void put_path(struct buf *out, const struct schema *root, const char *path)
{
	const struct schema *level = root;
	while (*path) {
		size_t len = strcspn(path, ".[");
		const struct schema_field *f = schema_field_by_name(level, path, len);
		path += strcspn(path, ".");
		bool is_list = f->type == SCHEMA_LIST && *path;
		buf_printf(out, "%s%s%s", f->name, is_list ? "[]" : "", *path ? "." : "");
		path += *path == '.';
		level = f->child;
	}
}

static int refuse(const struct schema *level, const char *path, const char *closest, struct err *e)
{
	char shown[SCHEMA_SHOWN_BYTES], known[SCHEMA_MESSAGE_BYTES];
	text_show(shown, sizeof shown, path, strlen(path));
	if (closest)
		return err_set(e, ERR_NOT_FOUND, "no field %s: %s has %s, did you mean that?", shown, level->name,
		               closest);
	if (!level)
		return err_set(e, ERR_NOT_FOUND,
		               "no field %s: a part of it is a plain value, which has no fields of its own", shown);
	return err_set(e, ERR_NOT_FOUND, "no field %s: %s has %s", shown, level->name,
	               schema_list_fields(level, known, sizeof known));
}

int schema_explain(const struct schema *root, const char *path, struct buf *out, struct err *e)
{
	size_t kind = strlen(root->name);
	if (strncasecmp(path, root->name, kind) == 0 && (path[kind] == '\0' || path[kind] == '.'))
		path += kind + (path[kind] == '.');
	const struct schema *level = root;
	const struct schema_field *f = NULL;
	const char *closest;
	if (*path) {
		f = schema_find(root, path, &level, &closest);
		if (!f)
			return refuse(level, path, closest, e);
	}
	put_label(out, "KIND:", root->name);
	if (f) {
		buf_printf(out, "%-11s", "FIELD:");
		put_path(out, root, path);
		buf_printf(out, " <%s>\n", schema_type_name(f->type));
		if (f->unsupported)
			put_label(out, "STATUS:", "not supported yet: writing it is an error");
		put_properties(out, f);
	}
	buf_putc(out, '\n');
	const char *doc = f ? f->doc : root->doc;
	put_wrapped(out, doc, strlen(doc), 0, 0);
	const struct schema *child = f ? f->child : root;
	if (child)
		put_fields(out, child);
	if (out->failed)
		return err_set(e, ERR_LIMIT, "the explanation is longer than the ceiling of %zu bytes", out->max);
	return 0;
}

#define PAGE_DEPTH_MAX 16

static void put_row(struct buf *out, const struct schema_field *f)
{
	buf_printf(out, "| `%s` | %s | ", f->name, schema_type_name(f->type));
	if (f->required)
		buf_puts(out, "required");
	else if (f->default_text)
		buf_printf(out, "`%s`", f->default_text[0] ? f->default_text : "\"\"");
	buf_puts(out, " | ");
	put_limits(out, f, "`", " elements");
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
		         schema_is_list(f) ? "[]" : "");
		put_section(out, f->child, sub, depth + 1);
	}
}

void schema_page(const struct schema *root, struct buf *out)
{
	put_section(out, root, root->name, 0);
}
