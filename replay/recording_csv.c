// SPDX-License-Identifier: Apache-2.0
#include "replay/recording_csv.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/num.h"
#include "base/text.h"
#include "replay/recording.h"

#define SHOWN_BYTES 80
#define TIME_MAX_S  253402300799.0 // 9999-12-31T23:59:59Z
#define HEADER_LINE 1

static const char *const time_names[] = {"time", "timestamp", "t_s"};

struct csv_line csv_line_at(const char *text, size_t len, size_t *ret_next)
{
	const char *nl = memchr(text, '\n', len);
	size_t n = nl ? (size_t)(nl - text) : len;
	*ret_next = nl ? n + 1 : n;
	if (n > 0 && text[n - 1] == '\r')
		n--;
	return (struct csv_line){text, text + n, false};
}

bool csv_next_cell(struct csv_line *l, const char **ret_cell, size_t *ret_len)
{
	if (l->done)
		return false;
	const char *comma = memchr(l->at, ',', (size_t)(l->end - l->at));
	const char *from = l->at, *to = comma ? comma : l->end;
	l->done = !comma;
	l->at = comma ? comma + 1 : l->end;
	while (from < to && (*from == ' ' || *from == '\t'))
		from++;
	while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
		to--;
	if (to - from >= 2 && *from == '"' && to[-1] == '"') {
		from++;
		to--;
	}
	*ret_cell = from;
	*ret_len = (size_t)(to - from);
	return true;
}

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
		char shown[SHOWN_BYTES];
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
	char shown[SHOWN_BYTES];
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
	char shown[SHOWN_BYTES];
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
