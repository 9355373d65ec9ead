// SPDX-License-Identifier: Apache-2.0
#include "cli/detect_fetch.h"

#include <event2/event.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "controller/connections.h"
#include "insight/detect.h"
#include "promql/promql_source.h"

#define SERIES_MAX  20000 // of all queries
#define MEMORY_FREE DETECT_INPUT__COUNT
#define SET_LIMIT   (DETECT_INPUT__COUNT + 1)
#define RANK        "wl_rank"
#define MIB         " * 1048576"

// What is asked for each input; several series of a rank become one.
static const struct {
	int input;
	const char *fold, *metric, *matchers, *part, *factor; // part: the label of a part of a pod, with a comma
} queries[] = {
        // clang-format off
        {DETECT_STEP,        "max", "training_batch_duration_seconds",    "",                                 "",          ""},
        {DETECT_CLOCK,       "max", "DCGM_FI_DEV_SM_CLOCK",               "",                                 ", \"gpu\"", ""},
        {DETECT_POWER,       "max", "DCGM_FI_DEV_POWER_USAGE",            "",                                 ", \"gpu\"", ""},
        {DETECT_ACTIVITY,    "max", "DCGM_FI_PROF_SM_ACTIVE",             "",                                 ", \"gpu\"", ""},
        {DETECT_MEMORY,      "max", "DCGM_FI_DEV_FB_USED",                "",                                 ", \"gpu\"", MIB},
        {MEMORY_FREE,        "max", "DCGM_FI_DEV_FB_FREE",                "",                                 ", \"gpu\"", MIB},
        {DETECT_WORKING_SET, "sum", "container_memory_working_set_bytes", ",container!=\"\",container!=\"POD\"", "",       ""},
        {SET_LIMIT,          "sum", "kube_pod_container_resource_limits", ",resource=\"memory\"",             "",          ""},
        // clang-format on
};
#define QUERIES (sizeof queries / sizeof queries[0])

// One rank's values of one query, a cell per step; NaN: missing.
struct column {
	int input;
	char *rank;
	double *values;
	const struct column *limit; // of memory: the column with its free memory or its limit
};

struct fetch {
	struct column *columns;
	size_t n, n_steps;
	int64_t start_ms, step_ms;
	int input; // of the query in progress
	bool done;
	struct err error; // of the answer
};

static int add_series(struct fetch *f, const struct promql_series *s, struct err *e)
{
	if (f->n == SERIES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d series: select fewer pods", SERIES_MAX);
	struct column *c = &f->columns[f->n];
	*c = (struct column){f->input, strdup(promql_label(s, RANK)), malloc(f->n_steps * sizeof *c->values), NULL};
	f->n++;
	if (!c->rank || !c->values)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < f->n_steps; i++)
		c->values[i] = (double)NAN;
	for (size_t i = 0; i < s->n_samples; i++) {
		int64_t step = (s->samples[i].time_ms - f->start_ms) / f->step_ms;
		if (step >= 0 && (size_t)step < f->n_steps)
			c->values[step] = s->samples[i].value;
	}
	return 0;
}

static void on_answer(void *arg, const struct promql_result *result, const struct err *error)
{
	struct fetch *f = arg;
	f->done = true;
	if (error)
		f->error = *error;
	else if (result->n_warnings > 0)
		err_set(&f->error, ERR_PROTOCOL, "the answer is incomplete: %s", result->warnings[0]);
	for (size_t i = 0; !error && f->error.kind == ERR_NONE && i < result->n_series; i++)
		add_series(f, &result->series[i], &f->error);
}

// A rank is POD, or POD/GPU. With honor_labels, the pod is in the labels pod and namespace, without it in exported_pod
// and exported_namespace.
static void put_query(struct buf *out, size_t i, const struct detect_fetch *o)
{
	buf_printf(out,
	           "%s by (" RANK ") (label_join(%s{exported_namespace=\"%s\",exported_pod=~\"%s\"%s}, \"" RANK
	           "\", \"/\", \"exported_pod\"%s) or label_join(%s{namespace=\"%s\",pod=~\"%s\",exported_pod=\"\"%s}"
	           ", \"" RANK "\", \"/\", \"pod\"%s))%s",
	           queries[i].fold, queries[i].metric, o->namespace_name, o->pods, queries[i].matchers, queries[i].part,
	           queries[i].metric, o->namespace_name, o->pods, queries[i].matchers, queries[i].part,
	           queries[i].factor);
}

