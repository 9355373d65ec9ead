// SPDX-License-Identifier: Apache-2.0
// Small HTTP/1.1 server on libevent's bufferevents, for /metrics, probes, the exporter and the fake API server of the
// tests. Ceilings on headers, bodies, connections and time; optional TLS (1.2 or later). Not evhttp: libevent 2.1's
// cannot bound connections, and its timeout restarts with every byte, so one client can hold it open for ever.
//
// What a request gets that does not keep to the rules: 400 malformed, 408 too slow, 413 body too large, 414/431 request
// line or headers too large, 501 unknown transfer coding, 503 too many connections; always with "Connection: close".
// A program that uses this must ignore SIGPIPE.
#ifndef GPUSCALE_BASE_HTTP_SERVER_H
#define GPUSCALE_BASE_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct event_base;
struct http_server;
struct http_exchange;

#define HTTP_SERVER_HEADER_BYTES_MAX (16 * 1024)
#define HTTP_SERVER_BODY_BYTES_MAX   (1024 * 1024)
#define HTTP_SERVER_CONNECTIONS_MAX  256
#define HTTP_SERVER_IDLE_MS          60000
#define HTTP_SERVER_ROUTES_MAX       64
#define HTTP_SERVER_BACKLOG_MAX      (16 * 1024 * 1024)

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
	int max_connections;              // more are answered 503. 0: HTTP_SERVER_CONNECTIONS_MAX
	// A request's head must arrive whole within this time after the connection was made or the previous reply was
	// sent, its body within the same time again, and its reply must be taken within it too. 0: HTTP_SERVER_IDLE_MS
	int64_t idle_ms;
	// Of a streaming reply: bytes that the client has not taken yet. More, or nothing taken for idle_ms while
	// something waits, and it is cut off. 0: HTTP_SERVER_BACKLOG_MAX
	size_t max_backlog_bytes;
};

struct http_server_stats {
	uint64_t accepted; // connections, ever
	uint64_t refused;  // of these, over the ceiling
	uint64_t requests; // that reached a handler or a 404
	int open;          // connections now
	int open_max;      // the most at one time, refused ones included
};

typedef void http_handler_fn(void *arg, struct http_exchange *x);

// Binds and listens at once. ERR_IO names the address and the reason ("port in use").
struct http_server *http_server_new(const struct http_server_options *options, struct err *e);
// Closes every connection. Exchanges not yet answered are gone too: their owners must drop them before; owners of
// streaming replies are told. Not to be called from a handler.
void http_server_free(struct http_server *s);
// What connections to come speak: TLS as the tls_* members of `options` say, or plain HTTP when they name no files. The
// connections there are stay as they are. On -1 and *e (ERR_TLS, ERR_USAGE, ERR_INTERNAL) nothing has changed.
int http_server_set_tls(struct http_server *s, const struct http_server_options *options, struct err *e);
// Closes the connections that wait for a request, so that their clients come anew (to other TLS, say). Not to be called
// from a handler.
void http_server_drop_idle(struct http_server *s);
void http_server_get_stats(const struct http_server *s, struct http_server_stats *ret_stats);
uint16_t http_server_port(const struct http_server *s);
// path "/metrics" matches exactly; a path ending in "/" matches every path under it (longest wins). Methods are the
// handler's business. Unmatched paths get 404 with a one-line text body.
int http_server_route(struct http_server *s, const char *path, http_handler_fn *fn, void *arg, struct err *e);
// Asked before each request reaches a handler (or its 404): false means that it has replied itself, and x is gone.
typedef bool http_admit_fn(void *arg, struct http_exchange *x);
void http_server_set_admission(struct http_server *s, http_admit_fn *fn, void *arg);

// What the next seven return lives until the reply (a streaming one: until its end).
const char *http_exchange_method(const struct http_exchange *x);
const char *http_exchange_path(const struct http_exchange *x);              // decoded, without query
const char *http_exchange_query(struct http_exchange *x, const char *name); // first decoded value or NULL
// Whether a part of the query could not be read: broken escapes, or too many pairs. http_exchange_query passes that
// over.
bool http_exchange_query_is_broken(struct http_exchange *x);
const char *http_exchange_header(const struct http_exchange *x, const char *name); // or NULL
// The i-th header as it was sent, from 0 on: false past the last. For headers that may come several times.
bool http_exchange_header_at(const struct http_exchange *x, size_t i, const char **ret_name, const char **ret_value);
const char *http_exchange_body(const struct http_exchange *x, size_t *ret_len); // NUL-terminated
const char *http_exchange_peer(const struct http_exchange *x);                  // address text
// For the reply. Control characters in value become blanks; what is too much (8 KiB in all) makes the reply a 500.
void http_exchange_set_header(struct http_exchange *x, const char *name, const char *value);
// Ends the exchange; x is gone afterwards. Every handler calls one of these exactly once (it may do so later, from the
// loop). Harmless when the client has gone away meanwhile. body is copied; HEAD gets its length only.
void http_exchange_reply(struct http_exchange *x, int status, const char *content_type, const char *body, size_t len);
void http_exchange_reply_text(struct http_exchange *x, int status, const char *text);
// Instead of a reply: the connection is closed with nothing (more) sent; x is gone.
void http_exchange_abort(struct http_exchange *x);

// ---- a reply that comes piece by piece, for as long as it likes ----
// Chunked for HTTP/1.1; for HTTP/1.0 the end of the connection ends it. It has no deadline, but a client must take what
// is written (max_backlog_bytes). Closing or half-closing its connection is how a client leaves.

// The client has left or was cut off, or the server is being freed; x is gone. Called from the loop, or from
// http_server_free, never from http_exchange_write.
typedef void http_closed_fn(void *arg);
// Sends the head. True: x stays the caller's until http_exchange_end, http_exchange_abort or on_close (which may be
// NULL), whichever is first. False: there is nobody to stream to (the client has gone, or the headers are too large and
// it got a 500); x is gone, and on_close is not called.
bool http_exchange_reply_start(struct http_exchange *x, int status, const char *content_type, http_closed_fn *on_close,
                               void *arg);
// One piece, sent at once, copied. Over the ceiling the client is cut off: on_close follows from the loop, and what is
// written until then is dropped. HEAD gets none of it.
void http_exchange_write(struct http_exchange *x, const char *data, size_t len);
// Ends the reply, and the exchange.
void http_exchange_end(struct http_exchange *x);

#endif
