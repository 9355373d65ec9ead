// SPDX-License-Identifier: Apache-2.0
#include "controller/policy_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/schema.h"
#include "controller/policy_files.h"
#include "controller/policy_zones.h"
#include "policies/policy.h"
#include "policies/policy_schema.h"
#include "promql/promql_source_file.h"

#define POLICY_FILE_ARENA_MAX (64 * 1024 * 1024)

struct policy_file {
	int refs;
	char *path;
	struct arena arena;
	struct policy *policies;
	size_t n;
};

static void file_unref(struct policy_file *f)
{
	if (!f || --f->refs > 0)
		return;
	arena_done(&f->arena);
	free(f->path);
	free(f);
}

static struct policy_file *file_new(const char *path)
{
	struct policy_file *f = calloc(1, sizeof *f);
	if (!f)
		return NULL;
	f->refs = 1;
	arena_init(&f->arena, POLICY_FILE_ARENA_MAX);
	f->path = strdup(path);
	if (f->path)
		return f;
	free(f);
	return NULL;
}

// Decodes every document of the file. Returns the number of errors, all of them written to report.
static size_t file_read(struct policy_file *f, struct buf *report)
{
	struct err e;
	struct arena tree; // the document itself is needed only while decoding
	arena_init(&tree, POLICY_FILE_ARENA_MAX);
	struct doc_file doc;
	size_t n_errors = 0;
	if (doc_read_yaml(&tree, f->path, &doc, &e) < 0) {
		buf_printf(report, "%s\n", e.msg);
		n_errors = 1;
		goto out;
	}
	struct schema_errors *errors = malloc(sizeof *errors);
	f->policies = arena_calloc(&f->arena, doc.n_roots ? doc.n_roots : 1, sizeof *f->policies);
	if (!errors || !f->policies) {
		free(errors);
		buf_printf(report, "%s: out of memory\n", f->path);
		n_errors = 1;
		goto out;
	}
	schema_errors_init(errors, f->path);
	for (size_t i = 0; i < doc.n_roots; i++) {
		const char *kind = doc_get_text(doc.roots[i], "kind", "");
		if (strcmp(kind, "PolicyTest") == 0 || strcmp(kind, PROMQL_SOURCES_KIND) == 0)
			continue; // may lie beside policies, read by `gpuscale test` and by --sources
		struct policy *p = &f->policies[f->n];
		memset(p, 0, sizeof *p);
		policy_decode(doc.roots[i], p, &f->arena, errors);
		policy_zones_load(p, doc.roots[i], &f->arena, errors);
		p->file = f->path;
		p->line = doc.roots[i]->line;
		f->n++;
	}
	n_errors = errors->n + errors->dropped;
	if (n_errors)
		schema_errors_print(errors, report);
	free(errors);
out:
	arena_done(&tree);
	return n_errors;
}

static struct policy_file *find_file(const struct policy_set *set, const char *path)
{
	for (size_t i = 0; set && i < set->n_files; i++)
		if (strcmp(set->files[i]->path, path) == 0)
			return set->files[i];
	return NULL;
}

static int compare_by_name(const void *a, const void *b)
{
	const struct policy *x = *(const struct policy *const *)a, *y = *(const struct policy *const *)b;
	int c = strcmp(x->namespace_name, y->namespace_name);
	return c ? c : strcmp(x->name, y->name);
}

static int compare_by_target(const void *a, const void *b)
{
	const struct policy *x = *(const struct policy *const *)a, *y = *(const struct policy *const *)b;
	int c = strcmp(x->namespace_name, y->namespace_name);
	c = c ? c : strcmp(x->target_kind, y->target_kind);
	return c ? c : strcmp(x->target_name, y->target_name);
}

static bool is_in_force(const struct policy_set *previous, const struct policy *p)
{
	for (size_t i = 0; previous && i < previous->n_policies; i++) {
		const struct policy *old = previous->policies[i];
		if (strcmp(old->file, p->file) == 0 && compare_by_name(&old, &p) == 0)
			return true;
	}
	return false;
}

// Which of two policies for the same thing stays: the one that is in force already, else the first in the files' order.
static bool goes_before(const struct policy_set *previous, const struct policy *x, const struct policy *y)
{
	bool old_x = is_in_force(previous, x), old_y = is_in_force(previous, y);
	if (old_x != old_y)
		return old_x;
	int c = strcmp(x->file, y->file);
	return c ? c < 0 : x->line < y->line;
}

