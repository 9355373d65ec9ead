// SPDX-License-Identifier: Apache-2.0
#include "replay/track.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

void track_init(struct track *t, int64_t from_ms, int64_t to_ms)
{
	memset(t, 0, sizeof *t);
	t->from_ms = from_ms;
	t->to_ms = to_ms;
}

void track_add(struct track *t, int64_t time_ms, double value)
{
	if (time_ms < t->from_ms || time_ms >= t->to_ms)
		return;
	size_t i = (size_t)((time_ms - t->from_ms) * TRACK_SPANS / (t->to_ms - t->from_ms));
	float v = (float)value;
	if (isnan(value)) {
		if (t->state[i] == TRACK_EMPTY)
			t->state[i] = TRACK_GAP;
		return;
	}
	bool is_first = t->state[i] != TRACK_VALUE;
	t->state[i] = TRACK_VALUE;
	t->low[i] = is_first || v < t->low[i] ? v : t->low[i];
	t->high[i] = is_first || v > t->high[i] ? v : t->high[i];
	t->last[i] = v;
}

size_t track_points(const struct track *t, double *x, double *y)
{
	size_t n = 0;
	double last = NAN;
	for (size_t i = 0; i < TRACK_SPANS; i++) {
		double at = (double)t->from_ms + (double)(t->to_ms - t->from_ms) * (double)i / TRACK_SPANS;
		if (t->state[i] == TRACK_EMPTY)
			continue; // the last value remains
		if (t->state[i] == TRACK_GAP) {
			if (!isnan(last)) {
				x[n] = at;
				y[n++] = last = NAN;
			}
			continue;
		}
		// The far end first: the line goes there, across to the other end, and back to the last value.
		const double values[] = {(double)t->high[i], (double)t->low[i], (double)t->last[i]};
		for (int k = 0; k < 3; k++)
			if (values[k] != last) {
				x[n] = at;
				y[n++] = last = values[k];
			}
	}
	if (n == 0)
		return 0;
	x[n] = (double)t->to_ms;
	y[n++] = last;
	return n;
}
