// SPDX-License-Identifier: Apache-2.0
// Plays one policy test through decide(), with a clock of its own, and says what did not hold.
#ifndef GPUSCALE_SCENARIO_SCENARIO_RUN_H
#define GPUSCALE_SCENARIO_SCENARIO_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct coverage;
struct err;
struct scenario;

#define SCENARIO_FINDINGS_MAX 10 // kept per test

// One thing an expectation asks: "replicas", "signals.queue.state".
struct scenario_field {
	const char *name, *expected, *actual;
	bool equal;
};

// An expectation or a law that did not hold at one tick.
struct scenario_finding {
	int64_t at_ms;                 // since the start
	int line;                      // of the expectation; of the test for a law
	const char *law, *why;         // law: its name and how it was broken; NULL for an expectation
	struct scenario_field *fields; // of the expectation, those that held too
	size_t n_fields;
	const char *trace; // aligned lines
};

struct scenario_result {
	struct scenario_finding findings[SCENARIO_FINDINGS_MAX];
	size_t n, dropped; // kept, and beyond the ceiling
	size_t n_ticks;
};

// s is bound. What it finds lives in `a`. coverage (may be NULL) is told of every decision. -1 and *e (ERR_LIMIT) when
// a ceiling is passed; broken expectations are no error.
int scenario_run(const struct scenario *s, struct coverage *coverage, struct arena *a,
                 struct scenario_result *ret_result, struct err *e);

#endif
