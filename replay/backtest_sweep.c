// SPDX-License-Identifier: Apache-2.0
#include "replay/backtest_sweep.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "policies/engine/policy.h"
#include "replay/backtest.h"
#include "replay/clairvoyant.h"
#include "replay/closed_loop.h"
#include "replay/parallel.h"
#include "replay/peers.h"

static const double objectives[] = {0.1, 0.3, 1, 3, 5, 10, 20};              // percent late, for policy and bound
static const double factors[] = {0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4}; // times the targets, no objective
static const double counts[] = {1, 1.25, 1.5, 2, 2.5, 3, 4, 6};              // fixed: times the mean demand

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
_Static_assert(1 + COUNT_OF(objectives) + 1 + COUNT_OF(factors) + COUNT_OF(counts) + COUNT_OF(objectives) + 16 <=
                       BACKTEST_ROWS_MAX,
               "all rows fit");

struct sweep {
	struct backtest *b;
	const struct policy *policy;
	const struct closed_loop *loop;
	size_t first;                       // row of the sweep
	double settings[BACKTEST_ROWS_MAX]; // setting of each row: percent late, factor, peer's setting or replicas
	double present;                     // setting of the policy as it is
	atomic_bool has_failed;             // no memory: check_policy() finds what else can fail
};

// ---- the rows ----

static struct backtest_row *add_row(struct sweep *s, enum backtest_kind kind, double setting)
{
	struct backtest *b = s->b;
	assert(b->n_rows < BACKTEST_ROWS_MAX);
	s->settings[b->n_rows] = setting;
	struct backtest_row *row = &b->rows[b->n_rows++];
	row->kind = kind;
	return row;
}

static void add_policy(struct sweep *s, double setting)
{
	snprintf(add_row(s, BACKTEST_POLICY, setting)->name, BACKTEST_NAME_BYTES,
	         s->policy->objective.set ? "objective %g%%%s" : "targets x %g%s", setting,
	         setting == s->present ? " (present)" : "");
}

// The objective of the policy is a row of its own, in its place.
static void add_objectives(struct sweep *s)
{
	double own = s->present, last = -1;
	for (size_t i = 0; i < COUNT_OF(objectives); i++) {
		if (fabs(own - objectives[i]) < 1e-9)
			own = s->present = objectives[i];
		else if (own > last && own < objectives[i])
			add_policy(s, own);
		add_policy(s, last = objectives[i]);
	}
	if (own > last)
		add_policy(s, own);
}

static bool has_target(const struct policy_signal *s)
{
	return (s->target.set && s->target.type != TARGET_REPLICAS) || s->watermarks.set;
}

static int add_factors(struct sweep *s, struct err *e)
{
	bool has_any = false;
	for (size_t i = 0; i < s->policy->n_signals; i++)
		has_any = has_any || has_target(&s->policy->signals[i]);
	if (!has_any)
		return err_set(e, ERR_UNSUPPORTED,
		               "not supported: policy %s has neither an objective nor a target or watermarks, so "
		               "there is nothing to vary",
		               s->policy->name);
	for (size_t i = 0; i < COUNT_OF(factors); i++)
		add_policy(s, factors[i]);
	return 0;
}

static void add_references(struct sweep *s)
{
	size_t n;
	const struct peer_setting *settings = peer_settings(&n);
	for (size_t i = 0; i < n; i++) {
		struct backtest_row *row = add_row(s, BACKTEST_PEER, settings[i].value);
		row->peer = settings[i].kind;
		snprintf(row->name, sizeof row->name, "%s %s %.1f", peer_name(row->peer), peer_setting_name(row->peer),
		         settings[i].value);
	}
	double mean = s->b->demand.mean / world_capacity_ratio(&s->b->config.world), last = 0;
	for (size_t i = 0; i < COUNT_OF(counts); i++) {
		double count = fmin(fmax(ceil(counts[i] * mean), 1), s->loop->max);
		if (count == last)
			continue;
		last = count;
		snprintf(add_row(s, BACKTEST_FIXED, count)->name, BACKTEST_NAME_BYTES, "fixed %g", count);
	}
	for (size_t i = 0; i < COUNT_OF(objectives); i++)
		snprintf(add_row(s, BACKTEST_BOUND, objectives[i])->name, BACKTEST_NAME_BYTES,
		         "clairvoyant at late <= %g%%", objectives[i]);
}

// ---- playing them ----

