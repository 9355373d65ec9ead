// SPDX-License-Identifier: Apache-2.0
#include "policies/pool/gpu_pool.h"

#include <math.h>
#include <string.h>

#include "policies/engine/number.h"
#include "policies/pool/pool_allocate.h"

static bool has_label(const char *lines, const char *label)
{
	const char *l = label;
	for (; *lines; lines++) {
		if (*lines == '\n') {
			if (l && !*l)
				return true;
			l = label; // start again at the next line
		} else {
			l = l && *l == *lines ? l + 1 : NULL; // NULL: this line differs
		}
	}
	return false;
}

bool gpu_pool_entry_has_namespace(const struct gpu_pool_entry *e)
{
	return (e->namespace_name && e->namespace_name[0]) || e->n_namespaces > 0;
}

bool gpu_pool_entry_names(const struct gpu_pool_entry *e, const char *namespace_name)
{
	if (e->namespace_name && e->namespace_name[0] && strcmp(e->namespace_name, namespace_name) == 0)
		return true;
	size_t i = 0;
	while (i < e->n_namespaces && strcmp(e->namespaces[i], namespace_name) != 0)
		i++;
	return i < e->n_namespaces;
}

bool gpu_pool_entry_matches(const struct gpu_pool_entry *e, const char *namespace_name, const char *name,
                            const char *label_lines)
{
	if (!e->name)
		return false; // entry of an invalid pool
	bool is_named = strcmp(e->name, name) == 0;
	if (namespace_name ? !gpu_pool_entry_names(e, namespace_name) : !is_named || !gpu_pool_entry_has_namespace(e))
		return false;
	for (size_t i = 0; i < e->n_labels && label_lines; i++)
		if (!has_label(label_lines, e->labels[i]))
			return false;
	return is_named || !e->name[0];
}

const struct gpu_pool_entry *gpu_pool_claims(const struct gpu_pool *pool, const char *namespace_name, const char *name,
                                             const char *label_lines)
{
	for (size_t i = 0; i < pool->n_entries; i++)
		if (gpu_pool_entry_matches(&pool->entries[i], namespace_name, name, label_lines))
			return &pool->entries[i];
	return NULL;
}

int64_t gpu_pool_micro(double money)
{
	double micro = floor(money * 1e6 + 0.5);
	return micro >= (double)POOL_COST_MAX_MICRO ? POOL_COST_MAX_MICRO : micro > 0 ? (int64_t)micro : 0;
}

int64_t gpu_pool_milli(double number)
{
	return gpu_pool_micro(number / 1000);
}

int32_t gpu_pool_most(const struct gpu_pool *pool, int32_t max_gpus, int32_t gpus_per_replica)
{
	int32_t gpus = max_gpus > 0 ? i32_min(max_gpus, pool->gpus) : pool->gpus;
	return gpus_per_replica > 0 ? i32_max(gpus, 0) / gpus_per_replica : 0; // 0: of an invalid pool
}

void gpu_pool_apply(const struct gpu_pool *pool, const struct gpu_pool_entry *entry, struct pool_member *m)
{
	m->gpus_per_replica = entry->gpus_per_replica;
	m->guaranteed = entry->max_min_replicas;
	m->most = gpu_pool_most(pool, entry->max_gpus, entry->gpus_per_replica);
	m->priority = entry->priority;
	m->weight_milli = i32_max(i32_from_i64(gpu_pool_milli(entry->weight)), 1);
	m->price_micro = gpu_pool_micro(entry->price > 0 ? entry->price : pool->price);
	m->backfill = entry->backfill;
}

struct pool_month gpu_pool_budget(const struct gpu_pool *pool, struct pool_request *q, int64_t now_ms,
                                  int64_t spent_micro, int64_t since_ms)
{
	struct pool_month month = {.spent_micro = spent_micro, .since_ms = since_ms};
	pool_month_at(&month, now_ms);
	q->has_budget = pool->has_budget && pool->has_per_hour;
	q->budget_micro = q->has_budget ? gpu_pool_micro(pool->per_hour) : 0;
	if (!pool->has_budget || !pool->has_per_month)
		return month;
	month.budget_micro = gpu_pool_micro(pool->per_month);
	pool_month_limit(q, &month);
	return month;
}
