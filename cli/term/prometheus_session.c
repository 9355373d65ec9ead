// SPDX-License-Identifier: Apache-2.0
#include "cli/term/prometheus_session.h"

#include <stdbool.h>

#include "base/err.h"
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
                           const struct prometheus_range *range, prometheus_series_fn *take, void *arg, struct err *e)
{
	struct question q = {.take = take, .arg = arg};
	struct promql_source *source = promql_sources_find(s->connections.promql, NULL, e);
	if (!source)
		return -1;
	struct promql_question asked = *question;
	if (range)
		asked = (struct promql_question){.query = question->query,
		                                 .is_range = true,
		                                 .start_ms = range->start_ms,
		                                 .end_ms = range->end_ms,
		                                 .step_ms = range->step_ms};
	if (promql_failover_ask(source, &asked, &no_ticket, on_answer, &q, e) < 0)
		return -1;
	if (!s->progress.timer)
		progress_watch(&s->progress, s->connections.loop);
	return connections_wait(&s->connections, &q.done, &q.error, e);
}
