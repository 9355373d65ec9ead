// SPDX-License-Identifier: Apache-2.0
#include "base/http/http_client.h"

#include "base/base.h"
#include "base/clock.h"
#include "base/http/http_client_internal.h"
#include "base/timer.h"

static void pump_soon(struct http_client *c)
{
	event_active(&c->pump, EV_TIMEOUT, 0);
}

// ---- streams: replies without end ----

static void arm_idle_timer(struct http_call *call)
{
	if (call->idle_timeout_ms == 0) {
		event_del(&call->deadline);
		return;
	}
	timer_start(&call->deadline, call->idle_timeout_ms); // pending already, so it needs no memory
}

// Outside of curl: hands on the bytes of streams.
static void deliver_streams(struct http_client *c)
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

// Makes room for the connections of the existing streams, in addition to those of max_in_flight requests. Idle
// connections are closed above these numbers, and a stream over HTTP/1.1 has one for itself.
static void stream_count_changed(struct http_client *c, int change)
{
	c->n_streams += change;
	assert(c->n_streams >= 0);
	curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)(c->max_in_flight + c->n_streams));
	curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)(c->max_in_flight + c->n_streams));
}

// ---- completion ----

static void release_slot(struct http_client *c, struct http_slot *slot, bool is_stream)
{
	if (is_stream) {
		curl_easy_cleanup(slot->easy);
		buf_done(&slot->body);
		free(slot);
		return;
	}
	curl_easy_reset(slot->easy); // forgets every pointer into the call; connections stay with the multi handle
	if (slot->body.cap > HTTP_BODY_BYTES_KEPT)
		buf_done(&slot->body);
	else
		buf_reset(&slot->body);
	SLIST_INSERT_HEAD(&c->free_slots, slot, free_link);
}

static struct http_call_queue *queue_of(const struct http_call *call)
{
	struct http_client *c = call->client;
	return call->on_data ? &c->streams : call->is_background ? &c->background : &c->queued;
}

static void leave_queue(struct http_call *call)
{
	TAILQ_REMOVE(queue_of(call), call, link);
	call->client->n_queued -= !call->on_data;
}

static struct http_call *next_call(const struct http_client *c)
{
	bool is_their_turn = TAILQ_EMPTY(&c->queued) || c->n_background == 0;
	return is_their_turn && !TAILQ_EMPTY(&c->background) ? TAILQ_FIRST(&c->background) : TAILQ_FIRST(&c->queued);
}

// The one way out: takes the call off every list, runs its callback, frees it.
static void finish(struct http_call *call, const struct http_response *response, const struct err *error)
{
	struct http_client *c = call->client;
	assert(call->state != HTTP_CALL_DONE);
	event_del(&call->deadline);
	if (call->state == HTTP_CALL_QUEUED) {
		leave_queue(call);
	} else {
		TAILQ_REMOVE(&c->running, call, link);
		c->n_background -= call->is_background;
		curl_multi_remove_handle(c->multi, call->slot->easy);
	}
	if (call->has_news)
		TAILQ_REMOVE(&c->news, call, news_link);
	if (call->on_data)
		stream_count_changed(c, -1);
	call->state = HTTP_CALL_DONE; // from here http_call_cancel(call) does nothing
	c->in_callback++;
	call->done(call->arg, response, error);
	c->in_callback--;
	if (call->slot)
		release_slot(c, call->slot, call->on_data != NULL);
	http_call_wipe(call);
	free(call);
	if (c->n_queued > 0 && !c->closing)
		pump_soon(c);
}

static void finish_canceled(struct http_call *call)
{
	struct err e;
	err_set(&e, ERR_CANCELED, "%s: canceled", call->place);
	finish(call, NULL, &e);
}

static void finish_transfer(struct http_call *call, CURLcode code)
{
	struct http_slot *slot = call->slot;
	if (code != CURLE_OK) {
		struct err e;
		http_error_of_curl(call, code, &e);
		finish(call, NULL, &e);
		return;
	}
	long status = 0;
	char *type = NULL;
	curl_easy_getinfo(slot->easy, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(slot->easy, CURLINFO_CONTENT_TYPE, &type);
	struct http_response response = {.status = (int)status,
	                                 .body = buf_str(&slot->body),
	                                 .body_len = slot->body.len,
	                                 .content_type = type ? type : "",
	                                 .retry_after_ms = call->retry_after_ms,
	                                 .date_ms = call->date_ms,
	                                 .elapsed_us = clock_real_mono_us() - call->submitted_us};
	finish(call, &response, NULL);
}

static void reap(struct http_client *c)
{
	int left;
	CURLMsg *m;
	deliver_streams(c); // before the end of the same stream is reported
	while ((m = curl_multi_info_read(c->multi, &left))) {
		if (m->msg != CURLMSG_DONE)
			continue;
		CURLcode code = m->data.result; // m is gone once the handle is removed
		char *private = NULL;
		curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &private);
		finish_transfer((struct http_call *)(void *)private, code);
	}
	c->tls_note.x509_error = 0;
}

