// SPDX-License-Identifier: Apache-2.0
// What the endpoints show of the controller.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/controller_private.h"
#include "controller/policy_body.h"
#include "controller/policy_folder.h"
#include "controller/policy_watch.h"

static int compare_by_name(const void *a, const void *b)
{
	const struct policy *x = reconciler_policy(*(struct reconciler *const *)a);
	const struct policy *y = reconciler_policy(*(struct reconciler *const *)b);
	int c = strcmp(x->namespace_name, y->namespace_name);
	return c ? c : strcmp(x->name, y->name);
}

// Its policy is ours to work on, and yet is not.
static bool is_idle(const struct policy_entry *entry)
{
	const struct member *m = entry->user;
	return m && !m->reconciler && member_term(m) != 0;
}

enum status_phase controller_why_idle(const struct policy_entry *e, char *ret_why, size_t size)
{
	const struct policy_entry *winner = policy_entry_winner(e);
	const char *rival = rivals_owner(e->user);
	if (!winner) {
		snprintf(ret_why, size, "%s", policy_entry_error(e));
		return STATUS_INVALID;
	}
	if (winner == e && !rival) {
		snprintf(ret_why, size, "it is not known yet whether somebody else drives the target");
		return STATUS_PHASE__COUNT;
	}
	if (winner == e)
		snprintf(ret_why, size, "%s drives the target", rival);
	else
		snprintf(ret_why, size, "policy %s/%s has the target %s/%s", winner->namespace_name, winner->name,
		         e->body->policy.target_kind, e->body->policy.target_name);
	return STATUS_CONFLICT;
}

const struct policy_entry *controller_next_idle(struct controller *c, const struct policy_entry *after, char *ret_why,
                                                size_t size)
{
	const struct policy_entry *e = after;
	if (!controller_is_settled(c))
		return NULL; // nobody works yet
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
	for (size_t i = 0; i < c->n_members; i++) {
		const char *const *details;
		const struct reconciler *r = c->members[i]->reconciler;
		n += reconciler_decision(r, &details) || reconciler_error(r)[0];
	}
	if (c->watch)
		policy_watch_get_state(c->watch, &objects);
	c->was_ready = c->was_ready || (objects.is_synced && n == c->n_members);
	*ret_n_ticked = n;
	return c->was_ready;
}

void controller_touch(struct controller *c)
{
	c->revision++;
	c->changed_ms = clock_wall_ms(&c->connections->clock);
}

static void refresh_view(struct controller *c)
{
	if (!c->view_is_stale)
		return;
	struct reconciler **view = realloc(c->view, (c->n_members + 1) * sizeof(struct reconciler *));
	if (!view)
		abort(); // a few kilobytes: the supervisor restarts us
	c->view = view;
	for (size_t i = 0; i < c->n_members; i++)
		view[i] = c->members[i]->reconciler;
	qsort(view, c->n_members, sizeof(struct reconciler *), compare_by_name);
	c->view_is_stale = false;
}

void controller_get_view(struct controller *c, struct controller_view *ret_view)
{
	struct policy_folder_state files = {.report = ""};
	struct policy_watch_state objects = {.error = ""};
	struct policy_counts counts;
	policy_store_get_counts(c->store, &counts);
	if (c->folder)
		policy_folder_get_state(c->folder, &files);
	if (c->watch)
		policy_watch_get_state(c->watch, &objects);
	refresh_view(c);
	*ret_view = (struct controller_view){
	        .reconcilers = c->view,
	        .n_reconcilers = c->n_members,
	        .n_invalid = counts.invalid,
	        .n_waiting = n_waiting(c),
	        .n_bad_files = files.n_bad_files,
	        .history = c->history,
	        .metrics = c->env.metrics,
	        .queries = c->connections->queries,
	        .dry_run = c->options.dry_run,
	        .reload_failed = files.failed,
	        .reload_report = files.report,
	        .from_cluster = c->options.policies_from_cluster,
	        .is_synced = objects.is_synced,
	        .watch_error = objects.error,
	        .watch = c->watch,
	        .status_writer = c->status_env.writer,
	        .event_recorder = c->status_env.events,
	        .shards = c->shards,
	        .targets = c->connections->targets,
	        .start_ms = c->start_ms,
	        .changed_ms = c->changed_ms,
	        .revision = c->revision,
	};
}
