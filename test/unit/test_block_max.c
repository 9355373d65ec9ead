// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the maximum over blocks covers the last n ticks, and at most a block more.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/engine/objective_load.h"

#define TICKS 3000

static float largest_of(const float *values, int end, int n)
{
	float largest = 0;
	for (int i = end > n ? end - n : 0; i < end; i++)
		largest = values[i] > largest ? values[i] : largest;
	return largest;
}

static void maximum_covers_the_last_ticks(void **state)
{
	static const int lengths[] = {8, 16, 20, 160, 640};
	static float values[TICKS];
	uint32_t seed = 7;
	for (int i = 0; i < TICKS; i++) {
		seed = seed * 1664525U + 1013904223U;
		values[i] = (float)(seed >> 16) / ((seed >> 12) % 16 == 0 ? 10 : 1000);
	}
	for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
		struct block_max b = {0};
		int n = lengths[k], block = n / (BLOCK_MAX_BLOCKS - 1);
		for (int i = 0; i < TICKS; i++) {
			float got = block_max_add(&b, n, values[i]);
			assert_true(got >= largest_of(values, i + 1, block * (BLOCK_MAX_BLOCKS - 1)));
			assert_true(got <= largest_of(values, i + 1, block * BLOCK_MAX_BLOCKS));
		}
	}
}

static void short_windows_cover_nine_ticks(void **state)
{
	struct block_max b = {0};
	assert_true(block_max_add(&b, 1, 5) == 5);
	for (int i = 0; i < BLOCK_MAX_BLOCKS - 1; i++)
		assert_true(block_max_add(&b, 1, 0) == 5);
	assert_true(block_max_add(&b, 1, 0) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(maximum_covers_the_last_ticks),
	        cmocka_unit_test(short_windows_cover_nine_ticks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
