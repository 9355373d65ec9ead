// SPDX-License-Identifier: Apache-2.0
#include "controller/policy/policy_ownership.h"

#include <event2/event.h>
#include <stdlib.h>

#include "base/err.h"
#include "controller/fleet/fleet.h"
#include "controller/policy/managed_policy.h"
#include "controller/source/policy_store.h"
#include "controller/status/status_writer.h"
#include "policies/load/policy_ref.h"
#include "runtime/connections.h"
#include "runtime/options/controller_options.h"
#include "runtime/shard/shards.h"

#define LEAVING_POLL_MS 20 // interval of the checks whether a lost shard can be released

static int32_t shard_of_policy(const struct managed_policy *m)
{
	return shards_of(m->all->ownership->shards, m->namespace_name, m->name);
}

uint32_t ownership_term(const struct managed_policy *m)
{
	const struct ownership *o = m->all->ownership;
	if (!o->shards)
		return 1;
	const struct owned_shard *s = &o->shard[shard_of_policy(m)];
	return s->is_owned ? s->term : 0;
}

bool ownership_may_restore(void *arg, const struct policy_ref *body, struct err *e)
{
	const struct ownership *o = arg;
	return shards_may_write(o->shards, body->policy.namespace_name, body->policy.name, e);
}

// ---- losing ----

static bool has_work_in_flight(const struct ownership *o, int32_t shard)
{
	for (size_t i = 0; i < o->all->n; i++) {
		const struct managed_policy *m = o->all->list[i];
		if (m->ticker.state == TICK_IN_PROGRESS && shard_of_policy(m) == shard)
			return true;
	}
	if (fleets_are_busy(o->all->fleets))
		return true; // of any shard, and for as long as a write takes
	struct status_writer_stats s = {0};
	if (o->writer)
		status_writer_get_stats(o->writer, &s);
	return s.in_flight > 0; // of any shard: these writes take milliseconds
}

static void poll_later(const struct ownership *o)
{
	struct timeval soon = {0, LEAVING_POLL_MS * 1000};
	event_add(o->leaving, &soon);
}

static void on_leaving(evutil_socket_t fd, short what, void *arg)
{
	struct ownership *o = arg;
	bool again = false;
	for (int32_t i = 0; i < o->n_shards; i++) {
		if (!o->shard[i].is_leaving)
			continue;
		if (has_work_in_flight(o, i)) {
			again = true;
			continue;
		}
		o->shard[i].is_leaving = false;
		shards_drained(o->shards, i);
	}
	if (again)
		poll_later(o);
}

static void mark_all(const struct ownership *o, int32_t shard)
{
	for (struct stored_binding *b = NULL; (b = policy_store_next(o->all->store, b));) {
		struct managed_policy *m = b->user;
		if (shard_of_policy(m) == shard)
			managed_policy_mark(m);
	}
}

static void on_lost(void *arg, int32_t shard)
{
	struct ownership *o = arg;
	o->shard[shard].is_owned = false;
	if (o->all->stopping) {
		shards_drained(o->shards, shard); // the connections are closed
		return;
	}
	o->shard[shard].is_leaving = true;
	managed_policies_changed(o->all);
	mark_all(o, shard);
	poll_later(o);
}

static void on_gained(void *arg, int32_t shard)
{
	struct ownership *o = arg;
	o->shard[shard].is_owned = true;
	o->shard[shard].is_leaving = false;
	o->shard[shard].term++;
	managed_policies_changed(o->all);
	mark_all(o, shard);
}

// ---- life ----

int ownership_open(struct ownership *o, struct managed_policies *all, struct ha_options *election,
                   const struct status_writer *writer, struct err *e)
{
	struct connections *to = all->connections;
	o->all = all;
	o->writer = writer;
	if (!election)
		return 0;
	struct shards_options options = {.loop = to->loop,
	                                 .clock = &to->clock,
	                                 .log = all->log,
	                                 .observe = to->observe,
	                                 .observe_arg = to->observe_arg,
	                                 .callbacks = {.on_gained = on_gained, .on_lost = on_lost},
	                                 .arg = o};
	if (ha_options_apply(election, &to->k8s_config, &options, e) < 0)
		return -1;
	o->n_shards = options.n_shards;
	o->shard = calloc((size_t)options.n_shards, sizeof *o->shard);
	o->leaving = event_new(to->loop, -1, 0, on_leaving, o);
	if (!o->shard || !o->leaving)
		return err_no_memory(e);
	o->shards = shards_new(&options, e);
	if (!o->shards)
		return -1;
	to->write_guard = (struct write_guard){shards_guard, shards_term, o->shards};
	return 0;
}

static void on_stopped(void *arg)
{
	const struct ownership *o = arg;
	event_base_loopbreak(o->all->connections->loop);
}

void ownership_resign(struct ownership *o)
{
	if (!o->shards)
		return;
	shards_stop(o->shards, on_stopped, o);
	event_base_dispatch(o->all->connections->loop);
}

void ownership_close(struct ownership *o)
{
	if (!o->all)
		return;
	o->all->connections->write_guard = (struct write_guard){0};
	shards_free(o->shards);
	free(o->shard);
	if (o->leaving)
		event_free(o->leaving);
}

bool ownership_is_first(const struct ownership *o)
{
	return !o->shards || o->shard[0].is_owned;
}
