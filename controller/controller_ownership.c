// SPDX-License-Identifier: Apache-2.0
// Which policies this process works on when several processes share them. A reconciler lives as long as the process
// owns the shard of its policy; a lost shard is released once no tick or status write of its policies is in flight.
#include <event2/event.h>
#include <stdlib.h>

#include "base/err.h"
#include "controller/controller_private.h"
#include "controller/options/ha_options.h"
#include "controller/status/status_writer.h"
#include "policies/load/policy_ref.h"

#define LEAVING_LOOK_MS 20 // interval of the checks whether a lost shard can be released

static int32_t shard_of_policy(const struct managed_policy *m)
{
	return shards_of(m->controller->ownership.shards, m->namespace_name, m->name);
}

uint32_t ownership_term(const struct managed_policy *m)
{
	const struct ownership *o = &m->controller->ownership;
	if (!o->shards)
		return 1;
	const struct owned_shard *s = &o->shard[shard_of_policy(m)];
	return s->is_owned ? s->term : 0;
}

bool ownership_may_write(const struct managed_policy *m, struct err *e)
{
	return shards_may_write(m->controller->ownership.shards, m->namespace_name, m->name, e);
}

bool ownership_may_restore(void *arg, const struct policy_ref *body, struct err *e)
{
	const struct controller *c = arg;
	return shards_may_write(c->ownership.shards, body->policy.namespace_name, body->policy.name, e);
}

// ---- losing ----

static bool has_work_in_flight(const struct controller *c, int32_t shard)
{
	for (size_t i = 0; i < c->policies.n; i++) {
		const struct managed_policy *m = c->policies.list[i];
		if (m->ticker.state == TICK_IN_PROGRESS && shard_of_policy(m) == shard)
			return true;
	}
	struct status_writer_stats s = {0};
	if (c->status_env.writer)
		status_writer_get_stats(c->status_env.writer, &s);
	return s.in_flight > 0; // of any shard: these writes take milliseconds
}

static void look_later(struct controller *c)
{
	struct timeval soon = {0, LEAVING_LOOK_MS * 1000};
	event_add(c->ownership.leaving, &soon);
}

static void on_leaving(evutil_socket_t fd, short what, void *arg)
{
	struct controller *c = arg;
	bool again = false;
	for (int32_t i = 0; i < c->ownership.n_shards; i++) {
		if (!c->ownership.shard[i].is_leaving)
			continue;
		if (has_work_in_flight(c, i)) {
			again = true;
			continue;
		}
		c->ownership.shard[i].is_leaving = false;
		shards_settled(c->ownership.shards, i);
	}
	if (again)
		look_later(c);
}

static void mark_all(struct controller *c, int32_t shard)
{
	for (struct policy_entry *e = NULL; (e = policy_store_next(c->store, e));) {
		struct managed_policy *m = e->user;
		if (shard_of_policy(m) == shard)
			managed_policy_mark(m);
	}
}

static void on_lost(void *arg, int32_t shard)
{
	struct controller *c = arg;
	c->ownership.shard[shard].is_owned = false;
	if (c->stopping) {
		shards_settled(c->ownership.shards, shard); // the connections are closed
		return;
	}
	c->ownership.shard[shard].is_leaving = true;
	controller_bump_revision(c);
	mark_all(c, shard);
	look_later(c);
}

static void on_gained(void *arg, int32_t shard)
{
	struct controller *c = arg;
	c->ownership.shard[shard].is_owned = true;
	c->ownership.shard[shard].is_leaving = false;
	c->ownership.shard[shard].term++;
	controller_bump_revision(c);
	mark_all(c, shard);
}

// ---- life ----

int ownership_open(struct controller *c, struct err *e)
{
	struct connections *to = c->connections;
	if (!c->options.election)
		return 0;
	struct shards_options o = {.loop = to->loop,
	                           .clock = &to->clock,
	                           .log = c->options.log,
	                           .observe = to->observe,
	                           .observe_arg = to->observe_arg,
	                           .callbacks = {.on_gained = on_gained, .on_lost = on_lost},
	                           .arg = c};
	if (ha_options_apply(c->options.election, &to->k8s_config, &o, e) < 0)
		return -1;
	c->ownership.n_shards = o.n_shards;
	c->ownership.shard = calloc((size_t)o.n_shards, sizeof *c->ownership.shard);
	c->ownership.leaving = event_new(to->loop, -1, 0, on_leaving, c);
	if (!c->ownership.shard || !c->ownership.leaving)
		return err_set(e, ERR_INTERNAL, "out of memory");
	c->ownership.shards = shards_new(&o, e);
	if (!c->ownership.shards)
		return -1;
	const struct write_guard guard = {shards_guard, shards_term, c->ownership.shards};
	connections_set_write_guard(to, &guard);
	return 0;
}

static void on_stopped(void *arg)
{
	struct controller *c = arg;
	event_base_loopbreak(c->connections->loop);
}

void controller_resign(struct controller *c)
{
	if (!c || !c->ownership.shards)
		return;
	shards_stop(c->ownership.shards, on_stopped, c);
	event_base_dispatch(c->connections->loop);
}

void ownership_close(struct controller *c)
{
	connections_set_write_guard(c->connections, NULL);
	shards_free(c->ownership.shards);
	free(c->ownership.shard);
	if (c->ownership.leaving)
		event_free(c->ownership.leaving);
}
