// SPDX-License-Identifier: Apache-2.0
// REST against one API server: credentials kept fresh, Status objects decoded, 429/5xx retried as the server asks.
#ifndef GPUSCALE_K8S_K8S_CLIENT_H
#define GPUSCALE_K8S_K8S_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct clock;
struct err;
struct event_base;
struct http_client;
struct http_response;
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
	const char *verb;     // "GET", "PATCH", ...
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
};

struct k8s_client_stats {
	uint64_t requests; // attempts sent
	uint64_t retries, token_refreshes;
};

struct k8s_client *k8s_client_new(const struct k8s_client_options *options, struct err *e);
// Outstanding requests end with ERR_CANCELED (their callbacks run). Not to be called from such a callback, and before
// the http_client is freed.
void k8s_client_free(struct k8s_client *c);
// The server's URL, for messages. Valid as long as the client.
const char *k8s_client_server(const struct k8s_client *c);
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

// "deployments/scale" of /apis/apps/v1/namespaces/ns/deployments/x/scale?..., "discovery" of /apis/apps/v1, "other" of
// anything that is not a resource's path. Namespaces and names are left out, so the set stays small.
void k8s_path_class(const char *path, char out[K8S_RESOURCE_CLASS_BYTES]);

// Decodes the body of a failed reply (kind Status, or anything) into *e: kind from the HTTP status, message,
// retryAfterSeconds.
void k8s_status_to_err(int http_status, const char *body, size_t len, struct err *e);

#endif
