// SPDX-License-Identifier: Apache-2.0
// Expands the paths that a user names to the list of policy files.
#ifndef GPUSCALE_POLICIES_LOAD_FILE_LIST_H
#define GPUSCALE_POLICIES_LOAD_FILE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;

#define POLICY_FILES_MAX 20000
#define POLICY_DEPTH_MAX 16 // levels of folders

struct listed_file {
	const char *path; // in the arena
	uint64_t stamp; // size, inode and modification time, combined; constant for an input that can be read only once
};
struct path_list {
	struct listed_file *files; // in the arena
	size_t n, cap;
	uint64_t fingerprint; // fingerprint of names, sizes, inodes and modification times
};

// Returns whether path is standard input ("-") or an inherited pipe (base/file_open.h), which can be read only once.
bool file_list_is_unique(const char *path);
// Expands files and folders as file_set_load describes. Returns 0, or -1 and *e, which names the path: ERR_NOT_FOUND,
// ERR_IO, ERR_LIMIT, or ERR_INPUT (not a regular file).
int file_list_read(struct arena *a, const char *const *paths, size_t n_paths, struct path_list *ret_list,
                   struct err *e);

#endif
