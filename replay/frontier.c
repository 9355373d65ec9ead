// SPDX-License-Identifier: Apache-2.0
#include "replay/frontier.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "policies/engine/policy.h"
#include "replay/clairvoyant.h"
#include "replay/closed_loop.h"
#include "replay/parallel.h"
#include "replay/peers.h"

static const double objectives[] = {0.1, 0.3, 1, 3, 5, 10, 20};              // percent late, for policy and bound
static const double factors[] = {0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4}; // of the targets, without objective
static const double counts[] = {1, 1.25, 1.5, 2, 2.5, 3, 4, 6};              // fixed: times the mean demand

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])
_Static_assert(COUNT_OF(objectives) + 1 + COUNT_OF(factors) + COUNT_OF(counts) + COUNT_OF(objectives) + 16 <=
                       FRONTIER_POINTS_MAX,
               "all points fit");

struct runner {
	struct frontier *f;
	const struct policy *policy;
	struct closed_loop loop;
	atomic_bool has_failed; // no memory: what else can fail has been tried with the policy itself
};

// ---- the points ----

static struct frontier_point *add_point(struct frontier *f, enum backtest_kind kind, double setting)
{
	assert(f->n_points < FRONTIER_POINTS_MAX);
	struct frontier_point *p = &f->points[f->n_points++];
	p->kind = kind;
	p->setting = setting;
	return p;
}

static void add_objective(struct frontier *f, double late_percent, bool is_chosen)
{
	struct frontier_point *p = add_point(f, BACKTEST_POLICY, late_percent);
	p->is_chosen = is_chosen;
	snprintf(p->name, sizeof p->name, "objective %g%%", late_percent);
}

static void add_objectives(struct frontier *f, double own)
{
	bool has_own = false;
	for (size_t i = 0; i < COUNT_OF(objectives); i++) {
		bool is_own = fabs(own - objectives[i]) < 1e-9;
		if (!has_own && own < objectives[i] && !is_own)
			add_objective(f, own, true);
		has_own = has_own || is_own || own < objectives[i];
		add_objective(f, objectives[i], is_own);
	}
	if (!has_own)
		add_objective(f, own, true);
}

static bool has_target(const struct policy_signal *s)
{
	return (s->target.set && s->target.type != TARGET_REPLICAS) || s->watermarks.set;
}

static int add_factors(struct frontier *f, const struct policy *policy, struct err *e)
{
	bool has_any = false;
	for (size_t i = 0; i < policy->n_signals; i++)
		has_any = has_any || has_target(&policy->signals[i]);
	if (!has_any)
		return err_set(e, ERR_UNSUPPORTED,
		               "not supported: policy %s has neither an objective nor a target or watermarks, so "
		               "there is nothing to vary",
		               policy->name);
	for (size_t i = 0; i < COUNT_OF(factors); i++) {
		struct frontier_point *p = add_point(f, BACKTEST_POLICY, factors[i]);
		p->is_chosen = factors[i] == 1;
		snprintf(p->name, sizeof p->name, "targets x %g", factors[i]);
	}
	return 0;
}

static void add_references(struct frontier *f, int32_t max)
{
	size_t n;
	const struct peer_setting *settings = peer_settings(&n);
	for (size_t i = 0; i < n; i++) {
		struct frontier_point *p = add_point(f, BACKTEST_PEER, settings[i].value);
		snprintf(p->name, sizeof p->name, "%s %s %.1f", peer_name(settings[i].kind),
		         peer_setting_name(settings[i].kind), settings[i].value);
	}
	double mean = f->scene.demand.mean / world_capacity_ratio(&f->scene.config.world);
	for (size_t i = 0, last = 0; i < COUNT_OF(counts); i++) {
		double count = fmin(fmax(ceil(counts[i] * mean), 1), max);
		if ((size_t)count == last)
			continue;
		last = (size_t)count;
		snprintf(add_point(f, BACKTEST_FIXED, count)->name, BACKTEST_NAME_BYTES, "fixed %g", count);
	}
	for (size_t i = 0; i < COUNT_OF(objectives); i++)
		snprintf(add_point(f, BACKTEST_BOUND, objectives[i])->name, BACKTEST_NAME_BYTES,
		         "clairvoyant at late <= %g%%", objectives[i]);
}

// ---- playing them ----

// The policy at a point; `signals` has room for its signals.
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

