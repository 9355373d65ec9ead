// SPDX-License-Identifier: Apache-2.0
#include "test/support/conflict_watch_stats.h"

#include "k8s/cache/conflict_watch_private.h"

void conflict_watch_get_stats(const struct conflict_watch *s, struct conflict_watch_stats *ret_stats)
{
	struct informer_stats n = {0};
	for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++)
		informer_add_stats(s->of[kind].informer, &n);
	*ret_stats = (struct conflict_watch_stats){.wants = s->n_wants,
	                                           .namespaces = HASH_COUNT(s->namespaces),
	                                           .watches = n.watches,
	                                           .objects = n.items,
	                                           .has_keda = s->of[AUTOSCALER_SCALED_OBJECT].served == SERVED_YES,
	                                           .keda_asked = s->of[AUTOSCALER_SCALED_OBJECT].n_asked};
}
