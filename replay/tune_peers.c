// SPDX-License-Identifier: Apache-2.0
// The other autoscalers that the result of tune is compared with.
#include "replay/tune_search.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "policies/engine/policy.h"
#include "replay/backtest.h"

int tune_peers_play(struct tune_search *s, struct tune *t, struct err *e)
{
	size_t n, own = s->n_runs;
	const struct peer_setting *settings = peer_settings(&n);
	struct tune_trial *peers[TUNE_PEERS_MAX], **runs = s->runs;
	int rc = 0;
	assert(n <= TUNE_PEERS_MAX);
	s->runs = peers;
	s->part = 0;
	for (s->n_runs = 0; s->n_runs < n; s->n_runs++) {
		struct tune_trial *r = peers[s->n_runs] = tune_trial_new(s);
		if (!r) {
			rc = err_set(e, ERR_INTERNAL, "out of memory");
			break;
		}
		peer_init(&r->peer, settings[s->n_runs].kind, settings[s->n_runs].value, s->space->policy->min_replicas,
		          s->loop.max);
	}
	rc = rc == 0 ? tune_search_play(s, tune_search_rest, e) : rc;
	for (size_t i = 0; i < s->n_runs; i++) {
		struct tune_peer *p = &t->peers[i];
		enum peer_kind kind = settings[i].kind;
		snprintf(p->name, sizeof p->name, "%s %s %.1f", peer_name(kind), peer_setting_name(kind),
		         settings[i].value);
		memcpy(p->parts, peers[i]->parts, sizeof p->parts);
		p->in = tune_score_sum(peers[i]->parts, 0, TUNE_IN_PARTS);
		p->out = tune_score_sum(peers[i]->parts, TUNE_IN_PARTS, TUNE_PARTS);
		tune_trial_free(peers[i]);
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

// The cheapest of them.
const char *tune_peers_dominating(const struct tune *t, const struct tune_score *score, size_t from, size_t to)
{
	const char *name = NULL;
	double least = INFINITY;
	for (size_t i = 0; i < t->n_peers; i++) {
		const struct tune_score sum = tune_score_sum(t->peers[i].parts, from, to);
		if (dominates(&sum, score) && sum.replica_s < least) {
			least = sum.replica_s;
			name = t->peers[i].name;
		}
	}
	return name;
}
