// SPDX-License-Identifier: Apache-2.0
// The allocator of a pool: worked examples of docs/pools.md, one row each. The laws are in test/laws/prop_pool.c.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "policies/explain/explain.h"
#include "policies/pool/pool_allocate.h"

#define N(a)    (sizeof(a) / sizeof((a)[0]))
#define MEMBERS 3
#define LIMIT   1000

static bool pair_holds(const struct pool_ratio *r, int64_t of, int64_t to)
{
	int64_t low_slack = r->min_milli > 1000 ? r->min_milli : 1000,
	        high_slack = r->max_milli > 1000 ? r->max_milli : 1000;
	return 1000 * of > r->min_milli * to - low_slack && 1000 * of < r->max_milli * to + high_slack;
}

struct row {
	const char *what;
	int64_t gpus;
	uint64_t turn;
	struct pool_member members[MEMBERS]; // up to the first without gpus_per_replica
	int32_t granted[MEMBERS];
	enum pool_reason reasons[MEMBERS];
	int64_t used;
};

// Y: what the pool allows, with further fields; X: all of the minimum is guaranteed
#define Y(wish, has, least, sure, top, shape, ...)                                                                     \
	{                                                                                                              \
		.asked = (wish), .current = (has), .pending = (has), .min = (least), .max = LIMIT,                     \
		.guaranteed = (sure), .most = (top), .gpus_per_replica = (shape), .weight_milli = 1000, __VA_ARGS__    \
	}
#define X(wish, has, least, shape, ...)                                                                                \
	{                                                                                                              \
		.asked = (wish), .current = (has), .pending = (has), .min = (least), .max = LIMIT,                     \
		.guaranteed = (least), .most = LIMIT, .gpus_per_replica = (shape), __VA_ARGS__                         \
	}
#define M(wish, has, least, shape) X(wish, has, least, shape, .weight_milli = 1000)

