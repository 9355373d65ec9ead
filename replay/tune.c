// SPDX-License-Identifier: Apache-2.0
#include "replay/tune.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "policies/engine/policy.h"
#include "replay/backtest.h"
#include "replay/closed_loop.h"
#include "replay/parallel.h"
#include "replay/peers.h"

#define CANDIDATE_ARENA_MAX (1024 * 1024)
#define DRAWS               32    // tries to draw numbers that the rules between fields accept
#define KEEP_DIVISOR        3     // of the candidates, this part stays after a rung
#define KEEP_MIN            48    // but at least so many
#define LATE_LEAST          0.001 // of an objective of 0 %, so that the loss is finite
#define REFINED_DIVISOR     4     // this part of the candidates vary the best of the others
#define REFINED_AFTER       2     // parts
#define REFINED_PARENTS     12
#define MARGIN_STEPS        8
#define MARGIN_STEP         1.12
#define WORTH_A_NUMBER      0.005 // a change of a number that saves less than this is taken back

static const char *const verdict_names[] = {"Recommended", "NoneBetter", "TooSmall", "Uncertain"};
_Static_assert(sizeof verdict_names / sizeof *verdict_names == TUNE_VERDICT__COUNT, "one name per verdict");

const char *tune_verdict_name(enum tune_verdict v)
{
	return verdict_names[v];
}

// ---- scores ----

double tune_late_percent(const struct tune_score *s)
{
	return s->requests > 0 ? 100 * s->late / s->requests : 0;
}

double tune_loss(const struct tune_score *s, double late_ratio)
{
	double late = tune_late_percent(s) / 100;
	double above = late > late_ratio ? fmax(late, LATE_LEAST) / fmax(late_ratio, LATE_LEAST) : 1;
	return s->replica_s * fmax(above, 1);
}

static void add(struct tune_score *sum, const struct tune_score *s)
{
	sum->replica_s += s->replica_s;
	sum->requests += s->requests;
	sum->late += s->late;
	sum->changes += s->changes;
}

static struct tune_score sum_of(const struct tune_score parts[TUNE_PARTS], size_t from, size_t to)
{
	struct tune_score sum = {0};
	for (size_t i = from; i < to; i++)
		add(&sum, &parts[i]);
	return sum;
}

// The loss of every part by itself: a choice that is at the edge of the objective in one part and far from it in
// another pays for the first.
static double loss_of_parts(const struct tune_score parts[TUNE_PARTS], size_t n, double late_ratio)
{
	double loss = 0;
	for (size_t i = 0; i < n; i++)
		loss += tune_loss(&parts[i], late_ratio);
	return loss;
}

// ---- runs: a policy or a peer that plays the recording part by part ----

struct run {
	size_t index; // of the candidate
	double values[TUNE_NUMBERS_MAX];
	struct arena arena;
	struct policy policy;
	struct policy_candidate *candidate; // NULL: `peer`
	struct peer peer;
	struct closed_loop_play play;
	struct tune_score parts[TUNE_PARTS];
};

struct search {
	const struct tune_config *config;
	const struct backtest *scene;
	struct tune_space *space;
	struct closed_loop loop;
	struct run **runs;      // that take part, in the order of their candidates
	size_t n_runs, part;    // the next part
	double done, all;       // work, in parts
	size_t n_tasks;         // of the present rung
	atomic_bool has_failed; // no memory
};

static void free_run(struct run *r)
{
	if (!r)
		return;
	closed_loop_play_done(&r->play);
	if (r->candidate)
		policy_candidate_done(r->candidate);
	free(r->candidate);
	arena_done(&r->arena);
	free(r);
}

static struct run *new_run(struct search *s)
{
	struct run *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	arena_init(&r->arena, CANDIDATE_ARENA_MAX);
	closed_loop_play_init(&r->play, &s->loop);
	return r;
}

