// SPDX-License-Identifier: Apache-2.0
// gpuscale detect: stragglers and memory leaks, as a line filter so that anyone can test the detectors, or from the
// past that a Prometheus has.
#include <cjson/cJSON.h>
#include <inttypes.h>

#include "base/json/yaml_out.h"
#include "cli/objects/policy_fetch.h"
#include "cli/term/cli.h"
#include "cli/term/line_filter.h"
#include "insight/detect.h"
#include "insight/training_ranks.h"
#include "promql/promql.h"

#define EVENTS_MAX (64 * 1024 * 1024)
#define SINCE_MS   INT64_C(3600000)
#define STEP_MS    INT64_C(15000)

#define DETECT_EVERY_JOB "*"

struct detect_fetch {
	const char *namespace_name;
	const char *pods;          // regular expression of the pods of one job; NULL: by `job`
	const char *job;           // name of a job (insight/training_ranks.h); DETECT_EVERY_JOB: each
	int64_t since_ms, step_ms; // length of the period up to now, and time between two values
};

struct detect_args {
	struct prometheus_options prometheus;
	struct detect_fetch fetch;
	struct policy_scope scope;
	const char *file; // NULL: standard input
	enum output_format output;
	bool has_namespace; // given as a flag
};

static void check(void *options, struct argp_state *state)
{
	struct detect_args *a = options;
	struct detect_fetch *f = &a->fetch;
	if (!!f->pods + !!f->job + !!a->file > 1)
		print_usage(state, "FILE, --job and --pods cannot be used together");
	if (!f->pods && !f->job && (f->since_ms || f->step_ms || a->scope.namespace_name))
		print_usage(state, "-n, --since and --step need --job NAME or --pods REGEX");
	if (a->scope.all_namespaces)
		print_usage(state, "a job needs its namespace: -n instead of -A");
	f->since_ms = f->since_ms ? f->since_ms : SINCE_MS;
	f->step_ms = f->step_ms ? f->step_ms : STEP_MS;
}

// clang-format off
#define FLAGS_OF struct detect_args
static const struct flag_set command = {
	.args = "[FILE]",
	.about = "Find stragglers among the ranks of training jobs, and memory that leaks. Reads FILE or standard input, or with "
	         "--job the history of jobs of a namespace from Prometheus, and writes one JSON object per event. Without -n, "
	         "series without a namespace are used where those of the context's namespace do not exist."
	         "\vInput: CSV with a header, a row per time and rank (columns time, rank, and any of job, step, compute, "
	         "clock, power, activity, memory, memoryLimit, workingSet, workingSetLimit, epoch; other columns are ignored), "
	         "or a JSON object per time: {\"time\": 1800, \"job\": \"bert\", \"step\": {\"0\": 0.47, \"1\": 0.45}, "
	         "\"memory\": {\"0\": 3e10}, \"memoryLimit\": 8e10}. Times are seconds in ascending order, memory is in bytes. "
	         "Ranks are compared by the first of step, compute, clock, power and activity that is present; step times that "
	         "are equal on all ranks are ignored.\n\nEvents: Straggler, Faster, Recovered, Imbalanced, Leak, LeakEnded; "
	         "docs/diagnosis.md explains them and how often they are wrong.\n\nExit status: 0 if every line was valid, 1 "
	         "if not, 2 for wrong usage.",
	.surplus = ": one file at a time",
	.check = check,
	.flags = (const struct flag[]){
		FLAG_TEXT(1, 0, "job", "NAME", fetch.job, "a training job in Prometheus, instead of FILE; '*': every job"),
		FLAG_TEXT(1, 0, "pods", "REGEX", fetch.pods, "these pods as one job, with their names as ranks"),
		FLAG_SINCE(1, fetch.since_ms, 1000, 0, "1h"),
		FLAG_DURATION(1, 0, "step", fetch.step_ms, 1000, 0, "time between two values (default 15s)"),
		FLAG_OUTPUT(1, output, OUTPUTS_REPORT, "table, wide, json (an object per line) or yaml (default json)"),
		FLAG_ARGUMENT(file),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 0),
		FLAG_INCLUDE(&namespace_flags, scope, 0),
		FLAG_END}};
