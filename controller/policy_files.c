// SPDX-License-Identifier: Apache-2.0
#include "controller/policy_files.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/err.h"
#include "controller/policy_set.h"

#define HASH_START 0xcbf29ce484222325u

// FNV-1a, 64 bit (Fowler, Noll, Vo): enough to notice a change, not meant against an adversary.
static uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
	const unsigned char *p = data;
	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

static bool ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);
	return n >= m && strcmp(s + n - m, suffix) == 0;
}

// Tests live beside policies and are no policies themselves.
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
	if (strcmp(path, "-") == 0)
		return add_file(a, list, path, &st, e);
	if (stat(path, &st) < 0) {
		// Went away between the listing and now, or leads nowhere. What is there and cannot be looked at must
		// not be taken for gone: its policies would end.
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
	// To open one would wait for whoever writes to it, and all else with it.
	if (!named_by_user && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)))
		return err_set(e, ERR_INPUT, "%s: is no regular file: take it out of the folder, or name it by itself",
		               path);
	return add_file(a, list, path, &st, e);
}

int policy_files_list(struct arena *a, const char *const *paths, size_t n_paths, struct path_list *ret_list,
                      struct err *e)
{
	*ret_list = (struct path_list){.fingerprint = HASH_START};
	for (size_t i = 0; i < n_paths; i++)
		if (add_path(a, ret_list, paths[i], true, 0, e) < 0)
			return -1;
	return 0;
}
