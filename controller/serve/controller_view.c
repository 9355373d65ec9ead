// SPDX-License-Identifier: Apache-2.0
// What the endpoints show of the controller.
#include "controller/controller.h"

#include "controller/policy/policy_pools.h"
#include "controller/price_follower.h"
#include "controller/source/policy_watch.h"
#include "runtime/connections.h"

bool controller_is_ready(struct controller *c, size_t *ret_n_ticked)
{
	struct object_watch_state objects = {.is_synced = true};
	size_t n = 0;
	for (size_t i = 0; i < c->policies.n; i++) {
		const struct managed_policy *m = c->policies.list[i];
		n += m->reconciler->decision || m->report.error;
	}
	if (c->watch)
		objects = object_watch_get_state(policy_watch_objects(c->watch));
	bool is_ready = objects.is_synced && policy_sync_is_complete(&c->sync) && n == c->policies.n;
	c->was_ready = c->was_ready || is_ready;
	*ret_n_ticked = n;
	return c->was_ready;
}

// The prices, if a policy in force needs them.
static const struct price_book *prices_of(struct controller *c)
{
	size_t i = 0;
	while (i < c->policies.n && !reconciler_gpus(c->policies.list[i]->reconciler).set)
		i++;
	if (i == c->policies.n)
		return NULL;
	const struct price_book *book = price_follower_book(c->prices, clock_wall_ms(&c->connections->clock));
	if (book != c->shown_prices)
		managed_policies_changed(&c->policies);
	c->shown_prices = book;
	return book;
}

void controller_get_view(struct controller *c, struct controller_view *ret_view)
{
	struct policy_counts counts;
	policy_store_get_counts(c->policies.store, &counts);
	*ret_view = (struct controller_view){
	        .policies = managed_policies_sort(&c->policies),
	        .n_invalid = counts.invalid,
	        .n_waiting = policy_sync_count_waiting(&c->sync),
	        .files.report = "",
	        .objects.error = "",
	        .prices = prices_of(c),
	};
	if (c->folder)
		file_source_get_state(c->folder, &ret_view->files);
	if (c->watch)
		ret_view->objects = object_watch_get_state(policy_watch_objects(c->watch));
}

size_t controller_get_pools(struct controller *c, struct pool_summary *ret)
{
	return policy_pools_summarize(c->pools, ret);
}
