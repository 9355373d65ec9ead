// SPDX-License-Identifier: Apache-2.0
// A growable byte buffer with a limit. Appending past the limit changes nothing, sets `failed` and returns -1;
// callers may append many times and look at `failed` once; from then on nothing more is taken. The end of memory does
// the same. data is always NUL-terminated once anything was appended. What is appended must not lie in the buffer
// itself.
#ifndef GPUSCALE_BASE_BUF_H
#define GPUSCALE_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data; // owned; NULL while nothing was appended
	size_t len; // bytes without the terminator
	size_t cap;
	size_t max; // limit for len
	bool failed;
};

// Empty buffer that may grow to max_bytes (below SIZE_MAX / 2). Allocates nothing.
void buf_init(struct buf *b, size_t max_bytes);
// The same as the value of a declaration: struct buf out = BUF(OUTPUT_MAX);
#define BUF(limit) ((struct buf){.max = (limit)})
// Frees the memory; the buffer is as after buf_init.
void buf_done(struct buf *b);
// As buf_done, and overwrites the memory before: for secrets.
void buf_wipe(struct buf *b);
// len = 0, failed = false; keeps the memory.
void buf_reset(struct buf *b);
// Makes room for `more` bytes in one allocation, so that appending them does not grow the buffer step by step.
int buf_reserve(struct buf *b, size_t more);
int buf_put(struct buf *b, const void *data, size_t len);
int buf_puts(struct buf *b, const char *s);
int buf_putc(struct buf *b, char c);
int buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_vprintf(struct buf *b, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
// The text so far, "" when empty. Valid until the next append.
const char *buf_str(const struct buf *b);
// Reads a whole regular file and appends it to `b`. Returns 0, or -1 and *e, which names the path: the errors of
// file_open (base/file_open.h), ERR_IO, ERR_LIMIT when len would exceed b->max, ERR_INTERNAL. After an error, `b` may
// contain a part of the file.
struct err;
int buf_read_file(struct buf *b, const char *path, struct err *e);
// Like buf_read_file, for a file that the caller has opened. Closes `fd`; `name` is only for messages.
int buf_read_opened(struct buf *b, int fd, const char *name, struct err *e);
// Like buf_read_file, for a path on the command line: path may also be "-" (standard input) or a pipe that the process
// inherited. Both are read until their writer closes them.
int buf_read_argument(struct buf *b, const char *path, struct err *e);

#endif
