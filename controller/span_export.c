// SPDX-License-Identifier: Apache-2.0
#include "controller/span_export.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file_open.h"
#include "base/http/http_client.h"
#include "base/otlp/otlp_delivery.h"
#include "base/otlp/otlp_json.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "controller/span_batch.h"
#include "controller/tick_span.h"

#define PATH "/v1/traces"
struct span_export {
	struct span_export_options options;
	struct http_client *http;
	char url[OTLP_URL_BYTES];
	uint64_t random; // state of next_random()
	struct event *timer;
	struct http_call *call; // in flight; NULL: none

	struct span_batch queue;
	bool is_full; // a tick did not fit; nothing more is encoded until the queue is sent

	struct buf body; // the request that is being delivered; empty: none
	size_t n_body;   // spans in it
	struct otlp_delivery delivery;
	bool is_draining; // one attempt for each request
	bool failing;     // the last attempt failed, and was logged
	struct span_export_stats stats;
};

// SplitMix64: spans need different IDs, not secret ones.
static uint64_t next_random(struct span_export *x)
{
	uint64_t z = x->random += 0x9e3779b97f4a7c15U;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return z ^ (z >> 31);
}

// Leaves room for the children above it, so that no ID is 0.
static uint64_t next_id(struct span_export *x)
{
	return (next_random(x) & ~(uint64_t)0xffff) | 1;
}

// ---- sending ----

static void start_timer(struct span_export *x, int64_t ms)
{
	if (timer_start(x->timer, ms) < 0)
		abort(); // a few bytes: the supervisor restarts the process
}

// A queue that is half full is sent at once: the other half is for the ticks during the request.
static bool is_urgent(const struct span_export *x)
{
	return x->is_full || x->queue.out.len > SPAN_BATCH_FULL_BYTES / 2;
}

static void make_body(struct span_export *x)
{
	x->n_body = span_batch_take(&x->queue, &x->body);
	x->is_full = false;
}

static void end_body(struct span_export *x)
{
	buf_reset(&x->body);
	x->n_body = 0;
	if (x->queue.n_spans > 0)
		start_timer(x, x->is_draining || is_urgent(x) ? 0 : SPAN_EXPORT_INTERVAL_MS);
}

static void log_failure(struct span_export *x, const char *why)
{
	if (why[0] && !x->failing)
		LOG(x->options.log, LOG_WARNING, "OTLP export failed", LOG_S("endpoint", x->options.endpoint),
		    LOG_S("err", why));
	if (!why[0] && x->failing)
		LOG(x->options.log, LOG_INFO, "OTLP export recovered", LOG_S("endpoint", x->options.endpoint));
	x->failing = why[0] != '\0';
}

static void take_reply(struct span_export *x, const struct otlp_reply *reply)
{
	char why[OTLP_WHY_BYTES];
	uint64_t lost = 0;
	enum otlp_outcome outcome = otlp_delivery_take(&x->delivery, reply, why);
	x->stats.failed += outcome != OTLP_ACCEPTED;
	log_failure(x, why);
	if (outcome == OTLP_AGAIN && !x->is_draining) {
		start_timer(x, x->delivery.wait_ms);
		return;
	}
	if (outcome == OTLP_PARTIAL)
		lost = (uint64_t)x->delivery.rejected < x->n_body ? (uint64_t)x->delivery.rejected : x->n_body;
	else if (outcome != OTLP_ACCEPTED)
		lost = x->n_body;
	x->stats.dropped += lost;
	x->stats.sent += x->n_body - lost;
	end_body(x);
}

static void on_reply(void *arg, const struct http_response *response, const struct err *error)
{
	struct span_export *x = arg;
	struct otlp_reply reply = {.error = error};
	x->call = NULL;
	if (response) {
		reply.status = response->status;
		reply.body = response->body;
		reply.len = response->body_len;
		reply.retry_after_ms = response->retry_after_ms;
	}
	take_reply(x, &reply);
}

static void send_body(struct span_export *x)
{
	static const char *const headers[] = {"Content-Type: application/json", "Content-Encoding: gzip", NULL};
	const struct http_tls tls = {.ca_file = x->options.ca_file};
	const struct http_request request = {.method = "POST",
	                                     .url = x->url,
	                                     .headers = headers,
	                                     .body = buf_str(&x->body),
	                                     .body_len = x->body.len,
	                                     .body_is_lent = true,
	                                     .tls = &tls,
	                                     .timeout_ms = OTLP_TIMEOUT_MS,
	                                     .max_body_bytes = OTLP_REPLY_BYTES};
	struct err e;
	if (http_client_submit(x->http, &request, on_reply, x, &x->call, &e) < 0)
		take_reply(x, &(struct otlp_reply){.error = &e});
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct span_export *x = arg;
	if (x->call)
		return; // its reply starts the timer again
	if (x->n_body == 0 && x->queue.n_spans > 0)
		make_body(x);
	if (x->n_body > 0)
		send_body(x);
}

