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

#define DECISIONS_MIN 20 // that a reaction of the policy takes at least, for the length of a part

static const char *const verdict_names[] = {"Recommended", "NoneBetter", "TooSmall",  "Uncertain",
                                            "TooShort",    "TooLate",    "Dominated", "BreaksTests"};
_Static_assert(sizeof verdict_names / sizeof *verdict_names == TUNE_VERDICT__COUNT, "one name per verdict");

const char *tune_verdict_name(enum tune_verdict v)
{
	return verdict_names[v];
}

// The reasons that make the others meaningless come first.
static enum tune_verdict verdict_of(const struct tune *t, double late_ratio)
{
	double gain = fmin(t->gain_out, t->gain_chosen);
	if (t->part_ms < t->needed_ms)
		return TUNE_TOO_SHORT;
	if (t->chosen == t->present)
		return TUNE_NONE_BETTER;
	if (t->dominated_by)
		return TUNE_DOMINATED;
	if (!t->keeps_objective || fmax(t->late_bound, t->late_stressed) > 100 * late_ratio)
		return TUNE_TOO_LATE;
	if (gain <= t->gap)
		return TUNE_UNCERTAIN;
	if (gain < TUNE_GAIN_MIN)
		return TUNE_TOO_SMALL;
	return t->is_failing ? TUNE_BREAKS_TESTS : TUNE_RECOMMENDED;
}

static int64_t longest(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

// TUNE_SPANS times the start-up and the longest window, cooldown or stabilization window of the policy.
static int64_t needed_part_ms(const struct tune_search *s)
{
	const struct policy *p = s->space->policy;
	const struct world_config *w = &s->scene->config.world;
	int64_t start_ms = 0, wait_ms = longest(p->cooldown.up_ms, p->cooldown.down_ms);
	for (size_t i = 0; i < w->n_startups; i++)
		start_ms = longest(start_ms, llround(1000 * w->startups_s[i]));
	wait_ms = longest(wait_ms, p->scale_up.stabilization_window_ms);
	wait_ms = longest(wait_ms, p->scale_down.stabilization_window_ms);
	for (size_t i = 0; i < p->n_signals; i++) {
		wait_ms = longest(wait_ms, p->signals[i].window.duration_ms);
		wait_ms = longest(wait_ms, longest(p->signals[i].sustain.up_ms, p->signals[i].sustain.down_ms));
	}
	if (p->panic.set)
		wait_ms = longest(wait_ms, p->panic.window_ms);
	return TUNE_SPANS * longest(start_ms + wait_ms, DECISIONS_MIN * p->interval_ms);
}

// The shortest part, without its gaps.
static int64_t shortest_part_ms(const struct demand *d)
{
	int64_t least_ms = INT64_MAX;
	for (size_t part = 0, i = 0; part < TUNE_PARTS; part++) {
		int64_t known_ms = 0;
		for (; i < d->n * (part + 1) / TUNE_PARTS; i++)
			known_ms += isnan(d->work[i]) ? 0 : d->step_ms;
		least_ms = known_ms < least_ms ? known_ms : least_ms;
	}
	return least_ms;
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
	int rc = s.runs ? 0 : err_no_memory(e);
	if (rc == 0)
		rc = tune_halving_fill(&s, ret, e) < 0 || tune_halving_play(&s, ret, e) < 0 ||
		                     tune_peers_play(&s, ret, e) < 0
		             ? -1
		             : 0;
	if (rc == 0)
		rc = tune_stress_play(&s, s.runs, s.n_runs, false, e);
	if (rc == 0) {
		tune_choice_validate(&s, ret);
		rc = tune_choose(&s, ret, e);
	}
	ret->part_ms = shortest_part_ms(&scene->demand);
	ret->needed_ms = needed_part_ms(&s);
	if (rc == 0)
		ret->verdict = verdict_of(ret, scene->config.late_ratio);
	if (rc == 0 && ret->dominated_by && !space->policy->objective.set)
		rc = tune_library_play(&s, ret, e);
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
