// SPDX-License-Identifier: Apache-2.0
#include "replay/tune.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "policies/engine/policy.h"
#include "replay/backtest.h"
#include "replay/tune_search.h"

static const char *const verdict_names[] = {"Recommended", "NoneBetter", "TooSmall", "Uncertain"};
_Static_assert(sizeof verdict_names / sizeof *verdict_names == TUNE_VERDICT__COUNT, "one name per verdict");

const char *tune_verdict_name(enum tune_verdict v)
{
	return verdict_names[v];
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
	struct tune_search s = {.config = config, .scene = scene, .space = space};
	s.loop = (struct closed_loop){.demand = &scene->demand,
	                              .world = &scene->config.world,
	                              .first = scene->first,
	                              .max = max < WORLD_REPLICAS_MAX ? max : WORLD_REPLICAS_MAX,
	                              .late_s = scene->config.wait_s};
	atomic_init(&s.has_failed, false);
	s.runs = calloc(config->candidates, sizeof(struct tune_trial *));
	int rc = s.runs ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
	if (rc == 0)
		rc = tune_halving_fill(&s, ret, e) < 0 || tune_halving_play(&s, ret, e) < 0 ||
		                     tune_peers_play(&s, ret, e) < 0
		             ? -1
		             : 0;
	if (rc == 0) {
		tune_choice_validate(&s, ret);
		rc = tune_choose(&s, ret, e);
	}
	if (rc == 0)
		ret->verdict = verdict_of(ret);
	for (size_t i = 0; i < s.n_runs; i++)
		tune_trial_free(s.runs[i]);
	free(s.runs);
	return rc;
}

void tune_done(struct tune *t)
{
	free(t->points);
	t->points = NULL;
	t->n_points = 0;
}
