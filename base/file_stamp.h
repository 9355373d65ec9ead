// SPDX-License-Identifier: Apache-2.0
// Detects that a file has changed without reading it. Symbolic links are followed, so the stamp changes when the
// kubelet replaces a mounted Secret by renaming a link. Take the stamp before you read the file: a change in between is
// then detected the next time.
#ifndef GPUSCALE_BASE_FILE_STAMP_H
#define GPUSCALE_BASE_FILE_STAMP_H

#include <stdbool.h>
#include <stdint.h>

struct stat;

struct file_stamp {
	int64_t mtime_s, mtime_ns, size;
	uint64_t inode, device;
};

// Returns the stamp of the file at `path`. It is all zero when the file does not exist or `path` is NULL.
struct file_stamp file_stamp_of(const char *path);
// Returns the stamp of a file whose state the caller has read.
struct file_stamp file_stamp_from(const struct stat *st);
bool file_stamp_is_same(const struct file_stamp *a, const struct file_stamp *b);

#endif
