// SPDX-License-Identifier: Apache-2.0
#include "policies/load/file_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "policies/engine/policy.h"
#include "policies/load/file_list.h"
#include "policies/load/loaded_file.h"
#include "policies/load/policy_ref.h"

#define LIST_ARENA_MAX (64 * 1024 * 1024)

static int compare_by_path(const void *a, const void *b)
{
	const struct loaded_file *x = *(struct loaded_file *const *)a, *y = *(struct loaded_file *const *)b;
	return strcmp(x->path, y->path);
}

// Returns the files of a set sorted by path, for find_file(); NULL for an empty set or when memory is exhausted, in
// which case all files are read again.
static struct loaded_file **sort_files(const struct file_set *set)
{
	if (!set || set->n_files == 0)
		return NULL;
	struct loaded_file **sorted = malloc(set->n_files * sizeof *sorted);
	if (!sorted)
		return NULL;
	memcpy(sorted, set->files, set->n_files * sizeof *sorted);
	qsort(sorted, set->n_files, sizeof *sorted, compare_by_path);
	return sorted;
}

static struct loaded_file *find_file(struct loaded_file **sorted, size_t n, const char *path)
{
	size_t low = 0, high = sorted ? n : 0;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int c = strcmp(sorted[middle]->path, path);
		if (c == 0)
			return sorted[middle];
		if (c < 0)
			low = middle + 1;
		else
			high = middle;
	}
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
	const struct scale_target *s = &policy_ref_of(x)->target, *t = &policy_ref_of(y)->target;
	int c = strcmp(x->namespace_name, y->namespace_name);
	c = c ? c : strcmp(s->kind, t->kind);
	return c ? c : strcmp(s->name, t->name);
}

static bool is_in_force(const struct file_set *previous, const struct policy *p)
{
	if (!previous || previous->n_policies == 0)
		return false;
	const struct policy *const *old =
	        bsearch(&p, previous->policies, previous->n_policies, sizeof *previous->policies, compare_by_name);
	return old && strcmp((*old)->file, p->file) == 0;
}

// Returns whether `x` is preferred to `y`: the policy that is already in force, else the first in the order of the
// files.
static bool is_preferred(const struct file_set *previous, const struct policy *x, const struct policy *y)
{
	bool old_x = is_in_force(previous, x), old_y = is_in_force(previous, y);
	if (old_x != old_y)
		return old_x;
	int c = strcmp(x->file, y->file);
	return c ? c < 0 : x->line < y->line;
}

// Sorts by `compare` and drops all but one of the policies that compare equal; returns how many were dropped.
static size_t drop_duplicates(struct file_set *set, const struct file_set *previous,
                              int (*compare)(const void *, const void *), const char *what, struct buf *report)
{
	size_t dropped = 0, kept = 0;
	qsort(set->policies, set->n_policies, sizeof *set->policies, compare);
	for (size_t i = 0; i < set->n_policies; i++) {
		const struct policy *p = set->policies[i], *first = kept ? set->policies[kept - 1] : NULL;
		if (first && compare(&first, &p) == 0) {
			if (is_preferred(previous, p, first)) {
				set->policies[kept - 1] = p;
				const struct policy *swap = first;
				first = p;
				p = swap;
			}
			print_to(report, "%s:%d:1: %s %s is already %s %s/%s at %s:%d: remove one of them\n", p->file,
			         p->line, what, compare == compare_by_target ? policy_ref_of(p)->target.name : p->name,
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

static int collect(struct file_set *set, const struct file_set *previous, struct buf *report, struct err *e)
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
			set->policies[set->n_policies++] = &set->files[i]->bodies[k]->policy;
	set->n_errors += drop_duplicates(set, previous, compare_by_name, "policy", report);
	set->n_errors += drop_duplicates(set, previous, compare_by_target, "target", report);
	qsort(set->policies, set->n_policies, sizeof *set->policies, compare_by_name);
	return 0;
}

// Reads the files of the list; reuses files that have not changed.
static int read_files(struct file_set *set, const struct path_list *list, const struct file_set *previous,
                      struct buf *report, struct err *e)
{
	struct loaded_file **sorted = sort_files(previous);
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < list->n; i++) {
		struct loaded_file *old = find_file(sorted, previous ? previous->n_files : 0, list->paths[i]), *f;
		bool again = previous && previous->is_stale && !file_list_is_unique(list->paths[i]);
		if (old && old->stamp == list->stamps[i] && !again)
			f = loaded_file_ref(old);
		else
			f = loaded_file_read(list->paths[i], list->stamps[i], old);
		if (!f) {
			rc = err_set(e, ERR_INTERNAL, "out of memory reading %s", list->paths[i]);
			break;
		}
		set->files[set->n_files++] = f;
		set->n_errors += f->n_errors;
		set->n_price_books += f->n_price_books;
		set->n_bad_files += f->n_errors > 0;
		if (f->report)
			buf_puts(report, f->report);
	}
	free(sorted);
	return rc;
}

int file_set_load(struct file_set *ret_set, const char *const *paths, size_t n_paths, const struct file_set *previous,
                  struct buf *report, struct err *e)
{
	*ret_set = (struct file_set){0};
	struct arena a;
	arena_init(&a, LIST_ARENA_MAX);
	struct path_list list;
	int rc = file_list_read(&a, paths, n_paths, &list, e);
	if (rc < 0)
		goto out;
	ret_set->fingerprint = list.fingerprint;
	ret_set->files = calloc(list.n ? list.n : 1, sizeof *ret_set->files);
	if (!ret_set->files) {
		rc = err_set(e, ERR_INTERNAL, "out of memory for %zu policy files", list.n);
		goto out;
	}
	rc = read_files(ret_set, &list, previous, report, e);
	if (rc == 0)
		rc = collect(ret_set, previous, report, e);
out:
	arena_done(&a);
	if (rc < 0)
		file_set_done(ret_set);
	return rc;
}

void file_set_done(struct file_set *set)
{
	for (size_t i = 0; i < set->n_files; i++)
		loaded_file_unref(set->files[i]);
	free(set->files);
	free(set->policies);
	*set = (struct file_set){0};
}

uint64_t file_set_fingerprint(const char *const *paths, size_t n_paths)
{
	struct arena a;
	arena_init(&a, LIST_ARENA_MAX);
	struct path_list list;
	uint64_t fingerprint = file_list_read(&a, paths, n_paths, &list, NULL) < 0 ? 0 : list.fingerprint;
	arena_done(&a);
	return fingerprint;
}
