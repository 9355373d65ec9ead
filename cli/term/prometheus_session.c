// SPDX-License-Identifier: Apache-2.0
#include "cli/term/prometheus_session.h"

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "insight/gpu_names.h"
#include "promql/promql.h"
#include "promql/promql_source.h"

static const struct promql_ticket no_ticket;

// A query in flight.
struct question {
	prometheus_series_fn *take;
	void *arg;
	bool done;
	struct err error; // of the answer
};

int prometheus_session_open(struct prometheus_session *s, const struct prometheus_options *options, struct err *e)
{
	s->progress = (struct progress){.what = "querying"};
	return connections_open(&s->connections, options, NULL, NULL, NULL, e);
}

void prometheus_session_close(struct prometheus_session *s)
{
	progress_clear(&s->progress);
	connections_close(&s->connections);
}

static void on_answer(void *arg, const struct promql_result *result, const struct err *error)
{
	struct question *q = arg;
	q->done = true;
	promql_result_check(result, error, &q->error);
	for (size_t i = 0; q->error.kind == ERR_NONE && i < result->n_series; i++)
		if (q->take(q->arg, &result->series[i], &q->error) < 0)
			return;
}

int prometheus_session_ask(struct prometheus_session *s, const struct promql_question *question,
                           prometheus_series_fn *take, void *arg, struct err *e)
{
	struct question q = {.take = take, .arg = arg};
	struct promql_source *source = promql_sources_find(s->connections.promql, NULL, e);
	if (!source)
		return -1;
	if (promql_failover_ask(source, question, &no_ticket, on_answer, &q, e) < 0)
		return -1;
	if (!s->progress.timer)
		progress_watch(&s->progress, s->connections.loop);
	return connections_wait(&s->connections, &q.done, &q.error, e);
}

static int add_naming(void *arg, const struct promql_series *series, struct err *e)
{
	struct prometheus_session *s = arg;
	s->namings |= gpu_names_of(series);
	return 0;
}

int prometheus_session_find_gpus(struct prometheus_session *s, struct err *e)
{
	const struct promql_question question = {.query = gpu_names_query};
	s->namings = 0;
	return prometheus_session_ask_gpus(s, &question, add_naming, s, e);
}

int prometheus_session_ask_gpus(struct prometheus_session *s, const struct promql_question *question,
                                prometheus_series_fn *take, void *arg, struct err *e)
{
	struct promql_question completed = *question;
	struct buf query = BUF(PROMQL_QUERY_BYTES_MAX);
	int rc = gpu_names_complete(&query, question->query, s->namings, e);
	completed.query = buf_str(&query);
	if (rc == 0)
		rc = prometheus_session_ask(s, &completed, take, arg, e);
	buf_done(&query);
	return rc;
}
