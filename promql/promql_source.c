// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_source.h"

#include <event2/event.h>
#include <time.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/http/http_client.h"
#include "base/timer.h"
#include "promql/fair_queue.h"

#define FUSE_BYTES_POST  ((size_t)15 * 1024) // VictoriaMetrics refuses queries above 16 KiB by default
#define FUSE_BYTES_GET   ((size_t)2048)      // the length that every gateway accepts in a URL, encoded
#define TENANT_HEADER    "X-Scope-OrgID: "
#define TENANT_BYTES_MAX 150 // Mimir: pkg/tenant
#define OTHER_REQUESTS   3   // in addition to the slots: the probe, the detection of the API and a token

struct source_call {
	struct fair_item item;
	TAILQ_ENTRY(source_call) link; // entry in the list of parked calls
	struct promql_source *source;
	struct promql_question question; // .query is valid only until it is sent
	bool is_batch;
	uint64_t hash; // hash of the query
	int64_t asked_us, sent_us, sent_mono_ms;
	promql_done_fn *done;
	void *arg;
	// While the call is queued.
	char *query;
	struct event *expiry;
	int64_t wait_ms;
	int64_t took_ms;
	struct err *error; // while it is parked
};

// ---- health ----

// The others say that the server is there and judged this one query.
static bool is_fault_of_source(enum err_kind kind)
{
	return kind != ERR_REJECTED && kind != ERR_LIMIT && kind != ERR_TOO_LARGE && kind != ERR_UNSUPPORTED &&
	       kind != ERR_CANCELED && kind != ERR_INTERNAL && kind != ERR_INPUT;
}

static void set_error(struct promql_source *s, const char *text)
{
	snprintf(s->error, sizeof s->error, "%s", text);
}

bool promql_source_is_down(const struct promql_source *s)
{
	return s->health.state == PROMQL_DOWN;
}

static void send_waiting(struct promql_source *s);
static void refuse_waiting(struct promql_source *s);

static void note_answer(struct promql_source *s, bool is_probe)
{
	bool was_down = promql_source_is_down(s);
	s->answered_us = clock_real_mono_us();
	s->stats.last_answer_wall_ms = clock_wall_ms(s->clock);
	promql_health_answered(&s->health, is_probe);
	if (s->health.state == PROMQL_UP)
		set_error(s, "");
	if (was_down) {
		s->epoch++;
		s->recovered_mono_ms = clock_mono_ms(s->clock);
		promql_forget_kind(s->promql); // what comes back may be another version, or another server
	}
}

// ---- the probe ----

static void hand_over(struct source_call *call, const struct promql_result *result, const struct err *error)
{
	call->source->took_ms = call->took_ms;
	call->done(call->arg, result, error);
	free(call);
}

static void release_parked(struct promql_source *s)
{
	struct source_call *call;
	while ((call = TAILQ_FIRST(&s->parked))) {
		struct err e = *call->error;
		TAILQ_REMOVE(&s->parked, call, link);
		free(call->error);
		hand_over(call, NULL, &e);
	}
}

static void probe_failed(struct promql_source *s, const struct err *error)
{
	int64_t wait_ms = error->retry_after_ms < PROMQL_RETRY_AFTER_MS ? error->retry_after_ms : PROMQL_RETRY_AFTER_MS;
	if (wait_ms < PROMQL_PROBE_INTERVAL_MS)
		wait_ms = PROMQL_PROBE_INTERVAL_MS;
	s->probe_after_mono_ms = clock_mono_ms(s->clock) + wait_ms;
	promql_health_probe_failed(&s->health, s->answered_us > s->probed_us);
	set_error(s, error->msg);
}

static void end_probe(struct promql_source *s, const struct err *error)
{
	s->probing = false;
	s->stats.failed[error ? error->kind : ERR_NONE] += error != NULL;
	if (!error || !is_fault_of_source(error->kind))
		note_answer(s, true);
	else
		probe_failed(s, error);
	release_parked(s);
	if (promql_source_is_down(s))
		refuse_waiting(s);
	else
		send_waiting(s);
}

