// SPDX-License-Identifier: Apache-2.0
#include "exporter/mock_replicas.h"

#include <event2/event.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http_client.h"
#include "base/json_read.h"
#include "base/log.h"
#include "base/num.h"

#define REPLICAS_FILE_BYTES_MAX 64
#define REPLICAS_BODY_BYTES_MAX (1024 * 1024)
#define TOKEN_BYTES_MAX         (64 * 1024)
#define REQUEST_TIMEOUT_MS      5000

struct mock_replicas {
	const struct mock_replicas_source *source;
	struct log *log;
	struct event_base *loop;
	struct event *timer;
	struct http_client *http; // only for a url: libcurl stays asleep otherwise
	bool in_flight;
	bool failing;
	_Atomic int32_t value;
};

struct mock_replicas *mock_replicas_new(const struct mock_replicas_source *source, struct log *log, struct err *e)
{
	struct mock_replicas *r = calloc(1, sizeof *r);
	if (!r) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	r->source = source;
	r->log = log;
	atomic_init(&r->value, source->has_constant ? source->constant : -1);
	return r;
}

void mock_replicas_free(struct mock_replicas *r)
{
	if (!r)
		return;
	http_client_free(r->http); // runs the callback of a call under way
	if (r->timer)
		event_free(r->timer);
	free(r);
}

int32_t mock_replicas_get(const struct mock_replicas *r)
{
	return atomic_load(&r->value);
}

int mock_replicas_decode(const char *json, size_t len, const char *path, int32_t *ret_replicas, struct err *e)
{
	cJSON *root = json_read(json, len, e);
	if (!root)
		return -1;
	int rc = -1;
	const cJSON *at = root;
	for (const char *p = path;;) {
		if (!cJSON_IsObject(at)) {
			err_set(e, ERR_INPUT, "the reply has no object at \"%.*s\" on the way to \"%s\"",
			        (int)(p - path), path, path);
			break;
		}
		char part[256];
		size_t n = strcspn(p, ".");
		if (n >= sizeof part)
			n = sizeof part - 1;
		memcpy(part, p, n);
		part[n] = '\0';
		if (p[n] == '\0') {
			int64_t value = 0;
			rc = json_get_i64(at, part, 0, MOCK_REPLICAS_MAX, &value, e) < 0 ? -1 : 0;
			*ret_replicas = (int32_t)value;
			break;
		}
		at = json_get(at, part);
		p += n + 1;
	}
	cJSON_Delete(root);
	return rc;
}

// The outcome of one try; error NULL = value is good.
static void settle(struct mock_replicas *r, int32_t value, const struct err *error)
{
	const char *from = r->source->url ? r->source->url : r->source->file;
	if (!error) {
		if (r->failing)
			LOG(r->log, LOG_INFO, "Replicas can be read again", LOG_S("source", from),
			    LOG_I("replicas", value));
		r->failing = false;
		atomic_store(&r->value, value);
		return;
	}
	if (!r->failing && error->kind != ERR_CANCELED)
		LOG(r->log, LOG_WARNING, "Cannot read replicas, the last value stays", LOG_S("source", from),
		    LOG_I("replicas", mock_replicas_get(r)), LOG_S("err", error->msg));
	r->failing = true;
}

static void on_reply(void *arg, const struct http_response *response, const struct err *error)
{
	struct mock_replicas *r = arg;
	r->in_flight = false;
	if (error) {
		settle(r, 0, error);
		return;
	}
	struct err e;
	int32_t value = 0;
	int rc;
	if (response->status < 200 || response->status > 299)
		rc = err_set_code(&e, err_kind_of_http_status(response->status), response->status, "HTTP status %d",
		                  response->status);
	else
		rc = mock_replicas_decode(response->body, response->body_len, r->source->field, &value, &e);
	settle(r, value, rc < 0 ? &e : NULL);
}

static int ask_url(struct mock_replicas *r, struct err *e)
{
	struct buf token;
	buf_init(&token, TOKEN_BYTES_MAX);
	int rc = 0;
	if (r->source->token_file)
		rc = buf_read_file(&token, r->source->token_file, e);
	if (rc == 0) {
		while (token.len && strchr(" \t\r\n", token.data[token.len - 1]))
			token.data[--token.len] = '\0';
		struct http_tls tls = {.ca_file = r->source->ca_file};
		struct http_request request = {.method = "GET",
		                               .url = r->source->url,
		                               .bearer_token = token.len ? token.data : NULL,
		                               .tls = &tls,
		                               .timeout_ms = REQUEST_TIMEOUT_MS,
		                               .max_body_bytes = REPLICAS_BODY_BYTES_MAX};
		rc = http_client_submit(r->http, &request, on_reply, r, NULL, e);
		r->in_flight = rc == 0;
	}
	buf_done(&token);
	return rc;
}

static int read_number(const char *path, int32_t *ret_value, struct err *e)
{
	struct buf text;
	buf_init(&text, REPLICAS_FILE_BYTES_MAX);
	int64_t value = 0;
	int rc = buf_read_file(&text, path, e);
	if (rc == 0) {
		while (text.len && strchr(" \t\r\n", text.data[text.len - 1]))
			text.len--;
		rc = num_parse_i64(buf_str(&text), text.len, 0, MOCK_REPLICAS_MAX, &value, e);
		if (rc < 0)
			err_wrap(e, "%s", path);
	}
	buf_done(&text);
	*ret_value = (int32_t)value;
	return rc;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct mock_replicas *r = arg;
	struct err e;
	if (r->source->file) {
		int32_t value;
		int rc = read_number(r->source->file, &value, &e);
		settle(r, value, rc < 0 ? &e : NULL);
	} else if (!r->in_flight && ask_url(r, &e) < 0) {
		settle(r, 0, &e);
	}
}

int mock_replicas_start(struct mock_replicas *r, struct event_base *loop, struct err *e)
{
	if (r->source->has_constant)
		return 0;
	r->loop = loop;
	if (r->source->url) {
		struct http_client_options options = {.loop = loop, .max_in_flight = 1, .max_queued = 1};
		r->http = http_client_new(&options, e);
		if (!r->http)
			return -1;
	}
	struct timeval every = {.tv_sec = r->source->interval_ms / 1000,
	                        .tv_usec = r->source->interval_ms % 1000 * 1000};
	r->timer = event_new(loop, -1, EV_PERSIST, on_timer, r);
	if (!r->timer || event_add(r->timer, &every) < 0)
		return err_set(e, ERR_INTERNAL, "cannot make a timer");
	on_timer(-1, 0, r);
	return 0;
}
