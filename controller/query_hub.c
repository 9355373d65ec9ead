// SPDX-License-Identifier: Apache-2.0
#include "controller/query_hub.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/err.h"
#include "promql/freshness.h"
#include "promql/promql.h"
#include "promql/promql_source.h"

struct waiter {
	query_answer_fn *fn;
	void *arg;
};

struct query_entry {
	struct query_hub *hub;
	struct promql_source *source;
	char *query;
	char *wrapped; // with the freshness series; NULL when the query is asked as it is
	bool in_flight;
	bool asked_wrapped;          // the request under way carries `wrapped`
	int64_t asked_for_ms;        // the tick of the last request
	int64_t lookback_ms;         // the longest that anybody asked for
	struct query_answer *answer; // to asked_for_ms once !in_flight
	struct waiter *waiters;
	size_t n_waiters, cap_waiters;
	UT_hash_handle hh;
};

struct query_hub {
	struct promql_sources *sources;
	uint64_t shared;
	size_t n;
	struct hub_source {
		struct promql_source *source;
		struct query_entry *entries; // uthash by query
	} of[];
};

struct query_answer *query_answer_ref(struct query_answer *a)
{
	a->refs++;
	return a;
}

void query_answer_unref(struct query_answer *a)
{
	if (a && --a->refs == 0)
		free(a);
}

static struct query_answer *answer_new(enum obs_state state, size_t n_series, size_t text_bytes)
{
	struct query_answer *a = calloc(1, sizeof *a + n_series * sizeof *a->series + text_bytes);
	if (!a)
		abort(); // nothing sensible can be decided without memory; the supervisor restarts us
	a->refs = 1;
	a->state = state;
	a->n_series = n_series;
	a->series = (struct obs_series *)(void *)(a + 1);
	return a;
}

static struct query_answer *answer_failed(enum obs_state state, const char *detail)
{
	struct query_answer *a = answer_new(state, 0, 0);
	snprintf(a->detail, sizeof a->detail, "%s", detail);
	return a;
}

// The pod a series speaks of: dcgm-exporter's label is renamed by Prometheus when the target has one of its own.
static const char *pod_of(const struct promql_series *s)
{
	const char *pod = promql_label(s, "exported_pod");
	return pod[0] ? pod : promql_label(s, "pod");
}

static int compare_pods(const void *a, const void *b)
{
	return strcmp(((const struct obs_series *)a)->pod, ((const struct obs_series *)b)->pod);
}

static struct query_answer *answer_of(const struct promql_result *r)
{
	if (r->type != PROMQL_VECTOR && r->type != PROMQL_SCALAR)
		return answer_failed(OBS_FAILED,
		                     "the query returns a range or a string; a number per series is needed");
	if (r->n_warnings)
		return answer_failed(OBS_PARTIAL, r->warnings[0]);
	size_t n = 0, text = 0;
	int64_t newest_ms = INT64_MAX, extra_ms;
	for (size_t i = 0; i < r->n_series; i++) {
		if (freshness_is_series(&r->series[i], &extra_ms)) {
			newest_ms = extra_ms;
			continue;
		}
		n++;
		text += strlen(pod_of(&r->series[i])) + 1;
	}
	struct query_answer *a = answer_new(n ? OBS_OK : OBS_EMPTY, n, text);
	char *at = (char *)(a->series + n);
	size_t k = 0;
	for (size_t i = 0; i < r->n_series; i++) {
		const struct promql_series *s = &r->series[i];
		if (freshness_is_series(s, &extra_ms) || s->n_samples == 0)
			continue;
		const char *pod = pod_of(s);
		size_t len = strlen(pod) + 1;
		memcpy(at, pod, len);
		int64_t t = s->samples[0].time_ms;
		a->series[k++] = (struct obs_series){
		        .pod = at, .value = s->samples[0].value, .time_ms = t < newest_ms ? t : newest_ms};
		at += len;
	}
	a->n_series = k;
	if (k > 1) // what matches pods is linear when they are in order
		qsort(a->series, k, sizeof *a->series, compare_pods);
	return a;
}

static void deliver(struct query_entry *q)
{
	// Callbacks may ask again: the list is taken off first.
	struct waiter *waiters = q->waiters;
	size_t n = q->n_waiters;
	q->waiters = NULL;
	q->n_waiters = q->cap_waiters = 0;
	struct query_answer *a = query_answer_ref(q->answer);
	for (size_t i = 0; i < n; i++)
		waiters[i].fn(waiters[i].arg, a);
	query_answer_unref(a);
	free(waiters);
}

static void finish(struct query_entry *q, struct query_answer *a)
{
	q->in_flight = false;
	query_answer_unref(q->answer);
	q->answer = a;
	deliver(q);
}

static void send_query(struct query_entry *q);

// With one source there is nothing to tell apart; its address is in the error.
static struct query_answer *answer_error(const struct query_entry *q, struct err *e)
{
	if (q->hub->n > 1 && strncmp(e->msg, "source ", 7) != 0)
		err_wrap(e, "source %s", promql_source_name(q->source));
	return answer_failed(OBS_FAILED, e->msg);
}

