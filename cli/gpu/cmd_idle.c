// SPDX-License-Identifier: Apache-2.0
// gpuscale idle: the GPUs that do nothing, who holds them, since when, and at what cost.
#include "base/csv_text.h"
#include "cli/objects/policy_fetch.h"
#include "cli/term/cli.h"
#include "insight/gpu_use_query.h"
#include "promql/promql.h"

#define FOR_MS      INT64_C(1800000)
#define LOOKBACK_MS INT64_C(86400000)
#define LONGEST_MS  (31 * INT64_C(86400000))
#define UNALLOCATED "<unallocated>"

struct idle_args {
	struct prometheus_options prometheus;
	struct series_options series;
	struct policy_scope scope;
	const char *prices;
	int64_t for_ms, lookback_ms;
	enum output_format output;
};

static void check(void *options, struct argp_state *state)
{
	const struct idle_args *a = options;
	if (a->for_ms > a->lookback_ms || a->lookback_ms > LONGEST_MS)
		print_usage(state, "--for must be at most --lookback, and --lookback at most 31d");
}

// clang-format off
#define FLAGS_OF struct idle_args
static const struct flag_set command = {
	.args = "",
	.about = "List the GPUs that do nothing, from the series of gpuscale-exporter or dcgm-exporter: which pod holds them, "
	         "since when, the price per hour and the cost so far, the most expensive first. A GPU is idle while its "
	         "GPU_UTIL, SM_ACTIVE and GR_ENGINE_ACTIVE, those that exist, stay below 5 %. It is listed after --for, unless "
	         "the pod that holds it changed in this time. With -A, GPUs that no pod holds are listed as <unallocated>. "
	         "Changes nothing."
	         "\vExit status: 0 done, 1 failed, 2 wrong usage.",
	.check = check,
	.flags = (const struct flag[]){
		FLAG_DURATION(1, 0, "for", for_ms, GPU_USE_STEP_S * 1000, 0, "list GPUs that have been idle for at least this long (default 30m)"),
		FLAG_DURATION(1, 0, "lookback", lookback_ms, GPU_USE_STEP_S * 1000, 0, "how far back to look for the start of the idle time (default 24h, at most 31d)"),
		FLAG_PRICES(1, prices),
		FLAG_OUTPUT(1, output, OUTPUTS_LIST | OUTPUT_SET(CSV), "table, wide, json, yaml, csv or name (default table)"),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 0),
		FLAG_INCLUDE(&series_flags, series, 0),
		FLAG_INCLUDE(&namespace_flags, scope, 0),
		FLAG_END}};
// clang-format on

// ---- queries ----

#define IDLE_ROWS_MAX 5000 // PROMQL_SERIES_MAX
#define NAMES_MAX     ((size_t)64 * 1024 * 1024)

// Idle GPUs of one model that one pod holds.
struct idle_row {
	const char *model, *namespace_name, *pod; // namespace "": no pod holds them
	double gpus;                              // parts of one for MIG instances and shared GPUs
	double last_busy_s, first_seen_s;         // since the epoch; 0: not within the lookback
	double since_s;                           // at least since then; the start of the lookback when is_older
	bool is_older, is_priced;
	double per_hour, so_far;
};

struct idle_report {
	const struct idle_args *args;
	const struct price_book *book;
	int64_t now_s;
	struct idle_row *rows; // IDLE_ROWS_MAX
	size_t n;
	struct arena names;
	enum gpu_idle asked;           // by the query in progress
	double gpus, per_hour, so_far; // of all rows
};

static struct idle_row *find(struct idle_report *r, const char *model, const char *namespace_name, const char *pod)
{
	for (struct idle_row *row = r->rows; row < r->rows + r->n; row++)
		if (strcmp(row->pod, pod) == 0 && strcmp(row->namespace_name, namespace_name) == 0 &&
		    strcmp(row->model, model) == 0)
			return row;
	return NULL;
}

static struct idle_row *add(struct idle_report *r, const char *model, const char *namespace_name, const char *pod,
                            struct err *e)
{
	if (r->n == IDLE_ROWS_MAX)
		return err_set(e, ERR_LIMIT, "idle GPUs of more than %d pods", IDLE_ROWS_MAX), NULL;
	struct idle_row *row = &r->rows[r->n];
	row->model = arena_strdup(&r->names, model);
	row->namespace_name = arena_strdup(&r->names, namespace_name);
	row->pod = arena_strdup(&r->names, pod);
	if (!row->model || !row->namespace_name || !row->pod)
		return err_no_memory(e), NULL;
	r->n++;
	return row;
}

