// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/replay_fetch.h"

#include "base/text.h"
#include "cli/term/cli.h"
#include "controller/tick/refill.h"
#include "k8s/client/k8s_request.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/load/policy_ref.h"
#include "promql/promql_source.h"
#include "replay/recording.h"

#define COLUMNS_MAX      (POLICY_SIGNALS_MAX + 3) // demand, replicas, ready
#define ARENA_MAX        ((size_t)(POLICY_SIGNALS_MAX + 1) * PROMQL_QUERY_BYTES_MAX)
#define SPAN_BYTES       (2 * NUM_TEXT_BYTES + 8)
#define SERIES_BYTES     160
#define SAID_SERIES_MAX  2
#define UNPROCESSABLE    422 // HTTP: what servers answer to a query that loads too much
#define REPLICAS_COLUMN  "replicas"
#define READY_COLUMN     "ready"
#define OWN_SPEC_METRIC  "gpuscale_current_replicas" // as in metrics.h
#define OWN_READY_METRIC "gpuscale_ready_replicas"
_Static_assert(COLUMNS_MAX <= RECORDING_COLUMNS_MAX, "a column per query");
_Static_assert(REPLAY_PAGE_POINTS <= PROMQL_STEPS_MAX, "a page is one range query");

// The metrics of kube-state-metrics with the replicas of a scale target.
static const struct {
	const char *kind, *label, *spec, *ready;
} workloads[] = {
        // clang-format off
        {"Deployment",            "deployment",            "kube_deployment_spec_replicas",            "kube_deployment_status_replicas_ready"},
        {"StatefulSet",           "statefulset",           "kube_statefulset_replicas",                "kube_statefulset_status_replicas_ready"},
        {"ReplicaSet",            "replicaset",            "kube_replicaset_spec_replicas",            "kube_replicaset_status_ready_replicas"},
        {"ReplicationController", "replicationcontroller", "kube_replicationcontroller_spec_replicas", "kube_replicationcontroller_status_ready_replicas"},
        // clang-format on
};

struct column {
	const char *name, *source, *query;
	const struct policy_signal *signal; // its rule for several series
	size_t n_missing, n_refused;        // points without a value, and of these, with several series or not finite
	char series[SAID_SERIES_MAX][SERIES_BYTES]; // where one is expected
	bool is_dropped;
};

struct fetch {
	const struct replay_fetch *options;
	struct prometheus_session session;
	struct recording *recording;
	struct column columns[COLUMNS_MAX];
	size_t n_columns, demand; // demand: the column of --demand
	size_t n_rows;            // of the whole period
	int64_t start_ms;
	const char *namespace_name, *target; // of the target
	struct arena arena;                  // of names and queries
};

// What a query that is not of the policy may return: one series.
static const struct policy_signal one_series = {.name = "", .query = "", .series = SERIES_SINGLE};

// ---- the columns ----

static void add_column(struct fetch *f, const char *name, const char *source, const char *query,
                       const struct policy_signal *signal)
{
	f->columns[f->n_columns++] = (struct column){.name = name, .source = source, .query = query, .signal = signal};
}

// Returns max(KUBE{..}) or max(OWN{..}): of kube-state-metrics, which may run several times, otherwise of the
// controller itself. metric NULL: only the controller knows this kind of target, or the units of several.
static const char *replicas_query(struct fetch *f, const char *metric, const char *label, const char *own)
{
	const struct policy *p = f->options->policy;
	const char *of_kube = "";
	if (metric)
		of_kube = arena_printf(&f->arena, "max(%s{namespace=\"%s\",%s=\"%s\"})", metric, f->namespace_name,
		                       label, f->target);
	if (f->options->target || !of_kube) // what the controller says of a fleet is about all of its targets
		return of_kube;
	return arena_printf(&f->arena, "%s%smax(%s{namespace=\"%s\",policy=\"%s\"})", of_kube, metric ? " or " : "",
	                    own, p->namespace_name, p->name);
}

