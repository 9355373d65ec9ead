// SPDX-License-Identifier: Apache-2.0
// Reports about policy tests: their findings as text, their results as JUnit XML, and their coverage.
#ifndef GPUSCALE_POLICIES_TEST_TEST_REPORT_H
#define GPUSCALE_POLICIES_TEST_TEST_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct coverage; // coverage of one policy
struct decision;
struct policy;
struct scenario_result;

// ---- findings as text ----

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

// ---- results as JUnit XML, as CI systems read it: <testsuites><testsuite name="file"><testcase ..> ----

enum junit_outcome { JUNIT_PASSED, JUNIT_FAILED, JUNIT_SKIPPED };

struct junit_case {
	const char *name, *file;
	int line; // 0 = none
	double seconds;
	enum junit_outcome outcome;
	const char *detail; // text of a failure; its first line becomes the message
};

struct junit_totals {
	size_t n, failed, skipped;
	double seconds;
};

// A report under construction. Suites do not nest.
struct junit {
	struct buf all, suite; // finished suites, and the cases of the open one
	char *suite_name;      // NULL = none open
	struct junit_totals of_all, of_suite;
};

void junit_init(struct junit *j, size_t max_bytes);
void junit_done(struct junit *j);
void junit_begin_suite(struct junit *j, const char *name);
void junit_add(struct junit *j, const struct junit_case *c);
void junit_end_suite(struct junit *j);
// Appends the document. Texts are escaped; characters that XML 1.0 does not allow become U+FFFD. Returns -1 when a
// limit was exceeded.
int junit_print(const struct junit *j, struct buf *out);

// ---- which stages and reasons of each policy the tests have reached, and which they have not ----

#define COVERAGE_POLICIES_MAX 20000

struct coverage_list {
	struct coverage **items;
	size_t n, cap;
};

// Returns the coverage of the policy with this namespace and name, which it adds to the list if necessary. `policy` is
// not kept. Returns NULL when memory is exhausted or the list contains COVERAGE_POLICIES_MAX.
struct coverage *coverage_of(struct coverage_list *list, const struct policy *policy);
void coverage_add(struct coverage *c, const struct decision *d);
// Appends a table per policy to `out`: stage, reason, number of ticks; "-" for a reason that no test reached.
void coverage_print(const struct coverage_list *list, struct buf *out);
void coverage_done(struct coverage_list *list);

#endif