static int bind(struct search *s, struct run *r, const struct policy *policy, struct err *e)
{
	const struct backtest *b = s->scene;
	r->candidate = calloc(1, sizeof *r->candidate);
	if (!r->candidate)
		return err_set(e, ERR_INTERNAL, "out of memory");
	return policy_candidate_init(r->candidate, policy, b->recording, b->file, b->config.signals, b->demand.start_ms,
	                             e);
}

// A policy with r->values; *ret_refused when the rules between fields do not accept them.
static int decode(struct search *s, struct run *r, bool *ret_refused, struct err *e)
{
	arena_reset(&r->arena);
	*ret_refused = tune_space_decode(s->space, r->values, &r->arena, &r->policy) < 0;
	return *ret_refused ? 0 : bind(s, r, &r->policy, e);
}

static size_t part_end(const struct search *s, size_t part)
{
	return s->scene->demand.n * (part + 1) / TUNE_PARTS;
}

static void play_part(struct search *s, struct run *r, size_t part)
{
	struct score score;
	struct candidate c = {peer_candidate_decide, &r->peer, 0};
	if (r->candidate)
		c = (struct candidate){policy_candidate_decide, r->candidate, r->candidate->policy->interval_ms};
	else
		c.interval_ms = peer_interval_ms(&r->peer, s->scene->demand.step_ms);
	if (closed_loop_play(&r->play, &c, part_end(s, part), &score) < 0)
		atomic_store(&s->has_failed, true);
	r->parts[part] = (struct tune_score){score.replica_s, score.requests, score.late, score.changes};
}

static void play_next(void *context, size_t i)
{
	struct search *s = context;
	play_part(s, s->runs[i], s->part);
}

static void play_past(void *context, size_t i)
{
	struct search *s = context;
	for (size_t part = 0; part < s->part; part++)
		play_part(s, s->runs[i], part);
}

static void play_rest(void *context, size_t i)
{
	struct search *s = context;
	for (size_t part = s->part; part < TUNE_PARTS; part++)
		play_part(s, s->runs[i], part);
}

static void report_progress(void *context, size_t started)
{
	struct search *s = context;
	double parts = s->part < TUNE_IN_PARTS ? 1.0 : (double)(TUNE_PARTS - s->part);
	if (s->config->on_progress)
		s->config->on_progress(s->config->context, fmin(1, (s->done + (double)started * parts) / s->all));
}

static int play_all(struct search *s, void (*task)(void *context, size_t i), struct err *e)
{
	const struct parallel p = {task, report_progress, s};
	parallel_run(&p, s->n_runs, s->config->threads);
	return atomic_load(&s->has_failed) ? err_set(e, ERR_INTERNAL, "out of memory") : 0;
}

// ---- candidates, and which of them stay ----

static size_t n_refined(const struct search *s)
{
	return s->config->candidates / REFINED_DIVISOR;
}

// Appends candidate `index` to s->runs, with drawn numbers, or with those of `parent` varied.
static int add_candidate(struct search *s, struct tune *t, size_t index, const struct run *parent, struct err *e)
{
	bool is_refused = true;
	struct run *r = new_run(s);
	if (!r)
		return err_set(e, ERR_INTERNAL, "out of memory");
	r->index = index;
	s->runs[s->n_runs++] = r;
	for (uint64_t k = 0; k < DRAWS && is_refused && index > 0; k++) {
		uint64_t seed = s->config->seed * DRAWS + k;
		if (parent)
			tune_space_vary(s->space, seed, index, parent->values, r->values);
		else
			tune_space_draw(s->space, seed, index, r->values);
		if (decode(s, r, &is_refused, e) < 0)
			return -1;
	}
	if (index == 0) {
		tune_space_draw(s->space, 0, 0, r->values);
		return bind(s, r, s->space->policy, e);
	}
	if (is_refused) {
		free_run(r);
		s->n_runs--;
	}
	t->n_played += !is_refused;
	return 0;
}

