// SPDX-License-Identifier: Apache-2.0
// Client of the Prometheus HTTP API v1: instant and range queries by POST, decoded into plain arrays.
#ifndef GPUSCALE_PROMQL_PROMQL_H
#define GPUSCALE_PROMQL_PROMQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/http_client.h"

struct arena;
struct clock;
struct err;
struct promql;

#define PROMQL_SERIES_MAX       100000
#define PROMQL_LABELS_MAX       64
#define PROMQL_LABEL_BYTES_MAX  4096
#define PROMQL_SAMPLES_MAX      1000000
#define PROMQL_QUERY_BYTES_MAX  (64 * 1024)
#define PROMQL_STEPS_MAX        11000       // of a range query; Prometheus refuses more: web/api/v1
#define PROMQL_WARNINGS_MAX     64          // kept; one is enough to know that data is missing
#define PROMQL_SECRET_BYTES_MAX (16 * 1024) // token or password file
#define PROMQL_SECRET_AGE_MS    60000       // after which a token or password file is read again
#define PROMQL_TIMEOUT_MS       10000

#define PROMQL_VERSION_BYTES 32
#define PROMQL_LOOKBACK_MS   300000 // how far back an instant query looks when nothing else is asked

// Whose query API it is. They answer alike, but for what each must be asked so that it does (promql_dialect.c).
enum promql_kind {
	PROMQL_KIND_PROMETHEUS,
	PROMQL_KIND_THANOS,
	PROMQL_KIND_MIMIR,
	PROMQL_KIND_VICTORIAMETRICS,
	PROMQL_KIND_AUTO, // asked before the first query: /api/v1/status/buildinfo
	PROMQL_KIND__COUNT
};
extern const char *const promql_kind_names[]; // "Prometheus", ..; NULL-terminated

struct promql_options {
	struct http_client *http;      // not owned
	const char *url;               // base, "http://127.0.0.1:9090" or with a path prefix; trailing '/' allowed
	const char *bearer_token;      // or
	const char *bearer_token_file; // re-read every minute and after a 401; or
	const char *basic_user, *basic_password_file; // re-read likewise; at most one of the three ways
	const char *const *headers;                   // extra "Name: value" (X-Scope-OrgID, ...), NULL-terminated
	struct http_tls tls;
	enum promql_kind kind;
	bool use_get;              // GET instead of POST: for gateways that allow nothing else
	int64_t timeout_ms;        // per query; 0: 10 s. Also sent as the server's own `timeout`
	size_t max_body_bytes;     // 0: HTTP_BODY_BYTES_MAX
	const struct clock *clock; // not owned; NULL: the machine's
};

enum promql_type { PROMQL_VECTOR, PROMQL_SCALAR, PROMQL_MATRIX, PROMQL_STRING, PROMQL_TYPE__COUNT };
const char *promql_type_name(enum promql_type t); // "vector", ...

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
// Samples of a series are in order of time. Times are rounded to ms.
struct promql_result {
	enum promql_type type;
	const struct promql_series *series; // none for a string
	size_t n_series;
	const char *string;          // of PROMQL_STRING, else NULL
	const char *const *warnings; // a partial response counts as missing data: see obs_state
	size_t n_warnings;
};

// Copies the options. NULL and *e (ERR_INPUT, ERR_LIMIT) for an unusable URL, header or mix of credentials, and
// ERR_NOT_FOUND, ERR_IO for an unreadable credential file.
struct promql *promql_new(const struct promql_options *options, struct err *e);
// Outstanding queries end with ERR_CANCELED. Before http_client_free, and never from a promql_done_fn.
void promql_free(struct promql *p);

// Exactly one of result, error is non-NULL; the result lives in an arena of the client and is gone when this returns.
// Called once per accepted query, from the loop. Error kinds: those of http_client.h, those of
// err_kind_of_http_status for a status that is not 2xx, and those of promql_decode. The message names the source, and
// for a body that is not the API's its first line.
typedef void promql_done_fn(void *arg, const struct promql_result *result, const struct err *error);

struct promql_question {
	const char *query;
	int64_t time_ms; // 0: the server's now
	// How far back a sample may lie to be the present one. 0: the server's own; less than PROMQL_LOOKBACK_MS is
	// taken as that. A server that does not know the parameter (promql_dialect.c) looks back as far as it is
	// configured to.
	int64_t lookback_ms;
};
// Instant query. -1 and *e (ERR_INPUT, ERR_LIMIT, or of http_client_submit): then done is not called.
int promql_ask(struct promql *p, const struct promql_question *question, promql_done_fn *done, void *arg,
               struct err *e);
// Instant query at time_ms (0: the server's now). -1 and *e (ERR_INPUT, ERR_LIMIT, or of http_client_submit): then
// done is not called.
int promql_query(struct promql *p, const char *query, int64_t time_ms, promql_done_fn *done, void *arg, struct err *e);
// Range query, start and end inclusive, step >= 1 ms; more than 11000 steps is ERR_LIMIT.
int promql_query_range(struct promql *p, const char *query, int64_t start_ms, int64_t end_ms, int64_t step_ms,
                       promql_done_fn *done, void *arg, struct err *e);

// Whose API it is, PROMQL_KIND_AUTO while not known, and its version ("" when it does not say).
enum promql_kind promql_kind(const struct promql *p, const char **ret_version);
// Forgets what was found out about the server: it may be another one now. A kind that was given stays.
void promql_forget_kind(struct promql *p);

// Value of a label, or "" .
const char *promql_label(const struct promql_series *s, const char *name);
// Decodes a reply body (what the fuzz target and the tests call): {"status":"success"|"error","data":...}. Everything
// in `a`. An error body gives the kind of its errorType (bad_data and execution: ERR_REJECTED, timeout: ERR_TIMEOUT,
// internal and unavailable: ERR_SERVER, unknown ones: ERR_REJECTED) with the server's text, which names the position in
// the query. Anything that is not the API's is ERR_PROTOCOL with the place ("data.result[3].value[1]"), a passed
// ceiling ERR_LIMIT with both numbers, a native histogram ERR_UNSUPPORTED naming the series.
int promql_decode(struct arena *a, const char *body, size_t len, struct promql_result *ret_result, struct err *e);

#endif
