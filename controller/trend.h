// SPDX-License-Identifier: Apache-2.0
// How a few numbers of one policy went lately, for sparklines: one row per tick until there are TREND_POINTS_MAX; then
// neighbours become one and the step doubles, until a row stands for TREND_STEP_MS; from then on the oldest goes. So
// two ticks show something already, and the memory is the same for a minute and for an hour. Pure: no clock, no I/O.
#ifndef GPUSCALE_CONTROLLER_TREND_H
#define GPUSCALE_CONTROLLER_TREND_H

#include <stddef.h>
#include <stdint.h>

#define TREND_POINTS_MAX  60
#define TREND_COLUMNS_MAX 18 // replicas there are and wanted, and POLICY_SIGNALS_MAX values
#define TREND_STEP_MS     60000

struct trend;

// interval_ms (> 0): between two ticks. n_columns: 1..TREND_COLUMNS_MAX. One allocation, which stays as it is. NULL
// when memory ends.
struct trend *trend_new(int64_t interval_ms, size_t n_columns);
void trend_free(struct trend *t); // NULL is fine
// Of the tick as of now_ms; values: one per column, NaN and what a float cannot hold: not known; NULL: nothing is. Of
// two ticks in one row the later one counts, in each column, where it is known. Ticks that were skipped are rows of
// unknowns. A time before the last one: the clock was set, and everything begins anew.
void trend_add(struct trend *t, int64_t now_ms, const double *values);
size_t trend_count(const struct trend *t);    // rows
int64_t trend_step_ms(const struct trend *t); // between two rows
int64_t trend_end_ms(const struct trend *t);  // of the last tick, which is in the newest row; 0: none yet
// Row 0 is the oldest. NaN: not known.
float trend_at(const struct trend *t, size_t row, size_t column);

#endif
