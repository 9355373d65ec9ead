// SPDX-License-Identifier: Apache-2.0
// The transport: one request per query, its reply judged by status and body, and one second try after a 401.
#include "base/arena.h"
#include "base/base.h"
#include "promql/promql_private.h"

// The parameters of a form other than the query.
#define FORM_BYTES_MAX 512

// ---- replies: one for each request that was in flight at the same time ----

// The memory that a reply keeps between bodies; there are as many replies as queries were in flight at once.
#define ARENA_KEPT_BYTES ((size_t)16 * 1024)

// The body of one reply, as it arrives: passes JSON to the decoder, and keeps the start of any body for messages.
struct promql_reply {
	struct promql_reply *next_free;
	struct arena arena; // memory for the result
	struct promql_decoder *decoder;
	char head[PROMQL_TEXT_BYTES / 2]; // from the first byte that is not whitespace
	size_t head_len;
	size_t bytes, max_bytes; // size of the body
	struct err error;        // why the body is invalid or too large
};

static void reply_free(struct promql_reply *r)
{
	promql_decoder_free(r->decoder);
	arena_done(&r->arena);
	free(r);
}

static struct promql_reply *reply_new(void)
{
	struct promql_reply *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	arena_init(&r->arena, PROMQL_RANGE_BYTES_MAX);
	r->decoder = promql_decoder_new(&r->arena);
	if (!r->decoder) {
		reply_free(r);
		return NULL;
	}
	return r;
}

static void reply_start(struct promql_reply *r, size_t max_bytes, const struct promql_decoder_options *o)
{
	r->head_len = 0;
	r->bytes = 0;
	r->max_bytes = max_bytes;
	r->error.kind = ERR_NONE;
	promql_decoder_start(r->decoder, o);
}

static void keep_head(struct promql_reply *r, const char *data, size_t len)
{
	while (r->head_len == 0 && len > 0 && memchr(" \t\r\n", *data, 4)) {
		data++;
		len--;
	}
	size_t room = sizeof r->head - r->head_len, n = len < room ? len : room;
	if (n)
		memcpy(r->head + r->head_len, data, n);
	r->head_len += n;
}

static bool reply_is_json(const struct promql_reply *r)
{
	return r->head_len > 0 && r->head[0] == '{';
}

// Processes the next bytes. Returns 0, or -1 when no more are accepted; r->error then has the reason.
static int reply_take(struct promql_reply *r, const char *data, size_t len)
{
	if (r->error.kind != ERR_NONE)
		return -1;
	if (len > r->max_bytes - r->bytes)
		return err_set(&r->error, ERR_TOO_LARGE,
		               "the answer has %zu bytes or more; the ceiling is %zu: aggregate in the query",
		               r->bytes + len, r->max_bytes);
	r->bytes += len;
	if (r->head_len < sizeof r->head)
		keep_head(r, data, len);
	if (r->head_len > 0 && !reply_is_json(r))
		return 0;
	return promql_decoder_feed(r->decoder, data, len, &r->error);
}

// ---- the client ----

struct promql *promql_new(const struct promql_options *options, struct err *e)
{
	struct promql *p = err_calloc(sizeof *p, e);
	if (p && promql_take_options(p, options, e) == 0)
		return p;
	promql_free(p);
	return NULL;
}

void promql_free(struct promql *p)
{
	if (!p)
		return;
	assert(!p->in_callback);
	p->closing = true;
	if (p->detection)
		http_call_cancel(p->detection); // ends the calls that wait for it
	if (p->token_fetch)
		http_call_cancel(p->token_fetch); // likewise
	while (!LIST_EMPTY(&p->calls))
		http_call_cancel(LIST_FIRST(&p->calls)->http);
	promql_free_options(p);
	for (struct promql_reply *r = p->free_replies, *next; r; r = next) {
		next = r->next_free;
		reply_free(r);
	}
	free(p);
}

// ---- calls ----

static void free_call(struct promql_call *call)
{
	buf_done(&call->form);
	free(call);
}

// Returns NULL when memory is exhausted.
static struct promql_reply *reply_of(struct promql_call *call)
{
	struct promql *p = call->p;
	if (call->reply)
		return call->reply;
	struct promql_reply *r = p->free_replies;
	if (r)
		p->free_replies = r->next_free;
	else
		r = reply_new();
	if (r)
		reply_start(r, p->max_body_bytes, &call->decoding);
	return call->reply = r;
}

