// SPDX-License-Identifier: Apache-2.0
#include "controller/query_hub.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "promql/freshness.h"
#include "promql/fuse.h"
#include "promql/promql.h"
#include "promql/promql_source.h"

#define FUSE_FAST_MS    250 // a query that takes longer by itself travels alone
#define FUSE_SOLO_TICKS 40  // so do those that were in a request that failed, for a while
#define REFUSALS_MAX    3   // of the question about the age alone, in a row

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
	bool asked_wrapped;   // the request under way carries `wrapped`
	int refused;          // times in a row that only `wrapped` was refused
	int64_t asked_for_ms; // the tick of the last request
	bool is_fusable;      // answered well and fast by itself
	int solo_ticks;       // to go
	int64_t started_ms;
	struct query_entry *next_waiting;
	int64_t lookback_ms;         // the longest that anybody asked for
	struct query_answer *answer; // to asked_for_ms once !in_flight
	struct waiter *waiters;
	size_t n_waiters, cap_waiters;
	UT_hash_handle hh;
};

struct query_hub {
	struct promql_sources *sources;
	uint64_t shared, fused;
	struct event *flush;
	size_t n;
	struct hub_source {
		struct promql_source *source;
		struct query_entry *entries; // uthash by query
		struct query_entry *first_waiting,
		        **waiting; // for company, until the loop turns; where the next one goes
	} of[];
};

// Queries of one tick under way in one request.
struct batch {
	size_t n;
	struct query_entry *entries[FUSE_MAX];
};

static int64_t now_ms(const struct query_entry *q)
{
	return clock_mono_ms(promql_source_clock(q->source));
}

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
	a->detail = "";
	return a;
}

