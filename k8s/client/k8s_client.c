// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/k8s_client.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/util.h>
#include <utlist.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/http/http_client.h"
#include "base/timer.h"
#include "k8s/client/discovery.h"
#include "k8s/client/k8s_config.h"
#include "k8s/client/k8s_credentials.h"

#define DEFAULT_TIMEOUT_MS 15000
#define DEFAULT_ATTEMPTS   4
#define URL_BYTES_MAX      (K8S_PATH_BYTES_MAX + 2048)
#define CONTENT_TYPE_BYTES 128

enum request_state {
	WAITING_FOR_CREDENTIALS, // until k8s_credentials_fn is called
	RESUMING,                // the credentials are ready; about to be sent
	SENT,                    // http owns it
	BACKING_OFF,             // on the timer
};

struct k8s_call {
	struct k8s_call *prev, *next;
	struct k8s_client *client;
	enum request_state state;
	// Its texts and its body are in the allocation of the call; content_type is the header line.
	struct k8s_request_options o;
	bool is_guarded; // may_write is called
	bool was_refused, is_repeatable, has_refreshed;
	int attempts;
	uint64_t generation; // generation of the credentials that it was sent with
	uint64_t term;       // in which it was queued
	struct http_call *call;
	struct event timer;
};

// ---- ending a request ----

static void finish(struct k8s_call *r, const struct http_response *response, const struct err *error)
{
	struct k8s_client *c = r->client;
	k8s_done_fn *done = r->o.done;
	void *arg = r->o.arg;
	DL_DELETE(c->requests, r);
	c->n_requests--;
	event_del(&r->timer);
	free(r);
	done(arg, response, error);
}

// Names the cluster in an error that is about the connection or the credentials, not about the object.
static void finish_connection_error(struct k8s_call *r, const struct err *error)
{
	struct err e = *error;
	if (e.kind != ERR_CANCELED)
		err_wrap(&e, "API server %s (%s)", r->client->options.config->server,
		         r->client->options.config->source);
	finish(r, NULL, &e);
}

// ---- retries ----

static int64_t retry_delay_ms(int attempts, int64_t retry_after_ms)
{
	static const struct backoff backoff = {.first_ms = K8S_BACKOFF_FIRST_MS,
	                                       .max_ms = K8S_BACKOFF_MAX_MS,
	                                       .max_retry_after_ms = K8S_RETRY_AFTER_MAX_MS};
	return backoff_ms(&backoff, attempts, retry_after_ms);
}

static void send_request(struct k8s_call *r);

static void on_timer(evutil_socket_t fd, short events, void *arg)
{
	send_request(arg);
}

// Returns false when the request cannot be repeated.
static bool try_later(struct k8s_call *r, int64_t retry_after_ms)
{
	struct k8s_client *c = r->client;
	if (r->attempts >= r->o.max_attempts || c->is_closing)
		return false;
	if (timer_start(&r->timer, retry_delay_ms(r->attempts, retry_after_ms)) < 0)
		return false;
	r->state = BACKING_OFF;
	return true;
}

// ---- one attempt ----

static void observe(const struct k8s_call *r, int status, int64_t elapsed_us)
{
	const struct k8s_client_options *o = &r->client->options;
	if (!o->observe)
		return;
	char resource[K8S_RESOURCE_CLASS_BYTES];
	k8s_path_class(r->o.path, resource);
	o->observe(o->observe_arg, &(struct k8s_attempt){.verb = r->o.verb,
	                                                 .resource = resource,
	                                                 .status = status,
	                                                 .attempt = r->attempts,
	                                                 .elapsed_us = elapsed_us});
}

static void on_failed_reply(struct k8s_call *r, const struct http_response *response)
{
	struct err e;
	k8s_status_to_err(response->status, response->body, response->body_len, &e);
	if (response->retry_after_ms > 0) // the header is the newer and more common of the two
		e.retry_after_ms = response->retry_after_ms;
	if (response->status == 401 && !r->has_refreshed &&
	    k8s_credentials_reject(r->client->credentials, r->generation)) {
		r->has_refreshed = true;
		send_request(r);
		return;
	}
	bool may_repeat = response->status == 429 || (response->status >= 500 && r->is_repeatable);
	if (may_repeat && try_later(r, e.retry_after_ms))
		return;
	if (response->status == 401) {
		err_wrap(&e, "the credentials of %s were refused", r->client->options.config->source);
		finish_connection_error(r, &e);
		return;
	}
	finish(r, NULL, &e);
}