static int add_replicas(struct fetch *f, struct err *e)
{
	const struct policy_ref *p = policy_ref_of(f->options->policy);
	const char *label = NULL, *spec = NULL, *ready = NULL;
	for (size_t i = 0; i < sizeof workloads / sizeof *workloads; i++)
		if (p->variants.n == 0 && strcmp(workloads[i].kind, p->target.kind) == 0) {
			label = workloads[i].label;
			spec = workloads[i].spec;
			ready = workloads[i].ready;
		}
	spec = replicas_query(f, spec, label, OWN_SPEC_METRIC);
	ready = replicas_query(f, ready, label, OWN_READY_METRIC);
	if (!spec || !ready)
		return err_no_memory(e);
	add_column(f, REPLICAS_COLUMN, NULL, spec, &one_series);
	add_column(f, READY_COLUMN, NULL, ready, &one_series);
	return 0;
}

static int find_target(struct fetch *f, struct err *e)
{
	const struct policy *p = f->options->policy;
	const char *name = f->options->target, *slash = name ? strchr(name, '/') : NULL;
	f->namespace_name = p->namespace_name;
	f->target = name ? name : policy_ref_of(p)->target.name;
	if (slash) {
		f->target = slash + 1;
		f->namespace_name = arena_printf(&f->arena, "%.*s", (int)(slash - name), name);
	}
	if (!f->namespace_name)
		return err_no_memory(e);
	if (name && (!k8s_name_is_valid(f->target) || !k8s_name_is_valid(f->namespace_name)))
		return err_set(e, ERR_INPUT, "--target: expected NAME or NAMESPACE/NAME, got \"%s\"", name);
	return 0;
}

// Keeps the series of the target, as the controller deals them out: those whose label has its name, in its namespace
// or, unless the fleet spans namespaces, without the label namespace.
static const char *query_of(struct fetch *f, size_t signal)
{
	const struct policy *p = f->options->policy;
	const struct fleet_selection *fleet = &policy_ref_of(p)->fleet;
	const char *query = p->signals[signal].query, *without = "";
	if (!f->options->target)
		return query;
	if (!fleet->spans && strcmp(f->namespace_name, p->namespace_name) == 0)
		without = arena_printf(&f->arena, "label_replace(vector(1), \"%s\", \"%s\", \"\", \"\") or ",
		                       fleet->label, f->target);
	query = without ? arena_printf(&f->arena,
	                               "(%s\n) and on (namespace, %s) (%slabel_replace(label_replace(vector(1), "
	                               "\"%s\", \"%s\", \"\", \"\"), \"namespace\", \"%s\", \"\", \"\"))",
	                               query, fleet->label, without, fleet->label, f->target, f->namespace_name)
	                : NULL;
	return query && strlen(query) < PROMQL_QUERY_BYTES_MAX ? query : NULL;
}

static int list_columns(struct fetch *f, struct err *e)
{
	const struct policy *p = f->options->policy;
	for (size_t i = 0; i < p->n_signals; i++) {
		const char *query = p->signals[i].query ? query_of(f, i) : NULL;
		if (query)
			add_column(f, p->signals[i].name, p->signals[i].source, query, &p->signals[i]);
		else if (p->signals[i].query)
			return err_set(e, ERR_LIMIT, "%s: the query is too long", p->signals[i].name);
	}
	f->demand = f->n_columns;
	if (f->options->demand)
		add_column(f, REPLAY_DEMAND_COLUMN, NULL, f->options->demand, &one_series);
	if (policy_signal_index(p, REPLICAS_COLUMN) < p->n_signals ||
	    policy_signal_index(p, READY_COLUMN) < p->n_signals)
		return err_set(
		        e, ERR_INPUT,
		        "a signal is named %s or %s, which are the columns of the recorded replicas: rename the signal",
		        REPLICAS_COLUMN, READY_COLUMN);
	return add_replicas(f, e);
}

// ---- pages ----

struct page {
	struct fetch *fetch;
	size_t column, first, n; // rows
	struct obs_series *samples;
	bool done;
	struct err error; // kind ERR_NONE: it arrived
};

