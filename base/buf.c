// SPDX-License-Identifier: Apache-2.0
#include "base/buf.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file_open.h"

void buf_init(struct buf *b, size_t max_bytes)
{
	assert(max_bytes < SIZE_MAX / 2); // so that no sum or growth below can overflow
	*b = (struct buf){.max = max_bytes};
}

void buf_done(struct buf *b)
{
	size_t max = b->max;
	free(b->data);
	buf_init(b, max);
}

void buf_wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_done(b);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

int buf_reserve(struct buf *b, size_t more)
{
	if (b->failed || more > b->max || b->len > b->max - more) {
		b->failed = true;
		return -1;
	}
	size_t need = b->len + more + 1;
	if (need <= b->cap)
		return 0;
	size_t cap = b->cap ? b->cap : 64;
	while (cap < need)
		cap += cap / 2;
	if (cap > b->max + 1)
		cap = b->max + 1;
	char *data = realloc(b->data, cap);
	if (!data) {
		b->failed = true;
		return -1;
	}
	b->data = data;
	b->cap = cap;
	return 0;
}

int buf_put(struct buf *b, const void *data, size_t len)
{
	if (buf_reserve(b, len) < 0)
		return -1;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
	return 0;
}

int buf_puts(struct buf *b, const char *s)
{
	return buf_put(b, s, strlen(s));
}

int buf_putc(struct buf *b, char c)
{
	return buf_put(b, &c, 1);
}

int buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	va_copy(again, ap);
	size_t room = b->cap > b->len ? b->cap - b->len : 0;
	int n = vsnprintf(room ? b->data + b->len : NULL, room, fmt, ap);
	int rc = -1;
	if (n >= 0 && buf_reserve(b, (size_t)n) == 0) {
		if ((size_t)n >= room)
			vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
		rc = 0;
	} else {
		b->failed = true;
		if (b->data)
			b->data[b->len] = '\0'; // undo what the first attempt wrote
	}
	va_end(again);
	return rc;
}

int buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int rc = buf_vprintf(b, fmt, ap);
	va_end(ap);
	return rc;
}

const char *buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}

int buf_read_opened(struct buf *b, int fd, const char *name, struct err *e)
{
	int rc = 0;
	for (;;) {
		char chunk[16384];
		ssize_t n = read(fd, chunk, sizeof chunk);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			rc = err_set_code(e, ERR_IO, errno, "cannot read %s: %s", name, strerror(errno));
			break;
		}
		if (n == 0)
			break;
		if ((size_t)n > b->max - b->len) {
			b->failed = true;
			rc = err_set(e, ERR_LIMIT, "%s is larger than the ceiling of %zu bytes", name, b->max);
			break;
		}
		if (buf_put(b, chunk, (size_t)n) < 0) {
			rc = err_set(e, ERR_INTERNAL, "cannot read %s: out of memory", name);
			break;
		}
	}
	close(fd);
	return rc;
}

int buf_read_file(struct buf *b, const char *path, struct err *e)
{
	int fd = file_open(path, e);
	return fd < 0 ? -1 : buf_read_opened(b, fd, path, e);
}

int buf_read_argument(struct buf *b, const char *path, struct err *e)
{
	int fd = strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0) : file_open_argument(path, e);
	if (fd >= 0)
		return buf_read_opened(b, fd, strcmp(path, "-") == 0 ? "standard input" : path, e);
	return strcmp(path, "-") == 0
	               ? err_set_code(e, ERR_IO, errno, "cannot read standard input: %s", strerror(errno))
	               : -1;
}
