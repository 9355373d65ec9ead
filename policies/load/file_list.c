// SPDX-License-Identifier: Apache-2.0
#include "policies/load/file_list.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/file_open.h"
#include "base/hash.h"
#include "base/print.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"

#define LIST_ARENA_MAX (64 * 1024 * 1024)
#define FILE_TREE_MAX  (64 * 1024 * 1024)

static bool ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);
	return n >= m && strcmp(s + n - m, suffix) == 0;
}

// Files of tests are not policy files, although they are in the same folders.
static bool is_policy_name(const char *name)
{
	return name[0] != '.' && !ends_with(name, "_test.yaml") && !ends_with(name, "_test.yml") &&
	       (ends_with(name, ".yaml") || ends_with(name, ".yml") || ends_with(name, ".json"));
}

static int add_file(struct arena *a, struct path_list *list, const char *path, const struct stat *st, struct err *e)
{
	if (list->n == POLICY_FILES_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than %d policy files", path, POLICY_FILES_MAX);
	if (list->n == list->cap) {
		size_t cap = list->cap ? list->cap * 2 : 64;
		const char **grown = arena_calloc(a, cap, sizeof *grown);
		uint64_t *stamps = arena_calloc(a, cap, sizeof *stamps);
		if (!grown || !stamps)
			return err_set(e, ERR_INTERNAL, "out of memory listing policy files");
		if (list->n) {
			memcpy(grown, list->paths, list->n * sizeof *grown);
			memcpy(stamps, list->stamps, list->n * sizeof *stamps);
		}
		list->paths = grown;
		list->stamps = stamps;
		list->cap = cap;
	}
	const char *copy = arena_strdup(a, path);
	if (!copy)
		return err_set(e, ERR_INTERNAL, "out of memory listing policy files");
	uint64_t stamp = HASH_START;
	stamp = hash_bytes(stamp, &st->st_size, sizeof st->st_size);
	stamp = hash_bytes(stamp, &st->st_ino, sizeof st->st_ino);
	stamp = hash_bytes(stamp, &st->st_mtim, sizeof st->st_mtim);
	list->fingerprint = hash_bytes(list->fingerprint, path, strlen(path) + 1);
	list->fingerprint = hash_bytes(list->fingerprint, &stamp, sizeof stamp);
	list->stamps[list->n] = stamp;
	list->paths[list->n++] = copy;
	return 0;
}

bool file_list_is_unique(const char *path)
{
	return strcmp(path, "-") == 0 || file_inherited_pipe(path) >= 0;
}

static int add_path(struct arena *a, struct path_list *list, const char *path, bool named_by_user, int depth,
                    struct err *e);

static int add_folder(struct arena *a, struct path_list *list, const char *path, int depth, struct err *e)
{
	if (depth == POLICY_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "%s: folders are nested deeper than %d", path, POLICY_DEPTH_MAX);
	struct dirent **names = NULL;
	int n = scandir(path, &names, NULL, alphasort);
	if (n < 0)
		return err_set_code(e, ERR_IO, errno, "cannot read folder %s: %s", path, strerror(errno));
	int rc = 0;
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;
		if (rc == 0 && name[0] != '.') { // also leaves out a ConfigMap mount's ..data
			const char *sub = arena_printf(a, "%s%s%s", path, ends_with(path, "/") ? "" : "/", name);
			rc = sub ? add_path(a, list, sub, false, depth + 1, e)
			         : err_set(e, ERR_INTERNAL, "out of memory listing %s", path);
		}
		free(names[i]);
	}
	free(names);
	return rc;
}

static int add_path(struct arena *a, struct path_list *list, const char *path, bool named_by_user, int depth,
                    struct err *e)
{
	struct stat st = {0};
	if (file_list_is_unique(path))
		return add_file(a, list, path, &st, e);
	if (stat(path, &st) < 0) {
		// The file was removed after the listing, or is a link to nothing. A file that exists but cannot be
		// read must not be treated as removed: its policies would be dropped.
		if (!named_by_user && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
			return 0;
		return err_set_code(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno, "cannot read %s: %s", path,
		                    strerror(errno));
	}
	if (S_ISDIR(st.st_mode))
		return add_folder(a, list, path, depth, e);
	const char *slash = strrchr(path, '/');
	if (!named_by_user && !is_policy_name(slash ? slash + 1 : path))
		return 0;
	if (file_check_regular(path, e) < 0)
		return err_wrap(e, named_by_user ? "policy files" : "take it out of the folder");
	return add_file(a, list, path, &st, e);
}

int file_list_read(struct arena *a, const char *const *paths, size_t n_paths, struct path_list *ret_list, struct err *e)
{
	*ret_list = (struct path_list){.fingerprint = HASH_START};
	for (size_t i = 0; i < n_paths; i++)
		if (add_path(a, ret_list, paths[i], true, 0, e) < 0)
			return -1;
	return 0;
}

// ---- documents ----

int file_list_each_document(const char *const *paths, size_t n_paths, const char *kind, bool report_unreadable,
                            file_document_fn *fn, void *arg, struct buf *report, size_t *n_errors, struct err *e)
{
	struct arena a, tree;
	struct path_list list;
	struct doc_file doc;
	struct err why;
	struct schema_errors *errors = malloc(sizeof *errors);
	if (!errors)
		return err_no_memory(e);
	arena_init(&a, LIST_ARENA_MAX);
	int rc = file_list_read(&a, paths, n_paths, &list, e);
	for (size_t i = 0; rc == 0 && i < list.n; i++) {
		arena_init(&tree, FILE_TREE_MAX);
		if (doc_read_yaml(&tree, list.paths[i], &doc, &why) == 0) {
			schema_errors_init(errors, doc.name);
			for (size_t k = 0; rc == 0 && k < doc.n_roots; k++)
				if (strcmp(doc_get_text(doc.roots[k], "kind", ""), kind) == 0)
					rc = fn(arg, doc.roots[k], errors, e);
			*n_errors += errors->n + errors->dropped;
			schema_errors_print(errors, report);
		} else if (report_unreadable) {
			print_to(report, "%s\n", why.msg);
			(*n_errors)++;
		}
		arena_done(&tree);
	}
	arena_done(&a);
	free(errors);
	return rc;
}