static void put_reply_back(struct promql_call *call)
{
	struct promql_reply *r = call->reply;
	if (!r)
		return;
	promql_decoder_start(r->decoder, &(struct promql_decoder_options){0}); // the result is no longer valid
	if (r->arena.held_bytes > ARENA_KEPT_BYTES)
		arena_done(&r->arena);
	r->next_free = call->p->free_replies;
	call->p->free_replies = r;
	call->reply = NULL;
}

// Called during the transfer.
static int on_body(void *arg, const char *data, size_t len)
{
	struct promql_reply *r = reply_of(arg);
	return r ? reply_take(r, data, len) : -1;
}

static void finish(struct promql_call *call, const struct promql_result *result, const struct err *error)
{
	struct promql *p = call->p;
	LIST_REMOVE(call, link);
	p->in_callback = true;
	call->done(call->arg, result, error);
	p->in_callback = false;
	put_reply_back(call);
	free_call(call);
}

// The HTTP client's own errors name the address already.
void promql_end_failed(struct promql_call *call, const struct err *error)
{
	struct err e = *error;
	err_wrap(&e, "%s", promql_dialects[call->p->kind].name);
	finish(call, NULL, &e);
}

static void fail(struct promql_call *call, struct err *e)
{
	err_wrap(e, "%s at %.160s", promql_dialects[call->p->kind].name, call->p->url);
	finish(call, NULL, e);
}

static void on_http_done(void *arg, const struct http_response *response, const struct err *error);

static int submit(struct promql_call *call, int64_t now_mono_ms, struct err *e)
{
	struct promql *p = call->p;
	int64_t left_ms = call->timeout_ms - (now_mono_ms - call->started_mono_ms);
	if (left_ms <= 0)
		return err_set(e, ERR_TIMEOUT, "no answer within %lld ms", (long long)call->timeout_ms);
	struct http_request request = {
	        .method = "POST",
	        .url = call->question.is_range ? p->range_url : p->query_url,
	        .headers = (const char *const *)p->headers,
	        .body = call->form.data,
	        .body_len = call->form.len,
	        .tls = &p->tls,
	        .timeout_ms = left_ms,
	        .on_body = on_body,
	        .max_body_bytes = p->max_body_bytes < PROMQL_ERROR_BODY_BYTES_MAX ? p->max_body_bytes
	                                                                          : PROMQL_ERROR_BODY_BYTES_MAX,
	        // A few hundred bytes mostly, and there are many of them.
	        .no_compression = !call->question.is_range,
	};
	char *url = NULL;
	if (p->use_get) {
		if (asprintf(&url, "%s?%s", request.url, buf_str(&call->form)) < 0)
			return err_no_memory(e);
		request.method = "GET";
		request.url = url;
		request.body = NULL;
		request.body_len = 0;
	}
	promql_auth_apply(&p->auth, &request);
	call->generation = p->auth.generation;
	int rc = http_client_submit(p->http, &request, on_http_done, call, &call->http, e);
	free(url);
	return rc;
}

// Formats ms as seconds, the unit of the API's times and steps.
static void form_ms(struct buf *form, const char *name, int64_t ms)
{
	buf_printf(form, "&%s=%lld.%03lld", name, (long long)(ms / 1000), (long long)(ms % 1000));
}

int promql_send(struct promql_call *call, int64_t now_mono_ms, struct err *e)
{
	struct promql *p = call->p;
	const struct promql_dialect *d = &promql_dialects[p->kind];
	const struct promql_question *q = &call->question;
	struct err unused;
	if (promql_auth_wants_token(&p->auth, now_mono_ms))
		promql_fetch_token(p, &unused); // the present one stays valid for a while
	if (call->is_built)
		return submit(call, now_mono_ms, e);
	call->is_built = true;
	call->decoding.clock_offset_ms = p->clock_offset_ms;
	if (q->is_range) {
		form_ms(&call->form, "start", q->start_ms + p->clock_offset_ms);
		form_ms(&call->form, "end", q->end_ms + p->clock_offset_ms);
		form_ms(&call->form, "step", q->step_ms);
	} else if (q->time_ms) {
		form_ms(&call->form, "time", q->time_ms + p->clock_offset_ms);
	}
	if (call->timeout_ms < p->timeout_ms)
		buf_printf(&call->form, "&timeout=%lldms", (long long)call->timeout_ms);
	else
		buf_puts(&call->form, p->timeout);
	buf_puts(&call->form, q->is_range ? d->range_params : d->instant_params);
	if (!q->is_range && d->lookback_param) {
		int64_t ms = q->lookback_ms > PROMQL_LOOKBACK_MS ? q->lookback_ms : d->lookback_ms;
		if (ms > 0)
			buf_printf(&call->form, "&%s=%lldms", d->lookback_param, (long long)ms);
	}
	if (call->form.failed)
		return err_no_memory(e);
	promql_auth_refresh(&p->auth, now_mono_ms);
	return submit(call, now_mono_ms, e);
}

