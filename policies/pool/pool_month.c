// SPDX-License-Identifier: Apache-2.0
#include "policies/pool/pool_month.h"

#include <math.h>

#include "policies/engine/cron.h"
#include "policies/engine/number.h"
#include "policies/pool/pool_fill.h"
#include "policies/pool/pool_request.h"

#define HOUR_MS         3600000.0
#define ADVANCE         (1.0 / 30)   // share of the budget, released with the first second of the month
#define RESERVE         (1.0 / 1000) // share of the budget, never released
#define HORIZON_MS      HOUR_MS
#define MICRO_MAX       ((double)POOL_COST_MAX_MICRO)
#define FIRST_OF_MONTHS "0 0 1 * *"

static int64_t to_micro(double micro)
{
	return micro >= MICRO_MAX ? POOL_COST_MAX_MICRO : micro > 0 ? (int64_t)micro : 0;
}

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
