// SPDX-License-Identifier: Apache-2.0
#include "cli/policy/rule_files.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "replay/alert_rules.h"

static int is_rule_file(const struct dirent *d)
{
	size_t n = strlen(d->d_name);
	return d->d_name[0] != '.' && ((n > 5 && strcmp(d->d_name + n - 5, ".yaml") == 0) ||
	                               (n > 4 && strcmp(d->d_name + n - 4, ".yml") == 0));
}

static int read_folder(const char *path, struct alert_rules *r, struct arena *a, struct err *e)
{
	struct dirent **entries;
	int rc = 0, n = scandir(path, &entries, is_rule_file, alphasort);
	if (n < 0)
		return err_set_code(e, ERR_IO, errno, "%s: %s", path, strerror(errno));
	if (n == 0)
		rc = err_set(e, ERR_INPUT, "%s: no rule files (*.yaml) in this folder", path);
	for (int i = 0; i < n; i++) {
		const char *file = rc == 0 ? arena_printf(a, "%s/%s", path, entries[i]->d_name) : NULL;
		if (rc == 0)
			rc = file ? alert_rules_add(r, a, file, e) : err_set(e, ERR_INTERNAL, "out of memory");
		free(entries[i]);
	}
	free(entries);
	return rc;
}

static int read_path(const char *path, struct alert_rules *r, struct arena *a, struct err *e)
{
	struct stat st;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return read_folder(path, r, a, e);
	return alert_rules_add(r, a, path, e);
}

static int read_shipped(struct alert_rules *r, struct arena *a, struct err *e)
{
	static const char *const places[] = {"../share/gpuscale/rules", "../../manifests/monitoring/rules"};
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	struct stat st;
	self[n > 0 ? n : 0] = '\0';
	char *slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
		const char *path = arena_printf(a, "%.*s/%s", (int)(slash - self), self, places[i]);
		if (path && stat(path, &st) == 0)
			return read_folder(path, r, a, e);
	}
	return err_set(e, ERR_NOT_FOUND,
	               "the shipped rules are not installed beside the program: name rule files with -f");
}

int rule_files_read(const char *const *paths, size_t n, struct alert_rules *r, struct arena *a, struct err *e)
{
	if (n == 0)
		return read_shipped(r, a, e);
	for (size_t i = 0; i < n; i++)
		if (read_path(paths[i], r, a, e) < 0)
			return -1;
	return 0;
}