// One more try with a newer secret: 1 when it is on its way, 0 when there is none, -1 and *e when it cannot be had.
static int retry_unauthorized(struct promql_call *call, struct err *e)
{
	struct promql *p = call->p;
	if (call->retried || p->closing)
		return 0;
	call->retried = true;
	int64_t now_mono_ms = clock_mono_ms(p->clock);
	bool changed;
	if (p->auth.identity != PROMQL_IDENTITY_NONE) {
		bool is_retried = p->token_fetch || promql_auth_token_refused(&p->auth, call->generation, now_mono_ms);
		if (!is_retried)
			return 0;
		call->http = NULL; // it waits for the token
		if (p->token_fetch)
			return 1;
		if (promql_auth_is_ready(&p->auth, now_mono_ms))
			return submit(call, now_mono_ms, e) < 0 ? -1 : 1;
		return promql_detect(p, now_mono_ms, e) < 0 ? -1 : 1;
	}
	if (promql_auth_renew(&p->auth, call->generation, now_mono_ms, &changed, e) < 0)
		return err_wrap(e, "HTTP 401, and no newer credentials");
	if (!changed)
		return 0;
	return submit(call, now_mono_ms, e) < 0 ? -1 : 1;
}

// Writes to `e` what is known about a reply that did not come from a query API: status, type and first line.
static void classify_status(const struct http_response *r, const struct promql_reply *reply, struct err *e)
{
	char line[PROMQL_TEXT_BYTES / 2], type[PROMQL_NAME_BYTES];
	promql_text_first_line(line, sizeof line, reply->head, reply->head_len);
	promql_text_show(type, sizeof type, r->content_type, strlen(r->content_type));
	bool ok = r->status >= 200 && r->status < 300;
	bool is_elsewhere = r->status == 404 || r->status == 405 || r->status == 501; // there is no such page or method
	if (ok)
		err_set_code(e, ERR_PROTOCOL, r->status, "HTTP %d with %s instead of a reply of the query API: %s",
		             r->status, type[0] ? type : "no content type", line[0] ? line : "empty body");
	else
		err_set_code(e, err_kind_of_http_status(r->status), r->status, "HTTP %d: %s%s", r->status,
		             line[0] ? line : "empty body",
		             is_elsewhere
		                     ? "; is this the base URL of a query API, with its prefix (Mimir: /prometheus)?"
		                     : "");
	e->retry_after_ms = r->retry_after_ms;
}

// Returns 0 and *ret_result, or -1 and *e. A body with a status other than 2xx was collected; any other went to the
// reply.
static int classify(struct promql_call *call, const struct http_response *r, struct promql_result *ret_result,
                    struct err *e)
{
	bool ok = r->status >= 200 && r->status < 300;
	struct promql_reply *reply = reply_of(call);
	if (!reply)
		return err_no_memory(e);
	if (r->body_len)
		reply_take(reply, r->body, r->body_len);
	if (!reply_is_json(reply)) {
		classify_status(r, reply, e);
		return -1;
	}
	if (reply->error.kind == ERR_NONE && promql_decoder_finish(reply->decoder, ret_result, &reply->error) == 0) {
		if (ok)
			return 0;
		return err_set_code(e, ERR_PROTOCOL, r->status, "HTTP %d with a body that says success", r->status);
	}
	*e = reply->error;
	if (!ok && e->kind == ERR_PROTOCOL) {
		classify_status(r, reply, e); // JSON, but not from the API: a proxy's
		return -1;
	}
	// The status knows better than an errorType that only says "refused": 401, 429, 503 of gateways.
	if (!ok && e->kind == ERR_REJECTED)
		e->kind = err_kind_of_http_status(r->status);
	if (e->kind != ERR_TOO_LARGE)
		e->code = r->status;
	e->retry_after_ms = r->retry_after_ms;
	return -1;
}

