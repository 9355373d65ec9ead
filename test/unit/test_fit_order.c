// SPDX-License-Identifier: Apache-2.0
// Goal: room is reserved for what the controller wrote, until it exists or its time is over, and not for what a target
// claims.
#include "k8s/capacity/fit_order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define START_MS 1000

static struct fit_order ordered(int32_t from, int32_t to)
{
	struct fit_order o;
	fit_order_init(&o);
	fit_order_write(&o, from, to, START_MS);
	return o;
}

static void claim_without_a_write_reserves_nothing(void **state)
{
	struct fit_order o;
	fit_order_init(&o);
	assert_int_equal(fit_order_count(&o, 1000000, 0, START_MS), 0);
}

static void order_counts_until_its_replicas_exist(void **state)
{
	struct fit_order o = ordered(2, 6);
	assert_int_equal(fit_order_count(&o, 2, 2, START_MS), 4);
	fit_order_end(&o);
	assert_int_equal(fit_order_count(&o, 6, 5, START_MS + 1000), 1);
	assert_int_equal(fit_order_count(&o, 6, 6, START_MS + 2000), 0);
	assert_int_equal(fit_order_count(&o, 6, 3, START_MS + 3000), 0); // they existed; others replace them
}

static void only_what_the_writes_added_counts(void **state)
{
	struct fit_order o = ordered(1000000, 10); // down
	fit_order_end(&o);
	assert_int_equal(fit_order_count(&o, 10, 0, START_MS), 0);
	o = ordered(0, 3);
	fit_order_end(&o);
	fit_order_write(&o, 8, 10, START_MS + 1000); // another client added five in between
	assert_int_equal(fit_order_count(&o, 8, 0, START_MS + 1000), 5);
	fit_order_end(&o);
	assert_int_equal(fit_order_count(&o, 4, 0, START_MS + 2000), 0); // and removed more
}

static void order_without_pods_ends_and_the_next_one_waits(void **state)
{
	struct fit_order o = ordered(0, 5);
	fit_order_end(&o);
	assert_int_equal(fit_order_count(&o, 5, 0, START_MS), 5);
	assert_int_equal(fit_order_count(&o, 5, 0, START_MS + FIT_ORDER_MS), 0);
	fit_order_write(&o, 0, 5, START_MS + 2 * FIT_ORDER_MS); // the tenant resets its spec
	assert_int_equal(fit_order_count(&o, 0, 0, START_MS + 2 * FIT_ORDER_MS), 0);
	fit_order_end(&o);
	fit_order_count(&o, 0, 0, START_MS + 2 * FIT_ORDER_MS);
	int64_t later_ms = START_MS + FIT_ORDER_MS + FIT_ORDER_REST_MS;
	fit_order_write(&o, 0, 5, later_ms);
	assert_int_equal(fit_order_count(&o, 0, 0, later_ms), 5);
	fit_order_end(&o);
	assert_int_equal(fit_order_count(&o, 5, 5, later_ms), 0);
	fit_order_write(&o, 5, 7, later_ms); // all of them existed
	assert_int_equal(fit_order_count(&o, 5, 5, later_ms), 2);
}

// In a step of thousands of targets, orders wait for minutes until they are written, and each tick renews them.
static void order_that_was_never_sent_does_not_count_against_the_next(void **state)
{
	struct fit_order o = ordered(0, 5);
	assert_int_equal(fit_order_count(&o, 0, 0, START_MS), 5);
	fit_order_cancel(&o);
	assert_int_equal(fit_order_count(&o, 0, 0, START_MS + 1), 0);
	fit_order_write(&o, 0, 4, START_MS + 3 * FIT_ORDER_MS);
	assert_int_equal(fit_order_count(&o, 0, 0, START_MS + 3 * FIT_ORDER_MS), 4);
}

// The pods of the write that was sent are still to come.
static void order_that_was_never_sent_leaves_the_earlier_ones(void **state)
{
	struct fit_order o = ordered(2, 6);
	fit_order_end(&o);
	assert_int_equal(fit_order_count(&o, 6, 2, START_MS), 4);
	for (int i = 0; i < 3; i++) {
		fit_order_write(&o, 6, 8, START_MS + 1000);
		assert_int_equal(fit_order_count(&o, 6, 2, START_MS + 1000), 6);
		fit_order_cancel(&o);
		assert_int_equal(fit_order_count(&o, 6, 2, START_MS + 2000), 4);
	}
	assert_int_equal(fit_order_count(&o, 2, 2, START_MS + 3000), 0); // another client lowered the spec
	o = ordered(2, 6);
	fit_order_end(&o);
	fit_order_write(&o, 6, 8, START_MS + FIT_ORDER_MS - 1);
	fit_order_cancel(&o);
	assert_int_equal(fit_order_count(&o, 6, 2, START_MS + FIT_ORDER_MS), 0); // its time is over
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(claim_without_a_write_reserves_nothing),
	        cmocka_unit_test(order_counts_until_its_replicas_exist),
	        cmocka_unit_test(only_what_the_writes_added_counts),
	        cmocka_unit_test(order_without_pods_ends_and_the_next_one_waits),
	        cmocka_unit_test(order_that_was_never_sent_does_not_count_against_the_next),
	        cmocka_unit_test(order_that_was_never_sent_leaves_the_earlier_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
