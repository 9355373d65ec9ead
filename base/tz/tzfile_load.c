// SPDX-License-Identifier: Apache-2.0
// Finding and reading the file of a time zone.
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file_open.h"
#include "base/num.h"
#include "base/text.h"
#include "base/tz/tzfile.h"

#define NAMES_MAX   2048 // considered for did-you-mean
#define NAMES_DEPTH 3
#define PATH_BYTES  512
#define SHOWN_BYTES 80

// Letters, digits, '_', '-', '+', in parts between single slashes: what can be a name, and cannot leave the folder.
static bool is_zone_name(const char *s)
{
	size_t len = strnlen(s, TZFILE_NAME_BYTES_MAX + 1);
	if (len == 0 || len > TZFILE_NAME_BYTES_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = s[i];
		bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
		            c == '-' || c == '+';
		bool slash = c == '/' && i > 0 && i + 1 < len && s[i - 1] != '/';
		if (!word && !slash)
			return false;
	}
	return true;
}

struct name_list {
	char *names[NAMES_MAX];
	size_t n;
};

// Zones begin with a capital letter; what does not (posix, right, tables) is none.
static void list_names(struct name_list *l, const char *dir, const char *prefix, int depth)
{
	DIR *d = depth < NAMES_DEPTH ? opendir(dir) : NULL;
	if (!d)
		return;
	const struct dirent *entry;
	while ((entry = readdir(d)) && l->n < NAMES_MAX) {
		char path[PATH_BYTES], name[PATH_BYTES];
		struct stat st;
		if (entry->d_name[0] < 'A' || entry->d_name[0] > 'Z')
			continue;
		int path_len = snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		int name_len = snprintf(name, sizeof name, "%s%s", prefix, entry->d_name);
		if (path_len >= PATH_BYTES || name_len >= PATH_BYTES - 1 || stat(path, &st) < 0)
			continue;
		if (S_ISDIR(st.st_mode)) {
			name[name_len] = '/';
			name[name_len + 1] = '\0';
			list_names(l, path, name, depth + 1);
		} else if ((l->names[l->n] = strdup(name))) {
			l->n++;
		}
	}
	closedir(d);
}

static int fail_unknown(const char *dir, const char *name, struct err *e)
{
	struct name_list *l = calloc(1, sizeof *l);
	if (!l)
		return err_no_memory(e);
	list_names(l, dir, "", 0);
	const char *close = num_closest_name(name, (const char *const *)l->names, l->n);
	char shown[SHOWN_BYTES];
	text_show(shown, sizeof shown, name, strlen(name));
	if (close)
		err_set(e, ERR_NOT_FOUND, "unknown time zone \"%s\", did you mean %s?", shown, close);
	else if (l->n == 0)
		err_set(e, ERR_NOT_FOUND,
		        "time zone \"%s\" is not known here: there is no time zone database in %s (package tzdata)",
		        shown, dir);
	else
		err_set(e, ERR_NOT_FOUND, "unknown time zone \"%s\": write it as in Europe/Zurich, or UTC", shown);
	for (size_t i = 0; i < l->n; i++)
		free(l->names[i]);
	free(l);
	return -1;
}

static int read_file(const char *path, unsigned char *data, size_t *ret_len, struct err *e)
{
	struct err why;
	int fd = file_open(path, &why);
	if (fd < 0 && why.kind == ERR_INPUT) // a folder of zones, or not a regular file
		return err_set(e, ERR_NOT_FOUND, "%s", why.msg);
	if (fd < 0)
		return err_set_code(e, why.code == ENOTDIR ? ERR_NOT_FOUND : why.kind, why.code, "cannot read %s: %s",
		                    path, strerror(why.code));
	size_t len = 0;
	ssize_t n;
	while ((n = read(fd, data + len, TZFILE_BYTES_MAX + 1 - len)) > 0)
		len += (size_t)n;
	int failed = n < 0 ? errno : 0;
	close(fd);
	if (failed)
		return err_set_code(e, ERR_IO, failed, "cannot read %s: %s", path, strerror(failed));
	*ret_len = len;
	return 0;
}

int tzfile_load(const char *dir, const char *name, struct arena *a, struct tz_table *ret, struct err *e)
{
	*ret = (struct tz_table){0};
	if (strcmp(name, "UTC") == 0)
		return 0;
	const char *from_env = getenv("TZDIR");
	if (!dir)
		dir = from_env && from_env[0] ? from_env : TZFILE_DIR;
	if (!is_zone_name(name)) {
		char shown[SHOWN_BYTES];
		text_show(shown, sizeof shown, name, strlen(name));
		return err_set(e, ERR_INPUT,
		               "\"%s\" is not the name of a time zone: write it as in Europe/Zurich, or UTC", shown);
	}
	char path[PATH_BYTES];
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= PATH_BYTES)
		return err_set(e, ERR_LIMIT, "the path of time zone %s has more than the ceiling of %d bytes", name,
		               PATH_BYTES);
	unsigned char *data = malloc(TZFILE_BYTES_MAX + 1);
	if (!data)
		return err_no_memory(e);
	size_t len = 0;
	struct err why;
	err_clear(&why);
	int rc = read_file(path, data, &len, &why);
	if (rc < 0 && why.kind == ERR_NOT_FOUND)
		fail_unknown(dir, name, e);
	else if (rc < 0 && e)
		*e = why;
	else if (rc == 0)
		rc = tzfile_parse(name, data, len, a, ret, e);
	free(data);
	return rc;
}
