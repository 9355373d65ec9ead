// SPDX-License-Identifier: Apache-2.0
// Lines of `gpuscale grant`: defaults, the answer, and errors that name the line and the field.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "policies/pool/gpu_pool.h"
#include "policies/test/filters.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static struct gpu_pool_entry entries[] = {
        {.namespace_name = "serving",
         .name = "chat",
         .gpus_per_replica = 4,
         .priority = 10,
         .weight = 1.5,
         .price = 3,
         .at = {.line = 1}},
        {.namespace_name = "batch",
         .name = "",
         .gpus_per_replica = 2,
         .weight = 1,
         .backfill = true,
         .max_gpus = 9,
         .max_min_replicas = 2},
};
static struct gpu_pool_ratio ratios[] = {{.of = "serving/prefill", .to = "serving/decode", .min = 0.25, .max = 1}};
static const struct gpu_pool pool = {.name = "h100",
                                     .gpus = 32,
                                     .has_budget = true,
                                     .has_per_hour = true,
                                     .per_hour = 100,
                                     .price = 2.5,
                                     .turn_every_ms = 60000,
                                     .entries = entries,
                                     .n_entries = N(entries),
                                     .ratios = ratios,
                                     .n_ratios = 1};

static int parse(const char *text, unsigned long long number, struct arena *a, struct grant_line *line, struct err *e)
{
	return grant_line_parse(&pool, text, strlen(text), number, a, line, e);
}

static void absent_fields_have_defaults(void **state)
{
	struct arena a;
	struct grant_line line;
	struct err e;
	arena_init(&a, 1 << 20);
	assert_int_equal(parse("{\"members\":[{\"name\":\"chat\",\"asked\":3,\"current\":2},{\"name\":\"batch/t\"},"
	                       "{\"name\":\"x\",\"current\":5,\"weight\":0.5,\"priority\":null}]}",
	                       1, &a, &line, &e),
	                 0);
	const struct pool_member *m = line.request.members;
	assert_int_equal(line.request.n_members, 3);
	assert_int_equal(line.request.gpus, 32);
	assert_int_equal(line.request.budget_micro, 100000000);
	assert_int_equal(line.request.turn, 0);
	assert_int_equal(m[0].pending, 2); // as current
	assert_int_equal(m[0].min, 0);
	assert_int_equal(m[0].max, POOL_REPLICAS_MAX);
	assert_int_equal(m[0].gpus_per_replica, 4); // of the entry serving/chat
	assert_int_equal(m[0].priority, 10);
	assert_int_equal(m[0].weight_milli, 1500);
	assert_int_equal(m[0].price_micro, 3000000);
	assert_false(m[0].is_fixed);
	assert_true(m[1].backfill); // of the entry of the namespace; without metrics it still yields
	assert_false(m[1].is_fixed);
	assert_true(m[2].is_fixed); // no entry, no metrics
	assert_int_equal(m[2].gpus_per_replica, 1);
	assert_int_equal(m[2].weight_milli, 500);
	assert_int_equal(m[2].priority, 0);
	assert_int_equal(m[0].guaranteed, 0);
	assert_int_equal(m[0].most, 8); // the GPUs of the pool
	assert_int_equal(m[1].guaranteed, 2);
	assert_int_equal(m[1].most, 4);                       // whole replicas
	assert_int_equal(m[2].guaranteed, POOL_REPLICAS_MAX); // no entry rules it: all of min
	assert_int_equal(
	        parse("{\"members\":[{\"name\":\"chat\",\"maxMinReplicas\":3,\"maxGPUs\":8}]}", 1, &a, &line, &e), 0);
	assert_int_equal(line.request.members[0].guaranteed, 3);
	assert_int_equal(line.request.members[0].most, 2);
	arena_done(&a);
}

static void turn_follows_the_time(void **state)
{
	static const char plain[] = "{\"members\":[]}", timed[] = "{\"time\":600,\"members\":[]}";
	struct arena a;
	struct grant_line line;
	struct err e;
	arena_init(&a, 1 << 20);
	assert_int_equal(parse(plain, 5, &a, &line, &e), 0); // the fifth line, 15 s after the fourth
	assert_int_equal(line.request.turn, 1);
	assert_int_equal(parse(timed, 1, &a, &line, &e), 0);
	assert_int_equal(line.request.turn, 10);
	arena_done(&a);
}