static void on_probe(void *arg, const struct promql_result *result, const struct err *error)
{
	struct promql_source *s = arg;
	if (s->closing) {
		s->probing = false;
		release_parked(s);
	} else {
		end_probe(s, error);
	}
}

// Sends the probe outside the slots, so that no query can delay it.
static void probe(struct promql_source *s)
{
	const struct promql_question question = {.query = PROMQL_PROBE, .timeout_ms = PROMQL_PROBE_TIMEOUT_MS};
	struct err e;
	if (s->probing)
		return;
	s->probing = true;
	s->probed_us = clock_real_mono_us();
	s->stats.queries++;
	if (promql_ask(s->promql, &question, on_probe, s, &e) < 0)
		end_probe(s, &e);
}

// ---- queries ----

static void forget_waiting(struct source_call *call)
{
	timer_free(call->expiry);
	call->expiry = NULL;
	free(call->query);
	call->query = NULL;
}

static void fail_waiting(struct source_call *call, const struct err *e)
{
	fair_queue_remove(call->source->queue, &call->item);
	forget_waiting(call);
	call->took_ms = 0;
	hand_over(call, NULL, e);
}

static int refuse(struct promql_source *s, struct err *e)
{
	s->stats.refused++;
	return err_set_code(e, ERR_UNREACHABLE, PROMQL_NOT_SENT, "source %s is down: %s", s->name, s->error);
}

static int canceled(const struct promql_source *s, struct err *e)
{
	return err_set_code(e, ERR_CANCELED, PROMQL_NOT_SENT, "source %s is being closed", s->name);
}

static struct source_call *any_waiting(const struct promql_source *s)
{
	return (struct source_call *)(void *)fair_queue_any(s->queue); // its first member
}
_Static_assert(offsetof(struct source_call, item) == 0, "an item is its call");

static void refuse_waiting(struct promql_source *s)
{
	struct source_call *call;
	struct err e;
	while ((call = any_waiting(s)) && promql_source_is_down(s)) {
		refuse(s, &e);
		fail_waiting(call, &e);
	}
}

static void on_expired(evutil_socket_t fd, short what, void *arg)
{
	struct source_call *call = arg;
	struct promql_source *s = call->source;
	struct err e;
	if (promql_source_is_down(s)) {
		refuse(s, &e);
	} else {
		s->stats.unsent++;
		err_set_code(&e, ERR_TIMEOUT, PROMQL_NOT_SENT,
		             "source %s: not sent within %lld ms: %d of %d slots are in use, %d of them by slow "
		             "queries; queued: %zu",
		             s->name, (long long)call->wait_ms, s->queue->used[FAIR_FAST] + s->queue->used[FAIR_SLOW],
		             s->queue->slots, s->queue->used[FAIR_SLOW], s->queue->n_waiting);
	}
	fail_waiting(call, &e);
}

// Returns true when the call waits for the outcome of the probe.
static bool note_failure(struct promql_source *s, struct source_call *call, const struct err *error)
{
	bool answered_since = s->answered_us > call->sent_us, is_parked = false;
	promql_health_failed(&s->health, call->hash, !call->is_batch, answered_since);
	set_error(s, error->msg);
	if (answered_since || promql_source_is_down(s))
		return false;
	if (call->is_batch && (call->error = malloc(sizeof *call->error))) {
		*call->error = *error;
		TAILQ_INSERT_TAIL(&s->parked, call, link);
		is_parked = true;
	}
	probe(s);
	return is_parked; // may already be freed
}

static void on_done(void *arg, const struct promql_result *result, const struct err *error)
{
	struct source_call *call = arg;
	struct promql_source *s = call->source;
	bool was_down = promql_source_is_down(s), is_parked = false;
	fair_queue_remove(s->queue, &call->item);
	call->took_ms = clock_mono_ms(s->clock) - call->sent_mono_ms;
	s->stats.last_seconds = (double)(clock_real_mono_us() - call->sent_us) / 1e6;
	exposition_histogram_observe(&s->stats.seconds, s->stats.last_seconds);
	if (error)
		s->stats.failed[error->kind]++;
	else
		s->stats.partial += result->n_warnings > 0;
	if (error && is_fault_of_source(error->kind))
		is_parked = note_failure(s, call, error);
	else if (!error || error->kind != ERR_CANCELED)
		note_answer(s, false);
	if (!is_parked)
		hand_over(call, result, error);
	if (s->closing)
		return;
	if (!was_down && promql_source_is_down(s))
		refuse_waiting(s);
	else
		send_waiting(s);
}