// clang-format off
static const struct row rows[] = {
	{"the cap limits one member",              32, 0, {M(12, 0, 0, 4)},                                    {8},       {POOL_LIMITED},                         32},
	{"what fits is granted",                   32, 0, {M(5, 2, 0, 4)},                                     {5},       {POOL_GRANTED},                         20},
	{"minReplicas before priority",             8, 0, {X(8, 0, 0, 1, .weight_milli = 1000, .priority = 9), M(4, 0, 3, 1)},       {5, 3},    {POOL_LIMITED, POOL_LIMITED},           8},
	{"more than asked for minReplicas",         8, 0, {M(0, 0, 2, 1)},                                     {2},       {POOL_AT_MIN},                          2},
	{"fewer than asked for maxReplicas",     2000, 0, {M(1001, 0, 0, 1)},                                  {1000},    {POOL_AT_MAX},                          1000},
	{"priority before weight",                  8, 0, {X(9, 0, 0, 1, .weight_milli = 9000), X(6, 0, 0, 1, .weight_milli = 1000, .priority = 1)}, {2, 6}, {POOL_LIMITED, POOL_GRANTED}, 8},
	{"shares by weight",                        9, 0, {X(9, 0, 0, 1, .weight_milli = 2000), M(9, 0, 0, 1)}, {6, 3},   {POOL_LIMITED, POOL_LIMITED},           9},
	{"shares in GPUs, not in replicas",        16, 0, {M(9, 0, 0, 4), M(9, 0, 0, 1)},                      {2, 8},    {POOL_LIMITED, POOL_LIMITED},           16},
	{"what one leaves, the others use",        10, 0, {M(2, 0, 0, 1), M(9, 0, 0, 1)},                      {2, 8},    {POOL_GRANTED, POOL_LIMITED},           10},
	{"a gap too small for one, not for another", 7, 0, {X(2, 0, 0, 4, .weight_milli = 1000, .priority = 1), M(9, 0, 0, 1)},      {1, 3},    {POOL_LIMITED, POOL_LIMITED},           7},
	{"scale-downs before scale-ups",            8, 0, {X(8, 4, 0, 1, .weight_milli = 1000, .priority = 1), M(4, 4, 0, 1)},       {4, 0},    {POOL_WAITING, POOL_LIMITED},           8},
	{"then the scale-ups",                      8, 0, {X(8, 4, 0, 1, .weight_milli = 1000, .priority = 1), M(4, 0, 0, 1)},       {8, 0},    {POOL_GRANTED, POOL_LIMITED},           8},
	{"backfill uses what is left",              8, 0, {X(8, 0, 0, 1, .weight_milli = 1000, .backfill = true, .priority = 9), M(3, 0, 0, 1)}, {5, 3}, {POOL_LIMITED, POOL_GRANTED}, 8},
	{"backfill yields first",                   8, 0, {X(8, 5, 1, 1, .weight_milli = 1000, .backfill = true), M(9, 3, 0, 1)},    {1, 3},    {POOL_LIMITED, POOL_WAITING},           8},
	{"without metrics it keeps what it has",    8, 0, {X(3, 3, 0, 1, .weight_milli = 1000, .is_fixed = true), M(9, 0, 0, 1)},    {3, 5},    {POOL_KEPT, POOL_LIMITED},              8},
	{"equals: the first turn",                  4, 0, {M(1, 0, 0, 4), M(1, 0, 0, 4)},                      {1, 0},    {POOL_GRANTED, POOL_LIMITED},           4},
	{"equals: the second turn",                 4, 1, {M(1, 0, 0, 4), M(1, 0, 0, 4)},                      {0, 1},    {POOL_LIMITED, POOL_GRANTED},           4},
	{"minimums above the cap: equals share",   4, 0, {M(9, 0, 3, 1), M(9, 4, 3, 1)},                      {0, 2},    {POOL_WAITING, POOL_MINIMUMS_EXCEED}, 4},
	{"above the cap: nothing grows",            4, 0, {X(9, 3, 0, 1, .weight_milli = 1000, .priority = 1), M(9, 3, 0, 1)},       {3, 0},    {POOL_WAITING, POOL_LIMITED},           6},
	{"minReplicas alone take nothing",          8, 0, {X(8, 8, 0, 1, .weight_milli = 1000, .priority = 9), Y(4, 0, 7, 0, LIMIT, 1, .priority = 0)},  {8, 0}, {POOL_GRANTED, POOL_LIMITED}, 8},
	{"minReplicas alone are a request",         8, 0, {M(8, 8, 0, 1), Y(1, 0, 7, 0, LIMIT, 1, .priority = 0)}, {4, 0}, {POOL_LIMITED, POOL_WAITING},        8},
	{"the guaranteed part of minReplicas",      8, 0, {X(8, 0, 0, 1, .weight_milli = 1000, .priority = 9), Y(1, 0, 7, 2, LIMIT, 1, .priority = 0)}, {6, 2}, {POOL_LIMITED, POOL_LIMITED}, 8},
	{"minReplicas alone are not first when GPUs become free", 8, 0, {X(4, 0, 0, 1, .weight_milli = 1000, .priority = 1), Y(4, 0, 4, 0, LIMIT, 1, .priority = 0), M(0, 4, 0, 1)}, {4, 0, 0}, {POOL_GRANTED, POOL_WAITING, POOL_GRANTED}, 8},
	{"minimums above the cap: in order",        4, 0, {M(9, 0, 3, 1), X(9, 0, 3, 1, .weight_milli = 1000, .priority = 1)},       {1, 3},    {POOL_MINIMUMS_EXCEED, POOL_LIMITED},   4},
	{"maxGPUs limits what is asked",           16, 0, {Y(9, 0, 0, 0, 3, 2, .priority = 0), M(9, 0, 0, 1)},       {3, 9},    {POOL_MEMBER_LIMITED, POOL_GRANTED},    15},
	{"maxGPUs limits minReplicas",             16, 0, {Y(1, 0, 9, 0, 3, 2, .priority = 0), M(9, 0, 0, 1)},       {3, 9},    {POOL_MEMBER_LIMITED, POOL_GRANTED},    15},
	{"maxGPUs limits what counts",             16, 0, {Y(90, 90, 0, 0, 4, 1, .is_fixed = true), M(12, 2, 0, 1)}, {90, 12}, {POOL_MEMBER_LIMITED, POOL_GRANTED}, 16},
	{"more than maxGPUs is returned",          16, 0, {Y(9, 9, 0, 0, 4, 1, .priority = 0), M(20, 4, 0, 1)},      {4, 12},   {POOL_MEMBER_LIMITED, POOL_LIMITED},    16},
	{"the fixed take no share"   ,              8, 0, {X(9, 9, 0, 1, .weight_milli = 1000, .is_fixed = true), X(8, 8, 0, 1, .weight_milli = 1000, .priority = 1)}, {9, 8}, {POOL_KEPT, POOL_GRANTED}, 17},
	{"the fixed count as a request",            8, 0, {X(8, 8, 0, 1, .weight_milli = 1000, .is_fixed = true), M(8, 8, 0, 1)}, {8, 4},   {POOL_KEPT, POOL_LIMITED},              16},
	{"a pool without GPUs",                     0, 0, {M(9, 0, 0, 1)},                                     {0},       {POOL_LIMITED},                         0},
};
// clang-format on

static void members_get_their_grants(void **state)
{
	for (size_t i = 0; i < N(rows); i++) {
		const struct row *row = &rows[i];
		struct pool_grant grants[MEMBERS];
		struct pool_total total;
		struct pool_request q = {.gpus = row->gpus, .turn = row->turn, .members = row->members};
		while (q.n_members < MEMBERS && row->members[q.n_members].gpus_per_replica > 0)
			q.n_members++;
		pool_allocate(&q, grants, &total);
		for (size_t k = 0; k < q.n_members; k++)
			if (grants[k].replicas != row->granted[k] || grants[k].reason != row->reasons[k])
				fail_msg("%s: member %zu got %d (%s), expected %d (%s)", row->what, k,
				         grants[k].replicas, pool_reasons[grants[k].reason].name, row->granted[k],
				         pool_reasons[row->reasons[k]].name);
		if (total.used_gpus != row->used)
			fail_msg("%s: %lld GPUs used, expected %lld", row->what, (long long)total.used_gpus,
			         (long long)row->used);
	}
}

