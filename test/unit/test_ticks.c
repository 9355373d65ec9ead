// SPDX-License-Identifier: Apache-2.0
// When ticks happen: together per interval, in turn, and never so that those that hang stop those that do not.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "controller/tick/ticks.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"

#define TICKERS_MAX 1200

struct member {
	struct ticker t;
	bool hangs;
	int started, skipped;
	int64_t now_ms;
};

struct fixture {
	struct event_base *loop;
	struct clock clock;
	struct ticks *ticks;
	struct member members[TICKERS_MAX];
	int under_way, most_under_way, rounds;
	int64_t step_ms; // the wall clock is set by this when the next interval has passed
};

static struct member *member_of(struct ticker *t)
{
	return (struct member *)(void *)t; // its first field
}

static void on_start(void *arg, struct ticker *t, int64_t now_ms)
{
	struct fixture *f = arg;
	struct member *m = member_of(t);
	m->started++;
	m->now_ms = now_ms;
	f->under_way++;
	if (f->under_way > f->most_under_way)
		f->most_under_way = f->under_way;
	if (m->hangs)
		return;
	f->under_way--;
	ticks_end(f->ticks, t);
}

static void on_skipped(void *arg, struct ticker *t)
{
	(void)arg;
	member_of(t)->skipped++;
}

// Does what the controller does when it notices that the clock was set.
static void on_before(void *arg)
{
	struct fixture *f = arg;
	f->clock.manual_wall_ms += f->step_ms;
	ticks_clock_was_set(f->ticks, f->step_ms);
	f->step_ms = 0;
}

static void on_round(void *arg, int64_t now_ms)
{
	struct fixture *f = arg;
	(void)now_ms;
	f->rounds++;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	f->loop = event_base_new();
	clock_init_manual(&f->clock, 1000000);
	struct ticks_options options = {.loop = f->loop,
	                                .clock = &f->clock,
	                                .before = on_before,
	                                .start = on_start,
	                                .skipped = on_skipped,
	                                .round = on_round,
	                                .arg = f};
	f->ticks = ticks_new(&options);
	*state = f;
	return 0;
}

static void end(struct fixture *f, struct member *m)
{
	f->under_way--;
	ticks_end(f->ticks, &m->t);
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	ticks_stop(f->ticks);
	for (size_t i = 0; i < TICKERS_MAX; i++)
		if (f->members[i].t.state == TICK_IN_PROGRESS)
			end(f, &f->members[i]);
	ticks_free(f->ticks);
	event_base_free(f->loop);
	free(f);
	return 0;
}

static void add(struct fixture *f, size_t i, int64_t interval_ms)
{
	ticks_add(f->ticks, &f->members[i].t, interval_ms, 0);
}

static void ask_all(struct fixture *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ticks_ask(f->ticks, &f->members[i].t, clock_wall_ms(&f->clock));
	ticks_run(f->ticks);
}

static void those_of_one_interval_tick_as_of_the_same_moment(void **state)
{
	struct fixture *f = *state;
	for (size_t i = 0; i < 3; i++)
		add(f, i, 20);
	add(f, 3, 100000);
	clock_advance_ms(&f->clock, 50);
	assert_true(test_loop_until(f->loop, &f->members[0].started, 1, 1000));
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(f->members[i].started, 1);
		assert_int_equal(f->members[i].now_ms, 1000050);
	}
	assert_int_equal(f->members[3].started, 0);
	assert_int_equal(f->rounds, 1);
}

static void clock_that_is_set_moves_those_that_wait(void **state)
{
	struct fixture *f = *state;
	f->step_ms = -3600000;
	for (size_t i = 0; i < TICKS_MAX + 2; i++) {
		f->members[i].hangs = true;
		add(f, i, 20);
	}
	ask_all(f, TICKS_MAX + 2); // the last two wait
	int64_t asked_ms = clock_wall_ms(&f->clock);
	on_before(f);
	end(f, &f->members[0]);
	ticks_run(f->ticks);
	assert_int_equal(f->members[TICKS_MAX].now_ms, asked_ms - 3600000);
	// The time of an interval is read after the clock was checked.
	f->step_ms = 7200000;
	end(f, &f->members[1]);
	f->members[0].hangs = f->members[1].hangs = f->members[TICKS_MAX + 1].hangs = false;
	f->members[1].started = 0;
	clock_advance_ms(&f->clock, 20);
	assert_true(test_loop_until(f->loop, &f->members[1].started, 1, 1000));
	assert_int_equal(f->members[1].now_ms, asked_ms + 3600020);
}

static void another_interval_and_removal_take_effect(void **state)
{
	struct fixture *f = *state;
	add(f, 0, 20);
	add(f, 1, 20);
	add(f, 0, 100000);
	ticks_remove(f->ticks, &f->members[1].t);
	clock_advance_ms(&f->clock, 60);
	test_loop_for(f->loop, 60);
	assert_int_equal(f->members[0].started + f->members[1].started, 0);
	assert_int_equal(f->rounds, 0); // the timer went with its last one
	add(f, 1, 20);
	clock_advance_ms(&f->clock, 20);
	assert_true(test_loop_until(f->loop, &f->members[1].started, 1, 1000));
	assert_int_equal(f->members[0].started, 0);
}

