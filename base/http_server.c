// SPDX-License-Identifier: Apache-2.0
#include "base/http_server.h"

#include <assert.h>
#include <errno.h>
#include <event2/buffer.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/http_server_internal.h"
#include "base/http_text.h"

#include <openssl/ssl.h>

#define ACCEPT_PAUSE_MS 100

static struct timeval timeval_of_ms(int64_t ms)
{
	return (struct timeval){.tv_sec = ms / 1000, .tv_usec = (ms % 1000) * 1000};
}

// Room for a whole head and a piece of body; what a client sends beyond waits in the kernel.
static size_t read_ahead(const struct http_server *s)
{
	return s->max_header_bytes + 65536;
}

static int64_t now_mono_ms(void)
{
	struct clock real;
	clock_init_real(&real);
	return clock_mono_ms(&real);
}

void http_conn_arm(struct http_conn *conn, int64_t ms)
{
	struct timeval tv = timeval_of_ms(ms);
	evtimer_add(&conn->deadline, &tv);
}

void http_conn_free(struct http_conn *conn)
{
	struct http_exchange *x = conn->x, *stream = NULL;
	if (x && conn->state == HTTP_CONN_HANDLING)
		x->conn = NULL; // still the handler's; its reply will go nowhere
	else if (x && x->is_streaming)
		stream = x;
	else if (x)
		http_exchange_free(x);
	event_del(&conn->deadline);
	LIST_REMOVE(conn, link);
	conn->server->stats.open--;
	http_server_tls_goodbye(conn->bev);
	bufferevent_free(conn->bev);
	free(conn);
	if (stream)
		http_stream_lost(stream);
}

