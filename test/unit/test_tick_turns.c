// SPDX-License-Identifier: Apache-2.0
// Goal: a limited number of policies write at once, in turn, and those that wait for theirs tick on. No tick is skipped
// because of a write that waits, and nothing is written that a later tick does not want. The clock is set by hand.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "controller/tick/ticks.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"

#define MEMBERS     (TICKS_WRITES_MAX + 8)
#define INTERVAL_MS 50
#define FIRST       TICKS_WRITES_MAX // the first that waits

struct member {
	struct ticker t;
	bool hangs;        // its ticks do, before they decide
	bool is_content;   // its ticks write nothing
	bool ends_at_once; // its writes do
	int ticked;        // ticks that started
	int written;       // writes that began, in a tick or in turn
	int skipped;
	int order; // of its first write, from 1
};

struct fixture {
	struct event_base *loop;
	struct clock clock;
	struct ticks *ticks;
	struct member members[MEMBERS];
	int n_writes;
};

static struct member *member_of(struct ticker *t)
{
	return (struct member *)(void *)t; // its first field
}

static void begin_write(struct fixture *f, struct member *m)
{
	f->n_writes++;
	if (m->written++ == 0)
		m->order = f->n_writes;
	if (m->ends_at_once)
		ticks_end(f->ticks, &m->t);
}

// What a tick does when its sources have answered.
static void decide(struct fixture *f, struct member *m)
{
	if (!m->is_content && ticks_take_turn(f->ticks, &m->t))
		begin_write(f, m);
	else
		ticks_end(f->ticks, &m->t);
}

static void on_start(void *arg, struct ticker *t, int64_t now_ms)
{
	struct member *m = member_of(t);
	(void)now_ms;
	m->ticked++;
	if (!m->hangs)
		decide(arg, m);
}

static void on_write(void *arg, struct ticker *t)
{
	begin_write(arg, member_of(t));
}

static void on_skipped(void *arg, struct ticker *t)
{
	(void)arg;
	member_of(t)->skipped++;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	f->loop = event_base_new();
	clock_init_manual(&f->clock, 1000000);
	const struct ticks_options options = {.loop = f->loop,
	                                      .clock = &f->clock,
	                                      .start = on_start,
	                                      .write = on_write,
	                                      .skipped = on_skipped,
	                                      .arg = f};
	f->ticks = ticks_new(&options);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	ticks_stop(f->ticks);
	for (size_t i = 0; i < MEMBERS; i++)
		if (f->members[i].t.state == TICK_IN_PROGRESS)
			ticks_end(f->ticks, &f->members[i].t);
	ticks_free(f->ticks);
	event_base_free(f->loop);
	free(f);
	return 0;
}

static void end(struct fixture *f, size_t i)
{
	ticks_end(f->ticks, &f->members[i].t);
	ticks_run(f->ticks);
}

static void ask(struct fixture *f, size_t i)
{
	ticks_ask(f->ticks, &f->members[i].t, clock_wall_ms(&f->clock));
	ticks_run(f->ticks);
}

// All want to write, and tick once: the first TICKS_WRITES_MAX of them are writing.
static void all_want_to_write(struct fixture *f)
{
	for (size_t i = 0; i < MEMBERS; i++) {
		ticks_add(f->ticks, &f->members[i].t, INTERVAL_MS, 0);
		ask(f, i);
	}
	assert_int_equal(f->n_writes, TICKS_WRITES_MAX);
}

static size_t awaiting(const struct fixture *f)
{
	struct ticks_stats s;
	ticks_get_stats(f->ticks, &s);
	return s.awaiting;
}

// Lets the next tick of every policy come due.
static void pass_interval(struct fixture *f)
{
	int before = f->members[MEMBERS - 1].ticked;
	clock_advance_ms(&f->clock, INTERVAL_MS);
	assert_true(test_loop_until(f->loop, &f->members[MEMBERS - 1].ticked, before + 1, 5000));
}

static void those_beyond_the_ceiling_write_in_turn(void **state)
{
	struct fixture *f = *state;
	all_want_to_write(f);
	assert_int_equal(awaiting(f), MEMBERS - TICKS_WRITES_MAX);
	for (size_t i = 0; i < MEMBERS; i++) {
		assert_int_equal(f->members[i].ticked, 1);
		assert_int_equal(f->members[i].t.state, i < FIRST ? TICK_IN_PROGRESS : TICK_IDLE);
	}
	for (size_t i = FIRST; i < MEMBERS; i++) {
		end(f, i - FIRST);
		assert_int_equal(f->members[i].order, i + 1);
		assert_int_equal(f->members[i].t.state, TICK_IN_PROGRESS);
	}
	assert_int_equal(awaiting(f), 0);
	end(f, FIRST);
	assert_int_equal(f->n_writes, MEMBERS);
	for (size_t i = 0; i < MEMBERS; i++)
		assert_int_equal(f->members[i].ticked, 1); // no second tick was needed
}

static void those_that_wait_tick_on_and_keep_their_place(void **state)
{
	struct fixture *f = *state;
	all_want_to_write(f);
	for (int n = 2; n <= 4; n++) {
		pass_interval(f);
		for (size_t i = FIRST; i < MEMBERS; i++) {
			assert_int_equal(f->members[i].ticked, n);
			assert_int_equal(f->members[i].skipped, 0);
		}
	}
	ask(f, FIRST); // once more than the others
	end(f, 0);
	assert_int_equal(f->members[FIRST].written, 1);
	end(f, 1);
	assert_int_equal(f->members[FIRST + 1].written, 1);
}

