// SPDX-License-Identifier: Apache-2.0
#include "exporter/series.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"

#define CSV_BYTES_MAX   (16 * 1024 * 1024)
#define CSV_COLUMNS_MAX 64

// "a+bxn" taken apart. times counts the values it stands for.
struct run {
	bool missing;
	double start, delta;
	int64_t times;
};

static int parse_run(const char *word, size_t len, struct run *r, struct err *e)
{
	*r = (struct run){.times = 1};
	if (len == 5 && memcmp(word, "stale", 5) == 0) {
		r->missing = true;
		return 0;
	}
	const char *x = memchr(word, 'x', len);
	size_t head = x ? (size_t)(x - word) : len;
	if (x && num_parse_i64(x + 1, len - head - 1, 0, SERIES_POINTS_MAX, &r->times, e) < 0)
		return err_wrap(e, "after 'x' in \"%.*s\"", (int)len, word);
	if (head == 1 && word[0] == '_') {
		r->missing = true;
		return 0;
	}
	if (x)
		r->times++;
	// The sign between a and b: not the first character, not one that belongs to an exponent.
	size_t sign = 0;
	for (size_t i = 1; i < head && !sign; i++)
		if ((word[i] == '+' || word[i] == '-') && word[i - 1] != 'e' && word[i - 1] != 'E')
			sign = i;
	if (num_parse_f64(word, sign ? sign : head, &r->start, e) < 0)
		return err_wrap(e, "in \"%.*s\"", (int)len, word);
	if (!sign)
		return 0;
	if (!x)
		return err_set(e, ERR_INPUT, "\"%.*s\" has a step but no count: write \"%.*sx10\" for 10 more values",
		               (int)len, word, (int)len, word);
	if (num_parse_f64(word + sign + 1, head - sign - 1, &r->delta, e) < 0)
		return err_wrap(e, "in \"%.*s\"", (int)len, word);
	if (word[sign] == '-')
		r->delta = -r->delta;
	return 0;
}

// Counts the values of the text, and writes them when points is not NULL: called twice, to count and to fill.
static int walk(const char *text, double *points, size_t *ret_n, struct err *e)
{
	size_t n = 0;
	for (const char *p = text; *p;) {
		p += strspn(p, " \t\r\n");
		size_t len = strcspn(p, " \t\r\n");
		if (!len)
			break;
		struct run r;
		if (parse_run(p, len, &r, e) < 0)
			return -1;
		if (n + (size_t)r.times > SERIES_POINTS_MAX)
			return err_set(e, ERR_LIMIT, "the series has more than the ceiling of %d values",
			               SERIES_POINTS_MAX);
		for (int64_t i = 0; points && i < r.times; i++) {
			double v = r.start + r.delta * (double)i;
			if (!r.missing && !isfinite(v))
				return err_set(e, ERR_INPUT, "\"%.*s\" leaves the range of a number", (int)len, p);
			points[n + (size_t)i] = r.missing ? NAN : v;
		}
		n += (size_t)r.times;
		p += len;
	}
	*ret_n = n;
	return 0;
}

static int finish(struct arena *a, double *points, size_t n, double step_ms, bool loop, struct series *s, struct err *e)
{
	double *sums = arena_calloc(a, n + 1, sizeof *sums);
	if (!sums)
		return err_set(e, ERR_LIMIT, "a series of %zu values does not fit the script's memory", n);
	for (size_t i = 0; i < n; i++)
		if (fabs(points[i]) > SERIES_VALUE_MAX)
			return err_set(e, ERR_LIMIT, "value %zu of the series is beyond the ceiling of %g", i + 1,
			               SERIES_VALUE_MAX);
	for (size_t i = 0; i < n; i++)
		sums[i + 1] = sums[i] + (isnan(points[i]) ? 0 : points[i]);
	*s = (struct series){.points = points, .sums = sums, .n = n, .step_ms = step_ms, .loop = loop};
	return 0;
}

