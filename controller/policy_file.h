// SPDX-License-Identifier: Apache-2.0
// One policy file as it was read last: its policies, or what is wrong with it beside the last good ones.
#ifndef GPUSCALE_CONTROLLER_POLICY_FILE_H
#define GPUSCALE_CONTROLLER_POLICY_FILE_H

#include <stddef.h>
#include <stdint.h>

struct policy_body;

struct policy_file { // shared between sets, never changed
	int refs;
	uint64_t stamp; // of what is on disk (policy_files.h)
	char *path;
	struct policy_body **bodies; // those that a good reading gave; a bad one keeps them
	size_t n;
	size_t n_errors;
	char *report; // "file:line:col: path: message\n" per error; NULL: none
};

// Reads and decodes the file. previous (may be NULL): the same file read before; policies that say what they said then
// are taken over, not made anew, and a file that is bad now keeps all of its policies. NULL when memory ends.
struct policy_file *policy_file_read(const char *path, uint64_t stamp, const struct policy_file *previous);
struct policy_file *policy_file_ref(struct policy_file *f);
void policy_file_unref(struct policy_file *f); // NULL is fine

#endif