// ---- libcurl requests sockets and timers, libevent provides them ----

// One socket that curl wants watched.
struct http_socket {
	LIST_ENTRY(http_socket) link;
	struct event event;
};

static void on_socket(evutil_socket_t fd, short what, void *arg)
{
	struct http_client *c = arg;
	int mask = (what & EV_READ ? CURL_CSELECT_IN : 0) | (what & EV_WRITE ? CURL_CSELECT_OUT : 0);
	int running;
	curl_multi_socket_action(c->multi, fd, mask, &running);
	reap(c);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	on_socket(CURL_SOCKET_TIMEOUT, 0, arg);
}

static int socket_changed(CURL *easy, curl_socket_t fd, int what, void *arg, void *socket_arg)
{
	struct http_client *c = arg;
	struct http_socket *s = socket_arg;
	if (what == CURL_POLL_REMOVE) {
		if (s) {
			event_del(&s->event);
			LIST_REMOVE(s, link);
			free(s);
			curl_multi_assign(c->multi, fd, NULL);
		}
		return 0;
	}
	if (s) {
		event_del(&s->event);
	} else {
		s = calloc(1, sizeof *s);
		if (!s)
			return -1; // curl then ends every transfer with CURLM_ABORTED_BY_CALLBACK
		LIST_INSERT_HEAD(&c->sockets, s, link);
		curl_multi_assign(c->multi, fd, s);
	}
	short events =
	        (short)(EV_PERSIST | (what & CURL_POLL_IN ? EV_READ : 0) | (what & CURL_POLL_OUT ? EV_WRITE : 0));
	if (event_assign(&s->event, c->loop, fd, events, on_socket, c) < 0 || event_add(&s->event, NULL) < 0)
		return -1;
	return 0;
}

static int timer_changed(CURLM *multi, long timeout_ms, void *arg)
{
	struct http_client *c = arg;
	if (timeout_ms < 0)
		return evtimer_del(&c->timer);
	return timer_start(&c->timer, timeout_ms);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct http_call *call = arg;
	struct err e;
	http_error_of_deadline(call, &e);
	finish(call, NULL, &e);
}

// ---- start ----

static void start(struct http_client *c, struct http_call *call)
{
	struct err e;
	if (call->may_start && call->may_start(call->arg, &e) < 0) {
		finish(call, NULL, &e);
		return;
	}
	struct http_slot *slot = call->on_data ? calloc(1, sizeof *slot) : SLIST_FIRST(&c->free_slots);
	if (!slot || (!slot->easy && !(slot->easy = curl_easy_init()))) {
		err_set(&e, ERR_INTERNAL, "%s: cannot make a transfer handle: out of memory", call->place);
		finish(call, NULL, &e);
		return;
	}
	slot->error_text[0] = '\0';
	err_clear(&slot->refused);
	slot->body.max = call->max_body_bytes;
	if (!call->on_data)
		SLIST_REMOVE_HEAD(&c->free_slots, free_link);
	call->slot = slot;
	CURLcode code = http_call_setup(call, slot);
	if (code == CURLE_OK && call->is_background && timer_start(&call->deadline, call->timeout_ms) < 0)
		code = CURLE_OUT_OF_MEMORY;
	if (code == CURLE_OK) {
		CURLMcode mcode = curl_multi_add_handle(c->multi, slot->easy);
		if (mcode == CURLM_OK) {
			leave_queue(call);
			TAILQ_INSERT_TAIL(&c->running, call, link);
			c->n_background += call->is_background;
			call->state = HTTP_CALL_RUNNING;
			return;
		}
		code = CURLE_OUT_OF_MEMORY;
	}
	err_set_code(&e, ERR_INTERNAL, (int)code, "%s: cannot set the transfer up: %s", call->place,
	             curl_easy_strerror(code));
	finish(call, NULL, &e);
}

