// SPDX-License-Identifier: Apache-2.0
// gpuscale diagnose: why the GPUs of each workload are slow or idle, and what to do.
#include <event2/event.h>

#include "base/hash.h"
#include "cli/objects/policy_fetch.h"
#include "cli/term/cli.h"
#include "insight/verdict.h"
#include "insight/workload_set.h"
#include "promql/promql.h"
#include "promql/similar.h"

#define WINDOW_MAX_MS  INT64_C(86400000)
#define WATCH_S        15
#define CELL_BYTES     64
#define EVIDENCE_BYTES 256

static const char *const print_names[] = {"rules", "page", NULL};

struct diagnose_args {
	struct prometheus_options prometheus;
	struct policy_scope scope;
	const char *prices, *workload;
	int64_t window_ms;
	enum output_format output;
	int print; // -1: nothing
	struct fail_options fail_on;
	bool watch, summary;
};

enum { FAIL_FINDINGS, FAIL_FAULTS, FAIL_METRIC__COUNT };
static const struct fail_metric fail_metrics[] = {{"findings", FAIL_COUNT}, {"faults", FAIL_COUNT}};
_Static_assert(sizeof fail_metrics / sizeof *fail_metrics == FAIL_METRIC__COUNT, "one row per metric");

static void check_args(void *options, struct argp_state *state)
{
	const struct diagnose_args *a = options;
	bool is_table = a->output == OUTPUT_TABLE || a->output == OUTPUT_WIDE;
	if (a->summary && !is_table)
		print_usage(state, "--summary is a table: leave -o out; -o json contains the summary");
	if (a->watch && (!is_table || a->summary || a->fail_on.n))
		print_usage(state, "-w prints a table: it cannot be used together with -o, --summary or --fail-on");
}

// clang-format off
#define FLAGS_OF struct diagnose_args
static const struct flag_set command = {
	.args = "[WORKLOAD]",
	.about = "Show why the GPUs of each workload are slow or idle, and what to do: one verdict per pod, from the series of "
	         "gpuscale-exporter or dcgm-exporter, with those of cAdvisor, node-exporter and the training hook where they "
	         "exist. WORKLOAD is a pod, a training job, or a prefix of the names of pods."
	         "\vExit status: 0 done, 1 failed, 2 wrong usage, 3 when --fail-on is met.",
	.surplus = ": expected one workload",
	.check = check_args,
	.flags = (const struct flag[]){
		FLAG_DURATION(1, 0, "for", window_ms, 1000, WINDOW_MAX_MS, "average over this time (default 5m, at most 1d); idle means idle for six times as long"),
		FLAG_OUTPUT(1, output, OUTPUTS_LIST, OUTPUTS_LIST_HELP),
		FLAG_SWITCH(1, 0, "summary", summary, "the share of GPUs below 50, 70 and 85 % of activity, and a row per verdict"),
		FLAG_FAIL_ON(1, fail_on, "faults, or findings, which are faults and advice, or 'findings > 2'"),
		FLAG_WATCH(1, watch, "print the table, then each workload whose verdict changes"),
		FLAG_PRICES(1, prices),
		FLAG_CHOICE(1, 0, "print", "rules|page", print, print_names, 0, "print the recording rules and the alert (rules), or a section per verdict in Markdown (page), from the same table"),
		FLAG_ARGUMENT(workload),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 0),
		FLAG_INCLUDE(&namespace_flags, scope, 0),
		FLAG_END}};
// clang-format on

// ---- queries ----

#define SERIES_SPARE 200 // GPUs and pods that come between two queries

// The measures of a query, by their number in it.
struct question {
	struct workload_set *set;
	enum verdict_measure measures[FUSE_MAX];
	int n;
};

static int take_measure(void *arg, const struct promql_series *s, struct err *e)
{
	struct question *q = arg;
	int i = fuse_index(s);
	if (i >= 0 && i < q->n)
		workload_set_add_value(q->set, q->measures[i], s);
	return 0;
}

static int ask(struct prometheus_session *session, const struct buf *query, const char *const *labels,
               prometheus_series_fn *take, void *arg, struct err *e)
{
	struct promql_question question = {.query = buf_str(query), .labels = labels};
	return query->failed ? err_set(e, ERR_INTERNAL, "out of memory for the query")
	                     : prometheus_session_ask_gpus(session, &question, take, arg, e);
}