static void waiting_tick_is_asked_once_for_the_present_time(void **state)
{
	struct fixture *f = *state;
	struct ticks_stats s;
	add(f, 0, 100000);
	ticks_ask(f->ticks, &f->members[0].t, 1);
	ticks_ask(f->ticks, &f->members[0].t, 2);
	ticks_get_stats(f->ticks, &s);
	assert_int_equal(s.due, 1);
	ticks_run(f->ticks);
	assert_int_equal(f->members[0].started, 1);
	assert_int_equal(f->members[0].now_ms, 2);
	ticks_ask(f->ticks, &f->members[0].t, 3);
	ticks_remove(f->ticks, &f->members[0].t);
	ticks_run(f->ticks);
	assert_int_equal(f->members[0].started, 1);
}

static void tick_that_is_not_over_is_skipped(void **state)
{
	struct fixture *f = *state;
	f->members[0].hangs = true;
	add(f, 0, 20);
	clock_advance_ms(&f->clock, 20);
	assert_true(test_loop_until(f->loop, &f->members[0].started, 1, 1000));
	clock_advance_ms(&f->clock, 20);
	assert_true(test_loop_until(f->loop, &f->members[0].skipped, 1, 1000));
	assert_int_equal(f->members[0].started, 1);
}

static void ticks_in_flight_stay_within_the_ceiling(void **state)
{
	struct fixture *f = *state;
	for (size_t i = 0; i < 100; i++) {
		f->members[i].hangs = true;
		add(f, i, 100000);
	}
	ask_all(f, 100);
	assert_int_equal(f->under_way, TICKS_MAX);
	end(f, &f->members[0]);
	ticks_run(f->ticks);
	assert_int_equal(f->under_way, TICKS_MAX);
	assert_int_equal(f->members[TICKS_MAX].started, 1); // in turn
	assert_int_equal(f->members[TICKS_MAX + 1].started, 0);
}

static void those_that_hang_do_not_stop_the_others(void **state)
{
	struct fixture *f = *state;
	const size_t hanging = 300, n = 400;
	struct ticks_stats s;
	for (size_t i = 0; i < n; i++) {
		f->members[i].hangs = i < hanging;
		add(f, i, 100000);
	}
	ask_all(f, n);
	assert_int_equal(f->members[n - 1].started, 0); // behind the first 32
	for (int i = 0; i < 40 && f->members[n - 1].started == 0; i++) {
		clock_advance_ms(&f->clock, TICKS_SLOW_MS);
		ticks_run(f->ticks);
	}
	assert_int_equal(f->members[n - 1].started, 1);
	ticks_get_stats(f->ticks, &s);
	assert_true(s.slow >= hanging - TICKS_MAX);

	// Known to be slow, they wait for each other from now on: the others have their tick at once.
	for (size_t i = 0; i < hanging; i++)
		end(f, &f->members[i]);
	ask_all(f, n);
	assert_int_equal(f->members[n - 1].started, 2);
	assert_in_range(f->under_way, TICKS_MAX, 2 * TICKS_MAX);

	// Until one was fast again.
	struct member *well = &f->members[0];
	well->hangs = false;
	if (well->t.state == TICK_IN_PROGRESS)
		end(f, well);
	ask_all(f, 1);
	assert_false(well->t.is_slow);
}

static void hanging_ones_have_a_ceiling_too(void **state)
{
	struct fixture *f = *state;
	for (size_t i = 0; i < TICKERS_MAX; i++) {
		f->members[i].hangs = true;
		add(f, i, 100000);
	}
	ask_all(f, TICKERS_MAX);
	for (int i = 0; i < 60; i++) {
		clock_advance_ms(&f->clock, TICKS_SLOW_MS);
		ticks_run(f->ticks);
	}
	assert_int_equal(f->most_under_way, TICKS_SLOW_MAX + TICKS_MAX);
}

// Nothing else happens: the timer sees to it.
static void hanging_tick_makes_room_by_itself(void **state)
{
	struct fixture *f = *state;
	struct clock real;
	clock_init_real(&real);
	f->clock = real;
	for (size_t i = 0; i <= TICKS_MAX; i++) {
		f->members[i].hangs = true;
		add(f, i, 100000);
	}
	ask_all(f, TICKS_MAX + 1);
	assert_int_equal(f->members[TICKS_MAX].started, 0);
	assert_true(test_loop_until(f->loop, &f->members[TICKS_MAX].started, 1, TICKS_SLOW_MS));
}

static void stopped_ticks_start_nothing(void **state)
{
	struct fixture *f = *state;
	add(f, 0, 10);
	ticks_stop(f->ticks);
	ask_all(f, 1);
	clock_advance_ms(&f->clock, 20);
	test_loop_for(f->loop, 30);
	assert_int_equal(f->members[0].started, 0);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(those_of_one_interval_tick_as_of_the_same_moment),
	        T(clock_that_is_set_moves_those_that_wait),
	        T(another_interval_and_removal_take_effect),
	        T(waiting_tick_is_asked_once_for_the_present_time),
	        T(tick_that_is_not_over_is_skipped),
	        T(ticks_in_flight_stay_within_the_ceiling),
	        T(those_that_hang_do_not_stop_the_others),
	        T(hanging_ones_have_a_ceiling_too),
	        T(hanging_tick_makes_room_by_itself),
	        T(stopped_ticks_start_nothing),
	};
	return cmocka_run_group_tests_name("ticks", tests, NULL, NULL);
}
