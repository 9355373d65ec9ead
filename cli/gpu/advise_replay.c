// SPDX-License-Identifier: Apache-2.0
// Replays the history of each workload under its present rules, the library and an objective.
#include "cli/gpu/advise.h"
#include "cli/replay/replay_fetch.h"
#include "cli/term/cli.h"
#include "policies/load/policy_ref.h"
#include "promql/promql.h"
#include "replay/backtest.h"
#include "replay/parallel.h"

#define POLICY_BYTES  ((size_t)64 * 1024)
#define QUERY_BYTES   ((size_t)16 * 1024)
#define NOTES_BYTES   ((size_t)256 * 1024)
#define NOTE_BYTES    256
#define SHORT_MS      (INT64_C(2) * 24 * 3600 * 1000)
#define SHORT_STEP_MS 15000
#define STEP_MS       60000
#define ROWS_MIN      60   // fewer rows with demand and replicas show nothing
#define CAPACITY_AT   0.99 // quantile of what a replica did
#define GPU_FULL      0.5  // a GPU whose SMs are active for this share of the time may be full
#define FIT_MIN       0.7  // correlation from which a signal follows a simulated metric
#define FREE_MAX      1000 // largest maxReplicas of a workload without bounds of its own
#define UNKNOWN_MAX   10   // its maxReplicas when nothing is recorded
#define REPLICAS      "replicas"
#define READY         "ready"
#define BACKLOG       "advise backlog"
#define REQUEST_WORK  "advise request"

const char *const advise_candidate_names[ADVISE_CANDIDATE__COUNT] = {"ran", "present rules", "library", "objective"};

// A candidate in replay: the policy with its signals bound to what is simulated, in the units of the signals.
struct candidate_run {
	struct policy_ref *ref; // NULL: this candidate does not run
	struct policy policy;
	struct policy_signal signals[POLICY_SIGNALS_MAX];
	struct signal_binding bindings[POLICY_SIGNALS_MAX];
	struct backtest *backtest; // heap; NULL: it did not run
	bool lacks_data;           // of a signal
	int rc;
	struct err error;
	char note[NOTE_BYTES];
};

struct replay {
	const struct advise_request *request;
	struct advice *advice;
	struct advise_workload *workload;
	struct advise_subject subject;
	struct candidate_run runs[ADVISE_CANDIDATE__COUNT];
	// What is fetched: the signals of the candidates under names of their own.
	struct policy_ref fetched;
	struct policy_signal columns[POLICY_SIGNALS_MAX];
	char names[POLICY_SIGNALS_MAX][16];
	struct recording recording;
	double *demand, *busy, *backlog; // by row, in replicas and replica-seconds; NaN: unknown; heap
	double request_work;             // mean work of a request; NaN: unknown
};

// ---- the recording ----

static int add_column(struct replay *r, const struct policy_signal *signal, const char *name)
{
	struct policy *p = &r->fetched.policy;
	if (p->n_signals == POLICY_SIGNALS_MAX)
		return -1;
	struct policy_signal *s = &r->columns[p->n_signals];
	*s = *signal;
	s->name = name;
	// The mean of the pods stands for the values of the pods.
	if (s->target.set && s->target.type == TARGET_PODS)
		s->series = SERIES_AVG;
	p->signals = r->columns;
	p->n_signals++;
	return 0;
}

// Adds a column for each query of the candidate.
static void add_candidate(struct replay *r, enum advise_candidate candidate)
{
	struct candidate_run *run = &r->runs[candidate];
	for (size_t i = 0; run->ref && i < run->ref->policy.n_signals; i++) {
		const struct policy_signal *s = &run->ref->policy.signals[i];
		run->bindings[i] = (struct signal_binding){ORIGIN_COLUMN, 1, -1};
		if (!s->query)
			continue;
		char *name = r->names[r->fetched.policy.n_signals];
		snprintf(name, sizeof r->names[0], "%d/%zu", (int)candidate, i);
		run->bindings[i].column = (int)r->fetched.policy.n_signals;
		if (add_column(r, s, name) < 0) {
			policy_ref_release(run->ref);
			run->ref = NULL;
			r->workload->outcomes[candidate].note = "it has too many signals for a replay";
		}
	}
}

