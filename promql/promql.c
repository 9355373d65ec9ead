// SPDX-License-Identifier: Apache-2.0
// The transport: one POST per query, its reply judged by status and body, and one second try after a 401.
#include "promql/promql.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "promql/promql_auth.h"
#include "promql/promql_text.h"

#define URL_BYTES_MAX    2048
#define HEADER_BYTES_MAX 8192
// What the arena keeps between replies; a larger reply gives its memory back.
#define ARENA_KEPT_BYTES ((size_t)1024 * 1024)
// The densest reply, one-letter labels, takes less than this many bytes decoded per byte of body.
#define ARENA_BYTES_PER_BODY_BYTE 8

struct promql {
	struct http_client *http;
	char *url; // base without trailing '/', for messages
	char *query_url, *range_url;
	char **headers; // NULL-terminated
	struct http_tls tls;
	int64_t timeout_ms;
	size_t max_body_bytes;
	struct promql_auth auth;
	const struct clock *clock;
	struct clock own_clock;
	struct arena arena; // of the reply being handed over
	struct promql_call *calls;
	bool closing, in_callback;
};

struct promql_call {
	struct promql *p;
	struct promql_call *prev, *next;
	struct http_call *http;
	const char *url; // one of p's
	struct buf form;
	int64_t started_mono_ms;
	uint64_t generation; // of the secret it was sent with
	bool retried;
	promql_done_fn *done;
	void *arg;
};

// ---- options ----

static int check_url(const char *url, struct err *e)
{
	const char *host = NULL;
	if (url && strncmp(url, "http://", 7) == 0)
		host = url + 7;
	else if (url && strncmp(url, "https://", 8) == 0)
		host = url + 8;
	if (!host || !*host || *host == '/' || *host == ':')
		return err_set(e, ERR_INPUT,
		               "the Prometheus URL must look like http://host:9090 or https://host/prefix");
	if (strlen(url) > URL_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the Prometheus URL has %zu bytes; the ceiling is %d", strlen(url),
		               URL_BYTES_MAX);
	for (const char *c = url; *c; c++)
		if ((unsigned char)*c <= 0x20 || (unsigned char)*c >= 0x7f)
			return err_set(e, ERR_INPUT,
			               "the Prometheus URL holds a blank, control or non-ASCII character");
	// The URL itself is not repeated here: the part before '@' may be a password.
	if (memchr(host, '@', strcspn(host, "/")))
		return err_set(e, ERR_INPUT,
		               "the Prometheus URL holds credentials: use a basic user with a password file");
	if (strpbrk(url, "?#"))
		return err_set(e, ERR_INPUT, "the Prometheus URL %s must end before '?' or '#'", url);
	return 0;
}

static bool is_token_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c)); // RFC 9110, section 5.6.2
}

// The request is ours: these three would make its body mean something else.
static bool is_own_header(const char *header, size_t name_len)
{
	static const char *const own[] = {"Content-Type", "Content-Length", "Transfer-Encoding"};
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (strlen(own[i]) == name_len && strncasecmp(own[i], header, name_len) == 0)
			return true;
	return false;
}

// Messages name the header, never its value: that may be a secret.
static int check_header(const char *header, struct err *e)
{
	size_t n = 0;
	while (is_token_char(header[n]))
		n++;
	if (n == 0 || header[n] != ':')
		return err_set(e, ERR_INPUT, "a custom header must look like \"Name: value\"");
	if (is_own_header(header, n))
		return err_set(e, ERR_INPUT, "header %.*s cannot be set: it belongs to the query itself", (int)n,
		               header);
	if (strlen(header) > HEADER_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "header %.*s has %zu bytes; the ceiling is %d", (int)(n < 80 ? n : 80),
		               header, strlen(header), HEADER_BYTES_MAX);
	for (const char *c = header + n; *c; c++)
		if (((unsigned char)*c < 0x20 && *c != '\t') || *c == 0x7f)
			return err_set(e, ERR_INPUT, "the value of header %.*s holds a control character",
			               (int)(n < 80 ? n : 80), header);
	return 0;
}

static int no_memory(struct err *e)
{
	return err_set(e, ERR_INTERNAL, "out of memory");
}

static int copy_text(const char **ret, const char *text, struct err *e)
{
	*ret = text ? strdup(text) : NULL;
	return text && !*ret ? no_memory(e) : 0;
}

