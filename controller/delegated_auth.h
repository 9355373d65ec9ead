// SPDX-License-Identifier: Apache-2.0
// May this request be answered? Who asks is found out by the authorities of the cluster (controller/authorities.h) or a
// TokenReview, what they may do by a SubjectAccessReview: RBAC decides, as for the API server itself. Answers are
// believed for 10 s. When the API server cannot be asked, nothing is allowed. Kubernetes: apiserver's delegated
// authentication and authorization.
#ifndef GPUSCALE_CONTROLLER_DELEGATED_AUTH_H
#define GPUSCALE_CONTROLLER_DELEGATED_AUTH_H

#include <stdbool.h>
#include <stdint.h>

struct access_attributes;
struct delegated_auth;
struct err;
struct http_exchange;
struct k8s_client;
struct log;

#define DELEGATED_AUTH_TTL_MS     10000
#define DELEGATED_AUTH_CACHE_MAX  4096 // answers of each kind
#define DELEGATED_AUTH_TIMEOUT_MS 5000 // of one review
// Checks under way; more get 429. So strangers with made-up tokens cannot crowd out what else we ask of the API server.
#define DELEGATED_AUTH_CHECKS_MAX 64

// client and log are not owned. Starts to watch the ConfigMap with the authorities. NULL and *e when memory ends.
struct delegated_auth *delegated_auth_new(struct k8s_client *client, struct log *log, struct err *e);
// Ends the watch: before the client is freed.
void delegated_auth_stop(struct delegated_auth *a);
// After the client has ended its requests (their checks end with 500 then). NULL is fine.
void delegated_auth_free(struct delegated_auth *a);

// status 200: allowed. 401, 403, 429, 500 or 503: not, and why.
typedef void delegated_auth_fn(void *arg, int status, const char *message);
// Calls done exactly once, maybe before this returns. attributes are read before it returns.
void delegated_auth_check(struct delegated_auth *a, const struct http_exchange *x,
                          const struct access_attributes *attributes, delegated_auth_fn *done, void *arg);

// Whether the authorities are known. Until then requests through the aggregation layer get 503.
bool delegated_auth_is_ready(const struct delegated_auth *a);

struct delegated_auth_stats {
	uint64_t token_reviews, access_reviews; // sent
	uint64_t allowed, denied, failed;       // checks
};
void delegated_auth_get_stats(const struct delegated_auth *a, struct delegated_auth_stats *ret_stats);

#endif
