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

// The node called `name`, gone or not; NULL when there is none.
struct remedy_node *remedy_fleet_find(const struct remedy *r, const char *name);
// The same, added when missing: a node without GPUs, ready, its attempts empty. A node that is gone gives up its place
// when the fleet is full. NULL when it is full all the same. `name` has at most REMEDY_NAME_BYTES_MAX bytes.
struct remedy_node *remedy_fleet_add(struct remedy *r, const char *name);

// Makes *n a node of that name without GPUs, ready, its attempts empty. `name` must not lie in *n.
void remedy_fleet_start(struct remedy_node *n, const char *name);

// Index of the GPU in the node; "" is the node itself, 0. -1: there is none.
int remedy_fleet_gpu(const struct remedy_node *n, const char *uuid);
// The same, added when missing; if the node is full, in place of one that is in service and no longer listed. A GPU
// that is new to this node counts as replaced in every other one. -1: the node is full.
int remedy_fleet_add_gpu(struct remedy *r, struct remedy_node *n, const char *uuid);

#endif