// Drops one of two neighbours that compare equal, after sorting by `compare`; returns how many were dropped.
static size_t drop_doubles(struct policy_set *set, const struct policy_set *previous,
                           int (*compare)(const void *, const void *), const char *what, struct buf *report)
{
	size_t dropped = 0, kept = 0;
	qsort(set->policies, set->n_policies, sizeof *set->policies, compare);
	for (size_t i = 0; i < set->n_policies; i++) {
		const struct policy *p = set->policies[i], *first = kept ? set->policies[kept - 1] : NULL;
		if (first && compare(&first, &p) == 0) {
			if (goes_before(previous, p, first)) {
				set->policies[kept - 1] = p;
				const struct policy *swap = first;
				first = p;
				p = swap;
			}
			buf_printf(report, "%s:%d:1: %s %s is already %s %s/%s at %s:%d: remove one of them\n", p->file,
			           p->line, what, compare == compare_by_target ? p->target_name : p->name,
			           compare == compare_by_target ? "scaled by" : "defined as", first->namespace_name,
			           first->name, first->file, first->line);
			dropped++;
			continue;
		}
		set->policies[kept++] = p;
	}
	set->n_policies = kept;
	return dropped;
}

static int collect(struct policy_set *set, const struct policy_set *previous, struct buf *report, struct err *e)
{
	size_t n = 0;
	for (size_t i = 0; i < set->n_files; i++)
		n += set->files[i]->n;
	if (n > POLICY_SET_MAX)
		return err_set(e, ERR_LIMIT, "%zu policies are more than the ceiling of %d", n, POLICY_SET_MAX);
	set->policies = calloc(n ? n : 1, sizeof *set->policies);
	if (!set->policies)
		return err_set(e, ERR_INTERNAL, "out of memory for %zu policies", n);
	for (size_t i = 0; i < set->n_files; i++)
		for (size_t k = 0; k < set->files[i]->n; k++)
			set->policies[set->n_policies++] = &set->files[i]->policies[k];
	set->n_errors += drop_doubles(set, previous, compare_by_name, "policy", report);
	set->n_errors += drop_doubles(set, previous, compare_by_target, "target", report);
	qsort(set->policies, set->n_policies, sizeof *set->policies, compare_by_name);
	return 0;
}

int policy_set_load(struct policy_set *ret_set, const char *const *paths, size_t n_paths,
                    const struct policy_set *previous, struct buf *report, struct err *e)
{
	*ret_set = (struct policy_set){0};
	struct arena a;
	arena_init(&a, POLICY_FILE_ARENA_MAX);
	struct path_list list;
	int rc = policy_files_list(&a, paths, n_paths, &list, e);
	if (rc < 0)
		goto out;
	ret_set->fingerprint = list.fingerprint;
	ret_set->files = calloc(list.n ? list.n : 1, sizeof *ret_set->files);
	if (!ret_set->files) {
		rc = err_set(e, ERR_INTERNAL, "out of memory for %zu policy files", list.n);
		goto out;
	}
	for (size_t i = 0; i < list.n; i++) {
		struct policy_file *f = file_new(list.paths[i]);
		if (!f) {
			rc = err_set(e, ERR_INTERNAL, "out of memory reading %s", list.paths[i]);
			goto out;
		}
		size_t errors = file_read(f, report);
		if (errors) {
			ret_set->n_errors += errors;
			ret_set->n_bad_files++;
			file_unref(f);
			f = find_file(previous, list.paths[i]); // the last good one, if there was any
			if (!f)
				continue;
			f->refs++;
		}
		ret_set->files[ret_set->n_files++] = f;
	}
	rc = collect(ret_set, previous, report, e);
out:
	arena_done(&a);
	if (rc < 0)
		policy_set_done(ret_set);
	return rc;
}

void policy_set_done(struct policy_set *set)
{
	for (size_t i = 0; i < set->n_files; i++)
		file_unref(set->files[i]);
	free(set->files);
	free(set->policies);
	*set = (struct policy_set){0};
}

uint64_t policy_set_fingerprint(const char *const *paths, size_t n_paths)
{
	struct arena a;
	arena_init(&a, POLICY_FILE_ARENA_MAX);
	struct path_list list;
	uint64_t fingerprint = policy_files_list(&a, paths, n_paths, &list, NULL) < 0 ? 0 : list.fingerprint;
	arena_done(&a);
	return fingerprint;
}
