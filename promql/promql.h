// SPDX-License-Identifier: Apache-2.0
// Client of the Prometheus HTTP API v1: sends instant and range queries by POST and decodes the responses into arrays.
#ifndef GPUSCALE_PROMQL_PROMQL_H
#define GPUSCALE_PROMQL_PROMQL_H

#include <sys/queue.h>

#include "base/http/http_client.h"

struct clock;
struct err;
struct promql;

// ---- the server that a client queries, and how ----

#define PROMQL_SECRET_BYTES_MAX (16 * 1024) // token or password file
#define PROMQL_SECRET_AGE_MS    60000       // after which a token or password file is read again
#define PROMQL_TIMEOUT_MS       10000

#define PROMQL_VERSION_BYTES 32
#define PROMQL_LOOKBACK_MS   300000 // the lookback of an instant query by default

// The kind of server. Their responses are alike, but some need different parameters (promql_detect.c).
enum promql_kind {
	PROMQL_KIND_PROMETHEUS,
	PROMQL_KIND_THANOS,
	PROMQL_KIND_MIMIR,
	PROMQL_KIND_VICTORIAMETRICS,
	PROMQL_KIND_AUTO, // detected before the first query: /api/v1/status/buildinfo
	PROMQL_KIND__COUNT
};
extern const char *const promql_kind_names[]; // "Prometheus", ..; NULL-terminated

// The cloud whose workload identity is used (promql/identity.c).
enum promql_identity {
	PROMQL_IDENTITY_NONE,
	PROMQL_IDENTITY_GOOGLE,
	PROMQL_IDENTITY_AMAZON,
	PROMQL_IDENTITY_AZURE,
	PROMQL_IDENTITY__COUNT
};
extern const char *const promql_identity_names[]; // "None", "Google", ..; NULL-terminated
#define PROMQL_REGION_MAX 40

// Credentials that replace those of a client. A bearer token or a basic user with its password.
struct promql_credentials {
	const char *bearer_token;
	const char *basic_user, *basic_password;
	const char *header;                      // "Name: value", sent as well; NULL: none
	const char *ca_pem, *cert_pem, *key_pem; // ca_pem NULL: the CAs of the options
};

// The memory that answers being decoded share: when it is used up, the largest of them fails.
struct promql_budget {
	size_t max_bytes, used_bytes;
	LIST_HEAD(, promql_answer) answers; // private
};

struct promql_options {
	struct http_client *http;      // not owned
	const char *url;               // base, "http://127.0.0.1:9090" or with a path prefix; trailing '/' allowed
	const char *bearer_token;      // or
	const char *bearer_token_file; // re-read every minute and after a 401; or
	const char *basic_user, *basic_password_file; // re-read likewise; or
	enum promql_identity identity;                // at most one of the four ways
	const char *region;                           // with Amazon; NULL: $AWS_REGION
	const char *const *headers;                   // extra "Name: value" (X-Scope-OrgID, ...), NULL-terminated
	struct http_tls tls;
	enum promql_kind kind;
	bool use_get;                 // GET instead of POST: for gateways that allow nothing else
	int64_t timeout_ms;           // per query; 0: 10 s. Also sent as the server's own `timeout`
	size_t max_body_bytes;        // size of a response, which is decoded as it arrives; 0: HTTP_BODY_BYTES_MAX
	const struct clock *clock;    // not owned; NULL: the system clock
	struct promql_budget *budget; // memory shared with other clients; not owned; NULL: the client's own
};

// ---- responses, decoded into plain arrays ----

#define PROMQL_SERIES_MAX      5000 // per answer
#define PROMQL_LABELS_MAX      64
#define PROMQL_LABEL_BYTES_MAX 4096
#define PROMQL_SAMPLES_MAX     500000 // per answer
#define PROMQL_WARNINGS_MAX    64     // further ones are dropped; one is enough to know that data is missing

// Memory limits. docs/evidence/performance.md adds them up to the limit in the manifests: change both together.
#define PROMQL_ANSWER_BYTES_MAX     ((size_t)4 * 1024 * 1024)  // for one decoded instant answer
#define PROMQL_RANGE_BYTES_MAX      ((size_t)12 * 1024 * 1024) // for one decoded range
#define PROMQL_ANSWERS_BYTES_MAX    ((size_t)24 * 1024 * 1024) // for all answers being decoded at the same time
#define PROMQL_ERROR_BODY_BYTES_MAX ((size_t)128 * 1024)       // size of a reply whose status is not 2xx

