// SPDX-License-Identifier: Apache-2.0
// What the watch of other autoscalers holds, and what it costs the API server.
#ifndef GPUSCALE_TEST_SUPPORT_CONFLICT_WATCH_STATS_H
#define GPUSCALE_TEST_SUPPORT_CONFLICT_WATCH_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k8s/cache/conflict_watch.h"

struct conflict_watch_stats {
	size_t wants, namespaces, watches, objects;
	bool has_keda;
	uint64_t keda_asked; // requests
};
void conflict_watch_get_stats(const struct conflict_watch *s, struct conflict_watch_stats *ret_stats);

#endif
