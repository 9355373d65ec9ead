// SPDX-License-Identifier: Apache-2.0
// Polls the number of ready replicas of the mock's workload from the main loop; any thread may read it. A source that
// fails keeps its last value; its failure and its recovery are each logged once.
#include "exporter/mock/mock.h"

#include <stdatomic.h>

#include "base/base.h"
#include "base/json/json_read.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "exporter/http_call.h"

#define REPLICAS_FILE_BYTES_MAX 64
#define TOKEN_BYTES_MAX         (64 * 1024)
#define REQUEST_TIMEOUT_MS      5000

struct mock_replicas {
	const struct mock_replicas_source *source;
	struct log *log;
	struct event *timer;
	struct http_call *fetch; // NULL without a url
	bool failing;
	_Atomic int32_t value;
};

struct mock_replicas *mock_replicas_new(const struct mock_replicas_source *source, struct log *log, struct err *e)
{
	struct mock_replicas *r = err_calloc(sizeof *r, e);
	if (!r)
		return NULL;
	r->source = source;
	r->log = log;
	atomic_init(&r->value, source->has_constant ? source->constant : -1);
	return r;
}

void mock_replicas_free(struct mock_replicas *r)
{
	if (!r)
		return;
	http_call_free(r->fetch);
	timer_free(r->timer);
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
	const cJSON *at = root;
	const char *p = path;
	char part[256];
	int64_t value = 0;
	size_t n = 0;
	for (; cJSON_IsObject(at); p += n + 1) {
		n = strcspn(p, ".");
		snprintf(part, sizeof part, "%.*s", (int)n, p);
		if (p[n] == '\0')
			break;
		at = json_get(at, part);
	}
	int rc = 0;
	if (!cJSON_IsObject(at))
		rc = err_set(e, ERR_INPUT, "the reply has no object at \"%.*s\" on the way to \"%s\"", (int)(p - path),
		             path, path);
	else if (json_get_i64(at, part, 0, MOCK_REPLICAS_MAX, &value, e) < 0)
		rc = -1;
	*ret_replicas = (int32_t)value;
	cJSON_Delete(root);
	return rc;
}

// Handles the outcome of one request; `value` is valid if `error` is NULL.
static void complete(struct mock_replicas *r, int32_t value, const struct err *error)
{
	const char *from = r->source->url ? r->source->url : r->source->file;
	if (!error) {
		if (r->failing)
			LOG(r->log, LOG_INFO, "Reading replicas recovered", LOG_S("source", from),
			    LOG_I("replicas", value));
		r->failing = false;
		atomic_store(&r->value, value);
		return;
	}
	if (!r->failing)
		LOG(r->log, LOG_WARNING, "Reading replicas failed, keeping the last value", LOG_S("source", from),
		    LOG_I("replicas", mock_replicas_get(r)), LOG_S("err", error->msg));
	r->failing = true;
}

static void on_reply(void *arg, int status, const char *body, size_t len, const struct err *error)
{
	struct mock_replicas *r = arg;
	struct err e;
	int32_t value = 0;
	int rc = 0;
	if (error)
		e = *error, rc = -1;
	else if (status < 200 || status > 299)
		rc = err_set_code(&e, err_kind_of_http_status(status), status, "HTTP status %d", status);
	else
		rc = mock_replicas_decode(body, len, r->source->field, &value, &e);
	complete(r, value, rc < 0 ? &e : NULL);
}

// Reads a file without the spaces and line ends behind its text.
static int read_trimmed(struct buf *text, const char *path, struct err *e)
{
	if (buf_read_file(text, path, e) < 0)
		return -1;
	while (text->len && strchr(" \t\r\n", text->data[text->len - 1]))
		text->data[--text->len] = '\0';
	return 0;
}

static int ask_url(struct mock_replicas *r, struct err *e)
{
	struct buf token;
	buf_init(&token, TOKEN_BYTES_MAX);
	int rc = r->source->token_file ? read_trimmed(&token, r->source->token_file, e) : 0;
	if (rc == 0)
		rc = http_call_start(r->fetch, token.len ? token.data : NULL, e);
	buf_done(&token);
	return rc;
}

static int read_number(const char *path, int32_t *ret_value, struct err *e)
{
	struct buf text;
	buf_init(&text, REPLICAS_FILE_BYTES_MAX);
	int64_t value = 0;
	int rc = read_trimmed(&text, path, e);
	if (rc == 0 && num_parse_i64(buf_str(&text), text.len, 0, MOCK_REPLICAS_MAX, &value, e) < 0)
		rc = err_wrap(e, "%s", path);
	buf_done(&text);
	*ret_value = (int32_t)value;
	return rc;
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct mock_replicas *r = arg;
	struct err e;
	if (r->source->file) {
		int32_t value;
		int rc = read_number(r->source->file, &value, &e);
		complete(r, value, rc < 0 ? &e : NULL);
	} else if (!http_call_is_busy(r->fetch) && ask_url(r, &e) < 0) {
		complete(r, 0, &e);
	}
}

int mock_replicas_start(struct mock_replicas *r, struct event_base *loop, struct err *e)
{
	if (r->source->has_constant)
		return 0;
	if (r->source->url) {
		r->fetch = http_call_new(loop, r->source->url, r->source->ca_file, REQUEST_TIMEOUT_MS, on_reply, r, e);
		if (!r->fetch)
			return -1;
	}
	r->timer = event_new(loop, -1, EV_PERSIST, on_timer, r);
	if (!r->timer || timer_start(r->timer, r->source->interval_ms) < 0)
		return err_set(e, ERR_INTERNAL, "cannot create a timer");
	on_timer(-1, 0, r);
	return 0;
}
