// SPDX-License-Identifier: Apache-2.0
#include "controller/trend.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct trend {
	int64_t interval_ms, end_ms;
	uint32_t ticks_per_row; // a power of two
	uint32_t ticks_in_last; // of these, how many the newest row has
	uint16_t first, n, n_columns;
	float cells[]; // TREND_POINTS_MAX rows; the oldest is `first`
};

struct trend *trend_new(int64_t interval_ms, size_t n_columns)
{
	assert(interval_ms > 0 && n_columns >= 1 && n_columns <= TREND_COLUMNS_MAX);
	struct trend *t = malloc(sizeof *t + TREND_POINTS_MAX * n_columns * sizeof t->cells[0]);
	if (t)
		*t = (struct trend){.interval_ms = interval_ms, .ticks_per_row = 1, .n_columns = (uint16_t)n_columns};
	return t;
}

void trend_free(struct trend *t)
{
	free(t);
}

static float *row_at(struct trend *t, size_t row)
{
	return &t->cells[(t->first + row) % TREND_POINTS_MAX * t->n_columns];
}

// What `later` knows takes the place of what is there.
static void merge(float *row, const float *later, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isnan(later[i]))
			row[i] = later[i];
}

// Only when the newest row has all its ticks, so that it is the second half of a pair.
static void halve(struct trend *t)
{
	size_t bytes = t->n_columns * sizeof t->cells[0];
	for (size_t i = 0; i < TREND_POINTS_MAX / 2; i++) {
		float *row = row_at(t, i);
		if (i > 0)
			memcpy(row, row_at(t, 2 * i), bytes);
		merge(row, row_at(t, 2 * i + 1), t->n_columns);
	}
	t->n = TREND_POINTS_MAX / 2;
	t->ticks_per_row *= 2;
}

static void add_tick(struct trend *t, const float *values)
{
	if (t->n > 0 && t->ticks_in_last < t->ticks_per_row) {
		t->ticks_in_last++;
		merge(row_at(t, t->n - 1U), values, t->n_columns);
		return;
	}
	if (t->n == TREND_POINTS_MAX && trend_step_ms(t) < TREND_STEP_MS) {
		halve(t);
	} else if (t->n == TREND_POINTS_MAX) {
		t->first = (uint16_t)((t->first + 1) % TREND_POINTS_MAX);
		t->n--;
	}
	memcpy(row_at(t, t->n++), values, t->n_columns * sizeof t->cells[0]);
	t->ticks_in_last = 1;
}

static void forget(struct trend *t)
{
	t->first = t->n = 0;
	t->ticks_per_row = 1;
	t->ticks_in_last = 0;
}

// How many ticks after the last one this is: 0 is one beside the interval, as the first of a policy is.
static int64_t ticks_since(const struct trend *t, int64_t now_ms)
{
	return (now_ms - t->end_ms + t->interval_ms / 2) / t->interval_ms;
}

// Nothing of what there is would be left to see, or it is of another time.
static bool is_over(const struct trend *t, int64_t now_ms)
{
	int64_t step_ms = t->interval_ms > TREND_STEP_MS ? t->interval_ms : TREND_STEP_MS;
	return now_ms < t->end_ms || (now_ms - t->end_ms) / step_ms >= TREND_POINTS_MAX;
}

void trend_add(struct trend *t, int64_t now_ms, const double *values)
{
	float row[TREND_COLUMNS_MAX], unknown[TREND_COLUMNS_MAX];
	for (size_t i = 0; i < t->n_columns; i++) {
		unknown[i] = NAN;
		row[i] = values && fabs(values[i]) <= (double)FLT_MAX ? (float)values[i] : NAN;
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

size_t trend_count(const struct trend *t)
{
	return t->n;
}

int64_t trend_step_ms(const struct trend *t)
{
	return t->interval_ms * t->ticks_per_row;
}

int64_t trend_end_ms(const struct trend *t)
{
	return t->end_ms;
}

float trend_at(const struct trend *t, size_t row, size_t column)
{
	assert(row < t->n && column < t->n_columns);
	return t->cells[(t->first + row) % TREND_POINTS_MAX * t->n_columns + column];
}