// Starts waiting calls while there is room. A callback may submit again: only what waited at the start is looked at, so
// that a call that fails at once and is submitted again cannot keep the loop here.
static void on_pump(evutil_socket_t fd, short what, void *arg)
{
	struct http_client *c = arg;
	for (int turns = c->n_streams; turns > 0 && !TAILQ_EMPTY(&c->streams); turns--)
		start(c, TAILQ_FIRST(&c->streams));
	int turns = c->n_queued;
	while (turns-- > 0 && c->n_queued > 0 && !SLIST_EMPTY(&c->free_slots))
		start(c, next_call(c));
	if (!TAILQ_EMPTY(&c->streams) || (c->n_queued > 0 && !SLIST_EMPTY(&c->free_slots)))
		pump_soon(c);
}

int http_client_submit(struct http_client *c, const struct http_request *request, http_done_fn *done, void *arg,
                       struct http_call **ret_call, struct err *e)
{
	assert(c && request && done);
	if (c->closing)
		return err_set(e, ERR_CANCELED, "http request: the client is closing");
	if (request->on_data && c->n_streams >= HTTP_STREAMS_MAX)
		return err_set(e, ERR_LIMIT, "http request: %d streams are open already, the ceiling is %d",
		               c->n_streams, HTTP_STREAMS_MAX);
	if (c->n_queued >= c->max_queued)
		return err_set(e, ERR_LIMIT, "http request: %d requests wait already, the ceiling is %d", c->n_queued,
		               c->max_queued);
	struct http_call *call = calloc(1, sizeof *call);
	if (!call)
		return err_set(e, ERR_INTERNAL, "http request: out of memory");
	call->client = c;
	call->done = done;
	call->arg = arg;
	call->submitted_us = clock_real_mono_us();
	int rc = http_call_fill(call, request, e);
	if (rc == 0 && (evtimer_assign(&call->deadline, c->loop, on_deadline, call) < 0 ||
	                (!call->is_background && timer_start(&call->deadline, call->timeout_ms) < 0)))
		rc = err_set(e, ERR_INTERNAL, "http request: out of memory");
	if (rc < 0) {
		http_call_wipe(call);
		free(call);
		return -1;
	}
	TAILQ_INSERT_TAIL(queue_of(call), call, link);
	c->n_queued += !call->on_data;
	if (call->on_data)
		stream_count_changed(c, +1);
	if (call->on_data || !SLIST_EMPTY(&c->free_slots))
		pump_soon(c);
	if (ret_call)
		*ret_call = call;
	return 0;
}

// ---- replies whose end libcurl overlooks ----

// With HTTP/2, one transfer reads what the connection brings for all of them. Where that overfills the receive buffer
// of a second transfer, libcurl 7.88 stops nghttp2 within a frame, and lets nghttp2 go on only when the connection
// brings more bytes. If that frame was the last one, and the connection is quiet, the reply never ends. The reply to a
// small request is such bytes. Concerned are replies that exceed the buffer, except for streams that have no end.
#define NUDGE_BYTES    CURL_MAX_WRITE_SIZE // the receive buffer
#define NUDGE_AFTER_MS 50
#define NUDGE_IDLE_MS  60000 // a stream that may be silent for longer has no end
#define NUDGE_REPLY_MS 5000

static bool may_lack_end(const struct http_call *call)
{
	bool has_end = !call->on_data || (call->idle_timeout_ms > 0 && call->idle_timeout_ms <= NUDGE_IDLE_MS);
	long version = 0;
	if (!has_end || call->unnudged < NUDGE_BYTES)
		return false;
	curl_easy_getinfo(call->slot->easy, CURLINFO_HTTP_VERSION, &version);
	return version == CURL_HTTP_VERSION_2_0;
}

void http_call_heard(struct http_call *call, size_t len)
{
	struct http_client *c = call->client;
	call->unnudged += len;
	call->is_quiet = false;
	if (may_lack_end(call) && !evtimer_pending(&c->nudge, NULL))
		(void)timer_start(&c->nudge, NUDGE_AFTER_MS); // without memory, the call ends at its deadline
}

static void on_nudge_data(void *arg, const char *data, size_t len) {}

static void on_nudge_done(void *arg, const struct http_response *response, const struct err *error)
{
	struct http_client *c = arg;
	c->is_nudging = false; // any reply will do
}

// Sends the server of `call` a request without credentials, over the same connection unless that has no room for one.
static void nudge(struct http_client *c, const struct http_call *call)
{
	char url[HTTP_PLACE_BYTES];
	struct err ignored; // the call ends at its deadline
	const char *origin = strchr(call->place, ' ') + 1, *end = strchr(strstr(origin, "://") + 3, '/');
	if (!end)
		return; // the place is cut
	snprintf(url, sizeof url, "%.*s", (int)(end - origin), origin);
	const struct http_request request = {.method = "HEAD",
	                                     .url = url,
	                                     .tls = call->tls ? &call->tls->tls : NULL,
	                                     .no_proxy = call->loopback,
	                                     .timeout_ms = NUDGE_REPLY_MS,
	                                     .idle_timeout_ms = NUDGE_REPLY_MS,
	                                     .on_data = on_nudge_data}; // a stream waits for no place
	c->is_nudging = http_client_submit(c, &request, on_nudge_done, c, NULL, &ignored) == 0;
}

