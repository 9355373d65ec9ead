// SPDX-License-Identifier: Apache-2.0
// Replies without end: bytes are handed on as they come. curl's callbacks only keep them: from inside of curl no call
// could be canceled, so their owners hear of them once curl has returned.
#include <assert.h>
#include <stdlib.h>

#include "base/timer.h"

#include "base/http/http_client_internal.h"

struct http_slot *http_stream_slot_new(void)
{
	return calloc(1, sizeof(struct http_slot));
}

void http_stream_slot_free(struct http_slot *slot)
{
	curl_easy_cleanup(slot->easy);
	buf_done(&slot->body);
	free(slot);
}

static void has_news(struct http_call *call)
{
	if (!call->has_news)
		TAILQ_INSERT_TAIL(&call->client->news, call, news_link);
	call->has_news = true;
}

void http_stream_headers_ended(struct http_call *call)
{
	long status = 0;
	curl_easy_getinfo(call->slot->easy, CURLINFO_RESPONSE_CODE, &status);
	if (call->is_open || status < 200 || status >= 300) // trailers; 100 Continue; an error to be collected
		return;
	call->is_open = true;
	call->slot->body.max = HTTP_STREAM_BYTES_MAX;
	has_news(call);
}

int http_stream_take(struct http_call *call, const char *data, size_t len)
{
	struct buf *body = &call->slot->body;
	if (buf_put(body, data, len) == 0) {
		has_news(call);
		return 0;
	}
	call->refusal = len > body->max - body->len ? HTTP_REFUSED_BODY : HTTP_REFUSED_MEMORY;
	return -1;
}

static void arm_idle_timer(struct http_call *call)
{
	if (call->idle_timeout_ms == 0) {
		event_del(&call->deadline);
		return;
	}
	timer_start(&call->deadline, call->idle_timeout_ms); // pending already, so it needs no memory
}

void http_stream_deliver(struct http_client *c)
{
	struct http_call *call;
	while ((call = TAILQ_FIRST(&c->news))) {
		// The owner may cancel the call in its callback, and with it goes the slot: nothing is touched
		// afterwards.
		struct buf chunk = {0};
		if (call->is_open_reported) {
			chunk = call->slot->body;
			buf_init(&call->slot->body, HTTP_STREAM_BYTES_MAX);
		}
		if (call->is_open_reported || call->slot->body.len == 0) {
			TAILQ_REMOVE(&c->news, call, news_link);
			call->has_news = false;
		}
		call->is_open_reported = true;
		arm_idle_timer(call);
		c->in_callback++;
		call->on_data(call->arg, buf_str(&chunk), chunk.len);
		c->in_callback--;
		buf_done(&chunk);
	}
}

// Idle connections are closed above these numbers, and a stream over HTTP/1.1 has one for itself.
void http_stream_count_changed(struct http_client *c, int change)
{
	c->n_streams += change;
	assert(c->n_streams >= 0);
	curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)(c->max_in_flight + c->n_streams));
	curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)(c->max_in_flight + c->n_streams));
}
