// SPDX-License-Identifier: Apache-2.0
// Gets what queries wait for: a token of the workload identity, the query API that a source has, and its clock after
// ours was set.
#include <string.h>

#include "base/err.h"
#include "base/json/json_read.h"
#include "promql/promql_private.h"

// ---- dialects ----

const char *const promql_kind_names[] = {
        [PROMQL_KIND_PROMETHEUS] = "Prometheus",
        [PROMQL_KIND_THANOS] = "Thanos",
        [PROMQL_KIND_MIMIR] = "Mimir",
        [PROMQL_KIND_VICTORIAMETRICS] = "VictoriaMetrics",
        [PROMQL_KIND_AUTO] = "Auto",
        [PROMQL_KIND__COUNT] = NULL,
};
_Static_assert(sizeof promql_kind_names / sizeof promql_kind_names[0] == PROMQL_KIND__COUNT + 1, "one name per kind");

const struct promql_dialect promql_dialects[] = {
        // Prometheus: web/api/v1, lookback_delta since pull request 12088 (March 2023); older ones ignore it, as they
        // do every unknown parameter.
        [PROMQL_KIND_PROMETHEUS] = {"Prometheus", "", "", "lookback_delta", 0},
        // Thanos: docs/components/query.md. Without partial_response=false a store that is away makes the response
        // smaller, and whether a warning says so is for the server's flags to say.
        [PROMQL_KIND_THANOS] = {"Thanos", "&dedup=true&partial_response=false", "&dedup=true&partial_response=false",
                                "lookback_delta", 0},
        [PROMQL_KIND_MIMIR] = {"Mimir", "", "", "lookback_delta", 0},
        // VictoriaMetrics: app/vmselect/prometheus. Unless nocache is set, an instant query is evaluated as of 30 s ago
        // (-search.latencyOffset) under today's time stamp, and the ends of a range are moved; latency_offset keeps the
        // newest points of a range from being overwritten with older ones. Its lookback is guessed from the interval
        // between samples unless max_lookback says it: with Prometheus's own a dead series is seen, and seen to be old.
        [PROMQL_KIND_VICTORIAMETRICS] = {"VictoriaMetrics", "&nocache=1", "&nocache=1&latency_offset=1ms",
                                         "max_lookback", PROMQL_LOOKBACK_MS},
        [PROMQL_KIND_AUTO] = {"Prometheus", "", "", NULL, 0},
};
_Static_assert(sizeof promql_dialects / sizeof promql_dialects[0] == PROMQL_KIND__COUNT, "one dialect per kind");

// Mimir names itself. Thanos is still at version 0, Prometheus never was since its API is v1. VictoriaMetrics gives
// no revision and either no version or that of the Prometheus it is compatible with.
enum promql_kind promql_kind_of_buildinfo(const char *body, size_t len, char ret_version[static PROMQL_VERSION_BYTES])
{
	ret_version[0] = '\0';
	cJSON *root = json_read(body, len, NULL);
	const cJSON *data = root ? json_get(root, "data") : NULL;
	enum promql_kind kind = PROMQL_KIND_PROMETHEUS;
	if (cJSON_IsObject(data) && strcmp(json_get_str(root, "status", ""), "success") == 0) {
		const char *version = json_get_str(data, "version", "");
		if (strstr(json_get_str(data, "application", ""), "Mimir"))
			kind = PROMQL_KIND_MIMIR;
		else if (!json_get(data, "revision"))
			kind = PROMQL_KIND_VICTORIAMETRICS;
		else if (version[0] == '0' && version[1] == '.')
			kind = PROMQL_KIND_THANOS;
		if (kind != PROMQL_KIND_VICTORIAMETRICS)
			promql_text_show(ret_version, PROMQL_VERSION_BYTES, version, strlen(version));
	}
	cJSON_Delete(root);
	return kind;
}

// ---- tokens ----

// They are requested before the first query, in the background before a token expires, and after the server refused
// one. Queries wait for a token only without a valid one.

// Continues after a request for a token, which failed with `error` (NULL: it did not).
static void continue_calls(struct promql *p, const struct err *error);

static void on_token(void *arg, const struct http_response *r, const struct err *error)
{
	struct promql *p = arg;
	struct identity_token token;
	struct err e;
	p->token_fetch = NULL;
	int rc = -1;
	if (error)
		e = *error;
	else if (r->status != 200) // the body may contain a secret
		err_set_code(&e, err_kind_of_http_status(r->status), r->status, "HTTP %d of the token endpoint",
		             r->status);
	else
		rc = identity_answer_read(p->auth.identity, r->body, r->body_len, clock_wall_ms(p->clock), &token, &e);
	if (rc == 0)
		promql_auth_set_token(&p->auth, &token, clock_mono_ms(p->clock));
	else
		err_wrap(&e, "no token of the workload identity (%s)", promql_identity_names[p->auth.identity]);
	continue_calls(p, rc == 0 ? NULL : &e);
}