// ---- ticks ----

void span_export_tick(struct span_export *x, const struct decided *d, const struct tick_result *result,
                      const char *outcome)
{
	size_t n = tick_span_count(result);
	bool is_added = false;
	if (!x->is_full) {
		const struct tick_span_id id = {{next_random(x) | 1, next_random(x)}, next_id(x)};
		tick_span_append(&x->queue.text, &id, d, result, outcome, clock_wall_ms(x->options.clock) * 1000000,
		                 clock_real_mono_us());
		is_added = span_batch_add(&x->queue, n);
		x->is_full = span_batch_is_full(&x->queue);
	}
	if (!is_added)
		x->stats.dropped += n;
	if (x->n_body == 0 && (is_urgent(x) || !event_pending(x->timer, EV_TIMEOUT, NULL)))
		start_timer(x, is_urgent(x) ? 0 : SPAN_EXPORT_INTERVAL_MS);
}

// ---- life ----

static int check_readable(const char *path, struct err *e)
{
	int fd = path ? file_open(path, e) : 0;
	if (path && fd >= 0)
		close(fd);
	return fd < 0 ? -1 : 0;
}

struct span_export *span_export_new(const struct span_export_options *options, struct err *e)
{
	const struct http_client_options http = {.loop = options->loop, .max_in_flight = 1, .no_http2 = true};
	struct span_export *x = calloc(1, sizeof *x);
	if (!x) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	x->options = *options;
	if (getentropy(&x->random, sizeof x->random) < 0)
		x->random = (uint64_t)clock_wall_ms(options->clock) << 20;
	const struct otlp_envelope envelope = {.resources = "resourceSpans",
	                                       .scopes = "scopeSpans",
	                                       .items = "spans",
	                                       .service = "gpuscale",
	                                       .hostname = options->hostname};
	buf_init(&x->body, SPAN_BATCH_BYTES_MAX);
	if (buf_reserve(&x->body, SPAN_BATCH_USUAL_BYTES) < 0 || span_batch_init(&x->queue, &envelope, e) < 0) {
		err_set(e, ERR_INTERNAL, "out of memory");
		span_export_free(x);
		return NULL;
	}
	const char *url = options->endpoint, *host = strstr(url, "://");
	host = host ? host + 3 : url;
	if (memchr(host, '@', strcspn(host, "/"))) { // the endpoint appears in the log
		err_set(e, ERR_INPUT, "the URL holds credentials, which are not supported: remove them");
	} else if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
		err_set(e, ERR_INPUT, "expected an http or https URL, got \"%s\"", url);
	} else if (otlp_url(url, PATH, x->url, e) == 0 && check_readable(options->ca_file, e) == 0) {
		x->timer = evtimer_new(options->loop, on_timer, x);
		x->http = http_client_new(&http, e);
		if (x->http && x->timer)
			return x;
		if (!x->timer)
			err_set(e, ERR_INTERNAL, "out of memory");
	}
	err_wrap(e, "--otlp-endpoint");
	span_export_free(x);
	return NULL;
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

void span_export_drain(struct span_export *x)
{
	bool is_over = false;
	struct event *deadline = x ? evtimer_new(x->options.loop, on_deadline, &is_over) : NULL;
	if (!deadline)
		return;
	x->is_draining = true;
	if (timer_start(deadline, SPAN_EXPORT_DRAIN_MS) == 0 && x->n_body + x->queue.n_spans > 0)
		start_timer(x, 0);
	while (!is_over && x->n_body + x->queue.n_spans > 0 && event_base_loop(x->options.loop, EVLOOP_ONCE) == 0)
		;
	event_free(deadline);
}

void span_export_free(struct span_export *x)
{
	if (!x)
		return;
	http_client_free(x->http); // may start the timer
	if (x->timer)
		event_free(x->timer);
	span_batch_done(&x->queue);
	buf_done(&x->body);
	free(x);
}

struct span_export_stats span_export_get_stats(const struct span_export *x)
{
	return x->stats;
}
