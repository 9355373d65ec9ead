// SPDX-License-Identifier: Apache-2.0
// Conditions of --fail-on.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "cli/term/flags.h"

enum { LATE, P95_WAIT, GPU_HOURS, COST, CHANGES, AT_MAX };
static const struct fail_metric metrics[] = {
        {"late", FAIL_PERCENT}, {"p95-wait", FAIL_SECONDS}, {"gpu-hours", FAIL_NUMBER},
        {"cost", FAIL_NUMBER},  {"changes", FAIL_COUNT},    {"at-max", FAIL_PERCENT},
};
#define N_METRICS (sizeof metrics / sizeof *metrics)

static void conditions_are_read_and_judged(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t metric;
		double limit, met, kept;
	} rows[] = {
	        {"late > 5%", LATE, 5, 5.1, 5},
	        {"late>5", LATE, 5, 6, 4},
	        {"p95-wait >= 1m", P95_WAIT, 60, 60, 59},
	        {"p95-wait > 1.5", P95_WAIT, 1.5, INFINITY, 1.5},
	        {"gpu-hours <10", GPU_HOURS, 10, 9, 10},
	        {"cost <= 10", COST, 10, 10, 11},
	        {"changes  >  3", CHANGES, 3, 4, 3},
	        {"at-max >= 50%", AT_MAX, 50, 50, 49},
	        {"changes", CHANGES, 0, 1, 0},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct fail_on f;
		struct err e;
		if (fail_on_parse(rows[i].text, metrics, N_METRICS, &f, &e) < 0)
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
		if (fail_on_parse(rows[i], metrics, N_METRICS, &f, &e) == 0)
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
