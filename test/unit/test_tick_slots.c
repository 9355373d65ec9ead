// SPDX-License-Identifier: Apache-2.0
// Goal: the ticks of many policies are spread over the interval, and those that share a query tick together. The clock
// is set by hand; the timers of the loop are real, and fire before the one that ends test_loop_for().
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

#define TICKERS     512
#define KEYS        128
#define SLOTS       8
#define SLOT_MS     TICKS_SLOT_MS_MIN
#define INTERVAL_MS (SLOTS * SLOT_MS)

struct member {
	struct ticker t;
	bool hangs;
	size_t started, skipped;
	int64_t now_ms;
};

struct fixture {
	struct event_base *loop;
	struct clock clock;
	struct ticks *ticks;
	struct member members[TICKERS];
	int rounds;
	size_t looks;
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
	if (!m->hangs)
		ticks_end(f->ticks, t);
}

static void on_skipped(void *arg, struct ticker *t)
{
	(void)arg;
	member_of(t)->skipped++;
}

static void on_look(void *arg, struct ticker *t, int64_t now_ms)
{
	struct fixture *f = arg;
	(void)t;
	(void)now_ms;
	f->looks++;
}

static void on_round(void *arg, int64_t now_ms)
{
	struct fixture *f = arg;
	(void)now_ms;
	f->rounds++;
}

// TICKERS / KEYS tickers of each key; the keys are spread evenly.
static void add_all(struct fixture *f, int64_t interval_ms)
{
	for (size_t i = 0; i < TICKERS; i++)
		ticks_add(f->ticks, &f->members[i].t, interval_ms, (uint32_t)(i % KEYS) * (UINT32_MAX / (KEYS - 1)));
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	f->loop = event_base_new();
	clock_init_manual(&f->clock, 1000000);
	struct ticks_options options = {.loop = f->loop,
	                                .clock = &f->clock,
	                                .start = on_start,
	                                .early_check = on_look,
	                                .skipped = on_skipped,
	                                .round = on_round,
	                                .arg = f};
	f->ticks = ticks_new(&options);
	add_all(f, INTERVAL_MS);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	ticks_stop(f->ticks);
	for (size_t i = 0; i < TICKERS; i++)
		if (f->members[i].t.state == TICK_IN_PROGRESS)
			ticks_end(f->ticks, &f->members[i].t);
	ticks_free(f->ticks);
	event_base_free(f->loop);
	free(f);
	return 0;
}

static void pass(struct fixture *f, int64_t ms)
{
	clock_advance_ms(&f->clock, ms);
	test_loop_for(f->loop, SLOT_MS + 20); // the clock of libevent is coarse
}

static size_t count(const struct fixture *f, size_t *ret_skipped)
{
	size_t n = 0;
	*ret_skipped = 0;
	for (size_t i = 0; i < TICKERS; i++) {
		n += f->members[i].started;
		*ret_skipped += f->members[i].skipped;
	}
	return n;
}

static void ticks_of_many_are_spread_and_equal_keys_stay_together(void **state)
{
	struct fixture *f = *state;
	size_t skipped;
	for (size_t slot = 1; slot <= SLOTS; slot++) {
		pass(f, SLOT_MS);
		assert_int_equal(count(f, &skipped), slot * TICKERS / SLOTS);
	}
	assert_int_equal(skipped, 0);
	assert_int_equal(f->rounds, 1);
	for (size_t i = 0; i < TICKERS; i++) {
		assert_int_equal(f->members[i].started, 1);
		assert_int_equal(f->members[i].now_ms, f->members[i % KEYS].now_ms);
	}
}

static void late_loop_queues_each_tick_once(void **state)
{
	struct fixture *f = *state;
	size_t skipped;
	pass(f, 5 * INTERVAL_MS + 1);
	assert_int_equal(count(f, &skipped), TICKERS);
	assert_int_equal(skipped, 0);
}

