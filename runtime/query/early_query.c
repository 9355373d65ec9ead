// SPDX-License-Identifier: Apache-2.0
// Combines the early checks of policies into one request.
#include "base/base.h"
#include "runtime/query/query_hub.h"

#include <event2/event.h>
#include <utlist.h>

#include "promql/promql.h"
#include "promql/promql_source.h"
#include "promql/similar.h"

#define SERIES_EACH 4 // per query: series with the label values of different queries may exist, too

struct early {
	char *query;
	struct similar_query parsed;
	early_query_fn *fn;
	void *arg;
	size_t n_series;
	double value;
};

// The queries of one shape, for one source and moment.
struct early_group {
	struct early_group *prev, *next; // while it is queued
	struct promql_source *source;
	int64_t now_ms;
	char *shape;
	size_t bytes;                               // size of the queries
	const char *labels[SIMILAR_LABELS_MAX + 1]; // that identify a query, in peeks[0]
	size_t n, cap;
	struct early *peeks;
};

static void finish(struct early_group *g, enum early_query_outcome outcome)
{
	for (size_t i = 0; i < g->n; i++) {
		g->peeks[i].fn(g->peeks[i].arg, outcome, g->peeks[i].n_series, g->peeks[i].value);
		free(g->peeks[i].query);
	}
	free(g->peeks);
	free(g->shape);
	free(g);
}

static enum early_query_outcome outcome_of(const struct early_group *g, const struct promql_result *result,
                                           const struct err *error)
{
	if (result)
		return result->type == PROMQL_VECTOR && result->n_warnings == 0 ? EARLY_QUERY_ANSWERED
		                                                                : EARLY_QUERY_UNFIT;
	bool is_refused = error->kind == ERR_REJECTED || error->kind == ERR_TOO_LARGE;
	return is_refused && error->code != PROMQL_NOT_SENT && !promql_source_is_down(g->source) ? EARLY_QUERY_UNFIT
	                                                                                         : EARLY_QUERY_FAILED;
}

static void on_result(void *arg, const struct promql_result *result, const struct err *error)
{
	struct early_group *g = arg;
	enum early_query_outcome outcome = outcome_of(g, result, error);
	for (size_t i = 0; outcome == EARLY_QUERY_ANSWERED && i < result->n_series; i++) {
		const struct promql_series *s = &result->series[i];
		for (size_t k = 0; k < g->n; k++) {
			struct early *p = &g->peeks[k];
			if (s->n_samples > 0 && similar_matches(s, p->query, &p->parsed) && p->n_series++ == 0)
				p->value = s->samples[0].value;
		}
	}
	finish(g, outcome);
}

// The text and the names of the labels, which the answer is decoded with.
static void put_query(struct early_group *g, struct buf *text)
{
	const char *queries[QUERY_PEEKS_TOGETHER];
	struct similar_query parsed[QUERY_PEEKS_TOGETHER];
	for (size_t i = 0; i < g->n; i++) {
		queries[i] = g->peeks[i].query;
		parsed[i] = g->peeks[i].parsed;
	}
	similar_put_all(text, queries, parsed, g->n);
	for (size_t i = 0; i < parsed[0].n; i++)
		g->labels[i] = g->peeks[0].parsed.name[i];
}

static void send_group(struct early_group *g)
{
	struct buf text;
	struct err e = {0};
	struct promql_question question = {.time_ms = g->now_ms,
	                                   .max_series = SERIES_EACH * g->n,
	                                   .labels = g->labels,
	                                   .timeout_ms = EARLY_QUERY_MS};
	struct promql_ticket ticket = {.wait_ms = EARLY_QUERY_MS, .is_batch = true};
	buf_init(&text, PROMQL_QUERY_BYTES_MAX);
	put_query(g, &text);
	question.query = buf_str(&text);
	if (text.failed)
		finish(g, EARLY_QUERY_UNFIT);
	else if (promql_source_ask(g->source, &question, &ticket, on_result, g, &e) < 0)
		finish(g, EARLY_QUERY_FAILED);
	buf_done(&text);
}

void query_hub_flush_early(struct query_hub *hub)
{
	while (hub->early) { // an immediate answer may queue another question
		struct early_group *g = hub->early;
		DL_DELETE(hub->early, g);
		send_group(g);
	}
}

static struct early_group *group_for(struct query_hub *hub, struct promql_source *source, const char *shape,
                                     int64_t now_ms)
{
	struct early_group *g;
	DL_FOREACH(hub->early, g)
	if (g->source == source && g->now_ms == now_ms && strcmp(g->shape, shape) == 0)
		return g;
	g = must_alloc(calloc(1, sizeof *g));
	g->source = source;
	g->now_ms = now_ms;
	g->shape = must_alloc(strdup(shape));
	DL_APPEND(hub->early, g);
	event_active(&hub->flush, EV_TIMEOUT, 0);
	return g;
}

static void add(struct early_group *g, const struct early *early)
{
	must_reserve(&g->peeks, g->n, &g->cap, sizeof *g->peeks, 4);
	g->peeks[g->n++] = *early;
	g->bytes += strlen(early->query);
}

bool query_hub_check_early(struct query_hub *hub, const struct query_question *question, int64_t now_ms,
                           early_query_fn *fn, void *arg)
{
	struct early early = {.fn = fn, .arg = arg};
	const char *query = question->query;
	struct err e;
	struct promql_source *source = promql_sources_find(hub->sources, question->source, &e);
	if (!source || source->next)
		return false;
	size_t room = promql_source_fuse_bytes(source) / 2; // values grow when they become patterns
	struct buf shape;
	if (strlen(query) > room || !similar_parse(query, &early.parsed))
		return false;
	buf_init(&shape, PROMQL_QUERY_BYTES_MAX);
	similar_put_shape(&shape, query, &early.parsed);
	struct early_group *g = group_for(hub, source, buf_str(&shape), now_ms);
	buf_done(&shape);
	early.query = must_alloc(strdup(query));
	add(g, &early);
	if (g->n == QUERY_PEEKS_TOGETHER || g->bytes + strlen(query) > room) {
		DL_DELETE(hub->early, g);
		send_group(g);
	}
	return true;
}