// clang-format on

// ---- events ----

struct detect_context {
	struct buf events; // a JSON object per line
	enum output_format output;
	struct table table;
	bool has_head;
	struct detect *detect;
};

#define N_TEXTS 4 // columns of text behind the time, as in the members of an event

static void put_row(struct table *t, const cJSON *event)
{
	const cJSON *c = event->child;
	struct buf details = BUF(TABLE_CELL_BYTES);
	table_put(t, "%.15g", c ? c->valuedouble : 0);
	for (size_t i = 0; i < N_TEXTS; i++, c = c ? c->next : NULL)
		table_put(t, "%s", c && c->next && c->next->valuestring ? c->next->valuestring : "");
	for (c = c ? c->next : NULL; c; c = c->next) {
		print_to(&details, "%s%s", details.len ? ", " : "", c->string);
		if (cJSON_IsNumber(c))
			print_to(&details, " %.6g", c->valuedouble);
		for (const cJSON *name = c->child; name; name = name->next)
			print_to(&details, " %s", name->valuestring);
	}
	table_put(t, "%s", buf_str(&details));
	buf_done(&details);
}

static void put_event(struct detect_context *c, const char *line, size_t len, struct buf *out)
{
	struct buf list = BUF(len + 3);
	cJSON *event = NULL;
	switch (c->output) {
	case OUTPUT_JSON:
		buf_put(out, line, len);
		buf_putc(out, '\n');
		break;
	case OUTPUT_YAML: // an item of one list
		buf_putc(&list, '[');
		buf_put(&list, line, len);
		buf_putc(&list, ']');
		out->failed |= list.failed || yaml_from_json(out, buf_str(&list), list.len) < 0;
		buf_done(&list);
		break;
	default:
		event = json_read(line, len, NULL);
		if (event)
			put_row(&c->table, event);
		out->failed |= !event || c->table.cells.failed;
		table_print(&c->table, out, 0, !c->has_head);
		c->has_head = true;
		cJSON_Delete(event);
		break;
	}
}

static void move_events(struct detect_context *c, struct buf *out)
{
	const char *end;
	for (const char *line = buf_str(&c->events); (end = strchr(line, '\n')); line = end + 1)
		put_event(c, line, (size_t)(end - line), out);
	out->failed = out->failed || c->events.failed;
	buf_reset(&c->events);
}

static void context_init(struct detect_context *c, enum output_format output)
{
	// Rows are printed as they come: the widths are a guess.
	static const size_t widths[] = {10, 20, 10, 16, 8};
	*c = (struct detect_context){.output = output, .events = BUF(EVENTS_MAX)};
	table_init(&c->table, "TIME\tJOB\tEVENT\tRANK\tINPUT\tDETAILS");
	memcpy(c->table.widths, widths, sizeof widths);
}

static void context_done(struct detect_context *c)
{
	buf_done(&c->events);
	table_done(&c->table);
}

// ---- the filter ----

static int answer(void *context, const char *line, size_t len, struct buf *out, struct err *e)
{
	struct detect_context *c = context;
	int rc = detect_read(c->detect, line, len, e);
	move_events(c, out);
	return rc;
}

static void finish(void *context, struct buf *out)
{
	struct detect_context *c = context;
	detect_finish(c->detect);
	move_events(c, out);
}

static int filter_lines(const struct detect_args *a)
{
	struct detect_context c;
	context_init(&c, a->output);
	c.detect = detect_new(&c.events);
	const struct line_filter filter = {"gpuscale detect", DETECT_LINE_BYTES_MAX, &c, answer, finish, a->file};
	int code = EXIT_FAILED;
	if (c.detect)
		code = line_filter_run(&filter);
	else
		print_error("gpuscale detect: out of memory\n");
	detect_free(c.detect);
	context_done(&c);
	return code;
}

// ---- from Prometheus: values ----

#define SERIES_MAX  20000 // of all queries
#define MEMORY_FREE DETECT_INPUT__COUNT
#define SET_LIMIT   (DETECT_INPUT__COUNT + 1)
#define EPOCH       (DETECT_INPUT__COUNT + 2)
#define RATE_STEPS  4  // of --step, for counters
#define RATE_LEAST  60 // seconds
#define POD_BYTES   320
#define RANK        "wl_rank"
#define MIB         " * 1048576"

