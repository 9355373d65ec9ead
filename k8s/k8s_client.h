// SPDX-License-Identifier: Apache-2.0
// REST against one API server: credentials kept fresh, Status objects decoded, 429/5xx retried as the server asks.
#ifndef GPUSCALE_K8S_K8S_CLIENT_H
#define GPUSCALE_K8S_K8S_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http_client.h"

struct clock;
struct err;
struct event_base;
struct k8s_call;
struct k8s_client;
struct k8s_config;

#define K8S_REQUESTS_MAX         50000 // waiting and under way
#define K8S_PATH_BYTES_MAX       8192
#define K8S_RESOURCE_CLASS_BYTES 96
#define K8S_RETRY_AFTER_MAX_MS   30000
#define K8S_BACKOFF_FIRST_MS     200
#define K8S_BACKOFF_MAX_MS       5000

// One answered (or failed) attempt, for metrics. Strings are valid during the call only.
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
	// Asked immediately before each attempt of a request that changes something (POST, PUT, PATCH, DELETE), retries
	// included: -1 and *e ends the request with that error, and nothing is sent. So one who may not write any more
	// does not, however long ago the request was made. NULL: always.
	int (*may_write)(void *arg, struct err *e);
	// What such a request was allowed by, as a number: it is refused, too, when this has changed since it was made.
	// So what was asked for before something was given up is not sent once that is back. NULL: it never changes.
	uint64_t (*write_term)(void *arg);
	void *may_write_arg;
};

struct k8s_client_stats {
	uint64_t requests; // attempts sent
	uint64_t retries, token_refreshes;
	uint64_t refused; // by may_write
};

struct k8s_client *k8s_client_new(const struct k8s_client_options *options, struct err *e);
// Outstanding requests end with ERR_CANCELED (their callbacks run). Not to be called from such a callback, and before
// the http_client is freed.
void k8s_client_free(struct k8s_client *c);
// The server's URL, for messages. Valid as long as the client.
const char *k8s_client_server(const struct k8s_client *c);
// What it was made with.
struct event_base *k8s_client_loop(const struct k8s_client *c);
const struct clock *k8s_client_clock(const struct k8s_client *c);
void k8s_client_get_stats(const struct k8s_client *c, struct k8s_client_stats *ret_stats);

// 2xx: response, error NULL. Else: response NULL, error from the Status body ("deployments.apps \"x\" is forbidden:
// ..."), code = HTTP status.
typedef void k8s_done_fn(void *arg, const struct http_response *response, const struct err *error);
// path starts with '/' and is appended to the server's URL. content_type may be NULL without a body. A 401 refreshes
// the credentials and tries once more; a 409 is the caller's to handle and never retried here. Repeated after 5xx or a
// broken connection: GET, PUT, and PATCH whose body has a resourceVersion (the server refuses the second of two);
// after 429: everything. done is called exactly once, from the loop, never from k8s_request itself.
int k8s_request(struct k8s_client *c, const char *method, const char *path, const char *content_type, const char *body,
                size_t body_len, k8s_done_fn *done, void *arg, struct err *e);

// A request with everything that can be said about one; what is 0 is as in k8s_request. Strings and body are copied.
struct k8s_request_options {
	const char *method, *path, *content_type, *body;
	size_t body_len;
	const char *verb;        // for the metrics hook, a literal; NULL: the method
	bool is_unguarded;       // goes out whatever may_write says: leases, token reviews
	bool is_background;      // others go first: status, Events. See base/http_client.h
	int64_t timeout_ms;      // 0: the client's. Of a stream: until the reply's headers
	int max_attempts;        // 0: the client's. Of a stream: 1, and once more after a 401
	int64_t idle_timeout_ms; // of a stream
	http_data_fn *on_data;   // a stream: see base/http_client.h; arg is the request's. NULL: none
	k8s_done_fn *done;
	void *arg;
};
// ret_call may be NULL. The call is gone when done runs.
int k8s_request_with(struct k8s_client *c, const struct k8s_request_options *options, struct k8s_call **ret_call,
                     struct err *e);
// done runs with ERR_CANCELED before this returns. From any callback but the call's own done.
void k8s_call_cancel(struct k8s_call *call);

// "deployments/scale" of /apis/apps/v1/namespaces/ns/deployments/x/scale?..., "discovery" of /apis/apps/v1, "other" of
// anything that is not a resource's path. Namespaces and names are left out, so the set stays small.
void k8s_path_class(const char *path, char out[K8S_RESOURCE_CLASS_BYTES]);

// Decodes the body of a failed reply (kind Status, or anything) into *e: kind from the HTTP status, message,
// retryAfterSeconds.
void k8s_status_to_err(int http_status, const char *body, size_t len, struct err *e);

#endif
