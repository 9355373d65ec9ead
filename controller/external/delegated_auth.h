// SPDX-License-Identifier: Apache-2.0
// Decides whether a request is answered. Authenticates it by certificate or
// TokenReview, and authorizes it by SubjectAccessReview: RBAC decides, as for the API server itself. Answers are cached
// for 10 s. When the API server does not answer, the request is refused.
// Kubernetes: apiserver's delegated authentication and authorization.
#ifndef GPUSCALE_CONTROLLER_EXTERNAL_DELEGATED_AUTH_H
#define GPUSCALE_CONTROLLER_EXTERNAL_DELEGATED_AUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct access_attributes;
struct authenticator;
struct delegated_auth;
struct err;
struct http_exchange;
struct k8s_client;
struct k8s_user;
struct log;
struct review_cache;

#define DELEGATED_AUTH_TTL_MS     10000
#define DELEGATED_AUTH_CACHE_MAX  4096 // positive and negative answers each, of tokens and of accesses each
#define DELEGATED_AUTH_TIMEOUT_MS 5000 // of one review
// Limits the checks that wait for a review; further checks get 429, so that they cannot crowd out the controller's
// other requests to the API server. A check with a cached answer does not wait. Requests with a bearer token, valid or
// not, may use only a part of the limit, because anyone can invent tokens and every pod has one; some further places
// are for addresses of which no other check waits. The rest is reserved for the API server's own requests.
#define DELEGATED_AUTH_CHECKS_MAX    64
#define DELEGATED_AUTH_STRANGERS_MAX 48
#define DELEGATED_AUTH_FIRSTS_MAX    8

// Starts to watch the ConfigMap extension-apiserver-authentication. Does not own client and log. Returns NULL and *e
// when memory is exhausted.
struct delegated_auth *delegated_auth_new(struct k8s_client *client, struct log *log, struct err *e);
// Stops the watch. Call before the client is freed.
void delegated_auth_stop(struct delegated_auth *a);
// Call after the client has ended its requests; their checks end with 500. NULL is fine.
void delegated_auth_free(struct delegated_auth *a);

// status 200: the request is allowed. 401, 403, 429, 500 or 503: it is refused; message: why.
typedef void delegated_auth_fn(void *arg, int status, const char *message);
// Authenticates and authorizes the request x. Calls done exactly once, maybe before this returns; reads attributes
// before it returns.
void delegated_auth_check(struct delegated_auth *a, const struct http_exchange *x,
                          const struct access_attributes *attributes, delegated_auth_fn *done, void *arg);

// Returns whether the ConfigMap was read. Until then, requests through the aggregation layer get 503.
bool delegated_auth_is_ready(const struct delegated_auth *a);

// ---- the cache of answers ----
// Keeps answers of the API server for a short time, by digest of the question. The oldest answer makes room for a new
// one.

#define REVIEW_KEY_BYTES    32
#define REVIEW_REASON_BYTES 256

struct review_answer {
	int yes;                          // 0 or 1
	struct k8s_user *user;            // of a token; NULL if none. The cache holds a reference of its own
	char reason[REVIEW_REASON_BYTES]; // why not, for people
};

// max: entries of positive answers, and as many of negative ones, so that neither evict the others. Returns NULL when
// memory is exhausted.
struct review_cache *review_cache_new(size_t max, int64_t ttl_ms);
void review_cache_free(struct review_cache *c); // NULL is fine
// Writes the SHA-256 of the question.
void review_cache_key(const void *question, size_t len, unsigned char out[REVIEW_KEY_BYTES]);
// Returns NULL when there is no answer, or it is too old. Valid until the next put.
const struct review_answer *review_cache_get(struct review_cache *c, const unsigned char key[REVIEW_KEY_BYTES],
                                             int64_t mono_ms);
// Stores an answer, replacing one to the same question. Does nothing when memory is exhausted.
void review_cache_put(struct review_cache *c, const unsigned char key[REVIEW_KEY_BYTES],
                      const struct review_answer *answer, int64_t mono_ms);

// ---- who a request is from (authenticator.c) ----
// The aggregation layer presents a certificate of its own CA and names the user in headers; a client presents a
// certificate of the client CA, or a bearer token, which the API server has to review. Kubernetes: apiserver's
// DelegatingAuthenticatorConfig, in this order.

// json: ConfigMap kube-system/extension-apiserver-authentication. Returns NULL and *e when it cannot be used.
struct authenticator *authenticator_new(const char *json, size_t len, struct err *e);
void authenticator_free(struct authenticator *a); // NULL is fine

enum identity {
	IDENTITY_NONE,  // not authenticated; *e: why the credentials were refused, kind ERR_NONE without credentials
	IDENTITY_USER,  // *ret_user is the caller's reference, in system:authenticated
	IDENTITY_TOKEN, // *ret_token lives until the reply
};
// a NULL: no authority is known, so only tokens count. Headers that name a user count only with a certificate of the
// aggregation layer's authority and one of its common names.
enum identity authenticator_identify(const struct authenticator *a, const struct http_exchange *x,
                                     struct k8s_user **ret_user, const char **ret_token, struct err *e);

#endif