// What is asked for each input; several series of a rank become one.
static const struct {
	int input;
	const char *fold, *metric, *matchers, *part, *factor; // part: the label of a part of a pod, with a comma
	const char *per; // both are counters: the increase of `metric` per increase of this one; NULL: a gauge
} queries[] = {
        // clang-format off
        {DETECT_STEP,        "max", "training_batch_duration_seconds",    "",                                 ", \"rank\"", "", NULL},
        {DETECT_COMPUTE,     "max", "training_compute_seconds_total",     "",                                 ", \"rank\"", "", "training_batches_total"},
        {EPOCH,              "max", "training_epoch_total",               "",                                 "",          "", NULL},
        {DETECT_CLOCK,       "max", "DCGM_FI_DEV_SM_CLOCK",               "",                                 ", \"gpu\"", "", NULL},
        {DETECT_POWER,       "max", "DCGM_FI_DEV_POWER_USAGE",            "",                                 ", \"gpu\"", "", NULL},
        {DETECT_ACTIVITY,    "max", "DCGM_FI_PROF_SM_ACTIVE",             "",                                 ", \"gpu\"", "", NULL},
        {DETECT_MEMORY,      "max", "DCGM_FI_DEV_FB_USED",                "",                                 ", \"gpu\"", MIB, NULL},
        {MEMORY_FREE,        "max", "DCGM_FI_DEV_FB_FREE",                "",                                 ", \"gpu\"", MIB, NULL},
        {DETECT_WORKING_SET, "sum", "container_memory_working_set_bytes", ",container!=\"\",container!=\"POD\"", "",       "", NULL},
        {SET_LIMIT,          "sum", "kube_pod_container_resource_limits", ",resource=\"memory\"",             "",          "", NULL},
        // clang-format on
};
#define QUERIES (sizeof queries / sizeof queries[0])

// One rank's values of one query, a cell per step; NaN: missing.
struct column {
	int input;
	char *key;              // the answer's label RANK: POD, or POD/PART
	const char *job, *rank; // in the arena or `key`; job NULL: not asked for
	double *values;
	const struct column *limit; // of memory: the column with its free memory or its limit
	const struct column *epoch; // of memory: the column with the epochs of its pod
};

struct fetch {
	struct column *columns;
	size_t n, n_steps, n_named; // n_named: columns of a job that was asked for
	int64_t start_ms, step_ms;
	int input; // of the query in progress
	struct rank_names names;
	struct arena arena;  // of jobs and ranks
	enum rank_ask asked; // the query of names in progress
};

