// SPDX-License-Identifier: Apache-2.0
#include "policies/load/file_list.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/file_open.h"
#include "base/hash.h"

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
		struct listed_file *grown = arena_calloc(a, cap, sizeof *grown);
		if (!grown)
			return err_set(e, ERR_INTERNAL, "out of memory listing policy files");
		if (list->n)
			memcpy(grown, list->files, list->n * sizeof *grown);
		list->files = grown;
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
	list->files[list->n++] = (struct listed_file){copy, stamp};
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
