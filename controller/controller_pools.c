// SPDX-License-Identifier: Apache-2.0
// Pools (controller/pool): seats the policies in force, reads pools from the API server and from files, and writes
// their status. A policy is seated as soon as it is eligible, before its first tick: until then, what its target has is
// unknown, so no other member of its pool grows.
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "controller/controller_private.h"
#include "controller/pool/pool_spending_file.h"
#include "controller/pool/pool_status.h"
#include "controller/pool/pool_watch.h"
#include "controller/pool/pools.h"
#include "policies/load/pool_set.h"

#define REPORT_MAX (1024 * 1024)

static void on_ask(void *user)
{
	const struct managed_policy *m = user;
	struct controller *c = m->controller;
	if (m->reconciler && m->ticker.group)
		ticks_ask(c->ticks, &((struct managed_policy *)user)->ticker, clock_wall_ms(&c->connections->clock));
}

static void on_changed(void *arg)
{
	struct controller *c = arg;
	for (struct policy_entry *e = NULL; (e = policy_store_next(c->store, e));)
		if (e->user)
			managed_policy_mark(e->user);
	controller_bump_revision(c);
}

static void on_answer(void *arg)
{
	const struct controller *c = arg;
	struct timeval now = {0, 0};
	event_add(c->policies.sync, &now); // the watch may not be changed from its own callback
}

// Only one of the processes that share the policies counts the spending and writes the status.
static bool is_writer(const struct controller *c)
{
	return !c->ownership.shards || c->ownership.shard[0].is_owned;
}

static void on_missing(void *arg, const char *name)
{
	const struct controller *c = arg;
	if (c->pools.watch)
		pool_watch_verify(c->pools.watch, name);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct controller *c = arg;
	const struct clock *clock = &c->connections->clock;
	const struct pool_status_env env = {c->status_env.writer, c->status_env.events, c->file_env.dir,
	                                    c->options.log,       on_missing,           c};
	if (c->stopping)
		return;
	if (is_writer(c) && controller_has_synced(c) && pools_count(c->pools.pools) > 0)
		pool_status_write_all(c->pools.pools, &env, clock_wall_ms(clock), clock_mono_ms(clock));
	timer_start(c->pools.timer, POOL_STATUS_LOOK_MS);
}

int controller_pools_open(struct controller *c, struct err *e)
{
	const struct controller_options *o = &c->options;
	const struct pools_options options = {
	        .ask = on_ask,
	        .changed = on_changed,
	        .arg = c,
	        .unsupported = c->ownership.n_shards > 1
	                               ? "not supported: a pool whose members are spread over --shards; use one shard"
	                               : NULL};
	c->pools.pools = pools_new(&options);
	c->pools.timer = evtimer_new(c->connections->loop, on_timer, c);
	if (!c->pools.pools || !c->pools.timer || timer_start(c->pools.timer, POOL_STATUS_LOOK_MS) < 0)
		return err_set(e, ERR_INTERNAL, "out of memory");
	// Of the policies of one namespace alone no pool of the cluster could be shared.
	if (!o->policies_from_cluster || o->policy_namespace)
		return 0;
	const struct pool_watch_options watch = {.client = c->connections->k8s,
	                                         .pools = c->pools.pools,
	                                         .log = o->log,
	                                         .on_answer = on_answer,
	                                         .arg = c};
	c->pools.watch = pool_watch_new(&watch, e);
	return c->pools.watch ? 0 : -1;
}

void controller_pools_disconnect(struct controller *c)
{
	pool_watch_free(c->pools.watch);
	c->pools.watch = NULL;
}

void controller_pools_close(struct controller *c)
{
	if (c->pools.timer)
		event_free(c->pools.timer);
	pools_free(c->pools.pools);
}

bool controller_pools_are_known(const struct controller *c)
{
	return !c->pools.watch || pool_watch_has_answer(c->pools.watch);
}

static void log_report(const struct controller *c, const char *report)
{
	while (*report) { // one line per error
		size_t n = strcspn(report, "\n");
		char line[1024];
		size_t cut = n < sizeof line ? n : sizeof line - 1;
		memcpy(line, report, cut);
		line[cut] = '\0';
		LOG(c->options.log, LOG_ERROR, "Invalid pool", LOG_S("err", line));
		report += n + (report[n] == '\n');
	}
}

int controller_pools_read_files(void *arg, struct err *e)
{
	struct controller *c = arg;
	struct pool_set set;
	struct buf report;
	buf_init(&report, REPORT_MAX);
	int rc = pool_set_load(&set, c->options.policy_paths, c->options.n_policy_paths, false, &report, e);
	if (rc == 0 && set.n_errors + pool_set_check(&set, NULL, 0, &report) > 0) {
		log_report(c, buf_str(&report));
		rc = err_set(e, ERR_INPUT, "a pool is invalid; the errors are above");
	}
	if (rc == 0)
		rc = pools_put_files(c->pools.pools, &set, e);
	else
		pool_set_done(&set);
	if (rc == 0 && !c->options.once && !c->options.dry_run)
		pool_spending_files_read(c->pools.pools, c->file_env.dir, c->options.log);
	buf_done(&report);
	return rc;
}

void controller_pools_sync(struct managed_policy *m, const struct policy *member)
{
	const struct controller *c = m->controller;
	if (member && pools_count(c->pools.pools) > 0) {
		if (!m->seat)
			m->seat = pool_seat_new(c->pools.pools, m->namespace_name, m->name, member->label_lines, m);
		pool_seat_set_labels(m->seat, member->label_lines);
	} else if (!member && m->ticker.state != TICK_IN_PROGRESS) {
		controller_pools_leave(m);
	}
}

void controller_pools_leave(struct managed_policy *m)
{
	pool_seat_free(m->seat);
	m->seat = NULL;
}

struct pool_seat *controller_pools_seat(void *owner)
{
	return ((const struct managed_policy *)owner)->seat;
}

size_t controller_get_pools(struct controller *c, struct pool_summary *ret)
{
	const struct clock *clock = &c->connections->clock;
	size_t n = 0;
	const struct pool *p = NULL;
	while (n < POOLS_MAX &&
	       (p = pools_next(c->pools.pools, p, clock_wall_ms(clock), clock_mono_ms(clock), &ret[n])))
		n++;
	return n;
}
