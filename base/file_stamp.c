// SPDX-License-Identifier: Apache-2.0
#include "base/file_stamp.h"

#include <stddef.h>
#include <sys/stat.h>

struct file_stamp file_stamp_of(const char *path)
{
	struct stat st;
	return path && stat(path, &st) == 0 ? file_stamp_from(&st) : (struct file_stamp){0};
}

struct file_stamp file_stamp_from(const struct stat *st)
{
	return (struct file_stamp){.mtime_s = st->st_mtim.tv_sec,
	                           .mtime_ns = st->st_mtim.tv_nsec,
	                           .size = st->st_size,
	                           .inode = st->st_ino,
	                           .device = st->st_dev};
}

bool file_stamp_is_same(const struct file_stamp *a, const struct file_stamp *b)
{
	return a->mtime_s == b->mtime_s && a->mtime_ns == b->mtime_ns && a->size == b->size && a->inode == b->inode &&
	       a->device == b->device;
}