static int fetch(struct replay *r, struct err *e)
{
	struct advise_workload *w = r->workload;
	struct buf demand = BUF(QUERY_BYTES), backlog = BUF(QUERY_BYTES), request_work = BUF(QUERY_BYTES),
	           notes = BUF(NOTES_BYTES);
	advise_put_demand(&demand, &r->subject);
	r->fetched.policy.namespace_name = w->namespace_name;
	r->fetched.policy.name = w->target.name;
	r->fetched.target = w->target;
	if (advise_engines[w->engine].has_queue) {
		advise_put_backlog(&backlog, &r->subject);
		advise_put_request_work(&request_work, &r->subject);
		add_column(r, &(struct policy_signal){.query = buf_str(&backlog)}, BACKLOG);
		add_column(r, &(struct policy_signal){.query = buf_str(&request_work)}, REQUEST_WORK);
	}
	add_candidate(r, ADVISE_LIBRARY);
	add_candidate(r, ADVISE_PRESENT);
	const struct replay_fetch f = {.prometheus = r->request->prometheus,
	                               .policy = &r->fetched.policy,
	                               .demand = buf_str(&demand),
	                               .since_ms = r->request->since_ms,
	                               .until_ms = r->advice->end_s * 1000,
	                               .step_ms = r->request->since_ms > SHORT_MS ? STEP_MS : SHORT_STEP_MS};
	int rc = replay_fetch(&f, &r->recording, &notes, e);
	buf_done(&demand);
	buf_done(&backlog);
	buf_done(&request_work);
	buf_done(&notes);
	return rc;
}

// ---- the unit of the demand ----

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

static double cell(const struct replay *r, size_t row, int column)
{
	return column < 0 ? NAN : recording_value(&r->recording, row, column);
}

static int32_t most_replicas(const struct replay *r)
{
	int column = recording_column(&r->recording, REPLICAS);
	double most = 0;
	for (size_t row = 0; row < r->recording.n_rows; row++)
		most = fmax(most, cell(r, row, column)); // which ignores NaN
	return (int32_t)fmin(most, FREE_MAX);
}

// The work of a full replica: what a replica did in its busiest percent of the time. A replica may be able to do more;
// then the demand is overstated, and so is the cost of the candidates. Returns the number of rows.
static size_t measure_capacity(struct replay *r, double *scratch)
{
	const struct recording *rec = &r->recording;
	int demand = recording_column(rec, REPLAY_DEMAND_COLUMN), ready = recording_column(rec, READY);
	if (ready < 0)
		ready = recording_column(rec, REPLICAS);
	size_t n = 0;
	for (size_t row = 0; row < rec->n_rows; row++) {
		double d = cell(r, row, demand), replicas = cell(r, row, ready);
		if (d >= 0 && replicas >= 1)
			scratch[n++] = d / replicas;
	}
	double capacity = 0;
	if (n > 0) {
		qsort(scratch, n, sizeof *scratch, compare_doubles);
		capacity = scratch[(size_t)(CAPACITY_AT * (double)(n - 1))];
	}
	if (r->workload->engine == ADVISE_GPU)
		capacity = fmax(capacity, GPU_FULL * fmax(r->workload->gpus, 1));
	r->workload->capacity = capacity > 0 ? capacity : 1; // nothing arrived
	return n;
}

static void set_metrics(struct replay *r)
{
	const struct recording *rec = &r->recording;
	int demand = recording_column(rec, REPLAY_DEMAND_COLUMN), ready = recording_column(rec, READY);
	int backlog = recording_column(rec, BACKLOG), request_work = recording_column(rec, REQUEST_WORK);
	double sum = 0, n = 0, capacity = r->workload->capacity;
	if (ready < 0)
		ready = recording_column(rec, REPLICAS);
	for (size_t row = 0; row < rec->n_rows; row++) {
		double replicas = cell(r, row, ready), work = cell(r, row, request_work);
		r->demand[row] = cell(r, row, demand) / capacity;
		r->busy[row] = replicas >= 1 ? fmin(r->demand[row] / replicas, 1) : NAN;
		r->backlog[row] = cell(r, row, backlog) / capacity;
		if (work > 0) {
			sum += work;
			n++;
		}
	}
	r->request_work = n > 0 ? sum / n : NAN;
}

