// SPDX-License-Identifier: Apache-2.0
#include "test/support/http_result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/http/http_client.h"
#include "test/support/loop.h"

void http_result_keep(void *arg, const struct http_response *response, const struct err *error)
{
	struct http_result *r = arg;
	r->done++;
	if ((response != NULL) == (error != NULL))
		abort(); // exactly one of them, the header says
	if (error) {
		r->error = *error;
		return;
	}
	r->status = response->status;
	r->body_len = response->body_len;
	r->retry_after_ms = response->retry_after_ms;
	r->elapsed_us = response->elapsed_us;
	snprintf(r->content_type, sizeof r->content_type, "%s", response->content_type);
	free(r->body);
	r->body = malloc(response->body_len + 1);
	if (!r->body || response->body[response->body_len] != '\0')
		abort();
	memcpy(r->body, response->body, response->body_len + 1);
}

void http_result_done(struct http_result *r)
{
	free(r->body);
	memset(r, 0, sizeof *r);
}

int http_result_of(struct http_client *c, struct event_base *loop, const struct http_request *request,
                   struct http_result *r, int64_t limit_ms)
{
	struct http_request patient = *request;
	http_result_done(r);
	if (!patient.timeout_ms)
		patient.timeout_ms = TEST_PATIENCE_MS;
	if (http_client_submit(c, &patient, http_result_keep, r, NULL, &r->error) < 0)
		return 0;
	test_loop_until(loop, &r->done, 1, limit_ms);
	return r->done;
}
