// SPDX-License-Identifier: Apache-2.0
// Validates the choices of tune by walk-forward, and chooses what to recommend.
#include "replay/tune_search.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "replay/backtest.h"

#define WORTH_A_NUMBER 0.005 // a change of a number that saves less than this is taken back

static bool keeps(const struct tune_score *s, double late_ratio)
{
	return tune_late_percent(s) <= 100 * late_ratio;
}

// Whether a is a better choice than b: it keeps the objective out of sample, in sample as well, no peer dominates it,
// and it is the cheapest of these.
static bool is_better(const struct tune *t, const struct tune_point *a, const struct tune_point *b, double late_ratio)
{
	bool keeps_a = keeps(&a->out, late_ratio), keeps_b = keeps(&b->out, late_ratio);
	if (keeps_a != keeps_b)
		return keeps_a;
	bool free_a = !tune_peers_dominating(t, &a->out), free_b = !tune_peers_dominating(t, &b->out);
	if (free_a != free_b)
		return free_a;
	bool both_a = keeps_a && keeps(&a->in, late_ratio), both_b = keeps_b && keeps(&b->in, late_ratio);
	if (both_a != both_b)
		return both_a;
	return tune_loss(&a->out, late_ratio) < tune_loss(&b->out, late_ratio);
}

void tune_choice_validate(const struct tune_search *s, struct tune *t)
{
	double late = s->scene->config.late_ratio;
	double loss_in = 0, loss_out = 0, present_in = 0, present_out = 0;
	const struct tune_trial *present = s->runs[0];
	for (size_t k = 0; k < TUNE_FOLDS; k++) {
		size_t part = TUNE_IN_PARTS + k;
		struct tune_fold *f = &t->folds[k];
		const struct tune_trial *best = NULL;
		double least = INFINITY;
		for (size_t i = 0; i < s->n_runs; i++) {
			double loss = tune_score_loss(s->runs[i]->parts, part, late);
			if (loss < least) {
				least = loss;
				best = s->runs[i];
			}
		}
		assert(best);
		f->in = tune_score_sum(best->parts, 0, part);
		f->out = best->parts[part];
		f->present_in = tune_score_sum(present->parts, 0, part);
		f->present_out = present->parts[part];
		double in = tune_loss(&f->in, late), out = tune_loss(&f->out, late);
		double was_in = tune_loss(&f->present_in, late), was_out = tune_loss(&f->present_out, late);
		f->gain_in = was_in > 0 ? 1 - in / was_in : 0;
		f->gain_out = was_out > 0 ? 1 - out / was_out : 0;
		t->gap = fmax(t->gap, fabs(f->gain_in - f->gain_out));
		loss_in += in;
		loss_out += out;
		present_in += was_in;
		present_out += was_out;
	}
	t->gain_in = present_in > 0 ? 1 - loss_in / present_in : 0;
	t->gain_out = present_out > 0 ? 1 - loss_out / present_out : 0;
}

