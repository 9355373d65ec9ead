// SPDX-License-Identifier: Apache-2.0
// A value over time for the mock: a list of steps (promtool's notation or a CSV column), or a sine. Deterministic: it
// depends only on the time since the start.
#ifndef GPUSCALE_EXPORTER_MOCK_MOCK_SERIES_H
#define GPUSCALE_EXPORTER_MOCK_MOCK_SERIES_H

#include <stdbool.h>
#include <stddef.h>

struct arena;
struct err;

#define SERIES_POINTS_MAX 200000
#define SERIES_VALUE_MAX  1e15 // in both directions; sums and products of values stay far from infinity

struct mock_series {
	const double *points; // one per step, in the arena; NaN = no sample. NULL: a sine
	const double *sums;   // sums[i] = points[0] + .. + points[i - 1], missing ones as 0
	size_t n;
	double step_ms;
	bool loop; // repeats after the last step; otherwise keeps its value
	double mean, amplitude, period_ms, phase_ms;
};

// Parses promtool's notation (base/series_notation.h) and multiplies each value by `scale`; "_" and "stale" are
// missing samples. Fails with ERR_INPUT, which names the word, and ERR_LIMIT.
int mock_series_parse(struct arena *a, const char *text, double step_ms, bool loop, double scale,
                      struct mock_series *ret_series, struct err *e);
// Reads the numeric column `column` of a CSV file with a header line (without quoting) and multiplies each value by
// `scale`.
int mock_series_read_csv(struct arena *a, const char *path, const char *column, double step_ms, bool loop, double scale,
                         struct mock_series *ret_series, struct err *e);
// Parses the same from text[0..len); `name` is used in messages.
int mock_series_parse_csv(struct arena *a, const char *name, const char *text, size_t len, const char *column,
                          double step_ms, bool loop, double scale, struct mock_series *ret_series, struct err *e);
// Initializes a sine around `mean`.
void mock_series_init_sine(struct mock_series *s, double mean, double amplitude, double period_ms, double phase_ms);

// Reads the value at t_ms >= 0. False if there is none.
bool mock_series_at(const struct mock_series *s, double t_ms, double *ret_value);
// The mean over (from_ms, to_ms], with missing steps counted as 0. A sine is evaluated at the middle. 0 <= from_ms <
// to_ms.
double mock_series_mean(const struct mock_series *s, double from_ms, double to_ms);

#endif