static void put_series(char out[SERIES_BYTES], const struct promql_series *s)
{
	struct buf text = BUF(PROMQL_LABELS_MAX * (2 * PROMQL_LABEL_BYTES_MAX + 8));
	buf_putc(&text, '{');
	for (size_t i = 0; i < s->n_labels; i++)
		buf_printf(&text, "%s%s=\"%s\"", i ? ", " : "", s->labels[i].name, s->labels[i].value);
	buf_putc(&text, '}');
	text_show(out, SERIES_BYTES, buf_str(&text), text.len);
	buf_done(&text);
}

static void use(struct page *page, const struct promql_result *result)
{
	struct fetch *f = page->fetch;
	struct column *c = &f->columns[page->column];
	size_t n_refused, stride = f->n_columns;
	size_t n = range_samples(result, c->signal, page->samples, page->n, &n_refused);
	c->n_refused += n_refused;
	if (n_refused > 0 && c->signal->series == SERIES_SINGLE && result->n_series > 1 && !c->series[0][0])
		for (size_t i = 0; i < SAID_SERIES_MAX; i++)
			put_series(c->series[i], &result->series[i]);
	for (size_t i = 0; i < n; i++) {
		int64_t at_ms = page->samples[i].time_ms - f->start_ms, row = at_ms / f->options->step_ms;
		if (at_ms % f->options->step_ms == 0 && row >= 0 && (size_t)row < f->n_rows)
			f->recording->values[(size_t)row * stride + page->column] = page->samples[i].value;
	}
}

static void on_page(void *arg, const struct promql_result *result, const struct err *error)
{
	struct page *page = arg;
	page->done = true;
	if (error)
		page->error = *error;
	else if (result->type != PROMQL_MATRIX)
		err_set(&page->error, ERR_PROTOCOL, "expected a matrix as the answer to a range query, got a %s",
		        promql_type_names[result->type]);
	else if (result->n_warnings > 0)
		err_set(&page->error, ERR_PROTOCOL, "the answer is incomplete: %s", result->warnings[0]);
	else
		use(page, result);
}

static int fetch_page(struct page *page, struct promql_source *source, const char *query, struct err *e)
{
	const struct fetch *f = page->fetch;
	const struct promql_ticket ticket = {.namespace_name = f->options->policy->namespace_name};
	int64_t step_ms = f->options->step_ms, from_ms = f->start_ms + (int64_t)page->first * step_ms;
	const struct promql_question question = {.query = query,
	                                         .is_range = true,
	                                         .start_ms = from_ms,
	                                         .end_ms = from_ms + (int64_t)(page->n - 1) * step_ms,
	                                         .step_ms = step_ms};
	page->done = false;
	err_clear(&page->error);
	if (promql_failover_ask(source, &question, &ticket, on_page, page, e) < 0)
		return -1;
	return connections_wait(&page->fetch->session.connections, &page->done, &page->error, e);
}

static bool is_too_large(const struct err *e)
{
	return e->kind == ERR_TOO_LARGE || e->code == UNPROCESSABLE;
}

static int fetch_pages(struct fetch *f, size_t column, struct promql_source *source, const char *query, struct err *e)
{
	struct page page = {.fetch = f, .column = column};
	size_t points = REPLAY_PAGE_POINTS;
	int rc = 0;
	page.samples = calloc(points, sizeof *page.samples);
	if (!page.samples)
		return err_no_memory(e);
	while (rc == 0 && page.first < f->n_rows) {
		page.n = f->n_rows - page.first < points ? f->n_rows - page.first : points;
		progress_show(&f->session.progress, column * f->n_rows + page.first, f->n_columns * f->n_rows,
		              f->columns[column].name);
		rc = fetch_page(&page, source, query, e);
		if (rc == 0)
			page.first += page.n;
		else if (is_too_large(e) && page.n / 2 >= REPLAY_PAGE_POINTS_MIN) {
			points = page.n / 2;
			rc = 0;
		} else if (is_too_large(e) && points < REPLAY_PAGE_POINTS) {
			err_wrap(e, "even in pages of %zu points", page.n);
		}
	}
	free(page.samples);
	return rc;
}

