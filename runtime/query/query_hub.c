// SPDX-License-Identifier: Apache-2.0
#include "runtime/query/query_hub.h"

#include <event2/event.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/hash_table.h"
#include "promql/freshness.h"
#include "promql/promql.h"
#include "promql/promql_source.h"
#include "promql/similar.h"
#include "runtime/query/query_record.h"

#define FUSE_DEADLINE_MS 2000 // for several queries in one request, each of which was fast; at most half of an interval
#define FUSE_SLOW_MS     (2 * QUERY_FAST_MS) // a combined request that takes longer contains a slow query
#define REFUSALS_MAX     3                   // consecutive refusals of the query for the age alone

// The labels that consumers read; other labels are dropped.
static const char *const kept_labels[] = {"__name__", "exported_pod", "pod", FRESHNESS_LABEL, FUSE_LABEL, NULL};

struct waiter {
	query_answer_fn *fn;
	void *arg;
};

// A combined request that failed or was slow, kept while its queries are sent alone.
struct split {
	int refs;
	int left;       // outstanding answers
	bool has_cause; // one of the queries failed or was slow alone
};

// Kept small: there may be 20,000 of them.
struct query_entry {
	struct hub_source *of;
	char *namespace_name; // namespace of the first policy that asked; NULL: not in flight
	int64_t wait_ms;      // the shortest one requested in this tick
	int64_t asked_mono_ms;
	struct query_record record;
	struct split *split; // the last split that the query was part of; NULL: none, or its outcome is known
	bool is_split_open;  // the answer to the query alone is outstanding
	bool in_flight;
	bool asked_age;       // the request in flight carries the freshness series, too
	uint16_t recent_at;   // in query_hub.recent, when it is there
	int refused;          // times in a row that the query was refused only with the freshness series
	size_t age_bytes;     // length of the query with the freshness series; 0: the query is sent unchanged
	const char *refusal;  // why the query is never sent; NULL: it is
	int64_t asked_for_ms; // the tick of the last request
	struct query_entry *next_waiting;
	int64_t lookback_ms;         // the longest that a policy requested
	size_t max_series;           // the largest limit that a policy requested
	struct query_answer *answer; // to asked_for_ms once !in_flight; NULL: none, large, or no longer recent
	struct waiter *waiters;
	size_t n_waiters, cap_waiters;
	UT_hash_handle hh;
	char query[];
};

// Queries of one tick that are in flight in one request.
struct batch {
	size_t n;
	struct query_entry *entries[FUSE_MAX];
};

static int64_t now_ms(const struct query_entry *q)
{
	return clock_mono_ms(q->of->source->clock);
}

static struct query_answer *answer_of(const struct query_entry *q, const struct promql_result *r, const int8_t *of,
                                      int index)
{
	const struct promql_source *source = q->of->source;
	const char *recovered = promql_source_has_just_recovered(source) ? source->name : NULL;
	return query_answer_of(r, of, index, q->max_series, recovered, q->of->hub->memory);
}

// Takes ownership of the reference to a.
static void deliver(struct query_entry *q, struct query_answer *a)
{
	// Detaches the list first, because callbacks may ask again.
	struct waiter *waiters = q->waiters;
	size_t n = q->n_waiters;
	q->waiters = NULL;
	q->n_waiters = q->cap_waiters = 0;
	for (size_t i = 0; i < n; i++)
		waiters[i].fn(waiters[i].arg, a);
	query_answer_unref(a);
	free(waiters);
}

// Returns the query with the freshness series, written to `room`, or the query alone when it is sent unchanged. The
// text is rendered for each request, because 20,000 of them would take more memory than time.
static const char *text_of(const struct query_entry *q, struct buf *room)
{
	buf_reset(room);
	if (q->age_bytes == 0)
		return q->query;
	// entry_for() has rendered the same text, so only a lack of memory can make it fail now.
	if (freshness_wrap(room, q->query) != FRESHNESS_WRAPPED)
		abort();
	return buf_str(room);
}

static void forget_recent(const struct query_entry *q)
{
	struct query_entry **recent = &q->of->hub->recent[q->recent_at];
	if (*recent == q)
		*recent = NULL;
}

