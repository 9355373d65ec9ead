// SPDX-License-Identifier: Apache-2.0
// REST client of one API server: keeps credentials up to date, decodes Status objects, and retries 429 and 5xx as the
// server requests.
#ifndef GPUSCALE_K8S_CLIENT_K8S_CLIENT_H
#define GPUSCALE_K8S_CLIENT_K8S_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k8s/client/k8s_request.h"

struct clock;
struct discovery;
struct err;
struct event_base;
struct http_client;
struct k8s_config;
struct k8s_credentials;

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
	const struct k8s_config *config; // not owned
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

// A client. Its users read the options and discovery only.
struct k8s_client {
	struct k8s_client_options options;
	struct discovery *discovery;
	struct k8s_credentials *credentials;
	struct k8s_call *requests;
	size_t n_requests;
	bool is_closing;
};

// Creates a client. Returns NULL and *e.
struct k8s_client *k8s_client_new(const struct k8s_client_options *options, struct err *e);
// Frees the client. Outstanding requests end with ERR_CANCELED (their callbacks run). Must not be called from such a
// callback. Call before the http_client is freed.
void k8s_client_free(struct k8s_client *c);

// Writes the class of a path to out: "deployments/scale" for /apis/apps/v1/namespaces/ns/deployments/x/scale?...,
// "discovery" for /apis/apps/v1, "other" for a path that is not of a resource. Namespaces and names are left out, so
// that the number of classes stays small.
void k8s_path_class(const char *path, char out[K8S_RESOURCE_CLASS_BYTES]);

// Fills *e from a failed reply: the kind from the HTTP status, and message and retryAfterSeconds from the body, if it
// is a Status.
void k8s_status_to_err(int http_status, const char *body, size_t len, struct err *e);

#endif
