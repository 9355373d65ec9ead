// SPDX-License-Identifier: Apache-2.0
// Renders the capacity of a cluster and of its policies as a table or JSON.
#ifndef GPUSCALE_CLI_OBJECTS_CAPACITY_RENDER_H
#define GPUSCALE_CLI_OBJECTS_CAPACITY_RENDER_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct capacity;
struct capacity_groups;
struct capacity_target;
struct kueue_quotas;

struct capacity_report {
	struct capacity *capacity;
	size_t n_nodes, n_pods; // pods that have not finished
	const struct capacity_groups *groups;
	const struct capacity_target *targets;
	size_t n_targets;
	const struct kueue_quotas *quotas; // of Kueue; NULL: no Prometheus was named
};

void capacity_render_table(struct buf *out, const struct capacity_report *r, bool wide);
void capacity_render_json(struct buf *out, const struct capacity_report *r);

#endif
