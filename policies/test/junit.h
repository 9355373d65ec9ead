// SPDX-License-Identifier: Apache-2.0
// Test results as JUnit XML, as CI systems read it: <testsuites><testsuite name="file"><testcase ..>.
#ifndef GPUSCALE_POLICIES_TEST_JUNIT_H
#define GPUSCALE_POLICIES_TEST_JUNIT_H

#include <stddef.h>

#include "base/buf.h"

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

#endif
