// SPDX-License-Identifier: Apache-2.0
#include "policies/test/scenario_world.h"

#include <string.h>

#include "base/arena.h"

static int order(struct scenario_world *w, int32_t n, int64_t now_ms, int64_t ready_ms)
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
	w->orders[w->n_orders++] = (struct scenario_order){now_ms, ready_ms, n};
	return 0;
}

int scenario_world_init(struct scenario_world *w, int32_t replicas, int32_t ready, int64_t now_ms, int64_t ready_ms,
                        struct arena *a)
{
	*w = (struct scenario_world){.replicas = replicas, .ready = ready, .room = -1, .arena = a};
	return ready >= 0 && ready < replicas ? order(w, replicas - ready, now_ms, ready_ms) : 0;
}

int scenario_world_scale(struct scenario_world *w, int32_t to, int64_t now_ms, int64_t ready_ms)
{
	int32_t change = to - w->replicas;
	w->replicas = to;
	if (change > 0)
		return order(w, change, now_ms, ready_ms);
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
	int32_t placed = w->replicas;
	for (size_t i = 0; i < w->n_orders; i++)
		placed -= w->orders[i].n;
	for (size_t i = 0; i < w->n_orders; i++) {
		struct scenario_order o = w->orders[i];
		int32_t room = w->room < 0 ? o.n : w->room > placed ? w->room - placed : 0;
		int32_t n = o.n < room ? o.n : room, is_due = o.ready_ms <= now_ms;
		placed += n;
		if (is_due && w->ready >= 0)
			w->ready += n;
		o.n -= is_due ? n : 0;
		if (o.n > 0)
			w->orders[kept++] = o;
	}
	w->n_orders = kept;
}

size_t scenario_world_unschedulable(const struct scenario_world *w, int64_t *ret_since_ms, size_t max)
{
	int32_t waiting = 0, skipped;
	size_t n = 0;
	for (size_t i = 0; i < w->n_orders; i++)
		waiting += w->orders[i].n;
	int32_t beyond = w->room >= 0 && w->replicas > w->room ? w->replicas - w->room : 0;
	skipped = waiting > beyond ? waiting - beyond : 0; // the oldest orders have the room
	for (size_t i = 0; i < w->n_orders; i++) {
		for (int32_t k = 0; k < w->orders[i].n && n < max; k++) {
			if (skipped > 0)
				skipped--;
			else
				ret_since_ms[n++] = w->orders[i].since_ms;
		}
	}
	return n;
}
