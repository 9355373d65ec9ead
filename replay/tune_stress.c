// SPDX-License-Identifier: Apache-2.0
// Plays candidates of tune in a harder world: a tenth more demand, and replicas that take a quarter longer to start.
// The cheapest candidates are at the edge of the objective, and some are there by luck. Those that keep the objective
// in the harder world as well keep it on other demand of the same kind.
#include "replay/tune_search.h"

#include <stdlib.h>

#include "base/err.h"
#include "replay/backtest.h"
#include "replay/demand.h"

#define MORE_DEMAND    1.1
#define LONGER_STARTUP 1.25

// The search in the harder world, with trials of its own.
struct stress {
	struct tune_search search;
	struct tune_config config;
	struct demand demand;
	struct world_config world;
};

static void stress_done(struct stress *h)
{
	for (size_t i = 0; i < h->search.n_runs; i++)
		tune_trial_free(h->search.runs[i]);
	free(h->search.runs);
	free(h->demand.work);
}

static int stress_init(struct stress *h, struct tune_search *s, struct tune_trial *const runs[], size_t n,
                       struct err *e)
{
	const struct backtest *b = s->scene;
	*h = (struct stress){.config = *s->config, .demand = b->demand, .world = b->config.world};
	h->config.on_progress = NULL;
	h->search = (struct tune_search){.config = &h->config, .scene = b, .space = s->space, .loop = s->loop};
	h->search.loop.demand = &h->demand;
	h->search.loop.world = &h->world;
	atomic_init(&h->search.has_failed, false);
	h->demand.work = malloc(b->demand.n * sizeof *h->demand.work);
	h->search.runs = calloc(n, sizeof(struct tune_trial *));
	if (!h->demand.work || !h->search.runs)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < b->demand.n; i++)
		h->demand.work[i] = b->demand.work[i] * MORE_DEMAND;
	for (size_t i = 0; i < h->world.n_startups; i++)
		h->world.startups_s[i] *= LONGER_STARTUP;
	for (size_t i = 0; i < n; i++) {
		struct tune_trial *r = h->search.runs[i] = tune_trial_new(&h->search);
		if (!r)
			return err_set(e, ERR_INTERNAL, "out of memory");
		h->search.n_runs++;
		if (tune_trial_bind(&h->search, r, runs[i]->candidate->policy, e) < 0)
			return -1;
	}
	return 0;
}

static void play_first_half(void *context, size_t i)
{
	struct tune_search *s = context;
	for (size_t part = 0; part < TUNE_IN_PARTS; part++)
		tune_trial_play(s, s->runs[i], part);
}

int tune_stress_play(struct tune_search *s, struct tune_trial *const runs[], size_t n, bool whole, struct err *e)
{
	struct stress h;
	int rc = stress_init(&h, s, runs, n, e);
	if (rc == 0)
		rc = tune_search_play(&h.search, whole ? tune_search_rest : play_first_half, e);
	for (size_t i = 0; i < n && rc == 0; i++)
		runs[i]->stressed = tune_score_sum(h.search.runs[i]->parts, 0, whole ? TUNE_PARTS : TUNE_IN_PARTS);
	stress_done(&h);
	return rc;
}