// ---- which metric a signal follows ----

struct fit {
	double correlation, factor;
};

// Compares column `column` with a simulated metric: Pearson's correlation, and the factor of least squares through 0.
static struct fit fit(const struct replay *r, int column, const double *metric)
{
	double n = 0, sx = 0, sy = 0, sxx = 0, syy = 0, sxy = 0;
	for (size_t row = 0; row < r->recording.n_rows; row++) {
		double x = metric[row], y = cell(r, row, column);
		if (isnan(x) || isnan(y))
			continue;
		n++;
		sx += x;
		sy += y;
		sxx += x * x;
		syy += y * y;
		sxy += x * y;
	}
	double vx = n * sxx - sx * sx, vy = n * syy - sy * sy;
	if (n < ROWS_MIN || !(vx > 0) || !(vy > 0))
		return (struct fit){0, 0};
	return (struct fit){(n * sxy - sx * sy) / sqrt(vx * vy), sxy / sxx};
}

static bool has_data(const struct replay *r, int column)
{
	for (size_t row = 0; row < r->recording.n_rows; row++)
		if (!isnan(cell(r, row, column)))
			return true;
	return false;
}

// A signal of the queue is the backlog; any other one is the metric that its record follows most closely. A candidate
// with a signal that never had data does not run: it would hold all the time.
static void bind(struct replay *r, enum advise_candidate candidate, size_t i)
{
	struct candidate_run *run = &r->runs[candidate];
	struct signal_binding *b = &run->bindings[i];
	const struct policy_signal *s = &run->policy.signals[i];
	const struct advise_engine_info *engine = &advise_engines[r->workload->engine];
	const double *metrics[] = {
	        [ORIGIN_DEMAND] = r->demand, [ORIGIN_BACKLOG] = r->backlog, [ORIGIN_UTILIZATION] = r->busy};
	char name[16];
	snprintf(name, sizeof name, "%d/%zu", (int)candidate, i);
	b->column = recording_column(&r->recording, name);
	struct fit best = {FIT_MIN, 1};
	if (!has_data(r, b->column)) {
		if (s->on_missing == ON_MISSING_HOLD && !run->lacks_data)
			snprintf(run->note, sizeof run->note, "the signal %s has no data", s->name);
		run->lacks_data |= s->on_missing == ON_MISSING_HOLD;
		return;
	}
	if (engine->has_queue && strstr(s->query, engine->probe) && r->request_work > 0) {
		struct fit f = fit(r, b->column, r->backlog);
		*b = (struct signal_binding){
		        ORIGIN_BACKLOG, f.factor > 0 ? f.factor : r->workload->capacity / r->request_work, b->column};
		return;
	}
	for (int origin = 0; origin < ORIGIN_SIMULATED; origin++) {
		struct fit f = fit(r, b->column, metrics[origin]);
		if (f.correlation > best.correlation && f.factor > 0) {
			best = f;
			b->origin = (enum signal_origin)origin;
			b->factor = f.factor;
		}
	}
	if (b->origin == ORIGIN_COLUMN && !run->note[0])
		snprintf(run->note, sizeof run->note,
		         "the signal %s does not follow the load, and is replayed as recorded", s->name);
}

// ---- the candidates ----

static const char *write_policy(struct replay *r, enum advise_candidate candidate, struct err *e)
{
	struct buf text = BUF(POLICY_BYTES);
	if (candidate == ADVISE_LIBRARY)
		advise_put_library(&text, &r->subject);
	else
		advise_put_objective(&text, &r->subject, r->workload->capacity);
	const char *copy = text.failed ? NULL : arena_strdup(&r->advice->arena, buf_str(&text));
	buf_done(&text);
	if (!copy)
		err_no_memory(e);
	return copy;
}