// The counts are asked for first, so that they define the rows.
static int take(void *arg, const struct promql_series *s, struct err *e)
{
	struct idle_report *r = arg;
	const char *model = promql_label(s, GPU_USE_MODEL), *namespace_name = promql_label(s, GPU_USE_NAMESPACE);
	const char *pod = promql_label(s, GPU_USE_POD);
	double value = s->n_samples ? s->samples[0].value : 0;
	struct idle_row *row = find(r, model, namespace_name, pod);
	if (!(value >= 0 && value < 1e12))
		return err_set(e, ERR_PROTOCOL, "expected a number of GPUs or a time, got %g", value);
	if (r->asked == GPU_IDLE_COUNT && !row)
		row = add(r, model, namespace_name, pod, e);
	if (!row)
		return r->asked == GPU_IDLE_COUNT ? -1 : 0; // became idle between two questions
	if (r->asked == GPU_IDLE_COUNT)
		row->gpus = value;
	else if (r->asked == GPU_IDLE_LAST_BUSY)
		row->last_busy_s = value;
	else
		row->first_seen_s = value;
	return 0;
}

// Fills the rows of all namespaces. Fails when a question fails or its answer is incomplete.
static int fetch(struct prometheus_session *session, struct idle_report *r, struct err *e)
{
	static const char *const labels[] = {GPU_USE_MODEL, GPU_USE_NAMESPACE, GPU_USE_POD, NULL};
	const struct idle_args *a = r->args;
	struct buf query = BUF(PROMQL_QUERY_BYTES_MAX);
	if (prometheus_session_find_gpus(session, e) < 0)
		return -1;
	int rc = 0;
	for (int what = 0; rc == 0 && what < GPU_IDLE__COUNT; what++) {
		r->asked = (enum gpu_idle)what;
		buf_reset(&query);
		rc = gpu_idle_query(&query, r->asked, a->for_ms / 1000, a->lookback_ms / 1000,
		                    series_options_matchers(&a->series), e);
		const struct promql_question question = {
		        .query = buf_str(&query), .time_ms = r->now_s * 1000, .labels = labels};
		if (rc == 0)
			rc = prometheus_session_ask_gpus(session, &question, take, r, e);
	}
	progress_clear(&session->progress);
	buf_done(&query);
	return rc;
}

// ---- amounts ----

static int by_cost(const void *a, const void *b)
{
	const struct idle_row *x = a, *y = b;
	if (x->so_far != y->so_far)
		return x->so_far < y->so_far ? 1 : -1;
	int by_namespace = strcmp(x->namespace_name, y->namespace_name);
	return by_namespace ? by_namespace : strcmp(x->pod, y->pod);
}

// Keeps the rows of the namespace and adds up their costs.
static void add_costs(struct idle_report *r)
{
	const char *namespace_name = r->args->scope.namespace_name;
	double now_s = (double)r->now_s, start_s = now_s - (double)(r->args->lookback_ms / 1000);
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++) {
		struct idle_row *row = &r->rows[n];
		if (namespace_name && strcmp(namespace_name, r->rows[i].namespace_name) != 0)
			continue;
		*row = r->rows[i];
		row->since_s = fmax(row->last_busy_s, row->first_seen_s);
		// The first sample of a series may lie one step after the start.
		row->is_older = row->since_s <= start_s + GPU_USE_STEP_S;
		row->since_s = fmax(row->since_s, start_s);
		row->per_hour = row->gpus * (double)price_book_micro(r->book, row->model, NULL, &row->is_priced) / 1e6;
		row->so_far = row->per_hour * (now_s - row->since_s) / 3600;
		r->gpus += row->gpus;
		r->per_hour += row->per_hour;
		r->so_far += row->so_far;
		n++;
	}
	r->n = n;
	qsort(r->rows, n, sizeof *r->rows, by_cost);
}

// ---- renderings ----

static double rounded(double v, double unit)
{
	return round(v * unit) / unit;
}

static void print_table(const struct idle_report *r, struct buf *out)
{
	char head[TABLE_CELL_BYTES];
	const char *currency = r->book->currency;
	struct table t;
	snprintf(head, sizeof head, "NAMESPACE\tPOD\tGPUS\tMODEL\t%s/H\t%s-SO-FAR\tIDLE", currency, currency);
	table_init(&t, head);
	for (size_t i = 0; i < r->n; i++) {
		const struct idle_row *c = &r->rows[i];
		bool is_held = c->namespace_name[0];
		table_put(&t, "%s\t%s\t%g\t%s\t%.2f\t%.2f\t%s%s", is_held ? c->namespace_name : UNALLOCATED,
		          is_held ? c->pod : "", rounded(c->gpus, 100), c->model, c->per_hour, c->so_far,
		          c->is_older ? ">" : "", table_age((int64_t)(c->since_s * 1000), r->now_s * 1000).text);
	}
	table_put(&t, "TOTAL\t\t%g\t\t%.2f\t%.2f\t", rounded(r->gpus, 100), r->per_hour, r->so_far);
	table_finish(&t, out, 0, true);
}

