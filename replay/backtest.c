// SPDX-License-Identifier: Apache-2.0
#include "replay/backtest.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "base/base.h"
#include "policies/engine/policy.h"
#include "replay/clairvoyant.h"
#include "replay/parallel.h"
#include "replay/world.h"

#define STARTUP_S       120.0
#define START_NEAR_MS   300000
#define MEAN_SLACK      0.001 // a mean of 6.0000001 starts with 6 replicas
#define REPLICAS_COLUMN "replicas"
#define READY_COLUMN    "ready"
#define PENDING_COLUMN  "pending"
#define DEMAND_COLUMN   "demand"
#define REQUESTS_COLUMN "requests"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

const char *const backtest_kind_names[] = {"actual", "policy", "peer", "fixed", "bound"};
_Static_assert(COUNT_OF(backtest_kind_names) == BACKTEST__COUNT, "one name per kind");

// The bisections of run_fixed() count as the two rows that they lead to.
static size_t expected_rows(const struct backtest *b)
{
	size_t n = 2;
	if (b->config.open_loop || b->config.policy_only)
		return n;
	return n + peer_n_settings + (b->config.n_fixed ? b->config.n_fixed : 2) + 1;
}

// Whether rows of the kind are played once all rows are added, on several threads; else as they are added.
static bool is_played_later(const struct backtest *b, enum backtest_kind kind)
{
	return b->config.sweep_threads > 0 && kind != BACKTEST_ACTUAL;
}

static struct backtest_row *add_row(struct backtest *b, enum backtest_kind kind, double setting, const char *name, ...)
        __attribute__((format(printf, 4, 5)));
static struct backtest_row *add_row(struct backtest *b, enum backtest_kind kind, double setting, const char *name, ...)
{
	va_list ap;
	assert(b->n_rows < BACKTEST_ROWS_MAX);
	struct backtest_row *row = &b->rows[b->n_rows];
	row->kind = kind;
	row->setting = setting;
	va_start(ap, name);
	vsnprintf(row->name, sizeof row->name, name, ap);
	va_end(ap);
	if (b->config.on_progress && !is_played_later(b, kind))
		b->config.on_progress(b->config.progress, b->n_rows, expected_rows(b), row->name);
	b->n_rows++;
	return row;
}

// A cell of a checked column of replicas: -1 without data.
static int32_t replicas_at(const struct backtest *b, size_t row, int column)
{
	double v = column < 0 ? NAN : recording_value(b->recording, row, column);
	return isnan(v) ? -1 : (int32_t)lround(v);
}

static int check_replicas(const struct backtest *b, int column, struct err *e)
{
	int most = b->config.engine ? ENGINE_REPLICAS_MAX : WORLD_REPLICAS_MAX;
	for (size_t row = 0; column >= 0 && row < b->recording->n_rows; row++) {
		double v = recording_value(b->recording, row, column);
		char place[RECORDING_PLACE_BYTES];
		if (isnan(v) || (v >= 0 && v <= most))
			continue;
		recording_place(b->recording, b->file, row, place);
		return err_set(e, ERR_INPUT, "%s: %s: expected replicas from 0 to %d, got %g", place,
		               b->recording->names[column], most, v);
	}
	return 0;
}

static void report_step(void *context, const struct loop_step *step)
{
	const struct backtest *b = context;
	const struct backtest_config *c = &b->config;
	c->on_step(c->step_context, b->n_rows - 1, b->rows[b->n_rows - 1].kind, step);
}

// ---- closed loop ----

struct loop {
	struct backtest *b;
	const struct policy *policy;
	struct closed_loop closed;
	int32_t max;
};

// The recorded replicas at a time that only grows: -1 where none are recorded. A missing cell and a missing row both
// leave a gap.
struct recorded_replicas {
	const struct backtest *b;
	int column;
	size_t row;
};

static int32_t recorded_at(struct recorded_replicas *r, int64_t now_ms)
{
	const struct recording *rec = r->b->recording;
	while (r->row + 1 < rec->n_rows && rec->time_ms[r->row + 1] <= now_ms)
		r->row++;
	bool holds = now_ms < rec->time_ms[r->row] + recording_hold_ms(rec, r->row);
	return holds ? replicas_at(r->b, r->row, r->column) : -1;
}