// Writes the policy and decodes it: a policy that is not valid is a fault of the advice, not a candidate.
static int set_candidate(struct replay *r, enum advise_candidate candidate, struct err *e)
{
	struct candidate_run *run = &r->runs[candidate];
	const char *text = write_policy(r, candidate, e);
	policy_ref_release(run->ref);
	run->ref = text ? advise_policy(text, e) : NULL;
	r->workload->policies[candidate] = text;
	return run->ref ? 0 : -1;
}

// Keeps a fault of one workload in its row. Returns -1 and *e for the others, which end the command.
static int keep_fault(struct replay *r, const struct err *fault, struct err *e)
{
	if (fault->kind == ERR_UNREACHABLE || fault->kind == ERR_AUTH || fault->kind == ERR_INTERNAL) {
		*e = *fault;
		return -1;
	}
	r->workload->fault = arena_strdup(&r->advice->arena, fault->msg);
	return r->workload->fault ? 0 : err_no_memory(e);
}

static void prepare(struct replay *r, enum advise_candidate candidate)
{
	struct candidate_run *run = &r->runs[candidate];
	if (!run->ref)
		return;
	run->policy = run->ref->policy;
	memcpy(run->signals, run->policy.signals, run->policy.n_signals * sizeof *run->signals);
	run->policy.signals = run->signals;
	for (size_t i = 0; i < run->policy.n_signals; i++) {
		struct policy_signal *s = &run->signals[i];
		if (s->target.set && s->target.type == TARGET_PODS)
			s->target.type = TARGET_VALUE;
		if (candidate == ADVISE_OBJECTIVE)
			run->bindings[i] = (struct signal_binding){
			        i == run->policy.objective.demand_index ? ORIGIN_DEMAND : ORIGIN_BACKLOG, 1, -1};
		else if (s->query)
			bind(r, candidate, i);
	}
}

static void run_candidate(void *context, size_t i)
{
	struct replay *r = context;
	struct candidate_run *run = &r->runs[i];
	if (!run->ref || run->lacks_data)
		return;
	const struct backtest_config config = {.policy_only = true,
	                                       .demand_column = REPLAY_DEMAND_COLUMN,
	                                       .per_replica = r->workload->capacity,
	                                       .late_ratio = ADVISE_LATE_RATIO,
	                                       .wait_s = ADVISE_WAIT_S,
	                                       .bindings = run->bindings};
	run->backtest = calloc(1, sizeof *run->backtest);
	run->rc = run->backtest
	                  ? backtest_run(&config, &run->policy, &r->recording, "Prometheus", run->backtest, &run->error)
	                  : err_set(&run->error, ERR_INTERNAL, "out of memory");
}

// Takes over the scores. What ran is part of every run.
static void take_scores(struct replay *r)
{
	struct advise_workload *w = r->workload;
	for (int c = ADVISE_PRESENT; c < ADVISE_CANDIDATE__COUNT; c++) {
		struct candidate_run *run = &r->runs[c];
		const char *note = run->note[0] ? run->note : run->rc < 0 ? run->error.msg : NULL;
		if (note)
			w->outcomes[c].note = arena_strdup(&r->advice->arena, note);
		for (size_t i = 0; run->backtest && run->rc == 0 && i < run->backtest->n_rows; i++) {
			const struct backtest_row *row = &run->backtest->rows[i];
			struct advise_outcome *o = &w->outcomes[row->kind == BACKTEST_ACTUAL ? ADVISE_RAN : c];
			o->is_known = row->score.counted_ms > 0;
			o->replicas = row->score.replica_s * 1000 / row->score.counted_ms;
			o->late_percent = row->score.requests > 0 ? score_late_percent(&row->score) : 0;
			o->changes = row->score.changes;
		}
	}
	if (!w->has_use && w->gpus > 0)
		w->gpu_hours = w->outcomes[ADVISE_RAN].replicas * w->gpus *
		               (double)(r->advice->end_s - r->advice->start_s) / 3600;
	if (!w->outcomes[ADVISE_RAN].is_known)
		w->fault = "the replicas that ran are not recorded (kube-state-metrics)";
}