// Adds the answer of q to the ring and evicts the oldest one: most of the answers of 20,000 queries are never requested
// again.
static void keep_recent(struct query_entry *q)
{
	struct query_hub *hub = q->of->hub;
	q->recent_at = (uint16_t)(hub->n_recent++ % QUERY_RECENT_MAX);
	struct query_entry **recent = &hub->recent[q->recent_at];
	if (*recent) {
		query_answer_unref((*recent)->answer);
		(*recent)->answer = NULL;
	}
	*recent = q;
}

static void finish(struct query_entry *q, struct query_answer *a)
{
	q->in_flight = false;
	free(q->namespace_name);
	q->namespace_name = NULL;
	a->skew_ms = promql_source_unexplained_skew_ms(q->of->source);
	query_answer_unref(q->answer);
	q->answer = a->memory ? NULL : query_answer_ref(a); // a large answer is not shared within the tick
	forget_recent(q);
	if (query_record_wait_ms(&q->record, q->asked_for_ms) == 0)
		keep_recent(q); // otherwise the answer stands until the query may be sent again
	deliver(q, a);
}

static void send_query(struct query_entry *q, bool with_age);

// `scalar or vector` is not valid PromQL: a scalar query is sent without the freshness series from now on. Any other
// refusal may be temporary (series that match twice while pods are replaced): the query keeps the freshness series
// until REFUSALS_MAX refusals in a row concern these alone.
static void note_plain(struct query_entry *q, const struct promql_result *result)
{
	if (result->type == PROMQL_VECTOR && ++q->refused < REFUSALS_MAX)
		return;
	q->age_bytes = 0;
}

// With one source its name adds nothing; the error contains its address.
static struct query_answer *answer_error(const struct query_entry *q, struct err *e)
{
	int64_t wait_ms = query_record_wait_ms(&q->record, q->asked_for_ms);
	if (e->kind == ERR_TOO_LARGE && e->code > 0)
		return query_answer_too_many((size_t)e->code - q->asked_age);
	if (q->of->hub->n > 1 && strncmp(e->msg, "source ", 7) != 0)
		err_wrap(e, "source %s", q->of->source->name);
	if (wait_ms > 0)
		err_wrap(e, "asked again after %lld s", (long long)(wait_ms + 999) / 1000);
	return query_answer_failed(OBS_FAILED, "%s", e->msg);
}

// ---- splitting a combined request ----

static void split_unref(struct split *s)
{
	if (s && --s->refs == 0)
		free(s);
}

static void split_join(struct query_entry *q, struct split *s)
{
	split_unref(q->split);
	s->refs++;
	s->left++;
	q->split = s;
	q->is_split_open = true;
}

static void split_answered(struct query_entry *q, bool is_cause)
{
	if (!q->is_split_open)
		return;
	q->is_split_open = false;
	q->split->left--;
	q->split->has_cause |= is_cause;
}

// Without a cause, the queries of the last split are too large together, and are not combined again for a while.
static void split_leave(struct query_entry *q)
{
	if (!q->split || q->is_split_open)
		return;
	if (q->split->left == 0 && !q->split->has_cause)
		query_record_set_apart(&q->record);
	split_unref(q->split);
	q->split = NULL;
}

// ---- one query in one request ----

// Updates the record from the answer to the query alone. Returns true when the answer would have spoiled a combined
// request.
static bool classify(struct query_entry *q, const struct promql_result *result, const struct err *error)
{
	if (result) {
		bool is_good =
		        result->n_warnings == 0 && (result->type == PROMQL_VECTOR || result->type == PROMQL_SCALAR);
		if (is_good)
			query_record_answered(&q->record, result->type == PROMQL_VECTOR);
		else
			query_record_isolate(&q->record);
		return !is_good || query_record_is_slow(&q->record);
	}
	if (error->code != PROMQL_NOT_SENT && error->kind != ERR_CANCELED && !promql_source_is_down(q->of->source))
		query_record_failed(&q->record, q->asked_for_ms, error->retry_after_ms, q->of->source->epoch);
	return true;
}

static void on_result(void *arg, const struct promql_result *result, const struct err *error)
{
	struct query_entry *q = arg;
	if (!error || error->code != PROMQL_NOT_SENT)
		query_record_took(&q->record, q->of->source->took_ms, true);
	if (error && error->kind == ERR_REJECTED && q->asked_age) {
		send_query(q, false); // an invalid query then reports its own error
		return;
	}
	if (result && q->age_bytes > 0 && !q->asked_age)
		note_plain(q, result);
	else
		q->refused = 0;
	struct err e = error ? *error : (struct err){0};
	split_answered(q, classify(q, result, error));
	finish(q, result ? answer_of(q, result, NULL, 0) : answer_error(q, &e));
}

