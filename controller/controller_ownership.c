// SPDX-License-Identifier: Apache-2.0
// Which policies this process works on, when others share them: reconcilers come with ownership, with fresh state, and
// go with it; a shard that was lost is settled once nothing about its policies is under way.
#include <event2/event.h>
#include <stdlib.h>

#include "base/err.h"
#include "controller/controller_private.h"
#include "controller/ha_options.h"
#include "controller/policy_body.h"
#include "controller/status_writer.h"

#define LEAVING_LOOK_MS 20 // how often it is looked whether a lost shard is settled

static int32_t shard_of_member(const struct member *m)
{
	return shards_of(m->controller->shards, m->namespace_name, m->name);
}

uint32_t member_term(const struct member *m)
{
	const struct controller *c = m->controller;
	if (!c->shards)
		return 1;
	const struct controller_shard *s = &c->shard[shard_of_member(m)];
	return s->is_owned ? s->term : 0;
}

bool member_may_write(void *owner, struct err *e)
{
	const struct member *m = owner;
	return shards_may_write(m->controller->shards, m->namespace_name, m->name, e);
}

bool controller_may_write(void *arg, const struct policy_body *body, struct err *e)
{
	struct controller *c = arg;
	return shards_may_write(c->shards, body->policy.namespace_name, body->policy.name, e);
}

// ---- losing ----

static bool is_anything_under_way(const struct controller *c, int32_t shard)
{
	for (size_t i = 0; i < c->n_members; i++) {
		const struct member *m = c->members[i];
		if (m->ticker.state == TICK_UNDER_WAY && shard_of_member(m) == shard)
			return true;
	}
	struct status_writer_stats s = {0};
	if (c->status_env.writer)
		status_writer_get_stats(c->status_env.writer, &s);
	return s.under_way > 0; // of whichever policy: they take milliseconds
}

static void look_later(struct controller *c)
{
	struct timeval soon = {0, LEAVING_LOOK_MS * 1000};
	event_add(c->leaving, &soon);
}

static void on_leaving(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct controller *c = arg;
	bool again = false;
	for (int32_t i = 0; i < c->n_shards; i++) {
		if (!c->shard[i].is_leaving)
			continue;
		if (is_anything_under_way(c, i)) {
			again = true;
			continue;
		}
		c->shard[i].is_leaving = false;
		shards_settled(c->shards, i);
	}
	if (again)
		look_later(c);
}

static void mark_all(struct controller *c, int32_t shard)
{
	for (struct policy_entry *e = NULL; (e = policy_store_next(c->store, e));) {
		struct member *m = e->user;
		if (shard_of_member(m) == shard)
			member_mark(m);
	}
}

static void on_lost(void *arg, int32_t shard)
{
	struct controller *c = arg;
	c->shard[shard].is_owned = false;
	if (c->stopping) {
		shards_settled(c->shards, shard); // the connections are closed
		return;
	}
	c->shard[shard].is_leaving = true;
	controller_touch(c);
	mark_all(c, shard);
	look_later(c);
}

static void on_gained(void *arg, int32_t shard)
{
	struct controller *c = arg;
	c->shard[shard].is_owned = true;
	c->shard[shard].is_leaving = false;
	c->shard[shard].term++;
	controller_touch(c);
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
	c->n_shards = o.n_shards;
	c->shard = calloc((size_t)o.n_shards, sizeof *c->shard);
	c->leaving = event_new(to->loop, -1, 0, on_leaving, c);
	if (!c->shard || !c->leaving)
		return err_set(e, ERR_INTERNAL, "out of memory");
	c->shards = shards_new(&o, e);
	to->shards = c->shards;
	return c->shards ? 0 : -1;
}

static void on_stopped(void *arg)
{
	struct controller *c = arg;
	event_base_loopbreak(c->connections->loop);
}

void controller_resign(struct controller *c)
{
	if (!c || !c->shards)
		return;
	shards_stop(c->shards, on_stopped, c);
	event_base_dispatch(c->connections->loop);
}

void ownership_close(struct controller *c)
{
	c->connections->shards = NULL;
	shards_free(c->shards);
	free(c->shard);
	if (c->leaving)
		event_free(c->leaving);
}
