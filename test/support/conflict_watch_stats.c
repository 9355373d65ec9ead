// SPDX-License-Identifier: Apache-2.0
#include "test/support/conflict_watch_stats.h"

#include "k8s/cache/conflict_watch_private.h"

void conflict_watch_get_stats(const struct conflict_watch *s, struct conflict_watch_stats *ret_stats)
{
	size_t watches = 0, objects = 0;
	for (int kind = 0; kind < AUTOSCALER_KIND__COUNT; kind++) {
		const struct informer_state one = informer_get_state(s->of[kind].informer, NULL);
		watches += one.watches;
		objects += one.items;
	}
	*ret_stats = (struct conflict_watch_stats){.wants = s->n_wants,
	                                           .namespaces = HASH_COUNT(s->namespaces),
	                                           .watches = watches,
	                                           .objects = objects,
	                                           .has_keda = s->of[AUTOSCALER_SCALED_OBJECT].served == SERVED_YES,
	                                           .keda_asked = s->of[AUTOSCALER_SCALED_OBJECT].n_asked};
}