// The rest of the time that the query may be queued.
static int64_t left_ms(const struct query_entry *q)
{
	int64_t left = q->wait_ms - (now_ms(q) - q->asked_mono_ms);
	return left > 0 ? left : 1;
}

static void send_query(struct query_entry *q, bool with_age)
{
	struct buf text;
	struct err e;
	q->asked_age = with_age && q->age_bytes > 0;
	buf_init(&text, PROMQL_QUERY_BYTES_MAX);
	struct promql_question question = {.query = q->asked_age ? text_of(q, &text) : q->query,
	                                   .time_ms = q->asked_for_ms,
	                                   .lookback_ms = q->lookback_ms,
	                                   .max_series = q->max_series + q->asked_age, // and the age
	                                   .labels = kept_labels};
	struct promql_ticket ticket = {.namespace_name = q->namespace_name,
	                               .wait_ms = left_ms(q),
	                               .is_slow = query_record_is_slow(&q->record)};
	int rc = promql_source_ask(q->of->source, &question, &ticket, on_result, q, &e);
	buf_done(&text);
	if (rc == 0)
		return;
	split_answered(q, true);
	finish(q, answer_error(q, &e));
}

// ---- several in one request ----

static void fail_batch(struct batch *b, const struct err *error)
{
	for (size_t i = 0; i < b->n; i++) {
		struct err e = *error;
		finish(b->entries[i], answer_error(b->entries[i], &e));
	}
}

static void split_batch(struct batch *b)
{
	struct split *s = must_alloc(calloc(1, sizeof *s));
	for (size_t i = 0; i < b->n; i++)
		split_join(b->entries[i], s);
	b->entries[0]->of->apart++;
}

// Sends each query alone, in the tick in which the combined request failed.
static void part(struct batch *b)
{
	split_batch(b);
	for (size_t i = 0; i < b->n; i++)
		send_query(b->entries[i], true);
}

static void batch_answered(struct batch *b, const struct promql_result *result, const int8_t *of, int64_t took_ms)
{
	if (took_ms >= FUSE_SLOW_MS)
		split_batch(b); // each query is sent alone at the next tick, and measured
	for (size_t i = 0; i < b->n; i++) {
		query_record_took(&b->entries[i]->record, took_ms, false);
		query_record_answered(&b->entries[i]->record, true);
		finish(b->entries[i], answer_of(b->entries[i], result, of, (int)i));
	}
}

static void on_batch(void *arg, const struct promql_result *result, const struct err *error)
{
	struct batch *b = arg;
	struct promql_source *source = b->entries[0]->of->source;
	int8_t *of = NULL;
	// A warning may concern any of the queries and is treated as missing data, so each is sent alone.
	if (result && result->type == PROMQL_VECTOR && result->n_warnings == 0)
		of = malloc(result->n_series ? result->n_series : 1);
	if (result && of) {
		for (size_t i = 0; i < result->n_series; i++)
			of[i] = (int8_t)fuse_index(&result->series[i]);
		batch_answered(b, result, of, source->took_ms);
	} else if (error &&
	           (error->code == PROMQL_NOT_SENT || error->kind == ERR_CANCELED || promql_source_is_down(source))) {
		fail_batch(b, error);
	} else {
		part(b);
	}
	free(of);
	free(b);
}

static void send_batch(struct batch *b, struct promql_source *source)
{
	struct buf text, one;
	struct err e;
	struct promql_question question = {.time_ms = b->entries[0]->asked_for_ms,
	                                   .lookback_ms = b->entries[0]->lookback_ms,
	                                   .labels = kept_labels,
	                                   .timeout_ms = FUSE_DEADLINE_MS};
	struct promql_ticket ticket = {.wait_ms = PROMQL_WAIT_MS, .is_batch = true};
	buf_init(&text, PROMQL_QUERY_BYTES_MAX);
	buf_init(&one, PROMQL_QUERY_BYTES_MAX);
	for (size_t i = 0; i < b->n; i++) {
		struct query_entry *q = b->entries[i];
		question.max_series += q->max_series + 1; // and the age
		q->asked_age = true;                      // the source is known to accept the plain query, too
		if (question.timeout_ms > q->wait_ms / 2) // leave time to send the queries alone in this tick
			question.timeout_ms = q->wait_ms / 2;
		if (ticket.wait_ms > left_ms(q))
			ticket.wait_ms = left_ms(q);
		fuse_add(&text, text_of(q, &one), (int)i);
	}
	buf_done(&one);
	question.query = buf_str(&text);
	b->entries[0]->of->hub->fused += b->n;
	if (text.failed) {
		part(b);
		free(b);
	} else if (promql_source_ask(source, &question, &ticket, on_batch, b, &e) < 0) {
		on_batch(b, NULL, &e);
	}
	buf_done(&text);
}

