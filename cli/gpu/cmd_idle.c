// SPDX-License-Identifier: Apache-2.0
// gpuscale idle: the GPUs that do nothing, who holds them, since when, and at what cost.
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/csv_text.h"
#include "base/err.h"
#include "base/json/json_write.h"
#include "base/print.h"
#include "cli/gpu/gpu_source.h"
#include "cli/objects/policy_fetch.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/flags.h"
#include "cli/term/output.h"
#include "cli/term/price_option.h"
#include "cli/term/prometheus_session.h"
#include "cli/term/table.h"
#include "insight/gpu_use_query.h"
#include "policies/price/price_book.h"
#include "promql/promql.h"
#include "promql/promql_result.h"
#include "runtime/options/flag_table.h"

#define OUTPUT_MAX  ((size_t)64 * 1024 * 1024)
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

// Idle GPUs of one model that one pod holds.
struct idle_row {
	const char *model, *namespace_name, *pod; // namespace "": no pod holds them
	double gpus;                              // parts of one for MIG instances and shared GPUs
	double last_busy_s, first_seen_s;         // since the epoch; 0: not within the lookback
};

struct idle_rows {
	struct idle_row rows[IDLE_ROWS_MAX];
	size_t n;
	struct arena names;
};

#define NAMES_MAX ((size_t)64 * 1024 * 1024)

struct question {
	struct idle_rows *rows;
	enum gpu_idle what;
};

static struct idle_row *find(struct idle_rows *rows, const char *model, const char *namespace_name, const char *pod)
{
	for (size_t i = 0; i < rows->n; i++) {
		struct idle_row *r = &rows->rows[i];
		if (strcmp(r->pod, pod) == 0 && strcmp(r->namespace_name, namespace_name) == 0 &&
		    strcmp(r->model, model) == 0)
			return r;
	}
	return NULL;
}

static struct idle_row *add(struct idle_rows *rows, const char *model, const char *namespace_name, const char *pod,
                            struct err *e)
{
	if (rows->n == IDLE_ROWS_MAX)
		return err_set(e, ERR_LIMIT, "idle GPUs of more than %d pods", IDLE_ROWS_MAX), NULL;
	struct idle_row *r = &rows->rows[rows->n];
	*r = (struct idle_row){arena_strdup(&rows->names, model),
	                       arena_strdup(&rows->names, namespace_name),
	                       arena_strdup(&rows->names, pod),
	                       0,
	                       0,
	                       0};
	if (!r->model || !r->namespace_name || !r->pod)
		return err_set(e, ERR_INTERNAL, "out of memory"), NULL;
	rows->n++;
	return r;
}

// The counts are asked for first, so that they define the rows.
static int use(void *arg, const struct promql_series *s, struct err *e)
{
	struct question *q = arg;
	const char *model = promql_label(s, GPU_USE_MODEL), *namespace_name = promql_label(s, GPU_USE_NAMESPACE);
	const char *pod = promql_label(s, GPU_USE_POD);
	double value = s->n_samples ? s->samples[0].value : 0;
	struct idle_row *r = find(q->rows, model, namespace_name, pod);
	if (!(value >= 0 && value < 1e12))
		return err_set(e, ERR_PROTOCOL, "expected a number of GPUs or a time, got %g", value);
	if (q->what == GPU_IDLE_COUNT && !r)
		r = add(q->rows, model, namespace_name, pod, e);
	if (!r)
		return q->what == GPU_IDLE_COUNT ? -1 : 0; // became idle between two questions
	if (q->what == GPU_IDLE_COUNT)
		r->gpus = value;
	else if (q->what == GPU_IDLE_LAST_BUSY)
		r->last_busy_s = value;
	else
		r->first_seen_s = value;
	return 0;
}

static int ask(const struct gpu_source *source, const char *query, int64_t now_s, struct question *q, struct err *e)
{
	static const char *const labels[] = {GPU_USE_MODEL, GPU_USE_NAMESPACE, GPU_USE_POD, NULL};
	struct promql_question question = {.query = query, .time_ms = now_s * 1000, .labels = labels};
	return gpu_source_ask(source, &question, NULL, use, q, e);
}

// Fills *ret from the default source of `c`; waits for the answers. for_s, lookback_s and matchers as in
// gpu_idle_query().
// Returns 0, or -1 and *e when a question fails or its answer is incomplete. The caller calls idle_rows_done() in both
// cases.
static int idle_fetch(struct prometheus_session *session, int64_t now_s, int64_t for_s, int64_t lookback_s,
                      const char *matchers, struct idle_rows *ret, struct err *e)
{
	ret->n = 0;
	arena_init(&ret->names, NAMES_MAX);
	struct gpu_source source;
	if (gpu_source_open(&source, session, e) < 0)
		return -1;
	struct buf query;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	int rc = 0;
	for (int what = 0; rc == 0 && what < GPU_IDLE__COUNT; what++) {
		struct question q = {.rows = ret, .what = (enum gpu_idle)what};
		buf_reset(&query);
		rc = gpu_idle_query(&query, q.what, for_s, lookback_s, matchers, e);
		rc = rc < 0 ? rc : ask(&source, buf_str(&query), now_s, &q, e);
	}
	progress_clear(&session->progress);
	buf_done(&query);
	return rc;
}

