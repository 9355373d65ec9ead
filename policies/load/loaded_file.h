// SPDX-License-Identifier: Apache-2.0
// One policy file: the policies of its last valid version, and the errors of the present version.
#ifndef GPUSCALE_POLICIES_LOAD_LOADED_FILE_H
#define GPUSCALE_POLICIES_LOAD_LOADED_FILE_H

#include <stddef.h>
#include <stdint.h>

struct policy_ref;

// Shared between sets; immutable.
struct loaded_file {
	int refs;
	uint64_t stamp; // of the file on disk (file_list.h)
	char *path;
	struct policy_ref **bodies; // of the last valid version
	size_t n;
	size_t n_price_books; // of the present version, valid or not
	size_t n_errors;
	char *report; // "file:line:col: path: message\n" per error; NULL without errors
};

// Reads and decodes the file. `previous` is the result of the last reading, or NULL: unchanged policies are reused, and
// an invalid file keeps all policies of `previous`. The caller owns a reference to the result; NULL when memory is
// exhausted.
struct loaded_file *loaded_file_read(const char *path, uint64_t stamp, const struct loaded_file *previous);
struct loaded_file *loaded_file_ref(struct loaded_file *f);
void loaded_file_unref(struct loaded_file *f); // f may be NULL

#endif
