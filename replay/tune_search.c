// SPDX-License-Identifier: Apache-2.0
// The trials of tune: a policy, another autoscaler or the library policy that plays the recording part by part, the
// sums and losses of the parts, and successive halving: the candidates are drawn, and the worse ones are dropped after
// each part.
#include "replay/tune_search.h"

#include <math.h>

#include "base/base.h"
#include "base/schema/doc.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"
#include "replay/backtest.h"
#include "replay/parallel.h"
#include "replay/recording.h"

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
	world_done(&r->play.world);
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
	r->play.loop = &s->loop;
	world_init(&r->play.world, s->loop.world, s->loop.first);
	return r;
}

// Makes `policy`, which must outlive the trial, its policy; `names` are those of the simulated signals.
static int bind(struct tune_search *s, struct tune_trial *r, const struct policy *policy, const char *const names[],
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
	return *ret_refused ? 0 : bind(s, r, &r->policy, s->scene->config.signals, e);
}

static void add_block(struct tune_score *sum, const struct score *s)
{
	double late = s->late, requests = s->requests;
	const struct tune_score block = {.replica_s = s->replica_s,
	                                 .requests = requests,
	                                 .late = late,
	                                 .changes = s->changes,
	                                 .n_blocks = requests > 0,
	                                 .late_late = late * late,
	                                 .late_requests = late * requests,
	                                 .requests_requests = requests * requests};
	add(sum, &block);
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
		size_t end = s->scene->demand.n * (part * TUNE_BLOCKS + k + 1) / (TUNE_PARTS * TUNE_BLOCKS);
		if (closed_loop_play(&r->play, &c, end, &score) < 0)
			atomic_store(&s->has_failed, true);
		add_block(&r->parts[part], &score);
	}
}

void tune_trial_play(struct tune_search *s, struct tune_trial *r, size_t from, size_t to)
{
	for (size_t part = from; part < to; part++)
		play_part(s, r, part);
}

static void play_run(void *context, size_t i)
{
	struct tune_search *s = context;
	tune_trial_play(s, s->runs[i], s->from, s->to);
}

static void report_progress(void *context, size_t started)
{
	struct tune_search *s = context;
	double parts = s->part < TUNE_IN_PARTS ? 1.0 : (double)(TUNE_PARTS - s->part);
	if (s->config->on_progress)
		s->config->on_progress(s->config->context, fmin(1, (s->done + (double)started * parts) / s->all));
}

// Plays the parts from `from` to before `to` with each of s->runs, on the threads of the configuration.
static int play_runs(struct tune_search *s, size_t from, size_t to, struct err *e)
{
	s->from = from;
	s->to = to;
	parallel_run(s->n_runs, s->config->threads, play_run, report_progress, s);
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
		if (bind(&h->search, r, runs[i]->candidate->policy, b->config.signals, e) < 0)
			return -1;
	}
	return 0;
}