static void tick_that_decides_otherwise_gives_its_turn_away(void **state)
{
	struct fixture *f = *state;
	all_want_to_write(f);
	f->members[FIRST].is_content = true;
	ask(f, FIRST);
	assert_int_equal(awaiting(f), MEMBERS - TICKS_WRITES_MAX - 1);
	for (size_t i = 0; i < MEMBERS - TICKS_WRITES_MAX; i++)
		end(f, i);
	assert_int_equal(f->members[FIRST].written, 0);
	assert_int_equal(f->n_writes, MEMBERS - 1);
}

// Its tick may decide otherwise.
static void turn_does_not_come_during_a_tick(void **state)
{
	struct fixture *f = *state;
	all_want_to_write(f);
	f->members[FIRST].hangs = true;
	ask(f, FIRST);
	end(f, 0);
	assert_int_equal(f->members[FIRST].written, 0);
	assert_int_equal(f->members[FIRST + 1].written, 1);
	decide(f, &f->members[FIRST]); // all places are taken again
	assert_int_equal(f->members[FIRST].written, 0);
	end(f, 1);
	assert_int_equal(f->members[FIRST].written, 1); // it was still the first
	assert_int_equal(f->members[FIRST + 2].written, 0);
}

static void tick_that_comes_due_during_a_write_follows_it(void **state)
{
	struct fixture *f = *state;
	all_want_to_write(f);
	pass_interval(f);
	assert_int_equal(f->members[0].ticked, 1);
	assert_int_equal(f->members[0].skipped, 0);
	f->members[0].is_content = true;
	end(f, 0);
	assert_int_equal(f->members[0].ticked, 2);
	assert_int_equal(f->members[0].t.state, TICK_IDLE);
	// A write that outlasts a second one too means that one is skipped.
	assert_int_equal(f->members[1].skipped, 0);
	pass_interval(f);
	assert_int_equal(f->members[1].skipped, 1);
	f->members[1].is_content = true;
	end(f, 1);
	assert_int_equal(f->members[1].ticked, 2);
}

static void removed_one_loses_its_turn(void **state)
{
	struct fixture *f = *state;
	all_want_to_write(f);
	ticks_remove(f->ticks, &f->members[FIRST].t);
	pass_interval(f); // a tick follows the write of the first, unless it is removed
	ticks_remove(f->ticks, &f->members[0].t);
	end(f, 0);
	assert_int_equal(f->members[0].ticked, 1);
	assert_int_equal(f->members[0].t.state, TICK_IDLE);
	assert_int_equal(f->members[FIRST].written, 0);
	assert_int_equal(f->members[FIRST + 1].written, 1);
	assert_int_equal(awaiting(f), MEMBERS - TICKS_WRITES_MAX - 2);
}

static void writes_that_hang_stop_no_tick(void **state)
{
	struct fixture *f = *state;
	struct ticks_stats s;
	all_want_to_write(f);
	for (int i = 0; i < 5; i++) {
		clock_advance_ms(&f->clock, TICKS_SLOW_MS);
		ticks_run(f->ticks);
	}
	ticks_get_stats(f->ticks, &s);
	assert_int_equal(s.slow, 0);
	assert_int_equal(f->n_writes, TICKS_WRITES_MAX);
	for (size_t i = FIRST; i < MEMBERS; i++) {
		int before = f->members[i].ticked;
		ask(f, i);
		assert_int_equal(f->members[i].ticked, before + 1);
	}
}

static void tick_is_slow_until_it_decides_whatever_its_write_takes(void **state)
{
	struct fixture *f = *state;
	all_want_to_write(f);
	f->members[FIRST].hangs = true;
	ask(f, FIRST);
	clock_advance_ms(&f->clock, TICKS_SLOW_MS); // the loop is late: nothing has noticed
	decide(f, &f->members[FIRST]);
	assert_true(f->members[FIRST].t.is_slow);
	assert_int_equal(f->members[FIRST].written, 0);
	f->members[FIRST].ends_at_once = true;
	end(f, 0);
	assert_int_equal(f->members[FIRST].written, 1);
	assert_true(f->members[FIRST].t.is_slow);
	assert_false(f->members[0].t.is_slow); // although its write took long
}

// A tick that gets its turn makes room for another tick, although it has not ended.
static void tick_that_writes_makes_room_for_one_that_does_not(void **state)
{
	struct fixture *f = *state;
	for (size_t i = 0; i <= TICKS_MAX; i++) {
		f->members[i].hangs = true;
		ticks_add(f->ticks, &f->members[i].t, 100000, 0);
		ask(f, i);
	}
	assert_int_equal(f->members[TICKS_MAX].ticked, 0);
	decide(f, &f->members[0]);
	assert_int_equal(f->members[0].written, 1);
	assert_true(test_loop_until(f->loop, &f->members[TICKS_MAX].ticked, 1, 5000));
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(those_beyond_the_ceiling_write_in_turn),
	        T(those_that_wait_tick_on_and_keep_their_place),
	        T(tick_that_decides_otherwise_gives_its_turn_away),
	        T(turn_does_not_come_during_a_tick),
	        T(tick_that_comes_due_during_a_write_follows_it),
	        T(removed_one_loses_its_turn),
	        T(writes_that_hang_stop_no_tick),
	        T(tick_is_slow_until_it_decides_whatever_its_write_takes),
	        T(tick_that_writes_makes_room_for_one_that_does_not),
	};
	return cmocka_run_group_tests_name("tick_turns", tests, NULL, NULL);
}
