// SPDX-License-Identifier: Apache-2.0
// HTTP(S) client: libcurl's multi interface driven by a libevent loop. One pool of transfer handles, kept-alive
// connections, a limit on every reply, TLS 1.2 or later, verified by default. Nothing blocks, not even name
// lookup. HTTP/2 over TLS when the server offers it; gzip replies are decoded, the limit counts decoded bytes.
// Redirects are not followed (a 3xx is a response), so credentials go nowhere but to the URL's host. curl may send a
// request again whose kept-alive connection turned out dead before the first byte of a reply.
// A proxy is used only when the environment names one (http_proxy, https_proxy, no_proxy), never for loopback.
// Streams (watches) are read as they arrive and take none of the places of ordinary requests.
// A program that uses this must ignore SIGPIPE.
#ifndef GPUSCALE_BASE_HTTP_HTTP_CLIENT_H
#define GPUSCALE_BASE_HTTP_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct event_base;
struct http_client;
struct http_call;

#define HTTP_BODY_BYTES_MAX (16 * 1024 * 1024)
#define HTTP_HEADERS_MAX    64
#define HTTP_STREAMS_MAX    256 // open at the same time

// Every pointer may be NULL. *_pem are inline PEM text and win over the file of the same name.
struct http_tls {
	const char *ca_file, *ca_pem;     // trusted instead of the system's store
	const char *cert_file, *cert_pem; // client certificate
	const char *key_file, *key_pem;
	const char *server_name; // verify against this name instead of the URL's host
	bool insecure_skip_verify;
};

// Copies *from to *to. Returns 0, or -1 and *e when memory is exhausted. In both cases, http_tls_free() wipes and frees
// the texts of *to.
int http_tls_copy(struct http_tls *to, const struct http_tls *from, struct err *e);
void http_tls_free(struct http_tls *tls);

// Decides whether a request may still be sent. Called from the loop when the request's turn comes, and again just
// before its first byte is sent (before its body, when it has one). Return 0 to send it, or -1 and *e to end the call
// with that error. `arg` is the call's.
typedef int http_gate_fn(void *arg, struct err *e);
// Receives the bytes of a 2xx reply as they arrive. Called first with `len` 0 when the headers are complete. Called
// from the loop; may submit and cancel any call, including this one. `arg` is the call's.
typedef void http_data_fn(void *arg, const char *data, size_t len);

// Receives the bytes of a 2xx reply as they arrive. Called during the transfer, so it must not submit or cancel a call.
// Returns 0 to continue; -1 aborts the transfer, and the call fails with ERR_CANCELED. `arg` is the call's.
typedef int http_sink_fn(void *arg, const char *data, size_t len);

// Credentials of Amazon Web Services, with which libcurl signs a request (Signature Version 4, CURLOPT_AWS_SIGV4).
struct http_aws {
	const char *scope; // "aws:amz:REGION:SERVICE"
	const char *key_id, *secret;
	const char *session_token; // NULL: none
};

struct http_request {
	const char *method;         // "GET", "POST", "PATCH", ...
	const char *url;            // http:// or https:// only; user:password@ becomes basic auth
	const char *const *headers; // "Name: value", NULL-terminated; may be NULL
	const char *body;           // copied
	size_t body_len;
	const char *bearer_token; // never logged, never in errors
	const char *basic_user, *basic_password;
	const struct http_aws *aws; // copied; not for a URL with a query; one kind of credentials at most
	bool no_proxy;              // connect directly, whatever the environment says
	const struct http_tls *tls; // copied
	int64_t connect_timeout_ms; // with TLS; 0: the client's
	int64_t timeout_ms;         // from submission, queueing included, to the last byte; 0: 30 s
	size_t max_body_bytes;      // limit on a reply that is collected; 0: HTTP_BODY_BYTES_MAX
	http_sink_fn *on_body; // a 2xx body goes there, decompressed, and is not collected (the response's is ""); the
	                       // limit on it is the sink's. NULL: everything is collected. Not for a stream
	bool no_compression;   // do not offer gzip, for replies so small that compression costs more than it saves
	http_gate_fn *may_start; // NULL: always
	// A request that no caller waits for. It is sent when no other request waits for a place; one place is reserved
	// for background requests. timeout_ms counts from the moment it is sent.
	bool is_background;
	// A stream: a 2xx body goes there, is not collected (the response's is "") and has no limit; any other reply
	// is collected. timeout_ms is then for the reply's headers, and after them idle_timeout_ms for every silence
	// (0: no limit). Streams take none of the max_in_flight places; more than HTTP_STREAMS_MAX is ERR_LIMIT.
	http_data_fn *on_data;
	int64_t idle_timeout_ms;
};

struct http_response {
	int status;       // any status is a response, not an error
	const char *body; // NUL-terminated; valid during the callback only
	size_t body_len;
	const char *content_type; // "" if none
	int64_t retry_after_ms;   // from Retry-After (seconds or HTTP-date, cut to 1 h), 0 if none
	int64_t elapsed_us;       // since submission
	int64_t date_ms;          // the server's clock, from Date (whole seconds), ms since the epoch; 0 if missing
};

// Called exactly once per submitted call, from the loop, never from http_client_submit itself.
// Exactly one of response, error is non-NULL. Error kinds: ERR_UNREACHABLE, ERR_TIMEOUT, ERR_TLS, ERR_LIMIT,
// ERR_PROTOCOL, ERR_CANCELED, ERR_INTERNAL (out of memory); code is curl's. The text names method, scheme, host, port
// and path, never the query or a credential. The call is gone once this returns; until then canceling it does nothing.
// A callback may submit and cancel other calls; it must not free the client.
typedef void http_done_fn(void *arg, const struct http_response *response, const struct err *error);

struct http_client_options {
	struct event_base *loop;    // not owned
	int max_in_flight;          // transfers at the same time; the rest wait in order. 0: 16
	int max_queued;             // requests that wait; one more is ERR_LIMIT. 0: 100000
	int64_t connect_timeout_ms; // for a request without a timeout of its own. 0: 5 s
	// Use HTTP/1.1 only: a request that times out closes its connection, so the next request does not wait on a
	// dead connection. Takes 12 KiB less per transfer, too.
	bool no_http2;
};

struct http_client *http_client_new(const struct http_client_options *options, struct err *e);
// Ends every call with ERR_CANCELED (callbacks run), then frees.
void http_client_free(struct http_client *c);
// Submits `request`, which is copied. `ret_call` may be NULL. Returns 0, or -1 and *e when an argument is invalid; then
// `done` is not called.
int http_client_submit(struct http_client *c, const struct http_request *request, http_done_fn *done, void *arg,
                       struct http_call **ret_call, struct err *e);
// Ends one call with ERR_CANCELED; its callback runs before this returns.
void http_call_cancel(struct http_call *call);

// Percent-encodes s as application/x-www-form-urlencoded / query value onto out.
struct buf;
int http_append_urlencoded(struct buf *out, const char *s);

#endif