static struct query_answer *answer_failed(enum obs_state state, const char *detail)
{
	struct query_answer *a = answer_new(state, 0, QUERY_DETAIL_BYTES);
	char *text = (char *)(a + 1);
	snprintf(text, QUERY_DETAIL_BYTES, "%s", detail);
	a->detail = text;
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

// The part of the answer that belongs to query number `index`, as `of` says for each series; of NULL: all of it.
static struct query_answer *answer_of(const struct promql_result *r, const int8_t *of, int index)
{
	if (r->type != PROMQL_VECTOR && r->type != PROMQL_SCALAR)
		return answer_failed(OBS_FAILED,
		                     "the query returns a range or a string; a number per series is needed");
	if (r->n_warnings)
		return answer_failed(OBS_PARTIAL, r->warnings[0]);
	size_t n = 0, text = 0;
	int64_t newest_ms = INT64_MAX, extra_ms;
	for (size_t i = 0; i < r->n_series; i++) {
		if (of && of[i] != index)
			continue;
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
		if ((of && of[i] != index) || freshness_is_series(s, &extra_ms) || s->n_samples == 0)
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

static const char *text_of(const struct query_entry *q)
{
	return q->wrapped ? q->wrapped : q->query;
}

static void finish(struct query_entry *q, struct query_answer *a)
{
	q->in_flight = false;
	query_answer_unref(q->answer);
	q->answer = a;
	deliver(q);
}

static void send_query(struct query_entry *q, const char *text);

// `scalar or vector` is no PromQL: such a query goes without its age from now on. Any other may have been refused for
// what passes (series that match twice while pods are replaced): it keeps its age, unless only that is refused.
static void note_plain(struct query_entry *q, const struct promql_result *result)
{
	if (result->type == PROMQL_VECTOR && ++q->refused < REFUSALS_MAX)
		return;
	free(q->wrapped);
	q->wrapped = NULL;
}

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
	q->is_fusable = result && result->type == PROMQL_VECTOR && result->n_warnings == 0 &&
	                now_ms(q) - q->started_ms < FUSE_FAST_MS;
	if (error && error->kind == ERR_REJECTED && q->asked_wrapped) {
		send_query(q, q->query); // one that is wrong by itself gives its own error then
		return;
	}
	if (result && q->wrapped && !q->asked_wrapped)
		note_plain(q, result);
	else
		q->refused = 0;
	struct err e = error ? *error : (struct err){0};
	finish(q, result ? answer_of(result, NULL, 0) : answer_error(q, &e));
}

static void send_query(struct query_entry *q, const char *text)
{
	struct err e;
	q->asked_wrapped = text == q->wrapped;
	q->started_ms = now_ms(q);
	struct promql_question question = {.query = text, .time_ms = q->asked_for_ms, .lookback_ms = q->lookback_ms};
	if (promql_source_ask(q->source, &question, on_result, q, &e) < 0)
		finish(q, answer_error(q, &e));
}

// ---- several in one request ----

// True when the error is about what was asked, so that each for itself may do better.
static bool is_about_the_query(const struct err *e)
{
	return e->kind == ERR_REJECTED || e->kind == ERR_LIMIT || e->kind == ERR_UNSUPPORTED ||
	       e->kind == ERR_PROTOCOL || e->kind == ERR_INPUT;
}

static void part(struct batch *b, const struct err *error)
{
	for (size_t i = 0; i < b->n; i++) {
		struct query_entry *q = b->entries[i];
		if (error && !is_about_the_query(error)) {
			struct err e = *error;
			q->solo_ticks = error->kind == ERR_TIMEOUT ? FUSE_SOLO_TICKS : 0;
			finish(q, answer_error(q, &e));
		} else {
			q->solo_ticks = FUSE_SOLO_TICKS;
			send_query(q, text_of(q));
		}
	}
}

static void on_batch(void *arg, const struct promql_result *result, const struct err *error)
{
	struct batch *b = arg;
	int8_t *of = NULL;
	// A warning may be about any one of them, and counts as missing data: each is asked for itself.
	if (result && result->type == PROMQL_VECTOR && result->n_warnings == 0)
		of = malloc(result->n_series ? result->n_series : 1);
	if (of) {
		for (size_t i = 0; i < result->n_series; i++)
			of[i] = (int8_t)fuse_index(&result->series[i]);
		for (size_t i = 0; i < b->n; i++)
			finish(b->entries[i], answer_of(result, of, (int)i));
	} else {
		part(b, error);
	}
	free(of);
	free(b);
}

static void send_batch(struct batch *b, struct promql_source *source)
{
	struct buf text;
	struct err e;
	buf_init(&text, PROMQL_QUERY_BYTES_MAX);
	for (size_t i = 0; i < b->n; i++) {
		b->entries[i]->asked_wrapped = true; // the plain one is known to be taken, too
		b->entries[i]->started_ms = now_ms(b->entries[i]);
		fuse_add(&text, text_of(b->entries[i]), (int)i);
	}
	struct promql_question question = {.query = buf_str(&text),
	                                   .time_ms = b->entries[0]->asked_for_ms,
	                                   .lookback_ms = b->entries[0]->lookback_ms};
	if (text.failed)
		err_set(&e, ERR_INPUT, "too long together");
	b->entries[0]->hub->fused += b->n;
	if (text.failed || promql_source_ask(source, &question, on_batch, b, &e) < 0) {
		part(b, &e);
		free(b);
	}
	buf_done(&text);
}

// Sends the first of a list, together with those behind it that were asked for the same moment. Returns the rest.
static struct query_entry *send_some(const struct hub_source *s, struct query_entry *first)
{
	struct query_entry *q = first;
	size_t room = promql_source_fuse_bytes(s->source);
	struct batch *b = calloc(1, sizeof *b);
	if (!b)
		abort();
	while (q && b->n < FUSE_MAX && q->asked_for_ms == first->asked_for_ms && q->lookback_ms == first->lookback_ms) {
		size_t bytes = strlen(text_of(q)) + FUSE_BYTES_EACH;
		if (bytes > room)
			break;
		room -= bytes;
		b->entries[b->n++] = q;
		q = q->next_waiting;
	}
	if (b->n > 1) {
		send_batch(b, s->source);
		return q;
	}
	free(b);
	q = first->next_waiting;
	send_query(first, text_of(first));
	return q;
}

void query_hub_flush(struct query_hub *hub)
{
	for (size_t i = 0; i < hub->n; i++) {
		struct hub_source *s = &hub->of[i];
		while (s->first_waiting) { // an answer that comes at once may bring new ones
			*s->waiting = NULL;
			struct query_entry *list = s->first_waiting;
			s->first_waiting = NULL;
			s->waiting = &s->first_waiting;
			while (list)
				list = send_some(s, list);
		}
	}
}

static void on_flush(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	query_hub_flush(arg);
}

// Whoever may travel with others waits until the loop turns: the rest of the tick is asked for by then.
static void send_soon(struct query_hub *hub, struct hub_source *s, struct query_entry *q)
{
	if (q->solo_ticks > 0)
		q->solo_ticks--;
	if (!q->is_fusable || q->solo_ticks > 0 || promql_source_fuse_bytes(s->source) == 0) {
		send_query(q, text_of(q));
		return;
	}
	*s->waiting = q;
	s->waiting = &q->next_waiting;
	event_active(hub->flush, EV_TIMEOUT, 0);
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
		q->wrapped = strdup(buf_str(&wrapped)); // without the room that a buffer keeps
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
	send_soon(hub, s, q);
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
	hub->flush = event_new(promql_sources_loop(sources), -1, 0, on_flush, hub);
	if (!hub->flush) {
		free(hub);
		err_set(e, ERR_INTERNAL, "cannot create an event");
		return NULL;
	}
	for (size_t i = 0; i < n; i++) {
		hub->of[i].source = promql_sources_at(sources, i);
		hub->of[i].waiting = &hub->of[i].first_waiting;
	}
	return hub;
}

void query_hub_free(struct query_hub *hub)
{
	if (!hub)
		return;
	event_free(hub->flush);
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

uint64_t query_hub_fused(const struct query_hub *hub)
{
	return hub->fused;
}

const struct promql_sources *query_hub_sources(const struct query_hub *hub)
{
	return hub->sources;
}
