// SPDX-License-Identifier: Apache-2.0
#include "policies/test/scenario_world.h"

#include <string.h>

#include "base/arena.h"

static int order(struct scenario_world *w, int32_t n, int64_t ready_ms)
{
	if (w->n_orders == w->cap_orders) {
		size_t cap = w->cap_orders ? w->cap_orders * 2 : 8;
		struct scenario_order *grown = arena_calloc(w->arena, cap, sizeof *grown);
		if (!grown)
			return -1;
		if (w->n_orders > 0)
			memcpy(grown, w->orders, w->n_orders * sizeof *grown);
		w->orders = grown;
		w->cap_orders = cap;
	}
	w->orders[w->n_orders++] = (struct scenario_order){ready_ms, n};
	return 0;
}

int scenario_world_init(struct scenario_world *w, int32_t replicas, int32_t ready, int64_t ready_ms, struct arena *a)
{
	*w = (struct scenario_world){.replicas = replicas, .ready = ready, .arena = a};
	return ready >= 0 && ready < replicas ? order(w, replicas - ready, ready_ms) : 0;
}

int scenario_world_scale(struct scenario_world *w, int32_t to, int64_t ready_ms)
{
	int32_t change = to - w->replicas;
	w->replicas = to;
	if (change > 0)
		return order(w, change, ready_ms);
	int32_t gone = -change;
	while (gone > 0 && w->n_orders > 0) {
		struct scenario_order *last = &w->orders[w->n_orders - 1];
		int32_t n = last->n < gone ? last->n : gone;
		last->n -= n;
		gone -= n;
		if (last->n == 0)
			w->n_orders--;
	}
	if (w->ready >= 0)
		w->ready = w->ready > gone ? w->ready - gone : 0;
	return 0;
}

void scenario_world_advance(struct scenario_world *w, int64_t now_ms)
{
	size_t kept = 0;
	for (size_t i = 0; i < w->n_orders; i++) {
		if (w->orders[i].ready_ms > now_ms)
			w->orders[kept++] = w->orders[i];
		else if (w->ready >= 0)
			w->ready += w->orders[i].n;
	}
	w->n_orders = kept;
}