// How many measures fit into one answer of PROMQL_SERIES_MAX series.
static int measures_together(const struct workload_set *s)
{
	size_t series = s->n_gpus > s->n ? s->n_gpus : s->n;
	size_t n = PROMQL_SERIES_MAX / (series + SERIES_SPARE);
	return n < 1 ? 1 : n > FUSE_MAX ? FUSE_MAX : (int)n;
}

// Asks for the measures from `first` up to `end`.
static int fetch_measures(struct prometheus_session *session, int64_t window_s, struct workload_set *set, int first,
                          int end, struct err *e)
{
	static const char *const labels[] = {FUSE_LABEL, "UUID", "GPU_I_ID", "namespace", "pod", "nodename", NULL};
	int together = measures_together(set), rc = 0;
	struct buf query = BUF(PROMQL_QUERY_BYTES_MAX), one = BUF(PROMQL_QUERY_BYTES_MAX);
	while (rc == 0 && first < end) {
		struct question q = {.set = set};
		buf_reset(&query);
		for (; q.n < together && first < end; q.n++) {
			q.measures[q.n] = (enum verdict_measure)first++;
			buf_reset(&one);
			verdict_query_measure(&one, q.measures[q.n], window_s);
			fuse_add(&query, buf_str(&one), q.n);
		}
		rc = ask(session, &query, labels, take_measure, &q, e);
	}
	buf_done(&one);
	buf_done(&query);
	return rc;
}

// Metrics of other exporters refine a verdict but are optional.
static void fetch_optional(struct prometheus_session *session, int64_t window_s, struct workload_set *set)
{
	struct err e;
	struct buf query = BUF(PROMQL_QUERY_BYTES_MAX);
	verdict_query_pod_labels(&query);
	if (ask(session, &query, NULL, workload_set_add_labels, set, &e) < 0)
		print_error("Labels of pods are not used: %s\n", e.msg);
	buf_done(&query);
	if (fetch_measures(session, window_s, set, MEASURE_CPU, MEASURE__COUNT, &e) < 0)
		print_error("Measures of hosts and trainers are not used: %s\n", e.msg);
}

static int fetch(struct prometheus_session *session, int64_t window_s, struct workload_set *set, struct err *e)
{
	struct buf query = BUF(PROMQL_QUERY_BYTES_MAX);
	verdict_query_owners(&query);
	int rc = ask(session, &query, verdict_owner_labels, workload_set_add_owner, set, e);
	buf_done(&query);
	if (rc < 0 || workload_set_index(set, e) < 0)
		return -1;
	if (set->n == 0)
		return err_set(e, ERR_NOT_FOUND,
		               "no GPU reports: check that gpuscale-exporter or dcgm-exporter is scraped "
		               "(DCGM_FI_DEV_FB_USED), or the exporter of AMD or Intel");
	if (fetch_measures(session, window_s, set, 0, MEASURE_CPU, e) < 0)
		return -1;
	fetch_optional(session, window_s, set);
	return workload_set_decide(set, e);
}

// Fills and decides *ret_set from the source of `c` that is called default, or is the only one, over a window of
// `window_s` seconds; waits for the answers. At most 12 queries for 1,000 GPUs: several measures share one. Returns -1
// and *e when an answer about the GPUs fails or is incomplete, ERR_NOT_FOUND when no GPU reports; a failure about pods
// and nodes is reported on stderr, and their measures are missing. The caller calls workload_set_done() in either case.
static int diagnose_fetch(struct prometheus_session *session, int64_t window_s, struct workload_set *ret_set,
                          struct err *e)
{
	workload_set_init(ret_set);
	int rc = prometheus_session_find_gpus(session, e) < 0 ? -1 : fetch(session, window_s, ret_set, e);
	progress_clear(&session->progress);
	return rc;
}

struct diagnosis {
	const struct diagnose_args *args;
	const struct price_book *book;
	struct prometheus_session *session;
	struct workload_set set;
	const bool *only;   // by workload: print it; NULL: all
	struct line *lines; // the selected workloads, worst first
	size_t n_lines;
};

static const double activity_limits[] = {0.5, 0.7, 0.85};
#define N_LIMITS (sizeof activity_limits / sizeof activity_limits[0])

