// SPDX-License-Identifier: Apache-2.0
// Small HTTP server over libevent's evhttp, for /metrics, probes, the exporter and the fake API server of the tests.
// Ceilings on headers, bodies, connections and idle time; optional TLS.
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

struct http_server_options {
	struct event_base *loop; // not owned
	const char *listen;      // "127.0.0.1:8080", ":9400" (all interfaces), "[::1]:0"; port 0 = any free one
	const char *tls_cert_file, *tls_key_file; // both or neither
	size_t max_body_bytes;                    // 0: HTTP_SERVER_BODY_BYTES_MAX
};

typedef void http_handler_fn(void *arg, struct http_exchange *x);

// Binds and listens at once. ERR_IO names the address and the reason ("port in use").
struct http_server *http_server_new(const struct http_server_options *options, struct err *e);
void http_server_free(struct http_server *s);
uint16_t http_server_port(const struct http_server *s);
// path "/metrics" matches exactly; a path ending in "/" matches every path under it (longest wins). Methods are the
// handler's business. Unmatched paths get 404 with a one-line text body.
int http_server_route(struct http_server *s, const char *path, http_handler_fn *fn, void *arg, struct err *e);

const char *http_exchange_method(const struct http_exchange *x);
const char *http_exchange_path(const struct http_exchange *x);                     // decoded, without query
const char *http_exchange_query(const struct http_exchange *x, const char *name);  // decoded value or NULL
const char *http_exchange_header(const struct http_exchange *x, const char *name); // or NULL
const char *http_exchange_body(const struct http_exchange *x, size_t *ret_len);    // NUL-terminated
const char *http_exchange_peer(const struct http_exchange *x);                     // address text
void http_exchange_set_header(struct http_exchange *x, const char *name, const char *value);
// Ends the exchange; x is gone afterwards. Every handler calls one of these exactly once (it may do so later, from the
// loop).
void http_exchange_reply(struct http_exchange *x, int status, const char *content_type, const char *body, size_t len);
void http_exchange_reply_text(struct http_exchange *x, int status, const char *text);

#endif
