// SPDX-License-Identifier: Apache-2.0
// Draws the candidates of tune, plays them, and drops the worse ones after each part (successive halving).
#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "replay/backtest.h"
#include "replay/tune_search.h"

// ---- ranges ----

// The ranges of thresholds that make sense for what their signals measure. A policy whose threshold is far off can then
// reach good numbers, which the range around the present value does not contain.

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
	switch (c->bindings[i].origin) {
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
		struct range column = column_range(s->scene->recording, c->bindings[i].column);
		return (struct range){column.low / p->max_replicas, column.high};
	}
	return (struct range){0, 0};
}

static void tune_ranges_widen(struct tune_search *s)
{
	const struct policy_candidate *c = s->runs[0]->candidate;
	for (size_t i = 0; i < c->policy->n_signals; i++) {
		struct range r = range_of(s, c, i);
		if (c->policy->signals[i].target.set || c->policy->signals[i].watermarks.set)
			tune_space_widen(s->space, i, r.low, r.high);
	}
}

#define DRAWS           32 // tries to draw numbers that the rules between fields accept
#define KEEP_DIVISOR    3  // one in so many candidates stays after a rung
#define KEEP_MIN        48 // but at least so many
#define REFINED_DIVISOR 6  // this part of the candidates vary the best of the others, after each part in sample
#define REFINED_PARENTS 12
#define REFINED_LINE    12  // at most this many of them move all thresholds of the best one together
#define REFINED_CLOSER  0.5 // after each part, new candidates are nearer to their parents
#define MARGIN_STEPS    8
#define MARGIN_STEP     1.12

// ---- candidates ----

// Added after each part in sample.
static size_t n_refined(const struct tune_search *s)
{
	return s->config->candidates / REFINED_DIVISOR;
}

// What a new candidate is near; NULL for one that is drawn.
struct origin {
	const struct tune_trial *parent;
	double reach; // how near
	double share; // along the line through the thresholds, -1 .. 1; NaN: any numbers vary
};

// Appends candidate `index` to s->runs.
static int add_candidate(struct tune_search *s, struct tune *t, size_t index, const struct origin *origin,
                         struct err *e)
{
	bool is_refused = true;
	struct tune_trial *r = tune_trial_new(s);
	if (!r)
		return err_no_memory(e);
	r->index = index;
	s->runs[s->n_runs++] = r;
	for (uint64_t k = 0; k < DRAWS && is_refused && index > 0; k++) {
		uint64_t seed = s->config->seed * DRAWS + k;
		if (origin && k == 0 && !isnan(origin->share))
			tune_space_move(s->space, origin->parent->values, origin->share, origin->reach, r->values);
		else if (origin)
			tune_space_vary(s->space, seed, index, origin->parent->values, origin->reach, r->values);
		else
			tune_space_draw(s->space, seed, index, r->values);
		if (tune_trial_decode(s, r, &is_refused, e) < 0)
			return -1;
	}
	if (index == 0) {
		tune_space_draw(s->space, 0, 0, r->values);
		return tune_trial_bind(s, r, s->space->policy, s->scene->config.signals, e);
	}
	if (is_refused) {
		tune_trial_free(r);
		s->n_runs--;
	}
	t->n_played += !is_refused;
	return 0;
}

static int fill(struct tune_search *s, struct tune *t, struct err *e)
{
	t->n_played = 1;
	for (size_t i = 0; i < s->config->candidates - TUNE_IN_PARTS * n_refined(s); i++) {
		if (add_candidate(s, t, i, NULL, e) < 0)
			return -1;
		if (i == 0)
			tune_ranges_widen(s);
	}
	return 0;
}

struct ranked {
	struct tune_trial *run;
	struct tune_score sum;
	double loss;
};

static int by_loss(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->loss != y->loss)
		return x->loss < y->loss ? -1 : 1;
	return x->run->index < y->run->index ? -1 : 1;
}

static int by_cost(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->sum.replica_s != y->sum.replica_s)
		return x->sum.replica_s < y->sum.replica_s ? -1 : 1;
	if (x->sum.late != y->sum.late)
		return x->sum.late < y->sum.late ? -1 : 1;
	return x->run->index < y->run->index ? -1 : 1;
}

// Marks, of rows in the order of cost, the least late one of each step above `cost`: what costs more than needed so far
// may be needed later.
static void keep_margins(struct ranked *rows, size_t n, double cost)
{
	size_t i = 0;
	for (int step = 0; step < MARGIN_STEPS; step++, cost *= MARGIN_STEP) {
		struct ranked *best = NULL;
		while (i < n && rows[i].sum.replica_s <= cost)
			i++;
		for (; i < n && rows[i].sum.replica_s <= cost * MARGIN_STEP; i++)
			if (!best || rows[i].loss < best->loss)
				best = &rows[i];
		if (best)
			best->run->stays = true;
	}
}

