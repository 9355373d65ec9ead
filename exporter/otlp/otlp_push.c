// SPDX-License-Identifier: Apache-2.0
#include "exporter/otlp/otlp_push.h"

#include <event2/event.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/process/log.h"
#include "base/process/process_trim.h"
#include "exporter/http_call.h"
#include "exporter/otlp/otlp_delivery.h"
#include "exporter/sampler.h"

#define PATH    "/v1/metrics"
#define TICK_MS 250

struct otlp_push {
	struct otlp_push_options options;

	// Used only by the thread of the loop.
	struct event *tick;
	struct http_call *call;
	bool has_body;
	struct otlp_delivery delivery; // delivery of `body`
	int64_t wait_ms;               // until the next attempt
	bool failing;                  // the last attempt failed, and was logged
	struct otlp_push_status status;

	int64_t next_ms;    // wall time; used only by the sampler thread, like encoded_len
	size_t encoded_len; // encoded size of the last round

	pthread_mutex_t lock; // protects what follows
	struct buf fresh;     // encoded and not taken yet; empty: none
	struct buf body;      // the round that is being sent, or waits for an attempt; empty: a newer one replaces it
	bool is_sending;      // `body` is in use, and no round is encoded: it would need memory for two
};

// Leaves the encoded round in `fresh`; one that was not taken yet is replaced. Buffers are released after use: a push
// is rare, and its memory would otherwise count for ever.
void otlp_push_round(struct otlp_push *p, const struct sampler_round *round)
{
	int64_t interval_ms = p->options.interval_ms;
	int64_t late_ms = round->wall_ms - p->next_ms;
	// A clock that was set back by more than an interval starts a new grid, and so does a late round.
	if (late_ms < 0 && late_ms >= -interval_ms)
		return;
	pthread_mutex_lock(&p->lock);
	bool is_sending = p->is_sending;
	if (!is_sending)
		buf_done(&p->body); // a newer round replaces it
	pthread_mutex_unlock(&p->lock);
	if (is_sending) // the first round after the attempt is encoded instead
		return;
	p->next_ms = late_ms >= 0 && late_ms < interval_ms ? p->next_ms + interval_ms : round->wall_ms + interval_ms;
	struct buf encoded;
	buf_init(&encoded, OTLP_BYTES_MAX);
	buf_reserve(&encoded, p->encoded_len + p->encoded_len / 16);
	otlp_encode(&p->options.encode, round, &encoded);
	if (encoded.failed) // above the limit: nothing is better than a part
		buf_reset(&encoded);
	p->encoded_len = encoded.len;
	pthread_mutex_lock(&p->lock);
	struct buf old = p->fresh;
	p->fresh = encoded;
	pthread_mutex_unlock(&p->lock);
	buf_done(&old);
}

// Returns false if a newer round replaces this one.
static bool begin_sending(struct otlp_push *p)
{
	pthread_mutex_lock(&p->lock);
	bool is_sending = p->is_sending = p->body.len > 0;
	pthread_mutex_unlock(&p->lock);
	return is_sending;
}

static void end_sending(struct otlp_push *p)
{
	pthread_mutex_lock(&p->lock);
	p->is_sending = false;
	pthread_mutex_unlock(&p->lock);
}

static bool take_fresh(struct otlp_push *p)
{
	pthread_mutex_lock(&p->lock);
	bool has = p->fresh.len > 0;
	if (has) {
		buf_done(&p->body);
		p->body = p->fresh;
		buf_init(&p->fresh, OTLP_BYTES_MAX);
	}
	pthread_mutex_unlock(&p->lock);
	return has;
}

// The round in `body` is done with.
static void end_round(struct otlp_push *p)
{
	p->has_body = false;
	pthread_mutex_lock(&p->lock);
	buf_done(&p->body);
	pthread_mutex_unlock(&p->lock);
}

static void log_failure(struct otlp_push *p, const char *why)
{
	if (why[0] && !p->failing)
		LOG(p->options.log, LOG_WARNING, "OTLP export failed", LOG_S("endpoint", p->options.endpoint),
		    LOG_S("err", why));
	if (!why[0] && p->failing)
		LOG(p->options.log, LOG_INFO, "OTLP export recovered", LOG_S("endpoint", p->options.endpoint));
	p->failing = why[0] != '\0';
}

static void take_reply(struct otlp_push *p, const struct otlp_reply *reply)
{
	char why[OTLP_WHY_BYTES];
	enum otlp_outcome outcome = otlp_delivery_take(&p->delivery, reply, why);
	p->status.failed += outcome != OTLP_ACCEPTED;
	p->status.sent += outcome == OTLP_ACCEPTED || outcome == OTLP_PARTIAL;
	p->status.dropped += outcome == OTLP_GIVEN_UP;
	p->wait_ms = p->delivery.wait_ms;
	if (outcome != OTLP_AGAIN)
		end_round(p);
	end_sending(p);
	log_failure(p, why);
	process_trim(); // a push is rare; its connection, and the code that sends and encodes, take 0.2 MiB meanwhile
}

static void on_done(void *arg, int status, const char *body, size_t len, const struct err *error)
{
	take_reply(arg, &(struct otlp_reply){.error = error, .status = status, .body = body, .len = len});
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	struct otlp_push *p = arg;
	if (http_call_is_busy(p->call))
		return;
	p->wait_ms -= p->wait_ms < TICK_MS ? p->wait_ms : TICK_MS;
	if (take_fresh(p)) { // the older round is not worth another attempt
		p->status.dropped += p->has_body;
		p->has_body = true;
		p->delivery = (struct otlp_delivery){0};
		p->wait_ms = 0;
	} else if (!p->has_body || p->wait_ms > 0) {
		return;
	}
	struct err e = {.kind = ERR_NONE};
	if (!begin_sending(p))
		return; // a newer one is being encoded
	if (http_call_post(p->call, "application/json", buf_str(&p->body), p->body.len, &e) < 0)
		take_reply(p, &(struct otlp_reply){.error = &e});
}

struct otlp_push *otlp_push_new(const struct otlp_push_options *options, struct err *e)
{
	char url[OTLP_URL_BYTES];
	if (otlp_url(options->endpoint, PATH, url, e) < 0) {
		err_wrap(e, "--otlp-endpoint");
		return NULL;
	}
	struct otlp_push *p = alloc_zeroed(sizeof *p, e);
	if (!p)
		return NULL;
	p->options = *options;
	pthread_mutex_init(&p->lock, NULL);
	buf_init(&p->body, OTLP_BYTES_MAX);
	buf_init(&p->fresh, OTLP_BYTES_MAX);
	const struct timeval every = {.tv_usec = TICK_MS * 1000};
	p->call = http_call_new(options->loop, url, options->ca_file, OTLP_TIMEOUT_MS, on_done, p, e);
	p->tick = event_new(options->loop, -1, EV_PERSIST, on_tick, p);
	bool ticks = p->tick && event_add(p->tick, &every) == 0;
	if (p->call && ticks)
		return p;
	if (p->call)
		err_set(e, ERR_INTERNAL, "cannot create a timer");
	else
		err_wrap(e, "--otlp-endpoint");
	otlp_push_free(p);
	return NULL;
}

void otlp_push_free(struct otlp_push *p)
{
	if (!p)
		return;
	if (p->tick)
		event_free(p->tick);
	http_call_free(p->call);
	buf_done(&p->body);
	buf_done(&p->fresh);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

struct otlp_push_status otlp_push_get_status(const struct otlp_push *p)
{
	return p->status;
}