// The cheapest candidate that keeps the objective; where what ran does not keep it, also one that is no later.
static void choose(struct advise_workload *w)
{
	const struct advise_outcome *ran = &w->outcomes[ADVISE_RAN];
	double late = 100 * ADVISE_LATE_RATIO;
	bool ran_keeps = ran->late_percent <= late, best_keeps = ran_keeps;
	double cheapest = ran_keeps ? ran->replicas * (1 - ADVISE_LEAST_SAVING) : INFINITY;
	for (int c = ADVISE_LIBRARY; ran->is_known && c < ADVISE_CANDIDATE__COUNT; c++) {
		const struct advise_outcome *o = &w->outcomes[c];
		bool keeps = o->late_percent <= late;
		bool is_eligible = keeps || (!best_keeps && o->late_percent <= ran->late_percent &&
		                             o->replicas < ran->replicas * (1 - ADVISE_LEAST_SAVING));
		if (!o->is_known || !is_eligible || (keeps == best_keeps && o->replicas >= cheapest))
			continue;
		best_keeps = keeps;
		cheapest = o->replicas;
		w->best = (enum advise_candidate)c;
	}
	if (w->best != ADVISE_RAN && ran->replicas > 0)
		w->saved_ratio = 1 - w->outcomes[w->best].replicas / ran->replicas;
	w->saved_hours = fmax(w->saved_ratio, 0) * w->gpu_hours;
	w->saved_cost = fmax(w->saved_ratio, 0) * w->cost;
}

// ---- what was measured ----

static int take_number(void *arg, const struct promql_series *s, struct err *e)
{
	double *number = arg;
	if (s->n_samples > 0 && isfinite(s->samples[0].value))
		*number = s->samples[0].value;
	return 0;
}

// Returns the value of the query at the end of the period; NaN without a usable response.
static double ask_number(struct replay *r, struct prometheus_session *session, const struct buf *query)
{
	struct err ignored;
	double number = NAN;
	const struct promql_question question = {.query = buf_str(query), .time_ms = r->advice->end_s * 1000};
	prometheus_session_ask(session, &question, take_number, &number, &ignored);
	progress_clear(&session->progress);
	return number;
}

static void measure(struct replay *r, struct prometheus_session *session)
{
	struct buf query = BUF(QUERY_BYTES);
	advise_put_scrapes(&query, &r->subject);
	r->subject.window = advise_window(ask_number(r, session, &query));
	buf_reset(&query);
	bool has_late = advise_put_late(&query, &r->subject, r->advice->end_s - r->advice->start_s);
	double late = has_late ? ask_number(r, session, &query) : NAN;
	r->workload->measured_late_percent = isnan(late) ? late : 100 * fmin(fmax(late, 0), 1);
	buf_done(&query);
}

// ---- one workload ----

// A workload without an autoscaler has no bounds: at least one replica, at most `most`.
static void set_bounds(struct replay *r, int32_t most)
{
	const struct policy_ref *present = r->workload->present;
	r->subject.min_replicas = present && present->policy.min_replicas > 0 ? present->policy.min_replicas : 1;
	r->subject.max_replicas = present ? present->policy.max_replicas : most;
	if (r->subject.max_replicas < r->subject.min_replicas)
		r->subject.max_replicas = r->subject.min_replicas;
}

static int replay_recording(struct replay *r, struct err *e)
{
	struct advise_workload *w = r->workload;
	size_t n = r->recording.n_rows, n_known;
	double *values = calloc(4 * n, sizeof *values);
	if (!values)
		return err_no_memory(e);
	r->demand = values;
	r->busy = values + n;
	r->backlog = values + 2 * n;
	int rc = 0;
	n_known = measure_capacity(r, values + 3 * n);
	int64_t covered_s = (int64_t)n_known * r->recording.step_ms / 1000;
	if (r->advice->covered_s < covered_s)
		r->advice->covered_s = covered_s;
	if (n_known < ROWS_MIN) {
		w->fault = "its work and its replicas are recorded for too short a time";
	} else {
		set_metrics(r);
		set_bounds(r, 2 * most_replicas(r));
		rc = set_candidate(r, ADVISE_LIBRARY, e);
		if (rc == 0 && advise_engines[w->engine].has_queue)
			rc = set_candidate(r, ADVISE_OBJECTIVE, e);
	}
	if (rc == 0 && !w->fault) {
		for (int c = ADVISE_PRESENT; c < ADVISE_CANDIDATE__COUNT; c++)
			prepare(r, (enum advise_candidate)c);
		parallel_run(ADVISE_CANDIDATE__COUNT, parallel_cores(), run_candidate, NULL, r);
		take_scores(r);
		choose(w);
	}
	free(values);
	return rc;
}

