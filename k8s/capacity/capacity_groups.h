// SPDX-License-Identifier: Apache-2.0
// Sums the accelerators of the nodes by pool, model and resource.
#ifndef GPUSCALE_K8S_CAPACITY_CAPACITY_GROUPS_H
#define GPUSCALE_K8S_CAPACITY_CAPACITY_GROUPS_H

#include <stddef.h>
#include <stdint.h>

struct capacity;

#define CAPACITY_GROUPS_MAX 4096
#define CAPACITY_UNKNOWN    "<unknown>" // a pool or model that no known label names

// allocatable = used + free + unready, unless pods use more than there is: then free and unready are 0.
struct capacity_group {
	const char *pool, *model; // valid until the account changes
	const char *resource;     // or the driver of devices of dynamic resource allocation
	size_t nodes;             // that have the resource
	int64_t allocatable, used;
	int64_t free;    // on nodes that take new pods, some only from pods that tolerate their taints
	int64_t tainted; // the part of `free` on nodes with a taint
	int64_t unready; // not used, on nodes that are cordoned or not ready
};
struct capacity_groups {
	struct capacity_group *items; // sorted by pool, model, resource
	size_t n, left_out;           // left_out: nodes of groups above the limit
};

// pool_label: a label of nodes that names their pool and ranks before the known ones; NULL: none. Returns -1 when
// memory is exhausted. Call capacity_groups_done() in any case.
int capacity_groups_read(struct capacity *c, const char *pool_label, struct capacity_groups *ret_groups);
void capacity_groups_done(struct capacity_groups *g);

#endif
