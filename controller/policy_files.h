// SPDX-License-Identifier: Apache-2.0
// From paths as a user gives them to the sorted list of policy files behind them.
#ifndef GPUSCALE_CONTROLLER_POLICY_FILES_H
#define GPUSCALE_CONTROLLER_POLICY_FILES_H

#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;

struct path_list {
	const char **paths; // in the arena
	uint64_t *stamps;   // of size, inode and modification time of each; the same for ever for standard input
	size_t n, cap;
	uint64_t fingerprint; // of names, sizes, inodes and modification times
};

// Expands files and folders as policy_set_load says. ERR_NOT_FOUND, ERR_IO, ERR_LIMIT naming the path.
int policy_files_list(struct arena *a, const char *const *paths, size_t n_paths, struct path_list *ret_list,
                      struct err *e);

#endif
