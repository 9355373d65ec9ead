// SPDX-License-Identifier: Apache-2.0
// The states of a connection.
//
//   HANDSHAKE -> HEAD -> BODY -> HANDLING ---------> WRITING -> IDLE -> HEAD (the next request)
//                 |       |         |                 ^ ^ |
//                 |       |         +-> STREAMING ----+ | +-> LINGERING -> GONE (after a refusal)
//                 +-------+----- refusal ---------------+ +-> GONE (without keep-alive)
//
// `transitions` has every transition, and the functions after it act. In addition, a connection that breaks or is
// closed at a limit is freed in any state: GONE is the next state where a row does not say otherwise.
#include <assert.h>
#include <event2/buffer.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/http/http_server_internal.h"
#include "base/http/http_text.h"
#include "base/timer.h"

typedef void action_fn(struct http_conn *conn);
static action_fn start, restart_rank, read_head, read_body, read_next_head, read_idle, expect_body, dispatch,
        pause_input, half_close, limit_input, continue_stream, end_stream_late, await_reader, check_sent, keep_alive,
        linger, discard_input, refuse_late_head, refuse_late_body, count_late_request, count_late_reply, close_soon;

// The new state is entered before the action runs; a connection that is GONE is freed after the action. An action may
// cause the next event. Other events of the loop without a row are ignored.
static const struct transition {
	enum http_conn_state next;
	action_fn *action;
} transitions[HTTP_CONN__COUNT][HTTP_EVENT__COUNT] = {
#define ROW(state, event, next, action) [HTTP_CONN_##state][HTTP_EVENT_##event] = {HTTP_CONN_##next, action}
        // clang-format off
        ROW(HANDSHAKE, START,       HEAD,      start),
        ROW(HANDSHAKE, DEADLINE,    GONE,      count_late_request),

        ROW(HEAD,      CONNECTED,   SAME,      restart_rank),
        ROW(HEAD,      INPUT,       SAME,      read_head),
        ROW(HEAD,      HEAD_READ,   BODY,      expect_body),
        ROW(HEAD,      REPLY,       WRITING,   await_reader),
        ROW(HEAD,      DEADLINE,    SAME,      refuse_late_head),

        ROW(BODY,      INPUT,       SAME,      read_body),
        ROW(BODY,      REQUEST,     HANDLING,  dispatch),
        ROW(BODY,      REPLY,       WRITING,   await_reader),
        ROW(BODY,      DEADLINE,    SAME,      refuse_late_body),

        ROW(HANDLING,  INPUT,       SAME,      pause_input),
        ROW(HANDLING,  REPLY,       WRITING,   await_reader),
        ROW(HANDLING,  STREAM,      STREAMING, NULL),
        ROW(HANDLING,  ABORT,       CLOSING,   close_soon),
        ROW(HANDLING,  HALF_CLOSED, SAME,      half_close),

        ROW(STREAMING, INPUT,       SAME,      limit_input),
        ROW(STREAMING, WRITTEN,     SAME,      continue_stream),
        ROW(STREAMING, REPLY,       WRITING,   await_reader),
        ROW(STREAMING, ABORT,       CLOSING,   close_soon),
        ROW(STREAMING, DEADLINE,    SAME,      end_stream_late),

        ROW(WRITING,   INPUT,       SAME,      pause_input),
        ROW(WRITING,   WRITTEN,     SAME,      check_sent),
        ROW(WRITING,   REPLY_SENT,  IDLE,      keep_alive),
        ROW(WRITING,   REPLY_SHUT,  LINGERING, linger),
        ROW(WRITING,   REPLY_DONE,  GONE,      NULL),
        ROW(WRITING,   ABORT,       CLOSING,   close_soon),
        ROW(WRITING,   DEADLINE,    GONE,      count_late_reply),
        ROW(WRITING,   HALF_CLOSED, SAME,      half_close),

        ROW(IDLE,      INPUT,       SAME,      read_idle),
        ROW(IDLE,      BYTE,        HEAD,      read_next_head),
        ROW(IDLE,      DEADLINE,    GONE,      NULL),

        ROW(LINGERING, INPUT,       SAME,      discard_input),
        ROW(LINGERING, DEADLINE,    GONE,      NULL),

        ROW(CLOSING,   ABORT,       SAME,      close_soon),
        ROW(CLOSING,   DEADLINE,    GONE,      NULL),
// clang-format on
#undef ROW
};

static const enum http_conn_rank ranks[HTTP_CONN__COUNT] = {
        [HTTP_CONN_HANDSHAKE] = HTTP_RANK_HANDSHAKE, [HTTP_CONN_HEAD] = HTTP_RANK_SILENT,
        [HTTP_CONN_BODY] = HTTP_RANK_SILENT,         [HTTP_CONN_HANDLING] = HTTP_RANK_BUSY,
        [HTTP_CONN_STREAMING] = HTTP_RANK_BUSY,      [HTTP_CONN_WRITING] = HTTP_RANK_SLOW,
        [HTTP_CONN_IDLE] = HTTP_RANK_IDLE,           [HTTP_CONN_LINGERING] = HTTP_RANK_SILENT,
        [HTTP_CONN_CLOSING] = HTTP_RANK_CLOSING,
};