static void on_result(void *arg, const struct promql_result *result, const struct err *error)
{
	struct query_entry *q = arg;
	if (result) {
		finish(q, answer_of(result));
		return;
	}
	if (error->kind == ERR_REJECTED && q->asked_wrapped) {
		// `scalar or vector` is no PromQL: such a query is asked plainly from now on. A query that is wrong by
		// itself gives its own error then.
		free(q->wrapped);
		q->wrapped = NULL;
		send_query(q);
		return;
	}
	struct err e = *error;
	finish(q, answer_error(q, &e));
}

static void send_query(struct query_entry *q)
{
	struct err e;
	q->asked_wrapped = q->wrapped != NULL;
	struct promql_question question = {
	        .query = q->wrapped ? q->wrapped : q->query, .time_ms = q->asked_for_ms, .lookback_ms = q->lookback_ms};
	if (promql_source_ask(q->source, &question, on_result, q, &e) < 0)
		finish(q, answer_error(q, &e));
}

static struct query_entry *entry_for(struct query_hub *hub, struct hub_source *s, const char *query)
{
	struct query_entry *q = NULL;
	HASH_FIND_STR(s->entries, query, q);
	if (q)
		return q;
	q = calloc(1, sizeof *q);
	char *copy = strdup(query);
	if (!q || !copy)
		abort();
	q->hub = hub;
	q->source = s->source;
	q->query = copy;
	q->asked_for_ms = INT64_MIN;
	struct buf wrapped;
	buf_init(&wrapped, PROMQL_QUERY_BYTES_MAX);
	if (freshness_wrap(&wrapped, query) && !wrapped.failed)
		q->wrapped = wrapped.data; // ownership moves
	else
		buf_done(&wrapped);
	HASH_ADD_KEYPTR(hh, s->entries, q->query, strlen(q->query), q);
	return q;
}

static struct hub_source *source_for(struct query_hub *hub, const char *name, struct err *e)
{
	struct promql_source *source = promql_sources_find(hub->sources, name, e);
	for (size_t i = 0; source && i < hub->n; i++)
		if (hub->of[i].source == source)
			return &hub->of[i];
	return NULL;
}

void query_hub_ask(struct query_hub *hub, const struct query_question *question, int64_t now_ms, query_answer_fn *fn,
                   void *arg)
{
	struct err e;
	struct hub_source *s = source_for(hub, question->source, &e);
	if (!s) {
		struct query_answer *a = answer_failed(OBS_FAILED, e.msg);
		fn(arg, a);
		query_answer_unref(a);
		return;
	}
	struct query_entry *q = entry_for(hub, s, question->query);
	// Data must still be seen a while after it is stale, or it could not be told from data that never was.
	if (question->stale_after_ms > PROMQL_LOOKBACK_MS / 2 && q->lookback_ms < 2 * question->stale_after_ms)
		q->lookback_ms = 2 * question->stale_after_ms;
	if (q->answer && !q->in_flight && q->asked_for_ms == now_ms) {
		hub->shared++;
		fn(arg, q->answer);
		return;
	}
	if (q->n_waiters == q->cap_waiters) {
		size_t cap = q->cap_waiters ? q->cap_waiters * 2 : 2;
		struct waiter *grown = realloc(q->waiters, cap * sizeof *grown);
		if (!grown)
			abort();
		q->waiters = grown;
		q->cap_waiters = cap;
	}
	q->waiters[q->n_waiters++] = (struct waiter){fn, arg};
	if (q->in_flight) { // joins the request under way, also when it was asked for a slightly earlier tick
		hub->shared++;
		return;
	}
	q->in_flight = true;
	q->asked_for_ms = now_ms;
	send_query(q);
}

static void entry_free(struct hub_source *s, struct query_entry *q)
{
	HASH_DEL(s->entries, q);
	query_answer_unref(q->answer);
	free(q->waiters);
	free(q->wrapped);
	free(q->query);
	free(q);
}

void query_hub_forget(struct query_hub *hub, int64_t before_ms)
{
	for (size_t i = 0; i < hub->n; i++) {
		struct query_entry *q, *next;
		HASH_ITER(hh, hub->of[i].entries, q, next)
		if (!q->in_flight && q->asked_for_ms < before_ms)
			entry_free(&hub->of[i], q);
	}
}

struct query_hub *query_hub_new(struct promql_sources *sources, struct err *e)
{
	size_t n = promql_sources_count(sources);
	struct query_hub *hub = calloc(1, sizeof *hub + n * sizeof hub->of[0]);
	if (!hub) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	hub->sources = sources;
	hub->n = n;
	for (size_t i = 0; i < n; i++)
		hub->of[i].source = promql_sources_at(sources, i);
	return hub;
}

void query_hub_free(struct query_hub *hub)
{
	if (!hub)
		return;
	for (size_t i = 0; i < hub->n; i++) {
		struct query_entry *q, *next;
		HASH_ITER(hh, hub->of[i].entries, q, next)
		entry_free(&hub->of[i], q);
	}
	free(hub);
}

uint64_t query_hub_shared(const struct query_hub *hub)
{
	return hub->shared;
}

const struct promql_sources *query_hub_sources(const struct query_hub *hub)
{
	return hub->sources;
}
