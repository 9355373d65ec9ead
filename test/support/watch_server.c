// SPDX-License-Identifier: Apache-2.0
#include "test/support/watch_server.h"

#include <arpa/inet.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "test/support/loop.h"

static void on_close(struct evhttp_connection *connection, void *arg)
{
	struct watch_server *s = arg;
	for (int i = 0; i < s->n; i++) {
		struct watch_server_request *r = &s->requests[i];
		if (r->raw && r->connection == connection) { // the request itself has forgotten it by now
			if (!evhttp_request_get_connection(r->raw))
				evhttp_request_free(r->raw); // its client left, so no connection owns it
			r->raw = NULL;
			s->left++;
		}
	}
}

static void on_request(struct evhttp_request *raw, void *arg)
{
	struct watch_server *s = arg;
	assert_true(s->n < WATCH_SERVER_REQUESTS_MAX);
	struct watch_server_request *r = &s->requests[s->n++];
	*r = (struct watch_server_request){s, strdup(evhttp_request_get_uri(raw)), raw,
	                                   evhttp_request_get_connection(raw), false};
	evhttp_connection_set_closecb(evhttp_request_get_connection(raw), on_close, s);
}

void watch_server_start(struct watch_server *s, struct event_base *loop)
{
	*s = (struct watch_server){.loop = loop, .http = evhttp_new(loop)};
	assert_non_null(s->http);
	struct evhttp_bound_socket *socket = evhttp_bind_socket_with_handle(s->http, "127.0.0.1", 0);
	assert_non_null(socket);
	struct sockaddr_in address;
	socklen_t size = sizeof address;
	assert_int_equal(getsockname(evhttp_bound_socket_get_fd(socket), (struct sockaddr *)(void *)&address, &size),
	                 0);
	s->port = ntohs(address.sin_port);
	evhttp_set_gencb(s->http, on_request, s);
}

void watch_server_stop(struct watch_server *s)
{
	evhttp_free(s->http);
	for (int i = 0; i < s->n; i++)
		free(s->requests[i].uri);
}

struct watch_server_request *watch_server_wait(struct watch_server *s, int i, int64_t ms)
{
	return test_loop_until(s->loop, &s->n, i + 1, ms) ? &s->requests[i] : NULL;
}

static struct evhttp_request *take(struct watch_server_request *r)
{
	assert_non_null(r);
	assert_non_null(r->raw);
	return r->raw;
}

void watch_server_reply(struct watch_server_request *r, int status, const char *body, const char *retry_after)
{
	struct evhttp_request *raw = take(r);
	struct evbuffer *bytes = evbuffer_new();
	evbuffer_add(bytes, body, strlen(body));
	evhttp_add_header(evhttp_request_get_output_headers(raw), "Content-Type", "application/json");
	if (retry_after)
		evhttp_add_header(evhttp_request_get_output_headers(raw), "Retry-After", retry_after);
	r->raw = NULL;
	evhttp_send_reply(raw, status, NULL, bytes);
	evbuffer_free(bytes);
}

void watch_server_begin(struct watch_server_request *r)
{
	r->has_started = true;
	evhttp_send_reply_start(take(r), 200, NULL);
}

void watch_server_push(struct watch_server_request *r, const char *text)
{
	struct evbuffer *bytes = evbuffer_new();
	if (!r->has_started)
		watch_server_begin(r);
	evbuffer_add(bytes, text, strlen(text));
	evhttp_send_reply_chunk(take(r), bytes);
	evbuffer_free(bytes);
}

void watch_server_end(struct watch_server_request *r)
{
	struct evhttp_request *raw = take(r);
	r->raw = NULL;
	evhttp_send_reply_end(raw);
}

void watch_server_break(struct watch_server_request *r)
{
	struct evhttp_request *raw = take(r);
	r->raw = NULL;
	evhttp_connection_set_closecb(evhttp_request_get_connection(raw), NULL, NULL);
	evhttp_connection_free(evhttp_request_get_connection(raw));
}