static void free_conn(struct http_conn *conn);

void http_conn_event(struct http_conn *conn, enum http_conn_event event)
{
	static const struct transition gone = {HTTP_CONN_GONE, NULL};
	const struct transition *t = &transitions[conn->state][event];
	bool is_listed = t->action || t->next != HTTP_CONN_SAME;
	assert(is_listed || event < HTTP_EVENT_START || event >= HTTP_EVENT_HALF_CLOSED);
	if (!is_listed && event >= HTTP_EVENT_HALF_CLOSED)
		t = &gone;
	if (t->next != HTTP_CONN_SAME && t->next != HTTP_CONN_GONE) {
		conn->state = t->next;
		if (ranks[t->next] != conn->rank)
			http_conn_set_rank(conn, ranks[t->next]);
	}
	if (t->action)
		t->action(conn);
	if (t->next == HTTP_CONN_GONE)
		free_conn(conn);
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

static void free_conn(struct http_conn *conn)
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
	if (conn->state == HTTP_CONN_HANDSHAKE)
		http_handshake_queue_remove(conn);
	http_peer_remove(conn);
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

static void close_soon(struct http_conn *conn)
{
	bufferevent_disable(conn->bev, EV_READ | EV_WRITE);
	event_del(&conn->sent);
	drop_output(conn);
	http_conn_arm(conn, 0);
}

// ---- reading ----

// Line ends between requests are tolerated (RFC 9112, 2.2).
static void skip_line_ends(struct evbuffer *in)
{
	char c;
	while (evbuffer_copyout(in, &c, 1) == 1 && (c == '\r' || c == '\n'))
		evbuffer_drain(in, 1);
}

static void read_idle(struct http_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	skip_line_ends(in);
	if (evbuffer_get_length(in) > 0)
		http_conn_event(conn, HTTP_EVENT_BYTE);
}

static void read_next_head(struct http_conn *conn)
{
	http_conn_arm(conn, conn->server->head_ms);
	read_head(conn);
}

// The head has arrived whole.
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
	http_conn_event(conn, HTTP_EVENT_HEAD_READ);
}

static void read_head(struct http_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	size_t max = conn->server->max_header_bytes;
	if (conn->scanned == 0) {
		char c;
		skip_line_ends(in);
		// Such as a TLS handshake: it may never contain the line ends we wait for.
		if (evbuffer_copyout(in, &c, 1) == 1 && !http_is_token(&c, 1)) {
			http_conn_refuse(conn, 400, "not an HTTP request");
			return;
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
		return;
	}
	if (end.pos < 0) {
		conn->scanned = have > 3 ? have - 3 : 0;
		return;
	}
	conn->scanned = 0;
	begin_request(conn, head_len);
}

static void expect_body(struct http_conn *conn)
{
	const struct http_head *head = &conn->x->head;
	if (head->expects_continue && (head->chunked || head->content_length))
		evbuffer_add_printf(bufferevent_get_output(conn->bev), "HTTP/1.1 100 Continue\r\n\r\n");
	http_conn_arm(conn, conn->server->body_ms);
	read_body(conn);
}

static void read_body(struct http_conn *conn)
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
			return;
		}
	}
	if (!done)
		return;
	if (http_limit_admit_request(conn))
		http_conn_event(conn, HTTP_EVENT_REQUEST);
	else
		http_conn_refuse(conn, 503, "too many requests in progress");
}

static void dispatch(struct http_conn *conn)
{
	event_del(&conn->deadline); // the handler may take any time
	http_exchange_dispatch(conn->x);
}

static bool is_input_full(const struct http_conn *conn)
{
	return evbuffer_get_length(bufferevent_get_input(conn->bev)) >= conn->server->read_ahead_bytes;
}

// A client that sends ahead. libevent calls back again at once for as long as the buffer is full.
static void pause_input(struct http_conn *conn)
{
	if (is_input_full(conn))
		bufferevent_disable(conn->bev, EV_READ);
}

// Reading would stop, and the server would not notice that the client leaves.
static void limit_input(struct http_conn *conn)
{
	if (is_input_full(conn))
		http_conn_event(conn, HTTP_EVENT_LOST);
}

// A half-closed client still wants its reply; if the client is gone, writing fails.
static void half_close(struct http_conn *conn)
{
	conn->half_closed = conn->close_after = true;
}

// ---- sending ----

static void await_reader(struct http_conn *conn)
{
	http_conn_arm(conn, conn->server->reply_ms);
}

static void continue_stream(struct http_conn *conn)
{
	conn->x->stream_ops->drained(conn);
}