static int fetch_column(struct fetch *f, size_t i, struct err *e)
{
	const struct column *c = &f->columns[i];
	const char *namespace_name = f->options->policy->namespace_name;
	struct buf scratch = BUF(PROMQL_QUERY_BYTES_MAX);
	struct promql_source *source = promql_sources_find(f->session.connections.promql, c->source, e);
	const char *query = source ? promql_sources_admit(f->session.connections.promql, c->source, namespace_name,
	                                                  c->query, &scratch, NULL, e)
	                           : NULL;
	int rc = query ? fetch_pages(f, i, source, query, e) : -1;
	buf_done(&scratch);
	if (rc == 0)
		return 0;
	if (e->kind == ERR_TIMEOUT)
		err_wrap(e, "try a longer --prometheus-timeout or --step");
	return err_wrap(e, "%s", c->name);
}

// ---- the recording ----

static bool has_data(const struct fetch *f, size_t row)
{
	for (size_t i = 0; i < f->n_columns; i++)
		if (!isnan(f->recording->values[row * f->n_columns + i]))
			return true;
	return false;
}

// "2026-01-05T09:00:00Z to 2026-01-06T09:00:00Z"
static const char *show_span(char out[SPAN_BYTES], int64_t from_ms, int64_t to_ms)
{
	char from[NUM_TEXT_BYTES], to[NUM_TEXT_BYTES];
	num_format_rfc3339_ms(from, from_ms);
	num_format_rfc3339_ms(to, to_ms);
	snprintf(out, SPAN_BYTES, "%s to %s", from, to);
	return out;
}

// Leaves out the rows at both ends that have no value at all.
static int trim(struct fetch *f, struct buf *notes, struct err *e)
{
	struct recording *r = f->recording;
	char span[SPAN_BYTES];
	size_t first = 0, n = f->n_rows;
	while (first < n && !has_data(f, first))
		first++;
	while (n > first && !has_data(f, n - 1))
		n--;
	if (n - first < 2)
		return err_set(e, ERR_INPUT,
		               "every query has data at fewer than two times from %s: check --since and --until "
		               "against the retention of the server, and the queries of the policy",
		               show_span(span, r->time_ms[0], r->time_ms[f->n_rows - 1]));
	if (n - first < f->n_rows)
		print_to(notes, "the queries have data only from %s\n",
		         show_span(span, r->time_ms[first], r->time_ms[n - 1]));
	r->n_rows = n - first;
	memmove(r->time_ms, r->time_ms + first, r->n_rows * sizeof *r->time_ms);
	memmove(r->values, r->values + first * f->n_columns, r->n_rows * f->n_columns * sizeof *r->values);
	return 0;
}

// The recorded replicas are those of spec.replicas, else the ready ones; without either, the column is omitted.
static void check_replicas(struct fetch *f, struct buf *notes)
{
	struct column *spec = &f->columns[f->n_columns - 2], *ready = &f->columns[f->n_columns - 1];
	bool has_spec = spec->n_missing < f->recording->n_rows, has_ready = ready->n_missing < f->recording->n_rows;
	if (!has_spec && !has_ready)
		print_to(notes, "no data for %s: what ran is unknown\n", spec->query);
	else if (!has_spec)
		print_to(notes, "no data for %s: the ready replicas stand for the requested ones\n", spec->query);
	else if (!has_ready)
		print_to(notes, "no data for %s: the ready replicas are unknown\n", ready->query);
	if (!has_spec && has_ready)
		ready->name = REPLICAS_COLUMN;
	spec->is_dropped = !has_spec;
	ready->is_dropped = !has_ready;
}

#define SEVERAL "several series where one is expected, such as %s and %s"

// The expression of --demand exists for this one backtest, so an expression without data is an error.
static int check_demand(const struct fetch *f, struct err *e)
{
	const struct column *c = &f->columns[f->demand];
	if (!f->options->demand || c->n_missing < f->recording->n_rows)
		return 0;
	if (!c->series[0][0])
		return err_set(e, ERR_INPUT, "%s: the expression has no data", c->name);
	return err_set(e, ERR_INPUT, "%s: " SEVERAL "; aggregate them, such as with sum(EXPR)", c->name, c->series[0],
	               c->series[1]);
}

