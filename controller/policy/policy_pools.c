// SPDX-License-Identifier: Apache-2.0
// Makes the policies members of their pools (controller/pool), reads pools from the API server and from files, and
// writes the status of pools. A policy becomes a member as soon as it is eligible, before its first tick: until then,
// what its target has is unknown, so no other member of its pool grows.
#include "base/base.h"
#include "controller/policy/managed_policy.h"

#include <event2/event.h>

#include "base/timer.h"
#include "controller/pool/pools.h"
#include "controller/source/file_source.h"
#include "controller/source/object_watch.h"
#include "controller/source/policy_store.h"
#include "policies/engine/policy.h"
#include "policies/load/pool_set.h"
#include "policies/schema/binding.h"
#include "runtime/connections.h"
#include "runtime/shard/shards.h"

#define REPORT_MAX (1024 * 1024)

static void on_ask(void *user)
{
	struct managed_policy *m = user;
	if (m->reconciler && m->ticker.group)
		ticks_ask(m->all->ticks, &m->ticker, clock_wall_ms(&m->all->connections->clock));
}

static void on_changed(void *arg)
{
	const struct policy_pools *p = arg;
	managed_policies_mark_all(p->options.all);
	managed_policies_changed(p->options.all);
}

static void on_answer(void *arg)
{
	const struct policy_pools *p = arg;
	managed_policies_wake(p->options.all); // the watch may not be changed from its own callback
}

static void on_missing(void *arg, const char *name)
{
	const struct policy_pools *p = arg;
	if (p->watch)
		object_watch_verify(p->watch->objects, "", name);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct policy_pools *p = arg;
	struct managed_policies *all = p->options.all;
	const struct clock *clock = &all->connections->clock;
	const struct pool_status_env env = {p->options.writer, p->options.events, p->options.dir,
	                                    all->log,          on_missing,        p};
	if (all->stopping)
		return;
	// Only one of the processes that share the policies counts the spending and writes the status.
	bool is_first = shards_owned_term(all->connections->shards, 0) > 0;
	if (is_first && all->has_synced(all->arg) && p->pools->n > 0)
		pool_status_write_all(p->pools, &env, clock_wall_ms(clock), clock_mono_ms(clock));
	timer_start(&p->timer, POOL_STATUS_CHECK_MS);
}

struct policy_pools *policy_pools_new(const struct policy_pools_options *o)
{
	struct policy_pools *p = must_alloc(calloc(1, sizeof *p));
	const struct managed_policies *all = o->all;
	struct shards_view shards = {0};
	if (all->connections->shards)
		shards_get_view(all->connections->shards, &shards);
	const struct pools_options options = {
	        .ask = on_ask,
	        .changed = on_changed,
	        .arg = p,
	        .unsupported = shards.n_shards > 1
	                               ? "not supported: a pool whose members are spread over --shards; use one shard"
	                               : NULL};
	p->options = *o;
	p->pools = pools_new(&options);
	const struct pool_watch_options watch = {
	        .client = all->connections->k8s, .pools = p->pools, .log = all->log, .on_answer = on_answer, .arg = p};
	evtimer_assign(&p->timer, all->connections->loop, on_timer, p);
	if (timer_start(&p->timer, POOL_STATUS_CHECK_MS) < 0)
		abort(); // base/alloc.h
	p->watch = o->watches ? pool_watch_new(&watch) : NULL;
	return p;
}

void policy_pools_disconnect(struct policy_pools *p)
{
	if (!p)
		return;
	pool_watch_free(p->watch);
	p->watch = NULL;
}

void policy_pools_free(struct policy_pools *p)
{
	if (!p)
		return;
	event_del(&p->timer);
	pools_free(p->pools);
	free(p);
}

int policy_pools_read_files(void *arg, struct err *e)
{
	struct policy_pools *p = arg;
	struct log *log = p->options.all->log;
	struct pool_set set;
	struct buf report;
	buf_init(&report, REPORT_MAX);
	int rc = pool_set_load(&set, p->options.paths, p->options.n_paths, false, &report, e);
	if (rc == 0 && set.n_errors + pool_set_check(&set, NULL, 0, &report) > 0) {
		file_source_log(log, "Invalid pool", buf_str(&report));
		rc = err_set(e, ERR_INPUT, "a pool is invalid; the errors are above");
	}
	if (rc == 0)
		rc = pools_put_files(p->pools, &set, e);
	else
		pool_set_done(&set);
	if (rc == 0 && !p->options.once && !p->options.all->dry_run)
		pool_spending_files_read(p->pools, p->options.dir, log);
	buf_done(&report);
	return rc;
}

void policy_pools_sync(struct managed_policy *m, const struct policy *member)
{
	struct pools *pools = m->all->policy_pools->pools;
	if (member && pools->n > 0 && !m->stored->binding->variants) {
		if (!m->membership)
			m->membership =
			        pool_membership_new(pools, m->namespace_name, m->name, m->key, member->label_lines, m);
		pool_membership_set_labels(m->membership, member->label_lines);
	} else if (!member && m->ticker.state != TICK_IN_PROGRESS) {
		policy_pools_leave(m);
	}
}

void policy_pools_leave(struct managed_policy *m)
{
	pool_membership_free(m->membership);
	m->membership = NULL;
}

struct pool_membership *policy_pools_membership(void *owner)
{
	return ((const struct managed_policy *)owner)->membership;
}

size_t policy_pools_summarize(struct policy_pools *pools, struct pool_summary *ret)
{
	const struct clock *clock = &pools->options.all->connections->clock;
	size_t n = 0;
	const struct pool *p = NULL;
	while (n < POOLS_MAX && (p = pools_next(pools->pools, p, clock_wall_ms(clock), clock_mono_ms(clock), &ret[n])))
		n++;
	return n;
}