static int add_candidates(struct search *s, struct tune *t, struct err *e)
{
	t->n_played = 1;
	for (size_t i = 0; i < s->config->candidates - n_refined(s); i++)
		if (add_candidate(s, t, i, NULL, e) < 0)
			return -1;
	return 0;
}

struct ranked {
	struct run *run;
	struct tune_score sum;
	double loss;
	size_t layer;
	bool stays;
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

static int by_index(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
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
			best->stays = true;
	}
}

// Marks, of rows in the order of cost, those of the next Pareto layers until `quota` stay.
static void keep_layers(struct ranked *rows, size_t n, size_t quota)
{
	size_t stay = 0;
	bool was_added = true;
	for (size_t i = 0; i < n; i++)
		stay += rows[i].stays;
	while (stay < quota && was_added) {
		double least = INFINITY;
		was_added = false;
		for (size_t i = 0; i < n && stay < quota; i++) {
			if (rows[i].stays || !(rows[i].sum.late < least))
				continue;
			least = rows[i].sum.late;
			rows[i].stays = was_added = true;
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
static int drop_worse(struct search *s, struct err *e)
{
	size_t n = s->n_runs, quota = quota_of(n);
	if (n <= quota)
		return 0;
	struct ranked *rows = calloc(n, sizeof *rows);
	if (!rows)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < n; i++) {
		rows[i].run = s->runs[i];
		rows[i].sum = sum_of(s->runs[i]->parts, 0, s->part);
		rows[i].loss = loss_of_parts(s->runs[i]->parts, s->part, s->scene->config.late_ratio);
		rows[i].stays = s->runs[i]->index == 0;
	}
	qsort(rows, n, sizeof *rows, by_loss);
	for (size_t i = 0; i < quota / 2; i++)
		rows[i].stays = true;
	double least = rows[0].sum.replica_s;
	qsort(rows, n, sizeof *rows, by_cost);
	keep_margins(rows, n, least);
	keep_layers(rows, n, quota);
	qsort(rows, n, sizeof *rows, by_index);
	s->n_runs = 0;
	for (size_t i = 0; i < n; i++) {
		if (rows[i].stays)
			s->runs[s->n_runs++] = rows[i].run;
		else
			free_run(rows[i].run);
	}
	free(rows);
	return 0;
}

// Adds candidates near the best ones of the parts that were played, and plays these parts.
static int refine(struct search *s, struct tune *t, struct err *e)
{
	struct ranked *rows = calloc(s->n_runs, sizeof *rows);
	struct run **all = s->runs;
	size_t n = s->n_runs, parents = n < REFINED_PARENTS ? n : REFINED_PARENTS;
	int rc = rows ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < n && rows; i++) {
		rows[i].run = all[i];
		rows[i].loss = loss_of_parts(all[i]->parts, s->part, s->scene->config.late_ratio);
	}
	if (rows)
		qsort(rows, n, sizeof *rows, by_loss);
	s->runs = all + n; // there is room for every candidate
	s->n_runs = 0;
	for (size_t i = 0; i < n_refined(s) && rc == 0; i++)
		rc = add_candidate(s, t, s->config->candidates - n_refined(s) + i, rows[i % parents].run, e);
	rc = rc == 0 ? play_all(s, play_past, e) : rc;
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
		if (part == REFINED_AFTER) {
			n += refined;
			work += (double)(refined * part);
		}
		work += (double)n;
		n = quota_of(n);
	}
	return work + (double)n * TUNE_FOLDS;
}

static int play(struct search *s, struct tune *t, struct err *e)
{
	s->all = work_of(s->n_runs, n_refined(s));
	for (s->part = 0; s->part < TUNE_IN_PARTS;) {
		if (s->part == REFINED_AFTER && refine(s, t, e) < 0)
			return -1;
		if (play_all(s, play_next, e) < 0)
			return -1;
		s->done += (double)s->n_runs;
		s->part++;
		if (drop_worse(s, e) < 0)
			return -1;
	}
	return play_all(s, play_rest, e);
}

// ---- peers ----

