// SPDX-License-Identifier: Apache-2.0
// A value over time for the mock: a list of steps (promtool's notation or a CSV column), or a sine. Deterministic: a
// function of the time since start, nothing else.
#ifndef GPUSCALE_EXPORTER_SERIES_H
#define GPUSCALE_EXPORTER_SERIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;

#define SERIES_POINTS_MAX 200000
#define SERIES_VALUE_MAX  1e15 // either way; sums and products of values stay far from infinity

struct series {
	const double *points; // one per step, NaN = no sample; in the arena. NULL: a sine
	const double *sums;   // sums[i] = points[0] + .. + points[i - 1], missing ones as 0
	size_t n;
	double step_ms;
	bool loop; // starts over after the last step; else holds it
	double mean, amplitude, period_ms, phase_ms;
};

// Points from promtool's notation (base/series_notation.h), each times scale; "_" and "stale" give nothing. ERR_INPUT
// names the word; ERR_LIMIT past the ceilings.
int series_parse(struct arena *a, const char *text, double step_ms, bool loop, double scale, struct series *ret_series,
                 struct err *e);
// Points from the numeric column `column` of a CSV file with a header line (no quoting), each times scale.
int series_read_csv(struct arena *a, const char *path, const char *column, double step_ms, bool loop, double scale,
                    struct series *ret_series, struct err *e);
// The same from text[0..len); name is used in messages.
int series_parse_csv(struct arena *a, const char *name, const char *text, size_t len, const char *column,
                     double step_ms, bool loop, double scale, struct series *ret_series, struct err *e);
// A sine around mean.
void series_init_sine(struct series *s, double mean, double amplitude, double period_ms, double phase_ms);

// The value at t_ms >= 0: false when there is none.
bool series_at(const struct series *s, double t_ms, double *ret_value);
// Mean over (from_ms, to_ms], steps that are missing counted as 0. A sine is read at the middle. 0 <= from_ms < to_ms.
double series_mean(const struct series *s, double from_ms, double to_ms);

#endif
