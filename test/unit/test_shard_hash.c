// SPDX-License-Identifier: Apache-2.0
// Goal: every process works out alike which policy is in which shard and who ought to have it; the load is even; and
// little moves when a shard or a process comes or goes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/shard/shard_hash.h"

#define POLICIES 10000

static int32_t shard_of_number(int i, int32_t n)
{
	char name[32];
	snprintf(name, sizeof name, "policy-%d", i);
	return shard_of("serving", name, n);
}

static void policies_are_spread_evenly(void **state)
{
	(void)state;
	for (int32_t n = 1; n <= 16; n++) {
		int count[16] = {0};
		for (int i = 0; i < POLICIES; i++) {
			int32_t k = shard_of_number(i, n);
			assert_in_range(k, 0, n - 1);
			count[k]++;
		}
		for (int32_t k = 0; k < n; k++) // five standard deviations
			assert_in_range(count[k] * n, POLICIES * 8 / 10, POLICIES * 12 / 10);
	}
}

static void new_shard_takes_its_part_and_nothing_else_moves(void **state)
{
	(void)state;
	for (int32_t n = 1; n < 16; n++) {
		int moved = 0;
		for (int i = 0; i < POLICIES; i++) {
			int32_t before = shard_of_number(i, n), after = shard_of_number(i, n + 1);
			if (before == after)
				continue;
			assert_int_equal(after, n); // only to the new one
			moved++;
		}
		assert_in_range(moved * (n + 1), POLICIES * 8 / 10, POLICIES * 12 / 10);
	}
}

// Known answers, worked out by another program: a change here would move every user's policies at an upgrade.
static void spread_never_changes(void **state)
{
	(void)state;
	static const struct {
		const char *namespace_name, *name;
		int32_t n, shard;
	} rows[] = {
	        {"serving", "llama", 1, 0},   {"serving", "llama", 4, 2},  {"serving", "llama", 8, 2},
	        {"serving", "vllm", 8, 7},    {"a", "bc", 256, 80},        {"ab", "c", 256, 70},
	        {"default", "whisper", 8, 4}, {"default", "web", 100, 78},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (shard_of(rows[i].namespace_name, rows[i].name, rows[i].n) != rows[i].shard)
			fail_msg("%s/%s of %d: shard %d, not %d", rows[i].namespace_name, rows[i].name, rows[i].n,
			         shard_of(rows[i].namespace_name, rows[i].name, rows[i].n), rows[i].shard);
}

static char names[32][16];
static const char *name_list(const char *list[32])
{
	for (int m = 0; m < 32; m++) {
		snprintf(names[m], sizeof names[m], "host-%02d_%x", m, (unsigned)m * 7919u);
		list[m] = names[m];
	}
	return NULL;
}

static void shard_counts_of_members_differ_by_one_at_most(void **state)
{
	(void)state;
	const char *members[32];
	name_list(members);
	for (int32_t n = 1; n <= SHARDS_MAX; n += n < 20 ? 1 : 59) {
		for (size_t m = 1; m <= 32; m++) {
			size_t owner[SHARDS_MAX], load[32] = {0}, least = SHARDS_MAX, most = 0;
			shard_plan(n, members, m, owner);
			for (int32_t k = 0; k < n; k++)
				load[owner[k]]++;
			for (size_t i = 0; i < m; i++) {
				least = load[i] < least ? load[i] : least;
				most = load[i] > most ? load[i] : most;
			}
			assert_true(most - least <= 1);
			assert_int_equal(most, ((size_t)n + m - 1) / m);
		}
	}
}

static void order_in_which_members_are_known_does_not_matter(void **state)
{
	(void)state;
	const char *members[32], *turned[32];
	size_t one[SHARDS_MAX], other[SHARDS_MAX];
	name_list(members);
	for (int m = 0; m < 7; m++)
		turned[m] = members[(m * 3 + 2) % 7];
	shard_plan(40, members, 7, one);
	shard_plan(40, turned, 7, other);
	for (int k = 0; k < 40; k++)
		assert_string_equal(members[one[k]], turned[other[k]]);
}

static void few_shards_move_when_a_member_comes(void **state)
{
	(void)state;
	const char *members[32];
	size_t before[SHARDS_MAX], after[SHARDS_MAX];
	int moved = 0, least = 0;
	name_list(members);
	for (size_t m = 1; m < 16; m++) {
		shard_plan(64, members, m, before);
		shard_plan(64, members, m + 1, after);
		for (int k = 0; k < 64; k++)
			moved += before[k] != after[k];
		least += 64 / (int)(m + 1);
	}
	assert_true(moved >= least);
	assert_true(moved <= 2 * least); // the price of an even load
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(policies_are_spread_evenly),
	        cmocka_unit_test(new_shard_takes_its_part_and_nothing_else_moves),
	        cmocka_unit_test(spread_never_changes),
	        cmocka_unit_test(shard_counts_of_members_differ_by_one_at_most),
	        cmocka_unit_test(order_in_which_members_are_known_does_not_matter),
	        cmocka_unit_test(few_shards_move_when_a_member_comes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
