// SPDX-License-Identifier: Apache-2.0
// When the times of queries and answers are converted between our clock and the server's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "promql/promql_private.h"
#include "test/support/manual_clock.h"

#define START_MS 1795000000000 // whole seconds
#define HOUR_MS  3600000

struct world {
	struct clock clock;
	struct promql p;
	int64_t server_ahead_ms; // of our clock
};

static void begin(struct world *w)
{
	*w = (struct world){.server_ahead_ms = 0};
	clock_init_manual(&w->clock, START_MS);
	w->p.clock = &w->clock;
}

// A reply that took 20 ms; Date names the second in which the server stamped it.
static void reply(struct world *w)
{
	int64_t date_ms = clock_wall_ms(&w->clock) - 10 + w->server_ahead_ms;
	promql_note_clock(&w->p, date_ms / 1000 * 1000, 20000);
}

static void set_ours(struct world *w, int64_t step_ms)
{
	w->clock.manual_wall_ms += step_ms;
	w->server_ahead_ms -= step_ms;
	promql_clock_was_set(&w->p, step_ms);
}

static void our_clock_alone_is_set_and_set_right_again(void **state)
{
	(void)state;
	static const int64_t steps_ms[] = {-HOUR_MS, HOUR_MS, -3000, 3000, -120000};
	for (size_t i = 0; i < sizeof steps_ms / sizeof steps_ms[0]; i++) {
		struct world w;
		begin(&w);
		reply(&w);
		assert_int_equal(w.p.clock_offset_ms, 0);
		set_ours(&w, steps_ms[i]);
		assert_true(w.p.must_ask_date); // before any query
		reply(&w);
		assert_false(w.p.must_ask_date);
		// The whole seconds of Date cannot distinguish a step of 3 s from none: both results are right within a
		// few seconds.
		if (steps_ms[i] < -3000 || steps_ms[i] > 3000) {
			assert_int_equal(w.p.clock_offset_ms, -steps_ms[i]);
			assert_int_equal(promql_unexplained_skew_ms(&w.p), 0);
		}
		assert_true(promql_unexplained_skew_ms(&w.p) <= 3000 && promql_unexplained_skew_ms(&w.p) >= -3000);
		set_ours(&w, -steps_ms[i]);
		reply(&w);
		assert_int_equal(w.p.clock_offset_ms, 0);
		assert_int_equal(promql_unexplained_skew_ms(&w.p), 0);
	}
}

static void two_steps_before_the_next_reply_add_up(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	reply(&w);
	set_ours(&w, -HOUR_MS);
	set_ours(&w, -HOUR_MS);
	reply(&w);
	assert_int_equal(w.p.clock_offset_ms, 2 * HOUR_MS);
}

// A reply that took took_ms, in which the server stamped it stamped_ms after the request.
static void slow_reply(struct world *w, int64_t took_ms, int64_t stamped_ms)
{
	int64_t date_ms = clock_wall_ms(&w->clock) - took_ms + stamped_ms + w->server_ahead_ms;
	promql_note_clock(&w->p, date_ms / 1000 * 1000, took_ms * 1000);
}

static void slow_reply_confirms_the_step_wherever_it_was_stamped(void **state)
{
	(void)state;
	static const int64_t steps_ms[] = {-HOUR_MS, HOUR_MS, -120000, 120000};
	static const int64_t stamps_ms[] = {0, 4500, 9000};
	for (size_t i = 0; i < sizeof steps_ms / sizeof steps_ms[0]; i++)
		for (size_t k = 0; k < sizeof stamps_ms / sizeof stamps_ms[0]; k++) {
			struct world w;
			begin(&w);
			reply(&w);
			set_ours(&w, steps_ms[i]);
			slow_reply(&w, 9000, stamps_ms[k]);
			assert_int_equal(w.p.clock_offset_ms, -steps_ms[i]);
			assert_int_equal(promql_unexplained_skew_ms(&w.p), 0);
			slow_reply(&w, 9000, stamps_ms[(k + 1) % 3]);
			assert_int_equal(promql_unexplained_skew_ms(&w.p), 0);
		}
}

static void slow_reply_does_not_end_the_conversion_of_a_small_step(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	reply(&w);
	set_ours(&w, -8000);
	reply(&w);
	assert_int_equal(w.p.clock_offset_ms, 8000);
	slow_reply(&w, 9000, 0); // its Date is consistent with equal clocks, too
	assert_int_equal(w.p.clock_offset_ms, 8000);
	assert_int_equal(promql_unexplained_skew_ms(&w.p), 0);
}

static void both_clocks_are_set_and_nothing_is_converted(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	reply(&w);
	set_ours(&w, -HOUR_MS);
	w.server_ahead_ms = 0;
	reply(&w);
	assert_int_equal(w.p.clock_offset_ms, 0);
	assert_int_equal(promql_unexplained_skew_ms(&w.p), 0);
}

static void servers_clock_follows_later(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	reply(&w);
	set_ours(&w, -HOUR_MS);
	reply(&w);
	assert_int_equal(w.p.clock_offset_ms, HOUR_MS);
	w.server_ahead_ms = 0;
	reply(&w);
	assert_int_equal(w.p.clock_offset_ms, 0);
	assert_int_equal(promql_unexplained_skew_ms(&w.p), 0);
}

static void difference_that_no_step_explains_is_not_converted(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	w.server_ahead_ms = HOUR_MS; // from the start
	reply(&w);
	assert_int_equal(w.p.clock_offset_ms, 0);
	assert_in_range(promql_unexplained_skew_ms(&w.p), HOUR_MS - 1100, HOUR_MS);
	set_ours(&w, -60000);
	w.server_ahead_ms = 600000; // and another event happened in between
	reply(&w);
	assert_int_equal(w.p.clock_offset_ms, 0);
	assert_in_range(promql_unexplained_skew_ms(&w.p), 600000 - 1100, 600000);
}

static void server_without_date_is_asked_by_our_clock(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	set_ours(&w, -HOUR_MS);
	promql_note_clock(&w.p, 0, 20000);
	promql_forget_clock_step(&w.p);
	assert_int_equal(w.p.clock_offset_ms, 0);
	assert_false(w.p.must_ask_date);
}

static void reply_without_date_changes_nothing(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	reply(&w);
	set_ours(&w, -HOUR_MS);
	promql_note_clock(&w.p, 0, 20000); // of a proxy, to a query in flight
	assert_true(w.p.must_ask_date);
	reply(&w);
	promql_note_clock(&w.p, 0, 20000);
	assert_int_equal(w.p.clock_offset_ms, HOUR_MS);
	assert_int_equal(promql_unexplained_skew_ms(&w.p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(our_clock_alone_is_set_and_set_right_again),
	        cmocka_unit_test(two_steps_before_the_next_reply_add_up),
	        cmocka_unit_test(slow_reply_confirms_the_step_wherever_it_was_stamped),
	        cmocka_unit_test(slow_reply_does_not_end_the_conversion_of_a_small_step),
	        cmocka_unit_test(both_clocks_are_set_and_nothing_is_converted),
	        cmocka_unit_test(servers_clock_follows_later),
	        cmocka_unit_test(difference_that_no_step_explains_is_not_converted),
	        cmocka_unit_test(server_without_date_is_asked_by_our_clock),
	        cmocka_unit_test(reply_without_date_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
