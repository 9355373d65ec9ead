// SPDX-License-Identifier: Apache-2.0
// HTTP(S) client: libcurl's multi interface driven by a libevent loop. One pool of transfer handles, kept-alive
// connections, a ceiling on every reply, TLS 1.2 or later, verified unless told otherwise. Nothing blocks, name lookup
// included. HTTP/2 over TLS when the server offers it; gzip replies are decoded, the ceiling counts decoded bytes.
// Redirects are not followed (a 3xx is a response), so credentials go nowhere but to the URL's host. curl may send a
// request again whose kept-alive connection turned out dead before the first byte of a reply.
// A proxy is used only when the environment names one (http_proxy, https_proxy, no_proxy), never for loopback.
// A reply without end (a watch) is read as it comes, beside the places of ordinary requests.
// A program that uses this must ignore SIGPIPE.
#ifndef GPUSCALE_BASE_HTTP_CLIENT_H
#define GPUSCALE_BASE_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct event_base;
struct http_client;
struct http_call;

#define HTTP_BODY_BYTES_MAX (16 * 1024 * 1024)
#define HTTP_HEADERS_MAX    64
#define HTTP_STREAMS_MAX    256 // replies without end, at once

// Every pointer may be NULL. *_pem are inline PEM text and win over the file of the same name.
struct http_tls {
	const char *ca_file, *ca_pem;     // trusted instead of the system's store
	const char *cert_file, *cert_pem; // client certificate
	const char *key_file, *key_pem;
	const char *server_name; // verify against this name instead of the URL's host
	bool insecure_skip_verify;
};

// Asked before a request goes to the network, from the loop: when its turn has come, and again at the last moment: once
// its connection stands and it is about to be sent, or, when it has a body, when that is: what has no body yet is no
// request. -1 and *e ends the call with that error. arg is the call's.
typedef int http_gate_fn(void *arg, struct err *e);
// Bytes of a 2xx reply as they come; first, once, with len 0 when the reply's headers have come. From the loop; may
// submit and cancel any call, this one included. arg is the call's.
typedef void http_data_fn(void *arg, const char *data, size_t len);

struct http_request {
	const char *method;         // "GET", "POST", "PATCH", ...
	const char *url;            // http:// or https:// only; user:password@ becomes basic auth
	const char *const *headers; // "Name: value", NULL-terminated; may be NULL
	const char *body;           // copied
	size_t body_len;
	const char *bearer_token;                // never logged, never in errors
	const char *basic_user, *basic_password; // one kind of credentials at most
	const struct http_tls *tls;              // copied
	int64_t connect_timeout_ms;              // with TLS; 0: the client's
	int64_t timeout_ms;      // from submission, waiting for a place included, to the last byte; 0: 30 s
	size_t max_body_bytes;   // 0: HTTP_BODY_BYTES_MAX
	bool no_compression;     // gzip is not offered: for replies so small that it costs more than it saves
	http_gate_fn *may_start; // NULL: always
	// What nobody waits for: goes when nothing else waits for a place, but for one place that these always have.
	// timeout_ms then begins when it goes.
	bool is_background;
	// A stream: a 2xx body goes there, is not collected (the response's is "") and has no ceiling; any other reply
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
};

// Called exactly once per submitted call, from the loop, never from http_client_submit itself.
// Exactly one of response, error is non-NULL. Error kinds: ERR_UNREACHABLE, ERR_TIMEOUT, ERR_TLS, ERR_LIMIT,
// ERR_PROTOCOL, ERR_CANCELED, ERR_INTERNAL (out of memory); code is curl's. The text names method, scheme, host, port
// and path, never the query or a credential. The call is gone once this returns; until then canceling it does nothing.
// A callback may submit and cancel other calls; it must not free the client.
typedef void http_done_fn(void *arg, const struct http_response *response, const struct err *error);

struct http_client_options {
	struct event_base *loop;    // not owned
	int max_in_flight;          // transfers under way at once; the rest wait in order. 0: 16
	int max_queued;             // waiting ones; more is ERR_LIMIT. 0: 100000
	const char *user_agent;     // NULL: "gpuscale/<version>"
	int64_t connect_timeout_ms; // of requests that say none. 0: 5 s
	// HTTP/1.1 only: a request that timed out takes its connection with it, so that the next one does not wait on a
	// connection that is as dead.
	bool no_http2;
};

struct http_client *http_client_new(const struct http_client_options *options, struct err *e);
// Ends every call with ERR_CANCELED (callbacks run), then frees.
void http_client_free(struct http_client *c);
// Copies what it needs. ret_call may be NULL. -1 and *e for unusable arguments; then done is not called.
int http_client_submit(struct http_client *c, const struct http_request *request, http_done_fn *done, void *arg,
                       struct http_call **ret_call, struct err *e);
// Ends one call with ERR_CANCELED; its callback runs before this returns.
void http_call_cancel(struct http_call *call);

// Percent-encodes s as application/x-www-form-urlencoded / query value onto out.
struct buf;
int http_append_urlencoded(struct buf *out, const char *s);

#endif
