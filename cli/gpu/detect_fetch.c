// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu/detect_fetch.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/gpu/gpu_source.h"
#include "insight/detect.h"
#include "insight/rank_names.h"
#include "promql/promql.h"

#define SERIES_MAX  20000 // of all queries
#define MEMORY_FREE DETECT_INPUT__COUNT
#define SET_LIMIT   (DETECT_INPUT__COUNT + 1)
#define EPOCH       (DETECT_INPUT__COUNT + 2)
#define RATE_STEPS  4  // of --step, for counters
#define RATE_LEAST  60 // seconds
#define EPOCH_MAX   1e15
#define POD_BYTES   320
#define ARENA_MAX   ((size_t)64 * 1024 * 1024)
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
	size_t n, n_steps;
	int64_t start_ms, step_ms;
	int input; // of the query in progress
	struct rank_names *names;
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
		return err_set(e, ERR_INTERNAL, "out of memory");
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
	return rank_names_add(f->names, f->asked, s, e);
}

static int read_columns(struct prometheus_session *session, const struct detect_fetch *o, struct fetch *f,
                        struct buf *query, struct err *e)
{
	const struct prometheus_range range = {f->start_ms, f->start_ms + (int64_t)(f->n_steps - 1) * f->step_ms,
	                                       f->step_ms};
	struct gpu_source source;
	if (gpu_source_open(&source, session, e) < 0)
		return -1;
	for (size_t i = 0; i < QUERIES; i++) {
		buf_reset(query);
		put_query(query, i, o);
		f->input = queries[i].input;
		if (gpu_source_ask(&source, &(struct promql_question){.query = buf_str(query)}, &range, add_series, f,
		                   e) < 0)
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
		if (prometheus_session_ask(session, &question, NULL, add_name, f, e) < 0)
			return -1;
	}
	return 0;
}

static int read_all(struct prometheus_session *session, const struct detect_fetch *o, struct fetch *f, struct err *e)
{
	struct buf query;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	int rc = read_columns(session, o, f, &query, e);
	if (rc == 0 && !o->pods)
		rc = read_names(session, o, f, &query, e);
	if (rc < 0 && e->kind == ERR_TOO_LARGE)
		err_wrap(e, "try a shorter --since or a longer --step");
	buf_done(&query);
	return rc;
}

// ---- jobs and ranks ----

static bool is_of_trainer(int input)
{
	return input == DETECT_STEP || input == DETECT_COMPUTE;
}

static int name_by_table(struct fetch *f, const struct detect_fetch *o, struct column *c, struct err *e)
{
	size_t len = strcspn(c->key, "/");
	const char *rank = NULL, *part = c->key[len] ? c->key + len + 1 : "";
	char pod[POD_BYTES];
	snprintf(pod, sizeof pod, "%.*s", (int)len, c->key);
	const char *job = rank_names_find(f->names, pod, &rank);
	if (!job)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (strcmp(o->job, DETECT_EVERY_JOB) != 0 && strcmp(o->job, job) != 0)
		return 0; // c->job stays NULL
	c->job = arena_printf(&f->arena, "%s%s%s", o->namespace_name, o->namespace_name[0] ? "/" : "", job);
	if (is_of_trainer(c->input) && part[0]) // the trainer's own label
		c->rank = part;
	else
		c->rank = part[0] ? arena_printf(&f->arena, "%s/%s", rank, part) : arena_strdup(&f->arena, rank);
	return c->job && c->rank ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
}

static int name_all(struct fetch *f, const struct detect_fetch *o, struct err *e)
{
	for (size_t i = 0; i < f->n; i++) {
		struct column *c = &f->columns[i];
		c->job = o->pods;
		c->rank = c->key;
		if (!o->pods && name_by_table(f, o, c, e) < 0)
			return -1;
	}
	return 0;
}

// Whether the key is that of the pod, or of a part of it.
static bool is_of_pod(const char *key, const char *pod)
{
	size_t len = strlen(pod);
	return strncmp(key, pod, len) == 0 && (!key[len] || key[len] == '/');
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
			if (!c->epoch && o->input == EPOCH && is_of_pod(c->key, o->key))
				c->epoch = o;
		}
	}
}

// ---- feeding ----

static int64_t epoch_at(const struct column *c, size_t step)
{
	double epoch = c->epoch ? c->epoch->values[step] : -1;
	return epoch >= 0 && epoch <= EPOCH_MAX ? (int64_t)epoch : -1;
}

static int feed_value(const struct column *c, size_t step, struct detect_job *job, struct err *e)
{
	double value = c->values[step];
	if (c->input >= MEMORY_FREE || isnan(value))
		return 0;
	if (c->input < (int)DETECT_RANK_INPUTS)
		return detect_add(job, (enum detect_input)c->input, c->rank, value, e);
	double limit = c->limit ? c->limit->values[step] : (double)NAN;
	if (c->input == DETECT_MEMORY)
		limit += value;
	return detect_add_memory(job, (enum detect_input)c->input, c->rank, value, isfinite(limit) ? limit : 0,
	                         epoch_at(c, step), e);
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

static bool has_job(const struct fetch *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->columns[i].job)
			return true;
	return false;
}

int detect_fetch(struct prometheus_session *session, const struct detect_fetch *fetch, struct detect *d, struct err *e)
{
	if ((fetch->pods && strpbrk(fetch->pods, "\"\\\n")) || strpbrk(fetch->namespace_name, "\"\\\n"))
		return err_set(e, ERR_INPUT,
		               "expected a namespace and a regular expression of pods without quotes and "
		               "backslashes");
	struct fetch f = {.n_steps = (size_t)(fetch->since_ms / fetch->step_ms), .step_ms = fetch->step_ms};
	if (f.n_steps < 1 || f.n_steps > PROMQL_STEPS_MAX)
		return err_set(e, ERR_INPUT, "--since has %zu times --step: expected 1 to %d", f.n_steps,
		               PROMQL_STEPS_MAX);
	int64_t end_ms = clock_wall_ms(&session->connections.clock) / f.step_ms * f.step_ms;
	f.start_ms = end_ms - (int64_t)(f.n_steps - 1) * f.step_ms;
	f.columns = calloc(SERIES_MAX, sizeof *f.columns);
	f.names = rank_names_new();
	arena_init(&f.arena, ARENA_MAX);
	int rc = f.columns && f.names ? read_all(session, fetch, &f, e) : err_set(e, ERR_INTERNAL, "out of memory");
	progress_clear(&session->progress);
	if (rc == 0)
		rc = name_all(&f, fetch, e);
	if (rc == 0 && !has_job(&f))
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
	rank_names_free(f.names);
	arena_done(&f.arena);
	return rc;
}
