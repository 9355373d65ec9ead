// SPDX-License-Identifier: Apache-2.0
#include "replay/tune_patch.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "policies/engine/policy.h"

#define INSERT_BYTES_MAX 4096
#define SAME             1e-6

struct edit {
	size_t offset, removed;
	struct buf text; // put in place of what is removed
};

struct patch {
	const struct tune_space *space;
	const double *values;
	const char *text;
	size_t len;
	struct edit edits[TUNE_NUMBERS_MAX];
	size_t n_edits;
};

static bool is_changed(const struct patch *p, size_t i)
{
	return p->values[i] != p->space->numbers[i].present;
}

// The byte at a position of a document, whose columns count characters.
static size_t offset_of(const struct patch *p, int line, int col)
{
	size_t i = 0;
	for (; line > 1 && i < p->len; i++)
		line -= p->text[i] == '\n';
	for (; col > 1 && i < p->len; col--)
		for (i++; i < p->len && ((unsigned char)p->text[i] & 0xc0) == 0x80; i++)
			;
	return i;
}

static struct edit *add_edit(struct patch *p, size_t offset, size_t removed)
{
	struct edit *edit = &p->edits[p->n_edits++];
	edit->offset = offset;
	edit->removed = removed;
	buf_init(&edit->text, INSERT_BYTES_MAX);
	return edit;
}

static void put_value(const struct patch *p, size_t i, struct buf *out)
{
	const struct tune_number *n = &p->space->numbers[i];
	bool is_quoted = n->field->type == SCHEMA_QUANTITY || (n->node->quoted && !n->is_added);
	char value[TUNE_TEXT_BYTES];
	tune_number_text(n, p->values[i], value);
	buf_printf(out, is_quoted ? "\"%s\"" : "%s", value);
}

static void replace(struct patch *p, size_t i)
{
	const struct doc_node *node = p->space->numbers[i].node;
	size_t offset = offset_of(p, node->line, node->col);
	put_value(p, i, &add_edit(p, offset, node->text_len + (node->quoted ? 2 : 0))->text);
}

// ---- numbers that the document does not have ----

// The changed number that `node` is, or p->space->n.
static size_t number_of(const struct patch *p, const struct doc_node *node)
{
	size_t i = 0;
	while (i < p->space->n && !(p->space->numbers[i].node == node && is_changed(p, i)))
		i++;
	return i;
}

static bool holds_change(const struct patch *p, const struct doc_node *node) // NOLINT(misc-no-recursion)
{
	if (number_of(p, node) < p->space->n)
		return true;
	for (const struct doc_node *c = node->child; c; c = c->next)
		if (holds_change(p, c))
			return true;
	return false;
}

static void put_added(const struct patch *p, const struct doc_node *node, struct buf *out) // NOLINT(misc-no-recursion)
{
	const char *separator = "";
	buf_printf(out, "%s: ", node->key);
	if (node->kind != DOC_MAP) {
		put_value(p, number_of(p, node), out);
		return;
	}
	buf_putc(out, '{');
	for (const struct doc_node *c = node->child; c; c = c->next) {
		if (!holds_change(p, c))
			continue;
		buf_puts(out, separator);
		put_added(p, c, out);
		separator = ", ";
	}
	buf_putc(out, '}');
}

// Puts the added fields of `map` before its first own one, in the style of the map.
static void insert(struct patch *p, const struct doc_node *map)
{
	const struct doc_node *first = map->child;
	while (first && first->key_line == 0)
		first = first->next;
	size_t offset = first ? offset_of(p, first->key_line, first->key_col) : offset_of(p, map->line, map->col) + 1;
	size_t before = offset;
	while (before > 0 && strchr(" \t\r\n", p->text[before - 1]))
		before--;
	bool is_flow = before > 0 && p->text[before - 1] == '{';
	struct buf *out = &add_edit(p, offset, 0)->text;
	const char *separator = "";
	for (const struct doc_node *c = map->child; c; c = c->next) {
		if (c->key_line > 0 || !holds_change(p, c))
			continue;
		if (is_flow)
			buf_puts(out, separator);
		put_added(p, c, out);
		separator = ", ";
		if (!is_flow)
			buf_printf(out, "\n%*s", first ? first->key_col - 1 : 0, "");
	}
	if (is_flow && first)
		buf_puts(out, ", ");
}

static int by_offset(const void *a, const void *b)
{
	const struct edit *x = a, *y = b;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static int apply(struct patch *p, struct buf *out)
{
	size_t at = 0;
	qsort(p->edits, p->n_edits, sizeof *p->edits, by_offset);
	for (size_t i = 0; i < p->n_edits; i++) {
		const struct edit *edit = &p->edits[i];
		if (edit->offset < at || edit->offset + edit->removed > p->len || edit->text.failed)
			return -1;
		buf_put(out, p->text + at, edit->offset - at);
		buf_put(out, buf_str(&edit->text), edit->text.len);
		at = edit->offset + edit->removed;
	}
	buf_put(out, p->text + at, p->len - at);
	return out->failed ? -1 : 0;
}

// Whether the result says what was meant, and nothing else.
static bool reads_back(const struct patch *p, const char *text, size_t len)
{
	struct tune_space *again = malloc(sizeof *again);
	struct err e;
	bool same = again && tune_space_init(again, p->space->policy, text, len, &e) == 0;
	for (size_t i = 0; same && i < p->space->n; i++) {
		size_t k = 0;
		while (k < again->n && strcmp(again->numbers[k].path, p->space->numbers[i].path) != 0)
			k++;
		same = k < again->n ? fabs(again->numbers[k].present - p->values[i]) <= SAME * fabs(p->values[i])
		                    : !is_changed(p, i);
	}
	if (again)
		tune_space_done(again);
	free(again);
	return same;
}

int tune_patch_write(const struct tune_space *space, const double values[], const char *text, size_t len,
                     struct buf *out, struct err *e)
{
	struct patch p = {.space = space, .values = values, .text = text, .len = len};
	size_t start = out->len;
	for (size_t i = 0; i < space->n; i++) {
		const struct tune_number *n = &space->numbers[i];
		bool is_inserted = false;
		if (!is_changed(&p, i))
			continue;
		for (size_t k = 0; k < i; k++)
			is_inserted = is_inserted || (is_changed(&p, k) && space->numbers[k].is_added &&
			                              space->numbers[k].map == n->map);
		if (!n->is_added)
			replace(&p, i);
		else if (!is_inserted)
			insert(&p, n->map);
	}
	int rc = apply(&p, out);
	for (size_t i = 0; i < p.n_edits; i++)
		buf_done(&p.edits[i].text);
	if (rc < 0 || !reads_back(&p, buf_str(out) + start, out->len - start))
		return err_set(e, ERR_UNSUPPORTED,
		               "%s: the numbers cannot be replaced in the file: change them by hand",
		               space->policy->file ? space->policy->file : space->policy->name);
	return 0;
}
