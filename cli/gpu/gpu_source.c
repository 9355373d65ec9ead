// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu/gpu_source.h"

#include "cli/term/cli.h"
#include "insight/gpu_names.h"
#include "promql/promql.h"

int gpu_source_ask(const struct gpu_source *s, const struct promql_question *question,
                   const struct prometheus_range *range, prometheus_series_fn *take, void *arg, struct err *e)
{
	struct promql_question completed = *question;
	struct buf query;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	int rc = gpu_names_complete(&query, question->query, s->namings, e);
	completed.query = buf_str(&query);
	if (rc == 0)
		rc = prometheus_session_ask(s->session, &completed, range, take, arg, e);
	buf_done(&query);
	return rc;
}

static int add_naming(void *arg, const struct promql_series *s, struct err *e)
{
	struct gpu_source *source = arg;
	source->namings |= gpu_names_of(s);
	return 0;
}

int gpu_source_open(struct gpu_source *ret, struct prometheus_session *session, struct err *e)
{
	const struct promql_question question = {.query = gpu_names_query};
	*ret = (struct gpu_source){.session = session};
	return gpu_source_ask(ret, &question, NULL, add_naming, ret, e);
}
