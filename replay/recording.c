// SPDX-License-Identifier: Apache-2.0
#include "replay/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "base/text.h"

#define SHOWN_BYTES      160
#define STEP_SAMPLES_MAX 1001
#define GAP_STEPS        1.5 // rows that are further apart than this many steps have a gap between them
#define DAY_MS           INT64_C(86400000)

void recording_done(struct recording *r)
{
	free(r->time_ms);
	free(r->values);
	r->time_ms = NULL;
	r->values = NULL;
	r->n_rows = 0;
}

int recording_alloc(struct recording *r, size_t n_rows, struct err *e)
{
	if (r->n_columns > 0 && n_rows > RECORDING_CELLS_MAX / r->n_columns)
		return err_set(e, ERR_LIMIT,
		               "%zu rows of %zu columns, the ceiling is %d cells: use a longer step, a shorter period "
		               "or fewer columns",
		               n_rows, r->n_columns, RECORDING_CELLS_MAX);
	r->time_ms = calloc(n_rows ? n_rows : 1, sizeof *r->time_ms);
	r->values = calloc((n_rows ? n_rows : 1) * (r->n_columns ? r->n_columns : 1), sizeof *r->values);
	return r->time_ms && r->values ? 0 : err_no_memory(e);
}

int recording_check_span(int64_t span_ms, struct err *e)
{
	return span_ms <= DAY_MS * RECORDING_SPAN_DAYS
	               ? 0
	               : err_set(e, ERR_LIMIT, "%.1f days after the first row, the ceiling is %d days",
	                         (double)span_ms / (double)DAY_MS, RECORDING_SPAN_DAYS);
}

static int compare_i64(const void *a, const void *b)
{
	int64_t x, y;
	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

int64_t recording_usual_step_ms(const int64_t *time_ms, size_t n)
{
	int64_t steps[STEP_SAMPLES_MAX];
	size_t all = n - 1, n_steps = all < STEP_SAMPLES_MAX ? all : STEP_SAMPLES_MAX;
	for (size_t i = 0; i < n_steps; i++) {
		size_t row = i * all / n_steps;
		steps[i] = time_ms[row + 1] - time_ms[row];
	}
	qsort(steps, n_steps, sizeof *steps, compare_i64);
	return steps[n_steps / 2];
}

// ---- columns ----

static bool has_metric_name(const char *column, const char *name, size_t len)
{
	return strncmp(column, name, len) == 0 && column[len] == '{';
}

// Returns the first column from `from` on that is a series of the metric `name`, -1 if there is none.
static int series_of(const struct recording *r, const char *name, size_t from)
{
	size_t len = strlen(name);
	for (size_t i = from; i < r->n_columns; i++)
		if (has_metric_name(r->names[i], name, len))
			return (int)i;
	return -1;
}

int recording_column(const struct recording *r, const char *name)
{
	for (size_t i = 0; i < r->n_columns; i++)
		if (strcmp(r->names[i], name) == 0)
			return (int)i;
	int only = series_of(r, name, 0);
	return only >= 0 && series_of(r, name, (size_t)only + 1) < 0 ? only : -1;
}

static void show(char out[SHOWN_BYTES], const char *name)
{
	text_show(out, SHOWN_BYTES, name, strlen(name));
}

int recording_need_column(const struct recording *r, const char *name, const char *file, int *ret_column, struct err *e)
{
	const char *names[RECORDING_COLUMNS_MAX];
	char shown[SHOWN_BYTES], other[SHOWN_BYTES];
	const char *line = r->format == RECORDING_CSV ? ":1" : "";
	*ret_column = recording_column(r, name);
	if (*ret_column >= 0)
		return 0;
	show(shown, name);
	int first = series_of(r, name, 0);
	if (first >= 0) {
		char second[SHOWN_BYTES];
		show(other, r->names[first]);
		show(second, r->names[series_of(r, name, (size_t)first + 1)]);
		return err_set(e, ERR_INPUT, "%s%s: several columns \"%s\": name one with its labels, such as %s or %s",
		               file, line, shown, other, second);
	}
	for (size_t i = 0; i < r->n_columns; i++)
		names[i] = r->names[i];
	const char *close = num_closest_name(name, names, r->n_columns);
	if (!close)
		return err_set(e, ERR_INPUT, "%s%s: no column \"%s\"", file, line, shown);
	show(other, close);
	return err_set(e, ERR_INPUT, "%s%s: no column \"%s\", did you mean \"%s\"?", file, line, shown, other);
}

// ---- rows ----

int64_t recording_hold_ms(const struct recording *r, size_t row)
{
	if (row + 1 == r->n_rows)
		return r->step_ms;
	int64_t until = r->time_ms[row + 1] - r->time_ms[row];
	return (double)until > GAP_STEPS * (double)r->step_ms ? r->step_ms : until;
}

void recording_place(const struct recording *r, const char *file, size_t row, char out[RECORDING_PLACE_BYTES])
{
	char time[NUM_TEXT_BYTES];
	if (r->format == RECORDING_CSV) {
		snprintf(out, RECORDING_PLACE_BYTES, "%s:%zu", file, RECORDING_FIRST_LINE + row);
		return;
	}
	num_format_rfc3339_ms(time, r->time_ms[row]);
	snprintf(out, RECORDING_PLACE_BYTES, "%s: %s", file, time);
}