// Sends a call that has a slot.
static int send_call(struct source_call *call, const char *query, struct err *e)
{
	struct promql_source *s = call->source;
	call->question.query = query;
	call->sent_us = clock_real_mono_us();
	call->sent_mono_ms = clock_mono_ms(s->clock);
	exposition_histogram_observe(&s->stats.queue_seconds, (double)(call->sent_us - call->asked_us) / 1e6);
	int rc = promql_ask(s->promql, &call->question, on_done, call, e);
	call->question.query = NULL;
	s->stats.queries += rc == 0;
	return rc < 0 ? err_wrap(e, "source %s", s->name) : 0;
}

static void start_waiting(struct source_call *call)
{
	struct err e;
	char *query = call->query;
	call->query = NULL;
	forget_waiting(call);
	if (send_call(call, query, &e) < 0)
		fail_waiting(call, &e);
	free(query);
}

// Sends queued queries while slots are free.
static void send_waiting(struct promql_source *s)
{
	struct fair_item *item;
	while (!s->closing && !promql_source_is_down(s) && (item = fair_queue_next(s->queue)))
		start_waiting((struct source_call *)(void *)item);
}

static int wait_for_turn(struct source_call *call, const char *query, struct err *e)
{
	struct promql_source *s = call->source;
	if (s->queue->n_waiting > PROMQL_QUEUED_MAX)
		return err_set_code(e, ERR_LIMIT, PROMQL_NOT_SENT,
		                    "source %s: %d queries wait for their turn already, the ceiling", s->name,
		                    PROMQL_QUEUED_MAX);
	call->query = strdup(query);
	call->expiry = evtimer_new(s->loop, on_expired, call);
	if (!call->query || !call->expiry || timer_start(call->expiry, call->wait_ms) < 0)
		return err_no_memory(e);
	return 0;
}

// While the source is down: a query waits for the outcome of the probe, which is sent when it is due. Where the probe
// does not count, one query is sent in its place: a different one each time, because the last one may be a query that
// no server can respond. Returns whether this query is sent.
static bool is_lone_probe(struct promql_source *s, const struct source_call *call)
{
	if (!s->probing && clock_mono_ms(s->clock) >= s->probe_after_mono_ms) {
		s->wants_lone = !s->health.probe_answered;
		probe(s);
	}
	bool is_again = call->hash == s->lone_hash;
	if (s->wants_lone && !call->is_batch && !call->question.is_range && (!is_again || !s->others_since)) {
		s->wants_lone = false;
		s->lone_hash = call->hash;
		s->others_since = false;
		return true;
	}
	s->others_since |= !is_again;
	return false;
}

int promql_source_ask(struct promql_source *s, const struct promql_question *question,
                      const struct promql_ticket *ticket, promql_done_fn *done, void *arg, struct err *e)
{
	bool is_slow = ticket->is_slow || question->is_range, is_sent_now = false;
	struct source_call *call;
	if (s->closing)
		return canceled(s, e);
	call = malloc(sizeof *call);
	if (!call)
		return err_no_memory(e);
	uint64_t hash = hash_text(HASH_START, question->query);
	*call = (struct source_call){.source = s,
	                             .question = *question,
	                             .is_batch = ticket->is_batch,
	                             .hash = ticket->is_batch || hash == 0 ? 1
	                                                                   : hash, // a batch has no identity of its own
	                             .asked_us = clock_real_mono_us(),
	                             .done = done,
	                             .arg = arg,
	                             .wait_ms = ticket->wait_ms > 0 ? ticket->wait_ms : PROMQL_WAIT_MS};
	if (promql_source_is_down(s)) {
		is_sent_now = is_lone_probe(s, call);
		if (!is_sent_now && promql_source_is_down(s) && !s->probing) {
			free(call);
			return refuse(s, e);
		}
		if (call->wait_ms > PROMQL_PROBE_WAIT_MS && promql_source_is_down(s))
			call->wait_ms = PROMQL_PROBE_WAIT_MS;
	}
	if (!fair_queue_add(s->queue, &call->item, ticket->namespace_name, is_slow ? FAIR_SLOW : FAIR_FAST)) {
		free(call);
		return err_no_memory(e);
	}
	if (is_sent_now || !promql_source_is_down(s)) {
		struct fair_item *next = fair_queue_next(s->queue);
		while (next && next != &call->item) { // within a callback, a slot may just have become free
			start_waiting((struct source_call *)(void *)next);
			next = promql_source_is_down(s) ? NULL : fair_queue_next(s->queue);
		}
		if (next) {
			if (send_call(call, question->query, e) == 0)
				return 0;
			fair_queue_remove(s->queue, &call->item);
			free(call);
			return -1;
		}
	}
	if (wait_for_turn(call, question->query, e) == 0)
		return 0;
	fair_queue_remove(s->queue, &call->item);
	forget_waiting(call);
	free(call);
	return -1;
}

