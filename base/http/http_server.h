// SPDX-License-Identifier: Apache-2.0
// Small HTTP/1.1 server on libevent's bufferevents, for /metrics, probes, the exporter and the fake API server of the
// tests. Ceilings on headers, bodies, connections and time; optional TLS (1.2 or later). Not evhttp: libevent 2.1's
// cannot bound connections, and its timeout restarts with every byte, so one client can hold it open for ever.
//
// Idle and incomplete connections cannot crowd out requests. Connections that have not sent a complete request have a
// limit of their own, at which a new connection replaces the oldest one of the peer with the most. With TLS there are
// two such limits: before the handshake has started, and from its start on. Handshakes start a few in a turn of the
// loop, and peers take turns. Connections with a complete request have a limit in total and a limit per peer, at which
// the server closes the oldest idle connection, else the connection that has been reading its reply the longest. When
// every connection has a request in progress, the server replies 503.
//
// A connection is counted until the last byte of its reply has been sent, not only handed to the kernel: what the
// kernel keeps for clients is charged to the cgroup of this process. Closing a connection earlier resets it; otherwise
// the kernel would keep the rest of the reply for minutes.
//
// Replies to requests that break the rules: 400 malformed, 408 too slow, 413 body too large, 414/431 request line or
// headers too large, 501 unknown transfer coding, 503 too many requests in progress; always with "Connection: close". A
// program that uses this server must ignore SIGPIPE.
#ifndef GPUSCALE_BASE_HTTP_HTTP_SERVER_H
#define GPUSCALE_BASE_HTTP_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct event_base;
struct http_server;
struct http_site;
struct http_exchange;

#define HTTP_SERVER_HEADER_BYTES_MAX (16 * 1024)
#define HTTP_SERVER_BODY_BYTES_MAX   (1024 * 1024)
#define HTTP_SERVER_CONNECTIONS_MAX  256
// Per address: several Prometheus servers, kubelets or API servers may share one behind NAT or on a host network.
#define HTTP_SERVER_PEER_CONNECTIONS_MAX 64
#define HTTP_SERVER_SILENT_MAX           1024 // at most an eighth of RLIMIT_NOFILE
#define HTTP_SERVER_SILENT_TLS_MAX       512  // from the start of the handshake on, which takes 60 KiB
#define HTTP_SERVER_HEAD_MS              5000
#define HTTP_SERVER_BODY_MS              10000
#define HTTP_SERVER_REPLY_MS             30000
#define HTTP_SERVER_IDLE_MS              60000
#define HTTP_SERVER_ROUTES_MAX           64
#define HTTP_SERVER_UNREAD_BYTES_MAX     (16 * 1024 * 1024)

// What is asked of a client's certificate.
enum http_client_auth {
	HTTP_CLIENT_AUTH_DEFAULT,         // REQUIRE with a client CA, else NONE
	HTTP_CLIENT_AUTH_NONE,            // nothing
	HTTP_CLIENT_AUTH_REQUEST,         // shown if the client likes, not looked at
	HTTP_CLIENT_AUTH_REQUIRE_ANY,     // some certificate must be shown
	HTTP_CLIENT_AUTH_VERIFY_IF_GIVEN, // if shown, it must be of the client CA
	HTTP_CLIENT_AUTH_REQUIRE,         // one of the client CA must be shown
	HTTP_CLIENT_AUTH__COUNT
};

struct http_server_options {
	struct event_base *loop; // not owned
	const char *listen;      // "127.0.0.1:8080", ":9400" (all interfaces), "[::1]:0"; port 0 = any free one
	const char *tls_cert_file, *tls_key_file; // both or neither; PEM, the certificate with its chain
	const char *tls_cert_pem, *tls_key_pem;   // the same as text; wins over the file
	const char *tls_client_ca_file; // a client must show a certificate of this CA; NULL: none is asked for
	enum http_client_auth tls_client_auth;
	int tls_min_minor, tls_max_minor; // TLS 1.x: 2 or 3; 0: 2 and 3
	size_t max_body_bytes;            // 0: HTTP_SERVER_BODY_BYTES_MAX
	size_t max_header_bytes;          // 0: HTTP_SERVER_HEADER_BYTES_MAX
	int max_connections;              // connections that have sent a request. 0: HTTP_SERVER_CONNECTIONS_MAX
	int max_peer_connections;         // the same, from one address. 0: HTTP_SERVER_PEER_CONNECTIONS_MAX
	// The others. With TLS: as many whose handshake has not started, and as many others, HTTP_SERVER_SILENT_TLS_MAX
	// at most. 0: HTTP_SERVER_SILENT_MAX
	int max_silent;
	// Deadlines, which received bytes do not extend. 0: the constant of the same name.
	int64_t head_ms;  // from the start of the connection, or the first byte after idling, to the end of the headers
	int64_t body_ms;  // from the end of the headers to the end of the body
	int64_t reply_ms; // from the start of the reply until the client has read all of it
	int64_t idle_ms;  // from the end of a reply to the first byte of the next request
	// Limit on the memory of replies that clients have not read to the end, over all connections; a single reply
	// may exceed it. Above the limit, the connections that have been reading the longest are closed. 0:
	// HTTP_SERVER_UNREAD_BYTES_MAX
	size_t max_unread_bytes;
	// The host names that the server accepts and the rules for requests from browsers; not owned. NULL: every name,
	// for tests. When set, replies carry headers that keep other sites from using them (base/http/http_site.h).
	const struct http_site *site;
};

