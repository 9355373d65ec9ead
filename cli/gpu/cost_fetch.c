// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu/cost_fetch.h"

#include "cli/term/cli.h"
#include "promql/promql.h"

#define PART_S (6 * 3600) // bounds what a server reads for one question: 360 minutes of every series

#define SERIES_MAX 100000 // of an answer; fewer fit where names are long (PROMQL_ANSWER_BYTES_MAX)

struct question {
	struct cost_use *use;
	const char *part_label; // NULL: namespaces as a whole
	int measure;            // enum gpu_measure; GPU_MEASURE__COUNT: number of GPUs
};

static int add_count(struct cost_use *use, const char *model, double gpus, struct err *e)
{
	for (size_t i = 0; i < use->n_models; i++)
		if (strcmp(use->models[i].model, model) == 0) {
			if (use->models[i].gpus < (int64_t)gpus)
				use->models[i].gpus = (int64_t)gpus;
			return 0;
		}
	if (use->n_models == COST_MODELS_MAX)
		return err_set(e, ERR_LIMIT, "GPUs of more than %d models", COST_MODELS_MAX);
	char *name = arena_strdup(&use->use.names, model);
	if (!name)
		return err_no_memory(e);
	use->models[use->n_models++] = (struct cost_model_count){name, (int64_t)gpus};
	return 0;
}

static int add_series(void *arg, const struct promql_series *s, struct err *e)
{
	const struct question *q = arg;
	const char *model = promql_label(s, GPU_USE_MODEL);
	const char *part = q->part_label ? promql_label(s, q->part_label) : "";
	double value = s->n_samples ? s->samples[0].value : 0;
	if (q->measure < GPU_MEASURE__COUNT)
		return gpu_use_add(&q->use->use, model, promql_label(s, GPU_USE_NAMESPACE), part,
		                   (enum gpu_measure)q->measure, value, e);
	if (!(value >= 0 && value <= GPU_USE_ROWS_MAX))
		return err_set(e, ERR_PROTOCOL, "expected a number of GPUs, got %g", value);
	return add_count(q->use, model, value, e);
}

// One question about the `steps` minutes that end at `end_s`. When the answer is too large, which pods that come and go
// make it, about each half of them; no answer is added in part, so nothing counts twice.
static int ask_steps(struct prometheus_session *session, int64_t end_s, int64_t steps, struct question *q,
                     const struct gpu_use_parts *parts, struct buf *query, struct err *e)
{
	const char *const labels[] = {GPU_USE_MODEL, GPU_USE_NAMESPACE, q->part_label, NULL};
	buf_reset(query);
	if (q->measure < GPU_MEASURE__COUNT)
		gpu_use_query(query, (enum gpu_measure)q->measure, parts, steps);
	else
		gpu_count_query(query, steps);
	const struct promql_question question = {
	        .query = buf_str(query), .time_ms = end_s * 1000, .max_series = SERIES_MAX, .labels = labels};
	int rc = prometheus_session_ask_gpus(session, &question, add_series, q, e);
	if (rc == 0 || e->kind != ERR_TOO_LARGE)
		return rc;
	if (steps == 1)
		return err_wrap(e, "too many pods for one answer: use --by namespace or --by label=NAME");
	int64_t last = steps / 2;
	rc = ask_steps(session, end_s - last * GPU_USE_STEP_S, steps - last, q, parts, query, e);
	return rc < 0 ? rc : ask_steps(session, end_s, last, q, parts, query, e);
}

// All questions about the `steps` minutes that end at `end_s`.
static int fetch_part(struct prometheus_session *session, int64_t end_s, int64_t steps,
                      const struct gpu_use_parts *parts, struct cost_use *use, struct err *e)
{
	struct buf query = BUF(PROMQL_QUERY_BYTES_MAX);
	int rc = 0;
	for (int m = 0; rc == 0 && m <= GPU_MEASURE__COUNT; m++) {
		struct question q = {.use = use,
		                     .measure = m,
		                     .part_label = parts->label    ? parts->label
		                                   : parts->by_pod ? GPU_USE_POD
		                                                   : NULL};
		rc = ask_steps(session, end_s, steps, &q, parts, &query, e);
	}
	buf_done(&query);
	return rc;
}

int cost_fetch(struct prometheus_session *session, const struct cost_period *period, const struct gpu_use_parts *parts,
               struct cost_use *ret_use, struct err *e)
{
	gpu_use_init(&ret_use->use);
	ret_use->n_models = 0;
	if (prometheus_session_find_gpus(session, e) < 0)
		return -1;
	session->progress.what = "reading the period";
	session->progress.total = (size_t)(period->end_s - period->start_s);
	int rc = 0;
	for (int64_t end_s = period->start_s; rc == 0 && end_s < period->end_s;) {
		int64_t part_s = period->end_s - end_s < PART_S ? period->end_s - end_s : PART_S;
		end_s += part_s;
		rc = fetch_part(session, end_s, part_s / GPU_USE_STEP_S, parts, ret_use, e);
		session->progress.done = (size_t)(end_s - period->start_s);
	}
	progress_clear(&session->progress);
	gpu_use_close(&ret_use->use);
	return rc;
}