static int add_series(void *arg, const struct promql_series *s, struct err *e)
{
	struct fetch *f = arg;
	if (f->n == SERIES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d series: select fewer pods", SERIES_MAX);
	struct column *c = &f->columns[f->n];
	*c = (struct column){.input = f->input,
	                     .key = strdup(promql_label(s, RANK)),
	                     .values = malloc(f->n_steps * sizeof *c->values)};
	f->n++;
	if (!c->key || !c->values)
		return err_no_memory(e);
	size_t len = strlen(c->key);
	if (len > 0 && c->key[len - 1] == '/')
		c->key[len - 1] = '\0'; // without the label of the part
	for (size_t i = 0; i < f->n_steps; i++)
		c->values[i] = (double)NAN;
	for (size_t i = 0; i < s->n_samples; i++) {
		int64_t step = (s->samples[i].time_ms - f->start_ms) / f->step_ms;
		if (step >= 0 && (size_t)step < f->n_steps)
			c->values[step] = s->samples[i].value;
	}
	return 0;
}

// The rank is POD, or POD/PART. With honor_labels, the pod is in the labels pod and namespace, without it in
// exported_pod and exported_namespace. Outside of Kubernetes, the instance is the pod. range "": the metric itself;
// else its rate.
static void put_selected(struct buf *out, size_t i, const char *metric, const struct detect_fetch *o, const char *range)
{
	const char *open = range[0] ? "rate(" : "", *close = range[0] ? ")" : "";
	const char *pods = o->pods ? o->pods : ".+";
	buf_printf(out,
	           "%s by (" RANK ") (label_join(%s%s{exported_namespace=\"%s\",exported_pod=~\"%s\"%s}%s%s, \"" RANK
	           "\", \"/\", \"exported_pod\"%s) or label_join(%s%s{namespace=\"%s\",pod=~\"%s\",exported_pod=\"\"%s}"
	           "%s%s, \"" RANK "\", \"/\", \"pod\"%s)",
	           queries[i].fold, open, metric, o->namespace_name, pods, queries[i].matchers, range, close,
	           queries[i].part, open, metric, o->namespace_name, pods, queries[i].matchers, range, close,
	           queries[i].part);
	if (!o->namespace_name[0])
		buf_printf(
		        out,
		        " or label_join(%s%s{namespace=\"\",exported_pod=\"\",pod=\"\",instance=~\"%s\"%s}%s%s, \"" RANK
		        "\", \"/\", \"instance\"%s)",
		        open, metric, pods, queries[i].matchers, range, close, queries[i].part);
	buf_putc(out, ')');
}

static void put_query(struct buf *out, size_t i, const struct detect_fetch *o)
{
	char range[32] = "";
	int64_t range_s = RATE_STEPS * o->step_ms / 1000;
	if (queries[i].per)
		snprintf(range, sizeof range, "[%" PRId64 "s]", range_s > RATE_LEAST ? range_s : RATE_LEAST);
	put_selected(out, i, queries[i].metric, o, range);
	if (queries[i].per) {
		buf_puts(out, " / ");
		put_selected(out, i, queries[i].per, o, range);
	}
	buf_puts(out, queries[i].factor);
}

static int add_name(void *arg, const struct promql_series *s, struct err *e)
{
	struct fetch *f = arg;
	return rank_names_add(&f->names, f->asked, s, e);
}

static int read_columns(struct prometheus_session *session, const struct detect_fetch *o, struct fetch *f,
                        struct buf *query, struct err *e)
{
	struct promql_question question = {.is_range = true,
	                                   .start_ms = f->start_ms,
	                                   .end_ms = f->start_ms + (int64_t)(f->n_steps - 1) * f->step_ms,
	                                   .step_ms = f->step_ms};
	if (prometheus_session_find_gpus(session, e) < 0)
		return -1;
	for (size_t i = 0; i < QUERIES; i++) {
		buf_reset(query);
		put_query(query, i, o);
		f->input = queries[i].input;
		question.query = buf_str(query);
		if (prometheus_session_ask_gpus(session, &question, add_series, f, e) < 0)
			return err_wrap(e, "%s", queries[i].metric);
	}
	return 0;
}

static int read_names(struct prometheus_session *session, const struct detect_fetch *o, struct fetch *f,
                      struct buf *query, struct err *e)
{
	for (int i = 0; i < RANK_ASK__COUNT; i++) {
		buf_reset(query);
		rank_names_query(query, (enum rank_ask)i, o->namespace_name, o->since_ms / 1000);
		f->asked = (enum rank_ask)i;
		const struct promql_question question = {.query = buf_str(query)};
		if (prometheus_session_ask(session, &question, add_name, f, e) < 0)
			return -1;
	}
	return 0;
}

static int read_all(struct prometheus_session *session, const struct detect_fetch *o, struct fetch *f, struct err *e)
{
	struct buf query = BUF(PROMQL_QUERY_BYTES_MAX);
	int rc = read_columns(session, o, f, &query, e);
	if (rc == 0 && !o->pods)
		rc = read_names(session, o, f, &query, e);
	if (rc < 0 && e->kind == ERR_TOO_LARGE)
		err_wrap(e, "try a shorter --since or a longer --step");
	buf_done(&query);
	return rc;
}

// ---- jobs and ranks ----

static int name_by_table(struct fetch *f, const struct detect_fetch *o, struct column *c, struct err *e)
{
	size_t len = strcspn(c->key, "/");
	const char *rank = NULL, *part = c->key[len] ? c->key + len + 1 : "";
	char pod[POD_BYTES];
	snprintf(pod, sizeof pod, "%.*s", (int)len, c->key);
	const char *job = rank_names_find(&f->names, pod, &rank);
	if (!job)
		return err_no_memory(e);
	if (strcmp(o->job, DETECT_EVERY_JOB) != 0 && strcmp(o->job, job) != 0)
		return 0; // c->job stays NULL
	c->job = arena_printf(&f->arena, "%s%s%s", o->namespace_name, o->namespace_name[0] ? "/" : "", job);
	if ((c->input == DETECT_STEP || c->input == DETECT_COMPUTE) && part[0]) // the trainer's own label
		c->rank = part;
	else
		c->rank = part[0] ? arena_printf(&f->arena, "%s/%s", rank, part) : arena_strdup(&f->arena, rank);
	return c->job && c->rank ? 0 : err_no_memory(e);
}

static int name_all(struct fetch *f, const struct detect_fetch *o, struct err *e)
{
	for (size_t i = 0; i < f->n; i++) {
		struct column *c = &f->columns[i];
		c->job = o->pods;
		c->rank = c->key;
		if (!o->pods && name_by_table(f, o, c, e) < 0)
			return -1;
		f->n_named += c->job != NULL;
	}
	return 0;
}

static void find_limits(struct fetch *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct column *c = &f->columns[i];
		int wanted = c->input == DETECT_MEMORY ? MEMORY_FREE : c->input == DETECT_WORKING_SET ? SET_LIMIT : -1;
		for (size_t k = 0; k < f->n && wanted >= 0; k++) {
			const struct column *o = &f->columns[k];
			if (!c->limit && o->input == wanted && strcmp(o->key, c->key) == 0)
				c->limit = o;
			size_t len = strlen(o->key); // the epochs are those of the pod
			if (!c->epoch && o->input == EPOCH && strncmp(c->key, o->key, len) == 0 &&
			    (!c->key[len] || c->key[len] == '/'))
				c->epoch = o;
		}
	}
}