// ---- one source ----

static int check_options(const struct promql_source_options *o, struct err *e)
{
	const char *name = o->name;
	size_t len = name ? strlen(name) : 0;
	if (len == 0 || len > PROMQL_SOURCE_NAME_MAX)
		return err_set(e, ERR_INPUT, "the name of a source has %zu bytes; it must have 1 to %d", len,
		               PROMQL_SOURCE_NAME_MAX);
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
	if (strspn(name, letters) != len)
		return err_set(e, ERR_INPUT, "the name of a source must be letters, digits, '_', '-' and '.'");
	if (o->max_in_flight < 0 || o->max_in_flight > PROMQL_CONCURRENCY_MAX)
		return err_set(e, ERR_LIMIT, "%d queries at once are asked for; the ceiling is %d", o->max_in_flight,
		               PROMQL_CONCURRENCY_MAX);
	if (o->tenant && (!o->tenant[0] || strlen(o->tenant) > TENANT_BYTES_MAX))
		return err_set(e, ERR_INPUT, "the tenant has %zu bytes; it must have 1 to %d", strlen(o->tenant),
		               TENANT_BYTES_MAX);
	return 0;
}

// A client that can reach a server without credentials can query it anyway.
static bool has_credentials(const struct promql_source_options *o)
{
	const struct promql_options *q = &o->query;
	return q->bearer_token || q->bearer_token_file || q->basic_user || q->identity || q->tls.cert_file ||
	       q->tls.cert_pem || o->tenant || (q->headers && q->headers[0]);
}

// number: which URL of the source it is, from 1 on.
static int open_source(struct promql_source *s, struct promql_sources *set, const struct clock *clock,
                       const struct promql_source_options *o, const char *url, size_t number, bool is_only,
                       struct err *e)
{
	static const double bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
	if (check_options(o, e) < 0)
		return -1;
	s->access = promql_access_new(&o->access, is_only && !has_credentials(o), e);
	if (!s->access)
		return -1;
	char name[PROMQL_SOURCE_NAME_MAX + sizeof "#4"];
	snprintf(name, sizeof name, number > 1 ? "%s#%zu" : "%s", o->name, number);
	s->name = strdup(name);
	s->url = strdup(url ? url : "");
	s->max_disagreement = o->max_disagreement;
	s->clock = clock;
	s->loop = set->loop;
	s->fuse_bytes = o->never_fuse ? 0 : o->query.use_get ? FUSE_BYTES_GET : FUSE_BYTES_POST;
	s->stats.seconds.n = s->stats.queue_seconds.n = sizeof bounds / sizeof bounds[0];
	memcpy(s->stats.seconds.upper, bounds, sizeof bounds);
	memcpy(s->stats.queue_seconds.upper, bounds, sizeof bounds);
	const char *headers[HTTP_HEADERS_MAX + 1] = {NULL};
	char tenant[sizeof TENANT_HEADER + TENANT_BYTES_MAX];
	size_t n = 0;
	while (n < HTTP_HEADERS_MAX - 1 && o->query.headers && o->query.headers[n]) {
		headers[n] = o->query.headers[n];
		n++;
	}
	if (o->query.headers && o->query.headers[n])
		return err_set(e, ERR_LIMIT, "more than %d headers", HTTP_HEADERS_MAX - 1);
	if (o->tenant) {
		snprintf(tenant, sizeof tenant, TENANT_HEADER "%s", o->tenant);
		headers[n] = tenant;
	}
	int slots = o->max_in_flight ? o->max_in_flight : PROMQL_CONCURRENCY;
	struct http_client_options http = {.loop = set->loop, .max_in_flight = slots + OTHER_REQUESTS};
	struct promql_options query = o->query;
	query.url = url;
	query.headers = headers;
	query.clock = clock;
	query.budget = &set->budget;
	query.http = s->http = http_client_new(&http, e);
	s->queue = fair_queue_new(slots);
	if (!s->name || !s->url || !s->queue)
		return err_no_memory(e);
	s->promql = s->http ? promql_new(&query, e) : NULL;
	return s->promql ? 0 : -1;
}

