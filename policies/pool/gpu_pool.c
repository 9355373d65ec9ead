// SPDX-License-Identifier: Apache-2.0
#include "policies/pool/gpu_pool.h"

#include <math.h>
#include <string.h>

#include "policies/engine/cron.h"
#include "policies/engine/number.h"
#include "policies/pool/pool_allocate.h"

static bool has_label(const char *lines, const char *label)
{
	size_t len = strlen(label);
	for (const char *end; (end = strchr(lines, '\n')); lines = end + 1)
		if ((size_t)(end - lines) == len && memcmp(lines, label, len) == 0)
			return true;
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

// Limits an amount to the range of amounts.
static int64_t to_micro(double micro)
{
	return micro >= (double)POOL_COST_MAX_MICRO ? POOL_COST_MAX_MICRO : micro > 0 ? (int64_t)micro : 0;
}

int64_t gpu_pool_micro(double money)
{
	return to_micro(floor(money * 1e6 + 0.5));
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

// ---- the spending ----

#define HOUR_MS         3600000.0
#define ADVANCE         (1.0 / 30)   // share of the budget, released with the first second of the month
#define RESERVE         (1.0 / 1000) // share of the budget, never released
#define HORIZON_MS      HOUR_MS
#define FIRST_OF_MONTHS "0 0 1 * *"

void pool_month_at(struct pool_month *m, int64_t now_ms)
{
	struct cron first;
	cron_parse(&first, FIRST_OF_MONTHS); // is valid
	int64_t now_s = now_ms / 1000 - (now_ms % 1000 < 0);
	m->now_ms = now_ms;
	m->start_ms = cron_at_or_before(&first, now_s) * 1000;
	m->end_ms = cron_after(&first, now_s) * 1000;
}

// The spending that is allowed until `at_ms`.
static double released(const struct pool_month *m, double at_ms, double minimum_micro)
{
	double budget = (double)m->budget_micro * (1 - RESERVE), rest_ms = (double)m->end_ms - at_ms;
	double elapsed = 1 - rest_ms / (double)(m->end_ms - m->start_ms);
	return fmin(budget * (ADVANCE + (1 - ADVANCE) * elapsed), budget - minimum_micro * (rest_ms / HOUR_MS));
}

static double spent_until(const struct pool_month *m, double minimum_micro)
{
	if (m->spent_micro == POOL_SPENT_UNKNOWN)
		return released(m, (double)m->now_ms, minimum_micro);
	double before = m->since_ms > m->start_ms ? fmax(released(m, (double)m->since_ms, minimum_micro), 0) : 0;
	return before + (double)m->spent_micro;
}

int64_t pool_month_limit(struct pool_request *q, const struct pool_month *m)
{
	int64_t minimum = 0;
	for (size_t i = 0; i < q->n_members; i++)
		minimum =
		        i64_add(minimum, (int64_t)pool_guaranteed(&q->members[i]) * pool_replica_micro(&q->members[i]));
	double now_ms = (double)m->now_ms, h_ms = fmax(fmin(HORIZON_MS, (double)m->end_ms - now_ms), 1);
	double spent = spent_until(m, (double)minimum);
	double cap = (released(m, now_ms + h_ms, (double)minimum) - spent) * (HOUR_MS / h_ms);
	int64_t micro = i64_max(to_micro(cap), minimum);
	if (!q->has_budget || micro < q->budget_micro)
		q->budget_micro = micro;
	q->has_budget = true;
	return micro;
}

int64_t pool_month_projection(const struct pool_month *m, int64_t rate_micro)
{
	if (m->spent_micro == POOL_SPENT_UNKNOWN)
		return POOL_SPENT_UNKNOWN;
	double rest_hours = fmax((double)(m->end_ms - m->now_ms), 0) / HOUR_MS;
	return to_micro((double)m->spent_micro + (double)rate_micro * rest_hours);
}

// ---- the record of the spending ----

#define DAY_MS    INT64_C(86400000)
#define WINDOW_MS (7 * DAY_MS)

// Millionths that the part of [from_ms, to_ms) from start_ms on costs.
static double cost(int64_t from_ms, int64_t to_ms, int64_t start_ms, double rate_micro)
{
	int64_t from = i64_max(from_ms, start_ms);
	return from < to_ms ? (double)(to_ms - from) / HOUR_MS * rate_micro : 0;
}

// until_ms moves into the day of now_ms.
static void turn_days(struct pool_ledger *l, int64_t now_ms)
{
	int64_t days = now_ms / DAY_MS - l->until_ms / DAY_MS;
	for (int64_t k = POOL_LEDGER_DAYS; k-- > 0 && days > 0;)
		l->day_micro[k] = k >= days ? l->day_micro[k - days] : 0;
}

static void add(struct pool_ledger *l, int64_t now_ms, double rate_micro, bool is_gap)
{
	struct pool_month month = {0};
	pool_month_at(&month, now_ms);
	if (l->until_ms < month.start_ms)
		l->spent_micro = l->assumed_micro = 0;
	double micro = cost(l->until_ms, now_ms, month.start_ms, rate_micro);
	l->spent_micro += micro;
	l->assumed_micro += is_gap ? micro : 0;
	turn_days(l, now_ms);
	int64_t end_ms = now_ms;
	for (int k = 0; k < POOL_LEDGER_DAYS && end_ms > l->until_ms; k++) {
		int64_t start_ms = (now_ms / DAY_MS - k) * DAY_MS;
		l->day_micro[k] += cost(l->until_ms, end_ms, start_ms, rate_micro);
		end_ms = start_ms;
	}
}

void pool_ledger_count(struct pool_ledger *l, int64_t now_ms, double rate_micro)
{
	if (l->since_ms <= 0 || l->until_ms - now_ms > POOL_LEDGER_AHEAD_MS)
		*l = (struct pool_ledger){.since_ms = now_ms, .until_ms = now_ms};
	int64_t passed_ms = now_ms - l->until_ms;
	if (passed_ms > 0) {
		bool is_gap = passed_ms > POOL_LEDGER_GAP_MS;
		add(l, now_ms, is_gap ? fmax(l->rate_micro, rate_micro) : l->rate_micro, is_gap);
		l->until_ms = now_ms;
	}
	l->rate_micro = rate_micro;
}

double pool_ledger_rate_micro(const struct pool_ledger *l)
{
	double sum = 0, hours = (double)(l->until_ms - l->since_ms) / HOUR_MS;
	if (hours < 1)
		return l->rate_micro;
	for (int k = 0; k < POOL_LEDGER_DAYS - 1; k++)
		sum += l->day_micro[k];
	// The part of the eighth day after this time of the day.
	sum += l->day_micro[POOL_LEDGER_DAYS - 1] * (1 - (double)(l->until_ms % DAY_MS) / (double)DAY_MS);
	return sum / fmin(hours, (double)WINDOW_MS / HOUR_MS);
}
