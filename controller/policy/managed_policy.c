// SPDX-License-Identifier: Apache-2.0
#include "controller/policy/managed_policy.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/must.h"
#include "controller/source/policy_store.h"
#include "controller/tick/reconcile.h"
#include "policies/engine/policy.h"
#include "runtime/connections.h"

struct managed_policy *managed_policy_new(struct managed_policies *all, struct policy_entry *entry)
{
	size_t name_at = strlen(entry->namespace_name) + 1, size = name_at + strlen(entry->name) + 1;
	struct managed_policy *m = must_alloc(calloc(1, sizeof *m + size));
	memcpy(m->namespace_name, entry->namespace_name, name_at); // copies: m may outlive the entry
	memcpy(m->namespace_name + name_at, entry->name, size - name_at);
	m->name = m->namespace_name + name_at;
	m->all = all;
	m->entry = entry;
	m->last_scale_boot_ms = -1;
	policy_report_init(&m->report);
	entry->user = m;
	return m;
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
	for (struct policy_entry *e = NULL; (e = policy_store_next(all->store, e));)
		if (e->user)
			managed_policy_mark(e->user);
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

static int compare_by_name(const void *a, const void *b)
{
	const struct policy *x = reconciler_policy((*(struct managed_policy *const *)a)->reconciler);
	const struct policy *y = reconciler_policy((*(struct managed_policy *const *)b)->reconciler);
	int c = strcmp(x->namespace_name, y->namespace_name);
	return c ? c : strcmp(x->name, y->name);
}

struct managed_policy *const *managed_policies_sort(struct managed_policies *all)
{
	if (all->is_sorted)
		return all->sorted;
	all->sorted = must_alloc(realloc(all->sorted, (all->n + 1) * sizeof(struct managed_policy *)));
	for (size_t i = 0; i < all->n; i++)
		all->sorted[i] = all->list[i];
	qsort(all->sorted, all->n, sizeof(struct managed_policy *), compare_by_name);
	all->is_sorted = true;
	return all->sorted;
}

const struct reconciler *managed_policy_reconciler(const struct managed_policy *m)
{
	return m->reconciler;
}

const char *managed_policy_error(const struct managed_policy *m)
{
	return m->report.error ? m->report.error : "";
}

const struct gpu_time *managed_policy_gpu_time(const struct managed_policy *m)
{
	return &m->report.gpu_time;
}

int64_t managed_policy_values_limited(const struct managed_policy *m)
{
	return m->report.values_limited;
}

const struct sparkline *managed_policy_sparkline(const struct managed_policy *m)
{
	return m->report.sparkline;
}