static int copy_headers(struct promql *p, const char *const *headers, struct err *e)
{
	size_t n = 0;
	while (headers && headers[n])
		n++;
	// One place is for our Content-Type.
	if (n > HTTP_HEADERS_MAX - 1)
		return err_set(e, ERR_LIMIT, "%zu custom headers are given; the ceiling is %d", n,
		               HTTP_HEADERS_MAX - 1);
	p->headers = calloc(n + 2, sizeof *p->headers);
	if (!p->headers)
		return no_memory(e);
	for (size_t i = 0; i <= n; i++) {
		const char *header = i ? headers[i - 1] : "Content-Type: application/x-www-form-urlencoded";
		if (i && check_header(header, e) < 0)
			return -1;
		p->headers[i] = strdup(header);
		if (!p->headers[i])
			return no_memory(e);
	}
	return 0;
}

static int copy_tls(struct http_tls *to, const struct http_tls *from, struct err *e)
{
	to->insecure_skip_verify = from->insecure_skip_verify;
	if (copy_text(&to->ca_file, from->ca_file, e) < 0 || copy_text(&to->ca_pem, from->ca_pem, e) < 0 ||
	    copy_text(&to->cert_file, from->cert_file, e) < 0 || copy_text(&to->cert_pem, from->cert_pem, e) < 0 ||
	    copy_text(&to->key_file, from->key_file, e) < 0 || copy_text(&to->key_pem, from->key_pem, e) < 0 ||
	    copy_text(&to->server_name, from->server_name, e) < 0)
		return -1;
	return 0;
}

static void free_tls(struct http_tls *tls)
{
	const char *const texts[] = {tls->ca_file,  tls->ca_pem,  tls->cert_file,  tls->cert_pem,
	                             tls->key_file, tls->key_pem, tls->server_name};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		free((void *)(uintptr_t)texts[i]);
}

static int set_urls(struct promql *p, const char *base, struct err *e)
{
	if (check_url(base, e) < 0)
		return -1;
	size_t len = strlen(base);
	while (base[len - 1] == '/')
		len--;
	if (asprintf(&p->url, "%.*s", (int)len, base) < 0 || asprintf(&p->query_url, "%s/api/v1/query", p->url) < 0 ||
	    asprintf(&p->range_url, "%s/api/v1/query_range", p->url) < 0)
		return no_memory(e);
	return 0;
}

static int init(struct promql *p, const struct promql_options *o, struct err *e)
{
	if (o->timeout_ms < 0)
		return err_set(e, ERR_INPUT, "the query timeout is negative");
	p->http = o->http;
	p->timeout_ms = o->timeout_ms ? o->timeout_ms : PROMQL_TIMEOUT_MS;
	p->max_body_bytes = o->max_body_bytes ? o->max_body_bytes : HTTP_BODY_BYTES_MAX;
	if (p->max_body_bytes > HTTP_BODY_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "a reply ceiling of %zu bytes is asked for; the ceiling is %d",
		               p->max_body_bytes, HTTP_BODY_BYTES_MAX);
	clock_init_real(&p->own_clock);
	p->clock = o->clock ? o->clock : &p->own_clock;
	arena_init(&p->arena, ARENA_KEPT_BYTES + p->max_body_bytes * ARENA_BYTES_PER_BODY_BYTE);
	if (set_urls(p, o->url, e) < 0 || copy_headers(p, o->headers, e) < 0 || copy_tls(&p->tls, &o->tls, e) < 0)
		return -1;
	return promql_auth_init(&p->auth, o, clock_mono_ms(p->clock), e);
}

struct promql *promql_new(const struct promql_options *options, struct err *e)
{
	struct promql *p = calloc(1, sizeof *p);
	if (!p) {
		no_memory(e);
		return NULL;
	}
	if (init(p, options, e) < 0) {
		promql_free(p);
		return NULL;
	}
	return p;
}

void promql_free(struct promql *p)
{
	if (!p)
		return;
	assert(!p->in_callback);
	p->closing = true;
	while (p->calls)
		http_call_cancel(p->calls->http);
	promql_auth_done(&p->auth);
	free_tls(&p->tls);
	for (char **h = p->headers; h && *h; h++)
		free(*h);
	free(p->headers);
	free(p->url);
	free(p->query_url);
	free(p->range_url);
	arena_done(&p->arena);
	free(p);
}

// ---- calls ----

