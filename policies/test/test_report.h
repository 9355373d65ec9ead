// SPDX-License-Identifier: Apache-2.0
// Renders the findings of a policy test as text.
#ifndef GPUSCALE_POLICIES_TEST_TEST_REPORT_H
#define GPUSCALE_POLICIES_TEST_TEST_REPORT_H

#include <stdbool.h>

struct buf;
struct scenario_result;

struct test_style {
	bool colour, diff; // diff: show the fields of an expectation as a unified diff
};

#define TEST_RED    "\033[31m"
#define TEST_GREEN  "\033[32m"
#define TEST_YELLOW "\033[33m"

// text between `colour` and the end of it, when style says so.
void test_report_coloured(struct buf *out, const struct test_style *style, const char *colour, const char *text);
// Appends the findings, each with its place and the trace of its tick.
void test_report_findings(struct buf *out, const struct test_style *style, const char *file,
                          const struct scenario_result *result);

#endif