// ---- feeding ----

static double value_at(const struct column *c, size_t step)
{
	return c ? c->values[step] : (double)NAN;
}

static int feed_value(const struct column *c, size_t step, struct detect_job *job, struct err *e)
{
	double value = c->values[step];
	if (c->input >= MEMORY_FREE || isnan(value))
		return 0;
	double limit = value_at(c->limit, step) + (c->input == DETECT_MEMORY ? value : 0);
	return detect_add(job, (enum detect_input)c->input, c->rank, value, limit, value_at(c->epoch, step), e);
}

// Feeds the columns [first, end), which are of one job.
static int feed_job(const struct fetch *f, size_t first, size_t end, struct detect *d, struct err *e)
{
	for (size_t step = 0; step < f->n_steps; step++) {
		struct detect_job *job =
		        detect_at(d, f->columns[first].job, f->start_ms + (int64_t)step * f->step_ms, e);
		if (!job)
			return -1;
		for (size_t i = first; i < end; i++)
			if (feed_value(&f->columns[i], step, job, e) < 0)
				return -1;
		detect_tick(job);
	}
	return 0;
}

static int by_job(const void *a, const void *b)
{
	const struct column *x = a, *y = b;
	if (!x->job || !y->job)
		return (x->job != NULL) - (y->job != NULL);
	int order = strcmp(x->job, y->job);
	return order ? order : (x->input > y->input) - (x->input < y->input);
}

static int feed(struct fetch *f, struct detect *d, struct err *e)
{
	qsort(f->columns, f->n, sizeof *f->columns, by_job); // those of no job first
	find_limits(f);
	for (size_t i = 0, end; i < f->n; i = end) {
		for (end = i + 1; end < f->n && f->columns[i].job && f->columns[end].job &&
		                  strcmp(f->columns[i].job, f->columns[end].job) == 0;)
			end++;
		if (f->columns[i].job && feed_job(f, i, end, d, e) < 0)
			return -1;
	}
	return 0;
}

