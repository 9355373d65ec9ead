// SPDX-License-Identifier: Apache-2.0
#include "exporter/sysfs/sysfs.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

bool sysfs_read_text(const char *dir, const char *name, char out[SYSFS_TEXT_BYTES])
{
	char path[SYSFS_PATH_BYTES];
	out[0] = '\0';
	if (snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
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