static void end_stream_late(struct http_conn *conn)
{
	conn->x->stream_ops->deadline(conn);
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

static void check_sent(struct http_conn *conn)
{
	if (evbuffer_get_length(bufferevent_get_output(conn->bev)) > 0)
		return; // the end of a "100 Continue", or of a TLS handshake
	conn->reply_bytes = 0;
	if (unsent(conn) > 0)
		http_conn_await_sent(conn);
	else
		http_conn_event(conn, !conn->close_after ? HTTP_EVENT_REPLY_SENT
		                      : conn->linger     ? HTTP_EVENT_REPLY_SHUT
		                                         : HTTP_EVENT_REPLY_DONE);
}

static void keep_alive(struct http_conn *conn)
{
	bufferevent_enable(conn->bev, EV_READ); // see pause_input
	http_conn_arm(conn, conn->server->idle_ms);
	read_idle(conn); // a pipelined request may have arrived already
}

static void linger(struct http_conn *conn)
{
	bufferevent_enable(conn->bev, EV_READ); // see pause_input
	http_server_tls_goodbye(conn->bev);
	shutdown(bufferevent_getfd(conn->bev), SHUT_WR);
	conn->linger_until_mono_ms = clock_real_mono_us() / 1000 + HTTP_SERVER_LINGER_MS + conn->server->body_ms;
	http_conn_arm(conn, HTTP_SERVER_LINGER_MS);
	discard_input(conn);
}

// A client that is still sending is slow, or this process was held up: closing now would reset the reply away.
static void discard_input(struct http_conn *conn)
{
	struct evbuffer *in = bufferevent_get_input(conn->bev);
	size_t len = evbuffer_get_length(in);
	conn->lingered += len;
	evbuffer_drain(in, len);
	if (conn->lingered > HTTP_SERVER_LINGER_BYTES || clock_real_mono_us() / 1000 >= conn->linger_until_mono_ms)
		http_conn_event(conn, HTTP_EVENT_LOST);
	else if (len > 0)
		http_conn_arm(conn, HTTP_SERVER_LINGER_MS);
}

// ---- deadlines ----

static void count_late_request(struct http_conn *conn)
{
	conn->server->stats.closed[HTTP_CLOSE_REQUEST_LATE]++;
}

static void count_late_reply(struct http_conn *conn)
{
	conn->server->stats.closed[HTTP_CLOSE_REPLY_LATE]++;
}

static void refuse_late_body(struct http_conn *conn)
{
	count_late_request(conn);
	http_conn_refuse(conn, 408, "the request took too long to arrive");
}

static void refuse_late_head(struct http_conn *conn)
{
	if (evbuffer_get_length(bufferevent_get_input(conn->bev)) > 0) {
		refuse_late_body(conn);
		return;
	}
	count_late_request(conn); // silent, or in a TLS handshake
	http_conn_event(conn, HTTP_EVENT_LOST);
}

// ---- the loop ----

static void on_read(struct bufferevent *bev, void *arg)
{
	http_conn_event(arg, HTTP_EVENT_INPUT);
}

static void on_written(struct bufferevent *bev, void *arg)
{
	http_conn_event(arg, HTTP_EVENT_WRITTEN);
}

static void on_sent(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn *conn = arg;
	set_notsent(conn, HTTP_SERVER_NOTSENT_BYTES);
	http_conn_event(conn, HTTP_EVENT_WRITTEN);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
	bool is_half_closed = (what & BEV_EVENT_EOF) && (what & BEV_EVENT_READING) && !http_server_tls_is_on(bev);
	http_conn_event(arg, what & BEV_EVENT_CONNECTED ? HTTP_EVENT_CONNECTED
	                     : is_half_closed           ? HTTP_EVENT_HALF_CLOSED
	                                                : HTTP_EVENT_LOST);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
	http_conn_event(arg, HTTP_EVENT_DEADLINE);
}

// ---- start ----

// After the TLS handshake, the connection is treated as new.
static void restart_rank(struct http_conn *conn)
{
	http_conn_set_rank(conn, conn->rank);
}

static void start(struct http_conn *conn)
{
	struct http_server *s = conn->server;
	conn->bev = s->tls ? http_server_tls_accept(s->tls, s->loop, conn->fd)
	                   : bufferevent_socket_new(s->loop, conn->fd, BEV_OPT_CLOSE_ON_FREE);
	if (!conn->bev) { // out of memory
		http_conn_event(conn, HTTP_EVENT_LOST);
		return;
	}
	bufferevent_setcb(conn->bev, on_read, on_written, on_event, conn);
	bufferevent_setwatermark(conn->bev, EV_READ, 0, s->read_ahead_bytes);
	// libevent's 16 KiB make a page of metrics a dozen system calls and wake-ups of the reader.
	bufferevent_set_max_single_write(conn->bev, HTTP_SERVER_WRITE_BYTES);
	bufferevent_enable(conn->bev, EV_READ | EV_WRITE);
	http_limit_admit_silent(conn);
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
	conn->state = HTTP_CONN_HANDSHAKE;
	if (!http_peer_add(conn, peer)) {
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
		http_conn_event(conn, HTTP_EVENT_START);
		return;
	}
	http_limit_admit_silent(conn);
	if (!http_handshake_queue_add(conn))
		http_conn_event(conn, HTTP_EVENT_LOST);
}
