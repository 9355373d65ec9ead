// SPDX-License-Identifier: Apache-2.0
// The findings of a policy test as text for people.
#ifndef GPUSCALE_SCENARIO_TEST_REPORT_H
#define GPUSCALE_SCENARIO_TEST_REPORT_H

#include <stdbool.h>

struct buf;
struct scenario_result;

struct test_style {
	bool colour, diff; // diff: the fields of an expectation one under the other, as a unified diff
};

#define TEST_RED    "\033[31m"
#define TEST_GREEN  "\033[32m"
#define TEST_YELLOW "\033[33m"

// text between `colour` and the end of it, when style says so.
void test_report_coloured(struct buf *out, const struct test_style *style, const char *colour, const char *text);
// What did not hold, each finding with its place and the trace of its tick.
void test_report_findings(struct buf *out, const struct test_style *style, const char *file,
                          const struct scenario_result *result);

#endif
