// SPDX-License-Identifier: Apache-2.0
// A trial of tune: one policy or peer that plays the recording part by part.
#include "replay/tune_search.h"

#include <math.h>
#include <stdlib.h>

#include "base/err.h"
#include "replay/backtest.h"
#include "replay/parallel.h"

#define CANDIDATE_ARENA_MAX (1024 * 1024)

void tune_trial_free(struct tune_trial *r)
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

struct tune_trial *tune_trial_new(struct tune_search *s)
{
	struct tune_trial *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	arena_init(&r->arena, CANDIDATE_ARENA_MAX);
	closed_loop_play_init(&r->play, &s->loop);
	return r;
}

int tune_trial_bind_names(struct tune_trial *r, const struct policy *policy, const struct backtest *b,
                          const char *const names[], struct err *e)
{
	r->candidate = calloc(1, sizeof *r->candidate);
	if (!r->candidate)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (policy_candidate_init(r->candidate, policy, b->recording, b->file, names, NULL, b->demand.start_ms, e) < 0)
		return -1;
	policy_candidate_restore(r->candidate, b->config.learnt);
	return 0;
}

int tune_trial_bind(struct tune_search *s, struct tune_trial *r, const struct policy *policy, struct err *e)
{
	return tune_trial_bind_names(r, policy, s->scene, s->scene->config.signals, e);
}

int tune_trial_decode(struct tune_search *s, struct tune_trial *r, bool *ret_refused, struct err *e)
{
	arena_reset(&r->arena);
	*ret_refused = tune_space_decode(s->space, r->values, &r->arena, &r->policy) < 0;
	return *ret_refused ? 0 : tune_trial_bind(s, r, &r->policy, e);
}

static size_t block_end(const struct tune_search *s, size_t block)
{
	return s->scene->demand.n * (block + 1) / (TUNE_PARTS * TUNE_BLOCKS);
}

static void add_block(struct tune_score *sum, const struct score *s)
{
	sum->replica_s += s->replica_s;
	sum->requests += s->requests;
	sum->late += s->late;
	sum->changes += s->changes;
	sum->n_blocks += s->requests > 0;
	sum->late_late += s->late * s->late;
	sum->late_requests += s->late * s->requests;
	sum->requests_requests += s->requests * s->requests;
}

void tune_trial_play(struct tune_search *s, struct tune_trial *r, size_t part)
{
	struct score score;
	struct candidate c = {peer_candidate_decide, &r->peer, 0};
	if (r->candidate)
		c = (struct candidate){policy_candidate_decide, r->candidate, r->candidate->policy->interval_ms};
	else
		c.interval_ms = peer_interval_ms(&r->peer, s->scene->demand.step_ms);
	r->parts[part] = (struct tune_score){0};
	for (size_t k = 0; k < TUNE_BLOCKS; k++) {
		if (closed_loop_play(&r->play, &c, block_end(s, part * TUNE_BLOCKS + k), &score) < 0)
			atomic_store(&s->has_failed, true);
		add_block(&r->parts[part], &score);
	}
}

void tune_search_rest(void *context, size_t i)
{
	struct tune_search *s = context;
	for (size_t part = s->part; part < TUNE_PARTS; part++)
		tune_trial_play(s, s->runs[i], part);
}

static void report_progress(void *context, size_t started)
{
	struct tune_search *s = context;
	double parts = s->part < TUNE_IN_PARTS ? 1.0 : (double)(TUNE_PARTS - s->part);
	if (s->config->on_progress)
		s->config->on_progress(s->config->context, fmin(1, (s->done + (double)started * parts) / s->all));
}

int tune_search_play(struct tune_search *s, void (*task)(void *context, size_t i), struct err *e)
{
	const struct parallel p = {task, report_progress, s};
	parallel_run(&p, s->n_runs, s->config->threads);
	return atomic_load(&s->has_failed) ? err_set(e, ERR_INTERNAL, "out of memory") : 0;
}
