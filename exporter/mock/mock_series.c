// SPDX-License-Identifier: Apache-2.0
// A value over time for the mock: a list of steps (promtool's notation or a CSV column), or a sine. Deterministic: it
// depends only on the time since the start.
#include "exporter/mock/mock.h"

#include <math.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/csv_text.h"
#include "base/series_notation.h"

#define CSV_BYTES_MAX   (16 * 1024 * 1024)
#define CSV_COLUMNS_MAX 64

static int finish(struct arena *a, double *points, size_t n, double step_ms, bool loop, struct mock_series *s,
                  struct err *e)
{
	double *sums = arena_calloc(a, n + 1, sizeof *sums);
	if (!sums)
		return err_set(e, ERR_LIMIT, "a series of %zu values exceeds the memory of the script", n);
	for (size_t i = 0; i < n; i++)
		if (fabs(points[i]) > SERIES_VALUE_MAX)
			return err_set(e, ERR_LIMIT, "value %zu of the series is beyond the ceiling of %g", i + 1,
			               SERIES_VALUE_MAX);
	for (size_t i = 0; i < n; i++)
		sums[i + 1] = sums[i] + (isnan(points[i]) ? 0 : points[i]);
	*s = (struct mock_series){.points = points, .sums = sums, .n = n, .step_ms = step_ms, .loop = loop};
	return 0;
}

int mock_series_parse(struct arena *a, const char *text, double step_ms, bool loop, double scale,
                      struct mock_series *ret_series, struct err *e)
{
	struct series_point *words;
	size_t n;
	if (series_notation_parse(a, text, &words, &n, e) < 0)
		return -1;
	double *points = arena_calloc(a, n, sizeof *points);
	if (!points)
		return err_set(e, ERR_LIMIT, "a series of %zu values exceeds the memory of the script", n);
	for (size_t i = 0; i < n; i++) {
		if (words[i].kind == SERIES_POINT_ERROR)
			return err_set(e, ERR_INPUT, "a GPU has no \"error\": write _ for a sample that is missing");
		if (words[i].kind == SERIES_POINT_VALUE && !isfinite(words[i].value))
			return err_set(e, ERR_INPUT, "value %zu of the series is not a finite number", i + 1);
		points[i] = words[i].kind == SERIES_POINT_VALUE ? words[i].value * scale : NAN;
	}
	return finish(a, points, n, step_ms, loop, ret_series, e);
}

int mock_series_parse_csv(struct arena *a, const char *name, const char *text, size_t text_len, const char *column,
                          double step_ms, bool loop, double scale, struct mock_series *ret_series, struct err *e)
{
	size_t lines = 0;
	for (size_t i = 0; i < text_len; i++)
		lines += text[i] == '\n';
	if (lines > SERIES_NOTATION_POINTS_MAX)
		return err_set(e, ERR_LIMIT, "%s has %zu lines, the ceiling is %d", name, lines,
		               SERIES_NOTATION_POINTS_MAX);
	double *points = arena_calloc(a, lines + 1, sizeof *points);
	if (!points)
		return err_set(e, ERR_LIMIT, "%s exceeds the memory of the script", name);
	size_t n = 0, next, len;
	int index = -1;
	const char *cell;
	for (size_t at = 0, number = 1; at < text_len; at += next, number++) {
		struct csv_line line = csv_line_at(text + at, text_len - at, &next);
		line.keeps_quotes = true;
		if (number == 1) {
			index = csv_find_column(line, column);
			if (index < 0 || index >= CSV_COLUMNS_MAX)
				return err_set(e, ERR_INPUT, "%s:1: no column \"%s\" in the header \"%.*s\"", name,
				               column, line.end - text > 120 ? 120 : (int)(line.end - text), text);
		} else if (line.at < line.end) {
			if (!csv_cell_at(line, index, &cell, &len))
				return err_set(e, ERR_INPUT, "%s:%zu: the line has no column \"%s\"", name, number,
				               column);
			if (num_parse_f64(cell, len, &points[n], e) < 0)
				return err_wrap(e, "%s:%zu: column \"%s\"", name, number, column);
			points[n++] *= scale;
		}
	}
	if (n == 0)
		return err_set(e, ERR_INPUT, "%s has no line of values below its header", name);
	return finish(a, points, n, step_ms, loop, ret_series, e);
}

int mock_series_read_csv(struct arena *a, const char *path, const char *column, double step_ms, bool loop, double scale,
                         struct mock_series *ret_series, struct err *e)
{
	struct buf text;
	buf_init(&text, CSV_BYTES_MAX);
	int rc = buf_read_file(&text, path, e);
	if (rc == 0)
		rc = mock_series_parse_csv(a, path, buf_str(&text), text.len, column, step_ms, loop, scale, ret_series,
		                           e);
	buf_done(&text);
	return rc;
}

void mock_series_init_sine(struct mock_series *s, double mean, double amplitude, double period_ms, double phase_ms)
{
	*s = (struct mock_series){
	        .mean = mean, .amplitude = amplitude, .period_ms = period_ms, .phase_ms = phase_ms, .loop = true};
}

static double sine_at(const struct mock_series *s, double t_ms)
{
	return s->mean + s->amplitude * sin(2 * M_PI * (t_ms + s->phase_ms) / s->period_ms);
}

bool mock_series_at(const struct mock_series *s, double t_ms, double *ret_value)
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
static double integral(const struct mock_series *s, double t_ms)
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

double mock_series_mean(const struct mock_series *s, double from_ms, double to_ms)
{
	if (!s->points)
		return sine_at(s, (from_ms + to_ms) / 2);
	return (integral(s, to_ms) - integral(s, from_ms)) * s->step_ms / (to_ms - from_ms);
}
