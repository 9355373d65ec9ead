// SPDX-License-Identifier: Apache-2.0
// Runs one policy test through decide() with a simulated clock, and reports failed expectations.
#ifndef GPUSCALE_POLICIES_TEST_SCENARIO_RUN_H
#define GPUSCALE_POLICIES_TEST_SCENARIO_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct coverage;
struct err;
struct scenario;

#define SCENARIO_FINDINGS_MAX 10 // kept per test

// One field of an expectation: "replicas", "signals.queue.state".
struct scenario_field {
	const char *name, *expected, *actual;
	bool equal;
};

// An expectation or a law that failed at one tick.
struct scenario_finding {
	int64_t at_ms;                 // since the start
	int line;                      // line of the expectation; line of the test for a law
	const char *law, *why;         // name of the law and how it failed; NULL for an expectation
	struct scenario_field *fields; // fields of the expectation, including those that matched
	size_t n_fields;
	const char *trace; // aligned lines
};

struct scenario_result {
	struct scenario_finding findings[SCENARIO_FINDINGS_MAX];
	size_t n, dropped; // kept, and beyond the limit
	size_t n_ticks;
};

// Runs `s`, which was bound. The findings live in `a`. Every decision is added to `coverage`, which may be NULL.
// Returns 0, also when expectations failed, or -1 and *e (ERR_LIMIT) when a limit is exceeded.
int scenario_run(const struct scenario *s, struct coverage *coverage, struct arena *a,
                 struct scenario_result *ret_result, struct err *e);

#endif
