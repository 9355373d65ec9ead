// SPDX-License-Identifier: Apache-2.0
#include "exporter/gpu_count.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/process/log.h"
#include "exporter/device.h"

#define FILE_BYTES_MAX 64
#define PATH_BYTES     4096

void gpu_count_init(struct gpu_count *c, const char *path, bool read_only, struct log *log)
{
	struct buf text;
	struct err e;
	*c = (struct gpu_count){.path = path, .read_only = read_only, .log = log};
	if (!path)
		return;
	buf_init(&text, FILE_BYTES_MAX);
	int rc = buf_read_file(&text, path, &e);
	if (rc == 0) {
		int64_t n = 0;
		rc = num_parse_i64(buf_str(&text), strcspn(buf_str(&text), "\n"), 0, DEVICES_MAX, &n, &e);
		c->most = (size_t)n;
	}
	if (rc < 0 && e.kind != ERR_NOT_FOUND)
		LOG(log, LOG_WARNING, "GPU count file not valid, starting anew", LOG_S("file", path),
		    LOG_S("err", e.msg));
	buf_done(&text);
}

// The file is replaced as a whole, so that a crash leaves the previous number.
static int write_count(const struct gpu_count *c)
{
	char fresh[PATH_BYTES], text[FILE_BYTES_MAX];
	if (snprintf(fresh, sizeof fresh, "%s.new", c->path) >= (int)sizeof fresh) {
		errno = ENAMETOOLONG;
		return -1;
	}
	int len = snprintf(text, sizeof text, "%zu\n", c->most);
	int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return -1;
	bool ok = write(fd, text, (size_t)len) == len;
	return close(fd) == 0 && ok ? rename(fresh, c->path) : -1;
}

size_t gpu_count_missing(struct gpu_count *c, size_t n)
{
	if (!c->path || n == c->most)
		return 0;
	if (n < c->most)
		return c->most - n;
	c->most = n;
	if (!c->read_only && write_count(c) < 0)
		LOG(c->log, LOG_WARNING, "GPU count file not written", LOG_S("file", c->path),
		    LOG_S("err", strerror(errno)));
	return 0;
}