// Marks, of rows in the order of cost, those of the next Pareto layers until `quota` stay.
static void keep_layers(struct ranked *rows, size_t n, size_t quota)
{
	size_t stay = 0;
	bool was_added = true;
	for (size_t i = 0; i < n; i++)
		stay += rows[i].run->stays;
	while (stay < quota && was_added) {
		double least = INFINITY;
		was_added = false;
		for (size_t i = 0; i < n && stay < quota; i++) {
			if (rows[i].run->stays || !(rows[i].sum.late < least))
				continue;
			least = rows[i].sum.late;
			rows[i].run->stays = was_added = true;
			stay++;
		}
	}
}

static size_t quota_of(size_t n)
{
	return n / KEEP_DIVISOR > KEEP_MIN ? n / KEEP_DIVISOR : n < KEEP_MIN ? n : KEEP_MIN;
}

// Half of those that stay have the least loss. The others cost more than needed so far, or are the best trade-offs of
// cost and lateness, because the lateness of a short time is a poor estimate. The present policy always stays.
static int drop_worse(struct tune_search *s, struct err *e)
{
	size_t n = s->n_runs, quota = quota_of(n);
	if (n <= quota)
		return 0;
	struct ranked *rows = calloc(n, sizeof *rows);
	if (!rows)
		return err_no_memory(e);
	for (size_t i = 0; i < n; i++) {
		rows[i].run = s->runs[i];
		rows[i].sum = tune_score_sum(s->runs[i]->parts, 0, s->part);
		rows[i].loss = tune_score_loss(s->runs[i]->parts, s->part, s->scene->config.late_ratio);
		rows[i].run->stays = s->runs[i]->index == 0;
	}
	qsort(rows, n, sizeof *rows, by_loss);
	for (size_t i = 0; i < quota / 2; i++)
		rows[i].run->stays = true;
	double least = rows[0].sum.replica_s;
	qsort(rows, n, sizeof *rows, by_cost);
	keep_margins(rows, n, least);
	keep_layers(rows, n, quota);
	s->n_runs = 0;
	for (size_t i = 0; i < n; i++) {
		if (s->runs[i]->stays)
			s->runs[s->n_runs++] = s->runs[i];
		else
			tune_trial_free(s->runs[i]);
	}
	free(rows);
	return 0;
}

static void play_next(void *context, size_t i)
{
	struct tune_search *s = context;
	tune_trial_play(s, s->runs[i], s->part, s->part + 1);
}

// Adds candidates near the best ones of the parts that were played, and plays these parts.
static int refine(struct tune_search *s, struct tune *t, struct err *e)
{
	struct ranked *rows = calloc(s->n_runs, sizeof *rows);
	struct tune_trial **all = s->runs;
	size_t n = s->n_runs, parents = n < REFINED_PARENTS ? n : REFINED_PARENTS;
	size_t first = s->config->candidates - (TUNE_IN_PARTS + 1 - s->part) * n_refined(s);
	size_t line = n_refined(s) / 2 < REFINED_LINE ? n_refined(s) / 2 : REFINED_LINE;
	double reach = pow(REFINED_CLOSER, (double)s->part - 1);
	int rc = rows ? 0 : err_no_memory(e);
	for (size_t i = 0; i < n && rows; i++) {
		rows[i].run = all[i];
		rows[i].loss = tune_score_loss(all[i]->parts, s->part, s->scene->config.late_ratio);
	}
	if (rows)
		qsort(rows, n, sizeof *rows, by_loss);
	s->runs = all + n; // there is room for every candidate
	s->n_runs = 0;
	for (size_t i = 0; i < n_refined(s) && rc == 0; i++) {
		bool is_on_line = i < line && line > 1;
		double share = is_on_line ? 2.0 * (double)i / (double)(line - 1) - 1 : NAN;
		const struct origin origin = {rows[is_on_line ? 0 : i % parents].run, reach, share};
		rc = add_candidate(s, t, first + i, &origin, e);
	}
	rc = rc == 0 ? tune_search_play(s, tune_search_past, e) : rc;
	s->done += (double)(s->part * s->n_runs);
	s->n_runs += n;
	s->runs = all;
	free(rows);
	return rc;
}

// Expected work in parts, for the progress.
static double work_of(size_t n, size_t refined)
{
	double work = 0;
	for (size_t part = 0; part < TUNE_IN_PARTS; part++) {
		work += (double)(n + refined * (part + 1));
		n = quota_of(n + refined);
	}
	return work + (double)n * TUNE_FOLDS;
}

int tune_halving_play(struct tune_search *s, struct tune *t, struct err *e)
{
	if (fill(s, t, e) < 0)
		return -1;
	s->all = work_of(s->n_runs, n_refined(s));
	for (s->part = 0; s->part < TUNE_IN_PARTS;) {
		if (tune_search_play(s, play_next, e) < 0)
			return -1;
		s->done += (double)s->n_runs;
		s->part++;
		if (refine(s, t, e) < 0 || drop_worse(s, e) < 0)
			return -1;
	}
	return tune_search_play(s, tune_search_rest, e);
}
