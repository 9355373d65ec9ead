// SPDX-License-Identifier: Apache-2.0
// One request at a time over libevent: GETs of the mock's replicas, of the page of a running exporter and of the pods
// of the node, and POSTs of OTLP. It does not use base/http/http_client: libcurl brings thirty libraries and 4 MiB of
// resident memory, a price that an exporter on every GPU node must not pay. It follows no redirects, uses no proxies
// and keeps no connections alive.
#ifndef GPUSCALE_EXPORTER_HTTP_CALL_H
#define GPUSCALE_EXPORTER_HTTP_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct event_base;
struct http_call;

#define HTTP_CALL_BODY_BYTES_MAX   (20 * 1024 * 1024) // the commands fetch whole pages of metrics
#define HTTP_CALL_HEADER_BYTES_MAX (64 * 1024)

// Called once per request, from the loop. On success `error` is NULL, `status` is the reply's status, whatever it is,
// and body[0..len) is its body, valid during the call. On failure `error` has one of the kinds ERR_UNREACHABLE,
// ERR_TIMEOUT, ERR_TLS, ERR_LIMIT, ERR_PROTOCOL and ERR_INTERNAL.
typedef void http_call_done_fn(void *arg, int status, const char *body, size_t len, const struct err *error);

// Called from the loop for each piece of the body of a reply with status 200, with the `arg` of http_call_new().
// Returns 0 to continue, or -1 and *e, which ends the request as a failure with that error.
typedef int http_call_data_fn(void *arg, const char *data, size_t len, struct err *e);

// Prepares requests for `url` (http or https). `ca_file` names PEM certificates to trust; NULL selects the system's. A
// request fails after `timeout_ms`. Returns NULL and fills `e` (ERR_INPUT, ERR_TLS, ERR_LIMIT, ERR_INTERNAL) if the URL
// or the certificates are unusable.
struct http_call *http_call_new(struct event_base *loop, const char *url, const char *ca_file, int64_t timeout_ms,
                                http_call_done_fn *done, void *arg, struct err *e);
// Cancels the request in flight, if any, without calling `done`. `done` may call it, once it has read the body.
void http_call_free(struct http_call *f);
// Makes the following requests send this Accept header (not copied) and pass a body of at most `body_bytes_max` bytes
// to `data` as it arrives. `done` then receives only bodies of replies with another status.
void http_call_stream(struct http_call *f, const char *accept, size_t body_bytes_max, http_call_data_fn *data);
// Sends a GET with the Authorization header "Bearer `bearer_token`", or without one if it is NULL. Returns -1 and fills
// `e` if the request cannot be sent; otherwise `done` is called later. At most one request may be in flight.
int http_call_start(struct http_call *f, const char *bearer_token, struct err *e);
// Sends a POST of body[0..len), which must stay valid until `done` is called or `f` is freed, with this Content-Type.
// Otherwise like http_call_start().
int http_call_post(struct http_call *f, const char *content_type, const char *body, size_t len, struct err *e);
// True while a request is in flight.
bool http_call_is_busy(const struct http_call *f);

#endif
