// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a query that fails alone is isolated, longer each time, is sent less and less often, and recovers;
// an outage of its source or a clock that was set back clears the isolation.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "promql/promql_source.h"
#include "runtime/query/query_record.h"

#define NOW 1700000000000

static void good(struct query_record *r, int times)
{
	for (int i = 0; i < times; i++) {
		query_record_took(r, 5, true);
		query_record_answered(r, true);
	}
}

static void unknown_query_counts_as_slow_and_travels_alone(void **state)
{
	(void)state;
	struct query_record r = {0};
	assert_true(query_record_is_slow(&r));
	assert_false(query_record_may_fuse(&r));
	good(&r, 1);
	assert_false(query_record_is_slow(&r));
	assert_true(query_record_may_fuse(&r));
	query_record_answered(&r, false); // a scalar
	assert_false(query_record_may_fuse(&r));
}

static void slow_query_must_be_fast_for_a_while(void **state)
{
	(void)state;
	struct query_record r = {0};
	good(&r, 1);
	query_record_took(&r, QUERY_FAST_MS, false); // one of several: the slow one is unknown
	assert_false(query_record_is_slow(&r));
	query_record_took(&r, QUERY_FAST_MS, true);
	assert_true(query_record_is_slow(&r));
	good(&r, QUERY_SLOW_TICKS - 1);
	assert_true(query_record_is_slow(&r));
	assert_false(query_record_may_fuse(&r));
	good(&r, 1);
	assert_true(query_record_may_fuse(&r));
}

static int ticks_until_fused(struct query_record *r)
{
	int n = 0;
	for (; !query_record_may_fuse(r); n++)
		good(r, 1);
	return n;
}

static void each_relapse_isolates_for_twice_as_long(void **state)
{
	(void)state;
	struct query_record r = {0};
	good(&r, 1);
	for (int strike = 0; strike < QUERY_STRIKES_MAX + 2; strike++) {
		int doublings = strike < QUERY_STRIKES_MAX ? strike : QUERY_STRIKES_MAX - 1;
		query_record_failed(&r, NOW, 0, 0);
		query_record_failed(&r, NOW, 0, 0); // while it is isolated: no relapse
		assert_true(query_record_is_isolated(&r));
		assert_int_equal(ticks_until_fused(&r), QUERY_ALONE_TICKS << doublings);
		assert_false(query_record_is_isolated(&r));
	}
	good(&r, QUERY_ALONE_TICKS << QUERY_STRIKES_MAX); // the strikes are cleared
	query_record_failed(&r, NOW, 0, 0);
	assert_int_equal(ticks_until_fused(&r), QUERY_ALONE_TICKS);
}

static void failures_in_a_row_are_asked_less_and_less_often(void **state)
{
	(void)state;
	static const int64_t waits[] = {0, 0, 1000, 2000, 4000, 8000, 16000, 30000, 30000};
	struct query_record r = {0};
	for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
		query_record_failed(&r, NOW, 0, 0);
		assert_int_equal(query_record_wait_ms(&r, NOW), waits[i]);
	}
	for (int i = 0; i < 1000; i++) // counters do not wrap
		query_record_failed(&r, NOW, 0, 0);
	assert_int_equal(query_record_wait_ms(&r, NOW), QUERY_BACKOFF_MAX_MS);
	assert_int_equal(query_record_wait_ms(&r, NOW + 29999), 1);
	assert_int_equal(query_record_wait_ms(&r, NOW + 30000), 0);
	good(&r, 1);
	assert_int_equal(query_record_wait_ms(&r, NOW), 0);
}

static void retry_after_is_honoured_up_to_a_ceiling(void **state)
{
	(void)state;
	struct query_record r = {0};
	query_record_failed(&r, NOW, 45000, 0);
	assert_int_equal(query_record_wait_ms(&r, NOW), 45000);
	query_record_failed(&r, NOW, 3600000, 0);
	assert_int_equal(query_record_wait_ms(&r, NOW), PROMQL_RETRY_AFTER_MS);
	assert_int_equal(query_record_wait_ms(&r, NOW - 1), 0); // the clock was set back
}

static void outage_of_the_source_is_forgotten(void **state)
{
	(void)state;
	struct query_record r = {0};
	good(&r, 1);
	for (int i = 0; i < 5; i++)
		query_record_failed(&r, NOW, 0, 7);
	query_record_begin(&r, 7);
	assert_true(query_record_is_isolated(&r));
	query_record_begin(&r, 8);
	assert_false(query_record_is_isolated(&r));
	assert_int_equal(query_record_wait_ms(&r, NOW), 0);
}

static void too_much_together_is_apart_for_a_while(void **state)
{
	(void)state;
	struct query_record r = {0};
	good(&r, 1);
	query_record_set_apart(&r);
	assert_false(query_record_is_isolated(&r)); // its source was at fault
	assert_int_equal(ticks_until_fused(&r), QUERY_ALONE_TICKS);
}

static void warning_isolates_and_does_not_postpone(void **state)
{
	(void)state;
	struct query_record r = {0};
	good(&r, 1);
	for (int i = 0; i < 5; i++)
		query_record_isolate(&r);
	assert_true(query_record_is_isolated(&r));
	assert_int_equal(query_record_wait_ms(&r, NOW), 0);
	assert_int_equal(ticks_until_fused(&r), QUERY_ALONE_TICKS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(unknown_query_counts_as_slow_and_travels_alone),
	        cmocka_unit_test(slow_query_must_be_fast_for_a_while),
	        cmocka_unit_test(each_relapse_isolates_for_twice_as_long),
	        cmocka_unit_test(failures_in_a_row_are_asked_less_and_less_often),
	        cmocka_unit_test(retry_after_is_honoured_up_to_a_ceiling),
	        cmocka_unit_test(outage_of_the_source_is_forgotten),
	        cmocka_unit_test(too_much_together_is_apart_for_a_while),
	        cmocka_unit_test(warning_isolates_and_does_not_postpone),
	};
	return cmocka_run_group_tests_name("query_record", tests, NULL, NULL);
}
