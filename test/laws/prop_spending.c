// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of a pool's record of its spending, over a year of random use of the controller's pools,
// which restarts at random moments from a record that is up to five minutes old. What is spent is counted from outside,
// from the replicas of the members.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "controller/pool/pools.h"
#include "policies/engine/decision.h"
#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/pool/gpu_pool.h"
#include "test/laws/prop.h"

#define MEMBERS  2
#define TICK_MS  INT64_C(60000)
#define SAVE_MS  INT64_C(300000)
#define GAP_MAX  45                     // minutes without a process: less than the hour that the budget looks ahead
#define YEAR_MS  INT64_C(31622400000)   // of 366 days
#define START_MS INT64_C(1821276000000) // 2027-09-18T10:00:00Z, so that February has 29 days
#define PER_HOUR 100.0
#define PRICE    2.5

struct year {
	struct prop_random random;
	struct pools *pools;
	struct policy policy;
	struct pool_membership *memberships[MEMBERS];
	int32_t replicas[MEMBERS], wish[MEMBERS];
	double per_month;
	struct pool_ledger saved; // as the status has it
	int64_t saved_ms, now_ms, month_ms;
	double spent; // of the month, in the currency, from outside
	double late;  // of the month: removed replicas count until the next tick, which sees the target's status
	double most;  // of perMonth, in whole months
	int64_t n_limited, n_restarts;
};

static void start(struct year *y)
{
	struct pool_object *o = calloc(1, sizeof *o);
	struct err e;
	assert_non_null(o);
	arena_init(&o->arena, 1 << 20);
	o->pool = (struct gpu_pool){.name = arena_strdup(&o->arena, "h100"),
	                            .gpus = 1000,
	                            .turn_every_ms = 1800000,
	                            .has_budget = true,
	                            .has_per_hour = true,
	                            .has_per_month = true,
	                            .per_hour = PER_HOUR,
	                            .per_month = y->per_month,
	                            .price = PRICE};
	o->pool.entries = arena_calloc(&o->arena, 1, sizeof *o->pool.entries);
	o->pool.entries[0] =
	        (struct gpu_pool_entry){.namespace_name = "default", .name = "", .gpus_per_replica = 1, .weight = 1};
	o->pool.n_entries = 1;
	snprintf(o->uid, sizeof o->uid, "uid");
	y->pools = pools_new(&(struct pools_options){0});
	assert_int_equal(pools_put_object(y->pools, o, &e), 0);
	if (y->saved.since_ms > 0)
		pools_put_spending(y->pools, "h100", "uid", &y->saved);
	for (int i = 0; i < MEMBERS; i++)
		y->memberships[i] = pool_membership_new(y->pools, "default", i ? "b" : "a", NULL, NULL, NULL);
}

static void stop(struct year *y)
{
	for (int i = 0; i < MEMBERS; i++)
		pool_membership_free(y->memberships[i]);
	pools_free(y->pools);
}

static void fail_at(const struct year *y, const char *law, double a, double b)
{
	fail_msg("PROP_SEED=%llu: minute %lld: %s: %.6f, %.6f", (unsigned long long)prop_seed(),
	         (long long)((y->now_ms - START_MS) / 60000), law, a, b);
}

// The time that passes costs what the replicas cost; a month ends.
static void pass(struct year *y, int64_t ms)
{
	struct pool_month month = {0};
	double rate = 0;
	for (int i = 0; i < MEMBERS; i++)
		rate += y->replicas[i] * PRICE;
	pool_month_at(&month, y->now_ms + ms);
	int64_t before = month.start_ms > y->now_ms ? month.start_ms - y->now_ms : ms;
	y->spent += rate * (double)before / 3600000;
	if (before < ms || month.start_ms == y->now_ms + ms) {
		if (y->spent > y->per_month)
			fail_at(y, "no month costs more than perMonth", y->spent, y->per_month);
		y->most = y->month_ms > START_MS ? fmax(y->most, y->spent / y->per_month) : 0;
		y->month_ms = month.start_ms;
		y->spent = rate * (double)(ms - before) / 3600000;
		y->late = 0;
	}
	y->now_ms += ms;
}