static int play_peers(struct search *s, struct tune *t, struct err *e)
{
	size_t n, own = s->n_runs;
	const struct peer_setting *settings = peer_settings(&n);
	struct run *peers[TUNE_PEERS_MAX], **runs = s->runs;
	int rc = 0;
	assert(n <= TUNE_PEERS_MAX);
	s->runs = peers;
	s->part = 0;
	for (s->n_runs = 0; s->n_runs < n; s->n_runs++) {
		struct run *r = peers[s->n_runs] = new_run(s);
		if (!r) {
			rc = err_set(e, ERR_INTERNAL, "out of memory");
			break;
		}
		peer_init(&r->peer, settings[s->n_runs].kind, settings[s->n_runs].value, s->space->policy->min_replicas,
		          s->loop.max);
	}
	rc = rc == 0 ? play_all(s, play_rest, e) : rc;
	for (size_t i = 0; i < s->n_runs; i++) {
		struct tune_peer *p = &t->peers[i];
		enum peer_kind kind = settings[i].kind;
		snprintf(p->name, sizeof p->name, "%s %s %.1f", peer_name(kind), peer_setting_name(kind),
		         settings[i].value);
		p->in = sum_of(peers[i]->parts, 0, TUNE_IN_PARTS);
		p->out = sum_of(peers[i]->parts, TUNE_IN_PARTS, TUNE_PARTS);
		free_run(peers[i]);
	}
	t->n_peers = s->n_runs;
	for (size_t i = 0, best = 0; i < t->n_peers; i++) {
		double late = s->scene->config.late_ratio;
		bool is_first = i == 0 || settings[i].kind != settings[i - 1].kind;
		if (is_first || tune_loss(&t->peers[i].out, late) < tune_loss(&t->peers[best].out, late))
			best = i;
		if (i + 1 == t->n_peers || settings[i + 1].kind != settings[i].kind)
			t->peers[best].is_best = true;
	}
	s->runs = runs;
	s->n_runs = own;
	return rc;
}

static bool dominates(const struct tune_score *a, const struct tune_score *b)
{
	double late_a = tune_late_percent(a), late_b = tune_late_percent(b);
	return a->replica_s <= b->replica_s && late_a <= late_b && (a->replica_s < b->replica_s || late_a < late_b);
}

static const char *dominating_peer(const struct tune *t, const struct tune_score *out)
{
	for (size_t i = 0; i < t->n_peers; i++)
		if (dominates(&t->peers[i].out, out))
			return t->peers[i].name;
	return NULL;
}

// ---- choosing ----

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
	bool free_a = !dominating_peer(t, &a->out), free_b = !dominating_peer(t, &b->out);
	if (free_a != free_b)
		return free_a;
	bool both_a = keeps_a && keeps(&a->in, late_ratio), both_b = keeps_b && keeps(&b->in, late_ratio);
	if (both_a != both_b)
		return both_a;
	return tune_loss(&a->out, late_ratio) < tune_loss(&b->out, late_ratio);
}

