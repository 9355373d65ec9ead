// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the HTTP client. Include it only from those files.
//   http_client.c          calls: queue, slots, deadlines, completion, streams
//   http_client_request.c  request -> checked copy -> transfer handle
//   http_client_tls.c      TLS settings shared between calls; what the verifier objected to
//   http_client_error.c    curl's result -> struct err
#ifndef GPUSCALE_BASE_HTTP_HTTP_CLIENT_INTERNAL_H
#define GPUSCALE_BASE_HTTP_HTTP_CLIENT_INTERNAL_H

#include <curl/curl.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_client.h"

#define HTTP_CONNECT_TIMEOUT_MS     5000
#define HTTP_TIMEOUT_MS             30000
#define HTTP_IN_FLIGHT              16
#define HTTP_IN_FLIGHT_MAX          1024
#define HTTP_QUEUED                 100000
#define HTTP_REPLY_HEADER_BYTES_MAX (256 * 1024)
#define HTTP_REQUEST_BODY_BYTES_MAX (64 * 1024 * 1024)
#define HTTP_URL_BYTES_MAX          (16 * 1024)
#define HTTP_HEADER_LINE_BYTES_MAX  (64 * 1024)
#define HTTP_PEM_BYTES_MAX          (1024 * 1024)
#define HTTP_PLACE_BYTES            256
#define HTTP_BODY_BYTES_KEPT        (256 * 1024) // a slot's buffer above this is given back after use
#define HTTP_TCP_USER_TIMEOUT_MS    20000
#define HTTP_TCP_KEEPALIVE_S        15L // silence before the first probe; a peer that is gone is noticed 20 s later
#define HTTP_TCP_KEEPALIVE_EVERY_S  5L
#define HTTP_STREAM_BYTES_MAX       (8 * 1024 * 1024) // that one turn of the loop brings; curl reads about 1.6 MiB

// One set of TLS settings, shared by every call that gives the same ones.
struct http_tls_set {
	LIST_ENTRY(http_tls_set) link;
	int refs;
	struct http_tls tls; // owned copies
};
LIST_HEAD(http_tls_list, http_tls_set);

// The verdict of OpenSSL's verifier on the latest bad certificate. One per client: a handshake fails and is reported
// within one curl_multi_socket_action, so the latest note belongs to the call being reported.
struct http_tls_note {
	int x509_error; // 0: no note
	char text[256];
};

// A reusable easy handle and its buffers.
struct http_slot {
	SLIST_ENTRY(http_slot) free_link;
	CURL *easy;
	struct buf body;
	struct err refused; // why a callback ended the transfer; ERR_NONE: none did
	char error_text[CURL_ERROR_SIZE];
};

enum http_call_state { HTTP_CALL_QUEUED, HTTP_CALL_RUNNING, HTTP_CALL_DONE };

struct http_call {
	TAILQ_ENTRY(http_call) link; // in client->queued, background, streams or running
	struct http_client *client;
	enum http_call_state state;
	http_done_fn *done;
	http_gate_fn *may_start;
	http_data_fn *on_data; // NULL: no stream
	http_sink_fn *on_body; // NULL: the body is collected
	void *arg;
	struct event deadline;
	int64_t submitted_us, timeout_ms, connect_timeout_ms, idle_timeout_ms;
	char place[HTTP_PLACE_BYTES]; // "GET http://127.0.0.1:9090/api/v1/query": safe to show
	char host[128];               // safe to show
	char method[16];
	char *url;
	struct curl_slist *headers;    // zeroed when freed: contains the credentials
	struct curl_slist *connect_to; // when tls.server_name replaces the URL's host
	char *body;
	size_t body_len;
	bool has_body, https, loopback, no_compression, is_background;
	struct http_tls_set *tls; // NULL: defaults
	char *user, *password;    // the key of Amazon; NULL: not signed
	char *aws_scope;          // NULL: the request is not signed
	size_t max_body_bytes;
	// While running:
	struct http_slot *slot;
	size_t header_bytes;
	size_t body_sent; // body bytes sent, for a call with may_start
	size_t unnudged;  // body bytes that came since the last nudge
	bool is_quiet;    // none came since on_nudge() looked
	int64_t retry_after_ms, date_ms;
	// State of a stream:
	bool is_open;                     // the headers of a 2xx have come
	bool is_open_reported;            // on_data was called with len 0
	bool has_news;                    // in client->news
	TAILQ_ENTRY(http_call) news_link; // valid while has_news
};
TAILQ_HEAD(http_call_queue, http_call);

LIST_HEAD(http_socket_list, http_socket);

struct http_client {
	struct event_base *loop;
	CURLM *multi;
	struct event timer; // curl's
	struct event pump;  // starts queued calls, checks for finished ones
	struct event nudge; // pending while the end of a reply may be overlooked
	struct http_socket_list sockets;
	struct http_call_queue queued, background, running;
	struct http_call_queue streams;      // that wait for their start
	struct http_call_queue news;         // running streams with undelivered data
	int n_queued, max_queued, n_streams; // queued: background as well
	int n_background;                    // running
	int64_t connect_timeout_ms;
	struct http_slot *slots;
	int max_in_flight;
	SLIST_HEAD(http_slot_list, http_slot) free_slots;
	struct http_tls_list tls_sets;
	struct http_tls_note tls_note;
	int in_callback;
	bool closing, no_http2, is_nudging;
};

// http_client.c
void http_call_heard(struct http_call *call, size_t len); // bytes of the body; called from inside of curl

// http_client_request.c
int http_call_fill(struct http_call *call, const struct http_request *r, struct err *e);
void http_call_wipe(struct http_call *call); // frees what fill made
CURLcode http_call_setup(struct http_call *call, struct http_slot *slot);

// http_client_tls.c
int http_tls_get(struct http_client *c, const struct http_tls *tls, struct http_tls_set **ret_set, struct err *e);
void http_tls_put(struct http_tls_set *set);
CURLcode http_tls_setup(CURL *easy, const struct http_tls *tls, struct http_tls_note *note);

// http_client_error.c
void http_error_of_curl(const struct http_call *call, CURLcode result, struct err *e);
void http_error_of_deadline(const struct http_call *call, struct err *e);

#endif