// A selected workload with its costs, in the currency of the book per hour; NaN: unknown.
struct line {
	const struct workload *workload;
	double cost, lost;
};

// ---- selection and costs ----

// Whether the arguments select the workload.
static bool selects(const struct diagnosis *r, size_t workload)
{
	const struct workload *w = &r->set.workloads[workload];
	const char *namespace_name = r->args->scope.namespace_name, *name = r->args->workload;
	size_t len = name ? strlen(name) : 0;
	if (namespace_name && strcmp(w->namespace_name, namespace_name) != 0)
		return false;
	return !name || strcmp(w->name, name) == 0 || strcmp(w->job, name) == 0 ||
	       (strncmp(w->name, name, len) == 0 && w->name[len] == '-');
}

// A shared GPU counts in even parts, an instance as its share of the GPU. What a model without a price costs is
// unknown.
static double cost_of(const struct diagnosis *r, const struct workload_gpu *g)
{
	bool is_priced;
	int64_t micro = price_book_micro(r->book, g->model, NULL, &is_priced);
	return is_priced ? (double)micro / 1e6 / g->holders * (g->instance[0] ? g->values[MEASURE_SHARE] : 1) : NAN;
}

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	enum verdict_level xl = verdict_infos[x->workload->row->verdict].level;
	enum verdict_level yl = verdict_infos[y->workload->row->verdict].level;
	if (xl != yl)
		return xl > yl ? -1 : 1;
	double xm = isnan(x->lost) ? 0 : x->lost, ym = isnan(y->lost) ? 0 : y->lost;
	if (xm > ym || xm < ym)
		return xm > ym ? -1 : 1;
	return (x->workload > y->workload) - (x->workload < y->workload);
}

// Replaces r->lines, which run() frees. Returns -1 and *e when memory is exhausted.
static int select_lines(struct diagnosis *r, struct err *e)
{
	const struct workload_set *s = &r->set;
	free(r->lines);
	struct line *l = r->lines = err_calloc((s->n ? s->n : 1) * sizeof *l, e);
	if (!l)
		return -1;
	r->n_lines = 0;
	for (size_t i = 0; i < s->n; i++)
		l[i].workload = &s->workloads[i];
	for (size_t i = 0; i < s->n_gpus; i++)
		l[s->gpus[i].workload].cost += cost_of(r, &s->gpus[i]);
	for (size_t i = 0; i < s->n; i++) {
		const struct workload *w = &s->workloads[i];
		if (!selects(r, i) || (r->only && !r->only[i]))
			continue;
		l[r->n_lines] = l[i];
		l[r->n_lines++].lost = l[i].cost * verdict_lost_ratio(w->row->verdict, w->values);
	}
	qsort(l, r->n_lines, sizeof *l, compare_lines);
	return 0;
}

// ---- table ----

// Of a verdict or a level.
static enum table_tone tone_of(const char *word)
{
	static const enum table_tone tones[LEVEL__COUNT] = {
	        [LEVEL_OK] = TONE_GOOD, [LEVEL_ADVICE] = TONE_WAITING, [LEVEL_FAULT] = TONE_BAD};
	for (int v = 0; v < VERDICT__COUNT; v++) {
		const struct verdict_info *info = &verdict_infos[v];
		if (strcmp(word, info->name) == 0 || strcmp(word, verdict_level_names[info->level]) == 0)
			return tones[info->level];
	}
	return TONE_PLAIN;
}

static void put_value(struct buf *out, enum verdict_measure m, double value)
{
	const struct verdict_measure_info *info = &verdict_measures[m];
	if (info->unit == UNIT_RATIO)
		print_to(out, "%s %.0f %%", info->label, 100 * value);
	else if (info->unit == UNIT_BYTES_PER_SECOND)
		print_to(out, "%s %.1f GB/s", info->label, value / 1e9);
	else if (info->unit == UNIT_PER_SECOND)
		print_to(out, "%s %.3g", info->label, value);
	else
		print_to(out, "%s %.0f", info->label, value < 1 ? ceil(value) : value);
}

static void put_evidence(struct buf *out, const struct workload *w)
{
	enum verdict_measure measures[VERDICT_EVIDENCE_MAX];
	size_t n = verdict_evidence(w->row, w->values, measures);
	buf_reset(out);
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, i ? ", " : "");
		put_value(out, measures[i], w->values[measures[i]]);
	}
}

