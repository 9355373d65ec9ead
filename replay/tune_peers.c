// SPDX-License-Identifier: Apache-2.0
// The other autoscalers and the library policy that the result of tune is compared with.
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_decode.h"
#include "replay/backtest.h"
#include "replay/tune_search.h"

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
			rc = err_no_memory(e);
			break;
		}
		peer_init(&r->peer, settings[s->n_runs].kind, settings[s->n_runs].value, s->space->policy->min_replicas,
		          s->loop.max);
	}
	rc = rc == 0 ? tune_search_play(s, tune_search_rest, e) : rc;
	for (size_t i = 0; i < s->n_runs; i++) {
		struct tune_peer *p = &t->peers[i];
		peer_setting_label(&settings[i], p->name, sizeof p->name);
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

// ---- the library policy ----

// tune names it where the numbers of a policy cannot do what a peer does.

#define TEXT_MAX   4096
#define LATE_LEAST 0.01 // percent: the limits of objective.late
#define LATE_MOST  50.0
#define WAIT_LEAST 1000 // ms

// llm-demand with the objective and the start-up time of the search, and the bounds of the policy.
static void put_policy(const struct tune_search *s, struct buf *out)
{
	const struct policy *p = s->space->policy;
	const struct backtest_config *c = &s->scene->config;
	double late = 100 * c->late_ratio, wait_ms = 1000 * c->wait_s;
	double startup_s = 1;
	for (size_t i = 0; i < c->world.n_startups; i++)
		startup_s = fmax(startup_s, c->world.startups_s[i]);
	late = late < LATE_LEAST ? LATE_LEAST : late > LATE_MOST ? LATE_MOST : late;
	buf_printf(out,
	           "apiVersion: gpuscale.dev/v1alpha1\nkind: GPUAutoscaler\nmetadata: {name: llm-demand}\n"
	           "spec:\n  scaleTargetRef: {name: llm}\n  minReplicas: %d\n  maxReplicas: %d\n"
	           "  objective: {late: %.4g%%, wait: %.0fms, demand: demand, backlog: backlog}\n"
	           "  signals: [{name: demand, query: d}, {name: backlog, query: b}]\n",
	           p->min_replicas > 0 ? p->min_replicas : 1, p->max_replicas, late,
	           wait_ms < WAIT_LEAST ? WAIT_LEAST : wait_ms);
	buf_printf(out,
	           "  startup: {seconds: %.0f}\n"
	           "  behavior:\n"
	           "    scaleUp:\n"
	           "      stabilizationWindowSeconds: 0\n"
	           "      policies: [{type: Pods, value: 1000, periodSeconds: 15}]\n"
	           "    scaleDown:\n"
	           "      stabilizationWindowSeconds: 0\n"
	           "      policies: [{type: Percent, value: 100, periodSeconds: 15}]\n",
	           ceil(startup_s));
}

static int decode(const struct tune_search *s, struct arena *a, struct policy *ret, struct err *e)
{
	struct buf text;
	struct doc_file file;
	struct schema_errors errors;
	buf_init(&text, TEXT_MAX);
	put_policy(s, &text);
	schema_errors_init(&errors, "llm-demand");
	int rc = doc_parse_yaml(a, "llm-demand", buf_str(&text), text.len, &file, e);
	struct policy_document document = {0};
	if (rc == 0 && policy_decode(file.roots[0], &document, a, &errors) < 0)
		rc = err_set(e, ERR_INTERNAL, "llm-demand: %s: %s", errors.items[0].path, errors.items[0].message);
	*ret = document.policy;
	buf_done(&text);
	return rc;
}

int tune_library_play(struct tune_search *s, struct tune *t, struct err *e)
{
	static const char *const names[ORIGIN_SIMULATED] = {NULL}; // demand and backlog
	const struct backtest *b = s->scene;
	struct tune_trial *r = tune_trial_new(s);
	if (!r)
		return err_no_memory(e);
	int rc = decode(s, &r->arena, &r->policy, e);
	if (rc < 0) { // for example a wait beyond what an objective accepts: then there is nothing to name
		tune_trial_free(r);
		return 0;
	}
	rc = tune_trial_bind_names(r, &r->policy, b, names, e);
	for (size_t part = 0; rc == 0 && part < TUNE_PARTS; part++)
		tune_trial_play(s, r, part);
	if (rc == 0) {
		double late = b->config.late_ratio;
		t->has_library = true;
		t->library_in = tune_score_sum(r->parts, 0, TUNE_IN_PARTS);
		t->library_out = tune_score_sum(r->parts, TUNE_IN_PARTS, TUNE_PARTS);
		t->library_does = tune_late_percent(&t->library_out) <= 100 * late &&
		                  !tune_peers_dominating(t, &t->library_out, TUNE_IN_PARTS, TUNE_PARTS);
	}
	tune_trial_free(r);
	return rc == 0 && atomic_load(&s->has_failed) ? err_no_memory(e) : rc;
}