// The first count from row `row` on, and its time; -1 if there is none.
static int32_t next_recorded(const struct backtest *b, int column, size_t row, int64_t *ret_ms)
{
	int32_t n = -1;
	for (; column >= 0 && n < 0 && row < b->recording->n_rows; row++) {
		n = replicas_at(b, row, column);
		*ret_ms = b->recording->time_ms[row];
	}
	return n;
}

// As a candidate: what ran, in the simulated world. In a gap, which is not scored, the replicas start that the next
// count names.
static int32_t decide_recorded(void *self, const struct world *w, bool has_data)
{
	struct recorded_replicas *r = self;
	int64_t ignored;
	int32_t n = recorded_at(r, r->b->demand.start_ms + w->now_ms);
	if (n < 0 && !has_data)
		n = next_recorded(r->b, r->column, r->row + 1, &ignored);
	return n >= 0 ? n : world_replicas(w);
}

static int run_peer(const struct loop *l, enum peer_kind kind, double value, struct score *ret, struct err *e)
{
	struct peer peer;
	peer_init(&peer, kind, value, l->policy->min_replicas, l->max);
	const struct candidate c = {peer_candidate_decide, &peer, peer_interval_ms(&peer, l->b->demand.step_ms)};
	struct closed_loop closed = l->closed;
	if (kind == PEER_FIXED)
		closed.on_step = NULL; // nothing happens, and most of these runs only search
	return closed_loop_run(&closed, &c, ret) < 0 ? err_no_memory(e) : 0;
}

// Copies the demand without the steps of which the replicas are not recorded, and sets the share of the others.
static int recorded_demand(struct backtest *b, int column, struct demand *ret, struct err *e)
{
	struct recorded_replicas r = {.b = b, .column = column};
	size_t n_known = 0, n_recorded = 0;
	*ret = b->demand;
	ret->work = malloc(ret->n * sizeof *ret->work);
	if (!ret->work)
		return err_no_memory(e);
	for (size_t i = 0; i < ret->n; i++) {
		bool is_recorded = recorded_at(&r, ret->start_ms + (int64_t)i * ret->step_ms) >= 0;
		ret->work[i] = is_recorded ? b->demand.work[i] : (double)NAN;
		n_known += isnan(b->demand.work[i]) ? 0 : 1;
		n_recorded += isnan(ret->work[i]) ? 0 : 1;
	}
	b->recorded_share = n_known > 0 ? (double)n_recorded / (double)n_known : 0;
	return 0;
}

static int run_actual(const struct loop *l, int column, const struct demand *recorded, struct err *e)
{
	struct recorded_replicas r = {.b = l->b, .column = column};
	struct closed_loop closed = l->closed;
	int64_t ignored;
	const struct candidate c = {decide_recorded, &r, l->b->demand.step_ms};
	double percent = fmin(100 * l->b->recorded_share, 99.9);
	closed.demand = recorded;
	if (l->b->config.replicas <= 0)
		closed.first = next_recorded(l->b, column, 0, &ignored);
	struct backtest_row *row = l->b->recorded_share < 1 ? add_row(l->b, BACKTEST_ACTUAL, NAN,
	                                                              "recorded replicas (%.3g%% of the time)", percent)
	                                                    : add_row(l->b, BACKTEST_ACTUAL, NAN, "recorded replicas");
	return closed_loop_run(&closed, &c, &row->score) < 0 ? err_no_memory(e) : 0;
}