// The policy at a setting; `signals` has room for its signals.
static struct policy policy_at(const struct policy *policy, double setting, struct policy_signal *signals)
{
	struct policy p = *policy;
	if (p.objective.set) {
		p.objective.late_ratio = setting / 100;
		return p;
	}
	for (size_t i = 0; i < p.n_signals; i++) {
		signals[i] = policy->signals[i];
		signals[i].target.value *= setting;
		signals[i].watermarks.high *= setting;
		signals[i].watermarks.low *= setting;
	}
	p.signals = signals;
	return p;
}

static int play_policy(const struct sweep *s, double setting, struct score *ret)
{
	struct backtest *b = s->b;
	struct policy_signal signals[POLICY_SIGNALS_MAX];
	struct policy policy = policy_at(s->policy, setting, signals);
	struct policy_candidate *c = malloc(sizeof *c);
	struct err e;
	if (!c)
		return -1;
	int rc = policy_candidate_init(c, &policy, b->recording, b->file, b->config.signals, NULL, b->demand.start_ms,
	                               &e);
	const struct candidate candidate = {policy_candidate_decide, c, policy.interval_ms};
	if (rc == 0)
		policy_candidate_restore(c, b->config.learnt);
	rc = rc == 0 ? closed_loop_run(s->loop, &candidate, ret) : -1;
	policy_candidate_done(c);
	free(c);
	return rc;
}

static int play_peer(const struct sweep *s, enum peer_kind kind, double setting, struct score *ret)
{
	struct peer peer;
	peer_init(&peer, kind, setting, s->policy->min_replicas, s->loop->max);
	const struct candidate c = {peer_candidate_decide, &peer, peer_interval_ms(&peer, s->b->demand.step_ms)};
	return closed_loop_run(s->loop, &c, ret);
}

static void play_row(void *context, size_t i)
{
	struct sweep *s = context;
	struct backtest_row *row = &s->b->rows[s->first + i];
	double setting = s->settings[s->first + i];
	int rc = row->kind == BACKTEST_POLICY  ? play_policy(s, setting, &row->score)
	         : row->kind == BACKTEST_PEER  ? play_peer(s, row->peer, setting, &row->score)
	         : row->kind == BACKTEST_FIXED ? play_peer(s, PEER_FIXED, setting, &row->score)
	                                       : clairvoyant_run(s->loop, s->policy->min_replicas, s->loop->max,
	                                                         setting / 100, NULL, &row->score, &(bool){false});
	if (rc < 0)
		atomic_store(&s->has_failed, true);
}

// A bound is never worse than another row.
static void complete_bound(const struct sweep *s, struct backtest_row *bound, double late_percent)
{
	for (size_t k = s->first; k < s->b->n_rows; k++)
		if (score_is_better(&s->b->rows[k].score, &bound->score, late_percent))
			bound->score = s->b->rows[k].score;
	if (!score_keeps(&bound->score, late_percent))
		strncat(bound->name, " (not reached)", sizeof bound->name - strlen(bound->name) - 1);
}

// Reports what makes every row of the policy fail, and counts its recorded signals.
static int check_policy(struct backtest *b, const struct policy *policy, struct err *e)
{
	struct policy_candidate p;
	int rc = policy_candidate_init(&p, policy, b->recording, b->file, b->config.signals, NULL, b->demand.start_ms,
	                               e);
	for (size_t i = 0; rc == 0 && i < policy->n_signals; i++)
		b->n_recorded_signals += p.origins[i] == ORIGIN_COLUMN;
	policy_candidate_done(&p);
	return rc;
}

int backtest_sweep_run(struct backtest *b, const struct policy *policy, const struct closed_loop *loop, struct err *e)
{
	struct sweep s = {.b = b, .policy = policy, .loop = loop, .first = b->n_rows};
	s.present = policy->objective.set ? 100 * policy->objective.late_ratio : 1;
	if (check_policy(b, policy, e) < 0)
		return -1;
	if (policy->objective.set)
		add_objectives(&s);
	else if (add_factors(&s, e) < 0)
		return -1;
	add_references(&s);
	atomic_init(&s.has_failed, false);
	const struct parallel p = {play_row, NULL, &s};
	parallel_run(&p, b->n_rows - s.first, b->config.sweep_threads);
	for (size_t i = s.first; i < b->n_rows; i++)
		if (b->rows[i].kind == BACKTEST_BOUND)
			complete_bound(&s, &b->rows[i], s.settings[i]);
	return atomic_load(&s.has_failed) ? err_no_memory(e) : 0;
}
