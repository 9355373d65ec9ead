// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the HTTP server. Include it only from those files.
//   http_conn.c             the states of a connection: every transition, reading and sending
//   http_conn_limit.c       which connection is closed at a limit
//   http_handshake_queue.c  when TLS handshakes start
//   http_server.c           start and stop, listening, accepting
//   http_server_exchange.c  one request and its reply; routes
//   http_server_tls.c       TLS context and its bufferevents
//   http_server_peer.c      the certificate of a client
//   http_parse.c            bytes -> head, chunks -> body
#ifndef GPUSCALE_BASE_HTTP_HTTP_SERVER_INTERNAL_H
#define GPUSCALE_BASE_HTTP_HTTP_SERVER_INTERNAL_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <openssl/types.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_parse.h"
#include "base/http/http_server.h"

#define HTTP_SERVER_PEER_BYTES          64
#define HTTP_SERVER_QUERY_MAX           64
#define HTTP_SERVER_REPLY_HEADERS_MAX   (8 * 1024)
#define HTTP_SERVER_PEER_BUCKETS        256
#define HTTP_SERVER_WRITE_BYTES         (256 * 1024)
#define HTTP_SERVER_LINGER_MS           1000 // after the last byte from the client; at most body_ms longer in total
#define HTTP_SERVER_NOTSENT_BYTES       (64 * 1024) // reply bytes that the kernel holds unsent
#define HTTP_SERVER_RECEIVE_BYTES       (20 * 1024) // SO_RCVBUF where requests have small bodies
#define HTTP_SERVER_REFERENCE_BYTES     (16 * 1024) // larger bodies get a block of their own size
#define HTTP_SERVER_LINGER_BYTES        (4 * 1024 * 1024)
#define HTTP_SERVER_HANDSHAKES_PER_TURN 8 // TLS handshakes that start in one turn of the loop

// http_conn.c has the diagram, and the table of what happens in each state.
enum http_conn_state {
	HTTP_CONN_SAME,      // in the table only: the state stays as it is
	HTTP_CONN_HANDSHAKE, // the TLS handshake has not started, or plain HTTP has not; bev is NULL
	HTTP_CONN_HEAD,      // reading; from the start of the connection, or from the first byte after IDLE
	HTTP_CONN_BODY,      // reading
	HTTP_CONN_HANDLING,  // the exchange is the handler's
	HTTP_CONN_STREAMING, // the exchange is the handler's, whose reply has started (struct http_stream_ops)
	HTTP_CONN_WRITING,   // the reply is being sent
	HTTP_CONN_IDLE,      // kept alive after a reply; no byte of the next request has arrived
	HTTP_CONN_LINGERING, // reply sent, our side shut; discarding what the client still sends
	HTTP_CONN_CLOSING,   // to be closed in the next turn of the loop
	HTTP_CONN_GONE,      // in the table only: the connection is freed
	HTTP_CONN__COUNT
};

enum http_conn_event {
	// From the loop. A state may have no use for one of them.
	HTTP_EVENT_CONNECTED, // the TLS handshake is complete
	HTTP_EVENT_INPUT,     // bytes have arrived
	HTTP_EVENT_WRITTEN,   // everything written so far has gone to the kernel
	HTTP_EVENT_DEADLINE,
	// From the server, in the states that have a row for them.
	HTTP_EVENT_START,      // plain HTTP, or the TLS handshake, starts
	HTTP_EVENT_BYTE,       // the first byte of a further request has arrived
	HTTP_EVENT_HEAD_READ,  // the request line and the headers are complete and valid
	HTTP_EVENT_REQUEST,    // the request is complete and within the limits
	HTTP_EVENT_STREAM,     // the handler starts a reply that it writes piece by piece
	HTTP_EVENT_REPLY,      // a reply starts that needs no more from the handler; also a refusal
	HTTP_EVENT_REPLY_SENT, // the kernel has sent the whole reply, and the connection is kept alive
	HTTP_EVENT_REPLY_SHUT, // likewise, but the client is still sending a request that was refused
	HTTP_EVENT_REPLY_DONE, // likewise, and the connection is closed
	HTTP_EVENT_ABORT,      // close in the next turn of the loop, for callers that still use the connection
	// In any state: the connection is freed unless a row says otherwise.
	HTTP_EVENT_HALF_CLOSED, // the client sends no more, but may still read
	HTTP_EVENT_LOST,        // the connection is broken, or is closed at a limit
	HTTP_EVENT__COUNT
};