static void free_call(struct promql_call *call)
{
	buf_done(&call->form);
	free(call);
}

static void link_call(struct promql_call *call)
{
	struct promql *p = call->p;
	call->next = p->calls;
	if (p->calls)
		p->calls->prev = call;
	p->calls = call;
}

static void unlink_call(struct promql_call *call)
{
	if (call->next)
		call->next->prev = call->prev;
	if (call->prev)
		call->prev->next = call->next;
	else
		call->p->calls = call->next;
}

static void finish(struct promql_call *call, const struct promql_result *result, const struct err *error)
{
	struct promql *p = call->p;
	unlink_call(call);
	p->in_callback = true;
	call->done(call->arg, result, error);
	p->in_callback = false;
	free_call(call);
	if (p->arena.used_bytes > ARENA_KEPT_BYTES) {
		size_t max_bytes = p->arena.max_bytes;
		arena_done(&p->arena);
		arena_init(&p->arena, max_bytes);
	} else {
		arena_reset(&p->arena);
	}
}

// The HTTP client's own errors name the address already.
static void fail_transport(struct promql_call *call, const struct err *error)
{
	struct err e = *error;
	err_wrap(&e, "Prometheus");
	finish(call, NULL, &e);
}

static void fail(struct promql_call *call, struct err *e)
{
	err_wrap(e, "Prometheus at %.160s", call->p->url);
	finish(call, NULL, e);
}

static void on_http_done(void *arg, const struct http_response *response, const struct err *error);

static int submit(struct promql_call *call, int64_t now_mono_ms, struct err *e)
{
	struct promql *p = call->p;
	int64_t left_ms = p->timeout_ms - (now_mono_ms - call->started_mono_ms);
	if (left_ms <= 0)
		return err_set(e, ERR_TIMEOUT, "no answer within %lld ms", (long long)p->timeout_ms);
	struct http_request request = {
	        .method = "POST",
	        .url = call->url,
	        .headers = (const char *const *)p->headers,
	        .body = call->form.data,
	        .body_len = call->form.len,
	        .tls = &p->tls,
	        .timeout_ms = left_ms,
	        .max_body_bytes = p->max_body_bytes,
	        // A few hundred bytes mostly, and there are many of them.
	        .no_compression = call->url == p->query_url,
	};
	promql_auth_apply(&p->auth, &request);
	call->generation = p->auth.generation;
	return http_client_submit(p->http, &request, on_http_done, call, &call->http, e);
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
	if (promql_auth_renew(&p->auth, call->generation, now_mono_ms, &changed, e) < 0)
		return err_wrap(e, "HTTP 401, and no newer credentials");
	if (!changed)
		return 0;
	return submit(call, now_mono_ms, e) < 0 ? -1 : 1;
}

// What a reply that is no reply of the query API says about itself.
static void judge_status(const struct http_response *r, struct err *e)
{
	char line[PROMQL_TEXT_BYTES / 2], type[PROMQL_NAME_BYTES];
	promql_text_first_line(line, sizeof line, r->body, r->body_len);
	promql_text_show(type, sizeof type, r->content_type, strlen(r->content_type));
	bool ok = r->status >= 200 && r->status < 300;
	if (ok)
		err_set_code(e, ERR_PROTOCOL, r->status, "HTTP %d with %s instead of a reply of the query API: %s",
		             r->status, type[0] ? type : "no content type", line[0] ? line : "empty body");
	else
		err_set_code(e, err_kind_of_http_status(r->status), r->status, "HTTP %d: %s", r->status,
		             line[0] ? line : "empty body");
	e->retry_after_ms = r->retry_after_ms;
}

static bool looks_like_json(const struct http_response *r)
{
	size_t i = 0;
	while (i < r->body_len && strchr(" \t\r\n", r->body[i]) && r->body[i])
		i++;
	return i < r->body_len && r->body[i] == '{';
}

// 0 and *ret_result, or -1 and *e.
static int judge(struct promql_call *call, const struct http_response *r, struct promql_result *ret_result,
                 struct err *e)
{
	bool ok = r->status >= 200 && r->status < 300;
	if (!looks_like_json(r)) {
		judge_status(r, e);
		return -1;
	}
	if (promql_decode(&call->p->arena, r->body, r->body_len, ret_result, e) == 0) {
		if (ok)
			return 0;
		return err_set_code(e, ERR_PROTOCOL, r->status, "HTTP %d with a body that says success", r->status);
	}
	if (!ok && e->kind == ERR_PROTOCOL) {
		judge_status(r, e); // JSON, but of somebody else: a proxy's
		return -1;
	}
	// The status knows better than an errorType that only says "refused": 401, 429, 503 of gateways.
	if (!ok && e->kind == ERR_REJECTED)
		e->kind = err_kind_of_http_status(r->status);
	e->code = r->status;
	e->retry_after_ms = r->retry_after_ms;
	return -1;
}