static void print_json(const struct idle_report *r, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out, 2);
	json_write_format(&w, "{time:%jd,currency:%s,items:[", r->now_s * 1000, r->book->currency);
	for (size_t i = 0; i < r->n; i++) {
		const struct idle_row *c = &r->rows[i];
		bool is_held = c->namespace_name[0];
		json_write_format(&w, "{namespace:%s,pod:%s,model:%s,gpus:%g,since:%jd",
		                  is_held ? c->namespace_name : NULL, is_held ? c->pod : NULL, c->model,
		                  rounded(c->gpus, 1000), (int64_t)c->since_s * 1000);
		json_write_format(&w, "isOlder:%i,isPriced:%i,costPerHour:%g,costSoFar:%g}", c->is_older, c->is_priced,
		                  rounded(c->per_hour, 1e6), rounded(c->so_far, 100));
	}
	json_write_format(&w, "],gpus:%g,costPerHour:%g,costSoFar:%g}", rounded(r->gpus, 1000),
	                  rounded(r->per_hour, 1e6), rounded(r->so_far, 100));
}

static void print_csv(const struct idle_report *r, struct buf *out)
{
	buf_puts(out, "namespace,pod,model,gpus,idle_seconds,is_older,cost_per_hour,cost_so_far,currency\n");
	for (size_t i = 0; i < r->n; i++) {
		const struct idle_row *c = &r->rows[i];
		csv_put_text(out, c->namespace_name);
		buf_putc(out, ',');
		csv_put_text(out, c->namespace_name[0] ? c->pod : "");
		buf_putc(out, ',');
		csv_put_text(out, c->model);
		print_to(out, ",%g,%.0f,%s,%.6g,%.2f,", rounded(c->gpus, 1000), (double)r->now_s - c->since_s,
		         c->is_older ? "true" : "false", c->per_hour, c->so_far);
		csv_put_text(out, r->book->currency);
		buf_putc(out, '\n');
	}
}

static void note_unpriced(const struct idle_report *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct idle_row *c = &r->rows[i];
		bool is_named = c->is_priced;
		for (size_t k = 0; k < i && !is_named; k++)
			is_named = strcmp(r->rows[k].model, c->model) == 0;
		if (!is_named)
			print_error(
			        "No price: model \"%s\", counted at %.10g %s an hour; add it to a file for --prices\n",
			        c->model, r->book->has_assumed ? r->book->assumed_per_gpu_hour : 0, r->book->currency);
	}
}

static int print(const struct idle_report *r, struct err *e)
{
	const char *namespace_name = r->args->scope.namespace_name;
	struct buf out = BUF(OUTPUT_MAX);
	if (output_is_document(r->args->output))
		print_json(r, &out);
	else if (r->args->output == OUTPUT_CSV)
		print_csv(r, &out);
	else if (r->args->output == OUTPUT_NAME) {
		for (size_t i = 0; i < r->n; i++)
			if (r->rows[i].namespace_name[0])
				print_to(&out, "pod/%s\n", r->rows[i].pod);
	} else if (r->n > 0)
		print_table(r, &out);
	else if (namespace_name)
		print_error("No GPU of namespace %s has been idle that long (--for); -A: all namespaces.\n",
		            namespace_name);
	else
		print_error("No GPU has been idle that long (--for).\n");
	int rc = output_write(&out, r->args->output, e);
	note_unpriced(r);
	return rc;
}

static int run(const struct idle_args *a, const struct price_book *book, struct err *e)
{
	struct prometheus_session session;
	if (prometheus_session_open(&session, &a->prometheus, e) < 0)
		return -1;
	struct idle_report r = {.args = a, .book = book, .names = ARENA(NAMES_MAX)};
	r.now_s = clock_wall_ms(&session.connections.clock) / 1000;
	r.rows = err_calloc(IDLE_ROWS_MAX * sizeof *r.rows, e);
	int rc = r.rows ? fetch(&session, &r, e) : -1;
	if (rc == 0) {
		add_costs(&r);
		rc = print(&r, e);
	}
	free(r.rows);
	arena_done(&r.names);
	prometheus_session_close(&session);
	return rc;
}

int cmd_idle(int argc, char **argv)
{
	struct idle_args args = {.for_ms = FOR_MS, .lookback_ms = LOOKBACK_MS};
	prometheus_options_init(&args.prometheus);
	args_parse(&command, argc, argv, &args);

	struct err e;
	struct arena arena = ARENA(PRICE_OPTION_ARENA_MAX);
	struct price_book book;
	int code = price_option_read(args.prices, &arena, &book, "gpuscale idle") < 0 ? EXIT_FAILED : EXIT_OK;
	if (code == EXIT_OK && (policy_scope_resolve(&args.scope, &arena, &e) < 0 || run(&args, &book, &e) < 0))
		code = command_failed("gpuscale idle", &e);
	arena_done(&arena);
	return code;
}
