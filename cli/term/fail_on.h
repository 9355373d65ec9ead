// SPDX-License-Identifier: Apache-2.0
// Conditions of --fail-on: "late > 5%", "p95-wait > 30s", "warnings". Each command has a table of its metrics.
#ifndef GPUSCALE_CLI_TERM_FAIL_ON_H
#define GPUSCALE_CLI_TERM_FAIL_ON_H

#include <stdbool.h>
#include <stddef.h>

struct argp_state;
struct err;

#define FAIL_ON_MAX 16

enum fail_unit {
	FAIL_NUMBER,
	FAIL_PERCENT, // a % may follow the number
	FAIL_SECONDS, // may be a duration, such as 30s
	FAIL_COUNT,   // of findings; without a comparison, the condition is that there are any
};

struct fail_metric {
	const char *name;
	enum fail_unit unit;
};

enum fail_comparison { FAIL_ABOVE, FAIL_AT_LEAST, FAIL_BELOW, FAIL_AT_MOST, FAIL_COMPARISON__COUNT };

struct fail_on {
	const char *text; // as written; not owned
	size_t metric;    // its row in the table
	enum fail_comparison comparison;
	double limit; // in the unit of the metric
};

// The conditions of a command line.
struct fail_options {
	const struct fail_metric *metrics; // of the command
	size_t n_metrics;
	struct fail_on items[FAIL_ON_MAX];
	size_t n;
};
// The default of a command with the array `table` of metrics.
#define FAIL_OPTIONS(table)                                                                                            \
	{                                                                                                              \
		.metrics = (table), .n_metrics = sizeof(table) / sizeof *(table)                                       \
	}
// A flag_take_fn: appends the argument of one --fail-on to a struct fail_options; exits with a usage error when it is
// not a condition.
void fail_on_add(void *options, char *text, struct argp_state *state);
// Reports each condition that `values`, one per metric, meet, as "WHO: --fail-on ..". Returns EXIT_CHANGES when one is
// met, else EXIT_OK.
int fail_on_check(const struct fail_options *o, const char *who, const double *values);

// Parses METRIC, a comparison (> >= < <=) and a number, with optional blanks between them. `metrics` are the n rows of
// the command. Returns 0, or -1 and *e (ERR_USAGE). `text` must outlive the result.
int fail_on_parse(const char *text, const struct fail_metric *metrics, size_t n, struct fail_on *ret, struct err *e);
// Returns whether `value` meets the condition, so that the command fails. An unknown value (NaN) never does.
bool fail_on_is_met(const struct fail_on *f, double value);

#endif
