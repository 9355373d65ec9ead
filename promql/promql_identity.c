// SPDX-License-Identifier: Apache-2.0
// Gets the tokens of a workload identity: before the first query, in the background before a token expires, and after
// the server refused one. Queries wait for a token only without a valid one.
#include <stdio.h>

#include "base/err.h"
#include "promql/identity.h"
#include "promql/promql_private.h"

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
	promql_continue(p, rc == 0 ? NULL : &e);
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
