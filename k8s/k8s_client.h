// SPDX-License-Identifier: Apache-2.0
// REST against one API server: credentials kept fresh, Status objects decoded, 429/5xx retried as the server asks.
#ifndef GPUSCALE_K8S_K8S_CLIENT_H
#define GPUSCALE_K8S_K8S_CLIENT_H

#include <stddef.h>
#include <stdint.h>

struct clock;
struct err;
struct event_base;
struct http_client;
struct http_response;
struct k8s_client;
struct k8s_config;

struct k8s_client_options {
	struct event_base *loop;         // not owned
	struct http_client *http;        // not owned
	const struct clock *clock;       // not owned
	const struct k8s_config *config; // copied
	int64_t timeout_ms;              // per request; 0: 15 s
	int max_attempts; // for 429, 5xx and broken connections; 0: 4. Backoff 0.2 s doubling to 5 s, jittered, or
	                  // Retry-After (at most 30 s)
};

struct k8s_client_stats { // for /metrics: requests by method and status code class are kept by the caller's hook
	uint64_t requests, retries, token_refreshes;
};

struct k8s_client *k8s_client_new(const struct k8s_client_options *options, struct err *e);
void k8s_client_free(struct k8s_client *c); // outstanding requests end with ERR_CANCELED
void k8s_client_get_stats(const struct k8s_client *c, struct k8s_client_stats *ret_stats);

// 2xx: response, error NULL. Else: response NULL, error from the Status body ("deployments.apps \"x\" is forbidden:
// ..."), code = HTTP status.
typedef void k8s_done_fn(void *arg, const struct http_response *response, const struct err *error);
// path starts with '/' and is appended to the server's URL. content_type may be NULL without a body. A 401 refreshes
// the credentials and tries once more; a 409 is the caller's to handle and never retried here.
int k8s_request(struct k8s_client *c, const char *method, const char *path, const char *content_type, const char *body,
                size_t body_len, k8s_done_fn *done, void *arg, struct err *e);

// Decodes the body of a failed reply (kind Status, or anything) into *e: kind from the HTTP status, message,
// retryAfterSeconds.
void k8s_status_to_err(int http_status, const char *body, size_t len, struct err *e);

#endif
