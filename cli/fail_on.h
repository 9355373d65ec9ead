// SPDX-License-Identifier: Apache-2.0
// Conditions of --fail-on: "late > 5%", "p95-wait > 30s", "gpu-hours >= 500".
#ifndef GPUSCALE_CLI_FAIL_ON_H
#define GPUSCALE_CLI_FAIL_ON_H

#include <stdbool.h>

struct err;

#define FAIL_ON_MAX 16

enum fail_metric { FAIL_LATE, FAIL_P95_WAIT, FAIL_GPU_HOURS, FAIL_COST, FAIL_CHANGES, FAIL_AT_MAX, FAIL_METRIC__COUNT };
enum fail_comparison { FAIL_ABOVE, FAIL_AT_LEAST, FAIL_BELOW, FAIL_AT_MOST, FAIL_COMPARISON__COUNT };

struct fail_on {
	const char *text; // as written; not owned
	enum fail_metric metric;
	enum fail_comparison comparison;
	double limit; // percent, seconds, hours, or a count
};

// Parses METRIC, a comparison (> >= < <=) and a number, with optional blanks between them; % may follow late and
// at-max, and p95-wait may be a duration. Returns 0, or -1 and *e (ERR_USAGE). `text` must outlive the result.
int fail_on_parse(const char *text, struct fail_on *ret, struct err *e);
// Returns whether `value` meets the condition, so that the command fails. An unknown value (NaN) never does.
bool fail_on_is_met(const struct fail_on *f, double value);

#endif
