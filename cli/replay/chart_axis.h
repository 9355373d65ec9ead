// SPDX-License-Identifier: Apache-2.0
// The axis of a chart: its range, round ticks, and where a value is on it.
#ifndef GPUSCALE_CLI_REPLAY_CHART_AXIS_H
#define GPUSCALE_CLI_REPLAY_CHART_AXIS_H

#include <stdbool.h>
#include <stddef.h>

#define CHART_TICKS_MAX   24
#define CHART_LABEL_BYTES 32

enum chart_scale {
	CHART_LINEAR,
	CHART_LOG,  // of values >= 0; 0 has a place of its own at the start
	CHART_TIME, // milliseconds since the epoch, UTC
};

struct chart_tick {
	double value;
	char label[CHART_LABEL_BYTES];
};

struct chart_axis {
	enum chart_scale scale;
	double min, max; // max > min; of CHART_LOG: both above 0
	double zero;     // CHART_LOG: the share of the axis below min, which holds 0; otherwise 0
	struct chart_tick ticks[CHART_TICKS_MAX];
	size_t n_ticks;
};

// Fits the axis to n values, with at most `wanted` ticks (2 .. 12) where the range permits. NaN and infinity are
// ignored; without a finite value the axis goes from 0 to 1. CHART_LINEAR and CHART_LOG extend the range to round
// values, and CHART_LINEAR starts at 0 when `from_zero` is set and no value is negative. CHART_LOG covers at most five
// decades below the largest value; smaller values have the place of 0.
void chart_axis_fit(struct chart_axis *a, enum chart_scale scale, const double *values, size_t n, bool from_zero,
                    int wanted);
// Returns the position of a finite value, from 0 (start) to 1 (end); values beyond the range are at its ends.
double chart_axis_position(const struct chart_axis *a, double value);

// Writes a number for people, with three significant digits: "0.25", "150", "1.5k", "2M".
void chart_number(char out[CHART_LABEL_BYTES], double value);

#endif
