// SPDX-License-Identifier: Apache-2.0
// The rules (GPUIdleRule) of files and folders.
#ifndef GPUSCALE_POLICIES_LOAD_IDLE_RULE_SET_H
#define GPUSCALE_POLICIES_LOAD_IDLE_RULE_SET_H

#include <stddef.h>

#include "base/arena.h"

struct buf;
struct err;
struct idle_rule;

#define IDLE_RULES_MAX 64

struct idle_rule_set {
	struct arena arena; // the memory that the rules point into
	struct idle_rule *rules;
	size_t n; // the valid ones, in the order of the files
	size_t n_errors;
};

// Reads the GPUIdleRule documents of the paths (file_list.h); skips other kinds, and files that cannot be parsed, which
// the loader of policies reports. Appends every error of a rule to `report` as "file:line:col: path: message". Returns
// 0, or -1 and *e when a path cannot be read, memory is exhausted or there are too many rules. In both cases the caller
// releases the set.
int idle_rule_set_load(struct idle_rule_set *ret_set, const char *const *paths, size_t n_paths, struct buf *report,
                       struct err *e);
void idle_rule_set_done(struct idle_rule_set *set);

#endif
