// SPDX-License-Identifier: Apache-2.0
// Client of the Prometheus HTTP API v1: instant and range queries by POST, decoded into plain arrays.
#ifndef GPUSCALE_PROMQL_PROMQL_H
#define GPUSCALE_PROMQL_PROMQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http_client.h"

struct arena;
struct err;
struct promql;

#define PROMQL_SERIES_MAX      100000
#define PROMQL_LABELS_MAX      64
#define PROMQL_LABEL_BYTES_MAX 4096
#define PROMQL_SAMPLES_MAX     1000000
#define PROMQL_QUERY_BYTES_MAX (64 * 1024)

struct promql_options {
	struct http_client *http;      // not owned
	const char *url;               // base, "http://127.0.0.1:9090" or with a path prefix; trailing '/' allowed
	const char *bearer_token;      // or
	const char *bearer_token_file; // re-read every minute and after a 401; or
	const char *basic_user, *basic_password_file;
	const char *const *headers; // extra "Name: value" (X-Scope-OrgID, ...), NULL-terminated
	struct http_tls tls;
	int64_t timeout_ms;    // per query; 0: 10 s. Also sent as the server's own `timeout`
	size_t max_body_bytes; // 0: HTTP_BODY_BYTES_MAX
};

enum promql_type { PROMQL_VECTOR, PROMQL_SCALAR, PROMQL_MATRIX, PROMQL_STRING, PROMQL_TYPE__COUNT };

struct promql_label {
	const char *name, *value;
};
struct promql_sample {
	int64_t time_ms;
	double value; // may be NaN or Inf
};
struct promql_series {
	const struct promql_label *labels;
	size_t n_labels;
	const struct promql_sample *samples; // one for vector and scalar
	size_t n_samples;
};
struct promql_result {
	enum promql_type type;
	const struct promql_series *series;
	size_t n_series;
	const char *const *warnings; // a partial response counts as missing data: see obs_state
	size_t n_warnings;
};

// Copies the options. NULL and *e (ERR_INPUT) for an unusable URL or unreadable credential file.
struct promql *promql_new(const struct promql_options *options, struct err *e);
void promql_free(struct promql *p); // outstanding queries end with ERR_CANCELED

// Exactly one of result, error is non-NULL; the result lives in an arena of the call and is gone when this returns.
typedef void promql_done_fn(void *arg, const struct promql_result *result, const struct err *error);

// Instant query at time_ms (0: the server's now).
int promql_query(struct promql *p, const char *query, int64_t time_ms, promql_done_fn *done, void *arg, struct err *e);
// Range query, start and end inclusive, step >= 1 ms; more than 11000 steps is ERR_LIMIT.
int promql_query_range(struct promql *p, const char *query, int64_t start_ms, int64_t end_ms, int64_t step_ms,
                       promql_done_fn *done, void *arg, struct err *e);

// Value of a label, or "" .
const char *promql_label(const struct promql_series *s, const char *name);
// Decodes a reply body (what the fuzz target and the tests call): {"status":"success"|"error","data":...}. Everything
// in `a`. An error body gives ERR_REJECTED with the server's errorType and error text.
int promql_decode(struct arena *a, const char *body, size_t len, struct promql_result *ret_result, struct err *e);

#endif
