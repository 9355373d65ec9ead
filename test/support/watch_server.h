// SPDX-License-Identifier: Apache-2.0
// A server that keeps every request and answers only when the test says so, piece by piece: for what an API server does
// to lists and watches.
#ifndef GPUSCALE_TEST_SUPPORT_WATCH_SERVER_H
#define GPUSCALE_TEST_SUPPORT_WATCH_SERVER_H

#include <stdbool.h>
#include <stdint.h>

struct event_base;

#define WATCH_SERVER_REQUESTS_MAX 256

struct watch_server;
struct watch_server_request {
	struct watch_server *server;
	char *uri;                  // with its query
	struct evhttp_request *raw; // NULL: answered, or its client has left
	struct evhttp_connection *connection;
	bool has_started;
};
struct watch_server {
	struct event_base *loop;
	struct evhttp *http;
	uint16_t port;
	struct watch_server_request requests[WATCH_SERVER_REQUESTS_MAX];
	int n, left; // requests that came; of these, the clients that left before the end
};

void watch_server_start(struct watch_server *s, struct event_base *loop);
void watch_server_stop(struct watch_server *s);
// Turns the loop until request i is there, at most ms; NULL when it did not come.
struct watch_server_request *watch_server_wait(struct watch_server *s, int i, int64_t ms);
// A whole answer; retry_after NULL: no such header.
void watch_server_reply(struct watch_server_request *r, int status, const char *body, const char *retry_after);
// 200 without an end; then pieces of it; then its end, or the end of the connection in the middle.
void watch_server_begin(struct watch_server_request *r);
void watch_server_push(struct watch_server_request *r, const char *text);
void watch_server_end(struct watch_server_request *r);
void watch_server_break(struct watch_server_request *r);

#endif