// Prints a row per workload, faults first, then by money lost.
static void print_table(const struct diagnosis *r, bool with_head, struct buf *out)
{
	struct table t;
	struct buf evidence = BUF(EVIDENCE_BYTES);
	table_init_wide(&t, "NAMESPACE\tWORKLOAD\tGPUS\t!VERDICT\tCOST/H\tLOST/H\tEVIDENCE\tADVICE", false, tone_of);
	for (size_t i = 0; i < r->n_lines; i++) {
		const struct line *l = &r->lines[i];
		const struct workload *w = l->workload;
		const struct verdict_info *v = &verdict_infos[w->row->verdict];
		put_evidence(&evidence, w);
		table_put(&t, "%s\t%s\t%zu\t%s\t%s\t%s\t%s\t%s", w->namespace_name[0] ? w->namespace_name : "-",
		          w->name, w->n_gpus, v->name, table_amount(l->cost, "").text, table_amount(l->lost, "").text,
		          evidence.len ? buf_str(&evidence) : "-", v->advice);
	}
	table_finish(&t, out, 0, with_head);
	buf_done(&evidence);
}

// ---- summary ----

struct totals {
	size_t workloads[VERDICT__COUNT];
	double cost[VERDICT__COUNT], lost[VERDICT__COUNT]; // of the known ones
	size_t below[N_LIMITS], measured, gpus;
};

static void count_gpus(const struct diagnosis *r, struct totals *t)
{
	const struct workload_set *s = &r->set;
	for (size_t i = 0; i < s->n_gpus; i++) {
		const struct workload_gpu *g = &s->gpus[i];
		bool is_first = i == 0 || strcmp(g[-1].uuid, g->uuid) != 0 || strcmp(g[-1].instance, g->instance) != 0;
		// A shared device counts once, for the first of its holders that is selected.
		for (size_t k = i; !is_first && k-- > 0 && strcmp(s->gpus[k].uuid, g->uuid) == 0 &&
		                   strcmp(s->gpus[k].instance, g->instance) == 0;)
			is_first |= !selects(r, s->gpus[k].workload);
		if (!is_first || !selects(r, g->workload))
			continue;
		double activity = isnan(g->values[MEASURE_SM]) ? g->values[MEASURE_BUSY] : g->values[MEASURE_SM];
		t->gpus++;
		t->measured += isnan(activity) ? 0 : 1;
		for (size_t k = 0; k < N_LIMITS; k++)
			t->below[k] += activity < activity_limits[k];
	}
}

static struct totals totals_of(const struct diagnosis *r)
{
	struct totals t = {0};
	count_gpus(r, &t);
	for (const struct line *l = r->lines; l < r->lines + r->n_lines; l++) {
		enum verdict v = l->workload->row->verdict;
		t.workloads[v]++;
		t.cost[v] += isnan(l->cost) ? 0 : l->cost;
		t.lost[v] += isnan(l->lost) ? 0 : l->lost;
	}
	return t;
}

static void print_summary(const struct diagnosis *r, struct buf *out)
{
	struct totals totals = totals_of(r);
	struct table t;
	for (size_t k = 0; k < N_LIMITS; k++)
		print_to(out, "GPUs below %.0f %% of activity: %zu of %zu (%.0f %%)\n", 100 * activity_limits[k],
		         totals.below[k], totals.measured,
		         totals.measured ? 100.0 * (double)totals.below[k] / (double)totals.measured : 0);
	if (totals.measured < totals.gpus)
		print_to(out, "GPUs without a measured activity: %zu\n", totals.gpus - totals.measured);
	buf_putc(out, '\n');
	table_init_wide(&t, "VERDICT\t!LEVEL\tWORKLOADS\tCOST/H\tLOST/H\tMEANS", false, tone_of);
	for (int v = 0; v < VERDICT__COUNT; v++) {
		const struct verdict_info *info = &verdict_infos[v];
		if (totals.workloads[v] == 0)
			continue;
		table_put(&t, "%s\t%s\t%zu\t%.2f\t%.2f\t%s", info->name, verdict_level_names[info->level],
		          totals.workloads[v], totals.cost[v], totals.lost[v], info->summary);
	}
	table_finish(&t, out, 0, true);
}

// ---- JSON ----

