// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/http_client.h"
#include "base/num.h"

#define CONFIRMATION     "vector(1)"
#define FUSE_BYTES_POST  ((size_t)15 * 1024) // VictoriaMetrics refuses queries above 16 KiB by default
#define FUSE_BYTES_GET   ((size_t)2048)      // what every gateway takes in a URL, encoded
#define TENANT_HEADER    "X-Scope-OrgID: "
#define TENANT_BYTES_MAX 150 // Mimir: pkg/tenant

struct promql_source {
	char *name, *url;
	const struct clock *clock;
	size_t fuse_bytes;
	struct http_client *http;
	struct promql *promql;
	struct promql_health health;
	struct promql_source_stats stats;
	char *error; // NULL: none since it was up
	int64_t answered_us;
	// While down.
	bool probing;
	int64_t probed_mono_ms;
	uint64_t probe_hash; // of the last probe's query
	bool others_since;   // something else was asked since then
};

struct promql_sources {
	struct event_base *loop;
	size_t n;
	struct clock clock;
	struct promql_source *items[PROMQL_SOURCES_MAX];
};

struct source_call {
	struct promql_source *source;
	int64_t started_us;
	uint64_t query; // its hash
	bool is_probe;
	promql_done_fn *done;
	void *arg;
};

static int64_t mono_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int no_memory(struct err *e)
{
	return err_set(e, ERR_INTERNAL, "out of memory");
}

// ---- health ----

// The others say that the server is there and judged this one query.
static bool is_fault_of_source(enum err_kind kind)
{
	return kind != ERR_REJECTED && kind != ERR_LIMIT && kind != ERR_UNSUPPORTED && kind != ERR_CANCELED &&
	       kind != ERR_INTERNAL && kind != ERR_INPUT;
}

static void set_error(struct promql_source *s, const char *text)
{
	free(s->error);
	s->error = text ? strdup(text) : NULL;
}

static void note(struct promql_source *s, const struct source_call *call, const struct err *error)
{
	enum promql_health_state before = s->health.state;
	if (error && error->kind == ERR_CANCELED)
		return;
	if (error && is_fault_of_source(error->kind)) {
		promql_health_failed(&s->health, call->query, s->answered_us > call->started_us,
		                     error->kind == ERR_TIMEOUT);
		set_error(s, error->msg);
	} else {
		s->answered_us = mono_us();
		s->stats.last_answer_wall_ms = clock_wall_ms(s->clock);
		promql_health_answered(&s->health, call->query);
	}
	if (s->health.state == PROMQL_UP)
		set_error(s, NULL);
	if (before == PROMQL_DOWN && s->health.state != PROMQL_DOWN)
		promql_forget_kind(s->promql); // what comes back may be another version, or another server
}

// A query that has been the probe is not it again while others ask too: it may be one that no server can answer.
static bool may_probe(struct promql_source *s, uint64_t hash)
{
	bool again = hash == s->probe_hash;
	if (s->probing || clock_mono_ms(s->clock) - s->probed_mono_ms < PROMQL_PROBE_INTERVAL_MS ||
	    (again && s->others_since)) {
		s->others_since |= !again;
		return false;
	}
	return true;
}

static void begin_probe(struct promql_source *s, uint64_t hash)
{
	s->probing = true;
	s->probed_mono_ms = clock_mono_ms(s->clock);
	s->probe_hash = hash;
	s->others_since = false;
}

static uint64_t hash_of(const char *text)
{
	size_t h = 5381;
	for (; *text; text++)
		h = h * 33 + (unsigned char)*text;
	return h ? h : 1;
}

// ---- queries ----

static void confirm(struct promql_source *s);

static void on_done(void *arg, const struct promql_result *result, const struct err *error)
{
	struct source_call call = *(struct source_call *)arg;
	struct promql_source *s = call.source;
	free(arg);
	s->stats.last_seconds = (double)(mono_us() - call.started_us) / 1e6;
	exposition_histogram_observe(&s->stats.seconds, s->stats.last_seconds);
	if (error)
		s->stats.failed[error->kind]++;
	else
		s->stats.partial += result->n_warnings > 0;
	if (call.is_probe)
		s->probing = false;
	note(s, &call, error);
	if (call.done)
		call.done(call.arg, result, error);
	if (call.is_probe && !error && s->health.state == PROMQL_DOWN)
		confirm(s);
}

static struct source_call *new_call(struct promql_source *s, uint64_t query, bool is_probe, promql_done_fn *done,
                                    void *arg)
{
	struct source_call *call = malloc(sizeof *call);
	if (call)
		*call = (struct source_call){s, mono_us(), query, is_probe, done, arg};
	return call;
}

// The rest of the probes that are needed, at once and as cheap as can be: nobody waits a tick for them.
static void confirm(struct promql_source *s)
{
	struct source_call *call = new_call(s, hash_of(CONFIRMATION), true, NULL, NULL);
	struct err e;
	if (!call)
		return;
	s->probing = true;
	s->stats.queries++;
	if (promql_query(s->promql, CONFIRMATION, 0, on_done, call, &e) < 0) {
		s->probing = false;
		s->stats.failed[e.kind]++;
		free(call);
	}
}

static int refuse(struct promql_source *s, struct err *e)
{
	s->stats.refused++;
	return err_set(e, ERR_UNREACHABLE, "source %s is down: %s", s->name, promql_source_error(s));
}

static int canceled(const struct promql_source *s, struct err *e)
{
	return err_set(e, ERR_CANCELED, "source %s is being closed", s->name);
}

