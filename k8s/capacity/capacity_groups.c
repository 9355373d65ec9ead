// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/capacity_groups.h"

#include <stdlib.h>
#include <string.h>

#include "k8s/capacity/capacity_private.h"
#include "k8s/client/accelerators.h"

static int compare(const struct capacity_group *g, const char *pool, const char *model, const char *resource)
{
	int order = strcmp(g->pool, pool);
	order = order ? order : strcmp(g->model, model);
	return order ? order : strcmp(g->resource, resource);
}

// Returns the group, inserted in order when it is new; NULL at the limit or when memory is exhausted.
static struct capacity_group *get_group(struct capacity_groups *g, const struct label *pool_label,
                                        const struct label *model_label, const char *resource)
{
	const char *pool = pool_label ? pool_label->value : CAPACITY_UNKNOWN;
	const char *model = model_label ? model_label->value : CAPACITY_UNKNOWN;
	size_t low = 0, high = g->n;
	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = compare(&g->items[middle], pool, model, resource);
		if (order == 0)
			return &g->items[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	if (g->n == CAPACITY_GROUPS_MAX)
		return NULL;
	struct capacity_group *items = realloc(g->items, (g->n + 1) * sizeof *items);
	if (!items)
		return NULL;
	g->items = items;
	memmove(&items[low + 1], &items[low], (g->n - low) * sizeof *items);
	items[low] = (struct capacity_group){.pool = pool, .model = model, .resource = resource};
	g->n++;
	return &items[low];
}

static bool keeps_pods_away(const struct capacity_node *n)
{
	for (size_t i = 0; i < n->n_taints; i++) {
		if (n->taints[i].effect != TAINT_PREFER_NO_SCHEDULE)
			return true;
	}
	return false;
}

static void add(struct capacity_group *group, const struct capacity_node *n, const struct capacity_resource *r)
{
	int64_t left = r->allocatable > r->used ? r->allocatable - r->used : 0;
	group->nodes++;
	group->allocatable += r->allocatable;
	group->used += r->used;
	if (!n->is_ready || n->is_unschedulable) {
		group->unready += left;
		return;
	}
	group->free += left;
	group->tainted += keeps_pods_away(n) ? left : 0;
}

static int add_node(const struct capacity *c, const struct capacity_node *n, const char *pool_label,
                    struct capacity_groups *g)
{
	for (size_t i = 0; i < n->n_resources; i++) {
		const struct capacity_resource *r = &n->resources[i];
		const char *name = c->names.names[r->id];
		if (!resource_is_accelerator(name) ||
		    (r->allocatable == 0 && (r->used == 0 || capacity_class_of(c, name))))
			continue;
		struct capacity_group *group = get_group(g, gpu_label_pool(n->labels, n->n_labels, pool_label),
		                                         gpu_label_model(n->labels, n->n_labels), name);
		if (group)
			add(group, n, r);
		else if (g->n == CAPACITY_GROUPS_MAX)
			g->left_out++;
		else
			return -1;
	}
	return 0;
}

static bool is_gpu_driver(const char *driver)
{
	static const char *const known[] = {"gpu.", "tpu.", "gaudi.", "neuron."};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (strncmp(driver, known[i], strlen(known[i])) == 0)
			return true;
	}
	return false;
}

// A device is treated as a resource of the name of its driver.
static void add_device(const struct capacity *c, const struct device_slice *s, const struct slice_device *d,
                       struct capacity_group *group)
{
	bool is_used = device_is_allocated(c, s, d);
	group->allocatable++;
	group->used += is_used;
	if (is_used)
		return;
	if (device_is_tainted(c, s, d) || !s->node->is_ready || s->node->is_unschedulable) {
		group->unready++;
		return;
	}
	group->free++;
	group->tainted += keeps_pods_away(s->node);
}

static int add_slice(const struct capacity *c, const struct device_slice *s, const char *pool_label,
                     struct capacity_groups *g)
{
	const struct capacity_group *last = NULL;
	if (!s->node || !s->node->is_known || !is_gpu_driver(s->pool->driver) || !device_slice_is_current(s))
		return 0;
	const struct label *pool = gpu_label_pool(s->node->labels, s->node->n_labels, pool_label);
	for (size_t i = 0; i < s->n_devices; i++) {
		const struct slice_device *d = &s->devices[i];
		if (d->is_shared)
			continue;
		struct capacity_group *group = get_group(g, pool, d->kind ? d->kind->model : NULL, s->pool->driver);
		if (!group && g->n < CAPACITY_GROUPS_MAX)
			return -1;
		if (!group) {
			g->left_out++;
			return 0;
		}
		group->nodes += group != last;
		last = group;
		add_device(c, s, d, group);
	}
	return 0;
}

int capacity_groups_read(struct capacity *c, const char *pool_label, struct capacity_groups *ret_groups)
{
	const struct capacity_node *n;
	const struct device_slice *s;
	*ret_groups = (struct capacity_groups){0};
	for (n = c->nodes; n; n = n->hh.next) {
		if (n->is_known && add_node(c, n, pool_label, ret_groups) < 0)
			return -1;
	}
	capacity_devices_update(c);
	for (s = capacity_first_slice(c); s; s = s->object.hh.next) {
		if (add_slice(c, s, pool_label, ret_groups) < 0)
			return -1;
	}
	return 0;
}

void capacity_groups_done(struct capacity_groups *g)
{
	free(g->items);
	*g = (struct capacity_groups){0};
}
