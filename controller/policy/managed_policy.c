// SPDX-License-Identifier: Apache-2.0
#include "controller/policy/managed_policy.h"

#include <utlist.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/timer.h"
#include "controller/fleet/fleet.h"
#include "controller/source/policy_store.h"
#include "controller/status/status_writer.h"
#include "policies/load/policy_ref.h"
#include "runtime/connections.h"
#include "runtime/options/controller_options.h"
#include "runtime/shard/shards.h"

#define LEAVING_POLL_MS 20 // interval of the checks whether a lost shard can be released

// clang-format off
const char *const policy_awaits_names[] = {
        [AWAITS_NOTHING]    = "Nothing",
        [AWAITS_CONFLICTS]  = "Conflicts",
        [AWAITS_AUTOSCALER] = "Autoscaler",
        [AWAITS_SHARD]      = "Shard",
        [AWAITS_POLICY]     = "Policy",
        [AWAITS_VERSION]    = "Version",
        [AWAITS_REMOVAL]    = "Removal",
};
// clang-format on
_Static_assert(sizeof policy_awaits_names / sizeof policy_awaits_names[0] == POLICY_AWAITS__COUNT, "one name each");

struct managed_policy *managed_policy_new(struct managed_policies *all, struct stored_binding *stored)
{
	const struct policy_entry *entry = stored->entry;
	const char *key = stored->binding ? stored->binding->key : NULL;
	size_t name_at = strlen(entry->namespace_name) + 1, key_at = name_at + strlen(entry->name) + 1;
	struct managed_policy *m = must_alloc(calloc(1, sizeof *m + key_at + (key ? strlen(key) + 1 : 0)));
	memcpy(m->namespace_name, entry->namespace_name, name_at); // copies: m may outlive the entry
	m->name = memcpy(m->namespace_name + name_at, entry->name, key_at - name_at);
	if (key)
		m->key = memcpy(m->namespace_name + key_at, key, strlen(key) + 1);
	m->all = all;
	m->stored = stored;
	m->last_scale_boot_ms = -1;
	policy_report_init(&m->report);
	stored->user = m;
	return m;
}

const struct binding *managed_policy_binding(const struct managed_policy *m, const struct policy_ref *body)
{
	const struct binding *binding = policy_ref_binding(body, m->key);
	assert(binding);
	return binding;
}

void managed_policy_mark(struct managed_policy *m)
{
	if (m->is_dirty || m->all->stopping)
		return;
	m->is_dirty = true;
	DL_APPEND2(m->all->dirty, m, previous_dirty, next_dirty);
	managed_policies_wake(m->all);
}

void managed_policy_unmark(struct managed_policy *m)
{
	if (!m->is_dirty)
		return;
	m->is_dirty = false;
	DL_DELETE2(m->all->dirty, m, previous_dirty, next_dirty);
}

void managed_policies_mark_all(struct managed_policies *all)
{
	for (struct stored_binding *b = NULL; (b = policy_store_next(all->store, b));)
		if (b->user)
			managed_policy_mark(b->user);
}

void managed_policies_wake(struct managed_policies *all)
{
	if (all->wake)
		timer_start(all->wake, 0);
}

void managed_policies_changed(struct managed_policies *all)
{
	all->revision++;
	all->changed_ms = clock_wall_ms(&all->connections->clock);
}

bool managed_policy_has_id(const struct managed_policy *m, const char *id)
{
	size_t at = strlen(m->namespace_name), n = strlen(m->name);
	if (strncmp(id, m->namespace_name, at) != 0 || id[at] != '/' || strncmp(id + at + 1, m->name, n) != 0)
		return false;
	const char *rest = id + at + 1 + n;
	return rest[0] == '\0' || (m->key && rest[0] == '/' && strcmp(rest + 1, m->key) == 0);
}

int managed_policy_compare(const void *a, const void *b)
{
	const struct managed_policy *x = *(const struct managed_policy *const *)a;
	const struct managed_policy *y = *(const struct managed_policy *const *)b;
	int c = strcmp(x->namespace_name, y->namespace_name);
	c = c ? c : strcmp(x->name, y->name);
	return c ? c : binding_key_compare(x->key, y->key);
}

struct managed_policy *const *managed_policies_sort(struct managed_policies *all)
{
	if (all->is_sorted)
		return all->sorted;
	all->sorted = must_alloc(realloc(all->sorted, (all->n + 1) * sizeof(struct managed_policy *)));
	for (size_t i = 0; i < all->n; i++)
		all->sorted[i] = all->list[i];
	qsort(all->sorted, all->n, sizeof(struct managed_policy *), managed_policy_compare);
	all->is_sorted = true;
	return all->sorted;
}

const char *managed_policy_error(const struct managed_policy *m)
{
	return m->report.error ? m->report.error : "";
}

// ---- which of them this process works on ----

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
		timer_start(o->leaving, LEAVING_POLL_MS);
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
	timer_start(o->leaving, LEAVING_POLL_MS);
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
	o->shard = must_alloc(calloc((size_t)options.n_shards, sizeof *o->shard));
	o->leaving = must_alloc(event_new(to->loop, -1, 0, on_leaving, o));
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
	timer_free(o->leaving);
}
