// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu/gpu_source.h"

#include <event2/event.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "insight/gpu_names.h"
#include "promql/promql_failover.h"
#include "runtime/connections.h"

static const struct promql_ticket no_ticket;

struct question {
	gpu_series_fn *take;
	void *arg;
	bool done;
	struct err error; // of the answer
};

static void on_answer(void *arg, const struct promql_result *result, const struct err *error)
{
	struct question *q = arg;
	q->done = true;
	promql_result_check(result, error, &q->error);
	for (size_t i = 0; q->error.kind == ERR_NONE && i < result->n_series; i++)
		if (q->take(q->arg, &result->series[i], &q->error) < 0)
			return;
}

int gpu_source_ask(const struct gpu_source *s, const struct promql_question *question, gpu_series_fn *take, void *arg,
                   struct err *e)
{
	struct question q = {.take = take, .arg = arg};
	struct promql_question completed = *question;
	struct buf query;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	int rc = gpu_names_complete(&query, question->query, s->namings, e);
	completed.query = buf_str(&query);
	if (rc == 0)
		rc = promql_failover_ask(s->source, &completed, &no_ticket, on_answer, &q, e);
	buf_done(&query);
	return rc < 0 ? -1 : connections_wait(s->c, &q.done, &q.error, e);
}

static int add_naming(void *arg, const struct promql_series *s, struct err *e)
{
	struct gpu_source *source = arg;
	source->namings |= gpu_names_of(s);
	return 0;
}

int gpu_source_open(struct gpu_source *ret, struct connections *c, struct err *e)
{
	const struct promql_question question = {.query = gpu_names_query};
	*ret = (struct gpu_source){.c = c, .source = promql_sources_find(c->promql, NULL, e)};
	return ret->source ? gpu_source_ask(ret, &question, add_naming, ret, e) : -1;
}
