// SPDX-License-Identifier: Apache-2.0
// The policies and the pools of a cluster for `gpuscale plan`, as the controller decodes them.
#ifndef GPUSCALE_CLI_RUN_PLAN_OBJECTS_H
#define GPUSCALE_CLI_RUN_PLAN_OBJECTS_H

#include <stddef.h>

#include "policies/load/pool_set.h"

struct policy;
struct policy_scope;
struct pool_object;
struct schema_errors;

struct plan_objects {
	const struct policy **policies; // the valid ones, by namespace and name; each belongs to a policy_ref
	size_t n_policies;
	struct pool_object *pools[POOL_SET_MAX]; // taken over by plan_pools_share(), which leaves NULL
	size_t n_pools;
	size_t n_errors;                        // objects that are invalid; standard error has their errors
	struct schema_errors *errors, *unknown; // of the current object
};

// Reads the policies of all namespaces, because a pool is shared among all of its members, and all pools; a cluster
// without the custom resource has none. Prints errors on standard error, and returns the exit code; an invalid policy
// outside of the namespace of `shown` is left out silently. Call plan_objects_done() in any case.
int plan_objects_read(struct plan_objects *o, const struct policy_scope *shown);
void plan_objects_done(struct plan_objects *o);

#endif
