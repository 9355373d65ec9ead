// SPDX-License-Identifier: Apache-2.0
#include "controller/status/sparkline.h"

#include <math.h>

#include "base/base.h"

// ---- cells ----
// A cell is DIGITS * CELL_POWERS + POWER: three decimal digits with their sign, and the index of a power of ten. That
// is enough to draw, and takes half of the memory of a float.

#define CELL_UNKNOWN INT16_MIN
#define CELL_POWERS  32 // 10^-16 .. 10^15
#define CELL_ONE     16 // the index of 10^0

static const double powers_of_ten[] = {1,   1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7, 1e8,
                                       1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16};

// Multiplies by 10^(power - CELL_ONE). A division keeps the decimal digits of fractions: 125 / 1000 is 0.125.
static double scale(double digits, int power)
{
	return power < CELL_ONE ? digits / powers_of_ten[CELL_ONE - power] : digits * powers_of_ten[power - CELL_ONE];
}

static int16_t cell_of(double value)
{
	double size = fabs(value);
	int power = CELL_ONE - 2;                    // so that 1 has three digits
	if (!(size < scale(999.5, CELL_POWERS - 1))) // NaN, too
		return CELL_UNKNOWN;
	while (size > 0 && power > 0 && size < scale(99.95, power))
		power--;
	while (size >= scale(999.5, power))
		power++;
	int digits = (int)(scale(size, 2 * CELL_ONE - power) + 0.5);
	return (int16_t)((value < 0 ? -digits : digits) * CELL_POWERS + power);
}

static double value_of(int16_t cell)
{
	int power = (cell % CELL_POWERS + CELL_POWERS) % CELL_POWERS;
	return cell == CELL_UNKNOWN ? (double)NAN : scale((cell - power) / CELL_POWERS, power);
}

// ---- rows ----

struct sparkline *sparkline_new(int64_t interval_ms, size_t n_columns)
{
	assert(interval_ms > 0 && n_columns >= 1 && n_columns <= SPARKLINE_COLUMNS_MAX);
	struct sparkline *t = must_alloc(malloc(sizeof *t + SPARKLINE_POINTS_MAX * n_columns * sizeof t->cells[0]));
	*t = (struct sparkline){.interval_ms = interval_ms, .ticks_per_row = 1, .n_columns = (uint16_t)n_columns};
	return t;
}

static int16_t *row_at(struct sparkline *t, size_t row)
{
	return &t->cells[(t->first + row) % SPARKLINE_POINTS_MAX * t->n_columns];
}

// Copies the known values of `later` over those of `row`.
static void merge(int16_t *row, const int16_t *later, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (later[i] != CELL_UNKNOWN)
			row[i] = later[i];
}

// Call only when the newest row has all its ticks, so that it is the second half of a pair.
static void halve(struct sparkline *t)
{
	size_t bytes = t->n_columns * sizeof t->cells[0];
	for (size_t i = 0; i < SPARKLINE_POINTS_MAX / 2; i++) {
		int16_t *row = row_at(t, i);
		if (i > 0)
			memcpy(row, row_at(t, 2 * i), bytes);
		merge(row, row_at(t, 2 * i + 1), t->n_columns);
	}
	t->n = SPARKLINE_POINTS_MAX / 2;
	t->ticks_per_row *= 2;
}

static void add_tick(struct sparkline *t, const int16_t *cells)
{
	if (t->n > 0 && t->ticks_in_last < t->ticks_per_row) {
		t->ticks_in_last++;
		merge(row_at(t, t->n - 1U), cells, t->n_columns);
		return;
	}
	if (t->n == SPARKLINE_POINTS_MAX && sparkline_step_ms(t) < SPARKLINE_STEP_MS) {
		halve(t);
	} else if (t->n == SPARKLINE_POINTS_MAX) {
		t->first = (uint16_t)((t->first + 1) % SPARKLINE_POINTS_MAX);
		t->n--;
	}
	memcpy(row_at(t, t->n++), cells, t->n_columns * sizeof t->cells[0]);
	t->ticks_in_last = 1;
}

static void forget(struct sparkline *t)
{
	t->first = t->n = 0;
	t->ticks_per_row = 1;
	t->ticks_in_last = 0;
}

// Returns by how many intervals the tick follows the last one; 0: a tick beside the interval.
static int64_t ticks_since(const struct sparkline *t, int64_t now_ms)
{
	return (now_ms - t->end_ms + t->interval_ms / 2) / t->interval_ms;
}

// No row would remain visible, or the clock was set.
static bool is_over(const struct sparkline *t, int64_t now_ms)
{
	int64_t step_ms = t->interval_ms > SPARKLINE_STEP_MS ? t->interval_ms : SPARKLINE_STEP_MS;
	return now_ms < t->end_ms || (now_ms - t->end_ms) / step_ms >= SPARKLINE_POINTS_MAX;
}

void sparkline_add(struct sparkline *t, int64_t now_ms, const double *values)
{
	int16_t row[SPARKLINE_COLUMNS_MAX], unknown[SPARKLINE_COLUMNS_MAX];
	for (size_t i = 0; i < t->n_columns; i++) {
		unknown[i] = CELL_UNKNOWN;
		row[i] = values ? cell_of(values[i]) : CELL_UNKNOWN;
	}
	if (is_over(t, now_ms))
		forget(t);
	int64_t ticks = t->n > 0 ? ticks_since(t, now_ms) : 1;
	for (int64_t i = 1; i < ticks; i++)
		add_tick(t, unknown);
	if (ticks > 0)
		add_tick(t, row);
	else
		merge(row_at(t, t->n - 1U), row, t->n_columns);
	t->end_ms = now_ms;
}

int64_t sparkline_step_ms(const struct sparkline *t)
{
	return t->interval_ms * t->ticks_per_row;
}

double sparkline_at(const struct sparkline *t, size_t row, size_t column)
{
	assert(row < t->n && column < t->n_columns);
	return value_of(t->cells[(t->first + row) % SPARKLINE_POINTS_MAX * t->n_columns + column]);
}
