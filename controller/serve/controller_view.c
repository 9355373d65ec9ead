// SPDX-License-Identifier: Apache-2.0
// What the endpoints show of the controller.
#include "controller/controller.h"

#include "controller/policy/policy_conflicts.h"
#include "controller/policy/policy_pools.h"
#include "controller/price_follower.h"
#include "controller/source/file_source.h"
#include "controller/source/object_watch.h"
#include "controller/source/policy_watch.h"
#include "runtime/connections.h"

bool controller_is_ready(struct controller *c, size_t *ret_n_ticked)
{
	struct object_watch_state objects = {.is_synced = true};
	size_t n = 0;
	for (size_t i = 0; i < c->policies.n; i++) {
		const char *const *details;
		const struct managed_policy *m = c->policies.list[i];
		n += reconciler_decision(m->reconciler, &details) || m->report.error;
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
	struct file_source_state files = {.report = ""};
	struct object_watch_state objects = {.error = ""};
	struct policy_counts counts;
	policy_store_get_counts(c->policies.store, &counts);
	if (c->folder)
		file_source_get_state(c->folder, &files);
	if (c->watch)
		objects = object_watch_get_state(policy_watch_objects(c->watch));
	const struct price_book *prices = prices_of(c);
	*ret_view = (struct controller_view){
	        .policies = managed_policies_sort(&c->policies),
	        .n_policies = c->policies.n,
	        .n_invalid = counts.invalid,
	        .n_waiting = policy_sync_count_waiting(&c->sync),
	        .n_conflicts_awaited = c->policies.n_conflicts_awaited,
	        .n_bad_files = files.n_bad_files,
	        .history = c->history,
	        .metrics = c->policies.metrics,
	        .queries = c->connections->queries,
	        .dry_run = c->options.dry_run,
	        .reload_failed = files.failed,
	        .reload_report = files.report,
	        .from_cluster = c->options.policies_from_cluster,
	        .is_synced = objects.is_synced,
	        .watch_error = objects.error,
	        .watch = c->watch,
	        .scaled_objects = c->scaled_objects,
	        .pool_watch = c->pools->watch,
	        .status_writer = c->sync.status_env.writer,
	        .event_recorder = c->sync.status_env.events,
	        .shards = c->ownership.shards,
	        .targets = c->connections->targets,
	        .prices = prices,
	        .start_ms = c->clock_watch.start_ms,
	        .changed_ms = c->policies.changed_ms,
	        .revision = c->policies.revision,
	};
}

size_t controller_get_pools(struct controller *c, struct pool_summary *ret)
{
	return policy_pools_summarize(c->pools, ret);
}
