// SPDX-License-Identifier: Apache-2.0
// What the endpoints show of the controller.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/controller_private.h"
#include "controller/price_follower.h"
#include "controller/source/file_source.h"
#include "controller/source/policy_watch.h"
#include "policies/load/policy_ref.h"

static int compare_by_name(const void *a, const void *b)
{
	const struct policy *x = reconciler_policy((*(struct managed_policy *const *)a)->reconciler);
	const struct policy *y = reconciler_policy((*(struct managed_policy *const *)b)->reconciler);
	int c = strcmp(x->namespace_name, y->namespace_name);
	return c ? c : strcmp(x->name, y->name);
}

// Returns whether this process owns the policy and no version of it is in force.
static bool is_idle(const struct policy_entry *entry)
{
	const struct managed_policy *m = entry->user;
	return m && !m->reconciler && ownership_term(m) != 0;
}

enum status_phase controller_why_idle(const struct policy_entry *e, char *ret_why, size_t size)
{
	const struct policy_entry *winner = policy_entry_winner(e);
	const char *conflict = conflicts_find(e->user);
	if (!winner) {
		snprintf(ret_why, size, "%s", policy_entry_error(e));
		return STATUS_INVALID;
	}
	if (winner == e && !conflict) {
		snprintf(ret_why, size, "whether another autoscaler drives the target is not known yet");
		return STATUS_PHASE__COUNT;
	}
	if (winner == e)
		conflicts_explain(e->user, ret_why, size);
	else
		snprintf(ret_why, size, "policy %s/%s has the target %s/%s", winner->namespace_name, winner->name,
		         e->body->policy.target_kind, e->body->policy.target_name);
	return STATUS_CONFLICT;
}

const struct policy_entry *controller_next_idle(struct controller *c, const struct policy_entry *after, char *ret_why,
                                                size_t size)
{
	const struct policy_entry *e = after;
	if (!controller_has_synced(c))
		return NULL; // no policy is in force yet
	while ((e = policy_store_next(c->store, e)) && !is_idle(e))
		;
	if (e)
		controller_why_idle(e, ret_why, size);
	return e;
}

static size_t n_waiting(struct controller *c)
{
	size_t n = 0;
	for (const struct policy_entry *e = NULL; (e = policy_store_next(c->store, e));)
		n += e->body && is_idle(e);
	return n;
}

bool controller_is_ready(struct controller *c, size_t *ret_n_ticked)
{
	struct policy_watch_state objects = {.is_synced = true};
	size_t n = 0;
	for (size_t i = 0; i < c->policies.n; i++) {
		const char *const *details;
		const struct managed_policy *m = c->policies.list[i];
		n += reconciler_decision(m->reconciler, &details) || m->report.error;
	}
	if (c->watch)
		policy_watch_get_state(c->watch, &objects);
	bool is_ready = objects.is_synced && policies_are_known(c) && n == c->policies.n;
	c->view.was_ready = c->view.was_ready || is_ready;
	*ret_n_ticked = n;
	return c->view.was_ready;
}

void controller_bump_revision(struct controller *c)
{
	c->view.revision++;
	c->view.changed_ms = clock_wall_ms(&c->connections->clock);
}

static void refresh_view(struct controller *c)
{
	size_t n = c->policies.n;
	if (!c->view.is_stale)
		return;
	struct managed_policy **list = realloc(c->view.policies, (n + 1) * sizeof(struct managed_policy *));
	if (!list)
		abort(); // a few kilobytes: the supervisor restarts the process
	c->view.policies = list;
	for (size_t i = 0; i < n; i++)
		list[i] = c->policies.list[i];
	qsort(list, n, sizeof(struct managed_policy *), compare_by_name);
	c->view.is_stale = false;
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
	if (book != c->view.prices)
		controller_bump_revision(c);
	c->view.prices = book;
	return book;
}

void controller_get_view(struct controller *c, struct controller_view *ret_view)
{
	struct file_source_state files = {.report = ""};
	struct policy_watch_state objects = {.error = ""};
	struct policy_counts counts;
	policy_store_get_counts(c->store, &counts);
	if (c->folder)
		file_source_get_state(c->folder, &files);
	if (c->watch)
		policy_watch_get_state(c->watch, &objects);
	refresh_view(c);
	const struct price_book *prices = prices_of(c);
	*ret_view = (struct controller_view){
	        .policies = c->view.policies,
	        .n_policies = c->policies.n,
	        .n_invalid = counts.invalid,
	        .n_waiting = n_waiting(c),
	        .n_conflicts_awaited = conflicts_awaited(c),
	        .n_bad_files = files.n_bad_files,
	        .history = c->history,
	        .metrics = c->report_env.metrics,
	        .queries = c->connections->queries,
	        .dry_run = c->options.dry_run,
	        .reload_failed = files.failed,
	        .reload_report = files.report,
	        .from_cluster = c->options.policies_from_cluster,
	        .is_synced = objects.is_synced,
	        .watch_error = objects.error,
	        .watch = c->watch,
	        .pool_watch = c->pools.watch,
	        .status_writer = c->status_env.writer,
	        .event_recorder = c->status_env.events,
	        .shards = c->ownership.shards,
	        .targets = c->connections->targets,
	        .prices = prices,
	        .start_ms = c->start_ms,
	        .changed_ms = c->view.changed_ms,
	        .revision = c->view.revision,
	};
}
