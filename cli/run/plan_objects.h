// SPDX-License-Identifier: Apache-2.0
// The policies and the pools of a cluster for `gpuscale plan`, as the controller decodes them, and what the pools leave
// of the planned decisions.
#ifndef GPUSCALE_CLI_RUN_PLAN_OBJECTS_H
#define GPUSCALE_CLI_RUN_PLAN_OBJECTS_H

#include <stddef.h>
#include <stdint.h>

#include "policies/load/pool_set.h"

struct decision;
struct err;
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

struct plan_pool_item {
	const struct policy *policy;
	const char *key;           // key of the binding; NULL: the policy has one
	struct decision *decision; // limited to what the pool grants; NULL: the target could not be read
	int32_t status_replicas;
	char *pool; // why, for struct decided; NULL: no pool limited it. To be freed
};

// Limits planned decisions as the controller limits them (controller/pool), once the decisions of all policies are
// known: shares the GPUPools of the cluster, or where `objects` is NULL those of the files at the paths, among the
// items. Prints the errors of pools in files on standard error. Returns 0, or -1 and *e: then no decision has changed,
// because the controller does not start with an invalid pool in a file. An invalid object holds its members, as in the
// controller.
int plan_pools_share(struct plan_objects *objects, const char *const *paths, size_t n_paths,
                     struct plan_pool_item *items, size_t n, int64_t now_ms, struct err *e);

#endif
