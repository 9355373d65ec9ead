// SPDX-License-Identifier: Apache-2.0
// Expands the paths that a user names to the list of policy files.
#ifndef GPUSCALE_POLICIES_LOAD_FILE_LIST_H
#define GPUSCALE_POLICIES_LOAD_FILE_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct doc_node;
struct err;
struct schema_errors;

#define POLICY_FILES_MAX 20000
#define POLICY_DEPTH_MAX 16 // levels of folders

struct path_list {
	const char **paths; // in the arena
	uint64_t *stamps;   // size, inode and modification time of each file, combined; constant for inputs that can be
	                    // read only once
	size_t n, cap;
	uint64_t fingerprint; // fingerprint of names, sizes, inodes and modification times
};

// Returns whether path is standard input ("-") or an inherited pipe (base/file_open.h), which can be read only once.
bool file_list_is_unique(const char *path);
// Expands files and folders as file_set_load describes. Returns 0, or -1 and *e, which names the path: ERR_NOT_FOUND,
// ERR_IO, ERR_LIMIT, or ERR_INPUT (not a regular file).
int file_list_read(struct arena *a, const char *const *paths, size_t n_paths, struct path_list *ret_list,
                   struct err *e);

// Receives a document of the kind, whose file is errors->file. Reports faults of the document to `errors`. Returns -1
// and *e to stop.
typedef int file_document_fn(void *arg, const struct doc_node *root, struct schema_errors *errors, struct err *e);
// Calls `fn` with every document of `kind` in the paths. Appends the reported errors to `report` as
// "file:line:col: path: message", and with `report_unreadable` the files that cannot be parsed; adds their number to
// *n_errors. Returns 0, or -1 and *e: that of file_list_read or `fn`, or memory is exhausted.
int file_list_each_document(const char *const *paths, size_t n_paths, const char *kind, bool report_unreadable,
                            file_document_fn *fn, void *arg, struct buf *report, size_t *n_errors, struct err *e);

#endif
