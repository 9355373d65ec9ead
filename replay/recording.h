// SPDX-License-Identifier: Apache-2.0
// A recording: columns of numbers over time, from a CSV file, an OpenMetrics file, or range queries. Rows are in the
// order of time. A cell without data is NaN, never a number.
#ifndef GPUSCALE_REPLAY_RECORDING_H
#define GPUSCALE_REPLAY_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define RECORDING_BYTES_MAX   (128 * 1024 * 1024) // size of a file
#define RECORDING_ROWS_MAX    1000000
#define RECORDING_COLUMNS_MAX 512
#define RECORDING_CELLS_MAX   64000000 // rows by columns
#define RECORDING_NAME_BYTES  512
#define RECORDING_SPAN_DAYS   400 // longest time from the first to the last row
#define RECORDING_FIRST_LINE  2   // line of the first row in a CSV file
#define RECORDING_PLACE_BYTES 1024

enum recording_format { RECORDING_CSV, RECORDING_OPENMETRICS, RECORDING_RANGES, RECORDING_FORMAT__COUNT };

struct recording {
	enum recording_format format;
	char names[RECORDING_COLUMNS_MAX][RECORDING_NAME_BYTES]; // names of the columns but the time
	size_t n_columns;
	size_t n_rows;
	int64_t *time_ms; // since the epoch, strictly growing; heap
	double *values;   // n_rows times n_columns; heap
	int64_t step_ms;  // the usual time between two rows
};

// Reads text[0..len), which `file` names in errors: OpenMetrics if its first line starts with '#' or its last line is
// "# EOF", otherwise CSV. The header of CSV names the columns; the time is in the
// column time, timestamp or t_s, as seconds or as RFC 3339. Returns 0, or -1 and *e ("FILE:LINE: ..."): ERR_INPUT (no
// header, no time column, a name twice, a wrong number of cells, a cell that is not a number, a time that does not
// grow, fewer than two rows), ERR_LIMIT, ERR_INTERNAL. The caller calls recording_done() in both cases.
int recording_parse(const char *text, size_t len, const char *file, struct recording *ret, struct err *e);
void recording_done(struct recording *r);

// Returns the index of the column `name`, -1 if there is none. A column of OpenMetrics, NAME{LABELS}, can also be named
// by NAME alone when no other column has that name.
int recording_column(const struct recording *r, const char *name);
// As recording_column, but without such a column it fails with ERR_INPUT, which suggests a similar name.
int recording_need_column(const struct recording *r, const char *name, const char *file, int *ret_column,
                          struct err *e);

static inline double recording_value(const struct recording *r, size_t row, int column)
{
	return r->values[row * r->n_columns + (size_t)column];
}
// Returns for how long row `row` applies: until the next row, or for one usual step before a gap and at the end.
int64_t recording_hold_ms(const struct recording *r, size_t row);
// Writes where row `row` is, for errors: "FILE:LINE" in a CSV file, otherwise "FILE: TIME".
void recording_place(const struct recording *r, const char *file, size_t row, char out[RECORDING_PLACE_BYTES]);

// ---- for the readers ----

// Allocates n_rows rows of the columns that are known; n_rows stays 0, and every value is 0. Fails with ERR_LIMIT
// (RECORDING_CELLS_MAX) or ERR_INTERNAL.
int recording_alloc(struct recording *r, size_t n_rows, struct err *e);
// Fails with ERR_LIMIT when span_ms exceeds RECORDING_SPAN_DAYS.
int recording_check_span(int64_t span_ms, struct err *e);
// Returns the median of the differences between n >= 2 times, of a sample of them when there are many.
int64_t recording_usual_step_ms(const int64_t *time_ms, size_t n);

// Reads CSV as recording_parse(), into the zeroed *ret.
int recording_csv_parse(const char *text, size_t len, const char *file, struct recording *ret, struct err *e);

// ---- the demand of a recording, as equal steps of simulated time ----

#define DEMAND_GAPS_MAX       16 // kept with their times; more are only counted
#define DEMAND_INTERPOLATE_MS 60000
#define DEMAND_REPLICAS_MAX   1e9 // largest demand, in replicas' worth

struct demand_gap {
	int64_t from_ms, to_ms;
};

struct demand {
	double *work;   // replica-seconds that arrive in each step; NaN: no data; heap
	double *weight; // requests of each step in the share of late ones; NULL: the work; heap
	size_t n;
	int64_t step_ms;
	int64_t start_ms; // start of the first step
	double mean;      // replicas that the demand keeps busy on average, over the steps with data
	double total;     // replica-seconds
	int64_t known_ms; // time with data
	bool interpolated;
	struct demand_gap gaps[DEMAND_GAPS_MAX];
	size_t n_gaps;
};

// Converts column `column` (replicas' worth of arriving work, divided by per_replica) into steps: of 1 s up to a day,
// 5 s up to 100 days, else 15 s. A row applies until the next one; rows more than DEMAND_INTERPOLATE_MS apart are
// joined by straight lines. A cell without data, and a time without rows, is a gap. `requests` is the column that
// weighs the late share, -1: the work. Returns 0, or -1 and *e (ERR_INPUT for a negative value, with FILE:LINE, and for
// a column without any data; ERR_LIMIT; ERR_INTERNAL). The caller calls demand_done() in both cases.
int demand_from_recording(const struct recording *r, int column, int requests, double per_replica, const char *file,
                          struct demand *ret, struct err *e);
void demand_done(struct demand *d);

static inline double demand_weight(const struct demand *d, size_t i)
{
	return d->weight ? d->weight[i] : d->work[i];
}

#endif
