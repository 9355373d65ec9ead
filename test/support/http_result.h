// SPDX-License-Identifier: Apache-2.0
// Keeps what an HTTP call ended with, for tests of anything built on base/http/http_client.h.
#ifndef GPUSCALE_TEST_SUPPORT_HTTP_RESULT_H
#define GPUSCALE_TEST_SUPPORT_HTTP_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct http_client;
struct http_request;
struct http_response;
struct event_base;

struct http_result {
	int done; // how often the callback ran: 1 is right
	int status;
	struct err error;
	char *body;
	size_t body_len;
	char content_type[64];
	int64_t retry_after_ms, elapsed_us;
};

// An http_done_fn; arg is a struct http_result, zeroed before. Free with http_result_done.
void http_result_keep(void *arg, const struct http_response *response, const struct err *error);
void http_result_done(struct http_result *r);
// Submits, turns the loop until the end, at most limit_ms. Returns done. A request without a
// timeout_ms has TEST_PATIENCE_MS.
int http_result_of(struct http_client *c, struct event_base *loop, const struct http_request *request,
                   struct http_result *r, int64_t limit_ms);

#endif
