// SPDX-License-Identifier: Apache-2.0
// What tells that a file has changed, without reading it. Symbolic links are followed, so the renames by which the
// kubelet replaces mounted Secrets are seen. Take the stamp before the reading: a change in between is then seen the
// next time.
#ifndef GPUSCALE_BASE_FILE_STAMP_H
#define GPUSCALE_BASE_FILE_STAMP_H

#include <stdbool.h>
#include <stdint.h>

struct file_stamp {
	int64_t mtime_s, mtime_ns, size;
	uint64_t inode, device;
};

// All zero for a file that is not there, and for NULL.
struct file_stamp file_stamp_of(const char *path);
bool file_stamp_is_same(const struct file_stamp *a, const struct file_stamp *b);

#endif
