// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu/idle_fetch.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "cli/gpu/gpu_source.h"
#include "insight/gpu_use_query.h"
#include "promql/promql.h"
#include "promql/promql_result.h"

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
	return gpu_source_ask(source, &question, use, q, e);
}

int idle_fetch(struct prometheus_session *session, int64_t now_s, int64_t for_s, int64_t lookback_s,
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

void idle_rows_done(struct idle_rows *rows)
{
	arena_done(&rows->names);
}