static void patch_in_flight_counts_at_its_larger_value(void **state)
{
	struct pool_member members[2] = {M(2, 6, 0, 1), M(8, 0, 0, 1)};
	struct pool_request q = {.gpus = 8, .members = members, .n_members = 2};
	struct pool_grant grants[2];
	struct pool_total total;
	members[0].pending = 2; // asked for, not acknowledged
	pool_allocate(&q, grants, &total);
	assert_int_equal(grants[0].replicas, 2);
	assert_int_equal(grants[1].replicas, 2);
	assert_int_equal(grants[1].share, 6);
	assert_int_equal(total.used_gpus, 8);
	members[0].current = 2; // acknowledged
	pool_allocate(&q, grants, &total);
	assert_int_equal(grants[1].replicas, 6);
}

static void budget_limits_beside_the_cap(void **state)
{
	struct pool_member members[2] = {X(8, 0, 0, 2, .weight_milli = 1000, .price_micro = 2500000), M(8, 0, 0, 1)};
	struct pool_request q = {
	        .gpus = 32, .has_budget = true, .budget_micro = 17500000, .members = members, .n_members = 2};
	struct pool_grant grants[2];
	struct pool_total total;
	pool_allocate(&q, grants, &total);
	assert_int_equal(grants[0].replicas, 3); // 15 of 17.5 an hour
	assert_int_equal(grants[0].reason, POOL_BUDGET_LIMITED);
	assert_int_equal(grants[1].replicas, 8); // without a price
	assert_int_equal(total.used_micro, 15000000);
}

// From 1 prefill and 4 decode to 4 and 16, between 1:5 and 1:3: decode moves first, prefill follows.
static void pair_moves_one_after_the_other(void **state)
{
	struct pool_ratio ratio = {0, 1, 200, 333};
	struct pool_member members[2] = {M(4, 1, 1, 1), M(16, 4, 1, 1)};
	struct pool_request q = {.gpus = 32, .members = members, .n_members = 2, .ratios = &ratio, .n_ratios = 1};
	struct pool_grant grants[2];
	struct pool_total total;
	int ticks = 0;
	for (; ticks < 20 && members[0].current + members[1].current < 20; ticks++) {
		pool_allocate(&q, grants, &total);
		for (size_t k = 0; k < 4; k++) // either of the writes, both or none
			assert_true(pair_holds(&ratio, k & 1 ? grants[0].replicas : members[0].current,
			                       k & 2 ? grants[1].replicas : members[1].current));
		for (size_t k = 0; k < 2; k++)
			members[k].current = members[k].pending = grants[k].replicas;
	}
	assert_in_range(ticks, 2, 10);
	assert_int_equal(members[0].current, 4);
	assert_int_equal(members[1].current, 16);
}

static void pair_bounds_agree_with_the_ratio(void **state)
{
	static const struct pool_ratio ratios[] = {
	        {0, 1, 0, 500}, {0, 1, 250, 1000}, {0, 1, 900, 1100}, {0, 1, 1500, 4000}};
	for (size_t i = 0; i < N(ratios); i++)
		for (int32_t to = 0; to < 40; to++) {
			const struct pool_ratio *r = &ratios[i];
			int32_t least = pool_pair_of_min(r, to), most = pool_pair_of_max(r, to);
			for (int32_t of = 0; of < 60; of++) {
				assert_int_equal(pair_holds(r, of, to), of >= least && of <= most);
				assert_int_equal(pair_holds(r, of, to),
				                 to >= pool_pair_to_min(r, of) && to <= pool_pair_to_max(r, of));
			}
		}
}

static void grant_reads_as_a_sentence(void **state)
{
	struct buf text;
	struct pool_grant grant = {.replicas = 8, .share = 10, .reason = POOL_LIMITED};
	struct pool_total total = {.used_gpus = 32, .minimum_gpus = 40};
	buf_init(&text, 1024);
	explain_pool_grant(&text, "h100", 32, 12, &grant, &total);
	assert_string_equal(buf_str(&text), "requested 12, granted 8: pool h100 uses 32 of 32 GPUs");
	for (grant.reason = 0; grant.reason < POOL_REASON__COUNT; grant.reason++) {
		buf_reset(&text);
		explain_pool_grant(&text, "h100", 32, 12, &grant, &total);
		assert_null(strchr(buf_str(&text), '{')); // every placeholder is known
	}
	buf_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(members_get_their_grants),
	        cmocka_unit_test(patch_in_flight_counts_at_its_larger_value),
	        cmocka_unit_test(budget_limits_beside_the_cap),
	        cmocka_unit_test(pair_moves_one_after_the_other),
	        cmocka_unit_test(pair_bounds_agree_with_the_ratio),
	        cmocka_unit_test(grant_reads_as_a_sentence),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