void http_conn_free_later(struct http_conn *conn)
{
	conn->state = HTTP_CONN_CLOSING;
	bufferevent_disable(conn->bev, EV_READ | EV_WRITE);
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

void http_conn_reply(struct http_conn *conn, int status, const char *content_type, const char *headers, bool head_only,
                     const char *body, size_t len)
{
	bool has_body = status != 204 && status != 304;
	char length[48];
	snprintf(length, sizeof length, "Content-Length: %zu\r\n", len);
	conn->state = HTTP_CONN_WRITING;
	http_conn_put_head(conn, status, has_body ? content_type : NULL, headers, has_body ? length : "");
	if (has_body && !head_only && len)
		evbuffer_add(bufferevent_get_output(conn->bev), body, len);
	http_conn_arm(conn, conn->server->idle_ms);
}

void http_conn_refuse(struct http_conn *conn, int status, const char *why)
{
	char text[128];
	int n = snprintf(text, sizeof text, "%s\n", why);
	conn->close_after = conn->linger = true;
	if (conn->x)
		http_exchange_free(conn->x);
	http_conn_reply(conn, status, "text/plain; charset=utf-8", "", false, text, n > 0 ? (size_t)n : 0);
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
	conn->state = HTTP_CONN_BODY;
	if (x->head.expects_continue && (x->head.chunked || x->head.content_length))
		evbuffer_add_printf(bufferevent_get_output(conn->bev), "HTTP/1.1 100 Continue\r\n\r\n");
	http_conn_arm(conn, s->idle_ms);
}

// False: more bytes must come.
static bool read_head(struct http_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	size_t max = conn->server->max_header_bytes;
	if (conn->scanned == 0) { // stray line ends between requests are tolerated (RFC 9112, 2.2)
		char c;
		while (evbuffer_copyout(in, &c, 1) == 1 && (c == '\r' || c == '\n'))
			evbuffer_drain(in, 1);
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
	conn->state = HTTP_CONN_HANDLING;
	event_del(&conn->deadline); // from here time is the handler's
	http_exchange_dispatch(x);
	return true;
}

static void advance(struct http_conn *conn)
{
	bool more = true;
	while (more && (conn->state == HTTP_CONN_HEAD || conn->state == HTTP_CONN_BODY))
		more = conn->state == HTTP_CONN_HEAD ? read_head(conn) : read_body(conn);
}

static void on_read(struct bufferevent *bev, void *arg)
{
	struct http_conn *conn = arg;
	struct evbuffer *in = bufferevent_get_input(bev);
	if (conn->state == HTTP_CONN_STREAMING && evbuffer_get_length(in) >= read_ahead(conn->server)) {
		http_conn_free(conn); // reading would stop, and its leaving not be noticed
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

// Everything written so far has gone to the kernel.
static void on_written(struct bufferevent *bev, void *arg)
{
	struct http_conn *conn = arg;
	if (conn->state == HTTP_CONN_STREAMING)
		http_stream_drained(conn);
	if (conn->state != HTTP_CONN_WRITING || evbuffer_get_length(bufferevent_get_output(bev)) > 0)
		return; // the end of a "100 Continue", or of a TLS handshake
	if (conn->close_after && !conn->linger) {
		http_conn_free(conn);
	} else if (conn->close_after) {
		http_server_tls_goodbye(bev);
		shutdown(bufferevent_getfd(bev), SHUT_WR);
		conn->state = HTTP_CONN_LINGERING;
		conn->linger_until_mono_ms = now_mono_ms() + HTTP_SERVER_LINGER_MS + conn->server->idle_ms;
		http_conn_arm(conn, HTTP_SERVER_LINGER_MS);
		on_read(bev, conn);
	} else {
		conn->state = HTTP_CONN_HEAD;
		http_conn_arm(conn, conn->server->idle_ms);
		advance(conn); // a pipelined request may be here already
	}
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	struct http_conn *conn = arg;
	if (what & BEV_EVENT_CONNECTED)
		return; // TLS handshake done
	bool busy = conn->state == HTTP_CONN_HANDLING || conn->state == HTTP_CONN_WRITING;
	if ((what & BEV_EVENT_EOF) && (what & BEV_EVENT_READING) && busy && !http_server_tls_is_on(bev)) {
		// A half-closed client still wants its reply; if it is gone, writing will tell.
		conn->half_closed = conn->close_after = true;
		return;
	}
	http_conn_free(conn);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn *conn = arg;
	bool reading = conn->state == HTTP_CONN_BODY ||
	               (conn->state == HTTP_CONN_HEAD && evbuffer_get_length(bufferevent_get_input(conn->bev)) > 0);
	if (conn->state == HTTP_CONN_STREAMING)
		http_stream_deadline(conn);
	else if (reading)
		http_conn_refuse(conn, 408, "the request took too long to arrive");
	else
		http_conn_free(conn); // an idle connection, or a client that does not take its reply
}

// ---- accepting ----

static void format_peer(const struct sockaddr *sa, int len, char out[HTTP_SERVER_PEER_BYTES])
{
	static const char mapped[] = "::ffff:"; // in front of an IPv4 client's address on a dual-stack socket
	char text[HTTP_SERVER_PEER_BYTES];
	if (getnameinfo(sa, (socklen_t)len, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0)
		memcpy(text, "unknown", sizeof "unknown");
	bool is_mapped = strncmp(text, mapped, sizeof mapped - 1) == 0 && strchr(text, '.');
	snprintf(out, HTTP_SERVER_PEER_BYTES, "%s", is_mapped ? text + sizeof mapped - 1 : text);
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *sa, int len, void *arg)
{
	struct http_server *s = arg;
	s->stats.accepted++;
	bool over = s->stats.open >= s->max_connections;
	if (over)
		s->stats.refused++;
	struct http_conn *conn = NULL;
	struct bufferevent *bev = NULL;
	if (s->stats.open < s->max_connections + HTTP_SERVER_OVERFLOW && (conn = calloc(1, sizeof *conn)))
		bev = s->tls ? http_server_tls_accept(s->tls, s->loop, fd)
		             : bufferevent_socket_new(s->loop, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!bev) {
		free(conn);
		close(fd);
		return;
	}
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); // only a matter of speed
	conn->server = s;
	conn->bev = bev;
	conn->state = HTTP_CONN_HEAD;
	format_peer(sa, len, conn->peer);
	evtimer_assign(&conn->deadline, s->loop, on_deadline, conn);
	LIST_INSERT_HEAD(&s->conns, conn, link);
	if (++s->stats.open > s->stats.open_max)
		s->stats.open_max = s->stats.open;
	bufferevent_setcb(bev, on_read, on_written, on_event, conn);
	bufferevent_setwatermark(bev, EV_READ, 0, read_ahead(s));
	// libevent's 16 KiB make a page of metrics a dozen system calls and wake-ups of the reader.
	bufferevent_set_max_single_write(bev, HTTP_SERVER_WRITE_BYTES);
	bufferevent_enable(bev, EV_READ | EV_WRITE);
	if (over)
		http_conn_refuse(conn, 503, "too many connections");
	else
		http_conn_arm(conn, s->idle_ms);
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	struct http_server *s = arg;
	evconnlistener_enable(s->listener);
}

// Out of descriptors or memory: pause, else the loop would spin on a socket that stays readable.
static void on_accept_error(struct evconnlistener *l, void *arg)
{
	struct http_server *s = arg;
	struct timeval tv = timeval_of_ms(ACCEPT_PAUSE_MS);
	evconnlistener_disable(l);
	evtimer_add(s->resume, &tv);
}

// ---- life ----

struct http_server *http_server_new(const struct http_server_options *o, struct err *e)
{
	assert(o && o->loop && o->listen);
	if (o->idle_ms < 0 || o->max_connections < 0) {
		err_set(e, ERR_USAGE, "http server: a negative ceiling");
		return NULL;
	}
	struct http_server *s = calloc(1, sizeof *s);
	if (!s) {
		err_set(e, ERR_INTERNAL, "http server: out of memory");
		return NULL;
	}
	LIST_INIT(&s->conns);
	LIST_INIT(&s->exchanges);
	s->loop = o->loop;
	s->max_body_bytes = o->max_body_bytes ? o->max_body_bytes : HTTP_SERVER_BODY_BYTES_MAX;
	s->max_header_bytes = o->max_header_bytes ? o->max_header_bytes : HTTP_SERVER_HEADER_BYTES_MAX;
	s->max_connections = o->max_connections ? o->max_connections : HTTP_SERVER_CONNECTIONS_MAX;
	s->max_backlog_bytes = o->max_backlog_bytes ? o->max_backlog_bytes : HTTP_SERVER_BACKLOG_MAX;
	s->idle_ms = o->idle_ms ? o->idle_ms : HTTP_SERVER_IDLE_MS;
	int fd = -1;
	if (http_server_tls_new(o, &s->tls, e) < 0 || (fd = http_server_listen(o->listen, &s->port, e)) < 0) {
		http_server_free(s);
		return NULL;
	}
	s->resume = evtimer_new(s->loop, on_resume, s);
	s->listener = evconnlistener_new(s->loop, on_accept, s, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
	if (!s->resume || !s->listener) {
		err_set(e, ERR_INTERNAL, "http server: out of memory");
		if (!s->listener)
			close(fd);
		http_server_free(s);
		return NULL;
	}
	evconnlistener_set_error_cb(s->listener, on_accept_error);
	return s;
}

void http_server_free(struct http_server *s)
{
	if (!s)
		return;
	assert(s->in_handler == 0);
	if (s->listener)
		evconnlistener_free(s->listener);
	if (s->resume)
		event_free(s->resume);
	struct http_conn *conn;
	while ((conn = LIST_FIRST(&s->conns)))
		http_conn_free(conn);
	struct http_exchange *x;
	while ((x = LIST_FIRST(&s->exchanges)))
		http_exchange_free(x);
	for (size_t i = 0; i < s->n_routes; i++)
		free(s->routes[i].path);
	SSL_CTX_free(s->tls);
	free(s);
}

void http_server_drop_idle(struct http_server *s)
{
	assert(s->in_handler == 0);
	for (struct http_conn *conn = LIST_FIRST(&s->conns), *next; conn; conn = next) {
		next = LIST_NEXT(conn, link);
		if (conn->state == HTTP_CONN_HEAD && evbuffer_get_length(bufferevent_get_input(conn->bev)) == 0)
			http_conn_free(conn);
	}
}

uint16_t http_server_port(const struct http_server *s)
{
	return s->port;
}

void http_server_get_stats(const struct http_server *s, struct http_server_stats *ret_stats)
{
	*ret_stats = s->stats;
}