static int replay_workload(struct replay *r, struct prometheus_session *session, struct err *e)
{
	struct advise_workload *w = r->workload;
	if (!w->has_engine) {
		w->fault = "no series of an inference engine, nor of DCGM_FI_PROF_SM_ACTIVE";
		return 0;
	}
	r->subject = (struct advise_subject){.namespace_name = w->namespace_name,
	                                     .target = &w->target,
	                                     .engine = w->engine,
	                                     .is_exported = w->is_exported};
	set_bounds(r, UNKNOWN_MAX);
	measure(r, session);
	r->runs[ADVISE_PRESENT].ref = w->present ? policy_ref_acquire(w->present) : NULL;
	w->outcomes[ADVISE_PRESENT].note = w->present_fault;
	struct err fault, ignored;
	if (set_candidate(r, ADVISE_LIBRARY, &fault) < 0)
		return keep_fault(r, &fault, e);
	int rc = fetch(r, &fault);
	if (rc < 0 && r->runs[ADVISE_PRESENT].ref && keep_fault(r, &fault, &ignored) == 0) {
		// A query of the present rules may be the reason.
		w->outcomes[ADVISE_PRESENT].note = w->fault;
		w->fault = NULL;
		policy_ref_release(r->runs[ADVISE_PRESENT].ref);
		r->runs[ADVISE_PRESENT].ref = NULL;
		r->fetched.policy.n_signals = 0;
		recording_done(&r->recording);
		rc = fetch(r, &fault);
	}
	if (rc == 0)
		rc = replay_recording(r, &fault);
	return rc < 0 ? keep_fault(r, &fault, e) : 0;
}

static int by_saving(const void *a, const void *b)
{
	const struct advise_workload *x = a, *y = b;
	if (x->saved_cost != y->saved_cost)
		return x->saved_cost < y->saved_cost ? 1 : -1;
	if (x->saved_hours != y->saved_hours)
		return x->saved_hours < y->saved_hours ? 1 : -1;
	if (x->cost != y->cost)
		return x->cost < y->cost ? 1 : -1;
	int by_namespace = strcmp(x->namespace_name, y->namespace_name);
	return by_namespace ? by_namespace : strcmp(x->target.name, y->target.name);
}

int advise_replay(const struct advise_request *request, struct advice *a, struct err *e)
{
	struct prometheus_session session;
	int rc = prometheus_session_open(&session, request->prometheus, e);
	if (rc < 0)
		return -1;
	struct progress progress = {.what = "replaying", .delay_ms = PROGRESS_DELAY_MS};
	for (size_t i = 0; rc == 0 && i < a->n; i++) {
		struct replay *r = calloc(1, sizeof *r);
		if (!r) {
			rc = err_no_memory(e);
			break;
		}
		r->request = request;
		r->advice = a;
		r->workload = &a->workloads[i];
		r->workload->measured_late_percent = NAN;
		progress_show(&progress, i, a->n, r->workload->target.name);
		rc = replay_workload(r, &session, e);
		if (rc < 0)
			err_wrap(e, "%s/%s", r->workload->namespace_name, r->workload->target.name);
		for (int c = 0; c < ADVISE_CANDIDATE__COUNT; c++) {
			policy_ref_release(r->runs[c].ref);
			if (r->runs[c].backtest)
				backtest_done(r->runs[c].backtest);
			free(r->runs[c].backtest);
		}
		recording_done(&r->recording);
		free(r);
	}
	progress_clear(&progress);
	prometheus_session_close(&session);
	if (a->n > 0)
		qsort(a->workloads, a->n, sizeof *a->workloads, by_saving);
	return rc;
}
