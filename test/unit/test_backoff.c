// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/backoff.h"
#include "base/hash.h"

#define DRAWS 200

static const struct backoff backoff = {.first_ms = 100, .max_ms = 1000, .max_retry_after_ms = 5000};

static void assert_between(int failures, int64_t retry_after_ms, int64_t low_ms, int64_t high_ms)
{
	for (int i = 0; i < DRAWS; i++) {
		int64_t ms = backoff_ms(&backoff, failures, retry_after_ms);
		assert_true(ms >= low_ms && ms <= high_ms);
	}
}

static void backoff_doubles_up_to_its_maximum(void **state)
{
	assert_between(0, 0, 50, 100);
	assert_between(1, 0, 50, 100);
	assert_between(2, 0, 100, 200);
	assert_between(4, 0, 400, 800);
	assert_between(5, 0, 500, 1000);
	assert_between(1000000, 0, 500, 1000);
}

static void backoff_differs_between_clients(void **state)
{
	int64_t first = backoff_ms(&backoff, 5, 0);
	for (int i = 0; i < DRAWS; i++)
		if (backoff_ms(&backoff, 5, 0) != first)
			return;
	fail_msg("%d equal delays", DRAWS);
}

static void backoff_honours_retry_after_up_to_its_ceiling(void **state)
{
	assert_between(1, 2000, 2000, 2200);
	assert_between(1, 3600000, 5000, 5500);
	assert_between(5, 10, 11, 1000); // the own delay is longer
}

static void hash_equals_published_fnv1a_values(void **state)
{
	assert_int_equal(HASH_START, UINT64_C(0xcbf29ce484222325)); // of the empty text
	assert_int_equal(hash_bytes(HASH_START, "a", 1), UINT64_C(0xaf63dc4c8601ec8c));
	assert_int_equal(hash_bytes(HASH_START, "foobar", 6), UINT64_C(0x85944171f73967e8));
	assert_int_equal(hash_text(HASH_START, "foobar"), hash_bytes(HASH_START, "foobar", 7));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(backoff_doubles_up_to_its_maximum),
	        cmocka_unit_test(backoff_differs_between_clients),
	        cmocka_unit_test(backoff_honours_retry_after_up_to_its_ceiling),
	        cmocka_unit_test(hash_equals_published_fnv1a_values),
	};
	return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
