// SPDX-License-Identifier: Apache-2.0
// Detects which query API a source has, before the first query is sent, and reads its clock after ours was set.
#include "base/err.h"
#include "promql/promql_dialect.h"
#include "promql/promql_private.h"

#define BUILDINFO_BYTES_MAX ((size_t)64 * 1024)

static void fail_waiting(struct promql *p, const struct err *error)
{
	struct promql_call *next;
	for (struct promql_call *call = p->calls; call; call = next) {
		next = call->next;
		if (!call->http)
			promql_end_failed(call, error);
	}
}

static void send_waiting(struct promql *p)
{
	struct promql_call *next;
	int64_t now_mono_ms = clock_mono_ms(p->clock);
	for (struct promql_call *call = p->calls; call; call = next) {
		struct err e;
		next = call->next;
		if (call->http)
			continue;
		call->started_mono_ms = now_mono_ms; // what this took is not taken from its deadline
		if (promql_send(call, now_mono_ms, &e) < 0)
			promql_end_failed(call, &e);
	}
}

static void on_buildinfo(void *arg, const struct http_response *r, const struct err *error)
{
	struct promql *p = arg;
	p->detection = NULL;
	if (error) {
		fail_waiting(p, error);
		return;
	}
	promql_note_clock(p, r->date_ms, r->elapsed_us);
	promql_forget_clock_step(p);
	bool again = r->status == 401 || r->status == 429 || r->status >= 500;
	if (p->kind != PROMQL_KIND_AUTO)
		again = false; // only its Date was requested
	else if (r->status >= 200 && r->status < 300)
		p->kind = promql_kind_of_buildinfo(r->body, r->body_len, p->version);
	else
		p->kind = PROMQL_KIND_PROMETHEUS; // no such page, or not for us: what every one of them understands
	send_waiting(p);
	if (again)
		promql_forget_kind(p); // detected again before the next query
}

void promql_continue(struct promql *p, const struct err *error)
{
	struct err e;
	int64_t now_mono_ms = clock_mono_ms(p->clock);
	bool is_waiting = false;
	if (error)
		p->token_error = *error;
	if (p->closing || !promql_auth_is_ready(&p->auth, now_mono_ms)) {
		fail_waiting(p, error ? error : &p->token_error);
		return;
	}
	for (const struct promql_call *call = p->calls; call; call = call->next)
		is_waiting |= !call->http;
	if (!is_waiting || p->detection)
		return;
	if (p->kind != PROMQL_KIND_AUTO && !p->must_ask_date)
		send_waiting(p);
	else if (promql_detect(p, now_mono_ms, &e) < 0)
		fail_waiting(p, &e);
}

int promql_detect(struct promql *p, int64_t now_mono_ms, struct err *e)
{
	if (!promql_auth_is_ready(&p->auth, now_mono_ms)) {
		if (p->token_fetch || promql_auth_wants_token(&p->auth, now_mono_ms))
			return promql_fetch_token(p, e);
		*e = p->token_error;
		return -1;
	}
	if (p->detection)
		return 0;
	struct http_request request = {
	        .method = "GET",
	        .url = p->buildinfo_url,
	        .headers = (const char *const *)p->headers,
	        .tls = &p->tls,
	        .timeout_ms = p->timeout_ms,
	        .max_body_bytes = BUILDINFO_BYTES_MAX,
	        .no_compression = true,
	};
	promql_auth_refresh(&p->auth, now_mono_ms);
	promql_auth_apply(&p->auth, &request);
	return http_client_submit(p->http, &request, on_buildinfo, p, &p->detection, e);
}

enum promql_kind promql_kind(const struct promql *p, const char **ret_version)
{
	if (ret_version)
		*ret_version = p->version;
	return p->kind;
}

void promql_forget_kind(struct promql *p)
{
	p->kind = p->asked_kind;
	if (p->kind == PROMQL_KIND_AUTO)
		p->version[0] = '\0';
}