static void put_item(struct json_writer *w, const struct line *l)
{
	const struct workload *it = l->workload;
	const struct verdict_info *v = &verdict_infos[it->row->verdict];
	enum verdict_measure evidence[VERDICT_EVIDENCE_MAX];
	size_t n = verdict_evidence(it->row, it->values, evidence);
	json_write_format(w, "{namespace:%s,workload:%s,job:%s,rank:%s,gpus:%zu", it->namespace_name, it->name, it->job,
	                  it->rank, it->n_gpus);
	json_write_format(w, "verdict:%s,level:%s,summary:%s,advice:%s", v->name, verdict_level_names[v->level],
	                  v->summary, v->advice);
	json_write_format(w, "costPerHour:%g,lostPerHour:%g", l->cost, l->lost);
	json_write_member_array(w, "evidence");
	for (size_t i = 0; i < n; i++)
		json_write_str(w, verdict_measures[evidence[i]].name);
	json_write_format(w, "],measures:{");
	for (int m = 0; m < MEASURE__COUNT; m++)
		if (!isnan(it->values[m]))
			json_write_member_f64(w, verdict_measures[m].name, it->values[m]);
	json_write_format(w, "}}");
}

static void put_summary(struct json_writer *w, const struct totals *t)
{
	json_write_format(w, "summary:{gpus:%zu,measuredGPUs:%zu,gpusBelow:{", t->gpus, t->measured);
	for (size_t k = 0; k < N_LIMITS; k++) {
		char key[CELL_BYTES];
		snprintf(key, sizeof key, "%.0f", 100 * activity_limits[k]);
		json_write_member_i64(w, key, (int64_t)t->below[k]);
	}
	json_write_format(w, "},verdicts:{");
	for (int v = 0; v < VERDICT__COUNT; v++)
		if (t->workloads[v] > 0)
			json_write_member_i64(w, verdict_infos[v].name, (int64_t)t->workloads[v]);
	json_write_format(w, "}}");
}

static void print_json(const struct diagnosis *r, struct buf *out)
{
	struct totals totals = totals_of(r);
	struct json_writer w = JSON_WRITER(out, 2);
	json_write_format(&w, "{time:%jd,windowSeconds:%ld,currency:%s,items:[",
	                  clock_wall_ms(&r->session->connections.clock), r->args->window_ms / 1000, r->book->currency);
	for (size_t i = 0; i < r->n_lines; i++)
		put_item(&w, &r->lines[i]);
	json_write_array_end(&w);
	put_summary(&w, &totals);
	json_write_object_end(&w);
}

// ---- one look ----

static int print_once(struct diagnosis *l, double *counts, struct err *e)
{
	const char *namespace_name = l->args->scope.namespace_name;
	struct buf out = BUF(OUTPUT_MAX);
	if (select_lines(l, e) < 0)
		return -1;
	for (size_t i = 0; i < l->n_lines; i++) {
		enum verdict_level level = verdict_infos[l->lines[i].workload->row->verdict].level;
		counts[FAIL_FINDINGS] += level != LEVEL_OK;
		counts[FAIL_FAULTS] += level == LEVEL_FAULT;
	}
	if (l->n_lines == 0)
		return err_set(e, ERR_NOT_FOUND,
		               "none of the %zu workloads with a GPU is in namespace %s or matches: list them with "
		               "gpuscale diagnose -A",
		               l->set.n, namespace_name ? namespace_name : "<any>");
	if (output_is_document(l->args->output))
		print_json(l, &out);
	else if (l->args->output == OUTPUT_NAME) {
		for (size_t i = 0; i < l->set.n; i++)
			if (selects(l, i))
				print_to(&out, "pod/%s\n", l->set.workloads[i].name);
	} else if (l->args->summary)
		print_summary(l, &out);
	else
		print_table(l, true, &out);
	return output_write(&out, l->args->output, e);
}

// ---- watch ----

// The verdict that was printed last, by workload.
struct printed {
	uint64_t workload;
	enum verdict verdict;
};

