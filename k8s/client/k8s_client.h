// SPDX-License-Identifier: Apache-2.0
// REST client of one API server: keeps credentials up to date, decodes Status objects, and retries 429 and 5xx as the
// server requests.
#ifndef GPUSCALE_K8S_CLIENT_K8S_CLIENT_H
#define GPUSCALE_K8S_CLIENT_K8S_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http/http_client.h"

struct clock;
struct err;
struct event_base;
struct k8s_call;
struct k8s_client;
struct k8s_config;

#define K8S_PATH_BYTES_MAX       8192
#define K8S_REQUESTS_MAX         50000 // queued and in flight
#define K8S_RESOURCE_CLASS_BYTES 96
#define K8S_RETRY_AFTER_MAX_MS   30000
#define K8S_BACKOFF_FIRST_MS     200
#define K8S_BACKOFF_MAX_MS       5000

// One attempt, with a response or failed, for metrics. Strings are valid during the call.
struct k8s_attempt {
	const char *verb;     // "GET", "PATCH", ..., "LIST", "WATCH"
	const char *resource; // k8s_path_class: bounded, no names
	int status;           // HTTP status; 0: no reply
	int attempt;          // 1 = first
	int64_t elapsed_us;
};
typedef void k8s_observe_fn(void *arg, const struct k8s_attempt *attempt);

struct k8s_client_options {
	struct event_base *loop;         // not owned
	struct http_client *http;        // not owned
	const struct clock *clock;       // not owned
	const struct k8s_config *config; // copied
	int64_t timeout_ms;              // per request; 0: 15 s
	int max_attempts; // for 429, 5xx and broken connections; 0: 4. Backoff 0.2 s doubling to 5 s, jittered, or
	                  // Retry-After (at most 30 s)
	k8s_observe_fn *observe; // may be NULL
	void *observe_arg;
	// Called immediately before each attempt of a writing request (POST, PUT, PATCH, DELETE), retries included.
	// When it returns -1 and *e, the request fails with that error and is not sent. So a process that lost its
	// lease does not write, however long ago the request was queued. NULL: writing is always permitted.
	int (*may_write)(void *arg, struct err *e);
	// Returns the number of the term in which a writing request is permitted. A request is refused when the term
	// has changed since it was queued. So a request from before a lease was lost is not sent after the lease is
	// regained. NULL: the term never changes.
	uint64_t (*write_term)(void *arg);
	void *may_write_arg;
};

// Creates a client. Returns NULL and *e.
struct k8s_client *k8s_client_new(const struct k8s_client_options *options, struct err *e);
// Frees the client. Outstanding requests end with ERR_CANCELED (their callbacks run). Must not be called from such a
// callback. Call before the http_client is freed.
void k8s_client_free(struct k8s_client *c);
// Return the loop and the clock of the options.
struct event_base *k8s_client_loop(const struct k8s_client *c);
const struct clock *k8s_client_clock(const struct k8s_client *c);

// ---- requests ----

// Returns the URL of the server, for messages. Valid as long as the client.
const char *k8s_client_server(const struct k8s_client *c);

// Receives the outcome of a request. For 2xx, error is NULL. Otherwise response is NULL, and error has the text of the
// Status body ("deployments.apps \"x\" is forbidden: ...") and the HTTP status as code.
typedef void k8s_done_fn(void *arg, const struct http_response *response, const struct err *error);
// Sends a request. path starts with '/' and is appended to the server's URL. content_type may be NULL without a body. A
// 401 refreshes the credentials and repeats the request once; a 409 is returned to the caller. GET, PUT, and PATCH with
// a resourceVersion in its body (the server refuses the second of two) are repeated after 5xx or a broken connection,
// all requests after 429. done is called exactly once, from the loop, never from k8s_request itself. Returns 0, or -1
// and *e; then done is not called.
int k8s_request(struct k8s_client *c, const char *method, const char *path, const char *content_type, const char *body,
                size_t body_len, k8s_done_fn *done, void *arg, struct err *e);

// A request with all its options; those that are 0 are as in k8s_request. Strings and body are copied.
struct k8s_request_options {
	const char *method, *path, *content_type, *body;
	size_t body_len;
	const char *verb;        // for the metrics hook, a literal; NULL: the method
	bool is_unguarded;       // sent without a call of may_write: leases, token reviews
	bool is_background;      // other requests are sent first: status, Events. See base/http/http_client.h
	int64_t timeout_ms;      // 0: the client's. For a stream: until the headers of the reply
	int max_attempts;        // 0: the client's. For a stream: 1, and once more after a 401
	int64_t idle_timeout_ms; // for a stream
	http_data_fn *on_data; // makes it a stream: see base/http/http_client.h; called with `arg`. NULL: not a stream
	k8s_done_fn *done;
	void *arg;
};
// Sends a request as k8s_request does. *ret_call can be passed to k8s_call_cancel until done runs. ret_call may be
// NULL.
int k8s_request_with(struct k8s_client *c, const struct k8s_request_options *options, struct k8s_call **ret_call,
                     struct err *e);
// Cancels a request: done runs with ERR_CANCELED before this returns. Must not be called from the call's own done.
void k8s_call_cancel(struct k8s_call *call);

// ---- what is known of paths and replies ----

// Writes the class of a path to out: "deployments/scale" for /apis/apps/v1/namespaces/ns/deployments/x/scale?...,
// "discovery" for /apis/apps/v1, "other" for a path that is not of a resource. Namespaces and names are left out, so
// that the number of classes stays small.
void k8s_path_class(const char *path, char out[K8S_RESOURCE_CLASS_BYTES]);

// Fills *e from a failed reply: the kind from the HTTP status, and message and retryAfterSeconds from the body, if it
// is a Status.
void k8s_status_to_err(int http_status, const char *body, size_t len, struct err *e);

#endif