static void on_http_done(void *arg, const struct http_response *response, const struct err *error)
{
	struct k8s_call *r = arg;
	r->call = NULL;
	if (r->was_refused) {
		finish(r, NULL, error);
		return;
	}
	observe(r, response ? response->status : 0, response ? response->elapsed_us : 0);
	if (response && response->status >= 200 && response->status < 300)
		finish(r, response, NULL);
	else if (response)
		on_failed_reply(r, response);
	else if (error->kind != ERR_UNREACHABLE || !r->is_repeatable || !try_later(r, 0))
		finish_connection_error(r, error);
}

static void on_http_data(void *arg, const char *data, size_t len)
{
	struct k8s_call *r = arg;
	r->o.on_data(r->o.arg, data, len);
}

static int on_may_start(void *arg, struct err *e)
{
	struct k8s_call *r = arg;
	struct k8s_client *c = r->client;
	if (c->options.write_term && c->options.write_term(c->options.may_write_arg) != r->term)
		err_set(e, ERR_CANCELED,
		        "not sent: the lease that permitted this write was released after the write was queued");
	else if (c->options.may_write(c->options.may_write_arg, e) == 0)
		return 0;
	r->was_refused = true;
	return -1;
}

static int submit(struct k8s_call *r, struct err *e)
{
	struct k8s_client *c = r->client;
	struct buf url;
	buf_init(&url, URL_BYTES_MAX);
	buf_printf(&url, "%s%s", c->options.config->server, r->o.path);
	if (url.failed) {
		buf_done(&url);
		return err_set(e, ERR_LIMIT, "the URL exceeds %d bytes", URL_BYTES_MAX);
	}
	const char *const headers[] = {"Accept: application/json", r->o.content_type, NULL};
	struct http_request request = {
	        .method = r->o.method,
	        .url = buf_str(&url),
	        .headers = headers,
	        .body = r->o.body,
	        .body_len = r->o.body_len,
	        .timeout_ms = r->o.timeout_ms,
	        .may_start = r->is_guarded ? on_may_start : NULL,
	        .is_background = r->o.is_background,
	        .on_data = r->o.on_data ? on_http_data : NULL,
	        .idle_timeout_ms = r->o.idle_timeout_ms,
	};
	r->generation = k8s_credentials_apply(c->credentials, &request);
	int rc = http_client_submit(c->options.http, &request, on_http_done, r, &r->call, e);
	buf_done(&url);
	if (rc < 0)
		return -1;
	r->state = SENT;
	r->attempts++;
	return 0;
}

// From the loop only: may end the request.
static void send_request(struct k8s_call *r)
{
	struct err e = {0};
	switch (k8s_credentials_ensure(r->client->credentials, &e)) {
	case K8S_READY_LATER:
		r->state = WAITING_FOR_CREDENTIALS;
		return;
	case K8S_READY_NOW:
		if (submit(r, &e) == 0)
			return;
		break;
	case K8S_READY_FAILED:
		break;
	}
	finish_connection_error(r, &e);
}

static void on_credentials(void *arg, const struct err *error)
{
	struct k8s_client *c = arg;
	struct k8s_call *r;
	// Callbacks may add requests, which are served the next time: only those marked here are served now.
	DL_FOREACH(c->requests, r)
	{
		if (r->state == WAITING_FOR_CREDENTIALS)
			r->state = RESUMING;
	}
	for (;;) {
		DL_SEARCH_SCALAR(c->requests, r, state, RESUMING);
		if (!r)
			break;
		if (error)
			finish_connection_error(r, error);
		else
			send_request(r);
	}
}

// ---- the public face ----

bool k8s_name_is_valid(const char *text)
{
	size_t len = strlen(text);
	return len > 0 && len <= 253 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == len &&
	       strspn(text, ".") != len;
}

struct k8s_client *k8s_client_new(const struct k8s_client_options *options, struct err *e)
{
	struct k8s_client *c = err_calloc(sizeof *c, e);
	if (!c)
		return NULL;
	c->options = *options;
	if (c->options.timeout_ms <= 0)
		c->options.timeout_ms = DEFAULT_TIMEOUT_MS;
	if (c->options.max_attempts <= 0)
		c->options.max_attempts = DEFAULT_ATTEMPTS;
	c->credentials = k8s_credentials_new(options->loop, options->clock, options->config, on_credentials, c, e);
	if (!c->credentials || !(c->discovery = discovery_new(c, options->clock, options->config->server, e))) {
		k8s_client_free(c);
		return NULL;
	}
	return c;
}