static void on_http_done(void *arg, const struct http_response *response, const struct err *error)
{
	struct promql_call *call = arg;
	struct err e;
	err_clear(&e);
	if (error && call->reply && call->reply->error.kind != ERR_NONE) {
		e = call->reply->error; // why the transfer was aborted
		fail(call, &e);
		return;
	}
	if (error) {
		promql_end_failed(call, error);
		return;
	}
	promql_note_clock(call->p, response->date_ms, response->elapsed_us);
	// Amazon refuses an expired token with 403.
	if (response->status == 401 || (response->status == 403 && call->p->auth.key_id)) {
		int rc = retry_unauthorized(call, &e);
		if (rc > 0)
			return;
		if (rc < 0) {
			e.kind = ERR_AUTH;
			e.code = response->status;
			fail(call, &e);
			return;
		}
	}
	struct promql_result result;
	if (classify(call, response, &result, &e) < 0)
		fail(call, &e);
	else
		finish(call, &result, NULL);
}

// ---- queries ----

static void form_text(struct buf *form, const char *name, const char *value)
{
	buf_printf(form, "%s%s=", form->len ? "&" : "", name);
	if (http_append_urlencoded(form, value) < 0)
		form->failed = true;
}

static int check_range(const struct promql_question *q, struct err *e)
{
	if (q->start_ms < 0)
		return err_set(e, ERR_INPUT, "the range starts at %lld ms, before 1970", (long long)q->start_ms);
	if (q->end_ms < q->start_ms)
		return err_set(e, ERR_INPUT, "the range ends %lld ms before it starts",
		               (long long)(q->start_ms - q->end_ms));
	if (q->step_ms < 1)
		return err_set(e, ERR_INPUT, "the step of the range is %lld ms; it must be 1 or more",
		               (long long)q->step_ms);
	int64_t steps = (q->end_ms - q->start_ms) / q->step_ms;
	if (steps > PROMQL_STEPS_MAX)
		return err_set(e, ERR_LIMIT,
		               "the range has %lld steps; the ceiling is %d: ask for a larger step or less time",
		               (long long)steps, PROMQL_STEPS_MAX);
	return 0;
}

static int check_question(const struct promql *p, const struct promql_question *q, struct err *e)
{
	size_t len = strlen(q->query);
	if (q->time_ms < 0)
		return err_set(e, ERR_INPUT, "the query time %lld ms is before 1970", (long long)q->time_ms);
	if (q->lookback_ms < 0)
		return err_set(e, ERR_INPUT, "the lookback of %lld ms is negative", (long long)q->lookback_ms);
	if (q->timeout_ms < 0)
		return err_set(e, ERR_INPUT, "the timeout of %lld ms is negative", (long long)q->timeout_ms);
	if (q->is_range && check_range(q, e) < 0)
		return -1;
	if (p->closing)
		return err_set(e, ERR_CANCELED, "the Prometheus client is shutting down");
	if (len == 0)
		return err_set(e, ERR_INPUT, "the query is empty");
	if (len > PROMQL_QUERY_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the query has %zu bytes; the ceiling is %d", len, PROMQL_QUERY_BYTES_MAX);
	return 0;
}

int promql_ask(struct promql *p, const struct promql_question *q, promql_done_fn *done, void *arg, struct err *e)
{
	if (check_question(p, q, e) < 0)
		return -1;
	bool is_shorter = q->timeout_ms > 0 && q->timeout_ms < p->timeout_ms;
	struct promql_call *call = calloc(1, sizeof *call);
	if (!call)
		return err_no_memory(e);
	*call = (struct promql_call){
	        .p = p,
	        .question = *q,
	        .timeout_ms = is_shorter ? q->timeout_ms : p->timeout_ms,
	        .decoding = {.max_series = q->max_series,
	                     .max_bytes = q->is_range ? PROMQL_RANGE_BYTES_MAX : PROMQL_ANSWER_BYTES_MAX,
	                     .labels = q->labels,
	                     .budget = p->budget},
	        .done = done,
	        .arg = arg,
	        .started_mono_ms = clock_mono_ms(p->clock)};
	call->question.query = NULL;
	buf_init(&call->form, 3 * strlen(q->query) + FORM_BYTES_MAX);
	form_text(&call->form, "query", q->query);
	int rc;
	if (call->form.failed)
		rc = err_no_memory(e);
	else if (p->kind != PROMQL_KIND_AUTO && !p->must_ask_date &&
	         promql_auth_is_ready(&p->auth, call->started_mono_ms))
		rc = promql_send(call, call->started_mono_ms, e);
	else
		rc = promql_detect(p, call->started_mono_ms, e);
	if (rc < 0) {
		free_call(call);
		return -1;
	}
	LIST_INSERT_HEAD(&p->calls, call, link);
	return 0;
}
