// SPDX-License-Identifier: Apache-2.0
// What the files of the HTTP server share; nobody else includes this.
//   http_server.c           listening, connections, deadlines
//   http_server_exchange.c  one request and its reply; routes
//   http_server_stream.c    replies that come piece by piece
//   http_server_listen.c    "host:port" -> listening socket
//   http_server_tls.c       TLS context and its bufferevents
//   http_server_peer.c      the certificate a client has shown
//   http_parse.c            bytes -> head, chunks -> body
#ifndef GPUSCALE_BASE_HTTP_SERVER_INTERNAL_H
#define GPUSCALE_BASE_HTTP_SERVER_INTERNAL_H

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/listener.h>
#include <openssl/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http_parse.h"
#include "base/http_server.h"

#define HTTP_SERVER_PEER_BYTES        64
#define HTTP_SERVER_QUERY_MAX         64
#define HTTP_SERVER_REPLY_HEADERS_MAX (8 * 1024)
#define HTTP_SERVER_OVERFLOW          32 // connections over the ceiling that still get a 503
#define HTTP_SERVER_WRITE_BYTES       (256 * 1024)
#define HTTP_SERVER_LINGER_MS         1000 // without a byte from the client; all in all idle_ms longer
#define HTTP_SERVER_LINGER_BYTES      (4 * 1024 * 1024)

enum http_conn_state {
	HTTP_CONN_HEAD,      // reading
	HTTP_CONN_BODY,      // reading
	HTTP_CONN_HANDLING,  // the exchange is the handler's
	HTTP_CONN_STREAMING, // the exchange is the handler's, its reply has begun
	HTTP_CONN_WRITING,   // the reply is on its way
	HTTP_CONN_LINGERING, // reply sent, our side shut; reading over what the client still sends
	HTTP_CONN_CLOSING    // to be closed in the loop's next turn
};

struct http_conn {
	LIST_ENTRY(http_conn) link;
	struct http_server *server;
	struct bufferevent *bev;
	struct event deadline;
	enum http_conn_state state;
	struct http_exchange *x; // from the head on until the reply
	size_t scanned;          // input bytes already searched for the end of the head
	size_t lingered;
	int64_t linger_until_mono_ms;
	uint64_t streamed; // bytes of the streaming reply that were written
	uint64_t taken;    // of these, gone to the kernel when the deadline was armed
	bool half_closed;  // the client sends no more
	bool close_after;  // no further request after this reply
	bool linger;       // the request was not read whole: closing at once would reset the reply away
	char peer[HTTP_SERVER_PEER_BYTES];
};

struct http_exchange {
	LIST_ENTRY(http_exchange) link;
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
	bool is_streaming;
	http_closed_fn *on_close; // of a streaming reply
	void *close_arg;
	char peer[HTTP_SERVER_PEER_BYTES];
};

struct http_route {
	char *path;
	size_t len;
	http_handler_fn *fn;
	void *arg;
};

struct http_server {
	struct event_base *loop;
	struct evconnlistener *listener;
	struct event *resume; // listening again after the process ran out of descriptors
	SSL_CTX *tls;
	uint16_t port;
	size_t max_body_bytes, max_header_bytes, max_backlog_bytes;
	int max_connections;
	int64_t idle_ms;
	LIST_HEAD(http_conn_list, http_conn) conns;
	LIST_HEAD(http_exchange_list, http_exchange) exchanges;
	struct http_route routes[HTTP_SERVER_ROUTES_MAX];
	size_t n_routes;
	struct http_server_stats stats;
	int in_handler;
	http_admit_fn *admit; // NULL: everybody
	void *admit_arg;
};

// http_server.c
// Sends a reply head made of these and the body; the connection goes to WRITING.
void http_conn_reply(struct http_conn *conn, int status, const char *content_type, const char *headers, bool head_only,
                     const char *body, size_t len);
// Answers a request that breaks the rules and closes.
void http_conn_refuse(struct http_conn *conn, int status, const char *why);

// The status line and the headers; framing is the one that tells how the body ends ("" or a whole line).
void http_conn_put_head(struct http_conn *conn, int status, const char *content_type, const char *headers,
                        const char *framing);
void http_conn_arm(struct http_conn *conn, int64_t ms);
void http_conn_free(struct http_conn *conn);
// Closes it in the loop's next turn: for callers that still stand on it.
void http_conn_free_later(struct http_conn *conn);

// http_server_stream.c
// Everything written so far has been taken.
void http_stream_drained(struct http_conn *conn);
// Its deadline has come; the connection may be gone afterwards.
void http_stream_deadline(struct http_conn *conn);
// The connection is gone: tells the owner. x is gone afterwards.
void http_stream_lost(struct http_exchange *x);

// http_server_exchange.c
struct http_exchange *http_exchange_new(struct http_conn *conn, size_t head_len); // NULL when memory ends
void http_exchange_free(struct http_exchange *x);
void http_exchange_dispatch(struct http_exchange *x);

// http_server_listen.c
// A listening, non-blocking socket; *ret_port is the port it got. -1 and *e on failure.
int http_server_listen(const char *address, uint16_t *ret_port, struct err *e);

// http_server_tls.c
int http_server_tls_new(const struct http_server_options *options, SSL_CTX **ret_ctx, struct err *e);
struct bufferevent *http_server_tls_accept(SSL_CTX *ctx, struct event_base *loop, evutil_socket_t fd);
// Whether the connection is one of TLS.
bool http_server_tls_is_on(struct bufferevent *bev);
// Tells a TLS peer that this was the end. Harmless on a plain connection.
void http_server_tls_goodbye(struct bufferevent *bev);

#endif
