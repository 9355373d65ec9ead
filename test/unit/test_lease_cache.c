// SPDX-License-Identifier: Apache-2.0
// Goal: the cache knows the leases of other processes as reported, and a step of the wall clock is detected.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "runtime/shard/clock_step_detector.h"
#include "runtime/shard/shards_private.h"
#include "test/support/manual_clock.h"

static void saw(struct lease_cache *b, const char *name, const char *version, const char *holder, int64_t now_ms)
{
	struct lease_record r = {.duration_ms = 2000, .is_member = strstr(name, "member") != NULL};
	snprintf(r.name, sizeof r.name, "%s", name);
	snprintf(r.version, sizeof r.version, "%s", version);
	snprintf(r.holder, sizeof r.holder, "%s", holder);
	assert_non_null(lease_cache_observe(b, &r, now_ms));
}

static struct lease_cache_entry *find(const struct lease_cache *b, const char *name)
{
	struct lease_cache_entry *entry;
	HASH_FIND_STR(b->items, name, entry);
	return entry;
}

static void lease_name_identifies_its_shard(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int32_t shard;
	} rows[] = {{"x-0", 0},         {"x-17", 17}, {"x-", -1},   {"x-01", -1},         {"x-1a", -1},
	            {"x-member-1", -1}, {"y-0", -1},  {"x0", -1},   {"x--1", -1},         {"x-99999999999", -1},
	            {"x", -1},          {"xx-0", -1}, {"x-+1", -1}, {"x-member-0123", -1}};
	struct lease_cache b;
	lease_cache_init(&b, "x", 1000);
	uint64_t list = lease_cache_begin(&b);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		saw(&b, rows[i].name, "1", "a", 0);
	lease_cache_end(&b, list);
	assert_int_equal(HASH_COUNT(b.items), sizeof rows / sizeof rows[0]);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (find(&b, rows[i].name)->shard != rows[i].shard)
			fail_msg("%s: %d", rows[i].name, find(&b, rows[i].name)->shard);
	assert_ptr_equal(lease_cache_find_shard(&b, 17), find(&b, "x-17"));
	assert_null(lease_cache_find_shard(&b, 1));
	lease_cache_done(&b);
}

static void holder_is_live_while_its_lease_changes(void **state)
{
	(void)state;
	struct lease_cache b;
	lease_cache_init(&b, "x", 1000);
	uint64_t list = lease_cache_begin(&b);
	saw(&b, "x-0", "1", "a", 100);
	saw(&b, "x-1", "1", "", 100);
	lease_cache_end(&b, list);
	assert_true(find(&b, "x-0")->was_renewed);                   // the first list is taken on trust
	assert_true(lease_cache_is_live(&b, find(&b, "x-0"), 2099)); // by its own duration, which is longer
	assert_false(lease_cache_is_live(&b, find(&b, "x-0"), 2100));
	assert_false(lease_cache_is_live(&b, find(&b, "x-1"), 101)); // free
	saw(&b, "x-0", "1", "a", 2000);                              // the same again
	assert_false(lease_cache_is_live(&b, find(&b, "x-0"), 2100));
	saw(&b, "x-0", "2", "a", 2000);
	assert_true(lease_cache_is_live(&b, find(&b, "x-0"), 3999));
	saw(&b, "x-member-7", "3", "b", 3000); // new: it has to show that it goes on
	assert_false(find(&b, "x-member-7")->was_renewed);
	saw(&b, "x-member-7", "4", "b", 3000);
	assert_true(find(&b, "x-member-7")->was_renewed);
	lease_cache_done(&b);
}

static void lease_missing_from_a_list_is_removed(void **state)
{
	(void)state;
	struct lease_cache b;
	lease_cache_init(&b, "x", 1000);
	uint64_t list = lease_cache_begin(&b);
	for (int i = 0; i < 100; i++) {
		char name[16];
		snprintf(name, sizeof name, "x-%d", (i * 37) % 100);
		saw(&b, name, "1", "a", 0);
	}
	lease_cache_end(&b, list);
	assert_int_equal(HASH_COUNT(b.items), 100);
	list = lease_cache_begin(&b);
	saw(&b, "x-5", "1", "a", 50);
	saw(&b, "x-50", "1", "a", 50);
	lease_cache_end(&b, list);
	assert_int_equal(HASH_COUNT(b.items), 2);
	assert_int_equal(find(&b, "x-5")->seen_ms, 0); // unchanged since
	lease_cache_forget(&b, find(&b, "x-5"));
	assert_int_equal(HASH_COUNT(b.items), 1);
	assert_non_null(find(&b, "x-50"));
	lease_cache_done(&b);
}

