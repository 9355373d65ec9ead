// SPDX-License-Identifier: Apache-2.0
// Parses promtool's notation for a series of values, in which tests and mock scripts write a metric over time.
#ifndef GPUSCALE_BASE_SERIES_NOTATION_H
#define GPUSCALE_BASE_SERIES_NOTATION_H

#include <stddef.h>

struct arena;
struct err;

#define SERIES_NOTATION_POINTS_MAX 200000

enum series_point_kind { SERIES_POINT_VALUE, SERIES_POINT_MISSING, SERIES_POINT_STALE, SERIES_POINT_ERROR };

struct series_point {
	enum series_point_kind kind;
	double value;       // finite or not only for "NaN", "Inf", "-Inf" written as such; 0 when there is none
	const char *detail; // text of an error, in the arena; NULL when the word has none
};

// Space-separated words: "a", "a+bxn" and "a-bxn" (n + 1 values), "axn" (a, n + 1 times), "_" and "_xn" (n times
// missing), "stale" (a stale marker), "error", "errorxn", "error:timeout" and "error:timeoutxn" (n times a failed
// query, and why; ours). Points in the arena. ERR_INPUT names the word and the fix; ERR_LIMIT past
// SERIES_NOTATION_POINTS_MAX. promtool: unit testing rules, "series".
int series_notation_parse(struct arena *a, const char *text, struct series_point **ret_points, size_t *ret_n,
                          struct err *e);

#endif