static int count_sent(struct promql_source *s, struct source_call *call, int rc, struct err *e)
{
	if (rc == 0) {
		s->stats.queries++;
		return 0;
	}
	if (call->is_probe)
		s->probing = false;
	free(call);
	return err_wrap(e, "source %s", s->name);
}

int promql_source_ask(struct promql_source *s, const struct promql_question *question, promql_done_fn *done, void *arg,
                      struct err *e)
{
	if (!s->promql)
		return canceled(s, e);
	bool is_probe = s->health.state == PROMQL_DOWN;
	uint64_t hash = hash_of(question->query);
	if (is_probe) {
		if (!may_probe(s, hash))
			return refuse(s, e);
		begin_probe(s, hash);
	}
	struct source_call *call = new_call(s, hash, is_probe, done, arg);
	if (!call)
		return no_memory(e);
	return count_sent(s, call, promql_ask(s->promql, question, on_done, call, e), e);
}

int promql_source_ask_range(struct promql_source *s, const char *query, int64_t start_ms, int64_t end_ms,
                            int64_t step_ms, promql_done_fn *done, void *arg, struct err *e)
{
	if (!s->promql)
		return canceled(s, e);
	if (s->health.state == PROMQL_DOWN)
		return refuse(s, e);
	struct source_call *call = new_call(s, hash_of(query), false, done, arg);
	if (!call)
		return no_memory(e);
	return count_sent(s, call, promql_query_range(s->promql, query, start_ms, end_ms, step_ms, on_done, call, e),
	                  e);
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

static int open_source(struct promql_source *s, struct event_base *loop, const struct clock *clock,
                       const struct promql_source_options *o, struct err *e)
{
	static const double bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
	if (check_options(o, e) < 0)
		return -1;
	s->name = strdup(o->name);
	s->url = strdup(o->query.url ? o->query.url : "");
	s->clock = clock;
	s->fuse_bytes = o->never_fuse ? 0 : o->query.use_get ? FUSE_BYTES_GET : FUSE_BYTES_POST;
	s->probed_mono_ms = INT64_MIN / 2;
	s->stats.seconds.n = sizeof bounds / sizeof bounds[0];
	memcpy(s->stats.seconds.upper, bounds, sizeof bounds);
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
	struct http_client_options http = {.loop = loop,
	                                   .max_in_flight = o->max_in_flight ? o->max_in_flight : PROMQL_CONCURRENCY};
	struct promql_options query = o->query;
	query.headers = headers;
	query.clock = clock;
	query.http = s->http = http_client_new(&http, e);
	if (!s->name || !s->url)
		return no_memory(e);
	s->promql = s->http ? promql_new(&query, e) : NULL;
	return s->promql ? 0 : -1;
}

static void cancel_source(struct promql_source *s)
{
	promql_free(s->promql); // first: its queries end, their callbacks run
	s->promql = NULL;
	http_client_free(s->http);
	s->http = NULL;
}

static void free_source(struct promql_source *s)
{
	cancel_source(s);
	free(s->name);
	free(s->url);
	free(s->error);
	free(s);
}

const char *promql_source_name(const struct promql_source *s)
{
	return s->name;
}

const char *promql_source_url(const struct promql_source *s)
{
	return s->url;
}

const struct promql_health *promql_source_health(const struct promql_source *s)
{
	return &s->health;
}

const struct promql_source_stats *promql_source_stats(const struct promql_source *s)
{
	return &s->stats;
}

const char *promql_source_error(const struct promql_source *s)
{
	return s->error ? s->error : "";
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
	return s->fuse_bytes;
}

struct promql *promql_source_client(const struct promql_source *s)
{
	return s->promql;
}

// ---- the set ----

const struct clock *promql_source_clock(const struct promql_source *s)
{
	return s->clock;
}

struct promql_sources *promql_sources_new(struct event_base *loop, const struct clock *clock,
                                          const struct promql_source_options *list, size_t n, struct err *e)
{
	if (n > PROMQL_SOURCES_MAX) {
		err_set(e, ERR_LIMIT, "%zu sources are named; the ceiling is %d", n, PROMQL_SOURCES_MAX);
		return NULL;
	}
	struct promql_sources *s = calloc(1, sizeof *s);
	if (!s) {
		no_memory(e);
		return NULL;
	}
	s->loop = loop;
	clock_init_real(&s->clock);
	for (size_t i = 0; i < n; i++) {
		struct promql_source *item = calloc(1, sizeof *item);
		int rc = item ? 0 : no_memory(e);
		if (item)
			s->items[s->n++] = item;
		for (size_t j = 0; rc == 0 && j < i; j++)
			if (list[i].name && strcmp(s->items[j]->name, list[i].name) == 0)
				rc = err_set(e, ERR_INPUT, "the name is given to two sources");
		if (rc == 0)
			rc = open_source(item, loop, clock ? clock : &s->clock, &list[i], e);
		if (rc < 0) {
			err_wrap(e, "source %.63s", list[i].name ? list[i].name : "");
			promql_sources_free(s);
			return NULL;
		}
	}
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

struct event_base *promql_sources_loop(const struct promql_sources *s)
{
	return s->loop;
}

size_t promql_sources_count(const struct promql_sources *s)
{
	return s->n;
}

struct promql_source *promql_sources_at(const struct promql_sources *s, size_t i)
{
	return s->items[i];
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
	if (is_default && s->n == 1)
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