// Plays `policy`; without `score` only counts its signals that are recorded.
static int play_policy(const struct loop *l, const struct policy *policy, struct score *score, struct err *e)
{
	struct policy_candidate p;
	struct backtest *b = l->b;
	const struct candidate_input input = {.recording = b->recording,
	                                      .file = b->file,
	                                      .names = b->config.signals,
	                                      .engine = b->config.engine,
	                                      .bindings = b->config.bindings,
	                                      .start_ms = b->demand.start_ms};
	int rc = policy_candidate_init(&p, policy, &input, e);
	p.on_decision = b->config.on_decision;
	p.context = b->config.context;
	const struct candidate c = {policy_candidate_decide, &p, policy->interval_ms};
	if (rc == 0)
		policy_candidate_restore(&p, b->config.learnt);
	if (rc == 0 && score && closed_loop_run(&l->closed, &c, score) < 0)
		rc = err_no_memory(e);
	for (size_t i = 0; rc == 0 && !score && i < policy->n_signals; i++)
		b->n_recorded_signals += p.bindings[i].origin == ORIGIN_COLUMN;
	policy_candidate_done(&p);
	return rc;
}

// The policy at a setting, NaN: as it is; `signals` has room for its signals.
static struct policy policy_at(const struct policy *policy, double setting, struct policy_signal *signals)
{
	struct policy p = *policy;
	if (isnan(setting))
		return p;
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

static int play_row(const struct loop *l, struct backtest_row *row, struct err *e)
{
	struct policy_signal signals[POLICY_SIGNALS_MAX];
	if (row->kind == BACKTEST_POLICY) {
		struct policy policy = policy_at(l->policy, row->setting, signals);
		return play_policy(l, &policy, &row->score, e);
	}
	if (row->kind == BACKTEST_BOUND)
		return clairvoyant_run(&l->closed, l->policy->min_replicas, l->max, row->setting / 100, NULL,
		                       &row->score, &(bool){false});
	return run_peer(l, row->kind == BACKTEST_FIXED ? PEER_FIXED : row->peer, row->setting, &row->score, e);
}

// Plays the row that was just added, unless it is played later.
static int play_now(const struct loop *l, struct backtest_row *row, struct err *e)
{
	return is_played_later(l->b, row->kind) ? 0 : play_row(l, row, e);
}

static int run_peers(const struct loop *l, struct err *e)
{
	for (const struct peer_setting *s = peer_settings; s < peer_settings + peer_n_settings; s++) {
		char name[BACKTEST_NAME_BYTES];
		if (l->b->config.hpa_only && s->kind != PEER_HPA)
			continue;
		peer_setting_label(s, name, sizeof name);
		struct backtest_row *row = add_row(l->b, BACKTEST_PEER, s->value, "%s", name);
		row->peer = s->kind;
		if (play_now(l, row, e) < 0)
			return -1;
	}
	return 0;
}

static void mark_best_peers(struct backtest *b)
{
	struct backtest_row *best = NULL;
	for (struct backtest_row *row = b->rows; row < b->rows + b->n_rows; row++) {
		if (row->kind != BACKTEST_PEER)
			continue;
		bool is_first = !best || best->peer != row->peer;
		if (is_first || score_is_better(&row->score, &best->score, 100 * b->config.late_ratio)) {
			if (!is_first)
				best->is_best = false;
			best = row;
			best->is_best = true;
		}
	}
}

static int add_fixed(const struct loop *l, double n, struct err *e)
{
	for (size_t i = 0; i < l->b->n_rows; i++)
		if (l->b->rows[i].kind == BACKTEST_FIXED && l->b->rows[i].setting == n)
			return 0;
	return play_now(l, add_row(l->b, BACKTEST_FIXED, n, "fixed %d", (int)n), e);
}

// The smallest count, up to the policy's maximum, that is not later than late_percent; the maximum if there is none.
static int find_fixed(const struct loop *l, double late_percent, int32_t *ret_n, struct err *e)
{
	int32_t low = 1, high = l->max;
	struct score s;
	while (low < high) {
		int32_t middle = low + (high - low) / 2;
		if (run_peer(l, PEER_FIXED, middle, &s, e) < 0)
			return -1;
		if (score_keeps(&s, late_percent))
			high = middle;
		else
			low = middle + 1;
	}
	*ret_n = high;
	return 0;
}

static int run_fixed(const struct loop *l, struct err *e)
{
	const struct backtest_config *c = &l->b->config;
	for (size_t i = 0; i < c->n_fixed; i++)
		if (add_fixed(l, c->fixed[i], e) < 0)
			return -1;
	if (c->n_fixed > 0)
		return 0;
	double policy_late = score_late_percent(&backtest_policy_row(l->b)->score);
	int32_t n;
	if (find_fixed(l, 100 * c->late_ratio, &n, e) < 0 || add_fixed(l, n, e) < 0)
		return -1;
	if (isnan(policy_late))
		return 0;
	return find_fixed(l, policy_late, &n, e) < 0 || add_fixed(l, n, e) < 0 ? -1 : 0;
}

// A schedule of the whole time that is known without the program.
static const struct backtest_row *best_row(const struct backtest *b)
{
	const struct backtest_row *best = NULL;
	for (size_t i = 0; i < b->n_rows; i++) {
		const struct backtest_row *row = &b->rows[i];
		if (row->kind == BACKTEST_ACTUAL && b->recorded_share < 1)
			continue;
		if (!best || score_is_better(&row->score, &best->score, 100 * b->config.late_ratio))
			best = row;
	}
	return best;
}

static struct backtest_row *add_bound(struct backtest *b, double late_percent)
{
	return add_row(b, BACKTEST_BOUND, late_percent, "clairvoyant at late <= %g%%", late_percent);
}

static int run_bound(const struct loop *l, struct err *e)
{
	struct backtest *b = l->b;
	const struct backtest_row *known = best_row(b);
	bool is_known;
	struct backtest_row *row = add_bound(b, 100 * b->config.late_ratio);
	if (clairvoyant_run(&l->closed, l->policy->min_replicas, l->max, b->config.late_ratio, &known->score,
	                    &row->score, &is_known) < 0)
		return err_no_memory(e);
	b->bound_reached = score_keeps(&row->score, 100 * b->config.late_ratio);
	b->bound_name = is_known ? known->name : NULL;
	return 0;
}

// Whether the policy takes a target with 0 replicas for switched off: it has not scaled it there itself.
static bool holds_at_zero(const struct policy *p)
{
	if (p->min_replicas == 0 || (p->idle.set && p->idle.replicas == 0))
		return false;
	for (size_t i = 0; i < p->n_schedules; i++)
		if (p->schedules[i].replicas_set && p->schedules[i].replicas == 0)
			return false;
	return true;
}

static void set_first_replicas(struct backtest *b, const struct policy *policy, int column, int32_t max)
{
	int64_t time_ms = 0;
	int32_t n = next_recorded(b, column, 0, &time_ms);
	double mean = ceil(b->demand.mean / world_capacity_ratio(&b->config.world) - MEAN_SLACK);
	bool is_near = n >= 0 && time_ms - b->recording->time_ms[0] <= START_NEAR_MS;
	b->start = BACKTEST_START_RECORDED;
	b->first = n;
	if (b->config.replicas > 0) {
		b->start = BACKTEST_START_GIVEN;
		b->first = b->config.replicas;
	} else if (!is_near || (n == 0 && holds_at_zero(policy))) {
		b->start = is_near ? BACKTEST_START_NOT_ZERO : BACKTEST_START_MEAN;
		b->first = mean < 1 ? 1 : mean > max ? max : (int32_t)mean;
	}
}

// Sets up a world of engines: every request counts once, and where the file says so, the recorded requests are the
// demand.
static int set_engine(struct backtest *b, const struct policy *policy, struct err *e)
{
	const struct engine_model *m = b->config.engine;
	struct world_config *w = &b->config.world;
	struct demand *d = &b->demand;
	int32_t most = b->config.replicas > policy->max_replicas ? b->config.replicas : policy->max_replicas;
	for (size_t i = 0; i < b->config.n_fixed; i++)
		most = b->config.fixed[i] > most ? b->config.fixed[i] : most;
	if (most > ENGINE_REPLICAS_MAX)
		return err_set(
		        e, ERR_LIMIT,
		        "--engine simulates at most %d replicas: lower spec.maxReplicas, --replicas or --fixed, now %d",
		        ENGINE_REPLICAS_MAX, most);
	if (m->arrivals == ENGINE_ARRIVALS_REQUESTS) {
		if (!d->weight)
			return err_set(e, ERR_INPUT,
			               "%s: has no column requests, which requests.arrivals: Requests of the engine "
			               "model needs",
			               b->file);
		double row_s = (double)b->recording->step_ms / 1000; // the weights are integrals over time
		d->total = 0;
		for (size_t i = 0; i < d->n; i++) {
			if (isnan(d->work[i]))
				continue;
			d->work[i] = d->weight[i] / row_s / m->max_requests_s;
			d->total += d->work[i];
		}
		d->mean = d->total * 1000 / (double)d->known_ms;
	}
	free(d->weight);
	d->weight = NULL;
	if (d->total * m->max_requests_s > ENGINE_REQUESTS_MAX)
		return err_set(e, ERR_LIMIT,
		               "%s: the demand is about %.0f requests of the engine model, more than %d: use a shorter "
		               "recording",
		               b->file, d->total * m->max_requests_s, ENGINE_REQUESTS_MAX);
	w->engine = (struct engine_setup){m, d->start_ms, b->config.wait_s};
	if (w->capacity == 0 || w->capacity > ENGINE_REPLICAS_MAX)
		w->capacity = ENGINE_REPLICAS_MAX;
	return 0;
}

// ---- the rows of a sweep ----

// Cost against lateness: the rows of a backtest with a sweep. The policy at several objectives, or with its targets
// scaled when it has none, next to other autoscalers, fixed counts and the clairvoyant bound at each lateness.
// The rows are added by kind and then in the order of their settings, and played on up to config.sweep_threads threads;
// the result does not depend on their number. The name of the policy as it is ends with "(present)", that of a bound
// that keeps the lateness of no schedule with "(not reached)".

static const double objectives[] = {0.1, 0.3, 1, 3, 5, 10, 20};              // percent late, for policy and bound
static const double factors[] = {0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4}; // times the targets, no objective
static const double counts[] = {1, 1.25, 1.5, 2, 2.5, 3, 4, 6};              // fixed: times the mean demand

_Static_assert(1 + COUNT_OF(objectives) + 1 + COUNT_OF(factors) + COUNT_OF(counts) + COUNT_OF(objectives) + 16 <=
                       BACKTEST_ROWS_MAX,
               "all rows fit");

struct sweep {
	const struct loop *l;
	size_t first;           // row of the sweep
	double present;         // setting of the policy as it is
	atomic_bool has_failed; // no memory: what else can fail, fails before
};

static void add_policy(struct sweep *s, double setting)
{
	const char *present = setting == s->present ? " (present)" : "";
	if (s->l->policy->objective.set)
		add_row(s->l->b, BACKTEST_POLICY, setting, "objective %g%%%s", setting, present);
	else
		add_row(s->l->b, BACKTEST_POLICY, setting, "targets x %g%s", setting, present);
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
	for (size_t i = 0; i < s->l->policy->n_signals; i++)
		has_any = has_any || has_target(&s->l->policy->signals[i]);
	if (!has_any)
		return err_set(e, ERR_UNSUPPORTED,
		               "not supported: policy %s has neither an objective nor a target or watermarks, so there "
		               "is nothing to vary",
		               s->l->policy->name);
	for (size_t i = 0; i < COUNT_OF(factors); i++)
		add_policy(s, factors[i]);
	return 0;
}

static int add_references(const struct loop *l, struct err *e)
{
	double mean = l->b->demand.mean / world_capacity_ratio(&l->b->config.world);
	if (run_peers(l, e) < 0)
		return -1;
	for (size_t i = 0; i < COUNT_OF(counts); i++)
		if (add_fixed(l, fmin(fmax(ceil(counts[i] * mean), 1), l->max), e) < 0)
			return -1;
	for (size_t i = 0; i < COUNT_OF(objectives); i++)
		add_bound(l->b, objectives[i]);
	return 0;
}

static void play_task(void *context, size_t i)
{
	struct sweep *s = context;
	struct err e;
	if (play_row(s->l, &s->l->b->rows[s->first + i], &e) < 0)
		atomic_store(&s->has_failed, true);
}

// A bound is never worse than another row.
static void complete_bound(const struct sweep *s, struct backtest_row *bound)
{
	for (size_t k = s->first; k < s->l->b->n_rows; k++)
		if (score_is_better(&s->l->b->rows[k].score, &bound->score, bound->setting))
			bound->score = s->l->b->rows[k].score;
	if (!score_keeps(&bound->score, bound->setting))
		strncat(bound->name, " (not reached)", sizeof bound->name - strlen(bound->name) - 1);
}

static int run_sweep(const struct loop *l, struct err *e)
{
	struct backtest *b = l->b;
	struct sweep s = {.l = l, .first = b->n_rows};
	s.present = l->policy->objective.set ? 100 * l->policy->objective.late_ratio : 1;
	if (l->policy->objective.set)
		add_objectives(&s);
	else if (add_factors(&s, e) < 0)
		return -1;
	if (add_references(l, e) < 0)
		return -1;
	atomic_init(&s.has_failed, false);
	parallel_run(b->n_rows - s.first, b->config.sweep_threads, play_task, NULL, &s);
	for (size_t i = s.first; i < b->n_rows; i++)
		if (b->rows[i].kind == BACKTEST_BOUND)
			complete_bound(&s, &b->rows[i]);
	return atomic_load(&s.has_failed) ? err_no_memory(e) : 0;
}

// ---- the whole loop ----

static int run_closed(struct backtest *b, const struct policy *policy, struct err *e)
{
	const struct recording *r = b->recording;
	const char *name = b->config.demand_column ? b->config.demand_column : DEMAND_COLUMN;
	struct demand recorded = {0};
	int column, replicas = recording_column(r, REPLICAS_COLUMN);
	if (recording_need_column(r, name, b->file, &column, e) < 0)
		return b->config.demand_column
		               ? -1
		               : err_wrap(e, "closed loop needs a column of demand, in replicas' worth of work "
		                             "(--demand-column names the column; --open-loop needs none)");
	if (demand_from_recording(r, column, recording_column(r, REQUESTS_COLUMN), b->config.per_replica, b->file,
	                          &b->demand, e) < 0)
		return -1;
	int32_t max = policy->max_replicas < WORLD_REPLICAS_MAX ? policy->max_replicas : WORLD_REPLICAS_MAX;
	b->config.world.step_ms = b->demand.step_ms;
	if (b->config.engine && set_engine(b, policy, e) < 0)
		return -1;
	set_first_replicas(b, policy, replicas, max);
	struct loop l = {.b = b, .policy = policy, .max = max};
	l.closed = (struct closed_loop){.demand = &b->demand,
	                                .world = &b->config.world,
	                                .first = b->first,
	                                .max = max,
	                                .late_s = b->config.wait_s,
	                                .on_step = b->config.on_step ? report_step : NULL,
	                                .context = b};
	b->has_replicas_column = replicas >= 0;
	int rc = replicas >= 0 ? recorded_demand(b, replicas, &recorded, e) : 0;
	if (rc == 0 && b->recorded_share > 0)
		rc = run_actual(&l, replicas, &recorded, e);
	if (rc == 0 && b->config.hpa_only) {
		l.closed.demand = b->recorded_share > 0 ? &recorded : l.closed.demand;
		rc = run_peers(&l, e);
		mark_best_peers(b);
	}
	free(recorded.work);
	if (rc < 0 || b->config.hpa_only)
		return rc;
	if (play_policy(&l, policy, NULL, e) < 0)
		return -1;
	if (b->config.sweep_threads > 0)
		return run_sweep(&l, e);
	if (play_row(&l, add_row(b, BACKTEST_POLICY, NAN, "%s", policy->name), e) < 0)
		return -1;
	if (b->config.policy_only)
		return 0;
	if (run_peers(&l, e) < 0 || run_fixed(&l, e) < 0)
		return -1;
	mark_best_peers(b);
	return b->config.engine ? 0 : run_bound(&l, e); // the bound plans with a fluid queue
}

// ---- open loop ----

// A row of the recording is a step of both rows of the result.
static void report_recorded(const struct backtest *b, size_t row, int32_t actual, int32_t wanted, int32_t ready)
{
	const struct backtest_config *c = &b->config;
	struct loop_step step = {.time_ms = b->recording->time_ms[row],
	                         .span_ms = recording_hold_ms(b->recording, row),
	                         .demand = NAN,
	                         .replicas = actual,
	                         .ready = ready,
	                         .wait_s = NAN};
	if (!c->on_step)
		return;
	c->on_step(c->step_context, 0, BACKTEST_ACTUAL, &step);
	step.replicas = wanted;
	c->on_step(c->step_context, 1, BACKTEST_POLICY, &step);
}

static int run_open(struct backtest *b, const struct policy *policy, struct err *e)
{
	const struct recording *r = b->recording;
	struct policy_candidate p;
	int replicas, ready = recording_column(r, READY_COLUMN), pending = recording_column(r, PENDING_COLUMN);
	if (recording_need_column(r, REPLICAS_COLUMN, b->file, &replicas, e) < 0)
		return err_wrap(e, "open loop needs the recorded replicas");
	if (check_replicas(b, ready, e) < 0 || check_replicas(b, pending, e) < 0)
		return -1;
	struct score *actual = &add_row(b, BACKTEST_ACTUAL, NAN, "recorded replicas")->score;
	struct score *decided = &add_row(b, BACKTEST_POLICY, NAN, "%s", policy->name)->score;
	score_init(actual, false);
	score_init(decided, false);
	int rc = policy_candidate_init(&p, policy, &(struct candidate_input){.recording = r, .file = b->file}, e);
	p.on_decision = b->config.on_decision;
	p.context = b->config.context;
	int32_t before = -1, decided_before = -1;
	for (size_t row = 0; rc == 0 && row < r->n_rows; row++) {
		const struct recorded_scale scale = {replicas_at(b, row, replicas), replicas_at(b, row, ready),
		                                     replicas_at(b, row, pending)};
		int32_t n = scale.replicas;
		if (n < 0) {
			b->n_held++;
			continue;
		}
		policy_candidate_decide_recorded(&p, row, &scale);
		int32_t wanted = p.decision.desired;
		report_recorded(b, row, n, wanted, scale.ready);
		score_add_step(actual, recording_hold_ms(r, row), n, n >= policy->max_replicas);
		score_add_step(decided, recording_hold_ms(r, row), wanted, wanted >= policy->max_replicas);
		if (before >= 0) {
			score_add_scale(actual, before, n);
			score_add_scale(decided, decided_before, wanted);
		}
		before = n;
		decided_before = wanted;
	}
	policy_candidate_done(&p);
	return rc;
}

int backtest_run(const struct backtest_config *config, const struct policy *policy, const struct recording *recording,
                 const char *file, struct backtest *ret, struct err *e)
{
	memset(ret, 0, sizeof *ret);
	ret->config = *config;
	ret->recording = recording;
	ret->file = file;
	struct world_config *w = &ret->config.world;
	const struct policy_learnt *learnt = config->open_loop ? NULL : config->learnt;
	if (w->n_startups == 0) {
		bool given = policy->startup.set && policy->startup.given;
		ret->startup_is_learnt = learnt && learnt->startup_s >= 0;
		w->startups_s[0] = ret->startup_is_learnt ? learnt->startup_s
		                   : given                ? (double)policy->startup.start_ms / 1000
		                                          : STARTUP_S;
		w->n_startups = 1;
	}
	ret->ratio_is_learnt = w->capacity_ratio <= 0 && !config->engine && learnt && learnt->capacity_ratio > 0;
	if (ret->ratio_is_learnt)
		w->capacity_ratio = learnt->capacity_ratio;
	if (check_replicas(ret, recording_column(recording, REPLICAS_COLUMN), e) < 0)
		return -1;
	return config->open_loop ? run_open(ret, policy, e) : run_closed(ret, policy, e);
}

void backtest_done(struct backtest *b)
{
	demand_done(&b->demand);
}

const struct backtest_row *backtest_policy_row(const struct backtest *b)
{
	for (size_t i = 0; i < b->n_rows; i++)
		if (b->rows[i].kind == BACKTEST_POLICY)
			return &b->rows[i];
	assert(false && "a finished backtest has the row of its policy");
	return NULL;
}
