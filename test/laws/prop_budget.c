// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of the monthly budget of a pool, on months of recorded demand: two members sized by the
// demand, with writes that are carried out late. The spending is counted from outside, from the replicas on the API
// server.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/num.h"
#include "policies/pool/gpu_pool.h"
#include "policies/pool/pool_allocate.h"
#include "test/laws/prop.h"

#define ROWS_MAX   2048
#define TICK_MS    INT64_C(60000)
#define HOUR_TICKS 60
#define WEEK_TICKS (7 * 24 * HOUR_TICKS)
#define LATE_TICKS 5
#define PEAK       40                     // replicas at the peak of a trace
#define OCTOBER    INT64_C(1790812800000) // 2026-10-01T00:00:00Z

struct trace {
	double value[ROWS_MAX], peak;
	int n;
	double step_s;
};

static void read_trace(const char *name, struct trace *t)
{
	char path[128], line[128];
	snprintf(path, sizeof path, "test/support/traces/%s.csv", name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	*t = (struct trace){0};
	assert_non_null(fgets(line, sizeof line, f)); // the header
	while (fgets(line, sizeof line, f)) {
		struct err e;
		const char *comma = strchr(line, ',');
		double at_s, v;
		assert_non_null(comma);
		assert_true(t->n < ROWS_MAX);
		assert_int_equal(num_parse_f64(line, (size_t)(comma - line), &at_s, &e), 0);
		assert_int_equal(num_parse_f64(comma + 1, strcspn(comma + 1, "\n"), &v, &e), 0);
		t->step_s = t->n == 1 ? at_s : t->step_s;
		t->peak = fmax(t->peak, v);
		t->value[t->n++] = v;
	}
	fclose(f);
}

// The trace, repeated; `tick` counts from its start.
static int32_t demand(const struct trace *t, int64_t tick)
{
	int64_t row = (int64_t)((double)tick * (double)TICK_MS / 1000 / t->step_s) % t->n;
	return (int32_t)fmax(ceil(t->value[row] / t->peak * PEAK), 1);
}

enum { CHAT, BATCH, MEMBERS };

struct month {
	struct pool_request q;
	struct pool_member members[MEMBERS];
	struct pool_grant grants[MEMBERS];
	struct pool_month budget;
	int late[MEMBERS];         // ticks until the write in flight is carried out
	double spent;              // millionths
	struct pool_ledger ledger; // the same, as the controller counts it
	double projected;          // in the middle of the month
	int64_t n_limited, n_ticks;
	int32_t most; // replicas at any time
};

static double rate_micro(const struct month *m)
{
	double micro = 0;
	for (int i = 0; i < MEMBERS; i++)
		micro += (double)m->members[i].current * (double)m->members[i].price_micro;
	return micro;
}

static void send(struct prop_random *r, struct month *m, int32_t percent_late)
{
	for (int i = 0; i < MEMBERS; i++) {
		struct pool_member *p = &m->members[i];
		if (m->late[i] > 0) {
			if (--m->late[i] == 0)
				p->current = p->pending;
			continue;
		}
		p->pending = m->grants[i].replicas;
		if (p->pending != p->current && prop_chance(r, percent_late))
			m->late[i] = 1 + prop_up_to(r, LATE_TICKS - 1);
		else
			p->current = p->pending;
	}
}

// Replays a month from `start_ms` on. budget_micro 0: none.
static void replay(struct prop_random *r, const struct trace *const *traces, int64_t start_ms, int64_t offset,
                   double budget_micro, int32_t percent_late, struct month *m)
{
	*m = (struct month){.q = {.gpus = 10000, .members = m->members, .n_members = MEMBERS},
	                    .members = {{.min = 1,
	                                 .guaranteed = 1,
	                                 .most = 1000,
	                                 .max = 100,
	                                 .current = 1,
	                                 .gpus_per_replica = 1,
	                                 .priority = 1},
	                                {.min = 0, .most = 1000, .max = 100, .gpus_per_replica = 1}}};
	m->members[CHAT].price_micro = 2500000;
	m->members[BATCH].price_micro = 4000000;
	m->members[CHAT].weight_milli = m->members[BATCH].weight_milli = 1000;
	m->members[CHAT].pending = 1;
	pool_month_at(&m->budget, start_ms);
	assert_true(m->budget.start_ms == start_ms);
	m->n_ticks = (m->budget.end_ms - start_ms) / TICK_MS;
	m->budget.budget_micro = (int64_t)budget_micro;
	for (int64_t k = 0; k < m->n_ticks; k++) {
		struct pool_total total;
		m->q.has_budget = false;
		m->budget.now_ms = start_ms + k * TICK_MS;
		pool_ledger_count(&m->ledger, m->budget.now_ms, rate_micro(m));
		m->budget.spent_micro = (int64_t)ceil(m->ledger.spent_micro);
		m->budget.since_ms = m->ledger.since_ms;
		if (fabs(m->ledger.spent_micro - m->spent) > 1)
			fail_msg("PROP_SEED=%llu: tick %lld: the ledger counts what is spent: %.6f of %.6f",
			         (unsigned long long)prop_seed(), (long long)k, m->ledger.spent_micro / 1e6,
			         m->spent / 1e6);
		if (budget_micro > 0)
			pool_month_limit(&m->q, &m->budget);
		for (int i = 0; i < MEMBERS; i++)
			m->members[i].asked = demand(traces[i], offset + k);
		pool_allocate(&m->q, m->grants, &total);
		send(r, m, percent_late);
		m->n_limited += m->grants[BATCH].reason == POOL_BUDGET_LIMITED;
		pool_ledger_count(&m->ledger, m->budget.now_ms, rate_micro(m));
		if (k == m->n_ticks / 2)
			m->projected =
			        (double)pool_month_projection(&m->budget, (int64_t)pool_ledger_rate_micro(&m->ledger));
		if (percent_late == 0 && m->q.has_budget && rate_micro(m) > (double)m->q.budget_micro)
			fail_msg("PROP_SEED=%llu: tick %lld: the hour costs more than its cap for longer than one tick",
			         (unsigned long long)prop_seed(), (long long)k);
		m->spent += rate_micro(m) / HOUR_TICKS;
	}
}

static const char *const names[] = {"nyc_taxi_2014_2weeks_30min", "servegen_m_small_week1_10min",
                                    "servegen_m_mid_week1_10min", "servegen_m_large_week1_10min"};
#define TRACES (sizeof names / sizeof names[0])

// The months October, November and February, which have 31, 30 and 28 days.
static const int64_t months[] = {OCTOBER, OCTOBER + INT64_C(31) * 86400000, OCTOBER + INT64_C(123) * 86400000};

static void check_month(const struct month *m, double budget, const char *name)
{
	unsigned long long seed = (unsigned long long)prop_seed();
	if (m->spent > budget)
		fail_msg("PROP_SEED=%llu: %s: the month never exceeds its budget: spent %.6f of %.6f", seed, name,
		         m->spent / 1e6, budget / 1e6);
	if (fabs(m->projected / m->spent - 1) > 0.05)
		fail_msg("PROP_SEED=%llu: %s: the projection at half-time is within 5 %%: %.2f, the month cost %.2f",
		         seed, name, m->projected / 1e6, m->spent / 1e6);
}

// With budgets from half of what the demand would cost to more than that.
static void month_stays_within_its_budget(void **state)
{
	static const double shares[] = {0.5, 0.8, 0.95, 1.2};
	static struct trace traces[TRACES];
	static struct month m;
	struct prop_random r = {prop_seed() + 701};
	double worst = 0;
	for (size_t i = 0; i < TRACES; i++)
		read_trace(names[i], &traces[i]);
	for (size_t i = 0; i < TRACES; i++) {
		const struct trace *const pair[MEMBERS] = {&traces[i], &traces[(i + 1) % TRACES]};
		for (size_t k = 0; k < sizeof months / sizeof months[0]; k++) {
			int64_t offset = prop_up_to(&r, WEEK_TICKS);
			replay(&r, pair, months[k], offset, 0, 0, &m);
			double full = m.spent;
			check_month(&m, INFINITY, names[i]);
			worst = fmax(worst, fabs(m.projected / m.spent - 1));
			for (size_t s = 0; s < sizeof shares / sizeof shares[0]; s++) {
				double budget = shares[s] * full;
				replay(&r, pair, months[k], offset, budget, prop_chance(&r, 50) ? 30 : 0, &m);
				check_month(&m, budget, names[i]);
				if (shares[s] < 1 && (m.n_limited == 0 || m.spent < 0.95 * budget))
					fail_msg("PROP_SEED=%llu: %s: a budget of %.0f %% is used: spent %.3f of it",
					         (unsigned long long)prop_seed(), names[i], shares[s] * 100,
					         m.spent / budget);
				if (shares[s] > 1 && m.spent < 0.995 * full)
					fail_msg("PROP_SEED=%llu: %s: a budget above the demand limits no peak: %.4f",
					         (unsigned long long)prop_seed(), names[i], m.spent / full);
			}
		}
	}
	print_message("worst projection without a budget: %.2f %%\n", 100 * worst);
}

int main(void)
{
	prop_begin();
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(month_stays_within_its_budget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
