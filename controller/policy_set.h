// SPDX-License-Identifier: Apache-2.0
// The policies in force, read from files and folders, and how they change: a file that turns bad keeps its last good
// policies, one bad file never stops the others.
#ifndef GPUSCALE_CONTROLLER_POLICY_SET_H
#define GPUSCALE_CONTROLLER_POLICY_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct policy;
struct policy_file; // shared between sets

#define POLICY_FILES_MAX 20000
#define POLICY_SET_MAX   20000
#define POLICY_DEPTH_MAX 16 // folders in folders

struct policy_set {
	struct policy_file **files;
	size_t n_files;
	const struct policy **policies; // in order of namespace, then name; each in its body (policy_body.h)
	size_t n_policies;
	size_t n_bad_files; // files with errors (their last good policies, if any, are still in `policies`)
	size_t n_errors;
	bool is_stale;        // as `previous`: every file is read again, not only those that look changed
	uint64_t fingerprint; // of the paths, sizes and modification times it was read from
};

// Reads every path: a file, or a folder's *.yaml, *.yml and *.json (recursively, hidden names and *_test.yaml left
// out). Errors
// ("file:line:col: path: message\n") are appended to `report`. `previous` (may be NULL) supplies the files that look
// unchanged (size, inode, modification time), the policies that a changed file still has word for word, and the last
// good policies of files that are bad now. Of two policies with the same namespace/name, or for the same target, the
// one that is in `previous` stays, else the first; the other is an error. -1 and *e only when a path cannot be read at
// all or a ceiling is passed.
int policy_set_load(struct policy_set *ret_set, const char *const *paths, size_t n_paths,
                    const struct policy_set *previous, struct buf *report, struct err *e);
void policy_set_done(struct policy_set *set);
// Fingerprint of what is on disk now; differs from set->fingerprint when something changed. 0 when a path cannot be
// read.
uint64_t policy_set_fingerprint(const char *const *paths, size_t n_paths);

#endif
