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
	return shards_of(m->all->connections->shards, m->namespace_name, m->name);
}

uint32_t ownership_term(const struct managed_policy *m)
{
	return shards_owned_term(m->all->connections->shards, shard_of_policy(m));
}

bool ownership_may_restore(void *arg, const struct policy_ref *body, struct err *e)
{
	const struct connections *to = arg;
	return shards_may_write(to->shards, body->policy.namespace_name, body->policy.name, e);
}

static bool has_work_in_flight(void *arg, int32_t shard)
{
	const struct managed_policies *all = arg;
	const struct status_writer *writer = all->fleets->writer;
	if (all->stopping)
		return false; // the connections are closed
	for (size_t i = 0; i < all->n; i++) {
		const struct managed_policy *m = all->list[i];
		if (m->ticker.state == TICK_IN_PROGRESS && shard_of_policy(m) == shard)
			return true;
	}
	if (fleets_are_busy(all->fleets))
		return true; // of any shard, and for as long as a write takes
	struct status_writer_stats s = {0};
	if (writer)
		status_writer_get_stats(writer, &s);
	return s.in_flight > 0; // of any shard: these writes take milliseconds
}

// The process acquired or lost the shard.
static void on_shard(void *arg, int32_t shard)
{
	struct managed_policies *all = arg;
	if (all->stopping)
		return;
	managed_policies_changed(all);
	for (struct stored_binding *b = NULL; (b = policy_store_next(all->store, b));) {
		struct managed_policy *m = b->user;
		if (shard_of_policy(m) == shard)
			managed_policy_mark(m);
	}
}

int ownership_open(struct managed_policies *all, struct ha_options *election, struct err *e)
{
	static const struct shards_callbacks callbacks = {on_shard, on_shard, has_work_in_flight};
	return election ? connections_elect(all->connections, election, &callbacks, all, all->log, e) : 0;
}