static void on_http_done(void *arg, const struct http_response *response, const struct err *error)
{
	struct promql_call *call = arg;
	struct err e;
	err_clear(&e);
	if (error) {
		fail_transport(call, error);
		return;
	}
	if (response->status == 401) {
		int rc = retry_unauthorized(call, &e);
		if (rc > 0)
			return;
		if (rc < 0) {
			e.kind = ERR_AUTH;
			e.code = 401;
			fail(call, &e);
			return;
		}
	}
	struct promql_result result;
	if (judge(call, response, &result, &e) < 0)
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

// Seconds with ms, as the API takes times and steps.
static void form_ms(struct buf *form, const char *name, int64_t ms)
{
	buf_printf(form, "&%s=%lld.%03lld", name, (long long)(ms / 1000), (long long)(ms % 1000));
}

static int start_call(struct promql *p, const char *url, const char *query, const int64_t *range_ms, int64_t time_ms,
                      promql_done_fn *done, void *arg, struct err *e)
{
	if (p->closing)
		return err_set(e, ERR_CANCELED, "the Prometheus client is shutting down");
	size_t len = strlen(query);
	if (len == 0)
		return err_set(e, ERR_INPUT, "the query is empty");
	if (len > PROMQL_QUERY_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the query has %zu bytes; the ceiling is %d", len, PROMQL_QUERY_BYTES_MAX);
	struct promql_call *call = calloc(1, sizeof *call);
	if (!call)
		return no_memory(e);
	call->p = p;
	call->url = url;
	call->done = done;
	call->arg = arg;
	call->started_mono_ms = clock_mono_ms(p->clock);
	buf_init(&call->form, 3 * len + 256);
	form_text(&call->form, "query", query);
	if (range_ms) {
		form_ms(&call->form, "start", range_ms[0]);
		form_ms(&call->form, "end", range_ms[1]);
		form_ms(&call->form, "step", range_ms[2]);
	} else if (time_ms) {
		form_ms(&call->form, "time", time_ms);
	}
	char timeout[NUM_TEXT_BYTES];
	num_format_duration_ms(timeout, p->timeout_ms);
	form_text(&call->form, "timeout", timeout);
	promql_auth_refresh(&p->auth, call->started_mono_ms);
	int rc = call->form.failed ? no_memory(e) : submit(call, call->started_mono_ms, e);
	if (rc < 0) {
		free_call(call);
		return -1;
	}
	link_call(call);
	return 0;
}

int promql_query(struct promql *p, const char *query, int64_t time_ms, promql_done_fn *done, void *arg, struct err *e)
{
	if (time_ms < 0)
		return err_set(e, ERR_INPUT, "the query time %lld ms is before 1970", (long long)time_ms);
	return start_call(p, p->query_url, query, NULL, time_ms, done, arg, e);
}

int promql_query_range(struct promql *p, const char *query, int64_t start_ms, int64_t end_ms, int64_t step_ms,
                       promql_done_fn *done, void *arg, struct err *e)
{
	if (start_ms < 0)
		return err_set(e, ERR_INPUT, "the range starts at %lld ms, before 1970", (long long)start_ms);
	if (end_ms < start_ms)
		return err_set(e, ERR_INPUT, "the range ends %lld ms before it starts", (long long)(start_ms - end_ms));
	if (step_ms < 1)
		return err_set(e, ERR_INPUT, "the step of the range is %lld ms; it must be 1 or more",
		               (long long)step_ms);
	int64_t steps = (end_ms - start_ms) / step_ms;
	if (steps > PROMQL_STEPS_MAX)
		return err_set(e, ERR_LIMIT,
		               "the range has %lld steps; the ceiling is %d: ask for a larger step or less time",
		               (long long)steps, PROMQL_STEPS_MAX);
	return start_call(p, p->range_url, query, (const int64_t[]){start_ms, end_ms, step_ms}, 0, done, arg, e);
}