// Sends the first of a list, together with those behind it that were asked for the same moment. Returns the rest.
static struct query_entry *send_some(const struct hub_source *s, struct query_entry *first)
{
	struct query_entry *q = first;
	size_t room = promql_source_fuse_bytes(s->source);
	struct batch *b = must_alloc(calloc(1, sizeof *b));
	while (q && b->n < FUSE_MAX && q->asked_for_ms == first->asked_for_ms && q->lookback_ms == first->lookback_ms) {
		size_t bytes = (q->age_bytes > 0 ? q->age_bytes : strlen(q->query)) + FUSE_BYTES_EACH;
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
	send_query(first, true);
	return q;
}

void query_hub_flush(struct query_hub *hub)
{
	query_hub_flush_early(hub);
	for (size_t i = 0; i < hub->n; i++) {
		struct hub_source *s = &hub->of[i];
		while (s->first_waiting) { // an immediate answer may queue new queries
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
	query_hub_flush(arg);
}

// Queries that can be combined wait for the next turn of the loop, when all queries of the tick are queued.
static void send_soon(struct query_hub *hub, struct hub_source *s, struct query_entry *q)
{
	split_leave(q);
	if (q->is_split_open || !query_record_may_fuse(&q->record) || promql_source_fuse_bytes(s->source) == 0) {
		send_query(q, true);
		return;
	}
	*s->waiting = q;
	s->waiting = &q->next_waiting;
	event_active(&hub->flush, EV_TIMEOUT, 0);
}

#define TEXT_OF(number)  TEXT_OF_(number)
#define TEXT_OF_(number) #number
static const char too_long_to_check[] = "the age of its data cannot be checked: more than " TEXT_OF(
        FRESHNESS_SELECTORS_MAX) " different selectors, "
                                 "or more than 64 KiB with the question about their age; let recording rules hold "
                                 "parts of it";
_Static_assert(PROMQL_QUERY_BYTES_MAX == 65536, "the text above states this ceiling");

static struct query_entry *entry_for(struct hub_source *s, const char *query)
{
	struct query_entry *q = NULL;
	HASH_FIND_STR(s->entries, query, q);
	if (q)
		return q;
	size_t size = strlen(query) + 1;
	q = must_alloc(calloc(1, sizeof *q + size));
	memcpy(q->query, query, size);
	q->of = s;
	q->asked_for_ms = INT64_MIN;
	struct buf wrapped;
	buf_init(&wrapped, PROMQL_QUERY_BYTES_MAX);
	enum freshness freshness = freshness_wrap(&wrapped, query);
	if (freshness == FRESHNESS_WRAPPED)
		q->age_bytes = wrapped.len;
	else if (freshness == FRESHNESS_TOO_LONG)
		q->refusal = too_long_to_check;
	buf_done(&wrapped);
	HASH_ADD_STR(s->entries, query, q);
	return q;
}

// Sources may be added, and none is removed.
static void take_sources(struct query_hub *hub)
{
	for (; hub->n < hub->sources->n; hub->n++) {
		struct hub_source *s = &hub->of[hub->n];
		s->hub = hub;
		s->source = hub->sources->items[hub->n];
		s->waiting = &s->first_waiting;
	}
}

static struct hub_source *part_for(struct query_hub *hub, const struct promql_source *server)
{
	take_sources(hub);
	for (size_t i = 0; i < hub->n; i++)
		if (hub->of[i].source == server)
			return &hub->of[i];
	return NULL;
}

// Takes ownership of the reference to a: fn may ask again, so that the hub drops the answer.
static void answer_now(struct query_answer *a, query_answer_fn *fn, void *arg)
{
	fn(arg, a);
	query_answer_unref(a);
}

void query_hub_ask(struct query_hub *hub, const struct query_question *question, int64_t now_ms, query_answer_fn *fn,
                   void *arg)
{
	struct err e;
	const struct promql_source *first = promql_sources_find(hub->sources, question->source, &e);
	if (first)
		query_hub_ask_server(hub, first, question, now_ms, fn, arg);
	else
		answer_now(query_answer_failed(OBS_FAILED, "%s", e.msg), fn, arg);
}

void query_hub_ask_server(struct query_hub *hub, const struct promql_source *server,
                          const struct query_question *question, int64_t now_ms, query_answer_fn *fn, void *arg)
{
	int64_t wait_ms = question->wait_ms > 0 ? question->wait_ms : PROMQL_WAIT_MS;
	struct hub_source *s = part_for(hub, server);
	struct query_entry *q = entry_for(s, question->query);
	if (q->refusal) {
		q->asked_for_ms = now_ms; // keep the entry alive
		answer_now(query_answer_failed(OBS_FAILED, "%s", q->refusal), fn, arg);
		return;
	}
	// Stale data must stay visible for a while, or it could not be distinguished from data that never existed.
	if (question->stale_after_ms > PROMQL_LOOKBACK_MS / 2 && q->lookback_ms < 2 * question->stale_after_ms)
		q->lookback_ms = 2 * question->stale_after_ms;
	size_t max_series = question->max_series ? question->max_series : PROMQL_SERIES_MAX;
	if (q->max_series < max_series)
		q->max_series = max_series;
	if (q->answer && !q->in_flight && q->asked_for_ms == now_ms) {
		hub->shared++;
		answer_now(query_answer_ref(q->answer), fn, arg);
		return;
	}
	query_record_begin(&q->record, s->source->epoch);
	if (q->answer && !q->in_flight && query_record_wait_ms(&q->record, now_ms) > 0) {
		s->postponed++;
		q->asked_for_ms = now_ms;
		answer_now(query_answer_ref(q->answer), fn, arg);
		return;
	}
	must_reserve(&q->waiters, q->n_waiters, &q->cap_waiters, sizeof *q->waiters, 2);
	q->waiters[q->n_waiters++] = (struct waiter){fn, arg};
	if (q->in_flight) { // joins the request in flight, also one of a slightly earlier tick
		hub->shared++;
		if (q->wait_ms > wait_ms)
			q->wait_ms = wait_ms;
		return;
	}
	q->in_flight = true;
	q->asked_for_ms = now_ms;
	q->asked_mono_ms = clock_mono_ms(s->source->clock);
	q->wait_ms = wait_ms;
	q->namespace_name = must_alloc(strdup(question->namespace_name ? question->namespace_name : ""));
	send_soon(hub, s, q);
}

static void entry_free(struct hub_source *s, struct query_entry *q)
{
	HASH_DEL(s->entries, q);
	forget_recent(q);
	query_answer_unref(q->answer);
	free(q->waiters);
	if (q->is_split_open)
		split_answered(q, true); // the query will not be answered; a split must not conclude that its queries
		                         // are too large together
	split_unref(q->split);
	free(q->namespace_name);
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

struct query_hub *query_hub_new(struct promql_sources *sources)
{
	struct query_hub *hub = must_alloc(calloc(1, sizeof *hub + PROMQL_SOURCES_MAX * sizeof hub->of[0]));
	hub->sources = sources;
	hub->memory = query_memory_new();
	event_assign(&hub->flush, sources->loop, -1, 0, on_flush, hub);
	take_sources(hub);
	return hub;
}

void query_hub_free(struct query_hub *hub)
{
	if (!hub)
		return;
	event_del(&hub->flush);
	for (size_t i = 0; i < hub->n; i++) {
		struct query_entry *q, *next;
		HASH_ITER(hh, hub->of[i].entries, q, next)
		entry_free(&hub->of[i], q);
	}
	query_memory_abandon(hub->memory);
	free(hub);
}

struct query_agreement *query_hub_agreement_of(struct query_hub *hub, const struct promql_source *first)
{
	return &part_for(hub, first)->agreement;
}

struct query_hub_stats query_hub_source_stats(const struct query_hub *hub, size_t source)
{
	const struct hub_source *s = &hub->of[source];
	struct query_hub_stats stats = {
	        .apart = s->apart, .postponed = s->postponed, .disagreed = s->agreement.disagreed};
	for (const struct query_entry *q = s->entries; q; q = q->hh.next)
		stats.isolated += query_record_is_isolated(&q->record);
	return stats;
}
