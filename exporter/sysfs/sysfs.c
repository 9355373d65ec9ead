// SPDX-License-Identifier: Apache-2.0
#include "exporter/sysfs/sysfs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/num.h"

// Joins two parts of a path. False if the result does not fit.
static bool join(char out[SYSFS_PATH_BYTES], const char *dir, const char *name)
{
	return snprintf(out, SYSFS_PATH_BYTES, "%s/%s", dir, name) < SYSFS_PATH_BYTES;
}

bool sysfs_read_text(const char *dir, const char *name, char out[SYSFS_TEXT_BYTES])
{
	char path[SYSFS_PATH_BYTES];
	out[0] = '\0';
	if (!join(path, dir, name))
		return false;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, out, SYSFS_TEXT_BYTES - 1);
	close(fd);
	size_t len = n > 0 ? (size_t)n : 0;
	while (len > 0 && (out[len - 1] == '\n' || out[len - 1] == ' ' || out[len - 1] == '\t'))
		len--;
	out[len] = '\0';
	return len > 0;
}

bool sysfs_read_i64(const char *dir, const char *name, int64_t *ret_value)
{
	char text[SYSFS_TEXT_BYTES];
	return sysfs_read_text(dir, name, text) &&
	       num_parse_i64(text, strlen(text), INT64_MIN, INT64_MAX, ret_value, NULL) == 0;
}

bool sysfs_find_key(const char *text, const char *key, char *out, size_t size)
{
	size_t key_len = strlen(key);
	for (const char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		if (len > key_len && line[key_len] == '=' && strncmp(line, key, key_len) == 0) {
			size_t value_len = len - key_len - 1;
			if (value_len == 0 || value_len >= size)
				return false;
			memcpy(out, line + key_len + 1, value_len);
			out[value_len] = '\0';
			return true;
		}
		line += len + (line[len] == '\n');
	}
	return false;
}

static bool exists(const char *dir, const char *name)
{
	char path[SYSFS_PATH_BYTES];
	struct stat st;
	return join(path, dir, name) && stat(path, &st) == 0;
}

bool sysfs_find_dir(const char *dir, const char *prefix, int max, char out[SYSFS_PATH_BYTES])
{
	for (int i = 0; i < max; i++) {
		char name[64];
		snprintf(name, sizeof name, "%s%d", prefix, i);
		if (exists(dir, name))
			return join(out, dir, name);
	}
	return false;
}