// Which connections are closed first at a limit (http_conn_limit.c). Within a rank, the oldest is first.
enum http_conn_rank {
	HTTP_RANK_HANDSHAKE, // with TLS: the handshake has not started
	HTTP_RANK_SILENT,    // no complete request has arrived
	HTTP_RANK_IDLE,      // kept alive, no request in flight
	HTTP_RANK_SLOW,      // the client has not read its whole reply
	HTTP_RANK_BUSY,      // never closed at a limit
	HTTP_RANK_CLOSING,   // closed in the next turn of the loop; no longer counted
	HTTP_RANK__COUNT
};
TAILQ_HEAD(http_conn_list, http_conn);
LIST_HEAD(http_peer_list, http_peer);
TAILQ_HEAD(http_peer_queue, http_peer);

// The connections of one address; freed with the last of them.
struct http_peer {
	LIST_ENTRY(http_peer) link;
	int n[HTTP_RANK__COUNT], n_conns;
	TAILQ_ENTRY(http_peer) in_handshakes;
	struct http_conn_list handshakes; // connections whose handshake can start, oldest first
	char name[HTTP_SERVER_PEER_BYTES];
};

struct http_ranks {
	struct http_conn_list conns[HTTP_RANK__COUNT]; // oldest first
	int n[HTTP_RANK__COUNT];
};

struct http_conn {
	TAILQ_ENTRY(http_conn) in_rank, in_handshakes;
	struct http_peer *peer;
	struct http_server *server;
	struct bufferevent *bev; // NULL in HTTP_CONN_HANDSHAKE
	evutil_socket_t fd;      // owned in HTTP_CONN_HANDSHAKE, then by bev
	struct event deadline;
	struct event hello;         // in HTTP_CONN_HANDSHAKE: waits for the ClientHello
	bool is_queued;             // in peer->handshakes: the ClientHello has arrived
	struct event sent;          // waits until the kernel has sent all of the reply
	size_t reply_bytes;         // memory of the reply, until all of it has been sent
	enum http_conn_state state; // set only by http_conn_event
	enum http_conn_rank rank;   // follows from the state
	struct http_exchange *x;    // from the end of the headers to the end of the reply
	size_t scanned;             // input bytes already searched for the end of the headers
	size_t lingered;
	int64_t linger_until_mono_ms;
	bool half_closed; // the client sends no more
	bool close_after; // no further request after this reply
	bool linger;      // the request was not read whole: closing at once would reset the reply away
};

// A reply that its handler writes piece by piece. The product has none: the fakes of the tests do
// (test/support/http_stream.c), on this server, so that no second one needs its ceilings.
struct http_stream_ops {
	void (*drained)(struct http_conn *conn);  // the kernel has accepted everything that was written
	void (*deadline)(struct http_conn *conn); // the connection's deadline has come; may free it
	void (*lost)(struct http_exchange *x);    // its connection is closed: notifies its owner, frees x
};

struct http_exchange {
	LIST_ENTRY(http_exchange) link;
	TAILQ_ENTRY(http_exchange) in_waiting;
	const struct http_route *route; // NULL: none has its path
	struct http_server *server;
	struct http_conn *conn; // NULL: the client has gone
	char *head_text;
	struct http_head head;
	struct http_chunks chunks;
	struct buf body;
	struct buf reply_headers;
	char *query_text; // decoded pairs; made at the first question
	struct http_field query[HTTP_SERVER_QUERY_MAX];
	size_t n_query;
	bool query_broken;
	const struct http_stream_ops *stream_ops; // NULL: the reply is sent at once
	struct http_stream *stream;               // of stream_ops
	char peer[HTTP_SERVER_PEER_BYTES];
};

struct http_route {
	char *path;
	size_t len;
	http_handler_fn *fn;
	void *arg;
	bool is_long;
};