static void cancel_source(struct promql_source *s)
{
	struct source_call *call;
	struct err e;
	s->closing = true;
	while (s->queue && (call = any_waiting(s))) {
		canceled(s, &e);
		fail_waiting(call, &e);
	}
	release_parked(s);
	promql_free(s->promql); // before its transport: ends its queries and runs their callbacks
	s->promql = NULL;
	http_client_free(s->http);
	s->http = NULL;
}

static void free_source(struct promql_source *s)
{
	cancel_source(s);
	fair_queue_free(s->queue);
	promql_access_free(s->access);
	free(s->name);
	free(s->url);
	free(s);
}

int64_t promql_source_unexplained_skew_ms(const struct promql_source *s)
{
	return s->promql ? promql_unexplained_skew_ms(s->promql) : 0;
}

void promql_sources_clock_was_set(const struct promql_sources *s, int64_t step_ms)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->items[i]->promql)
			promql_clock_was_set(s->items[i]->promql, step_ms);
}

int64_t promql_source_skew_ms(const struct promql_source *s)
{
	return s->promql ? promql_skew_ms(s->promql) : 0;
}

bool promql_source_has_just_recovered(const struct promql_source *s)
{
	return s->epoch > 0 && clock_mono_ms(s->clock) - s->recovered_mono_ms < PROMQL_SETTLES_MS;
}

enum promql_kind promql_source_kind(const struct promql_source *s, const char **ret_version)
{
	if (s->promql)
		return promql_kind(s->promql, ret_version);
	if (ret_version)
		*ret_version = "";
	return PROMQL_KIND_AUTO;
}

size_t promql_source_fuse_bytes(const struct promql_source *s)
{
	return promql_source_is_down(s) ? 0 : s->fuse_bytes;
}

// ---- the set ----

static bool has_name(const struct promql_sources *s, const char *name)
{
	for (size_t i = 0; i < s->n && name; i++)
		if (strcmp(s->items[i]->name, name) == 0)
			return true;
	return false;
}

