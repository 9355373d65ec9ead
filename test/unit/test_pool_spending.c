// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the record of a pool's spending is continued from the status of its object, and nothing that a
// status may hold is counted that was not spent. The laws are in test/laws/prop_spending.c.
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
#include "base/json/json_write.h"
#include "controller/pool/pools.h"

#define HOUR_MS  INT64_C(3600000)
#define DAY_MS   (24 * HOUR_MS)
#define OCTOBER  INT64_C(1790812800000) // 2026-10-01T00:00:00Z
#define NOVEMBER (OCTOBER + 31 * DAY_MS)

static void assert_near(double a, double b)
{
	if (fabs(a - b) > 1)
		fail_msg("%.6f is not %.6f", a, b);
}

// At one rate, a minute at a time.
static void run(struct pool_ledger *l, int64_t ms, double rate_micro)
{
	for (int64_t end_ms = l->until_ms + ms; l->until_ms < end_ms;)
		pool_ledger_count(l, l->until_ms + 60000, rate_micro);
}

static void month_and_days_start_at_zero(void **state)
{
	struct pool_ledger l = {0};
	(void)state;
	pool_ledger_count(&l, NOVEMBER - 12 * HOUR_MS, 1e6);
	run(&l, 12 * HOUR_MS - 60000, 1e6);
	assert_near(l.spent_micro, 12e6 - 1e6 / 60);
	run(&l, 60000, 1e6);
	assert_near(l.spent_micro, 0);
	run(&l, 2 * DAY_MS + 6 * HOUR_MS, 1e6);
	assert_near(l.spent_micro, 54e6);
	assert_near(l.assumed_micro, 0);
	assert_near(l.day_micro[0], 6e6);
	assert_near(l.day_micro[1], 24e6);
	assert_near(l.day_micro[3], 12e6);
	assert_near(l.day_micro[4], 0);
	assert_near(pool_ledger_rate_micro(&l), 1e6);
}

static void gap_counts_at_the_larger_rate_and_as_assumed(void **state)
{
	struct pool_ledger l = {0}, m;
	(void)state;
	pool_ledger_count(&l, NOVEMBER, 3e6);
	m = l;
	pool_ledger_count(&l, NOVEMBER + 2 * HOUR_MS, 1e6);
	assert_near(l.spent_micro, 6e6);
	assert_near(l.assumed_micro, 6e6);
	pool_ledger_count(&m, NOVEMBER + 2 * HOUR_MS, 5e6);
	assert_near(m.spent_micro, 10e6);
	pool_ledger_count(&l, NOVEMBER + 2 * HOUR_MS + 30000, 9e6); // observed: at the rate before
	assert_near(l.spent_micro, 6e6 + 1e6 / 120);
	assert_near(l.assumed_micro, 6e6);
	pool_ledger_count(&l, NOVEMBER + 400 * DAY_MS, 9e6); // 400 days later: of the month and of eight days only
	assert_near(l.day_micro[POOL_LEDGER_DAYS - 1], 24 * 9e6);
	assert_near(pool_ledger_rate_micro(&l), 9e6);
}

static void clock_that_was_set_back_counts_nothing_twice(void **state)
{
	struct pool_ledger l = {0};
	(void)state;
	pool_ledger_count(&l, NOVEMBER, 1e6);
	run(&l, HOUR_MS, 1e6);
	pool_ledger_count(&l, NOVEMBER + HOUR_MS / 2, 1e6);
	pool_ledger_count(&l, NOVEMBER + HOUR_MS, 1e6);
	assert_near(l.spent_micro, 1e6);
	pool_ledger_count(&l, NOVEMBER - HOUR_MS, 1e6); // too far: an invalid record starts again
	assert_true(l.since_ms == NOVEMBER - HOUR_MS && l.spent_micro == 0);
}

static void put_pool(struct pools *pools, const char *uid)
{
	struct pool_object *o = calloc(1, sizeof *o);
	struct err e;
	assert_non_null(o);
	arena_init(&o->arena, 1 << 20);
	o->pool = (struct gpu_pool){.name = "h100", .gpus = 4, .turn_every_ms = 1, .has_budget = true};
	o->generation = 1;
	snprintf(o->uid, sizeof o->uid, "%s", uid);
	assert_int_equal(pools_put_object(pools, o, &e), 0);
}