enum promql_type { PROMQL_VECTOR, PROMQL_SCALAR, PROMQL_MATRIX, PROMQL_STRING, PROMQL_TYPE__COUNT };
extern const char *const promql_type_names[PROMQL_TYPE__COUNT]; // "vector", ..

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
	const char *string;          // text of PROMQL_STRING, else NULL
	const char *const *warnings; // a partial response is treated as missing data: see obs_state
	size_t n_warnings;
	int64_t clock_offset_ms; // subtracted from the times of samples; not from values that are times
};

// Returns the value of a label, or "".
const char *promql_label(const struct promql_series *s, const char *name);
// For responses from which nothing may be missing. Leaves *ret_error alone when `result` is whole, and else stores
// `error` (`result` is not read then), or ERR_PROTOCOL for a response with warnings.
void promql_result_check(const struct promql_result *result, const struct err *error, struct err *ret_error);

// ---- the client ----

#define PROMQL_QUERY_BYTES_MAX (64 * 1024)
#define PROMQL_STEPS_MAX       11000 // steps of a range query; Prometheus refuses more: web/api/v1

// Creates a client; copies the options. Returns NULL and *e: ERR_INPUT, ERR_LIMIT for an invalid URL, header or
// combination of credentials; ERR_NOT_FOUND, ERR_IO for a credential file that cannot be read; ERR_INTERNAL.
struct promql *promql_new(const struct promql_options *options, struct err *e);
// Frees the client. Outstanding queries end with ERR_CANCELED. Call before http_client_free, and never from a
// promql_done_fn.
void promql_free(struct promql *p);

// Replaces the credentials, for queries from now on; those of a workload identity cannot be replaced. Copies *c.
// Returns 0, or -1 and *e (ERR_INPUT, ERR_LIMIT, ERR_INTERNAL), which has no secret; then the credentials are as
// before.
int promql_set_credentials(struct promql *p, const struct promql_credentials *c, struct err *e);
// Sets in *o what a client of the same server needs: kind, timeout, limits, method and trusted CAs; no credentials. The
// texts are valid as long as the client.
void promql_get_settings(const struct promql *p, struct promql_options *o);

// Receives the outcome of a query. Called once per accepted query, from the loop. Exactly one of result and error is
// non-NULL; the result is in an arena of the client and valid only during the call. Error kinds: those of
// http_client.h, those of err_kind_of_http_status for a status other than 2xx, and those of promql_decoder_feed. The
// message names the source and, for a body that is not from the API, quotes its first line. A response that is too
// large is aborted as soon as it exceeds a limit; the rest is not downloaded.
typedef void promql_done_fn(void *arg, const struct promql_result *result, const struct err *error);

struct promql_question {
	const char *query;
	int64_t time_ms; // 0: the server's now
	// A range query instead of an instant one: from start_ms to end_ms, both inclusive, in steps of step_ms >= 1.
	// More than PROMQL_STEPS_MAX steps are ERR_LIMIT.
	bool is_range;
	int64_t start_ms, end_ms, step_ms;
	// The maximum age of a sample that is treated as current. 0: the default of the server; a value below
	// PROMQL_LOOKBACK_MS is treated as PROMQL_LOOKBACK_MS. Servers without the parameter (promql_detect.c) use
	// their configuration.
	int64_t lookback_ms;
	int64_t timeout_ms; // 0: the client's, which is also the maximum
	size_t max_series;  // above it, the query fails with ERR_TOO_LARGE, code max_series; 0: PROMQL_SERIES_MAX
	const char *const *labels; // the only labels to keep, NULL-terminated, must outlive the result; NULL: all
};
// Sends a query. Returns 0, or -1 and *e (ERR_INPUT, ERR_LIMIT, or of http_client_submit); then done is not
// called.
int promql_ask(struct promql *p, const struct promql_question *question, promql_done_fn *done, void *arg,
               struct err *e);

// Returns by how much the server's clock is ahead of our clock (< 0: behind), in ms, from the Date of its last reply.
// The result is the smallest difference that explains the Date, so that neither its whole seconds nor a slow reply
// are treated as a difference. 0: equal or unknown.
int64_t promql_skew_ms(const struct promql *p);
// Reports that our wall clock was set by step_ms (> 0: forward). Before the next query, the client requests the
// server's Date. Where the server's clock was not set as well, queries use the server's clock from then on, and the
// times in responses are converted to our clock.
void promql_clock_was_set(struct promql *p, int64_t step_ms);
// Returns the part of promql_skew_ms that remains when times are converted between the two clocks; 0 when the
// conversion explains it.
int64_t promql_unexplained_skew_ms(const struct promql *p);

// Returns the kind of the server, PROMQL_KIND_AUTO while it is unknown, and its version ("": unknown).
enum promql_kind promql_kind(const struct promql *p, const char **ret_version);
// Detects the kind of the server again before the next query, because the server may have been replaced. Has no effect
// when the kind is configured.
void promql_forget_kind(struct promql *p);

#endif
