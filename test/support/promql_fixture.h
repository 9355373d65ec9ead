// SPDX-License-Identifier: Apache-2.0
// One loop with a query API that answers as scripted and keeps what it was asked: the ground of the promql tests.
#ifndef GPUSCALE_TEST_SUPPORT_PROMQL_FIXTURE_H
#define GPUSCALE_TEST_SUPPORT_PROMQL_FIXTURE_H

#include <stddef.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "base/http/http_server.h"
#include "promql/promql.h"

struct event;
struct event_base;

#define PROMQL_FIXTURE_REPLIES_MAX  5
#define PROMQL_FIXTURE_REQUESTS_MAX 256

// A vector of one series {pod="a"} with the value 0.7.
#define PROMQL_FIXTURE_BODY                                                                                            \
	"{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["                                     \
	"{\"metric\":{\"pod\":\"a\"},\"value\":[1.5,\"0.7\"]}]}}"

struct promql_reply {
	int status;
	const char *type, *body; // type NULL: application/json
	const char *retry_after; // NULL: none
	int delay_ms;            // one delayed reply at a time
};

struct promql_request {
	char method[8], path[64], type[64], authorization[128], extra[64], body[512];
};

struct promql_held {
	struct http_exchange *x;
	struct promql_reply reply;
	struct event *timer;
};

struct promql_fixture {
	struct event_base *loop;
	struct http_server *server;
	struct http_client *http;
	struct clock clock; // manual
	char url[64];
	char file[64]; // free for a token or password; removed at the end
	struct promql_reply
	        replies[PROMQL_FIXTURE_REPLIES_MAX]; // at first one: 200 with the body above; the last repeats
	size_t n_replies;
	const char *rotations[PROMQL_FIXTURE_REPLIES_MAX]; // written into `file` before the reply of that number,
	                                                   // unless NULL
	struct promql_request requests[PROMQL_FIXTURE_REQUESTS_MAX];
	size_t n_requests;
	struct promql_held held;
	// What the last callback brought.
	int n_done;
	struct err e;
	double value;
	size_t n_series, n_warnings;
};

int promql_fixture_setup(void **state); // cmocka
int promql_fixture_teardown(void **state);
// Replaces the server by one with these options (loop and listen are filled in), and f->url with its address.
void promql_fixture_serve(struct promql_fixture *f, struct http_server_options options);
void promql_fixture_write(const struct promql_fixture *f, const char *text); // into f->file
// A source with these options; client and clock are filled in, and the fixture's URL unless one is given.
struct promql *promql_fixture_open(struct promql_fixture *f, struct promql_options options);
// A promql_done_fn; arg is the fixture.
void promql_fixture_done(void *arg, const struct promql_result *result, const struct err *error);
// Turns the loop until n callbacks came; fails the test when they do not.
void promql_fixture_wait(struct promql_fixture *f, int n);
// One instant query "up", to its end.
void promql_fixture_ask(struct promql_fixture *f, struct promql *p);
void promql_fixture_expect_ok(const struct promql_fixture *f);

#endif
