// SPDX-License-Identifier: Apache-2.0
// The server of external.metrics.k8s.io/v1beta1: TLS always, every request but a probe authenticated and authorized as
// the API server would, values from the policies in force.
#ifndef GPUSCALE_CONTROLLER_EXTERNAL_EXTERNAL_METRICS_SERVER_H
#define GPUSCALE_CONTROLLER_EXTERNAL_EXTERNAL_METRICS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct access_attributes;
struct authenticator;
struct buf;
struct clock;
struct metrics_path;
struct decision;
struct delegated_auth;
struct err;
struct event_base;
struct external_metrics_server;
struct http_exchange;
struct k8s_client;
struct k8s_user;
struct log;
struct metrics;
struct policy;
struct review_cache;
struct scale_target;

// ---- the values (external_values.c) ----
// The values of the external metrics API: the signals of the policies in force, and their desired replicas. A name is
//   SIGNAL          the signal of that name of every policy of the namespace, distinguished by labels
//   POLICY:SIGNAL   the signal of one policy
//   @desired-replicas, POLICY:@desired-replicas   the desired replicas
// A value is returned only if its query succeeded and its sample is younger than staleAfter. If one of the requested
// values is not usable, none is returned: a sum that silently lacks a part would scale the wrong way.

#define EXTERNAL_VALUES_MAX      1000 // of one reply
#define EXTERNAL_NAMES_MAX       1000 // listed by discovery; there may be more
#define EXTERNAL_DESIRED         "@desired-replicas"
#define EXTERNAL_DECISION_AGE_MS 15000 // a decision is usable for two intervals of its policy plus this

// One policy in force, as the controller has it.
struct external_source {
	const struct policy *policy;
	const struct scale_target *target;
	const struct decision *decision; // the last one; NULL: none yet
	const char *error;               // why the last tick made none; "": it did
};
// Returns the i-th policy, from 0 on; false past the last.
typedef bool external_source_fn(void *arg, size_t i, struct external_source *ret_source);

// Appends the ExternalMetricValueList of `metric` in the namespace, with the values whose labels (policy, signal,
// target_kind, target_name) match the selector (NULL: all). wall_ms: now. Returns -1 and *e: ERR_NOT_FOUND no policy of
// the namespace has the metric, ERR_INPUT invalid selector, ERR_LIMIT too many values, ERR_SERVER a value is not
// usable.
int external_values_write(struct buf *out, external_source_fn *next, void *arg, const char *namespace_name,
                          const char *metric, const char *selector, int64_t wall_ms, struct err *e);

// Appends the MetricValueList (custom.metrics.k8s.io) of a signal, or of EXTERNAL_DESIRED, of the policy whose target
// is the object of `path`, or of the policy itself (gpuautoscalers.gpuscale.dev). Returns as external_values_write;
// ERR_INPUT also when several policies match.
int custom_value_write(struct buf *out, external_source_fn *next, void *arg, const struct metrics_path *path,
                       const char *selector, int64_t wall_ms, struct err *e);

// The names that discovery lists: each signal's once, and EXTERNAL_DESIRED. Names with a policy in front are served,
// but not listed: discovery is open to every user of the cluster. Returns how many; the texts belong to the policies.
size_t external_values_names(external_source_fn *next, void *arg, const char *ret_names[EXTERNAL_NAMES_MAX]);

// ---- the server ----

struct external_metrics_server_options {
	struct event_base *loop; // not owned, as all below
	struct k8s_client *client;
	const struct clock *clock;
	struct log *log;
	struct metrics *metrics; // counts the requests; may be NULL
	const char *listen;
	const char *cert_file, *key_file; // NULL: a certificate is generated at start
	int tls_min_minor;                // as in http_server_options
	external_source_fn *next;         // the policies in force
	bool (*has_synced)(void *arg);    // whether all policies are known; before, no metric is reported as unknown
	void *arg;                        // of both
};

// Listens at once. Returns NULL and *e (ERR_IO, ERR_TLS, ERR_USAGE) on failure.
struct external_metrics_server *external_metrics_server_new(const struct external_metrics_server_options *options,
                                                            struct err *e);
// Stops its requests to the API server. Call before the client is freed.
void external_metrics_server_stop(struct external_metrics_server *m);
// Call after the client has ended its requests. NULL is fine.
void external_metrics_server_free(struct external_metrics_server *m);
uint16_t external_metrics_server_port(const struct external_metrics_server *m);

// ---- whether a request is answered (delegated_auth.c) ----
// Decides whether a request is answered. Authenticates it by certificate or
// TokenReview, and authorizes it by SubjectAccessReview: RBAC decides, as for the API server itself. Answers are cached
// for 10 s. When the API server does not answer, the request is refused.
// Kubernetes: apiserver's delegated authentication and authorization.

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
// Authenticates and authorizes the request x. Calls done exactly once, maybe before this returns; until then, the texts
// of the attributes must stay valid, as those of x do.
void delegated_auth_check(struct delegated_auth *a, const struct http_exchange *x,
                          const struct access_attributes *attributes, delegated_auth_fn *done, void *arg);

// Returns whether the ConfigMap was read. Until then, requests through the aggregation layer get 503.
bool delegated_auth_is_ready(const struct delegated_auth *a);

// ---- the cache of answers ----
// Keeps answers of the API server for a short time, by digest of the question. The oldest answer makes room for a new
// one.

#define REVIEW_KEY_BYTES    32 // the SHA-256 of the question
#define REVIEW_REASON_BYTES 256

struct review_answer {
	int yes;                          // 0 or 1
	struct k8s_user *user;            // of a token; NULL if none. The cache holds a reference of its own
	char reason[REVIEW_REASON_BYTES]; // why not, for people
};

// max: entries of positive answers, and as many of negative ones, so that neither evict the others.
struct review_cache *review_cache_new(size_t max, int64_t ttl_ms);
void review_cache_free(struct review_cache *c); // NULL is fine
// Returns NULL when there is no answer, or it is too old. Valid until the next put.
const struct review_answer *review_cache_get(struct review_cache *c, const unsigned char key[REVIEW_KEY_BYTES],
                                             int64_t mono_ms);
// Stores an answer, replacing one to the same question.
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
