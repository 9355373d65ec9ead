// SPDX-License-Identifier: Apache-2.0
// Requests to one API server. k8s/client/k8s_client.h creates the client; k8s_client.c implements these functions.
#ifndef GPUSCALE_K8S_CLIENT_K8S_REQUEST_H
#define GPUSCALE_K8S_CLIENT_K8S_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http/http_client.h"

struct err;
struct k8s_call;
struct k8s_client;

#define K8S_PATH_BYTES_MAX 8192

// Returns whether text can be used as the name of a namespace or object in a URL: letters, digits, '-', '.' and '_', at
// most 253 characters, not only dots.
bool k8s_name_is_valid(const char *text);

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

#endif
