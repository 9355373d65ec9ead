// SPDX-License-Identifier: Apache-2.0
#include "base/http/http_server.h"

#include <assert.h>
#include <event2/buffer.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/http/http_server_internal.h"
#include "base/http/http_text.h"
#include "base/timer.h"

#include <openssl/ssl.h>

// Room for a whole head and a piece of body.
static size_t read_ahead(const struct http_server *s)
{
	return s->max_header_bytes + (s->max_body_bytes < 65536 ? s->max_body_bytes : 65536);
}

// What the kernel may hold of the requests of one connection; the client keeps the rest.
static int receive_bytes(const struct http_server *s)
{
	return s->max_body_bytes < 65536 ? HTTP_SERVER_RECEIVE_BYTES : (int)read_ahead(s);
}

static int64_t now_mono_ms(void)
{
	struct clock real;
	clock_init_real(&real);
	return clock_mono_ms(&real);
}

void http_conn_arm(struct http_conn *conn, int64_t ms)
{
	timer_start(&conn->deadline, ms);
}

// Returns the bytes that the kernel has not sent.
static int unsent(const struct http_conn *conn)
{
	int n = 0;
	return ioctl(bufferevent_getfd(conn->bev), SIOCOUTQNSD, &n) == 0 ? n : 0;
}

// bufferevent_free frees the buffers at the end of the turn of the loop, in which hundreds of replies may follow.
static void drop_output(struct http_conn *conn)
{
	struct evbuffer *out = bufferevent_get_output(conn->bev);
	evbuffer_unfreeze(out, 1); // a bufferevent freezes the front of its output buffer
	evbuffer_drain(out, evbuffer_get_length(out));
	conn->reply_bytes = 0;
}

