// SPDX-License-Identifier: Apache-2.0
#include "remedy/plan/remedy_fleet.h"

#include <string.h>

#include "base/hash.h"

static size_t index_size(int32_t max_nodes)
{
	size_t n = 2;
	while (n < 2 * (size_t)max_nodes)
		n *= 2;
	return n;
}

size_t remedy_fleet_bytes(int32_t max_nodes)
{
	return (size_t)max_nodes * sizeof(struct remedy_node) + index_size(max_nodes) * sizeof(int32_t);
}

void remedy_fleet_init(struct remedy *r, void *block, int32_t max_nodes, const struct remedy_limits *limits)
{
	*r = (struct remedy){.limits = *limits, .nodes = block, .max_nodes = max_nodes};
	r->index = (int32_t *)(r->nodes + max_nodes);
	r->n_index = index_size(max_nodes);
}

// The place of the name in the index: of its node, or the free one where it belongs.
static size_t place_of(const struct remedy *r, const char *name)
{
	size_t i = (size_t)hash_mix(hash_text(HASH_START, name)) & (r->n_index - 1);
	while (r->index[i] && strcmp(r->nodes[r->index[i] - 1].name, name) != 0)
		i = (i + 1) & (r->n_index - 1);
	return i;
}

struct remedy_node *remedy_fleet_find(const struct remedy *r, const char *name)
{
	int32_t k = r->index[place_of(r, name)];
	return k ? &r->nodes[k - 1] : NULL;
}

static void fill_index(struct remedy *r)
{
	memset(r->index, 0, r->n_index * sizeof *r->index);
	for (int32_t k = 0; k < r->n_nodes; k++)
		r->index[place_of(r, r->nodes[k].name)] = k + 1;
}

static void start_gpu(struct remedy_gpu *g, const char *uuid)
{
	*g = (struct remedy_gpu){.out_ms = REMEDY_NONE_MS,
	                         .was_out_ms = REMEDY_NONE_MS,
	                         .clean_ms = REMEDY_NONE_MS,
	                         .heard_ms = REMEDY_NONE_MS};
	memcpy(g->uuid, uuid, strnlen(uuid, REMEDY_UUID_BYTES - 1));
}

void remedy_fleet_start(struct remedy_node *n, const char *name)
{
	memset(n, 0, sizeof *n);
	memcpy(n->name, name, strnlen(name, REMEDY_NAME_BYTES_MAX));
	n->is_ready = n->is_dirty = true;
	n->n_gpus = 1;
	start_gpu(&n->gpus[0], "");
	n->gpus[0].is_listed = true;
}

struct remedy_node *remedy_fleet_add(struct remedy *r, const char *name)
{
	struct remedy_node *n = remedy_fleet_find(r, name);
	if (n)
		return n;
	int32_t k = r->n_nodes;
	if (k == r->max_nodes)
		for (k = 0; k < r->max_nodes && !r->nodes[k].is_gone; k++)
			;
	if (k == r->max_nodes)
		return NULL;
	n = &r->nodes[k];
	remedy_fleet_start(n, name);
	if (k < r->n_nodes) {
		fill_index(r); // the name of the node that gave up its place is gone
	} else {
		r->n_nodes++;
		r->index[place_of(r, name)] = k + 1;
	}
	return n;
}

int remedy_fleet_gpu(const struct remedy_node *n, const char *uuid)
{
	for (int i = 0; i < n->n_gpus; i++)
		if (strcmp(n->gpus[i].uuid, uuid) == 0)
			return i;
	return -1;
}

static void mark_replaced(struct remedy *r, const struct remedy_node *here, const char *uuid)
{
	for (int32_t k = 0; k < r->n_nodes; k++) {
		struct remedy_node *n = &r->nodes[k];
		int i = n == here || n->is_gone ? -1 : remedy_fleet_gpu(n, uuid);
		if (i > 0) {
			n->gpus[i].is_replaced = true;
			n->gpus[i].is_listed = false;
			n->is_dirty = true;
		}
	}
}

// Drops what is known of a GPU whose place another GPU takes.
static void forget_gpu(struct remedy_node *n, int i)
{
	int16_t kept = 0;
	for (int16_t k = 0; k < n->n_faults; k++)
		if (n->faults[k].gpu != i)
			n->faults[kept++] = n->faults[k];
	n->n_faults = kept;
	for (int k = 0; k < n->n_pods; k++)
		n->pods[k].gpus &= ~(UINT32_C(1) << i);
}

// A GPU that comes back to a node where it was in service: what happened to it meanwhile is unknown.
static void clear_evidence(struct remedy_node *n, int i)
{
	for (int k = 0; k < n->n_faults; k++)
		if (n->faults[k].gpu == i) {
			n->faults[k].is_handled = true;
			n->faults[k].is_active = false;
		}
}

int remedy_fleet_add_gpu(struct remedy *r, struct remedy_node *n, const char *uuid)
{
	int i = remedy_fleet_gpu(n, uuid);
	if (i == 0 || (i > 0 && !n->gpus[i].is_replaced))
		return i;
	if (i < 0) {
		i = n->n_gpus;
		if (i == REMEDY_GPUS_MAX)
			for (i = 1; i < REMEDY_GPUS_MAX && (n->gpus[i].is_listed || n->gpus[i].out_ms >= 0); i++)
				;
		if (i == REMEDY_GPUS_MAX)
			return -1;
		if (i == n->n_gpus)
			n->n_gpus++;
		else
			forget_gpu(n, i);
		start_gpu(&n->gpus[i], uuid);
	} else if (n->gpus[i].out_ms < 0) {
		clear_evidence(n, i);
	}
	n->gpus[i].is_replaced = false;
	n->gpus[i].is_listed = true;
	n->is_dirty = true;
	mark_replaced(r, n, uuid);
	return i;
}