static int ask(struct connections *c, struct promql *client, const char *query, struct fetch *f, struct err *e)
{
	int64_t end_ms = f->start_ms + (int64_t)(f->n_steps - 1) * f->step_ms;
	f->done = false;
	err_clear(&f->error);
	if (promql_query_range(client, query, f->start_ms, end_ms, f->step_ms, on_answer, f, e) < 0)
		return -1;
	while (!f->done) // terminates: the source has a timeout
		if (event_base_loop(c->loop, EVLOOP_ONCE) != 0)
			return err_set(e, ERR_INTERNAL, "the event loop exited before the reply");
	if (f->error.kind == ERR_NONE)
		return 0;
	*e = f->error;
	return e->kind == ERR_TOO_LARGE ? err_wrap(e, "try a shorter --since or a longer --step") : -1;
}

static int read_all(struct connections *c, const struct detect_fetch *o, struct fetch *f, struct err *e)
{
	const struct promql_source *source = promql_sources_find(c->promql, NULL, e);
	struct buf query;
	int rc = source ? 0 : -1;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	for (size_t i = 0; rc == 0 && i < QUERIES; i++) {
		buf_reset(&query);
		put_query(&query, i, o);
		f->input = queries[i].input;
		rc = ask(c, promql_source_client(source), buf_str(&query), f, e);
		if (rc < 0)
			err_wrap(e, "%s", queries[i].metric);
	}
	buf_done(&query);
	return rc;
}

static void find_limits(struct fetch *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct column *c = &f->columns[i];
		int wanted = c->input == DETECT_MEMORY ? MEMORY_FREE : c->input == DETECT_WORKING_SET ? SET_LIMIT : -1;
		for (size_t k = 0; k < f->n && wanted >= 0 && !c->limit; k++)
			if (f->columns[k].input == wanted && strcmp(f->columns[k].rank, c->rank) == 0)
				c->limit = &f->columns[k];
	}
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
	return detect_add_memory(job, (enum detect_input)c->input, c->rank, value, isfinite(limit) ? limit : 0, -1, e);
}

static int feed(const struct fetch *f, const char *name, struct detect *d, struct err *e)
{
	for (size_t step = 0; step < f->n_steps; step++) {
		struct detect_job *job = detect_at(d, name, f->start_ms + (int64_t)step * f->step_ms, e);
		if (!job)
			return -1;
		for (size_t i = 0; i < f->n; i++)
			if (feed_value(&f->columns[i], step, job, e) < 0)
				return -1;
		detect_tick(job);
	}
	return 0;
}

int detect_fetch(struct connections *c, const struct detect_fetch *fetch, struct detect *d, struct err *e)
{
	if (strpbrk(fetch->pods, "\"\\\n") || strpbrk(fetch->namespace_name, "\"\\\n"))
		return err_set(e, ERR_INPUT,
		               "expected a namespace and a regular expression of pods without quotes and "
		               "backslashes");
	struct fetch f = {.n_steps = (size_t)(fetch->since_ms / fetch->step_ms), .step_ms = fetch->step_ms};
	if (f.n_steps < 1 || f.n_steps > PROMQL_STEPS_MAX)
		return err_set(e, ERR_INPUT, "--since has %zu times --step: expected 1 to %d", f.n_steps,
		               PROMQL_STEPS_MAX);
	int64_t end_ms = clock_wall_ms(&c->clock) / f.step_ms * f.step_ms;
	f.start_ms = end_ms - (int64_t)(f.n_steps - 1) * f.step_ms;
	f.columns = calloc(SERIES_MAX, sizeof *f.columns);
	int rc = f.columns ? read_all(c, fetch, &f, e) : err_set(e, ERR_INTERNAL, "out of memory");
	if (rc == 0 && f.n == 0)
		rc = err_set(e, ERR_NOT_FOUND,
		             "no value of any pod \"%s\" in namespace %s: check the name, and that the exporter or the "
		             "training is scraped",
		             fetch->pods, fetch->namespace_name);
	if (rc == 0) {
		find_limits(&f);
		rc = feed(&f, fetch->pods, d, e);
	}
	for (size_t i = 0; i < f.n; i++) {
		free(f.columns[i].rank);
		free(f.columns[i].values);
	}
	free(f.columns);
	return rc;
}
