// SPDX-License-Identifier: Apache-2.0
// The pools (GPUPool) of files and folders, and the rules between pools and policies.
#ifndef GPUSCALE_POLICIES_LOAD_POOL_SET_H
#define GPUSCALE_POLICIES_LOAD_POOL_SET_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct buf;
struct err;
struct gpu_pool;
struct policy;

#define POOL_SET_MAX 256

struct pool_set {
	struct arena arena; // the memory that the pools point into
	struct gpu_pool *pools;
	size_t n; // the valid ones, in the order of the files
	size_t n_errors;
};

// Reads the GPUPool documents of the paths (file_list.h) and skips other kinds. Appends every error of a pool to
// `report` as "file:line:col: path: message", and with `report_unreadable` the files that cannot be parsed. Returns 0,
// or -1 and *e when a path cannot be read, memory is exhausted or there are too many pools. In both cases the caller
// releases the set.
int pool_set_load(struct pool_set *ret_set, const char *const *paths, size_t n_paths, bool report_unreadable,
                  struct buf *report, struct err *e);
void pool_set_done(struct pool_set *set);

// Checks the rules between the pools and `policies`: two pools with one name or that claim one policy, entries that
// name a policy that is not among `policies` (not checked when there are none), and a cap or budget below the sum of
// the minimums. Appends the errors to `report`; returns how many.
size_t pool_set_check(const struct pool_set *set, const struct policy *const *policies, size_t n_policies,
                      struct buf *report);

#endif
