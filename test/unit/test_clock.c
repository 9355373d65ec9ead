// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the manual clock moves only when advanced, the real one with the machine's.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "test/support/manual_clock.h"

static void manual_clock_stands_still_until_advanced(void **state)
{
	struct clock c;
	clock_init_manual(&c, 1767603600000);
	assert_int_equal(clock_wall_ms(&c), 1767603600000);
	assert_int_equal(clock_mono_ms(&c), 0);
	assert_int_equal(clock_wall_ms(&c), 1767603600000);
	clock_advance_ms(&c, 15000);
	clock_advance_ms(&c, 1);
	assert_int_equal(clock_wall_ms(&c), 1767603615001);
	assert_int_equal(clock_mono_ms(&c), 15001);
}

static void two_manual_clocks_are_separate(void **state)
{
	struct clock a, b;
	clock_init_manual(&a, 5);
	clock_init_manual(&b, 5);
	clock_advance_ms(&a, 10);
	assert_int_equal(clock_wall_ms(&b), 5);
	assert_int_equal(clock_mono_ms(&b), 0);
}

static void real_wall_clock_is_the_system_time(void **state)
{
	struct clock c;
	clock_init_real(&c);
	struct timespec before, after; // not time(): it reads a coarser clock that lags behind
	clock_gettime(CLOCK_REALTIME, &before);
	int64_t wall_ms = clock_wall_ms(&c);
	clock_gettime(CLOCK_REALTIME, &after);
	assert_true(wall_ms >= (int64_t)before.tv_sec * 1000 + before.tv_nsec / 1000000);
	assert_true(wall_ms <= (int64_t)after.tv_sec * 1000 + after.tv_nsec / 1000000);
}

static void real_monotonic_clock_counts_slept_time(void **state)
{
	struct clock c;
	clock_init_real(&c);
	int64_t start = clock_mono_ms(&c);
	nanosleep(&(struct timespec){.tv_nsec = 20 * 1000000}, NULL);
	int64_t elapsed_ms = clock_mono_ms(&c) - start;
	assert_true(elapsed_ms >= 19 && elapsed_ms < 60000);
	int64_t last = start;
	for (int i = 0; i < 10000; i++) {
		int64_t now = clock_mono_ms(&c);
		assert_true(now >= last);
		last = now;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(manual_clock_stands_still_until_advanced),
	        cmocka_unit_test(two_manual_clocks_are_separate),
	        cmocka_unit_test(real_wall_clock_is_the_system_time),
	        cmocka_unit_test(real_monotonic_clock_counts_slept_time),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
