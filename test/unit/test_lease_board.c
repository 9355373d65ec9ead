// SPDX-License-Identifier: Apache-2.0
// Goal: what is remembered of other processes' leases, and that a wall clock which is set is noticed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "controller/clock_guard.h"
#include "controller/lease_board.h"

static void saw(struct lease_board *b, const char *name, const char *version, const char *holder, int64_t now_ms)
{
	struct lease_record r = {.duration_ms = 2000, .is_member = strstr(name, "member") != NULL};
	snprintf(r.name, sizeof r.name, "%s", name);
	snprintf(r.version, sizeof r.version, "%s", version);
	snprintf(r.holder, sizeof r.holder, "%s", holder);
	assert_int_equal(lease_board_saw(b, &r, now_ms), 0);
}

static const struct board_entry *find(const struct lease_board *b, const char *name)
{
	for (size_t i = 0; i < b->n; i++) {
		if (strcmp(b->items[i].record.name, name) == 0)
			return &b->items[i];
	}
	return NULL;
}

static void names_tell_shards(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int32_t shard;
	} rows[] = {{"x-0", 0},         {"x-17", 17}, {"x-", -1},   {"x-01", -1},         {"x-1a", -1},
	            {"x-member-1", -1}, {"y-0", -1},  {"x0", -1},   {"x--1", -1},         {"x-99999999999", -1},
	            {"x", -1},          {"xx-0", -1}, {"x-+1", -1}, {"x-member-0123", -1}};
	struct lease_board b;
	lease_board_init(&b, "x", 1000);
	lease_board_begin(&b);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		saw(&b, rows[i].name, "1", "a", 0);
	lease_board_end(&b);
	assert_int_equal(b.n, sizeof rows / sizeof rows[0]);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (find(&b, rows[i].name)->shard != rows[i].shard)
			fail_msg("%s: %d", rows[i].name, find(&b, rows[i].name)->shard);
	assert_ptr_equal(lease_board_find_shard(&b, 17), find(&b, "x-17"));
	assert_null(lease_board_find_shard(&b, 1));
	lease_board_done(&b);
}

static void a_holder_lives_as_long_as_its_lease_changes(void **state)
{
	(void)state;
	struct lease_board b;
	lease_board_init(&b, "x", 1000);
	lease_board_begin(&b);
	saw(&b, "x-0", "1", "a", 100);
	saw(&b, "x-1", "1", "", 100);
	lease_board_end(&b);
	assert_true(find(&b, "x-0")->was_renewed);                   // the first list is taken on trust
	assert_true(lease_board_is_live(&b, find(&b, "x-0"), 2099)); // by its own duration, which is longer
	assert_false(lease_board_is_live(&b, find(&b, "x-0"), 2100));
	assert_false(lease_board_is_live(&b, find(&b, "x-1"), 101)); // nobody's
	saw(&b, "x-0", "1", "a", 2000);                              // the same again
	assert_false(lease_board_is_live(&b, find(&b, "x-0"), 2100));
	saw(&b, "x-0", "2", "a", 2000);
	assert_true(lease_board_is_live(&b, find(&b, "x-0"), 3999));
	saw(&b, "x-member-7", "3", "b", 3000); // new: it has to show that it goes on
	assert_false(find(&b, "x-member-7")->was_renewed);
	saw(&b, "x-member-7", "4", "b", 3000);
	assert_true(find(&b, "x-member-7")->was_renewed);
	lease_board_done(&b);
}

static void what_a_list_does_not_have_is_gone(void **state)
{
	(void)state;
	struct lease_board b;
	lease_board_init(&b, "x", 1000);
	lease_board_begin(&b);
	for (int i = 0; i < 100; i++) {
		char name[16];
		snprintf(name, sizeof name, "x-%d", (i * 37) % 100);
		saw(&b, name, "1", "a", 0);
	}
	lease_board_end(&b);
	assert_int_equal(b.n, 100);
	lease_board_begin(&b);
	saw(&b, "x-5", "1", "a", 50);
	saw(&b, "x-50", "1", "a", 50);
	lease_board_end(&b);
	assert_int_equal(b.n, 2);
	assert_int_equal(find(&b, "x-5")->seen_ms, 0); // unchanged since
	lease_board_forget(&b, "x-5");
	lease_board_forget(&b, "x-7");
	assert_int_equal(b.n, 1);
	assert_non_null(find(&b, "x-50"));
	lease_board_done(&b);
}

static void a_clock_that_is_set_is_noticed_once(void **state)
{
	(void)state;
	struct clock c;
	struct clock_guard g;
	clock_init_manual(&c, 1767603600000);
	clock_guard_init(&g, &c, 2500);
	for (int i = 0; i < 1000; i++) { // drift, and a slow correction
		clock_advance_ms(&c, 2000);
		c.manual_wall_ms += i % 2 ? 3 : 200;
		assert_int_equal(clock_guard_check(&g, &c), 0);
	}
	clock_advance_ms(&c, 3600000); // a long sleep is none: both clocks go on
	assert_int_equal(clock_guard_check(&g, &c), 0);
	c.manual_wall_ms += 2500;
	assert_int_equal(clock_guard_check(&g, &c), 0);
	c.manual_wall_ms += 2501;
	assert_int_equal(clock_guard_check(&g, &c), 2501);
	assert_int_equal(clock_guard_check(&g, &c), 0);
	c.manual_wall_ms -= 86400000;
	assert_int_equal(clock_guard_check(&g, &c), -86400000);
	assert_int_equal(clock_guard_check(&g, &c), 0);
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

static void a_process_that_is_held_up_between_its_clocks_is_no_clock_that_was_set(void **state)
{
	(void)state;
	struct held_up_clock c = {.times = 0};
	struct clock_guard g;
	clock_init_manual(&c.clock, 1767603600000);
	c.clock.wall_ms = wall_and_then_held_up;
	c.times = 1;
	clock_guard_init(&g, &c.clock, 2500);
	for (int times = 0; times < 4; times++) {
		c.times = times;
		assert_int_equal(clock_guard_check(&g, &c.clock), 0);
	}
	c.clock.manual_wall_ms += 2501;
	c.times = 2;
	assert_int_equal(clock_guard_check(&g, &c.clock), 2501);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(names_tell_shards),
	        cmocka_unit_test(a_holder_lives_as_long_as_its_lease_changes),
	        cmocka_unit_test(what_a_list_does_not_have_is_gone),
	        cmocka_unit_test(a_clock_that_is_set_is_noticed_once),
	        cmocka_unit_test(a_process_that_is_held_up_between_its_clocks_is_no_clock_that_was_set),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