static void note_missing(const struct fetch *f, struct buf *notes)
{
	for (size_t i = 0; i < f->n_columns; i++) {
		const struct column *c = &f->columns[i];
		size_t n = f->recording->n_rows;
		if (c->n_missing == 0 || c->is_dropped)
			continue;
		print_to(notes, "%s: no data at %zu of %zu times", c->name, c->n_missing, n);
		if (c->series[0][0])
			print_to(notes, "; " SEVERAL, c->series[0], c->series[1]);
		else if (c->n_refused > 0)
			print_to(notes, "; at %zu of them the value is not a finite number", c->n_refused);
		buf_putc(notes, '\n');
	}
}

static void drop_columns(struct fetch *f)
{
	struct recording *r = f->recording;
	double *to = r->values;
	r->n_columns = 0;
	for (size_t i = 0; i < f->n_columns; i++)
		if (!f->columns[i].is_dropped)
			text_show(r->names[r->n_columns++], RECORDING_NAME_BYTES, f->columns[i].name,
			          strlen(f->columns[i].name));
	for (size_t row = 0; row < r->n_rows; row++)
		for (size_t i = 0; i < f->n_columns; i++)
			if (!f->columns[i].is_dropped)
				*to++ = r->values[row * f->n_columns + i];
}

static int set_period(struct fetch *f, struct err *e)
{
	const struct replay_fetch *o = f->options;
	int64_t until_ms = o->until_ms > 0 ? o->until_ms : clock_wall_ms(&f->session.connections.clock);
	int64_t steps = o->since_ms / o->step_ms, end_ms = until_ms / o->step_ms * o->step_ms;
	if (steps < 1)
		return err_set(e, ERR_INPUT, "--since is shorter than --step: expected at least two times");
	if (recording_check_span(o->since_ms, e) < 0)
		return -1;
	if (steps + 1 > RECORDING_ROWS_MAX)
		return err_set(e, ERR_LIMIT, "%lld rows, the ceiling is %d: use a longer --step or a shorter --since",
		               (long long)steps + 1, RECORDING_ROWS_MAX);
	f->start_ms = end_ms - steps * o->step_ms;
	f->n_rows = (size_t)steps + 1;
	return f->start_ms < 0 ? err_set(e, ERR_INPUT, "the period starts before 1970: check --until and --since") : 0;
}

static int fetch_all(struct fetch *f, struct buf *notes, struct err *e)
{
	struct recording *r = f->recording;
	if (find_target(f, e) < 0 || set_period(f, e) < 0 || list_columns(f, e) < 0)
		return -1;
	r->n_columns = f->n_columns;
	if (recording_alloc(r, f->n_rows, e) < 0)
		return -1;
	for (size_t i = 0; i < f->n_rows; i++)
		r->time_ms[i] = f->start_ms + (int64_t)i * f->options->step_ms;
	for (size_t i = 0; i < f->n_rows * f->n_columns; i++)
		r->values[i] = NAN;
	for (size_t i = 0; i < f->n_columns; i++)
		if (fetch_column(f, i, e) < 0)
			return -1;
	if (trim(f, notes, e) < 0)
		return -1;
	r->step_ms = f->options->step_ms;
	for (size_t i = 0; i < r->n_rows * f->n_columns; i++)
		f->columns[i % f->n_columns].n_missing += isnan(r->values[i]) ? 1 : 0;
	if (check_demand(f, e) < 0)
		return -1;
	check_replicas(f, notes);
	note_missing(f, notes);
	drop_columns(f);
	return notes->failed ? err_no_memory(e) : 0;
}

int replay_fetch(const struct replay_fetch *options, struct recording *ret, struct buf *notes, struct err *e)
{
	memset(ret, 0, sizeof *ret);
	ret->format = RECORDING_RANGES;
	struct fetch *f = err_calloc(sizeof *f, e);
	if (!f)
		return -1;
	arena_init(&f->arena, ARENA_MAX);
	f->options = options;
	f->recording = ret;
	int rc = prometheus_session_open(&f->session, options->prometheus, e);
	if (rc == 0) {
		f->session.progress.what = "reading";
		progress_watch(&f->session.progress, f->session.connections.loop);
		rc = fetch_all(f, notes, e);
		prometheus_session_close(&f->session);
	}
	arena_done(&f->arena);
	free(f);
	return rc;
}
