// SPDX-License-Identifier: Apache-2.0
// The ranges of thresholds that make sense for what their signals measure. A policy whose threshold is far off can then
// reach good numbers, which the range around the present value does not contain.
#include "replay/tune_search.h"

#include <math.h>
#include <stdlib.h>

#include "replay/backtest.h"

struct range {
	double low, high; // 0: unknown
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

// The positive values of a column in the first half: from their median to the largest one.
static struct range column_range(const struct recording *r, int column)
{
	struct range range = {0, 0};
	size_t n = 0, rows = r->n_rows / 2;
	double *values = rows > 0 ? calloc(rows, sizeof *values) : NULL;
	for (size_t i = 0; i < rows && values; i++) {
		double v = recording_value(r, i, column);
		if (isfinite(v) && v > 0)
			values[n++] = v;
	}
	if (n > 0) {
		qsort(values, n, sizeof *values, by_value);
		range = (struct range){values[n / 2], values[n - 1]};
	}
	free(values);
	return range;
}

// A target of type AverageValue asks for value / target replicas; a Value and a watermark are compared with the value.
// A column that is compared is left alone: it does not react to the replicas, so a threshold far from the present one
// would be tuned on values that no replicas would cause.
static struct range range_of(const struct tune_search *s, const struct policy_candidate *c, size_t i)
{
	const struct policy *p = c->policy;
	const struct policy_target *t = &p->signals[i].target;
	double ratio = world_capacity_ratio(&s->scene->config.world);
	bool is_average = t->set && t->type == TARGET_AVERAGE_VALUE, is_level = !t->set || t->type == TARGET_VALUE;
	switch (c->origins[i]) {
	case ORIGIN_DEMAND: // demand of a replica, which serves `ratio`
		return is_average ? (struct range){0.1 * ratio, 2 * ratio} : (struct range){0, 0};
	case ORIGIN_UTILIZATION:
		return is_level ? (struct range){0.1, 1} : (struct range){0, 0};
	case ORIGIN_BACKLOG: // replica-seconds of a replica, which serves `ratio` in a second
		return is_average ? (struct range){ratio * s->scene->config.wait_s / 10,
		                                   10 * ratio * s->scene->config.wait_s}
		                  : (struct range){0, 0};
	case ORIGIN_ENGINE:
	case ORIGIN_FORMULA:
		return (struct range){0, 0};
	case ORIGIN_COLUMN:
	case ORIGIN__COUNT:
		break;
	}
	if (is_average) {
		struct range column = column_range(s->scene->recording, c->columns[i]);
		return (struct range){column.low / p->max_replicas, column.high};
	}
	return (struct range){0, 0};
}

void tune_ranges_widen(struct tune_search *s)
{
	const struct policy_candidate *c = s->runs[0]->candidate;
	for (size_t i = 0; i < c->policy->n_signals; i++) {
		struct range r = range_of(s, c, i);
		if (c->policy->signals[i].target.set || c->policy->signals[i].watermarks.set)
			tune_space_widen(s->space, i, r.low, r.high);
	}
}
