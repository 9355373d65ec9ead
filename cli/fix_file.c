// SPDX-License-Identifier: Apache-2.0
#include "cli/fix_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/engine/policy.h"
#include "policies/lint/lint_renames.h"
#include "policies/schema/policy_decode.h"
#include "policies/schema/policy_schema.h"

#define FIX_ARENA_MAX (64 * 1024 * 1024)
#define PATH_BYTES    4096

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

static int replace_file(const char *path, const struct buf *text, struct err *e)
{
	char temporary[PATH_BYTES], target[PATH_BYTES];
	struct stat st;
	if (!realpath(path, target) || stat(target, &st) < 0) // a link stays a link
		return err_set_code(e, ERR_IO, errno, "%s: %s", path, strerror(errno));
	if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", target) >= (int)sizeof temporary)
		return err_set(e, ERR_IO, "%s: the path is longer than %d bytes", path, PATH_BYTES);
	int fd = mkstemp(temporary);
	if (fd < 0)
		return err_set_code(e, ERR_IO, errno, "%s: %s", temporary, strerror(errno));
	size_t done = 0;
	ssize_t n = 0;
	while (done < text->len && n >= 0) {
		n = write(fd, buf_str(text) + done, text->len - done);
		n = n < 0 && errno == EINTR ? 0 : n;
		done += n > 0 ? (size_t)n : 0;
	}
	bool ok = n >= 0 && fchmod(fd, st.st_mode & 07777) == 0 && fsync(fd) == 0;
	int why = errno;
	ok = close(fd) == 0 && ok && rename(temporary, target) == 0;
	why = ok ? 0 : why ? why : errno;
	if (ok)
		return 0;
	unlink(temporary);
	return err_set_code(e, ERR_IO, why, "%s: %s", path, strerror(why));
}

static size_t collect(const struct doc_file *doc, struct arena *a, const char *path, const char *text,
                      struct lint_edit *edits)
{
	size_t n = 0;
	struct schema_errors *errors = malloc(sizeof *errors);
	for (size_t i = 0; errors && i < doc->n_roots; i++) {
		struct policy policy = {0};
		if (strcmp(doc_get_text(doc->roots[i], "kind", ""), POLICY_KIND) != 0)
			continue;
		schema_errors_init(errors, path);
		if (policy_decode(doc->roots[i], &policy, a, errors) == 0 && errors->n == 0)
			n += lint_rename_edits(&policy, doc->roots[i], text, edits + n, LINT_EDITS_MAX - n);
	}
	free(errors);
	return n;
}

int fix_file(const char *path, struct buf *out, size_t *n_fixed, struct err *e)
{
	struct arena a;
	struct buf text, fixed;
	struct doc_file doc = {0};
	struct lint_edit edits[LINT_EDITS_MAX];
	struct err unparsed;
	arena_init(&a, FIX_ARENA_MAX);
	buf_init(&text, DOC_BYTES_MAX);
	buf_init(&fixed, 2 * DOC_BYTES_MAX);
	int rc = buf_read_file(&text, path, e);
	// Errors of the format are reported by the check that follows.
	if (rc == 0 && doc_parse_yaml(&a, path, buf_str(&text), text.len, &doc, &unparsed) == 0) {
		size_t n = collect(&doc, &a, path, buf_str(&text), edits), from = 0;
		qsort(edits, n, sizeof edits[0], by_offset);
		n = drop_doubles(edits, n);
		for (size_t i = 0; i < n; i++) {
			const char *old = buf_str(&text) + edits[i].offset;
			buf_put(&fixed, buf_str(&text) + from, edits[i].offset - from);
			buf_puts(&fixed, edits[i].new_name);
			from = edits[i].offset + edits[i].len;
			print_to(out, "%s:%zu: fixed: %.*s is now %s\n", path, line_of(buf_str(&text), edits[i].offset),
			         (int)edits[i].len, old, edits[i].new_name);
		}
		buf_put(&fixed, buf_str(&text) + from, text.len - from);
		if (n > 0)
			rc = fixed.failed ? err_set(e, ERR_INTERNAL, "out of memory") : replace_file(path, &fixed, e);
		*n_fixed += rc == 0 ? n : 0;
	}
	buf_done(&fixed);
	buf_done(&text);
	arena_done(&a);
	return rc;
}
