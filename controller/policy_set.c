// SPDX-License-Identifier: Apache-2.0
#include "controller/policy_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "controller/policy_body.h"
#include "controller/policy_file.h"
#include "controller/policy_files.h"
#include "policies/policy.h"

#define LIST_ARENA_MAX (64 * 1024 * 1024)

static int compare_by_path(const void *a, const void *b)
{
	const struct policy_file *x = *(struct policy_file *const *)a, *y = *(struct policy_file *const *)b;
	return strcmp(x->path, y->path);
}

// The files of a set in order of their paths, for find_file(); NULL when there are none, or no memory: then all are
// taken for new.
static struct policy_file **sort_files(const struct policy_set *set)
{
	if (!set || set->n_files == 0)
		return NULL;
	struct policy_file **sorted = malloc(set->n_files * sizeof *sorted);
	if (!sorted)
		return NULL;
	memcpy(sorted, set->files, set->n_files * sizeof *sorted);
	qsort(sorted, set->n_files, sizeof *sorted, compare_by_path);
	return sorted;
}

static struct policy_file *find_file(struct policy_file **sorted, size_t n, const char *path)
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
	int c = strcmp(x->namespace_name, y->namespace_name);
	c = c ? c : strcmp(x->target_kind, y->target_kind);
	return c ? c : strcmp(x->target_name, y->target_name);
}

static bool is_in_force(const struct policy_set *previous, const struct policy *p)
{
	if (!previous || previous->n_policies == 0)
		return false;
	const struct policy *const *old =
	        bsearch(&p, previous->policies, previous->n_policies, sizeof *previous->policies, compare_by_name);
	return old && strcmp((*old)->file, p->file) == 0;
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
			set->policies[set->n_policies++] = &set->files[i]->bodies[k]->policy;
	set->n_errors += drop_doubles(set, previous, compare_by_name, "policy", report);
	set->n_errors += drop_doubles(set, previous, compare_by_target, "target", report);
	qsort(set->policies, set->n_policies, sizeof *set->policies, compare_by_name);
	return 0;
}

// Those on the list, read or, where nothing changed since, taken over.
static int read_files(struct policy_set *set, const struct path_list *list, const struct policy_set *previous,
                      struct buf *report, struct err *e)
{
	struct policy_file **sorted = sort_files(previous);
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < list->n; i++) {
		struct policy_file *old = find_file(sorted, previous ? previous->n_files : 0, list->paths[i]), *f;
		bool again = previous && previous->is_stale && strcmp(list->paths[i], "-") != 0; // stdin is read once
		if (old && old->stamp == list->stamps[i] && !again)
			f = policy_file_ref(old);
		else
			f = policy_file_read(list->paths[i], list->stamps[i], old);
		if (!f) {
			rc = err_set(e, ERR_INTERNAL, "out of memory reading %s", list->paths[i]);
			break;
		}
		set->files[set->n_files++] = f;
		set->n_errors += f->n_errors;
		set->n_bad_files += f->n_errors > 0;
		if (f->report)
			buf_puts(report, f->report);
	}
	free(sorted);
	return rc;
}

int policy_set_load(struct policy_set *ret_set, const char *const *paths, size_t n_paths,
                    const struct policy_set *previous, struct buf *report, struct err *e)
{
	*ret_set = (struct policy_set){0};
	struct arena a;
	arena_init(&a, LIST_ARENA_MAX);
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
	rc = read_files(ret_set, &list, previous, report, e);
	if (rc == 0)
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
		policy_file_unref(set->files[i]);
	free(set->files);
	free(set->policies);
	*set = (struct policy_set){0};
}

uint64_t policy_set_fingerprint(const char *const *paths, size_t n_paths)
{
	struct arena a;
	arena_init(&a, LIST_ARENA_MAX);
	struct path_list list;
	uint64_t fingerprint = policy_files_list(&a, paths, n_paths, &list, NULL) < 0 ? 0 : list.fingerprint;
	arena_done(&a);
	return fingerprint;
}