static void slots_of_few_are_merged(void **state)
{
	struct fixture *f = *state;
	size_t skipped;
	for (size_t i = 0; i < TICKERS; i++)
		if (i % (TICKERS / 8) != 1)
			ticks_remove(f->ticks, &f->members[i].t);
	clock_advance_ms(&f->clock, INTERVAL_MS);
	test_loop_for(f->loop, INTERVAL_MS + 20);
	assert_int_equal(count(f, &skipped), 8);
	for (size_t i = 1; i < TICKERS; i += TICKERS / 8)
		assert_int_equal(f->members[i].now_ms, f->members[1].now_ms);
}

// The first tick of a policy comes at once. It counts as that of a slot that follows within half an interval.
static void first_tick_replaces_the_one_that_follows_soon(void **state)
{
	struct fixture *f = *state;
	size_t skipped;
	for (size_t i = 0; i < TICKERS; i++)
		ticks_ask(f->ticks, &f->members[i].t, clock_wall_ms(&f->clock));
	ticks_run(f->ticks);
	assert_int_equal(count(f, &skipped), TICKERS);
	for (size_t slot = 1; slot < SLOTS / 2; slot++)
		pass(f, SLOT_MS);
	assert_int_equal(count(f, &skipped), TICKERS);
	for (size_t slot = SLOTS / 2; slot <= SLOTS; slot++)
		pass(f, SLOT_MS);
	assert_int_equal(count(f, &skipped), TICKERS + TICKERS / SLOTS * (SLOTS / 2 + 1));
	for (size_t slot = 1; slot < SLOTS / 2; slot++)
		pass(f, SLOT_MS);
	assert_int_equal(count(f, &skipped), 2 * TICKERS); // each has its place now
	assert_int_equal(skipped, 0);
}

static void tick_is_skipped_only_after_a_whole_interval(void **state)
{
	struct fixture *f = *state;
	struct member *m = &f->members[KEYS / 2];
	m->hangs = true;
	pass(f, SLOT_MS);
	ticks_ask(f->ticks, &m->t, clock_wall_ms(&f->clock));
	ticks_run(f->ticks);
	for (size_t slot = 2; slot <= SLOTS; slot++)
		pass(f, SLOT_MS);
	assert_int_equal(m->skipped, 0); // its slot came meanwhile
	for (size_t slot = 1; slot <= SLOTS; slot++)
		pass(f, SLOT_MS);
	assert_int_equal(m->skipped, 1);
	assert_int_equal(m->started, 1);
}

// Returns how many slots have a look until the second slot has its tick.
static size_t looks_until_the_second_slot(struct fixture *f, int64_t interval_ms)
{
	f->looks = 0;
	add_all(f, interval_ms);
	clock_advance_ms(&f->clock, interval_ms / SLOTS);
	test_loop_for(f->loop, interval_ms / SLOTS + 20);
	return f->looks / (TICKERS / SLOTS);
}

static void looks_come_between_ticks_and_are_limited(void **state)
{
	struct fixture *f = *state;
	pass(f, SLOT_MS);
	assert_int_equal(f->looks, 0); // the interval is short
	// 512 tickers with 7 looks in 8 s are 448 a second, with 63 in 32.096 s 1,005.
	_Static_assert(TICKS_EARLY_CHECKS_PER_S == 1000 && TICKS_EARLY_CHECK_MS == 1000, "as above");
	assert_int_equal(looks_until_the_second_slot(f, 8000), 7);
	assert_int_equal(looks_until_the_second_slot(f, 32096), 31);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(ticks_of_many_are_spread_and_equal_keys_stay_together),
	        T(late_loop_queues_each_tick_once),
	        T(slots_of_few_are_merged),
	        T(first_tick_replaces_the_one_that_follows_soon),
	        T(looks_come_between_ticks_and_are_limited),
	        T(tick_is_skipped_only_after_a_whole_interval),
	};
	return cmocka_run_group_tests_name("tick_slots", tests, NULL, NULL);
}