void k8s_client_free(struct k8s_client *c)
{
	if (!c)
		return;
	c->is_closing = true;
	const struct err canceled = {.kind = ERR_CANCELED, .msg = "the Kubernetes client is shutting down"};
	while (c->requests) {
		struct k8s_call *r = c->requests;
		if (r->call)
			http_call_cancel(r->call); // runs on_http_done, which ends the request
		else
			finish(r, NULL, &canceled);
	}
	discovery_free(c->discovery);
	k8s_credentials_free(c->credentials);
	free(c);
}

// Returns whether sending the request twice is harmless. A second PATCH with a resourceVersion is refused with 409.
static bool is_repeatable(const char *method, const char *body, size_t len)
{
	if (strcmp(method, "GET") == 0 || strcmp(method, "PUT") == 0)
		return true;
	static const char marker[] = "\"resourceVersion\"";
	return strcmp(method, "PATCH") == 0 && len > 0 && memmem(body, len, marker, sizeof marker - 1);
}

static bool is_write(const char *method)
{
	return strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0 && strcmp(method, "OPTIONS") != 0;
}

static int check(const struct k8s_client *c, const struct k8s_request_options *o, struct err *e)
{
	if (c->is_closing)
		return err_set(e, ERR_CANCELED, "the Kubernetes client is shutting down");
	if (o->path[0] != '/' || strlen(o->path) > K8S_PATH_BYTES_MAX || strpbrk(o->path, " \t\r\n"))
		return err_set(e, ERR_INPUT,
		               "not a usable API path (it starts with '/', has no blanks and at most %d bytes)",
		               K8S_PATH_BYTES_MAX);
	if (c->n_requests >= K8S_REQUESTS_MAX)
		return err_set(e, ERR_LIMIT, "%zu requests to the API server are outstanding, the ceiling is %d",
		               c->n_requests, K8S_REQUESTS_MAX);
	return 0;
}

int k8s_request_with(struct k8s_client *c, const struct k8s_request_options *options, struct k8s_call **ret_call,
                     struct err *e)
{
	struct k8s_request_options o = *options;
	const char **const texts[] = {&o.method, &o.path, &o.content_type};
	char type[CONTENT_TYPE_BYTES];
	if (check(c, &o, e) < 0)
		return -1;
	snprintf(type, sizeof type, "Content-Type: %s", o.content_type ? o.content_type : "");
	if (o.content_type)
		o.content_type = type;
	struct k8s_call *r = alloc_with_texts(sizeof *r + o.body_len, texts, sizeof texts / sizeof texts[0], e);
	if (!r)
		return -1;
	o.body = o.body_len ? memcpy(r + 1, o.body, o.body_len) : NULL;
	o.verb = o.verb ? o.verb : o.method;
	o.timeout_ms = o.timeout_ms > 0 ? o.timeout_ms : c->options.timeout_ms;
	o.max_attempts = o.on_data ? 1 : o.max_attempts > 0 ? o.max_attempts : c->options.max_attempts;
	r->client = c;
	r->o = o;
	evtimer_assign(&r->timer, c->options.loop, on_timer, r);
	r->is_guarded = c->options.may_write && is_write(o.method) && !o.is_unguarded;
	r->term = r->is_guarded && c->options.write_term ? c->options.write_term(c->options.may_write_arg) : 0;
	r->is_repeatable = is_repeatable(o.method, o.body, o.body_len);
	enum k8s_ready ready = k8s_credentials_ensure(c->credentials, e);
	if (ready == K8S_READY_FAILED || (ready == K8S_READY_NOW && submit(r, e) < 0)) {
		free(r);
		return err_wrap(e, "API server %s (%s)", c->options.config->server, c->options.config->source);
	}
	DL_APPEND(c->requests, r);
	c->n_requests++;
	if (ret_call)
		*ret_call = r;
	return 0;
}

int k8s_request(struct k8s_client *c, const char *method, const char *path, const char *content_type, const char *body,
                size_t body_len, k8s_done_fn *done, void *arg, struct err *e)
{
	const struct k8s_request_options o = {.method = method,
	                                      .path = path,
	                                      .content_type = content_type,
	                                      .body = body,
	                                      .body_len = body_len,
	                                      .done = done,
	                                      .arg = arg};
	return k8s_request_with(c, &o, NULL, e);
}

void k8s_call_cancel(struct k8s_call *call)
{
	const struct err canceled = {.kind = ERR_CANCELED, .msg = "canceled"};
	if (call->call)
		http_call_cancel(call->call); // runs on_http_done, which ends the request
	else
		finish(call, NULL, &canceled);
}
