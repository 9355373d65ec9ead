// SPDX-License-Identifier: Apache-2.0
#include "policies/pool/gpu_pool.h"

#include <math.h>
#include <string.h>

#include "policies/engine/number.h"
#include "policies/pool/pool_request.h"

const struct gpu_pool_entry *gpu_pool_claims(const struct gpu_pool *pool, const char *namespace_name, const char *name)
{
	for (size_t i = 0; i < pool->n_entries; i++) {
		const struct gpu_pool_entry *e = &pool->entries[i];
		if (!e->namespace_name || !e->name)
			continue; // of an invalid pool
		bool any_namespace = !e->namespace_name[0], is_named = strcmp(e->name, name) == 0;
		if (namespace_name ? any_namespace || strcmp(e->namespace_name, namespace_name) == 0
		                   : any_namespace || is_named)
			if (is_named || !e->name[0])
				return e;
	}
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

void gpu_pool_apply(const struct gpu_pool *pool, const struct gpu_pool_entry *entry, struct pool_member *m)
{
	m->gpus_per_replica = entry->gpus_per_replica;
	m->priority = entry->priority;
	m->weight_milli = i32_max(i32_from_i64(gpu_pool_milli(entry->weight)), 1);
	m->price_micro = gpu_pool_micro(entry->price > 0 ? entry->price : pool->price);
	m->backfill = entry->backfill;
}

struct pool_month gpu_pool_budget(const struct gpu_pool *pool, struct pool_request *q, int64_t now_ms,
                                  int64_t spent_micro)
{
	struct pool_month month = {.spent_micro = spent_micro};
	pool_month_at(&month, now_ms);
	q->has_budget = pool->has_budget && pool->has_per_hour;
	q->budget_micro = q->has_budget ? gpu_pool_micro(pool->per_hour) : 0;
	if (!pool->has_budget || !pool->has_per_month)
		return month;
	month.budget_micro = gpu_pool_micro(pool->per_month);
	pool_month_limit(q, &month);
	return month;
}
