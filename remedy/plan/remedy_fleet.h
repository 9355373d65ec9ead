// SPDX-License-Identifier: Apache-2.0
// The nodes of the planner by name, and the GPUs of a node by UUID.
#ifndef GPUSCALE_REMEDY_PLAN_REMEDY_FLEET_H
#define GPUSCALE_REMEDY_PLAN_REMEDY_FLEET_H

#include <stddef.h>
#include <stdint.h>

#include "remedy/plan/remedy_state.h"

// Bytes of the block that remedy_fleet_init needs for `max_nodes` nodes (1 to REMEDY_NODES_MAX).
size_t remedy_fleet_bytes(int32_t max_nodes);
// Lays out an empty fleet in `block`, zeroed and aligned for any type, which the caller keeps and frees. Copies
// `limits`.
void remedy_fleet_init(struct remedy *r, void *block, int32_t max_nodes, const struct remedy_limits *limits);

// Returns the node called `name`, even if it was deleted; NULL when there is none.
struct remedy_node *remedy_fleet_find(const struct remedy *r, const char *name);
// As remedy_fleet_find(), but adds a missing node: without GPUs, ready, without attempts. When the fleet is full, the
// node replaces a deleted one; NULL when there is none. `name` has at most REMEDY_NAME_BYTES_MAX bytes.
struct remedy_node *remedy_fleet_add(struct remedy *r, const char *name);

// Initializes *n as a node of that name: without GPUs, ready, without attempts. `name` must not lie in *n.
void remedy_fleet_start(struct remedy_node *n, const char *name);

// Returns the index of the GPU in the node, or -1; "" is the node itself, with index 0.
int remedy_fleet_gpu(const struct remedy_node *n, const char *uuid);
// As remedy_fleet_gpu(), but adds a missing GPU; when the node is full, in place of a GPU that is in service and no
// longer listed. A GPU that is new to this node is treated as replaced in every other node. Returns -1 if it is full.
int remedy_fleet_add_gpu(struct remedy *r, struct remedy_node *n, const char *uuid);

#endif
