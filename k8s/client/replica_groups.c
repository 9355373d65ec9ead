// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/replica_groups.h"

#include <stdlib.h>

#include "k8s/client/scale.h"

struct group {
	uint64_t id;
	int32_t pods, ready, pending, size;
};

static int by_id(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b; // first member of a group, too
	return (*x > *y) - (*x < *y);
}

static void merge(struct group *into, const struct group *g)
{
	into->pods += g->pods;
	into->ready += g->ready;
	into->pending += g->pending;
	into->size = g->size > into->size ? g->size : into->size;
}

bool replica_groups_count(const struct pod_list *pods, struct replica_groups *ret_groups)
{
	size_t n = 0, n_groups = 0;
	int32_t largest = 0;
	*ret_groups = (struct replica_groups){0};
	struct group *groups = calloc(pods->n ? pods->n : 1, sizeof *groups);
	for (size_t i = 0; groups && i < pods->n; i++) {
		const struct pod_info *p = &pods->items[i];
		if (p->member.group && p->kind != POD_KIND_ENDED && p->kind != POD_KIND_DELETED)
			groups[n++] = (struct group){.id = p->member.group,
			                             .pods = 1,
			                             .ready = p->kind == POD_KIND_READY,
			                             .pending = p->kind == POD_KIND_PENDING,
			                             .size = p->member.size};
	}
	if (n > 1)
		qsort(groups, n, sizeof *groups, by_id);
	for (size_t i = 0; i < n; i++) {
		if (n_groups && groups[n_groups - 1].id == groups[i].id)
			merge(&groups[n_groups - 1], &groups[i]);
		else
			groups[n_groups++] = groups[i];
	}
	for (size_t i = 0; i < n_groups; i++)
		largest = groups[i].pods > largest ? groups[i].pods : largest;
	for (size_t i = 0; i < n_groups; i++) {
		const struct group *g = &groups[i];
		int32_t size = g->size ? g->size : largest;
		ret_groups->ready += g->ready >= size;
		ret_groups->pending += g->ready < size && (g->pending > 0 || g->pods < size);
	}
	ret_groups->total = (int32_t)n_groups;
	free(groups);
	return n_groups > 0;
}

size_t replica_groups_distinct(uint64_t *groups, size_t n)
{
	size_t distinct = 0;
	if (n > 1)
		qsort(groups, n, sizeof *groups, by_id);
	for (size_t i = 0; i < n; i++)
		distinct += i == 0 || groups[i] == 0 || groups[i] != groups[i - 1];
	return distinct;
}