static void ratio_applies_to_lines_with_both_members(void **state)
{
	struct arena a;
	struct grant_line line;
	struct err e;
	arena_init(&a, 1 << 20);
	assert_int_equal(
	        parse("{\"members\":[{\"name\":\"serving/decode\"},{\"name\":\"prefill\"}]}", 1, &a, &line, &e), 0);
	assert_int_equal(line.request.n_ratios, 1);
	assert_int_equal(line.request.ratios[0].of, 1);
	assert_int_equal(line.request.ratios[0].to, 0);
	assert_int_equal(line.request.ratios[0].min_milli, 250);
	assert_int_equal(parse("{\"members\":[{\"name\":\"serving/decode\"}]}", 1, &a, &line, &e), 0);
	assert_int_equal(line.request.n_ratios, 0);
	arena_done(&a);
}

static void invalid_line_names_the_field(void **state)
{
	static const struct {
		const char *line, *error;
	} rows[] = {
	        {"", "JSON"},
	        {"[]", "a line must be an object"},
	        {"{}", "members must be a list"},
	        {"{\"members\":{}}", "members must be a list"},
	        {"{\"member\":[]}", "unknown field \"member\", did you mean \"members\"?"},
	        {"{\"members\":[],\"time\":-1}", "time must be a number of seconds"},
	        {"{\"members\":[],\"members\":[]}", "members is given twice"},
	        {"{\"members\":[3]}", "members[0]: must be an object"},
	        {"{\"members\":[{\"asked\":3}]}", "members[0]: name must be a string"},
	        {"{\"members\":[{\"name\":\"\"}]}", "members[0]: name must be a string"},
	        {"{\"members\":[{\"name\":\"a\"},{\"name\":\"a\"}]}", "members: \"a\" is given twice"},
	        {"{\"members\":[{\"name\":\"a\",\"asked\":1.5}]}", "members[0]: asked must be a whole number"},
	        {"{\"members\":[{\"name\":\"a\",\"asked\":\"3\"}]}", "members[0]: asked must be a whole number"},
	        {"{\"members\":[{\"name\":\"a\",\"current\":-1}]}", "members[0]: current must be a whole number"},
	        {"{\"members\":[{\"name\":\"a\",\"pending\":1e9}]}", "members[0]: pending must be a whole number"},
	        {"{\"members\":[{\"name\":\"a\",\"min\":3,\"max\":2}]}",
	         "members[0]: min is 3, larger than max, which is 2"},
	        {"{\"members\":[{\"name\":\"a\",\"gpusPerReplica\":0}]}",
	         "gpusPerReplica must be a whole number from 1"},
	        {"{\"members\":[{\"name\":\"a\",\"priority\":true}]}", "priority must be a whole number"},
	        {"{\"members\":[{\"name\":\"a\",\"weight\":0}]}", "weight must be a number from 0.001 to 1000"},
	        {"{\"members\":[{\"name\":\"a\",\"pricePerGPU\":-2}]}", "pricePerGPU must be a number from 0 to 1000"},
	        {"{\"members\":[{\"name\":\"a\",\"backfill\":1}]}", "backfill must be true or false"},
	        {"{\"members\":[{\"name\":\"a\",\"wieght\":1}]}", "unknown field \"wieght\", did you mean \"weight\"?"},
	        {"{\"members\":[{\"name\":\"a\",\"maxGPUs\":0}]}", "maxGPUs must be a whole number from 1"},
	        {"{\"members\":[{\"name\":\"a\",\"maxMinReplicas\":-1}]}",
	         "maxMinReplicas must be a whole number from 0"},
	        {"{\"members\":[{\"name\":\"a\",\"min\":1,\"min\":1}]}", "members[0]: min is given twice"},
	};
	struct arena a;
	struct grant_line line;
	arena_init(&a, 1 << 20);
	for (size_t i = 0; i < N(rows); i++) {
		struct err e;
		assert_int_equal(parse(rows[i].line, 1, &a, &line, &e), -1);
		if (!strstr(e.msg, rows[i].error))
			fail_msg("%s: \"%s\", expected \"%s\"", rows[i].line, e.msg, rows[i].error);
	}
	arena_done(&a);
}

static void too_many_members_are_refused(void **state)
{
	struct arena a;
	struct grant_line line;
	struct buf text;
	struct err e;
	arena_init(&a, 16 << 20);
	buf_init(&text, 1 << 20);
	buf_puts(&text, "{\"members\":[");
	for (int i = 0; i <= POOL_MEMBERS_MAX; i++)
		buf_printf(&text, "%s{\"name\":\"m%d\"}", i ? "," : "", i);
	buf_puts(&text, "]}");
	assert_int_equal(parse(buf_str(&text), 1, &a, &line, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "10001 items, the ceiling is 10000"));
	buf_done(&text);
	arena_done(&a);
}