struct http_server {
	struct event_base *loop;
	evutil_socket_t listen_fd;
	struct event acceptable;
	struct event resume; // accepts again after the process ran out of descriptors
	SSL_CTX *tls;
	uint16_t port;
	size_t max_body_bytes, max_header_bytes, max_unread_bytes;
	size_t read_ahead_bytes; // a whole head and a piece of body
	int max_silent, max_connections, max_peer_connections;
	int64_t head_ms, body_ms, reply_ms, idle_ms;
	const struct http_site *site; // NULL: accept every Host and every origin
	struct http_ranks ranks;
	struct http_peer_list peers[HTTP_SERVER_PEER_BUCKETS];
	struct http_peer_queue handshakes; // peers with handshakes that can start, in turn
	struct event handshake_turn;       // starts some in the next turn of the loop
	LIST_HEAD(http_exchange_list, http_exchange) exchanges;
	struct http_route routes[HTTP_SERVER_ROUTES_MAX];
	size_t n_routes;
	struct event long_turn; // pending: a handler of a long page has run in this turn of the loop
	TAILQ_HEAD(http_exchange_queue, http_exchange) waiting; // for long pages
	struct http_server_stats stats;
	int in_handler;
	// http_conn_event(), for the files below http_conn.c: the limits, the queue of handshakes and the exchange.
	void (*on_event)(struct http_conn *conn, enum http_conn_event event);
	http_admit_fn *admit; // NULL: every client is admitted
	void *admit_arg;
};

// http_conn.c
// Takes ownership of an accepted socket; closes it on failure.
void http_conn_new(struct http_server *s, evutil_socket_t fd, const char *peer);
// Enters the next state of the connection and acts, by the table of http_conn.c. May free the connection.
void http_conn_event(struct http_conn *conn, enum http_conn_event event);
// Sets the deadline of the connection.
void http_conn_arm(struct http_conn *conn, int64_t ms);
// Continues with HTTP_EVENT_WRITTEN, in a later turn of the loop, when the kernel has sent everything that was written.
void http_conn_await_sent(struct http_conn *conn);

// http_conn_limit.c
// Adds a new connection to its peer, with HTTP_RANK_HANDSHAKE. Returns false when memory is exhausted.
bool http_peer_add(struct http_conn *conn, const char *name);
void http_peer_remove(struct http_conn *conn);
// Makes the connection the newest one of a rank, which may be its own.
void http_conn_set_rank(struct http_conn *conn, enum http_conn_rank rank);
// Closes one connection to free its descriptor and memory. Returns false when all connections have requests in
// progress.
bool http_limit_evict_any(struct http_server *s);
// Makes room for `conn`, which has just entered HTTP_RANK_HANDSHAKE or HTTP_RANK_SILENT. As the newest connection of
// its rank, `conn` is not closed.
void http_limit_admit_silent(const struct http_conn *conn);
// Makes room for a complete request. Returns false when requests in progress use all connections.
bool http_limit_admit_request(const struct http_conn *conn);
// Makes room for `len` bytes of a reply under max_unread_bytes. Never closes `conn`, even when it has unread bytes.
void http_limit_admit_reply(const struct http_conn *conn, size_t len);

// http_handshake_queue.c
void http_handshake_queue_start(evutil_socket_t fd, short what, void *server); // http_server.handshake_turn
// Waits for the ClientHello of a connection in HTTP_CONN_HANDSHAKE; HTTP_EVENT_START follows. Returns false when memory
// is exhausted.
bool http_handshake_queue_add(struct http_conn *conn);
// Stops waiting: for a connection that is about to be freed.
void http_handshake_queue_remove(struct http_conn *conn);

// http_server_exchange.c
struct http_exchange *http_exchange_new(struct http_conn *conn, size_t head_len); // NULL when memory is exhausted
void http_exchange_free(struct http_exchange *x);
void http_exchange_dispatch(struct http_exchange *x);
void http_exchange_dispatch_waiting(evutil_socket_t fd, short what, void *server); // http_server.long_turn
// Replies to a request that breaks the rules, and closes.
void http_conn_refuse(struct http_conn *conn, int status, const char *why);
// The status line and the headers; `framing` is the header that marks the end of the body ("" or a whole line).
void http_conn_put_head(struct http_conn *conn, int status, const char *content_type, const char *headers,
                        const char *framing);

// http_server_tls.c
int http_server_tls_new(const struct http_server_options *options, SSL_CTX **ret_ctx, struct err *e);
struct bufferevent *http_server_tls_accept(SSL_CTX *ctx, struct event_base *loop, evutil_socket_t fd);
// Whether the connection is one of TLS.
bool http_server_tls_is_on(struct bufferevent *bev);
// Sends a TLS close_notify. Does nothing on a plain connection.
void http_server_tls_goodbye(struct bufferevent *bev);

#endif