static int play_policy(const struct runner *r, struct frontier_point *point)
{
	const struct backtest *b = &r->f->scene;
	struct policy_signal signals[POLICY_SIGNALS_MAX];
	struct policy policy = policy_at(r->policy, point->setting, signals);
	struct policy_candidate *c = malloc(sizeof *c);
	struct err e;
	if (!c)
		return -1;
	int rc = policy_candidate_init(c, &policy, b->recording, b->file, b->config.signals, NULL, b->demand.start_ms,
	                               &e);
	const struct candidate candidate = {policy_candidate_decide, c, policy.interval_ms};
	if (rc == 0)
		policy_candidate_restore(c, b->config.learnt);
	rc = rc == 0 ? closed_loop_run(&r->loop, &candidate, &point->score) : -1;
	policy_candidate_done(c);
	free(c);
	return rc;
}

static int play_peer(const struct runner *r, enum peer_kind kind, struct frontier_point *point)
{
	struct peer peer;
	peer_init(&peer, kind, point->setting, r->policy->min_replicas, r->loop.max);
	const struct candidate c = {peer_candidate_decide, &peer, peer_interval_ms(&peer, r->f->scene.demand.step_ms)};
	return closed_loop_run(&r->loop, &c, &point->score);
}

static enum peer_kind kind_of(const struct frontier *f, size_t i)
{
	size_t n, first = 0;
	const struct peer_setting *settings = peer_settings(&n);
	while (f->points[first].kind != BACKTEST_PEER)
		first++;
	return settings[i - first].kind;
}

static void play_point(void *context, size_t i)
{
	struct runner *r = context;
	struct frontier_point *point = &r->f->points[i];
	int rc = 0;
	switch (point->kind) {
	case BACKTEST_POLICY:
		rc = play_policy(r, point);
		break;
	case BACKTEST_PEER:
		rc = play_peer(r, kind_of(r->f, i), point);
		break;
	case BACKTEST_FIXED:
		rc = play_peer(r, PEER_FIXED, point);
		break;
	case BACKTEST_BOUND:
		rc = clairvoyant_run(&r->loop, r->policy->min_replicas, r->loop.max, point->setting / 100, NULL,
		                     &point->score, &(bool){false});
		break;
	case BACKTEST_ACTUAL:
	case BACKTEST__COUNT:
		break;
	}
	if (rc < 0)
		atomic_store(&r->has_failed, true);
}

// A bound is never worse than another point.
static void complete_bounds(struct frontier *f)
{
	for (size_t i = 0; i < f->n_points; i++) {
		struct frontier_point *bound = &f->points[i];
		if (bound->kind != BACKTEST_BOUND)
			continue;
		for (size_t k = 0; k < f->n_points; k++)
			if (score_is_better(&f->points[k].score, &bound->score, bound->setting))
				bound->score = f->points[k].score;
		bound->is_reached = score_keeps(&bound->score, bound->setting);
	}
}

int frontier_run(const struct backtest_config *config, const struct policy *policy, const struct recording *recording,
                 const char *file, unsigned threads, struct frontier *ret, struct err *e)
{
	struct backtest_config own = *config;
	memset(ret, 0, sizeof *ret);
	assert(!config->open_loop);
	own.policy_only = true;
	if (backtest_run(&own, policy, recording, file, &ret->scene, e) < 0)
		return -1;
	ret->points = calloc(FRONTIER_POINTS_MAX, sizeof *ret->points);
	if (!ret->points)
		return err_set(e, ERR_INTERNAL, "out of memory");
	int32_t max = policy->max_replicas < WORLD_REPLICAS_MAX ? policy->max_replicas : WORLD_REPLICAS_MAX;
	if (policy->objective.set)
		add_objectives(ret, 100 * policy->objective.late_ratio);
	else if (add_factors(ret, policy, e) < 0)
		return -1;
	add_references(ret, max);
	struct runner r = {.f = ret, .policy = policy};
	r.loop = (struct closed_loop){.demand = &ret->scene.demand,
	                              .world = &ret->scene.config.world,
	                              .first = ret->scene.first,
	                              .max = max,
	                              .late_s = ret->scene.config.wait_s};
	atomic_init(&r.has_failed, false);
	const struct parallel p = {play_point, NULL, &r};
	parallel_run(&p, ret->n_points, threads);
	complete_bounds(ret);
	return atomic_load(&r.has_failed) ? err_set(e, ERR_INTERNAL, "out of memory") : 0;
}

void frontier_done(struct frontier *f)
{
	backtest_done(&f->scene);
	free(f->points);
	f->points = NULL;
	f->n_points = 0;
}
