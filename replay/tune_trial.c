// SPDX-License-Identifier: Apache-2.0
// The trials of tune: a policy, another autoscaler or the library policy that plays the recording part by part, and the
// sums and losses of the parts.
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_decode.h"
#include "replay/backtest.h"
#include "replay/parallel.h"
#include "replay/recording.h"
#include "replay/tune_search.h"

// ---- scores ----

#define ERRORS     2     // standard errors that the bound of the lateness adds
#define LATE_LEAST 0.001 // least lateness, so that the loss is finite for an objective of 0 %

double tune_late_percent(const struct tune_score *s)
{
	return s->requests > 0 ? 100 * s->late / s->requests : 0;
}

// The variance of the ratio of two sums over n blocks: n / (n - 1) times the squared residuals, over the squared sum.
double tune_late_bound_percent(const struct tune_score *s)
{
	if (!(s->requests > 0) || s->n_blocks < 2)
		return tune_late_percent(s);
	double r = s->late / s->requests, n = s->n_blocks;
	double residuals = s->late_late - 2 * r * s->late_requests + r * r * s->requests_requests;
	return 100 * fmin(1, r + ERRORS * sqrt(n / (n - 1) * fmax(0, residuals)) / s->requests);
}

static double loss_at(double replica_s, double late, double late_ratio)
{
	double above = late > late_ratio ? fmax(late, LATE_LEAST) / fmax(late_ratio, LATE_LEAST) : 1;
	return replica_s * fmax(above, 1);
}

double tune_loss(const struct tune_score *s, double late_ratio)
{
	return loss_at(s->replica_s, tune_late_percent(s) / 100, late_ratio);
}

static void add(struct tune_score *sum, const struct tune_score *s)
{
	sum->replica_s += s->replica_s;
	sum->requests += s->requests;
	sum->late += s->late;
	sum->changes += s->changes;
	sum->n_blocks += s->n_blocks;
	sum->late_late += s->late_late;
	sum->late_requests += s->late_requests;
	sum->requests_requests += s->requests_requests;
}

struct tune_score tune_score_sum(const struct tune_score parts[TUNE_PARTS], size_t from, size_t to)
{
	struct tune_score sum = {0};
	for (size_t i = from; i < to; i++)
		add(&sum, &parts[i]);
	return sum;
}

double tune_score_loss(const struct tune_score parts[TUNE_PARTS], size_t n, double late_ratio)
{
	double loss = 0;
	for (size_t i = 0; i < n; i++)
		loss += tune_loss(&parts[i], late_ratio);
	const struct tune_score sum = tune_score_sum(parts, 0, n);
	return fmax(loss, loss_at(sum.replica_s, tune_late_bound_percent(&sum) / 100, late_ratio));
}

// ---- trials ----

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

int tune_trial_bind(struct tune_search *s, struct tune_trial *r, const struct policy *policy, const char *const names[],
                    struct err *e)
{
	const struct backtest *b = s->scene;
	r->candidate = calloc(1, sizeof *r->candidate);
	if (!r->candidate)
		return err_no_memory(e);
	const struct candidate_input input = {
	        .recording = b->recording, .file = b->file, .names = names, .start_ms = b->demand.start_ms};
	if (policy_candidate_init(r->candidate, policy, &input, e) < 0)
		return -1;
	policy_candidate_restore(r->candidate, b->config.learnt);
	return 0;
}

int tune_trial_decode(struct tune_search *s, struct tune_trial *r, bool *ret_refused, struct err *e)
{
	arena_reset(&r->arena);
	*ret_refused = tune_space_decode(s->space, r->values, &r->arena, &r->policy) < 0;
	return *ret_refused ? 0 : tune_trial_bind(s, r, &r->policy, s->scene->config.signals, e);
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

static void play_part(struct tune_search *s, struct tune_trial *r, size_t part)
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

void tune_trial_play(struct tune_search *s, struct tune_trial *r, size_t from, size_t to)
{
	for (size_t part = from; part < to; part++)
		play_part(s, r, part);
}

void tune_search_rest(void *context, size_t i)
{
	struct tune_search *s = context;
	tune_trial_play(s, s->runs[i], s->part, TUNE_PARTS);
}

void tune_search_past(void *context, size_t i)
{
	struct tune_search *s = context;
	tune_trial_play(s, s->runs[i], 0, s->part);
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
	return atomic_load(&s->has_failed) ? err_no_memory(e) : 0;
}

// ---- a harder world ----

// Plays candidates of tune in a harder world: a tenth more demand, and replicas that take a quarter longer to start.
// The cheapest candidates are at the edge of the objective, and some are there by luck. Those that keep the objective
// in the harder world as well keep it on other demand of the same kind.

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
		return err_no_memory(e);
	for (size_t i = 0; i < b->demand.n; i++)
		h->demand.work[i] = b->demand.work[i] * MORE_DEMAND;
	for (size_t i = 0; i < h->world.n_startups; i++)
		h->world.startups_s[i] *= LONGER_STARTUP;
	for (size_t i = 0; i < n; i++) {
		struct tune_trial *r = h->search.runs[i] = tune_trial_new(&h->search);
		if (!r)
			return err_no_memory(e);
		h->search.n_runs++;
		if (tune_trial_bind(&h->search, r, runs[i]->candidate->policy, b->config.signals, e) < 0)
			return -1;
	}
	return 0;
}

int tune_stress_play(struct tune_search *s, struct tune_trial *const runs[], size_t n, bool whole, struct err *e)
{
	struct stress h;
	int rc = stress_init(&h, s, runs, n, e);
	h.search.part = whole ? TUNE_PARTS : TUNE_IN_PARTS;
	if (rc == 0)
		rc = tune_search_play(&h.search, tune_search_past, e);
	for (size_t i = 0; i < n && rc == 0; i++)
		runs[i]->stressed = tune_score_sum(h.search.runs[i]->parts, 0, h.search.part);
	stress_done(&h);
	return rc;
}

// ---- peers ----

int tune_peers_play(struct tune_search *s, struct tune *t, struct err *e)
{
	size_t n = peer_n_settings, own = s->n_runs;
	const struct peer_setting *settings = peer_settings;
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
#define LATE_LOW   0.01 // percent: the limits of objective.late
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
	late = late < LATE_LOW ? LATE_LOW : late > LATE_MOST ? LATE_MOST : late;
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
	rc = tune_trial_bind(s, r, &r->policy, names, e);
	if (rc == 0) {
		tune_trial_play(s, r, 0, TUNE_PARTS);
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