// Adds the servers of one source.
static int add_source(struct promql_sources *s, const struct clock *clock, const struct promql_source_options *o,
                      bool is_only, struct err *e)
{
	struct promql_source *last = NULL;
	const char *url = o->query.url;
	for (size_t i = 0; i == 0 || url; i++) {
		struct promql_source *item;
		if (i == PROMQL_URLS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d URLs are named", PROMQL_URLS_MAX);
		if (s->n == PROMQL_SOURCES_MAX)
			return err_set(e, ERR_LIMIT, "more than %d URLs of sources are named", PROMQL_SOURCES_MAX);
		if (!(item = calloc(1, sizeof *item)))
			return err_no_memory(e);
		TAILQ_INIT(&item->parked);
		s->items[s->n++] = item;
		if (last)
			last->next = item;
		last = item;
		if (open_source(item, s, clock, o, url, i + 1, is_only, e) < 0)
			return -1;
		url = o->more_urls ? o->more_urls[i] : NULL;
	}
	return 0;
}

int promql_source_set_credentials(struct promql_source *s, const struct promql_credentials *c, struct err *e)
{
	for (; s; s = s->next)
		if (!s->promql || promql_set_credentials(s->promql, c, e) < 0)
			return s->promql ? -1 : canceled(s, e);
	return 0;
}

int promql_sources_add(struct promql_sources *s, const struct promql_source *like, const char *name,
                       const char *namespace_name, const struct promql_credentials *c, struct err *e)
{
	const char *urls[PROMQL_URLS_MAX] = {NULL}, *const namespaces[] = {namespace_name, NULL};
	const char *label = like->access->label;
	int slots = like->queue->slots;
	struct promql_source_options o = {.name = name,
	                                  .max_in_flight =
	                                          slots < PROMQL_ADDED_CONCURRENCY ? slots : PROMQL_ADDED_CONCURRENCY,
	                                  .never_fuse = like->fuse_bytes == 0,
	                                  .more_urls = urls,
	                                  .max_disagreement = like->max_disagreement,
	                                  .access = {namespaces, label[0] ? label : NULL}};
	size_t before = s->n, n = 0;
	if (has_name(s, name))
		return err_set(e, ERR_INPUT, "there is a source %s", name);
	if (!like->promql)
		return canceled(like, e);
	promql_get_settings(like->promql, &o.query);
	for (const struct promql_source *other = like->next; other; other = other->next)
		urls[n++] = other->url;
	if (add_source(s, like->clock, &o, false, e) == 0 && promql_source_set_credentials(s->items[before], c, e) == 0)
		return 0;
	while (s->n > before)
		free_source(s->items[--s->n]);
	return -1;
}

struct promql_sources *promql_sources_new(struct event_base *loop, const struct clock *clock,
                                          const struct promql_source_options *list, size_t n, struct err *e)
{
	if (n > PROMQL_SOURCES_MAX) {
		err_set(e, ERR_LIMIT, "%zu sources are named; the ceiling is %d", n, PROMQL_SOURCES_MAX);
		return NULL;
	}
	struct promql_sources *s = err_calloc(sizeof *s, e);
	if (!s)
		return NULL;
	s->loop = loop;
	s->budget.max_bytes = PROMQL_ANSWERS_BYTES_MAX;
	clock_init_real(&s->clock);
	for (size_t i = 0; i < n; i++) {
		int rc = has_name(s, list[i].name) ? err_set(e, ERR_INPUT, "the name is given to two sources") : 0;
		if (rc < 0 || add_source(s, clock ? clock : &s->clock, &list[i], n == 1, e) < 0) {
			err_wrap(e, "source %.63s", list[i].name ? list[i].name : "");
			promql_sources_free(s);
			return NULL;
		}
	}
	s->n_configured = s->n;
	return s;
}

void promql_sources_cancel(struct promql_sources *s)
{
	for (size_t i = 0; s && i < s->n; i++)
		cancel_source(s->items[i]);
}

void promql_sources_free(struct promql_sources *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n; i++)
		free_source(s->items[i]);
	free(s);
}

struct promql_source *promql_sources_find(const struct promql_sources *s, const char *name, struct err *e)
{
	bool is_default = !name || !name[0];
	if (is_default)
		name = PROMQL_SOURCE_DEFAULT;
	const char *names[PROMQL_SOURCES_MAX];
	for (size_t i = 0; i < s->n; i++) {
		if (strcmp(s->items[i]->name, name) == 0)
			return s->items[i];
		names[i] = s->items[i]->name;
	}
	if (is_default && s->n_configured == 1)
		return s->items[0];
	if (is_default) {
		err_set(e, ERR_NOT_FOUND,
		        "there is no default source: set `source` of the signal, or call one of the sources default");
		return NULL;
	}
	const char *near = num_closest_name(name, names, s->n);
	err_set(e, ERR_NOT_FOUND, "there is no source %.63s%s%s%s", name, near ? "; did you mean " : "",
	        near ? near : "", near ? "?" : "");
	return NULL;
}

const char *promql_sources_admit(const struct promql_sources *s, const char *source, const char *namespace_name,
                                 const char *query, struct buf *out, size_t *ret_offset, struct err *e)
{
	const struct promql_source *found = promql_sources_find(s, source, e);
	if (ret_offset)
		*ret_offset = 0;
	if (!found)
		return NULL;
	return promql_access_admit(found->access, found->name, namespace_name, query, out, ret_offset, e);
}
