// SPDX-License-Identifier: Apache-2.0
#include "replay/demand.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "replay/recording.h"

#define DAY_MS INT64_C(86400000)

static int64_t step_for(int64_t span_ms)
{
	return span_ms <= DAY_MS ? 1000 : span_ms <= 100 * DAY_MS ? 5000 : 15000;
}

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
	ret->step_ms = step_for(span);
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
