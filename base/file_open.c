// SPDX-License-Identifier: Apache-2.0
#include "base/file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/num.h"

static bool is_regular(const struct stat *st)
{
	return S_ISREG(st->st_mode) || (S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3)); // 1, 3: /dev/null
}

static int fail_kind(const char *path, mode_t mode, struct err *e)
{
	const char *found = S_ISFIFO(mode)   ? "a named pipe"
	                    : S_ISSOCK(mode) ? "a socket"
	                    : S_ISDIR(mode)  ? "a folder"
	                                     : "a device";
	return err_set(e, ERR_INPUT, "cannot read %s: expected a regular file, found %s", path, found);
}

static int fail_open(const char *path, struct err *e)
{
	return err_set_code(e, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, errno, "cannot open %s: %s", path,
	                    strerror(errno));
}

int file_open(const char *path, struct err *e)
{
	// O_NONBLOCK: opening a pipe does not wait for its writer. The flag has no effect on a regular file.
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 && errno == ENXIO) // a socket
		return stat(path, &st) == 0 ? fail_kind(path, st.st_mode, e) : fail_open(path, e);
	if (fd < 0)
		return fail_open(path, e);
	int rc = fstat(fd, &st) < 0 ? fail_open(path, e) : is_regular(&st) ? 0 : fail_kind(path, st.st_mode, e);
	if (rc == 0)
		return fd;
	close(fd);
	return -1;
}

int file_open_in(int dir_fd, const char *name, struct stat *ret_st, struct err *e)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
	if (fd < 0 && errno == ELOOP)
		return err_set(e, ERR_INPUT, "cannot read %s: expected a regular file, found a symbolic link", name);
	if (fd < 0 || fstat(fd, ret_st) < 0)
		fail_open(name, e);
	else if (S_ISREG(ret_st->st_mode))
		return fd;
	else
		fail_kind(name, ret_st->st_mode, e);
	if (fd >= 0)
		close(fd);
	return -1;
}

int file_inherited_pipe(const char *path)
{
	static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
	int64_t fd = strcmp(path, "/dev/stdin") == 0 ? STDIN_FILENO : -1;
	for (size_t i = 0; i < sizeof folders / sizeof folders[0] && fd < 0; i++) {
		size_t len = strlen(folders[i]);
		if (strncmp(path, folders[i], len) == 0 &&
		    num_parse_i64(path + len, strlen(path + len), 0, INT_MAX, &fd, NULL) < 0)
			fd = -1;
	}
	struct stat st;
	return fd >= 0 && fstat((int)fd, &st) == 0 && !is_regular(&st) && !S_ISDIR(st.st_mode) ? (int)fd : -1;
}

int file_open_argument(const char *path, struct err *e)
{
	int pipe = file_inherited_pipe(path);
	if (pipe < 0)
		return file_open(path, e);
	int fd = fcntl(pipe, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? fail_open(path, e) : fd;
}

int file_check_regular(const char *path, struct err *e)
{
	struct stat st;
	return stat(path, &st) < 0 || is_regular(&st) ? 0 : fail_kind(path, st.st_mode, e);
}

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
	return memcmp(a, b, sizeof *a) == 0;
}