int promql_fetch_token(struct promql *p, struct err *e)
{
	struct identity_request r;
	if (p->token_fetch)
		return 0;
	p->auth.asked_at_ms = clock_mono_ms(p->clock);
	int rc = identity_request_fill(&r, p->auth.identity, p->auth.region, e);
	if (rc == 0) {
		const struct http_request request = {
		        .method = r.method,
		        .url = r.url,
		        .headers = r.headers,
		        .body = r.body.len ? r.body.data : NULL,
		        .body_len = r.body.len,
		        .timeout_ms = p->timeout_ms,
		        .max_body_bytes = IDENTITY_ANSWER_BYTES_MAX,
		        .no_compression = true,
		        .no_proxy = r.url[4] == ':', // "http:": the endpoints of this node
		};
		rc = http_client_submit(p->http, &request, on_token, p, &p->token_fetch, e);
	}
	identity_request_done(&r);
	if (rc == 0)
		return 0;
	err_wrap(e, "no token of the workload identity (%s)", promql_identity_names[p->auth.identity]);
	p->token_error = *e;
	return -1;
}

// ---- the clock ----

// A query names the time it is evaluated at, and its response contains times: both are of the server's clock. When our
// clock is set by a known step and the server's is not, the times are converted by that step, so that a wrong clock of
// this host neither reads data from another time nor stops scaling.

// Date has whole seconds, and a clock is set by more than this (CLOCK_STEP_MS).
#define CLOCKS_AGREE_MS 2500

// Returns the difference from `offset_ms` to the nearest skew that explains the last Date.
static int64_t distance_ms(const struct promql *p, int64_t offset_ms)
{
	if (offset_ms < p->skew_min_ms)
		return p->skew_min_ms - offset_ms;
	return offset_ms > p->skew_max_ms ? p->skew_max_ms - offset_ms : 0;
}

static bool explains(const struct promql *p, int64_t offset_ms)
{
	int64_t left_ms = distance_ms(p, offset_ms);
	return left_ms <= CLOCKS_AGREE_MS && left_ms >= -CLOCKS_AGREE_MS;
}

void promql_note_clock(struct promql *p, int64_t date_ms, int64_t elapsed_us)
{
	int64_t expected_ms = p->clock_offset_ms - p->clock_step_ms;
	if (date_ms <= 0)
		return; // usually the reply of a proxy: it says nothing about the clock
	// The server stamped its reply between the request and now, within the second that Date states. A slow reply
	// leaves a wide range: whether a clock was set is decided by what lies outside the range.
	int64_t now_ms = clock_wall_ms(p->clock);
	p->skew_min_ms = date_ms - now_ms;
	p->skew_max_ms = date_ms + 1000 - (now_ms - elapsed_us / 1000 - 1);
	if (p->must_ask_date)
		p->clock_offset_ms = !explains(p, 0) && explains(p, expected_ms) ? expected_ms : 0;
	else if (explains(p, 0) && !explains(p, p->clock_offset_ms))
		p->clock_offset_ms = 0; // the server's clock was set, too, or ours is correct again
	p->clock_step_ms = 0;
	p->must_ask_date = false;
}

void promql_forget_clock_step(struct promql *p)
{
	if (!p->must_ask_date)
		return;
	p->clock_offset_ms = p->clock_step_ms = 0;
	p->must_ask_date = false;
}

void promql_clock_was_set(struct promql *p, int64_t step_ms)
{
	p->clock_step_ms += step_ms;
	p->must_ask_date = true;
}

int64_t promql_skew_ms(const struct promql *p)
{
	return distance_ms(p, 0);
}

int64_t promql_unexplained_skew_ms(const struct promql *p)
{
	return p->clock_offset_ms != 0 && explains(p, p->clock_offset_ms) ? 0 : distance_ms(p, p->clock_offset_ms);
}

// ---- the query API ----

#define BUILDINFO_BYTES_MAX ((size_t)64 * 1024)

static void fail_waiting(struct promql *p, const struct err *error)
{
	struct promql_call *next;
	for (struct promql_call *call = LIST_FIRST(&p->calls); call; call = next) {
		next = LIST_NEXT(call, link);
		if (!call->http)
			promql_end_failed(call, error);
	}
}

static void send_waiting(struct promql *p)
{
	struct promql_call *next;
	int64_t now_mono_ms = clock_mono_ms(p->clock);
	for (struct promql_call *call = LIST_FIRST(&p->calls); call; call = next) {
		struct err e;
		next = LIST_NEXT(call, link);
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

static void continue_calls(struct promql *p, const struct err *error)
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
	const struct promql_call *call;
	LIST_FOREACH(call, &p->calls, link)
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
