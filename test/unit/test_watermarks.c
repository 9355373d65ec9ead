// SPDX-License-Identifier: Apache-2.0
// Goal of this test: hysteresis signals ask for exactly what the WatermarkPodAutoscaler would.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/engine/policy.h"
#include "policies/engine/proposal.h"

struct row {
	double low, high, tolerance;
	int algorithm;
	int32_t multiple;
	double value;
	int32_t spec, ready;
	int32_t want;
	enum reason reason;
};

#define AVG    WATERMARK_AVERAGE
#define ABS    WATERMARK_ABSOLUTE
#define ABOVE  REASON_ABOVE_HIGH_WATERMARK
#define BELOW  REASON_BELOW_LOW_WATERMARK
#define INSIDE REASON_INSIDE_WATERMARKS
#define NOBODY REASON_NO_READY_REPLICAS

static const struct row rows[] = {
        // Absolute: the value against the marks, n = ceil(ready * value / high), floor(ready * value / low)
        {2, 8, 0, ABS, 1, 16, 3, 3, 6, ABOVE},
        {2, 8, 0, ABS, 1, 9, 3, 3, 4, ABOVE}, // 3.375 rounds up
        {2, 8, 0, ABS, 1, 5, 3, 3, 3, INSIDE},
        {2, 8, 0, ABS, 1, 1, 6, 6, 3, BELOW},
        {2, 8, 0, ABS, 1, 1.5, 6, 6, 4, BELOW}, // 4.5 rounds down
        {2, 8, 0, ABS, 1, 0, 6, 6, 1, BELOW},   // never below 1
        {2, 8, 0, ABS, 1, 0.1, 6, 6, 1, BELOW},
        {2, 8, 0, ABS, 1, -3, 6, 6, 1, BELOW},
        // the comparisons are strict
        {2, 8, 0, ABS, 1, 8, 3, 3, 3, INSIDE},
        {2, 8, 0, ABS, 1, 2, 3, 3, 3, INSIDE},
        {2, 8, 0, ABS, 1, 8.01, 3, 3, 4, ABOVE},
        {2, 8, 0, ABS, 1, 1.99, 3, 3, 2, BELOW},
        // the tolerance widens each mark by its own share: 8 -> 10, 2 -> 1.5
        {2, 8, 0.25, ABS, 1, 10, 3, 3, 3, INSIDE},
        {2, 8, 0.25, ABS, 1, 10.1, 3, 3, 4, ABOVE}, // divided by 8, not by 10: 3.79
        {2, 8, 0.25, ABS, 1, 1.5, 4, 4, 4, INSIDE},
        {2, 8, 0.25, ABS, 1, 1.4, 4, 4, 2, BELOW}, // divided by 2, not by 1.5: 2.8
        {2, 8, 0.25, ABS, 1, 9, 3, 3, 3, INSIDE},
        {2, 8, 1, ABS, 1, 0, 3, 3, 3, INSIDE}, // low mark 0: nothing is below it
        {0, 8, 0.1, ABS, 1, 0, 3, 3, 3, INSIDE},
        {0, 8, 0.1, ABS, 1, -1, 3, 3, 1, BELOW},
        // Average: value / ready against the marks
        {2, 8, 0, AVG, 1, 30, 3, 3, 4, ABOVE}, // 10 each: ceil(30 / 8)
        {2, 8, 0, AVG, 1, 24, 3, 3, 3, INSIDE},
        {2, 8, 0, AVG, 1, 3, 3, 3, 1, BELOW}, // 1 each: floor(3 / 2)
        {2, 8, 0, AVG, 1, 5, 3, 3, 2, BELOW},
        {2, 8, 0, AVG, 1, 6, 3, 3, 3, INSIDE},
        // the base is ready; the result never crosses the present scale
        {2, 8, 0, ABS, 1, 16, 10, 3, 10, ABOVE},
        {2, 8, 0, ABS, 1, 16, 10, 6, 12, ABOVE},
        {2, 8, 0, ABS, 1, 1, 2, 6, 2, BELOW},
        {2, 8, 0, ABS, 1, 1, 10, 4, 2, BELOW},
        {2, 8, 0, AVG, 1, 48, 10, 5, 10, ABOVE}, // 9.6 each: 6, at least 10
        // the multiple rounds up before the result is held against the present scale
        {2, 8, 0, ABS, 4, 9, 4, 4, 8, ABOVE},   // 4.5 -> 5 -> 8
        {2, 8, 0, ABS, 4, 1, 8, 8, 4, BELOW},   // 4
        {2, 8, 0, ABS, 4, 1.5, 8, 8, 8, BELOW}, // 6 -> 8, at most 8
        {2, 8, 0, ABS, 4, 0, 8, 8, 4, BELOW},   // 1 -> 4
        {2, 8, 0, ABS, 4, 0, 3, 3, 3, BELOW},   // 1 -> 4, at most 3
        // no ready replica
        {2, 8, 0, ABS, 1, 16, 3, 0, 3, NOBODY},
        {2, 8, 0, AVG, 1, 16, 3, 0, 3, NOBODY},
        {2, 8, 0, AVG, 1, 0, 3, 0, 3, NOBODY},
        // numbers that no int32 holds
        {2, 8, 0.1, ABS, 1, 1e308, 3, 3, INT32_MAX, ABOVE},
        {2, 8, 0.1, ABS, 1000, 1e308, 3, 3, INT32_MAX, ABOVE},
        {2, 8, 0.1, ABS, 1, -1e308, 3, 3, 1, BELOW},
        {1e-300, 1e300, 0.1, ABS, 1, 1, 3, 3, 3, INSIDE},
};

static void each_row_asks_for_what_the_wpa_would(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct row *r = &rows[i];
		struct policy_watermarks marks = {.set = true,
		                                  .low = r->low,
		                                  .high = r->high,
		                                  .tolerance_ratio = r->tolerance,
		                                  .algorithm = r->algorithm};
		struct replica_counts counts = {r->spec, r->spec, r->ready, 0};
		struct proposal p = watermark_propose(&marks, r->multiple, r->value, &counts);
		if (p.replicas != r->want || p.reason != r->reason)
			fail_msg("row %zu (value %g in %g..%g, %d/%d): %d %s, must be %d %s", i, r->value, r->low,
			         r->high, r->spec, r->ready, p.replicas, reason_info(p.reason)->name, r->want,
			         reason_info(r->reason)->name);
		int32_t direction = p.reason == ABOVE ? 1 : p.reason == BELOW ? -1 : 0;
		assert_int_equal(p.direction, direction);
	}
}

static void crossed_mark_is_reported_with_its_tolerance(void **state)
{
	struct policy_watermarks marks = {
	        .set = true, .low = 2, .high = 8, .tolerance_ratio = 0.25, .algorithm = WATERMARK_AVERAGE};
	struct replica_counts counts = {4, 4, 4, 0};
	struct proposal p = watermark_propose(&marks, 1, 44, &counts);
	assert_true(p.compared == 11 && p.limit == 10);
	p = watermark_propose(&marks, 1, 4, &counts);
	assert_true(p.compared == 1 && p.limit == 1.5);
	p = watermark_propose(&marks, 1, 20, &counts);
	assert_true(p.compared == 5 && p.limit == 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(each_row_asks_for_what_the_wpa_would),
	        cmocka_unit_test(crossed_mark_is_reported_with_its_tolerance),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