static void idle_rows_done(struct idle_rows *rows)
{
	arena_done(&rows->names);
}

// ---- amounts ----

struct idle_cost {
	const struct idle_row *row;
	double since_s; // at least since then; the start of the lookback when is_older
	bool is_older, is_priced;
	double per_hour, so_far;
};

struct idle_report {
	const struct idle_args *args;
	const struct price_book *book;
	int64_t now_s;
	struct idle_cost *costs;
	size_t n;
	double gpus, per_hour, so_far; // of all rows
};

static struct idle_cost cost_of(const struct idle_report *r, const struct idle_row *row)
{
	struct idle_cost c = {.row = row, .since_s = fmax(row->last_busy_s, row->first_seen_s)};
	double start_s = (double)(r->now_s - r->args->lookback_ms / 1000);
	// The first sample of a series may lie one step after the start.
	c.is_older = c.since_s <= start_s + GPU_USE_STEP_S;
	c.since_s = fmax(c.since_s, start_s);
	c.per_hour = row->gpus * (double)price_book_micro(r->book, row->model, NULL, &c.is_priced) / 1e6;
	c.so_far = c.per_hour * ((double)r->now_s - c.since_s) / 3600;
	return c;
}

static int by_cost(const void *a, const void *b)
{
	const struct idle_cost *x = a, *y = b;
	if (x->so_far != y->so_far)
		return x->so_far < y->so_far ? 1 : -1;
	int by_namespace = strcmp(x->row->namespace_name, y->row->namespace_name);
	return by_namespace ? by_namespace : strcmp(x->row->pod, y->row->pod);
}

static void add_costs(struct idle_report *r, const struct idle_rows *rows)
{
	for (size_t i = 0; i < rows->n; i++) {
		const struct idle_row *row = &rows->rows[i];
		const char *namespace_name = r->args->scope.namespace_name;
		if (namespace_name && strcmp(namespace_name, row->namespace_name) != 0)
			continue;
		struct idle_cost *c = &r->costs[r->n++];
		*c = cost_of(r, row);
		r->gpus += row->gpus;
		r->per_hour += c->per_hour;
		r->so_far += c->so_far;
	}
	qsort(r->costs, r->n, sizeof *r->costs, by_cost);
}

// ---- renderings ----

static double rounded(double v, double unit)
{
	return round(v * unit) / unit;
}

static void print_table(const struct idle_report *r, struct buf *out)
{
	char per_hour[24], so_far[24], age[TABLE_AGE_BYTES];
	snprintf(per_hour, sizeof per_hour, "%s/H", r->book->currency);
	snprintf(so_far, sizeof so_far, "%s-SO-FAR", r->book->currency);
	const char *const head[] = {"NAMESPACE", "POD", "GPUS", "MODEL", per_hour, so_far, "IDLE", NULL};
	struct table t;
	table_init(&t, head);
	for (size_t i = 0; i < r->n; i++) {
		const struct idle_cost *c = &r->costs[i];
		bool is_held = c->row->namespace_name[0];
		table_cell(&t, "%s", is_held ? c->row->namespace_name : UNALLOCATED);
		table_cell(&t, "%s", is_held ? c->row->pod : "");
		table_cell(&t, "%g", rounded(c->row->gpus, 100));
		table_cell(&t, "%s", c->row->model);
		table_cell(&t, "%.2f", c->per_hour);
		table_cell(&t, "%.2f", c->so_far);
		table_cell(&t, "%s%s", c->is_older ? ">" : "",
		           table_age(age, (int64_t)(c->since_s * 1000), r->now_s * 1000));
	}
	table_cell(&t, "TOTAL");
	table_cell(&t, "%s", "");
	table_cell(&t, "%g", rounded(r->gpus, 100));
	table_cell(&t, "%s", "");
	table_cell(&t, "%.2f", r->per_hour);
	table_cell(&t, "%.2f", r->so_far);
	table_cell(&t, "%s", "");
	table_finish(&t, out, 0, true);
}

