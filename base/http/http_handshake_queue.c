// SPDX-License-Identifier: Apache-2.0
// Decides when TLS handshakes start, because each takes 0.3 to several milliseconds of the loop's thread.
//
// A new connection has no TLS state until its first record, the ClientHello, has arrived whole: a client that sends
// nothing, or drips, costs neither memory nor CPU of a handshake. Then the connection is queued. In one turn of the
// loop at most HTTP_SERVER_HANDSHAKES_PER_TURN of the queued connections start their handshakes, and addresses take
// turns. However many handshakes one address asks for, a client at another address waits for one of them at most.
#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/http/http_server_internal.h"

#define RECORD_HEAD_BYTES 5
#define RECORD_HANDSHAKE  22
#define RECORD_BYTES_MAX  16384 // of the first record, which is not encrypted (RFC 8446, 5.1)

enum hello { HELLO_PARTIAL, HELLO_WHOLE, HELLO_CLOSED };

// Whether the client closed its side before it had sent a whole record.
static enum hello partial(evutil_socket_t fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};
	return poll(&p, 1, 0) > 0 ? HELLO_CLOSED : HELLO_PARTIAL;
}

// Data that is not a handshake record counts as complete: OpenSSL rejects it at once, at no cost.
static enum hello inspect(evutil_socket_t fd)
{
	unsigned char head[RECORD_HEAD_BYTES];
	int available = 0;
	ssize_t n = recv(fd, head, sizeof head, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? HELLO_PARTIAL : HELLO_CLOSED;
	if (n == 0)
		return HELLO_CLOSED;
	if (head[0] != RECORD_HANDSHAKE)
		return HELLO_WHOLE;
	if (n < RECORD_HEAD_BYTES || ioctl(fd, FIONREAD, &available) < 0)
		return partial(fd);
	int len = head[3] << 8 | head[4];
	return len > RECORD_BYTES_MAX || available >= RECORD_HEAD_BYTES + len ? HELLO_WHOLE : partial(fd);
}

static void enqueue(struct http_conn *conn)
{
	struct http_peer *peer = conn->peer;
	if (TAILQ_EMPTY(&peer->handshakes))
		TAILQ_INSERT_TAIL(&conn->server->handshakes, peer, in_handshakes);
	TAILQ_INSERT_TAIL(&peer->handshakes, conn, in_handshakes);
	conn->is_queued = true;
}

static void dequeue(struct http_conn *conn)
{
	struct http_peer *peer = conn->peer;
	TAILQ_REMOVE(&peer->handshakes, conn, in_handshakes);
	if (TAILQ_EMPTY(&peer->handshakes))
		TAILQ_REMOVE(&conn->server->handshakes, peer, in_handshakes);
	conn->is_queued = false;
}

static void schedule(struct http_server *s)
{
	static const struct timeval next_turn;
	if (!TAILQ_EMPTY(&s->handshakes) && !evtimer_pending(&s->handshake_turn, NULL))
		evtimer_add(&s->handshake_turn, &next_turn);
}

void http_handshake_queue_start(evutil_socket_t fd, short what, void *server)
{
	struct http_server *s = server;
	struct http_peer *peer;
	for (int i = 0; i < HTTP_SERVER_HANDSHAKES_PER_TURN && (peer = TAILQ_FIRST(&s->handshakes)); i++) {
		struct http_conn *conn = TAILQ_FIRST(&peer->handshakes);
		TAILQ_REMOVE(&s->handshakes, peer, in_handshakes);
		TAILQ_INSERT_TAIL(&s->handshakes, peer, in_handshakes);
		dequeue(conn);
		event_del(&conn->hello);
		conn->server->on_event(conn, HTTP_EVENT_START);
	}
	schedule(s);
}

static void on_hello(evutil_socket_t fd, short what, void *arg)
{
	struct http_conn *conn = arg;
	if (conn->is_queued)
		return;
	switch (inspect(fd)) {
	case HELLO_PARTIAL:
		return;
	case HELLO_CLOSED:
		conn->server->on_event(conn, HTTP_EVENT_LOST);
		return;
	case HELLO_WHOLE:
		enqueue(conn);
		schedule(conn->server);
	}
}

// Edge-triggered: a partial record stays in the socket, and must not wake the loop again before more bytes arrive.
bool http_handshake_queue_add(struct http_conn *conn)
{
	event_assign(&conn->hello, conn->server->loop, conn->fd, EV_READ | EV_PERSIST | EV_ET, on_hello, conn);
	return event_add(&conn->hello, NULL) == 0;
}

void http_handshake_queue_remove(struct http_conn *conn)
{
	if (conn->is_queued)
		dequeue(conn);
	if (event_initialized(&conn->hello))
		event_del(&conn->hello);
}
