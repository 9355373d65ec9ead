// SPDX-License-Identifier: Apache-2.0
#include "cli/policy/fix_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "cli/term/replace_file.h"
#include "policies/engine/policy.h"
#include "policies/lint/lint_renames.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_decode.h"
#include "policies/schema/policy_schema.h"

#define FIX_ARENA_MAX  (64 * 1024 * 1024)
#define REPORT_MAX     ((size_t)16 * 1024 * 1024)
#define NAME_BYTES_MIN 4  // no metric of the table has a shorter name
#define SAVES_MAX      50 // by another program, while the file is fixed

static int by_offset(const void *a, const void *b)
{
	const struct lint_edit *x = a, *y = b;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static size_t line_of(const char *text, size_t offset)
{
	size_t line = 1;
	for (size_t i = 0; i < offset; i++)
		line += text[i] == '\n';
	return line;
}

// Two nodes of one document may be one place of the file (an anchor and its alias).
static size_t drop_doubles(struct lint_edit *edits, size_t n)
{
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || edits[kept - 1].offset != edits[i].offset)
			edits[kept++] = edits[i];
	return kept;
}

static size_t collect(const struct doc_file *doc, struct arena *a, const char *path, const char *text,
                      struct lint_edit *edits, size_t max)
{
	size_t n = 0;
	struct schema_errors *errors = malloc(sizeof *errors);
	for (size_t i = 0; errors && i < doc->n_roots; i++) {
		struct policy_document document = {0};
		if (strcmp(doc_get_text(doc->roots[i], "kind", ""), POLICY_KIND) != 0)
			continue;
		schema_errors_init(errors, path);
		if (policy_decode(doc->roots[i], &document, a, errors) == 0 && errors->n == 0)
			n += lint_rename_edits(&document.policy, doc->roots[i], text, edits + n, max - n);
	}
	free(errors);
	return n;
}

// Appends `text` with the edits to `ret_fixed`, and a line for each to `report`. Returns their number.
static size_t apply(const char *path, const struct buf *text, struct lint_edit *edits, size_t n, struct buf *ret_fixed,
                    struct buf *report)
{
	size_t from = 0;
	qsort(edits, n, sizeof edits[0], by_offset);
	n = drop_doubles(edits, n);
	for (size_t i = 0; i < n; i++) {
		const char *old = buf_str(text) + edits[i].offset;
		buf_put(ret_fixed, buf_str(text) + from, edits[i].offset - from);
		buf_puts(ret_fixed, edits[i].new_name);
		from = edits[i].offset + edits[i].len;
		print_to(report, "%s:%zu: fixed: %.*s is now %s\n", path, line_of(buf_str(text), edits[i].offset),
		         (int)edits[i].len, old, edits[i].new_name);
	}
	buf_put(ret_fixed, buf_str(text) + from, text->len - from);
	return n;
}

// Returns 0; 1 when the file was saved meanwhile and is to be read again; or -1 and *e.
static int fix_once(const char *path, struct replace_file *f, struct buf *report, size_t *ret_n, struct err *e)
{
	struct arena a;
	struct buf text, fixed;
	struct doc_file doc = {0};
	struct err unparsed;
	arena_init(&a, FIX_ARENA_MAX);
	buf_init(&text, DOC_BYTES_MAX);
	buf_init(&fixed, 2 * DOC_BYTES_MAX);
	int rc = replace_file_open(f, path, &text, e);
	*ret_n = 0;
	// Errors of the format are reported by the check that follows.
	if (rc == 0 && doc_parse_yaml(&a, path, buf_str(&text), text.len, &doc, &unparsed) == 0) {
		size_t max = text.len / NAME_BYTES_MIN + 1;
		struct lint_edit *edits = calloc(max, sizeof *edits);
		size_t n = edits ? collect(&doc, &a, path, buf_str(&text), edits, max) : 0;
		if (n > 0)
			*ret_n = apply(path, &text, edits, n, &fixed, report);
		if (!edits || fixed.failed)
			rc = err_set(e, ERR_INTERNAL, "%s: out of memory", path);
		else if (n > 0)
			rc = replace_file_write(f, &text, &fixed, e);
		free(edits);
	}
	replace_file_close(f);
	buf_done(&fixed);
	buf_done(&text);
	arena_done(&a);
	return rc;
}

int fix_file(const char *path, struct buf *out, size_t *n_fixed, struct err *e)
{
	struct replace_file f;
	struct buf report;
	size_t n = 0;
	int rc = 1;
	buf_init(&report, REPORT_MAX);
	for (int i = 0; i < SAVES_MAX && rc == 1; i++) {
		buf_reset(&report);
		rc = fix_once(path, &f, &report, &n, e);
	}
	if (rc == 1)
		rc = err_set(e, ERR_CONFLICT, "%s: another program saves the file all the time: stop it and try again",
		             path);
	if (rc == 0 && n > 0) {
		buf_put(out, buf_str(&report), report.len);
		if (f.links > 1)
			print_to(out,
			         "%s: note: the file has %u names (hard links), and the others keep the old text\n",
			         path, f.links);
		*n_fixed += n;
	}
	buf_done(&report);
	return rc;
}
