// SPDX-License-Identifier: Apache-2.0
// The pools of `gpuscale plan`: limits planned decisions as the controller limits them (controller/pool), once the
// decisions of all policies are known.
#ifndef GPUSCALE_CLI_RUN_PLAN_POOLS_H
#define GPUSCALE_CLI_RUN_PLAN_POOLS_H

#include <stddef.h>
#include <stdint.h>

struct decision;
struct err;
struct plan_objects;
struct policy;

struct plan_pool_item {
	const struct policy *policy;
	const char *key;           // of the binding; NULL: the policy has one
	struct decision *decision; // limited to what the pool grants; NULL: the target could not be read
	int32_t status_replicas;
	char *pool; // why, for struct decided; NULL: no pool limited it. To be freed
};

// Shares the GPUPools of the cluster, or where `objects` is NULL those of the files at the paths, among the items.
// Prints the errors of pools in files on standard error. Returns 0, or -1 and *e: then no decision has changed, because
// the controller does not start with an invalid pool in a file. An invalid object holds its members, as in the
// controller.
int plan_pools_share(struct plan_objects *objects, const char *const *paths, size_t n_paths,
                     struct plan_pool_item *items, size_t n, int64_t now_ms, struct err *e);

#endif