// Feeds the values of the jobs to `d`, in the order of time. With fetch->pods, a rank is a pod, or POD/GPU where GPUs
// of a pod have values of their own; else it is the rank in its job, or RANK/GPU, and the job is NAMESPACE/JOB. Returns
// 0, or -1 and *e: ERR_INPUT for quotes in the names, ERR_NOT_FOUND without a value at all, and as detect_add().
static int detect_fetch(struct prometheus_session *session, const struct detect_fetch *fetch, struct detect *d,
                        struct err *e)
{
	if ((fetch->pods && strpbrk(fetch->pods, "\"\\\n")) || strpbrk(fetch->namespace_name, "\"\\\n"))
		return err_set(e, ERR_INPUT,
		               "expected a namespace and a regular expression of pods without quotes and "
		               "backslashes");
	struct fetch f = {.step_ms = fetch->step_ms, .arena = ARENA(EVENTS_MAX)};
	f.n_steps = (size_t)(fetch->since_ms / fetch->step_ms);
	if (f.n_steps < 1 || f.n_steps > PROMQL_STEPS_MAX)
		return err_set(e, ERR_INPUT, "--since has %zu times --step: expected 1 to %d", f.n_steps,
		               PROMQL_STEPS_MAX);
	int64_t end_ms = clock_wall_ms(&session->connections.clock) / f.step_ms * f.step_ms;
	f.start_ms = end_ms - (int64_t)(f.n_steps - 1) * f.step_ms;
	f.columns = calloc(SERIES_MAX, sizeof *f.columns);
	int rc = f.columns ? read_all(session, fetch, &f, e) : err_no_memory(e);
	progress_clear(&session->progress);
	if (rc == 0)
		rc = name_all(&f, fetch, e);
	if (rc == 0 && f.n_named == 0)
		rc = err_set(
		        e, ERR_NOT_FOUND,
		        "no value of any %s \"%s\" in namespace \"%s\": check the name, and that the exporter or the "
		        "training is scraped",
		        fetch->pods ? "pod" : "job", fetch->pods ? fetch->pods : fetch->job, fetch->namespace_name);
	if (rc == 0)
		rc = feed(&f, d, e);
	for (size_t i = 0; i < f.n; i++) {
		free(f.columns[i].key);
		free(f.columns[i].values);
	}
	free(f.columns);
	rank_names_done(&f.names);
	arena_done(&f.arena);
	return rc;
}

// ---- from Prometheus: events ----

static int run_past(const struct detect_args *a, struct err *e)
{
	struct prometheus_session session;
	struct detect_context view;
	struct buf out = BUF(EVENTS_MAX);
	if (prometheus_session_open(&session, &a->prometheus, e) < 0)
		return -1;
	context_init(&view, a->output);
	struct detect *d = detect_new(&view.events);
	struct detect_fetch fetch = a->fetch;
	int rc = d ? detect_fetch(&session, &fetch, d, e) : err_no_memory(e);
	if (rc < 0 && e->kind == ERR_NOT_FOUND && !a->has_namespace) {
		struct err other;
		err_clear(&other);
		fetch.namespace_name = "";
		rc = detect_fetch(&session, &fetch, d, &other);
		if (rc == 0)
			err_clear(e);
		else if (other.kind != ERR_NOT_FOUND)
			*e = other;
	}
	move_events(&view, &out);
	bool ok = print_out(&out) == 0;
	if (rc == 0 && !ok)
		rc = err_set(e, ERR_INTERNAL, "out of memory for the events, or they cannot be written");
	detect_free(d);
	context_done(&view);
	buf_done(&out);
	prometheus_session_close(&session);
	return rc;
}

int cmd_detect(int argc, char **argv)
{
	struct detect_args args = {.output = OUTPUT_JSON};
	prometheus_options_init(&args.prometheus);
	args_parse(&command, argc, argv, &args);
	if (!args.fetch.pods && !args.fetch.job)
		return filter_lines(&args);
	struct err e = {0};
	struct arena arena = ARENA(EVENTS_MAX);
	args.has_namespace = args.scope.namespace_name != NULL;
	int rc = policy_scope_resolve(&args.scope, &arena, &e);
	args.fetch.namespace_name = args.scope.namespace_name;
	if (rc == 0)
		rc = run_past(&args, &e);
	arena_done(&arena);
	return rc < 0 ? command_failed("gpuscale detect", &e) : EXIT_OK;
}