// Selects the workloads whose verdict differs from the printed one; replaces *printed.
static int select_changed(const struct workload_set *s, struct printed **printed, size_t *n_printed, bool *only)
{
	struct printed *now = calloc(s->n ? s->n : 1, sizeof *now);
	if (!now)
		return -1;
	for (size_t i = 0; i < s->n; i++) {
		const struct workload *w = &s->workloads[i];
		now[i] =
		        (struct printed){hash_text(hash_text(HASH_START, w->namespace_name), w->name), w->row->verdict};
		size_t k = 0; // both are in the order of the names: equal positions are the usual case
		if (i < *n_printed && (*printed)[i].workload == now[i].workload)
			k = i;
		while (k < *n_printed && (*printed)[k].workload != now[i].workload)
			k++;
		only[i] = k == *n_printed || (*printed)[k].verdict != now[i].verdict;
	}
	free(*printed);
	*printed = now;
	*n_printed = s->n;
	return 0;
}

static int print_changed(struct diagnosis *l, struct printed **printed, size_t *n_printed, struct err *e)
{
	bool is_first = !*printed;
	bool *only = calloc(l->set.n ? l->set.n : 1, sizeof *only);
	struct buf out = BUF(OUTPUT_MAX);
	l->only = only;
	int rc = only && select_changed(&l->set, printed, n_printed, only) == 0 ? select_lines(l, e) : err_no_memory(e);
	free(only);
	if (rc < 0)
		return -1;
	print_table(l, is_first, &out);
	return output_write(&out, OUTPUT_TEXT, e);
}

// Ends with an error of the first look, or when stdout is closed; later errors are reported and retried.
static int watch(struct diagnosis *l, struct err *e)
{
	struct printed *printed = NULL;
	size_t n_printed = 0;
	int rc = 0;
	while (rc == 0) {
		rc = diagnose_fetch(l->session, l->args->window_ms / 1000, &l->set, e);
		if (rc == 0)
			rc = print_changed(l, &printed, &n_printed, e);
		else if (printed) {
			print_error("gpuscale diagnose: %s\n", e->msg);
			err_clear(e);
			rc = 0;
		}
		workload_set_done(&l->set);
		struct timeval pause = {.tv_sec = WATCH_S};
		if (rc == 0) {
			event_base_loopexit(l->session->connections.loop, &pause);
			event_base_loop(l->session->connections.loop, EVLOOP_NO_EXIT_ON_EMPTY);
		}
	}
	free(printed);
	return rc;
}

// ---- the run ----

static int run(const struct diagnose_args *a, const struct price_book *book, double *counts, struct err *e)
{
	struct prometheus_session session;
	if (prometheus_session_open(&session, &a->prometheus, e) < 0)
		return -1;
	struct diagnosis l = {.args = a, .book = book, .session = &session};
	int rc = a->watch ? watch(&l, e) : diagnose_fetch(&session, a->window_ms / 1000, &l.set, e);
	if (!a->watch) {
		rc = rc == 0 ? print_once(&l, counts, e) : -1;
		workload_set_done(&l.set);
	}
	free(l.lines);
	prometheus_session_close(&session);
	return rc;
}

static int print_generated(int what, int64_t window_s)
{
	struct buf out = BUF(REPORT_MAX);
	struct err e;
	if (what == 0)
		verdict_rules_print(&out, window_s);
	else
		verdict_page_print(&out);
	return output_write(&out, OUTPUT_TEXT, &e) < 0 ? EXIT_FAILED : EXIT_OK;
}

int cmd_diagnose(int argc, char **argv)
{
	struct diagnose_args args = {
	        .window_ms = VERDICT_WINDOW_S * INT64_C(1000), .print = -1, .fail_on = FAIL_OPTIONS(fail_metrics)};
	prometheus_options_init(&args.prometheus);
	args_parse(&command, argc, argv, &args);
	if (args.print >= 0)
		return print_generated(args.print, args.window_ms / 1000);

	struct err e;
	struct arena arena = ARENA(PRICE_OPTION_ARENA_MAX);
	struct price_book book;
	double counts[FAIL_METRIC__COUNT] = {0};
	int code = price_option_read(args.prices, &arena, &book, "gpuscale diagnose") < 0 ? EXIT_FAILED : EXIT_OK;
	if (code == EXIT_OK && (policy_scope_resolve(&args.scope, &arena, &e) < 0 || run(&args, &book, counts, &e) < 0))
		code = command_failed("gpuscale diagnose", &e);
	arena_done(&arena);
	return code == EXIT_OK ? fail_on_check(&args.fail_on, "gpuscale diagnose", counts) : code;
}