static void every_line_gets_one_answer(void **state)
{
	static const char good[] = "{\"members\":[{\"name\":\"chat\",\"asked\":12}]}", bad[] = "{\"members\":[{}]}";
	struct gpu_pool plain = pool;
	plain.has_budget = false;
	for (int explain = 0; explain < 2; explain++) {
		struct grant *g = grant_new(&plain, explain);
		struct buf out;
		struct err e;
		buf_init(&out, 1 << 20);
		assert_int_equal(grant_answer(g, good, strlen(good), &out, &e), 0);
		assert_string_equal(
		        buf_str(&out),
		        explain ? "{\"grants\":[{\"name\":\"chat\",\"replicas\":8,\"reason\":\"PoolLimited\","
		                  "\"message\":\"requested 12, granted 8: pool h100 uses 32 of 32 GPUs\"}],"
		                  "\"usedGPUs\":32}\n"
		                : "{\"grants\":[{\"name\":\"chat\",\"replicas\":8,\"reason\":\"PoolLimited\"}],"
		                  "\"usedGPUs\":32}\n");
		buf_reset(&out);
		assert_int_equal(grant_answer(g, bad, strlen(bad), &out, &e), -1);
		assert_string_equal(
		        buf_str(&out),
		        "{\"error\":\"line 2: members[0]: name must be a string: the name of the member\"}\n");
		buf_done(&out);
		grant_free(g);
	}
}

static void expect_answer(const struct gpu_pool *p, const char *line, const char *want)
{
	struct grant *g = grant_new(p, true);
	struct buf out;
	struct err e;
	buf_init(&out, 1 << 20);
	grant_answer(g, line, strlen(line), &out, &e);
	if (!strstr(buf_str(&out), want))
		fail_msg("%s: got %s, expected %s", line, buf_str(&out), want);
	buf_done(&out);
	grant_free(g);
}

// January 1970 has 744 hours; 0.999 of 744 is released along a line that starts at a thirtieth.
static void month_lowers_the_hourly_budget(void **state)
{
	struct gpu_pool monthly = {.name = "h100",
	                           .gpus = 1000,
	                           .has_budget = true,
	                           .has_per_month = true,
	                           .per_month = 744,
	                           .price = 1,
	                           .turn_every_ms = 60000,
	                           .entries = entries,
	                           .n_entries = N(entries)};
	// On the line, when the spending is unknown: 0.999 * 29/30 of an hour's part.
	expect_answer(&monthly, "{\"members\":[{\"name\":\"x\",\"asked\":12}],\"time\":0}",
	              "\"budgetPerHour\":0.96569");
	expect_answer(&monthly, "{\"members\":[{\"name\":\"x\",\"asked\":12}],\"time\":0,\"spent\":0}",
	              "\"replicas\":12,\"reason\":\"Granted\"");
	expect_answer(
	        &monthly,
	        "{\"members\":[{\"name\":\"x\",\"asked\":12,\"current\":9,\"min\":1}],\"time\":86400,\"spent\":60}",
	        "\"replicas\":1,\"reason\":\"BudgetLimited\",\"message\":\"requested 12, granted 1: the budget of pool "
	        "h100 is used up at 9 of 1000 GPUs\"");
	// Half of the month is over: 372 hours at 2 are added to what was spent.
	expect_answer(&monthly, "{\"members\":[],\"time\":1339200,\"spent\":400,\"runRate\":2}", "\"monthEnd\":1144}");
	monthly.has_per_hour = true;
	monthly.per_hour = 0.5;
	expect_answer(&monthly, "{\"members\":[],\"spent\":0}", "\"budgetPerHour\":0.5}");
	expect_answer(&monthly, "{\"members\":[],\"spent\":-1}",
	              "spent must be an amount of money, a number from 0 to 1000000000000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(absent_fields_have_defaults),
	        cmocka_unit_test(turn_follows_the_time),
	        cmocka_unit_test(ratio_applies_to_lines_with_both_members),
	        cmocka_unit_test(invalid_line_names_the_field),
	        cmocka_unit_test(too_many_members_are_refused),
	        cmocka_unit_test(every_line_gets_one_answer),
	        cmocka_unit_test(month_lowers_the_hourly_budget),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