static void tick(struct year *y, int i)
{
	struct buf text;
	const struct pool_tick tick = {.policy = &y->policy,
	                               .existing_replicas = y->replicas[i],
	                               .unacked = -1,
	                               .now_ms = y->now_ms,
	                               .now_mono_ms = y->now_ms};
	int32_t has = y->replicas[i], wants = y->wish[i];
	struct decision d = {.current = has,
	                     .desired = wants,
	                     .min_replicas = 1,
	                     .max_replicas = 1000,
	                     .action = wants > has   ? ACTION_SCALE_UP
	                               : wants < has ? ACTION_SCALE_DOWN
	                                             : ACTION_NONE,
	                     .write = wants != has};
	buf_init(&text, POOL_TEXT_BYTES_MAX);
	pool_membership_decide(y->memberships[i], &tick, &d, &text);
	buf_done(&text);
	y->n_limited += d.reason == REASON_BUDGET_LIMITED;
	if (d.write) {
		y->late += i32_max(has - d.desired, 0) * PRICE * (double)TICK_MS / 3600000;
		y->replicas[i] = d.desired;
		pool_membership_written(y->memberships[i], d.desired, POOL_WRITE_DONE);
	}
	pool_membership_end(y->memberships[i]);
}

// The record is never less than what was spent, and what it has in excess of that is marked as assumed; both to within
// one tick.
static void check_record(struct year *y, struct pool_summary *sum)
{
	double step = 2 * PER_HOUR * (double)TICK_MS / 3600000;
	assert_non_null(pools_next(y->pools, NULL, y->now_ms, y->now_ms, sum));
	double spent = sum->spending.spent_micro / 1e6;
	if (sum->spending.until_ms < y->month_ms)
		return; // of the last month
	if (spent - sum->spending.assumed_micro / 1e6 > y->spent + y->late + step)
		fail_at(y, "no time is counted twice", spent, y->spent);
	if (spent < y->spent - step)
		fail_at(y, "no time is left out", spent, y->spent);
}

static void restart(struct year *y)
{
	stop(y);
	pass(y, (1 + prop_up_to(&y->random, GAP_MAX - 1)) * INT64_C(60000));
	if (prop_chance(&y->random, 20)) // by hand
		y->replicas[0] = i32_max(y->replicas[0] - 1, 1);
	y->n_restarts++;
	start(y);
}

static void no_month_costs_more_than_its_budget(void **state)
{
	struct year y = {.random = {prop_seed() + 702},
	                 .policy = {.interval_ms = TICK_MS, .replica_multiple = 1},
	                 .replicas = {1, 1},
	                 .wish = {1, 1},
	                 .per_month = 20000,
	                 .now_ms = START_MS,
	                 .month_ms = START_MS};
	struct pool_summary sum = {0};
	(void)state;
	start(&y);
	while (y.now_ms < START_MS + YEAR_MS) {
		for (int i = 0; i < MEMBERS; i++) {
			if (prop_chance(&y.random, 2))
				y.wish[i] = 1 + prop_up_to(&y.random, 30);
			tick(&y, i);
		}
		pool_status_write_all(y.pools, &(struct pool_status_env){0}, y.now_ms, y.now_ms);
		check_record(&y, &sum);
		if (y.now_ms - y.saved_ms >= SAVE_MS && sum.spending.since_ms > 0) {
			y.saved = sum.spending;
			y.saved_ms = y.now_ms;
		}
		pass(&y, TICK_MS);
		if (prop_up_to(&y.random, 1000) == 0)
			restart(&y);
	}
	stop(&y);
	print_message("%lld restarts, %lld decisions limited, the dearest month used %.2f %%\n",
	              (long long)y.n_restarts, (long long)y.n_limited, 100 * y.most);
	assert_true(y.n_limited > 1000 && y.n_restarts > 100 && y.most > 0.95);
}

int main(void)
{
	prop_begin();
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(no_month_costs_more_than_its_budget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