static void validate(const struct search *s, struct tune *t)
{
	double late = s->scene->config.late_ratio;
	double loss_in = 0, loss_out = 0, present_in = 0, present_out = 0;
	const struct run *present = s->runs[0];
	for (size_t k = 0; k < TUNE_FOLDS; k++) {
		size_t part = TUNE_IN_PARTS + k;
		struct tune_fold *f = &t->folds[k];
		const struct run *best = NULL;
		double least = INFINITY;
		for (size_t i = 0; i < s->n_runs; i++) {
			double loss = loss_of_parts(s->runs[i]->parts, part, late);
			if (loss < least) {
				least = loss;
				best = s->runs[i];
			}
		}
		assert(best);
		f->in = sum_of(best->parts, 0, part);
		f->out = best->parts[part];
		f->present_in = sum_of(present->parts, 0, part);
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

static void set_point(const struct run *r, struct tune_point *p)
{
	p->index = r->index;
	memcpy(p->values, r->values, sizeof p->values);
	p->in = sum_of(r->parts, 0, TUNE_IN_PARTS);
	p->out = sum_of(r->parts, TUNE_IN_PARTS, TUNE_PARTS);
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
static int play_values(struct search *s, const double values[], size_t index, struct tune_point *ret, bool *ret_refused,
                       struct err *e)
{
	struct run *r = new_run(s);
	if (!r)
		return err_set(e, ERR_INTERNAL, "out of memory");
	r->index = index;
	memcpy(r->values, values, sizeof r->values);
	int rc = decode(s, r, ret_refused, e);
	for (size_t part = 0; rc == 0 && !*ret_refused && part < TUNE_PARTS; part++)
		play_part(s, r, part);
	set_point(r, ret);
	free_run(r);
	return rc == 0 && atomic_load(&s->has_failed) ? err_set(e, ERR_INTERNAL, "out of memory") : rc;
}

static bool is_as_good(const struct search *s, const struct tune *t, const struct tune_point *a,
                       const struct tune_point *than)
{
	double late = s->scene->config.late_ratio, limit = 1 + WORTH_A_NUMBER;
	return keeps(&a->out, late) >= keeps(&than->out, late) &&
	       !dominating_peer(t, &a->out) >= !dominating_peer(t, &than->out) &&
	       tune_loss(&a->out, late) <= limit * tune_loss(&than->out, late) &&
	       tune_loss(&a->in, late) <= limit * tune_loss(&than->in, late);
}

// Takes back what saves next to nothing: a patch with fewer changes is easier to judge.
static int simplify(struct search *s, const struct tune *t, struct tune_point *choice, struct err *e)
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

static int choose(struct search *s, struct tune *t, struct err *e)
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
	t->dominated_by = dominating_peer(t, &chosen->out);
	double was = tune_loss(&present.out, late);
	t->gain_chosen = was > 0 ? 1 - tune_loss(&chosen->out, late) / was : 0;
	return 0;
}

static enum tune_verdict verdict_of(const struct tune *t)
{
	double gain = fmin(t->gain_out, t->gain_chosen);
	if (t->chosen == t->present)
		return TUNE_NONE_BETTER;
	if (gain <= t->gap)
		return TUNE_UNCERTAIN;
	return gain < TUNE_GAIN_MIN ? TUNE_TOO_SMALL : TUNE_RECOMMENDED;
}

int tune_run(const struct tune_config *config, const struct backtest *scene, struct tune_space *space, struct tune *ret,
             struct err *e)
{
	memset(ret, 0, sizeof *ret);
	assert(!scene->config.open_loop && config->candidates <= TUNE_CANDIDATES_MAX);
	if (scene->demand.n < TUNE_PARTS)
		return err_set(e, ERR_INPUT, "%s: too short to be divided into %d parts", scene->file, TUNE_PARTS);
	int32_t max = space->policy->max_replicas;
	struct search s = {.config = config, .scene = scene, .space = space};
	s.loop = (struct closed_loop){.demand = &scene->demand,
	                              .world = &scene->config.world,
	                              .first = scene->first,
	                              .max = max < WORLD_REPLICAS_MAX ? max : WORLD_REPLICAS_MAX,
	                              .late_s = scene->config.wait_s};
	atomic_init(&s.has_failed, false);
	s.runs = calloc(config->candidates, sizeof(struct run *));
	int rc = s.runs ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
	if (rc == 0)
		rc = add_candidates(&s, ret, e) < 0 || play(&s, ret, e) < 0 || play_peers(&s, ret, e) < 0 ? -1 : 0;
	if (rc == 0) {
		validate(&s, ret);
		rc = choose(&s, ret, e);
	}
	if (rc == 0)
		ret->verdict = verdict_of(ret);
	for (size_t i = 0; i < s.n_runs; i++)
		free_run(s.runs[i]);
	free(s.runs);
	return rc;
}

void tune_done(struct tune *t)
{
	free(t->points);
	t->points = NULL;
	t->n_points = 0;
}