static void on_nudge(evutil_socket_t fd, short what, void *arg)
{
	struct http_client *c = arg;
	struct http_call *call;
	bool is_more = false;
	TAILQ_FOREACH(call, &c->running, link)
	{
		if (!may_lack_end(call))
			continue;
		if (call->is_quiet && !c->is_nudging) {
			call->unnudged = 0;
			nudge(c, call);
		} else {
			call->is_quiet = is_more = true;
		}
	}
	if (is_more)
		(void)timer_start(&c->nudge, NUDGE_AFTER_MS);
}

void http_call_cancel(struct http_call *call)
{
	if (call && call->state != HTTP_CALL_DONE)
		finish_canceled(call);
}

// ---- life ----

struct http_client *http_client_new(const struct http_client_options *options, struct err *e)
{
	assert(options && options->loop && options->connect_timeout_ms >= 0);
	if (options->max_in_flight < 0 || options->max_in_flight > HTTP_IN_FLIGHT_MAX || options->max_queued < 0) {
		err_set(e, ERR_USAGE, "http client: %d requests in flight, wanted are 1 to %d (0: %d)",
		        options->max_in_flight, HTTP_IN_FLIGHT_MAX, HTTP_IN_FLIGHT);
		return NULL;
	}
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		err_set(e, ERR_INTERNAL, "http client: libcurl does not initialise");
		return NULL;
	}
	struct http_client *c = calloc(1, sizeof *c);
	if (!c) {
		curl_global_cleanup();
		err_set(e, ERR_INTERNAL, "http client: out of memory");
		return NULL;
	}
	TAILQ_INIT(&c->queued);
	TAILQ_INIT(&c->background);
	TAILQ_INIT(&c->running);
	TAILQ_INIT(&c->streams);
	TAILQ_INIT(&c->news);
	SLIST_INIT(&c->free_slots);
	LIST_INIT(&c->tls_sets);
	LIST_INIT(&c->sockets);
	c->loop = options->loop;
	c->max_in_flight = options->max_in_flight ? options->max_in_flight : HTTP_IN_FLIGHT;
	c->max_queued = options->max_queued ? options->max_queued : HTTP_QUEUED;
	c->connect_timeout_ms = options->connect_timeout_ms ? options->connect_timeout_ms : HTTP_CONNECT_TIMEOUT_MS;
	c->no_http2 = options->no_http2;
	c->slots = calloc((size_t)c->max_in_flight, sizeof *c->slots);
	c->multi = curl_multi_init();
	evtimer_assign(&c->pump, c->loop, on_pump, c);
	evtimer_assign(&c->timer, c->loop, on_timer, c);
	evtimer_assign(&c->nudge, c->loop, on_nudge, c);
	if (!c->slots || !c->multi) {
		err_set(e, ERR_INTERNAL, "http client: out of memory");
		http_client_free(c);
		return NULL;
	}
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, socket_changed);
	curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, timer_changed);
	curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
	for (int i = c->max_in_flight - 1; i >= 0; i--)
		SLIST_INSERT_HEAD(&c->free_slots, &c->slots[i], free_link);
	stream_count_changed(c, 0);
	return c;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	assert(c->in_callback == 0); // a callback may cancel calls, not free the client under its own feet
	c->closing = true;
	struct http_call *call;
	while ((call = TAILQ_FIRST(&c->queued)) || (call = TAILQ_FIRST(&c->background)) ||
	       (call = TAILQ_FIRST(&c->streams)) || (call = TAILQ_FIRST(&c->running)))
		finish_canceled(call);
	for (int i = 0; c->slots && i < c->max_in_flight; i++) {
		curl_easy_cleanup(c->slots[i].easy);
		buf_done(&c->slots[i].body);
	}
	// Closing a connection still updates the loop's events for its socket, so curl is freed first.
	if (c->multi)
		curl_multi_cleanup(c->multi);
	struct http_socket *s;
	while ((s = LIST_FIRST(&c->sockets))) {
		event_del(&s->event);
		LIST_REMOVE(s, link);
		free(s);
	}
	event_del(&c->timer);
	event_del(&c->pump);
	event_del(&c->nudge);
	assert(LIST_EMPTY(&c->tls_sets));
	free(c->slots);
	free(c);
	curl_global_cleanup();
}
