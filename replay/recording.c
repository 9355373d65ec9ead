// SPDX-License-Identifier: Apache-2.0
#include "replay/recording.h"

#include <math.h>
#include <strings.h>

#include "base/base.h"
#include "base/csv_text.h"

#define SHOWN_BYTES      160
#define CELL_BYTES       80
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
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
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

// Returns the first column from `from` on that is a series of the metric `name`, -1 if there is none.
static int series_of(const struct recording *r, const char *name, size_t from)
{
	size_t len = strlen(name);
	for (size_t i = from; i < r->n_columns; i++)
		if (strncmp(r->names[i], name, len) == 0 && r->names[i][len] == '{')
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

// ---- CSV ----

#define TIME_MAX_S  253402300799.0 // 9999-12-31T23:59:59Z
#define HEADER_LINE 1

static const char *const time_names[] = {"time", "timestamp", "t_s"};

static bool is_time_name(const char *cell, size_t len)
{
	for (size_t i = 0; i < sizeof time_names / sizeof *time_names; i++)
		if (strlen(time_names[i]) == len && strncasecmp(cell, time_names[i], len) == 0)
			return true;
	return false;
}

static int add_name(struct recording *r, const char *cell, size_t len, struct err *e)
{
	if (len == 0 || len >= RECORDING_NAME_BYTES || memchr(cell, '\0', len))
		return err_set(e, ERR_INPUT, "expected a column name of 1 to %d bytes, got %zu bytes",
		               RECORDING_NAME_BYTES - 1, len);
	if (r->n_columns == RECORDING_COLUMNS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d columns: keep those that the policy needs",
		               RECORDING_COLUMNS_MAX);
	memcpy(r->names[r->n_columns], cell, len);
	r->names[r->n_columns][len] = '\0';
	if (recording_column(r, r->names[r->n_columns]) >= 0) {
		char shown[CELL_BYTES];
		text_show(shown, sizeof shown, cell, len);
		return err_set(e, ERR_INPUT, "column \"%s\" is named twice", shown);
	}
	r->n_columns++;
	return 0;
}

static int read_header(struct recording *r, struct csv_line l, size_t *ret_time_cell, struct err *e)
{
	const char *cell;
	size_t len, n = 0, time_cell = SIZE_MAX, n_numbers = 0;
	double number;
	for (struct csv_line probe = l; csv_next_cell(&probe, &cell, &len);) {
		n++;
		n_numbers += num_parse_sample(cell, len, &number, NULL) == 0;
	}
	if (n_numbers == n)
		return err_set(e, ERR_INPUT, "expected a header such as time,demand,replicas, got numbers");
	for (size_t i = 0; csv_next_cell(&l, &cell, &len); i++) {
		if (!is_time_name(cell, len)) {
			if (add_name(r, cell, len, e) < 0)
				return -1;
		} else if (time_cell != SIZE_MAX) {
			return err_set(e, ERR_INPUT, "two columns hold the time: keep one of time, timestamp, t_s");
		} else {
			time_cell = i;
		}
	}
	if (time_cell == SIZE_MAX)
		return err_set(e, ERR_INPUT, "expected a column time, timestamp or t_s with the time of each row");
	*ret_time_cell = time_cell;
	return 0;
}

static int read_time(const char *cell, size_t len, int64_t *ret_ms, struct err *e)
{
	double s;
	if (num_parse_f64(cell, len, &s, NULL) == 0) {
		if (s >= 0 && s <= TIME_MAX_S) {
			*ret_ms = llround(s * 1000);
			return 0;
		}
	} else if (num_parse_rfc3339_ms(cell, len, ret_ms, NULL) == 0) {
		return 0;
	}
	char shown[CELL_BYTES];
	text_show(shown, sizeof shown, cell, len);
	return err_set(e, ERR_INPUT, "expected a time in seconds, or as 2026-01-05T09:00:00Z, got \"%s\"", shown);
}

static int read_value(const struct recording *r, const char *cell, size_t len, size_t column, double *ret,
                      struct err *e)
{
	if (len == 0) {
		*ret = NAN;
		return 0;
	}
	if (num_parse_sample(cell, len, ret, NULL) == 0 && !isinf(*ret))
		return 0;
	char shown[CELL_BYTES];
	text_show(shown, sizeof shown, cell, len);
	return err_set(e, ERR_INPUT, "%s: expected a finite number, or nothing for missing data, got \"%s\"",
	               r->names[column], shown);
}

static int read_row(struct recording *r, struct csv_line l, size_t time_cell, struct err *e)
{
	const char *cell;
	size_t len, column = 0, i = 0;
	double *values = r->values + r->n_rows * r->n_columns;
	for (; csv_next_cell(&l, &cell, &len); i++) {
		if (i > r->n_columns)
			return err_set(e, ERR_INPUT, "more cells than the header has columns (%zu)", r->n_columns + 1);
		int rc = i == time_cell ? read_time(cell, len, &r->time_ms[r->n_rows], e)
		                        : read_value(r, cell, len, column, &values[column], e);
		if (rc < 0)
			return -1;
		column += i != time_cell;
	}
	if (i != r->n_columns + 1)
		return err_set(e, ERR_INPUT, "%zu cells, the header has %zu columns", i, r->n_columns + 1);
	int64_t now = r->time_ms[r->n_rows], before = r->n_rows ? r->time_ms[r->n_rows - 1] : now - 1;
	if (now == before)
		return err_set(e, ERR_INPUT, "the time repeats that of the previous row: remove one of the two rows");
	if (now < before)
		return err_set(e, ERR_INPUT, "the time goes back by %.3f s: sort the rows by time",
		               (double)(before - now) / 1000);
	r->n_rows++;
	return recording_check_span(now - r->time_ms[0], e);
}

static size_t count_lines(const char *text, size_t len)
{
	size_t n = 0;
	for (const char *p = text, *end = text + len; p < end; n++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		p = nl ? nl + 1 : end;
	}
	return n;
}

static int read_all(struct recording *r, const char *text, size_t len, size_t *ret_line, struct err *e)
{
	size_t next, time_cell = 0, lines = count_lines(text, len);
	*ret_line = HEADER_LINE;
	if (len == 0)
		return err_set(e, ERR_INPUT, "the file is empty: expected a header such as time,demand,replicas");
	if (read_header(r, csv_line_at(text, len, &next), &time_cell, e) < 0)
		return -1;
	if (lines - 1 > RECORDING_ROWS_MAX)
		return err_set(e, ERR_LIMIT, "%zu rows, the ceiling is %d: use a longer step or a shorter period",
		               lines - 1, RECORDING_ROWS_MAX);
	if (recording_alloc(r, lines, e) < 0)
		return -1;
	for (size_t at = next; at < len; at += next) {
		*ret_line = RECORDING_FIRST_LINE + r->n_rows;
		struct csv_line l = csv_line_at(text + at, len - at, &next);
		if (l.at == l.end)
			return err_set(e, ERR_INPUT, "the line is empty: remove it");
		if (read_row(r, l, time_cell, e) < 0)
			return -1;
	}
	if (r->n_rows < 2)
		return err_set(e, ERR_INPUT, "%zu row%s of data: expected at least two, since a step needs two times",
		               r->n_rows, r->n_rows == 1 ? "" : "s");
	r->step_ms = recording_usual_step_ms(r->time_ms, r->n_rows);
	return 0;
}

int recording_csv_parse(const char *text, size_t len, const char *file, struct recording *ret, struct err *e)
{
	size_t line;
	return read_all(ret, text, len, &line, e) < 0 ? err_wrap(e, "%s:%zu", file, line) : 0;
}

// ---- the demand ----

// Adds a straight line from v0 at from_ms to v1 at to_ms to the steps, and the time that it covers to `covered`.
static void add_line(const struct demand *d, double *sums, int32_t *covered, int64_t from_ms, int64_t to_ms, double v0,
                     double v1)
{
	for (int64_t t = from_ms; t < to_ms;) {
		size_t i = (size_t)((t - d->start_ms) / d->step_ms);
		if (i >= d->n)
			return;
		int64_t end = d->start_ms + (int64_t)(i + 1) * d->step_ms;
		if (end > to_ms)
			end = to_ms;
		double middle = (double)(t + (end - t) / 2 - from_ms) / (double)(to_ms - from_ms);
		sums[i] += (v0 + (v1 - v0) * middle) * (double)(end - t) / 1000;
		covered[i] += (int32_t)(end - t);
		t = end;
	}
}

// Spreads a column over the steps. A step that is not covered completely becomes NaN.
static int spread(const struct recording *r, int column, double divisor, const char *file, struct demand *d,
                  double *sums, struct err *e)
{
	int32_t *covered = calloc(d->n, sizeof *covered);
	if (!covered)
		return err_no_memory(e);
	for (size_t row = 0; row < r->n_rows; row++) {
		double v = recording_value(r, row, column);
		if (isnan(v))
			continue;
		if (v < 0 || v / divisor > DEMAND_REPLICAS_MAX) {
			free(covered);
			char place[RECORDING_PLACE_BYTES];
			recording_place(r, file, row, place);
			return v < 0 ? err_set(e, ERR_INPUT, "%s: %s: expected 0 or more, got %g", place,
			                       r->names[column], v)
			             : err_set(e, ERR_LIMIT, "%s: %s: %g is more than %g replicas can do", place,
			                       r->names[column], v, DEMAND_REPLICAS_MAX);
		}
		int64_t from = r->time_ms[row], to = from + recording_hold_ms(r, row);
		double next = v;
		if (d->interpolated) {
			if (row + 1 == r->n_rows || r->time_ms[row + 1] != to)
				continue; // nothing to join it with
			next = recording_value(r, row + 1, column);
			if (isnan(next))
				continue;
		}
		add_line(d, sums, covered, from, to, v / divisor, next / divisor);
	}
	for (size_t i = 0; i < d->n; i++)
		if (covered[i] < d->step_ms)
			sums[i] = NAN;
	free(covered);
	return 0;
}

static void find_gaps(struct demand *d)
{
	for (size_t i = 0; i < d->n; i++) {
		if (!isnan(d->work[i]))
			continue;
		int64_t from = d->start_ms + (int64_t)i * d->step_ms;
		while (i + 1 < d->n && isnan(d->work[i + 1]))
			i++;
		if (d->n_gaps < DEMAND_GAPS_MAX)
			d->gaps[d->n_gaps] = (struct demand_gap){from, d->start_ms + (int64_t)(i + 1) * d->step_ms};
		d->n_gaps++;
	}
}

int demand_from_recording(const struct recording *r, int column, int requests, double per_replica, const char *file,
                          struct demand *ret, struct err *e)
{
	memset(ret, 0, sizeof *ret);
	int64_t span = r->time_ms[r->n_rows - 1] - r->time_ms[0];
	ret->start_ms = r->time_ms[0];
	ret->interpolated = r->step_ms > DEMAND_INTERPOLATE_MS;
	ret->step_ms = span <= DAY_MS ? 1000 : span <= 100 * DAY_MS ? 5000 : 15000;
	ret->n = (size_t)((span + (ret->interpolated ? 0 : r->step_ms)) / ret->step_ms);
	if (ret->n == 0)
		return err_set(e, ERR_INPUT, "%s: covers %.3f s, less than a step of %lld s", file, (double)span / 1000,
		               (long long)ret->step_ms / 1000);
	ret->work = calloc(ret->n, sizeof *ret->work);
	ret->weight = requests >= 0 ? calloc(ret->n, sizeof *ret->weight) : NULL;
	if (!ret->work || (requests >= 0 && !ret->weight))
		return err_no_memory(e);
	if (spread(r, column, per_replica, file, ret, ret->work, e) < 0)
		return -1;
	if (requests >= 0 && spread(r, requests, 1, file, ret, ret->weight, e) < 0)
		return -1;
	for (size_t i = 0; i < ret->n; i++) {
		if (ret->weight && isnan(ret->weight[i]))
			ret->work[i] = NAN;
		if (isnan(ret->work[i]))
			continue;
		ret->total += ret->work[i];
		ret->known_ms += ret->step_ms;
	}
	if (ret->known_ms == 0)
		return err_set(e, ERR_INPUT, "%s: column %s has no data", file, r->names[column]);
	ret->mean = ret->total * 1000 / (double)ret->known_ms;
	find_gaps(ret);
	return 0;
}

void demand_done(struct demand *d)
{
	free(d->work);
	free(d->weight);
	d->work = d->weight = NULL;
	d->n = 0;
}
