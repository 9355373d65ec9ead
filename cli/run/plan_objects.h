// SPDX-License-Identifier: Apache-2.0
// The policies and the pools of a cluster for `gpuscale plan`, as the controller decodes them.
#ifndef GPUSCALE_CLI_RUN_PLAN_OBJECTS_H
#define GPUSCALE_CLI_RUN_PLAN_OBJECTS_H

#include <stddef.h>

#include "policies/load/pool_set.h"

struct err;
struct path_options;
struct policy;
struct policy_scope;
struct pool_object;
struct pools;
struct schema_errors;

struct plan_objects {
	const struct policy **policies; // the valid ones, by namespace and name; each belongs to a policy_ref
	size_t n_policies;
	struct pool_object *pools[POOL_SET_MAX]; // taken over by plan_pools_new(), which leaves NULL
	size_t n_pools;
	size_t n_errors;                        // objects that are invalid; standard error has their errors
	struct schema_errors *errors, *unknown; // of the current object
};

// Reads the policies of all namespaces, because a pool is shared among all of its members, and all pools; a cluster
// without the custom resource has none. Prints errors on standard error, and returns the exit code; an invalid policy
// outside of the namespace of `shown` is left out silently. Call plan_objects_done() in any case.
int plan_objects_read(struct plan_objects *o, const struct policy_scope *shown);
void plan_objects_done(struct plan_objects *o);

// Returns the GPUPools of the cluster, which it takes from `objects`, or where `objects` is NULL those of the files;
// NULL and *e when one in a file is invalid. Prints the errors of pools in files on standard error.
struct pools *plan_pools_new(struct plan_objects *objects, const struct path_options *files, struct err *e);

#endif