static void clock_step_is_reported_once(void **state)
{
	(void)state;
	struct clock c;
	struct clock_step_detector g;
	clock_init_manual(&c, 1767603600000);
	clock_step_detector_init(&g, &c, 2500);
	for (int i = 0; i < 1000; i++) { // drift, and a slow correction
		clock_advance_ms(&c, 2000);
		c.manual_wall_ms += i % 2 ? 3 : 200;
		assert_int_equal(clock_step_detector_check(&g, &c), 0);
	}
	clock_advance_ms(&c, 3600000); // a long sleep is none: both clocks go on
	assert_int_equal(clock_step_detector_check(&g, &c), 0);
	c.manual_wall_ms += 2500;
	assert_int_equal(clock_step_detector_check(&g, &c), 0);
	c.manual_wall_ms += 2501;
	assert_int_equal(clock_step_detector_check(&g, &c), 2501);
	assert_int_equal(clock_step_detector_check(&g, &c), 0);
	c.manual_wall_ms -= 86400000;
	assert_int_equal(clock_step_detector_check(&g, &c), -86400000);
	assert_int_equal(clock_step_detector_check(&g, &c), 0);
}

struct held_up_clock {
	struct clock clock;
	int times; // that the process is held up for 3 s after it has read the wall clock
};

static int64_t wall_and_then_held_up(const struct clock *c)
{
	struct held_up_clock *self = (struct held_up_clock *)(uintptr_t)c;
	int64_t wall_ms = c->manual_wall_ms;
	if (self->times > 0) {
		self->times--;
		clock_advance_ms(&self->clock, 3000);
	}
	return wall_ms;
}

static void process_stopped_between_clock_reads_is_not_a_clock_step(void **state)
{
	(void)state;
	struct held_up_clock c = {.times = 0};
	struct clock_step_detector g;
	clock_init_manual(&c.clock, 1767603600000);
	c.clock.wall_ms = wall_and_then_held_up;
	c.times = 1;
	clock_step_detector_init(&g, &c.clock, 2500);
	for (int times = 0; times < 4; times++) {
		c.times = times;
		assert_int_equal(clock_step_detector_check(&g, &c.clock), 0);
	}
	c.clock.manual_wall_ms += 2501;
	c.times = 2;
	assert_int_equal(clock_step_detector_check(&g, &c.clock), 2501);
}

static void lease_reported_during_a_list_is_kept(void **state)
{
	(void)state;
	struct lease_cache b;
	lease_cache_init(&b, "x", 1000);
	uint64_t list = lease_cache_begin(&b);
	saw(&b, "x-0", "1", "a", 100);
	saw(&b, "x-1", "1", "a", 100);
	lease_cache_end(&b, list);
	// Two lists in progress: one is requested first and answered last.
	uint64_t polled = lease_cache_begin(&b), watched = lease_cache_begin(&b);
	saw(&b, "x-0", "2", "a", 200);
	saw(&b, "x-2", "3", "a", 200); // too new for the polled one
	lease_cache_end(&b, watched);
	assert_null(find(&b, "x-1"));
	saw(&b, "x-0", "2", "a", 300);
	lease_cache_end(&b, polled);
	assert_non_null(find(&b, "x-0"));
	assert_non_null(find(&b, "x-2"));
	lease_cache_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(lease_reported_during_a_list_is_kept),
	        cmocka_unit_test(lease_name_identifies_its_shard),
	        cmocka_unit_test(holder_is_live_while_its_lease_changes),
	        cmocka_unit_test(lease_missing_from_a_list_is_removed),
	        cmocka_unit_test(clock_step_is_reported_once),
	        cmocka_unit_test(process_stopped_between_clock_reads_is_not_a_clock_step),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
