// SPDX-License-Identifier: Apache-2.0
#include "test/support/http_stream.h"

#include <assert.h>
#include <event2/buffer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/http/http_server_internal.h"

struct http_stream {
	http_closed_fn *on_close;
	void *close_arg;
	size_t max_backlog_bytes;
	uint64_t written;
	uint64_t taken; // of these, gone to the kernel when the deadline was armed
};

static size_t backlog(const struct http_conn *conn)
{
	return evbuffer_get_length(bufferevent_get_output(conn->bev));
}

static void drained(struct http_conn *conn)
{
	if (backlog(conn) == 0)
		event_del(&conn->deadline);
}

static void deadline(struct http_conn *conn)
{
	struct http_stream *stream = conn->x->stream;
	uint64_t taken = stream->written - backlog(conn);
	if (backlog(conn) == 0)
		return;
	if (taken == stream->taken) {
		http_conn_event(conn, HTTP_EVENT_LOST);
		return;
	}
	stream->taken = taken; // slow, but alive
	http_conn_arm(conn, conn->server->idle_ms);
}

static void end_exchange(struct http_exchange *x)
{
	free(x->stream);
	http_exchange_free(x);
}

static void lost(struct http_exchange *x)
{
	http_closed_fn *on_close = x->stream->on_close;
	void *arg = x->stream->close_arg;
	x->conn = NULL;
	end_exchange(x);
	if (on_close)
		on_close(arg);
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
	static const struct http_stream_ops ops = {.drained = drained, .deadline = deadline, .lost = lost};
	struct http_conn *conn = x->conn;
	assert(status >= 200 && status <= 599 && status != 204 && status != 304 && !x->stream);
	if (x->reply_headers.failed) {
		http_exchange_reply(x, 500, NULL, "", 0); // which says what is wrong
		return false;
	}
	struct http_stream *stream = calloc(1, sizeof *stream);
	if (!conn || conn->half_closed || !stream) {
		free(stream);
		http_exchange_abort(x);
		return false;
	}
	bool is_head = strcmp(x->head.method, "HEAD") == 0;
	conn->close_after |= x->head.is_http10 || is_head;
	http_conn_put_head(conn, status, content_type, buf_str(&x->reply_headers),
	                   x->head.is_http10 ? "" : "Transfer-Encoding: chunked\r\n");
	http_conn_event(conn, HTTP_EVENT_STREAM);
	*stream = (struct http_stream){.on_close = on_close,
	                               .close_arg = arg,
	                               .max_backlog_bytes = HTTP_STREAM_BACKLOG_MAX,
	                               .written = backlog(conn)};
	x->stream = stream;
	x->stream_ops = &ops;
	keep_alive(conn);
	http_conn_arm(conn, conn->server->idle_ms);
	return true;
}

void http_exchange_limit_backlog(struct http_exchange *x, size_t max_bytes)
{
	x->stream->max_backlog_bytes = max_bytes;
}

void http_exchange_write(struct http_exchange *x, const char *data, size_t len)
{
	struct http_conn *conn = x->conn;
	struct http_stream *stream = x->stream;
	assert(stream && conn);
	if (conn->state != HTTP_CONN_STREAMING || len == 0 || strcmp(x->head.method, "HEAD") == 0)
		return; // cut off already; or an empty chunk, which would be the end
	size_t waiting = backlog(conn), max = stream->max_backlog_bytes;
	if (waiting > max || len > max - waiting) {
		http_conn_event(conn, HTTP_EVENT_ABORT);
		return;
	}
	struct evbuffer *out = bufferevent_get_output(conn->bev);
	if (!x->head.is_http10)
		evbuffer_add_printf(out, "%zx\r\n", len);
	evbuffer_add(out, data, len);
	if (!x->head.is_http10)
		evbuffer_add(out, "\r\n", 2);
	stream->written += backlog(conn) - waiting;
	if (!evtimer_pending(&conn->deadline, NULL)) {
		stream->taken = stream->written - backlog(conn);
		http_conn_arm(conn, conn->server->idle_ms);
	}
}

void http_exchange_end(struct http_exchange *x)
{
	static const char last_chunk[] = "0\r\n\r\n";
	struct http_conn *conn = x->conn;
	assert(x->stream && conn);
	bool has_chunks = !x->head.is_http10 && strcmp(x->head.method, "HEAD") != 0;
	if (conn->state == HTTP_CONN_STREAMING) {
		http_conn_event(conn, HTTP_EVENT_REPLY);
		if (has_chunks)
			evbuffer_add(bufferevent_get_output(conn->bev), last_chunk, sizeof last_chunk - 1);
		conn->reply_bytes = backlog(conn);
		if (backlog(conn) == 0)
			http_conn_await_sent(conn); // no callback follows from the buffer
	}
	end_exchange(x);
}

void http_exchange_abort(struct http_exchange *x)
{
	struct http_conn *conn = x->conn;
	end_exchange(x);
	if (conn)
		http_conn_event(conn, HTTP_EVENT_ABORT);
}
