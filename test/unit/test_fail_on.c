// SPDX-License-Identifier: Apache-2.0
// Conditions of backtest --fail-on.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "cli/fail_on.h"

static void conditions_are_read_and_judged(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum fail_metric metric;
		double limit, met, kept;
	} rows[] = {
	        {"late > 5%", FAIL_LATE, 5, 5.1, 5},           {"late>5", FAIL_LATE, 5, 6, 4},
	        {"p95-wait >= 1m", FAIL_P95_WAIT, 60, 60, 59}, {"p95-wait > 1.5", FAIL_P95_WAIT, 1.5, INFINITY, 1.5},
	        {"gpu-hours <10", FAIL_GPU_HOURS, 10, 9, 10},  {"cost <= 10", FAIL_COST, 10, 10, 11},
	        {"changes  >  3", FAIL_CHANGES, 3, 4, 3},      {"at-max >= 50%", FAIL_AT_MAX, 50, 50, 49},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fail_on f;
		struct err e;
		if (fail_on_parse(rows[i].text, &f, &e) < 0)
			fail_msg("%s: %s", rows[i].text, e.msg);
		assert_int_equal(f.metric, rows[i].metric);
		assert_true(f.limit == rows[i].limit);
		assert_true(fail_on_is_met(&f, rows[i].met));
		assert_false(fail_on_is_met(&f, rows[i].kept));
		assert_false(fail_on_is_met(&f, NAN));
	}
}

static void conditions_that_make_no_sense_are_refused(void **state)
{
	(void)state;
	static const char *const rows[] = {"",          "late",      "late 5",    "> 5",
	                                   "late => 5", "late > ",   "late > x",  "late > 5% 6",
	                                   "cost > 5%", "late > 1m", "later > 5", "late == 5"};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fail_on f;
		struct err e;
		if (fail_on_parse(rows[i], &f, &e) == 0)
			fail_msg("\"%s\" is taken", rows[i]);
		assert_int_equal(e.kind, ERR_USAGE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(conditions_are_read_and_judged),
	        cmocka_unit_test(conditions_that_make_no_sense_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
