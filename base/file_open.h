// SPDX-License-Identifier: Apache-2.0
// Opens the files that a flag, a configuration file or a folder names. Only regular files and /dev/null are opened:
// opening a named pipe, a socket or a terminal would block the whole process until another process writes to it.
#ifndef GPUSCALE_BASE_FILE_OPEN_H
#define GPUSCALE_BASE_FILE_OPEN_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct stat;

// Opens the regular file at path for reading. Returns a descriptor, which the caller closes, or -1 and *e:
// ERR_NOT_FOUND, ERR_IO, or ERR_INPUT when the path is not a regular file. Never blocks.
int file_open(const char *path, struct err *e);

// Opens the regular file `name` of the directory that `dir_fd` has opened, for a directory in which less privileged
// users may write: a symbolic link is refused, so the file is one of that directory. Fills *ret_st with the state of
// the opened file. Returns a descriptor, which the caller closes, or -1 and *e as file_open. Never blocks.
int file_open_in(int dir_fd, const char *name, struct stat *ret_st, struct err *e);

// Like file_open, but also accepts an inherited pipe, which is read from its current position. Reads may block until
// the writer sends data, so use this only for the inputs of one-shot commands.
int file_open_argument(const char *path, struct err *e);

// Returns the descriptor of a pipe, socket or terminal that this process inherited and that path names, or -1. Such
// paths are /dev/stdin, /dev/fd/N and /proc/self/fd/N, including the shell's <(command). The data can be read only
// once.
int file_inherited_pipe(const char *path);

// Checks that path names a regular file, for libraries that open the file themselves (OpenSSL, libcurl). Returns 0, or
// -1 and *e as file_open. Returns 0 as well when the file is missing or unreadable, because the library reports that
// error itself.
int file_check_regular(const char *path, struct err *e);

// Detects that a file has changed without reading it. Symbolic links are followed, so the stamp changes when the
// kubelet replaces a mounted Secret by renaming a link. Take the stamp before you read the file: a change in between is
// then detected the next time.
struct file_stamp { // without padding: memcmp() compares arrays of stamps
	int64_t mtime_s, mtime_ns, size;
	uint64_t inode, device;
};

// Returns the stamp of the file at `path`. It is all zero when the file does not exist or `path` is NULL.
struct file_stamp file_stamp_of(const char *path);
// Returns the stamp of a file whose state the caller has read.
struct file_stamp file_stamp_from(const struct stat *st);
bool file_stamp_is_same(const struct file_stamp *a, const struct file_stamp *b);

#endif
