// SPDX-License-Identifier: Apache-2.0
// The active policies, read from files and folders. A file that becomes invalid keeps its last valid policies, and an
// invalid file does not affect the others.
#ifndef GPUSCALE_POLICIES_LOAD_FILE_SET_H
#define GPUSCALE_POLICIES_LOAD_FILE_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct policy;
struct loaded_file; // shared between sets

#define POLICY_SET_MAX 20000

struct file_set {
	struct loaded_file **files;
	size_t n_files;
	const struct policy **policies; // sorted by namespace and name; each belongs to a policy_ref (policy_ref.h)
	size_t n_policies;
	size_t n_price_books; // documents of kind PriceBook, which are checked and not kept
	size_t n_bad_files;   // files with errors; their last valid policies, if any, are still in `policies`
	size_t n_errors;
	bool is_stale;        // set it in `previous` to read every file again, not only changed ones
	uint64_t fingerprint; // fingerprint of the paths, sizes and modification times of its files
};

// Reads all paths into ret_set. A path is a file, or a folder: its *.yaml, *.yml and *.json files, recursively, without
// hidden names and *_test.yaml. Appends errors ("file:line:col: path: message\n") to `report`. From `previous`, which
// may be NULL, it reuses files with unchanged size, inode and modification time, unchanged policies of changed files,
// and the last valid policies of files that are now invalid. Of two policies with the same namespace and name, or with
// the same target, it keeps the one in `previous`, else the first, and reports the other. Returns 0, or -1 and *e when
// a path cannot be read or a limit is exceeded.
int file_set_load(struct file_set *ret_set, const char *const *paths, size_t n_paths, const struct file_set *previous,
                  struct buf *report, struct err *e);
void file_set_done(struct file_set *set);
// Returns the fingerprint of the files on disk, which differs from set->fingerprint after a change; 0 when a path
// cannot be read.
uint64_t file_set_fingerprint(const char *const *paths, size_t n_paths);

// Returns the policy that `key` selects: "namespace/name", or a name that only one policy has; NULL or "" selects the
// only policy of the set. Returns NULL and *e (ERR_INPUT), which lists the policies or suggests a similar name.
const struct policy *file_set_pick(const struct file_set *set, const char *key, struct err *e);

#endif