static void print_json(const struct idle_report *r, struct buf *out)
{
	struct json_writer w;
	json_write_init(&w, out, 2);
	json_write_object_begin(&w);
	json_write_member_time(&w, "time", r->now_s * 1000);
	json_write_member_str(&w, "currency", r->book->currency);
	json_write_member_array(&w, "items");
	for (size_t i = 0; i < r->n; i++) {
		const struct idle_cost *c = &r->costs[i];
		bool is_held = c->row->namespace_name[0];
		json_write_object_begin(&w);
		json_write_member_str(&w, "namespace", is_held ? c->row->namespace_name : NULL);
		json_write_member_str(&w, "pod", is_held ? c->row->pod : NULL);
		json_write_member_str(&w, "model", c->row->model);
		json_write_member_f64(&w, "gpus", rounded(c->row->gpus, 1000));
		json_write_member_time(&w, "since", (int64_t)c->since_s * 1000);
		json_write_member_bool(&w, "isOlder", c->is_older);
		json_write_member_bool(&w, "isPriced", c->is_priced);
		json_write_member_f64(&w, "costPerHour", rounded(c->per_hour, 1e6));
		json_write_member_f64(&w, "costSoFar", rounded(c->so_far, 100));
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_write_member_f64(&w, "gpus", rounded(r->gpus, 1000));
	json_write_member_f64(&w, "costPerHour", rounded(r->per_hour, 1e6));
	json_write_member_f64(&w, "costSoFar", rounded(r->so_far, 100));
	json_write_object_end(&w);
	buf_putc(out, '\n');
}

static void print_csv(const struct idle_report *r, struct buf *out)
{
	buf_puts(out, "namespace,pod,model,gpus,idle_seconds,is_older,cost_per_hour,cost_so_far,currency\n");
	for (size_t i = 0; i < r->n; i++) {
		const struct idle_cost *c = &r->costs[i];
		csv_put_text(out, c->row->namespace_name);
		buf_putc(out, ',');
		csv_put_text(out, c->row->namespace_name[0] ? c->row->pod : "");
		buf_putc(out, ',');
		csv_put_text(out, c->row->model);
		print_to(out, ",%g,%.0f,%s,%.6g,%.2f,", rounded(c->row->gpus, 1000), (double)r->now_s - c->since_s,
		         c->is_older ? "true" : "false", c->per_hour, c->so_far);
		csv_put_text(out, r->book->currency);
		buf_putc(out, '\n');
	}
}

static void note_unpriced(const struct idle_report *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct idle_cost *c = &r->costs[i];
		bool is_named = c->is_priced;
		for (size_t k = 0; k < i && !is_named; k++)
			is_named = strcmp(r->costs[k].row->model, c->row->model) == 0;
		if (!is_named)
			print_error(
			        "No price: model \"%s\", counted at %.10g %s an hour; add it to a file for --prices\n",
			        c->row->model, r->book->has_assumed ? r->book->assumed_per_gpu_hour : 0,
			        r->book->currency);
	}
}

static void print_names(const struct idle_report *r, struct buf *out)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->costs[i].row->namespace_name[0])
			print_to(out, "pod/%s\n", r->costs[i].row->pod);
}

static int print(const struct idle_report *r, struct err *e)
{
	const char *namespace_name = r->args->scope.namespace_name;
	struct buf out;
	buf_init(&out, OUTPUT_MAX);
	if (output_is_document(r->args->output))
		print_json(r, &out);
	else if (r->args->output == OUTPUT_CSV)
		print_csv(r, &out);
	else if (r->args->output == OUTPUT_NAME)
		print_names(r, &out);
	else if (r->n > 0)
		print_table(r, &out);
	else if (namespace_name)
		print_error("No GPU of namespace %s has been idle that long (--for); -A: all namespaces.\n",
		            namespace_name);
	else
		print_error("No GPU has been idle that long (--for).\n");
	int rc = output_write(&out, r->args->output, e);
	note_unpriced(r);
	buf_done(&out);
	return rc;
}

static int run(const struct idle_args *a, const struct price_book *book, struct err *e)
{
	struct prometheus_session session;
	if (prometheus_session_open(&session, &a->prometheus, e) < 0)
		return -1;
	struct idle_rows *rows = calloc(1, sizeof *rows);
	struct idle_report r = {.args = a, .book = book, .now_s = clock_wall_ms(&session.connections.clock) / 1000};
	r.costs = calloc(IDLE_ROWS_MAX, sizeof *r.costs);
	int rc = rows && r.costs ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
	if (rc == 0) {
		rc = idle_fetch(&session, r.now_s, a->for_ms / 1000, a->lookback_ms / 1000,
		                series_options_matchers(&a->series), rows, e);
		if (rc == 0) {
			add_costs(&r, rows);
			rc = print(&r, e);
		}
		idle_rows_done(rows);
	}
	free(r.costs);
	free(rows);
	prometheus_session_close(&session);
	return rc;
}

int cmd_idle(int argc, char **argv)
{
	struct idle_args args = {.for_ms = FOR_MS, .lookback_ms = LOOKBACK_MS};
	prometheus_options_init(&args.prometheus);
	args_parse(&command, argc, argv, &args);

	struct err e;
	struct arena arena;
	struct price_book book;
	arena_init(&arena, PRICE_OPTION_ARENA_MAX);
	int code = price_option_read(args.prices, &arena, &book, "gpuscale idle") < 0 ? EXIT_FAILED : EXIT_OK;
	if (code == EXIT_OK && (policy_scope_resolve(&args.scope, &arena, &e) < 0 || run(&args, &book, &e) < 0))
		code = command_failed("gpuscale idle", &e);
	arena_done(&arena);
	return code;
}