// Whatever the kernel has not sent goes with the connection: the client has had its time to read it.
static void reset_if_unsent(const struct http_conn *conn)
{
	static const struct linger at_once = {.l_onoff = 1};
	if (unsent(conn) > 0)
		setsockopt(bufferevent_getfd(conn->bev), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void http_conn_free(struct http_conn *conn)
{
	struct http_exchange *x = conn->x, *stream = NULL;
	if (x && conn->state == HTTP_CONN_HANDLING)
		x->conn = NULL; // still the handler's; its reply will go nowhere
	else if (x && x->stream_ops)
		stream = x;
	else if (x)
		http_exchange_free(x);
	event_del(&conn->deadline);
	event_del(&conn->sent);
	if (conn->state == HTTP_CONN_HELLO)
		http_hello_forget(conn);
	http_peer_part(conn);
	conn->server->stats.open--;
	if (conn->bev) {
		drop_output(conn);
		http_server_tls_goodbye(conn->bev);
		reset_if_unsent(conn);
		bufferevent_free(conn->bev);
	} else {
		close(conn->fd);
	}
	free(conn);
	if (stream)
		stream->stream_ops->lost(stream);
}

void http_conn_free_later(struct http_conn *conn)
{
	http_conn_enter(conn, HTTP_CONN_CLOSING);
	bufferevent_disable(conn->bev, EV_READ | EV_WRITE);
	event_del(&conn->sent);
	drop_output(conn);
	http_conn_arm(conn, 0);
}

// ---- replies ----

void http_conn_put_head(struct http_conn *conn, int status, const char *content_type, const char *headers,
                        const char *framing)
{
	struct evbuffer *out = bufferevent_get_output(conn->bev);
	char date[64];
	evutil_date_rfc1123(date, sizeof date, NULL);
	evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n%s", status, http_status_phrase(status), date, headers);
	if (content_type)
		evbuffer_add_printf(out, "Content-Type: %s\r\n", content_type);
	evbuffer_add_printf(out, "%sConnection: %s\r\n\r\n", framing, conn->close_after ? "close" : "keep-alive");
}

static void free_copy(const void *data, size_t len, void *copy)
{
	free(copy);
}

void http_body_release(const struct http_body *body)
{
	if (body->release)
		body->release(body->data, body->len, body->arg);
}

// libevent rounds its own blocks up to the next power of two.
static int put_body(struct evbuffer *out, const struct http_body *body)
{
	struct http_body b = *body;
	if (b.len <= HTTP_SERVER_REFERENCE_BYTES) {
		int rc = evbuffer_add(out, b.data, b.len);
		http_body_release(&b);
		return rc;
	}
	if (!b.release) {
		char *copy = malloc(b.len);
		if (!copy)
			return -1;
		memcpy(copy, b.data, b.len);
		b = (struct http_body){copy, b.len, free_copy, copy};
	}
	if (evbuffer_add_reference(out, b.data, b.len, b.release, b.arg) == 0)
		return 0;
	http_body_release(&b);
	return -1;
}

void http_conn_reply(struct http_conn *conn, int status, const char *content_type, const char *headers, bool head_only,
                     const struct http_body *body)
{
	size_t len = body->len;
	bool has_body = status != 204 && status != 304;
	char length[48];
	snprintf(length, sizeof length, "Content-Length: %zu\r\n", len);
	http_places_admit_reply(conn, len);
	http_conn_enter(conn, HTTP_CONN_WRITING);
	http_conn_put_head(conn, status, has_body ? content_type : NULL, headers, has_body ? length : "");
	bool sends_body = has_body && !head_only && len;
	if (!sends_body)
		http_body_release(body);
	if (sends_body && put_body(bufferevent_get_output(conn->bev), body) < 0) {
		http_conn_free_later(conn); // out of memory: the client sees a reply that is cut off
		return;
	}
	conn->reply_bytes = sends_body ? len : 0;
	http_conn_arm(conn, conn->server->reply_ms);
}

void http_conn_refuse(struct http_conn *conn, int status, const char *why)
{
	char text[128];
	int n = snprintf(text, sizeof text, "%s\n", why);
	conn->close_after = conn->linger = true;
	if (conn->x)
		http_exchange_free(conn->x);
	http_conn_reply(conn, status, "text/plain; charset=utf-8", "", false,
	                &(struct http_body){.data = text, .len = n > 0 ? (size_t)n : 0});
}

// ---- reading ----

// The head is there whole: what is to be done with the request?
static void begin_request(struct http_conn *conn, size_t head_len)
{
	struct http_server *s = conn->server;
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	struct http_exchange *x = conn->x = http_exchange_new(conn, head_len);
	if (!x) {
		http_conn_refuse(conn, 503, "out of memory");
		return;
	}
	evbuffer_remove(in, x->head_text, head_len);
	const char *why;
	int status = http_head_parse(x->head_text, head_len, &x->head, &why);
	if (status) {
		http_conn_refuse(conn, status, why);
		return;
	}
	conn->close_after = !x->head.keep_alive;
	if (x->head.content_length > s->max_body_bytes) {
		http_conn_refuse(conn, 413, "the body is too large");
		return;
	}
	http_conn_enter(conn, HTTP_CONN_BODY);
	if (x->head.expects_continue && (x->head.chunked || x->head.content_length))
		evbuffer_add_printf(bufferevent_get_output(conn->bev), "HTTP/1.1 100 Continue\r\n\r\n");
	http_conn_arm(conn, s->body_ms);
}

// Line ends between requests are tolerated (RFC 9112, 2.2).
static void skip_line_ends(struct evbuffer *in)
{
	char c;
	while (evbuffer_copyout(in, &c, 1) == 1 && (c == '\r' || c == '\n'))
		evbuffer_drain(in, 1);
}

// Returns false when no byte of the next request has arrived.
static bool leave_idle(struct http_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	skip_line_ends(in);
	if (evbuffer_get_length(in) == 0)
		return false;
	http_conn_enter(conn, HTTP_CONN_HEAD);
	http_conn_arm(conn, conn->server->head_ms);
	return true;
}

// False: more bytes must come.
static bool read_head(struct http_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	size_t max = conn->server->max_header_bytes;
	if (conn->scanned == 0) {
		char c;
		skip_line_ends(in);
		// Such as a TLS handshake: it may never contain the line ends we wait for.
		if (evbuffer_copyout(in, &c, 1) == 1 && !http_is_token(&c, 1)) {
			http_conn_refuse(conn, 400, "not an HTTP request");
			return false;
		}
	}
	size_t have = evbuffer_get_length(in);
	struct evbuffer_ptr from;
	evbuffer_ptr_set(in, &from, conn->scanned, EVBUFFER_PTR_SET);
	struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, &from);
	size_t head_len = end.pos >= 0 ? (size_t)end.pos + 4 : have;
	if (head_len > max) {
		struct evbuffer_ptr line = evbuffer_search(in, "\r\n", 2, NULL);
		bool whole_line = line.pos >= 0 && (size_t)line.pos < max;
		http_conn_refuse(conn, whole_line ? 431 : 414,
		                 whole_line ? "the headers are too large" : "the request line is too long");
		return false;
	}
	if (end.pos < 0) {
		conn->scanned = have > 3 ? have - 3 : 0;
		return false;
	}
	conn->scanned = 0;
	begin_request(conn, head_len);
	return true;
}

// False: more bytes must come.
static bool read_body(struct http_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	struct http_exchange *x = conn->x;
	bool done = false;
	for (;;) {
		done = x->head.chunked ? x->chunks.state == HTTP_CHUNK_DONE : x->body.len == x->head.content_length;
		size_t n = evbuffer_get_contiguous_space(in), used = 0;
		if (done || n == 0)
			break;
		const char *data = (const char *)evbuffer_pullup(in, (ev_ssize_t)n);
		int status = 0;
		if (x->head.chunked) {
			status = http_chunks_feed(&x->chunks, data, n, &used, &x->body);
		} else {
			size_t left = (size_t)x->head.content_length - x->body.len;
			used = n < left ? n : left;
			status = buf_put(&x->body, data, used) < 0 ? 503 : 0;
		}
		evbuffer_drain(in, used);
		if (status) {
			http_conn_refuse(conn, status,
			                 status == 413   ? "the body is too large"
			                 : status == 400 ? "malformed chunked body"
			                                 : "out of memory");
			return false;
		}
	}
	if (!done)
		return false;
	if (!http_places_admit_request(conn)) {
		http_conn_refuse(conn, 503, "too many requests in progress");
		return false;
	}
	http_conn_enter(conn, HTTP_CONN_HANDLING);
	event_del(&conn->deadline); // from here time is the handler's
	http_exchange_dispatch(x);
	return true;
}

static void advance(struct http_conn *conn)
{
	bool more = true;
	while (more && conn->state <= HTTP_CONN_IDLE)
		more = conn->state == HTTP_CONN_IDLE   ? leave_idle(conn)
		       : conn->state == HTTP_CONN_HEAD ? read_head(conn)
		                                       : read_body(conn);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct http_conn *conn = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	if (conn->state == HTTP_CONN_STREAMING && evbuffer_get_length(in) >= read_ahead(conn->server)) {
		http_conn_free(conn); // reading would stop, and its leaving not be noticed
		return;
	}
	if (conn->state == HTTP_CONN_HANDLING || conn->state == HTTP_CONN_WRITING) {
		// A client that sends ahead. libevent calls back again at once for as long as the buffer is full.
		if (evbuffer_get_length(in) >= read_ahead(conn->server))
			bufferevent_disable(bev, EV_READ);
		return;
	}
	if (conn->state != HTTP_CONN_LINGERING) {
		advance(conn);
		return;
	}
	size_t len = evbuffer_get_length(in);
	conn->lingered += len;
	evbuffer_drain(in, len);
	// A client that is still sending is slow, or this process was held up: closing now would reset the reply away.
	if (conn->lingered > HTTP_SERVER_LINGER_BYTES || now_mono_ms() >= conn->linger_until_mono_ms)
		http_conn_free(conn);
	else if (len > 0)
		http_conn_arm(conn, HTTP_SERVER_LINGER_MS);
}

static void set_notsent(const struct http_conn *conn, int bytes)
{
	setsockopt(bufferevent_getfd(conn->bev), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

void http_conn_await_sent(struct http_conn *conn)
{
	set_notsent(conn, 1); // the socket is writable once nothing is unsent
	event_add(&conn->sent, NULL);
}

// Everything written so far has gone to the kernel.
static void on_written(struct bufferevent *bev, void *arg)
{
	struct http_conn *conn = arg;
	if (conn->state == HTTP_CONN_STREAMING)
		conn->x->stream_ops->drained(conn);
	if (conn->state != HTTP_CONN_WRITING || evbuffer_get_length(bufferevent_get_output(bev)) > 0)
		return; // the end of a "100 Continue", or of a TLS handshake
	conn->reply_bytes = 0;
	if (unsent(conn) > 0) {
		http_conn_await_sent(conn);
		return;
	}
	if (conn->close_after && !conn->linger) {
		http_conn_free(conn);
		return;
	}
	bufferevent_enable(bev, EV_READ); // see on_read
	if (conn->close_after) {
		http_server_tls_goodbye(bev);
		shutdown(bufferevent_getfd(bev), SHUT_WR);
		http_conn_enter(conn, HTTP_CONN_LINGERING);
		conn->linger_until_mono_ms = now_mono_ms() + HTTP_SERVER_LINGER_MS + conn->server->body_ms;
		http_conn_arm(conn, HTTP_SERVER_LINGER_MS);
		on_read(bev, conn);
	} else {
		http_conn_enter(conn, HTTP_CONN_IDLE);
		http_conn_arm(conn, conn->server->idle_ms);
		advance(conn); // a pipelined request may be here already
	}
}

static void on_sent(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn *conn = arg;
	set_notsent(conn, HTTP_SERVER_NOTSENT_BYTES);
	on_written(conn->bev, conn);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct http_conn *conn = arg;
	if (what & BEV_EVENT_CONNECTED) { // the TLS handshake is done: the connection counts as new
		http_conn_renew(conn);
		return;
	}
	bool busy = conn->state == HTTP_CONN_HANDLING || conn->state == HTTP_CONN_WRITING;
	if ((what & BEV_EVENT_EOF) && (what & BEV_EVENT_READING) && busy && !http_server_tls_is_on(bev)) {
		// A half-closed client still wants its reply; if the client is gone, writing fails.
		conn->half_closed = conn->close_after = true;
		return;
	}
	http_conn_free(conn);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn *conn = arg;
	uint64_t *closed = conn->server->stats.closed;
	switch (conn->state) {
	case HTTP_CONN_STREAMING:
		conn->x->stream_ops->deadline(conn);
		return;
	case HTTP_CONN_HELLO:
		closed[HTTP_CLOSE_REQUEST_LATE]++;
		http_conn_free(conn);
		return;
	case HTTP_CONN_HEAD:
	case HTTP_CONN_BODY:
		closed[HTTP_CLOSE_REQUEST_LATE]++;
		if (conn->state == HTTP_CONN_BODY || evbuffer_get_length(bufferevent_get_input(conn->bev)) > 0)
			http_conn_refuse(conn, 408, "the request took too long to arrive");
		else
			http_conn_free(conn); // silent, or in a TLS handshake
		return;
	case HTTP_CONN_WRITING:
		closed[HTTP_CLOSE_REPLY_LATE]++;
		http_conn_free(conn);
		return;
	default:
		http_conn_free(conn);
	}
}

void http_conn_start(struct http_conn *conn)
{
	struct http_server *s = conn->server;
	struct bufferevent *bev = s->tls ? http_server_tls_accept(s->tls, s->loop, conn->fd)
	                                 : bufferevent_socket_new(s->loop, conn->fd, BEV_OPT_CLOSE_ON_FREE);
	if (!bev) {
		http_conn_free(conn);
		return;
	}
	conn->bev = bev;
	http_conn_enter(conn, HTTP_CONN_HEAD);
	bufferevent_setcb(bev, on_read, on_written, on_event, conn);
	bufferevent_setwatermark(bev, EV_READ, 0, read_ahead(s));
	// libevent's 16 KiB make a page of metrics a dozen system calls and wake-ups of the reader.
	bufferevent_set_max_single_write(bev, HTTP_SERVER_WRITE_BYTES);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
	http_places_admit_silent(conn);
}

void http_conn_new(struct http_server *s, evutil_socket_t fd, const char *peer)
{
	struct http_conn *conn = calloc(1, sizeof *conn);
	if (!conn) {
		close(fd);
		return;
	}
	conn->server = s;
	conn->fd = fd;
	conn->state = HTTP_CONN_HELLO;
	if (!http_peer_join(conn, peer)) {
		close(fd);
		free(conn);
		return;
	}
	evtimer_assign(&conn->deadline, s->loop, on_deadline, conn);
	event_assign(&conn->sent, s->loop, fd, EV_WRITE, on_sent, conn);
	if (++s->stats.open > s->stats.open_max)
		s->stats.open_max = s->stats.open;
	http_conn_arm(conn, s->head_ms);
	if (!s->tls) {
		http_conn_start(conn);
		return;
	}
	http_places_admit_silent(conn);
	if (!http_hello_expect(conn))
		http_conn_free(conn);
}

// ---- life ----

// Silent connections must not use up the descriptors that the program needs for its own work.
static int silent_within_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 8 > HTTP_SERVER_SILENT_MAX)
		return HTTP_SERVER_SILENT_MAX;
	return limit.rlim_cur >= 16 ? (int)(limit.rlim_cur / 8) : 2;
}

struct http_server *http_server_new(const struct http_server_options *o, struct err *e)
{
	assert(o && o->loop && o->listen);
	if (o->head_ms < 0 || o->body_ms < 0 || o->reply_ms < 0 || o->idle_ms < 0 || o->max_connections < 0 ||
	    o->max_peer_connections < 0 || o->max_silent < 0) {
		err_set(e, ERR_USAGE, "http server: a negative ceiling");
		return NULL;
	}
	struct http_server *s = calloc(1, sizeof *s);
	if (!s) {
		err_set(e, ERR_INTERNAL, "http server: out of memory");
		return NULL;
	}
	s->listen_fd = -1;
	s->loop = o->loop;
	http_ranks_init(&s->ranks);
	LIST_INIT(&s->exchanges);
	if (http_hello_init(s, e) < 0) {
		http_server_free(s);
		return NULL;
	}
	s->max_body_bytes = o->max_body_bytes ? o->max_body_bytes : HTTP_SERVER_BODY_BYTES_MAX;
	s->max_header_bytes = o->max_header_bytes ? o->max_header_bytes : HTTP_SERVER_HEADER_BYTES_MAX;
	s->max_connections = o->max_connections ? o->max_connections : HTTP_SERVER_CONNECTIONS_MAX;
	s->max_unread_bytes = o->max_unread_bytes ? o->max_unread_bytes : HTTP_SERVER_UNREAD_BYTES_MAX;
	s->max_peer_connections = o->max_peer_connections ? o->max_peer_connections : HTTP_SERVER_PEER_CONNECTIONS_MAX;
	s->max_silent = o->max_silent ? o->max_silent : silent_within_descriptors();
	s->head_ms = o->head_ms ? o->head_ms : HTTP_SERVER_HEAD_MS;
	s->body_ms = o->body_ms ? o->body_ms : HTTP_SERVER_BODY_MS;
	s->reply_ms = o->reply_ms ? o->reply_ms : HTTP_SERVER_REPLY_MS;
	s->idle_ms = o->idle_ms ? o->idle_ms : HTTP_SERVER_IDLE_MS;
	s->site = o->site;
	if (http_server_tls_new(o, &s->tls, e) < 0 ||
	    (s->listen_fd = http_server_listen(o->listen, receive_bytes(s), &s->port, e)) < 0 ||
	    http_accept_start(s, e) < 0) {
		http_server_free(s);
		return NULL;
	}
	return s;
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	assert(s->in_handler == 0);
	http_accept_stop(s);
	struct http_conn *conn;
	for (int i = 0; i < HTTP_RANK__COUNT; i++)
		while ((conn = TAILQ_FIRST(&s->ranks.of_all[i])))
			http_conn_free(conn);
	struct http_exchange *x;
	while ((x = LIST_FIRST(&s->exchanges)))
		http_exchange_free(x);
	for (size_t i = 0; i < s->n_routes; i++)
		free(s->routes[i].path);
	http_hello_done(s);
	SSL_CTX_free(s->tls);
	free(s);
}

uint16_t http_server_port(const struct http_server *s)
{
	return s->port;
}

void http_server_get_stats(const struct http_server *s, struct http_server_stats *ret_stats)
{
	*ret_stats = s->stats;
}