// Why the server closed a connection before the client had finished with it.
enum http_close_cause {
	HTTP_CLOSE_EVICTED_SILENT, // at a ceiling: no complete request had arrived
	HTTP_CLOSE_EVICTED_IDLE,   // at a ceiling: no request was in flight
	HTTP_CLOSE_EVICTED_SLOW,   // at a ceiling: the client had not read its reply
	HTTP_CLOSE_REQUEST_LATE,   // the headers or the body were incomplete at their deadline
	HTTP_CLOSE_REPLY_LATE,     // the client had not read the reply by its deadline
	HTTP_CLOSE_REFUSED,        // at a ceiling: every connection had a request in progress
	HTTP_CLOSE__COUNT
};
extern const char *const http_close_cause_names[HTTP_CLOSE__COUNT]; // as a label: "evicted_silent" ..

struct http_server_stats {
	uint64_t accepted; // connections, ever
	uint64_t requests; // that reached a handler or a 404
	uint64_t closed[HTTP_CLOSE__COUNT];
	int open;     // connections now
	int open_max; // the most at one time, refused connections included
};

typedef void http_handler_fn(void *arg, struct http_exchange *x);

// Binds and listens at once. ERR_IO names the address and the reason ("port in use").
struct http_server *http_server_new(const struct http_server_options *options, struct err *e);
// Closes every connection. Frees exchanges that were not answered: their owners must drop them first. Must not be
// called from a handler.
void http_server_free(struct http_server *s);
// Sets TLS for new connections from the tls_* members of `options`, or plain HTTP when they name no files. Existing
// connections are not affected. On -1 and *e (ERR_TLS, ERR_USAGE, ERR_INTERNAL) nothing has changed.
int http_server_set_tls(struct http_server *s, const struct http_server_options *options, struct err *e);
void http_server_get_stats(const struct http_server *s, struct http_server_stats *ret_stats);
uint16_t http_server_port(const struct http_server *s);
// path "/metrics" matches exactly; a path ending in "/" matches every path under it (longest wins). Methods are the
// handler's business. Unmatched paths get 404 with a one-line text body.
int http_server_route(struct http_server *s, const char *path, http_handler_fn *fn, void *arg, struct err *e);
// The same for a handler whose reply takes long to write: one of them runs in each turn of the event loop, the others
// wait. However many clients request such a page at once, everything else in the loop waits for one page at most.
int http_server_route_long(struct http_server *s, const char *path, http_handler_fn *fn, void *arg, struct err *e);
// Asked before each request reaches a handler (or its 404): false means that it has replied itself, and x is gone.
typedef bool http_admit_fn(void *arg, struct http_exchange *x);
void http_server_set_admission(struct http_server *s, http_admit_fn *fn, void *arg);

// The following functions return values that stay valid until the reply.
const char *http_exchange_method(const struct http_exchange *x);
const char *http_exchange_path(const struct http_exchange *x);              // decoded, without the query
const char *http_exchange_query(struct http_exchange *x, const char *name); // first decoded value or NULL
// Whether a part of the query could not be read: broken escapes, or too many pairs. http_exchange_query passes that
// over.
bool http_exchange_query_is_broken(struct http_exchange *x);
const char *http_exchange_header(const struct http_exchange *x, const char *name); // or NULL
// The i-th header as it was sent, from 0 on: false past the last. For headers that may come several times.
bool http_exchange_header_at(const struct http_exchange *x, size_t i, const char **ret_name, const char **ret_value);
const char *http_exchange_peer(const struct http_exchange *x); // address text
// For the reply. Control characters in value become blanks; what is too much (8 KiB in all) makes the reply a 500.
void http_exchange_set_header(struct http_exchange *x, const char *name, const char *value);
// Ends the exchange; x is gone afterwards. Every handler calls one of these exactly once (it may do so later, from the
// loop). Harmless when the client has gone away meanwhile. body is copied; HEAD gets its length only.
void http_exchange_reply(struct http_exchange *x, int status, const char *content_type, const char *body, size_t len);
// The same for a large body, which is not copied. It must not change until release(body, len, arg) is called. That
// happens exactly once, after the body was sent or when it cannot be sent: possibly before this function returns, and
// at the latest in http_server_free().
typedef void http_release_fn(const void *body, size_t len, void *arg);
void http_exchange_reply_lent(struct http_exchange *x, int status, const char *content_type, const char *body,
                              size_t len, http_release_fn *release, void *arg);
void http_exchange_reply_text(struct http_exchange *x, int status, const char *text);

#endif
