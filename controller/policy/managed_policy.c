// SPDX-License-Identifier: Apache-2.0
#include "controller/policy/managed_policy.h"

#include <assert.h>
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/must.h"
#include "controller/source/policy_store.h"
#include "policies/load/policy_ref.h"
#include "runtime/connections.h"

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

struct managed_policy *managed_policy_of(struct ticker *t)
{
	uintptr_t at = (uintptr_t)t - offsetof(struct managed_policy, ticker);
	return (struct managed_policy *)at;
}

void managed_policies_enlist(struct managed_policy *m)
{
	struct managed_policies *all = m->all;
	if (all->n == all->room) {
		all->room = all->room ? all->room * 2 : 16;
		all->list = must_alloc(realloc(all->list, all->room * sizeof(struct managed_policy *)));
	}
	m->index = all->n;
	all->list[all->n++] = m;
	all->is_sorted = false;
}

void managed_policies_delist(struct managed_policy *m)
{
	struct managed_policies *all = m->all;
	all->list[m->index] = all->list[--all->n];
	all->list[m->index]->index = m->index;
	all->is_sorted = false;
}

void managed_policies_mark_all(struct managed_policies *all)
{
	for (struct stored_binding *b = NULL; (b = policy_store_next(all->store, b));)
		if (b->user)
			managed_policy_mark(b->user);
}

void managed_policies_wake(struct managed_policies *all)
{
	struct timeval now = {0, 0};
	if (all->wake)
		event_add(all->wake, &now);
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