static int points_by_cost(const void *a, const void *b)
{
	const struct tune_point *x = a, *y = b;
	if (x->out.replica_s != y->out.replica_s)
		return x->out.replica_s < y->out.replica_s ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static void set_point(const struct tune_trial *r, struct tune_point *p)
{
	p->index = r->index;
	memcpy(p->values, r->values, sizeof p->values);
	p->in = tune_score_sum(r->parts, 0, TUNE_IN_PARTS);
	p->out = tune_score_sum(r->parts, TUNE_IN_PARTS, TUNE_PARTS);
}

static bool is_beaten(const struct tune_point *a, const struct tune_point *by)
{
	double late = tune_late_percent(&a->out), late_by = tune_late_percent(&by->out);
	bool is_equal = by->out.replica_s == a->out.replica_s && late_by == late && by->out.changes == a->out.changes;
	return by->out.replica_s <= a->out.replica_s && late_by <= late && by->out.changes <= a->out.changes &&
	       (!is_equal || by->index < a->index);
}

static void mark_front(struct tune *t)
{
	for (size_t i = 0; i < t->n_points; i++) {
		struct tune_point *p = &t->points[i];
		p->is_front = true;
		for (size_t k = 0; k < t->n_points && p->is_front; k++)
			p->is_front = k == i || !is_beaten(p, &t->points[k]);
	}
}

// Plays the whole recording with `values`. *ret_refused: the rules between fields do not accept them.
static int play_values(struct tune_search *s, const double values[], size_t index, struct tune_point *ret,
                       bool *ret_refused, struct err *e)
{
	struct tune_trial *r = tune_trial_new(s);
	if (!r)
		return err_set(e, ERR_INTERNAL, "out of memory");
	r->index = index;
	memcpy(r->values, values, sizeof r->values);
	int rc = tune_trial_decode(s, r, ret_refused, e);
	for (size_t part = 0; rc == 0 && !*ret_refused && part < TUNE_PARTS; part++)
		tune_trial_play(s, r, part);
	set_point(r, ret);
	tune_trial_free(r);
	return rc == 0 && atomic_load(&s->has_failed) ? err_set(e, ERR_INTERNAL, "out of memory") : rc;
}

static bool is_as_good(const struct tune_search *s, const struct tune *t, const struct tune_point *a,
                       const struct tune_point *than)
{
	double late = s->scene->config.late_ratio, limit = 1 + WORTH_A_NUMBER;
	return keeps(&a->out, late) >= keeps(&than->out, late) &&
	       !tune_peers_dominating(t, &a->out) >= !tune_peers_dominating(t, &than->out) &&
	       tune_loss(&a->out, late) <= limit * tune_loss(&than->out, late) &&
	       tune_loss(&a->in, late) <= limit * tune_loss(&than->in, late);
}

// Takes back what saves next to nothing: a patch with fewer changes is easier to judge.
static int simplify(struct tune_search *s, const struct tune *t, struct tune_point *choice, struct err *e)
{
	struct tune_point first = *choice;
	for (size_t i = 0; i < s->space->n; i++) {
		struct tune_point trial = *choice;
		bool is_refused = true;
		if (trial.values[i] == s->space->numbers[i].present)
			continue;
		trial.values[i] = s->space->numbers[i].present;
		if (play_values(s, trial.values, trial.index, &trial, &is_refused, e) < 0)
			return -1;
		if (!is_refused && is_as_good(s, t, &trial, &first))
			*choice = trial;
	}
	return 0;
}

static bool is_changed(const struct tune_space *s, const struct tune_point *p)
{
	for (size_t i = 0; i < s->n; i++)
		if (p->values[i] != s->numbers[i].present)
			return true;
	return false;
}

int tune_choose(struct tune_search *s, struct tune *t, struct err *e)
{
	double late = s->scene->config.late_ratio;
	t->points = calloc(s->n_runs, sizeof *t->points);
	if (!t->points)
		return err_set(e, ERR_INTERNAL, "out of memory");
	t->n_points = s->n_runs;
	size_t best = 0;
	for (size_t i = 0; i < s->n_runs; i++) {
		set_point(s->runs[i], &t->points[i]);
		if (is_better(t, &t->points[i], &t->points[best], late))
			best = i;
	}
	struct tune_point present = t->points[0];
	if (best > 0 && simplify(s, t, &t->points[best], e) < 0)
		return -1;
	if (best > 0 && !is_changed(s->space, &t->points[best]))
		best = 0;
	size_t index = t->points[best].index;
	qsort(t->points, t->n_points, sizeof *t->points, points_by_cost);
	for (size_t i = 0; i < t->n_points; i++) {
		if (t->points[i].index == 0)
			t->present = i;
		if (t->points[i].index == index)
			t->chosen = i;
	}
	mark_front(t);
	const struct tune_point *chosen = &t->points[t->chosen];
	t->keeps_objective = keeps(&chosen->out, late);
	t->dominated_by = tune_peers_dominating(t, &chosen->out);
	double was = tune_loss(&present.out, late);
	t->gain_chosen = was > 0 ? 1 - tune_loss(&chosen->out, late) / was : 0;
	return 0;
}
