// SPDX-License-Identifier: Apache-2.0
// Replies that come piece by piece: watches of the fake API server, and whatever else has no end.
#include <assert.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/http_server_internal.h"

static size_t backlog(const struct http_conn *conn)
{
	return evbuffer_get_length(bufferevent_get_output(conn->bev));
}

// A client that has vanished without a word is found by the kernel, since nothing may be written for long.
static void keep_alive(const struct http_conn *conn)
{
	int on = 1;
	setsockopt(bufferevent_getfd(conn->bev), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

bool http_exchange_reply_start(struct http_exchange *x, int status, const char *content_type, http_closed_fn *on_close,
                               void *arg)
{
	struct http_conn *conn = x->conn;
	assert(status >= 200 && status <= 599 && status != 204 && status != 304 && !x->is_streaming);
	if (x->reply_headers.failed) {
		http_exchange_reply(x, 500, NULL, "", 0); // which says what is wrong
		return false;
	}
	if (!conn || conn->half_closed) {
		http_exchange_abort(x);
		return false;
	}
	bool is_head = strcmp(x->head.method, "HEAD") == 0;
	conn->close_after |= x->head.is_http10 || is_head;
	http_conn_put_head(conn, status, content_type, buf_str(&x->reply_headers),
	                   x->head.is_http10 ? "" : "Transfer-Encoding: chunked\r\n");
	conn->state = HTTP_CONN_STREAMING;
	conn->streamed = backlog(conn);
	conn->taken = 0;
	keep_alive(conn);
	http_conn_arm(conn, conn->server->idle_ms);
	x->is_streaming = true;
	x->on_close = on_close;
	x->close_arg = arg;
	return true;
}

void http_exchange_write(struct http_exchange *x, const char *data, size_t len)
{
	struct http_conn *conn = x->conn;
	assert(x->is_streaming && conn);
	if (conn->state != HTTP_CONN_STREAMING || len == 0 || strcmp(x->head.method, "HEAD") == 0)
		return; // cut off already; or an empty chunk, which would be the end
	size_t waiting = backlog(conn), max = conn->server->max_backlog_bytes;
	if (waiting > max || len > max - waiting) {
		http_conn_free_later(conn);
		return;
	}
	struct evbuffer *out = bufferevent_get_output(conn->bev);
	if (!x->head.is_http10)
		evbuffer_add_printf(out, "%zx\r\n", len);
	evbuffer_add(out, data, len);
	if (!x->head.is_http10)
		evbuffer_add(out, "\r\n", 2);
	conn->streamed += backlog(conn) - waiting;
	if (!evtimer_pending(&conn->deadline, NULL)) {
		conn->taken = conn->streamed - backlog(conn);
		http_conn_arm(conn, conn->server->idle_ms);
	}
}

void http_exchange_end(struct http_exchange *x)
{
	static const char last_chunk[] = "0\r\n\r\n";
	struct http_conn *conn = x->conn;
	assert(x->is_streaming && conn);
	bool has_chunks = !x->head.is_http10 && strcmp(x->head.method, "HEAD") != 0;
	if (conn->state == HTTP_CONN_STREAMING) {
		conn->state = HTTP_CONN_WRITING;
		if (has_chunks)
			evbuffer_add(bufferevent_get_output(conn->bev), last_chunk, sizeof last_chunk - 1);
		if (backlog(conn) > 0)
			http_conn_arm(conn, conn->server->idle_ms);
		else
			http_conn_free_later(conn); // nothing is left whose going out would be heard of
	}
	http_exchange_free(x);
}

void http_exchange_abort(struct http_exchange *x)
{
	struct http_conn *conn = x->conn;
	http_exchange_free(x);
	if (conn)
		http_conn_free_later(conn);
}

void http_stream_drained(struct http_conn *conn)
{
	if (backlog(conn) == 0)
		event_del(&conn->deadline);
}

void http_stream_deadline(struct http_conn *conn)
{
	uint64_t taken = conn->streamed - backlog(conn);
	if (backlog(conn) == 0)
		return;
	if (taken == conn->taken) {
		http_conn_free(conn);
		return;
	}
	conn->taken = taken; // slow, but alive
	http_conn_arm(conn, conn->server->idle_ms);
}

void http_stream_lost(struct http_exchange *x)
{
	http_closed_fn *on_close = x->on_close;
	void *arg = x->close_arg;
	x->conn = NULL;
	http_exchange_free(x);
	if (on_close)
		on_close(arg);
}