int series_parse(struct arena *a, const char *text, double step_ms, bool loop, double scale, struct series *ret_series,
                 struct err *e)
{
	size_t n;
	if (walk(text, NULL, &n, e) < 0)
		return -1;
	if (n == 0)
		return err_set(e, ERR_INPUT, "the series is empty: write values such as '0+10x9 90x20'");
	double *points = arena_calloc(a, n, sizeof *points);
	if (!points)
		return err_set(e, ERR_LIMIT, "a series of %zu values does not fit the script's memory", n);
	if (walk(text, points, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		points[i] *= scale;
	return finish(a, points, n, step_ms, loop, ret_series, e);
}

// The cell `index` of a line, without blanks around it.
static bool csv_cell(const char *line, size_t len, size_t index, const char **ret_cell, size_t *ret_len)
{
	const char *p = line, *end = line + len;
	for (size_t i = 0;; i++) {
		const char *comma = memchr(p, ',', (size_t)(end - p));
		const char *stop = comma ? comma : end;
		if (i == index) {
			while (p < stop && (*p == ' ' || *p == '\t'))
				p++;
			while (stop > p && strchr(" \t\r", stop[-1]))
				stop--;
			*ret_cell = p;
			*ret_len = (size_t)(stop - p);
			return true;
		}
		if (!comma)
			return false;
		p = comma + 1;
	}
}

static int csv_find_column(const char *path, const char *line, size_t len, const char *column, size_t *ret_index,
                           struct err *e)
{
	const char *cell;
	size_t cell_len;
	for (size_t i = 0; i < CSV_COLUMNS_MAX && csv_cell(line, len, i, &cell, &cell_len); i++) {
		if (cell_len == strlen(column) && memcmp(cell, column, cell_len) == 0) {
			*ret_index = i;
			return 0;
		}
	}
	return err_set(e, ERR_INPUT, "%s:1: no column \"%s\" in the header \"%.*s\"", path, column,
	               (int)(len > 120 ? 120 : len), line);
}

static int csv_decode(struct arena *a, const char *path, const char *text, size_t text_len, const char *column,
                      double scale, double **ret_points, size_t *ret_n, struct err *e)
{
	size_t lines = 0;
	for (size_t i = 0; i < text_len; i++)
		lines += text[i] == '\n';
	if (lines > SERIES_POINTS_MAX)
		return err_set(e, ERR_LIMIT, "%s has %zu lines, the ceiling is %d", path, lines, SERIES_POINTS_MAX);
	double *points = arena_calloc(a, lines + 1, sizeof *points);
	if (!points)
		return err_set(e, ERR_LIMIT, "%s does not fit the script's memory", path);
	size_t n = 0, index = 0, line_no = 0;
	const char *p = text, *end = p + text_len;
	while (p < end) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		size_t len = newline ? (size_t)(newline - p) : (size_t)(end - p);
		const char *cell;
		size_t cell_len;
		line_no++;
		if (line_no == 1) {
			if (csv_find_column(path, p, len, column, &index, e) < 0)
				return -1;
		} else if (len && !(len == 1 && p[0] == '\r')) {
			if (!csv_cell(p, len, index, &cell, &cell_len))
				return err_set(e, ERR_INPUT, "%s:%zu: the line has no column \"%s\"", path, line_no,
				               column);
			if (num_parse_f64(cell, cell_len, &points[n], e) < 0)
				return err_wrap(e, "%s:%zu: column \"%s\"", path, line_no, column);
			points[n++] *= scale;
		}
		p += len + (newline ? 1 : 0);
	}
	if (n == 0)
		return err_set(e, ERR_INPUT, "%s has no line of values below its header", path);
	*ret_points = points;
	*ret_n = n;
	return 0;
}

int series_parse_csv(struct arena *a, const char *name, const char *text, size_t len, const char *column,
                     double step_ms, bool loop, double scale, struct series *ret_series, struct err *e)
{
	double *points;
	size_t n;
	if (csv_decode(a, name, text, len, column, scale, &points, &n, e) < 0)
		return -1;
	return finish(a, points, n, step_ms, loop, ret_series, e);
}

int series_read_csv(struct arena *a, const char *path, const char *column, double step_ms, bool loop, double scale,
                    struct series *ret_series, struct err *e)
{
	struct buf text;
	buf_init(&text, CSV_BYTES_MAX);
	int rc = buf_read_file(&text, path, e);
	if (rc == 0)
		rc = series_parse_csv(a, path, buf_str(&text), text.len, column, step_ms, loop, scale, ret_series, e);
	buf_done(&text);
	return rc;
}

void series_init_sine(struct series *s, double mean, double amplitude, double period_ms, double phase_ms)
{
	*s = (struct series){
	        .mean = mean, .amplitude = amplitude, .period_ms = period_ms, .phase_ms = phase_ms, .loop = true};
}

static double sine_at(const struct series *s, double t_ms)
{
	return s->mean + s->amplitude * sin(2 * M_PI * (t_ms + s->phase_ms) / s->period_ms);
}

bool series_at(const struct series *s, double t_ms, double *ret_value)
{
	if (!s->points) {
		*ret_value = sine_at(s, t_ms);
		return true;
	}
	double step = floor(t_ms / s->step_ms);
	double n = (double)s->n;
	if (step >= n)
		step = s->loop ? fmod(step, n) : n - 1;
	*ret_value = s->points[(size_t)step];
	return !isnan(*ret_value);
}

// Integral from 0 to t, in value x steps.
static double integral(const struct series *s, double t_ms)
{
	double steps = t_ms / s->step_ms, n = (double)s->n, whole = 0;
	if (steps >= n && s->loop) {
		whole = floor(steps / n) * s->sums[s->n];
		steps = fmod(steps, n);
	} else if (steps >= n) {
		double last = s->sums[s->n] - s->sums[s->n - 1];
		return s->sums[s->n] + (steps - n) * last;
	}
	size_t i = (size_t)steps;
	double part = (steps - (double)i) * (s->sums[i + 1] - s->sums[i]);
	return whole + s->sums[i] + part;
}

double series_mean(const struct series *s, double from_ms, double to_ms)
{
	if (!s->points)
		return sine_at(s, (from_ms + to_ms) / 2);
	return (integral(s, to_ms) - integral(s, from_ms)) * s->step_ms / (to_ms - from_ms);
}