int tune_stress_play(struct tune_search *s, struct tune_trial *const runs[], size_t n, bool whole, struct err *e)
{
	struct stress h;
	size_t end = whole ? TUNE_PARTS : TUNE_IN_PARTS;
	int rc = stress_init(&h, s, runs, n, e);
	if (rc == 0)
		rc = play_runs(&h.search, 0, end, e);
	for (size_t i = 0; i < n && rc == 0; i++)
		runs[i]->stressed = tune_score_sum(h.search.runs[i]->parts, 0, end);
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
	rc = rc == 0 ? play_runs(s, 0, TUNE_PARTS, e) : rc;
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
	struct buf text = BUF(TEXT_MAX);
	struct doc_file file;
	struct schema_errors errors;
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
	rc = bind(s, r, &r->policy, names, e);
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

// ---- ranges ----

// The ranges of thresholds that make sense for what their signals measure. A policy whose threshold is far off can then
// reach good numbers, which the range around the present value does not contain.

struct range {
	double low, high; // 0: unknown
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

// The positive values of a column in the first half: from their median to the largest one.
static struct range column_range(const struct recording *r, int column)
{
	struct range range = {0, 0};
	size_t n = 0, rows = r->n_rows / 2;
	double *values = rows > 0 ? calloc(rows, sizeof *values) : NULL;
	for (size_t i = 0; i < rows && values; i++) {
		double v = recording_value(r, i, column);
		if (isfinite(v) && v > 0)
			values[n++] = v;
	}
	if (n > 0) {
		qsort(values, n, sizeof *values, by_value);
		range = (struct range){values[n / 2], values[n - 1]};
	}
	free(values);
	return range;
}

// A target of type AverageValue asks for value / target replicas; a Value and a watermark are compared with the value.
// A column that is compared is left alone: it does not react to the replicas, so a threshold far from the present one
// would be tuned on values that no replicas would cause.
static struct range range_of(const struct tune_search *s, const struct policy_candidate *c, size_t i)
{
	const struct policy *p = c->policy;
	const struct policy_target *t = &p->signals[i].target;
	double ratio = world_capacity_ratio(&s->scene->config.world);
	bool is_average = t->set && t->type == TARGET_AVERAGE_VALUE, is_level = !t->set || t->type == TARGET_VALUE;
	const struct signal_binding *b = &c->bindings[i];
	if (b->origin == ORIGIN_UTILIZATION && is_level)
		return (struct range){0.1, 1};
	if (b->origin == ORIGIN_DEMAND && is_average) // demand of a replica, which serves `ratio`
		return (struct range){0.1 * ratio, 2 * ratio};
	if (b->origin == ORIGIN_BACKLOG && is_average) // replica-seconds of a replica, which serves `ratio` in a second
		return (struct range){ratio * s->scene->config.wait_s / 10, 10 * ratio * s->scene->config.wait_s};
	if (b->origin == ORIGIN_COLUMN && is_average) {
		struct range column = column_range(s->scene->recording, b->column);
		return (struct range){column.low / p->max_replicas, column.high};
	}
	return (struct range){0, 0};
}

static void tune_ranges_widen(struct tune_search *s)
{
	const struct policy_candidate *c = s->runs[0]->candidate;
	for (size_t i = 0; i < c->policy->n_signals; i++) {
		struct range r = range_of(s, c, i);
		if (c->policy->signals[i].target.set || c->policy->signals[i].watermarks.set)
			tune_space_widen(s->space, i, r.low, r.high);
	}
}

#define DRAWS           32 // tries to draw numbers that the rules between fields accept
#define KEEP_DIVISOR    3  // one in so many candidates stays after a rung
#define KEEP_MIN        48 // but at least so many
#define REFINED_DIVISOR 6  // this part of the candidates vary the best of the others, after each part in sample
#define REFINED_PARENTS 12
#define REFINED_LINE    12  // at most this many of them move all thresholds of the best one together
#define REFINED_CLOSER  0.5 // after each part, new candidates are nearer to their parents
#define MARGIN_STEPS    8
#define MARGIN_STEP     1.12

// ---- candidates ----

// Added after each part in sample.
static size_t n_refined(const struct tune_search *s)
{
	return s->config->candidates / REFINED_DIVISOR;
}

// What a new candidate is near; NULL for one that is drawn.
struct origin {
	const struct tune_trial *parent;
	double reach; // how near
	double share; // along the line through the thresholds, -1 .. 1; NaN: any numbers vary
};

// Appends candidate `index` to s->runs.
static int add_candidate(struct tune_search *s, struct tune *t, size_t index, const struct origin *origin,
                         struct err *e)
{
	bool is_refused = true;
	struct tune_trial *r = tune_trial_new(s);
	if (!r)
		return err_no_memory(e);
	r->index = index;
	s->runs[s->n_runs++] = r;
	for (uint64_t k = 0; k < DRAWS && is_refused && index > 0; k++) {
		uint64_t seed = s->config->seed * DRAWS + k;
		if (origin && k == 0 && !isnan(origin->share))
			tune_space_move(s->space, origin->parent->values, origin->share, origin->reach, r->values);
		else if (origin)
			tune_space_vary(s->space, seed, index, origin->parent->values, origin->reach, r->values);
		else
			tune_space_draw(s->space, seed, index, r->values);
		if (tune_trial_decode(s, r, &is_refused, e) < 0)
			return -1;
	}
	if (index == 0) {
		tune_space_draw(s->space, 0, 0, r->values);
		return bind(s, r, s->space->policy, s->scene->config.signals, e);
	}
	if (is_refused) {
		tune_trial_free(r);
		s->n_runs--;
	}
	t->n_played += !is_refused;
	return 0;
}

static int fill(struct tune_search *s, struct tune *t, struct err *e)
{
	t->n_played = 1;
	for (size_t i = 0; i < s->config->candidates - TUNE_IN_PARTS * n_refined(s); i++) {
		if (add_candidate(s, t, i, NULL, e) < 0)
			return -1;
		if (i == 0)
			tune_ranges_widen(s);
	}
	return 0;
}

struct ranked {
	struct tune_trial *run;
	struct tune_score sum;
	double loss;
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
			best->run->stays = true;
	}
}

// Marks, of rows in the order of cost, those of the next Pareto layers until `quota` stay.
static void keep_layers(struct ranked *rows, size_t n, size_t quota)
{
	size_t stay = 0;
	bool was_added = true;
	for (size_t i = 0; i < n; i++)
		stay += rows[i].run->stays;
	while (stay < quota && was_added) {
		double least = INFINITY;
		was_added = false;
		for (size_t i = 0; i < n && stay < quota; i++) {
			if (rows[i].run->stays || !(rows[i].sum.late < least))
				continue;
			least = rows[i].sum.late;
			rows[i].run->stays = was_added = true;
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
static int drop_worse(struct tune_search *s, struct err *e)
{
	size_t n = s->n_runs, quota = quota_of(n);
	if (n <= quota)
		return 0;
	struct ranked *rows = calloc(n, sizeof *rows);
	if (!rows)
		return err_no_memory(e);
	for (size_t i = 0; i < n; i++) {
		rows[i].run = s->runs[i];
		rows[i].sum = tune_score_sum(s->runs[i]->parts, 0, s->part);
		rows[i].loss = tune_score_loss(s->runs[i]->parts, s->part, s->scene->config.late_ratio);
		rows[i].run->stays = s->runs[i]->index == 0;
	}
	qsort(rows, n, sizeof *rows, by_loss);
	for (size_t i = 0; i < quota / 2; i++)
		rows[i].run->stays = true;
	double least = rows[0].sum.replica_s;
	qsort(rows, n, sizeof *rows, by_cost);
	keep_margins(rows, n, least);
	keep_layers(rows, n, quota);
	s->n_runs = 0;
	for (size_t i = 0; i < n; i++) {
		if (s->runs[i]->stays)
			s->runs[s->n_runs++] = s->runs[i];
		else
			tune_trial_free(s->runs[i]);
	}
	free(rows);
	return 0;
}

// Adds candidates near the best ones of the parts that were played, and plays these parts.
static int refine(struct tune_search *s, struct tune *t, struct err *e)
{
	struct ranked *rows = calloc(s->n_runs, sizeof *rows);
	struct tune_trial **all = s->runs;
	size_t n = s->n_runs, parents = n < REFINED_PARENTS ? n : REFINED_PARENTS;
	size_t first = s->config->candidates - (TUNE_IN_PARTS + 1 - s->part) * n_refined(s);
	size_t line = n_refined(s) / 2 < REFINED_LINE ? n_refined(s) / 2 : REFINED_LINE;
	double reach = pow(REFINED_CLOSER, (double)s->part - 1);
	int rc = rows ? 0 : err_no_memory(e);
	for (size_t i = 0; i < n && rows; i++) {
		rows[i].run = all[i];
		rows[i].loss = tune_score_loss(all[i]->parts, s->part, s->scene->config.late_ratio);
	}
	if (rows)
		qsort(rows, n, sizeof *rows, by_loss);
	s->runs = all + n; // there is room for every candidate
	s->n_runs = 0;
	for (size_t i = 0; i < n_refined(s) && rc == 0; i++) {
		bool is_on_line = i < line && line > 1;
		double share = is_on_line ? 2.0 * (double)i / (double)(line - 1) - 1 : NAN;
		const struct origin origin = {rows[is_on_line ? 0 : i % parents].run, reach, share};
		rc = add_candidate(s, t, first + i, &origin, e);
	}
	rc = rc == 0 ? play_runs(s, 0, s->part, e) : rc;
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
		work += (double)(n + refined * (part + 1));
		n = quota_of(n + refined);
	}
	return work + (double)n * TUNE_FOLDS;
}

int tune_halving_play(struct tune_search *s, struct tune *t, struct err *e)
{
	if (fill(s, t, e) < 0)
		return -1;
	s->all = work_of(s->n_runs, n_refined(s));
	for (s->part = 0; s->part < TUNE_IN_PARTS;) {
		if (play_runs(s, s->part, s->part + 1, e) < 0)
			return -1;
		s->done += (double)s->n_runs;
		s->part++;
		if (refine(s, t, e) < 0 || drop_worse(s, e) < 0)
			return -1;
	}
	return play_runs(s, s->part, TUNE_PARTS, e);
}