static void next_process_continues_the_record(void **state)
{
	struct pool_ledger l = {0}, read = {0};
	struct pools *pools = pools_new(&(struct pools_options){0});
	struct pool_summary sum;
	struct json_writer w;
	struct buf json;
	(void)state;
	put_pool(pools, "one");
	pool_ledger_count(&l, NOVEMBER - 3 * DAY_MS, 1234567);
	run(&l, 5 * DAY_MS, 1234567);
	pools_put_spending(pools, "h100", "one", &l);
	pools_put_spending(pools, "h100", "another", &(struct pool_ledger){.until_ms = INT64_MAX});
	const struct pool *pool = pools_next(pools, NULL, l.until_ms, 0, &sum);
	assert_non_null(pool);
	buf_init(&json, 1 << 16);
	json_write_init(&w, &json, 0);
	json_write_object_begin(&w);
	json_write_key(&w, "status");
	json_write_object_begin(&w);
	pool_spending_write(pool, l.until_ms, &w);
	json_write_object_end(&w);
	json_write_object_end(&w);
	assert_true(pool_spending_read(buf_str(&json), json.len, &read));
	assert_true(read.since_ms == l.since_ms && read.until_ms == l.until_ms);
	assert_near(read.spent_micro, l.spent_micro);
	assert_near(read.rate_micro, l.rate_micro);
	for (int k = 0; k < POOL_LEDGER_DAYS; k++)
		assert_near(read.day_micro[k], l.day_micro[k]);
	assert_true(fabs((double)sum.projected_micro - 30 * 24 * 1234567.0) < 1000); // the rate is rounded up
	read.until_ms--; // a status of an earlier leader, which arrives late
	read.spent_micro = 0;
	pools_put_spending(pools, "h100", "one", &read);
	pools_next(pools, NULL, l.until_ms, 0, &sum);
	assert_near(sum.spending.spent_micro, l.spent_micro);
	put_pool(pools, "two"); // another object of the name
	pools_next(pools, NULL, l.until_ms, 0, &sum);
	assert_true(sum.spending.since_ms == 0 && sum.projected_micro == POOL_SPENT_UNKNOWN);
	buf_done(&json);
	pools_free(pools);
}

static void invalid_record_counts_as_none(void **state)
{
#define STATUS(fields) "{\"status\":{\"spending\":" fields "}}"
	static const char *const texts[] = {
	        "",
	        "{",
	        "{}",
	        STATUS("null"),
	        STATUS("[]"),
	        STATUS("{}"),
	        STATUS("{\"since\":\"2026-11-02T00:00:00Z\",\"until\":\"2026-11-03T00:00:00Z\"}"),
	        STATUS("{\"since\":\"2026-11-02T00:00:00Z\",\"until\":\"2026-11-01T00:00:00Z\",\"spent\":\"1\"}"),
	        STATUS("{\"since\":\"2026-11-02T00:00:00Z\",\"until\":\"2026-11-03T00:00:00Z\",\"spent\":\"-1\"}"),
	        STATUS("{\"since\":\"2026-11-02T00:00:00Z\",\"until\":\"2026-11-03T00:00:00Z\",\"spent\":\"NaN\"}"),
	        STATUS("{\"since\":7,\"until\":\"tomorrow\",\"spent\":\"1\"}"),
	};
	struct pool_ledger l;
	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (pool_spending_read(texts[i], strlen(texts[i]), &l))
			fail_msg("%s is a record", texts[i]);
	const char *valid =
	        STATUS("{\"since\":\"2026-11-02T00:00:00Z\",\"until\":\"2026-11-03T00:00:00Z\",\"spent\":\"1.5\","
	               "\"days\":[{\"start\":\"1999-01-01T00:00:00Z\",\"spent\":\"9\"}],\"new\":1}");
	assert_true(pool_spending_read(valid, strlen(valid), &l));
	assert_near(l.spent_micro, 1.5e6);
	assert_near(l.day_micro[0], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(month_and_days_start_at_zero),
	        cmocka_unit_test(gap_counts_at_the_larger_rate_and_as_assumed),
	        cmocka_unit_test(clock_that_was_set_back_counts_nothing_twice),
	        cmocka_unit_test(next_process_continues_the_record),
	        cmocka_unit_test(invalid_record_counts_as_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
