// SPDX-License-Identifier: Apache-2.0
// The recent values of a few numbers of one policy, for sparklines. One row per tick, up to SPARKLINE_POINTS_MAX rows;
// then neighbours merge and the step doubles, until a row covers SPARKLINE_STEP_MS; from then on the oldest row is
// dropped. The memory is therefore the same for a minute and for an hour. Values are kept with three digits. Pure: no
// clock, no I/O.
#ifndef GPUSCALE_CONTROLLER_STATUS_SPARKLINE_H
#define GPUSCALE_CONTROLLER_STATUS_SPARKLINE_H

#include <stddef.h>
#include <stdint.h>

#define SPARKLINE_POINTS_MAX  60
#define SPARKLINE_COLUMNS_MAX 18 // current and desired replicas, and POLICY_SIGNALS_MAX values
#define SPARKLINE_STEP_MS     60000

// The columns that the controller records: replicas, then one per signal.
enum { SPARKLINE_CURRENT, SPARKLINE_DESIRED, SPARKLINE_SIGNALS };

// Other files read it; sparkline.c alone changes it.
struct sparkline {
	int64_t interval_ms;
	int64_t end_ms;               // of the last tick, which is in the newest row; 0: none yet
	uint32_t ticks_per_row;       // a power of two
	uint32_t ticks_in_last;       // of these, how many the newest row has
	uint16_t first, n, n_columns; // n: rows
	int16_t cells[];              // SPARKLINE_POINTS_MAX rows; the oldest is `first`
};

// interval_ms (> 0): between two ticks. n_columns: 1..SPARKLINE_COLUMNS_MAX. free() releases it.
struct sparkline *sparkline_new(int64_t interval_ms, size_t n_columns);
// Records one tick as of now_ms. values: one per column; NaN, and what exceeds 9.99e17, is unknown; what is below 1e-16
// counts as 0; NULL: all unknown. Of two ticks in one row, the later known value counts, per column. Skipped ticks
// become rows of unknown values. A time before the last one means that the clock was set, and discards all rows.
void sparkline_add(struct sparkline *t, int64_t now_ms, const double *values);
int64_t sparkline_step_ms(const struct sparkline *t); // between two rows
// Returns a value, rounded to three digits; row 0 is the oldest. NaN: unknown.
double sparkline_at(const struct sparkline *t, size_t row, size_t column);

#endif
