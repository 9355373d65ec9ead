// SPDX-License-Identifier: Apache-2.0
// Client of the Prometheus HTTP API v1: sends instant and range queries by POST and decodes the responses into arrays.
#ifndef GPUSCALE_PROMQL_PROMQL_H
#define GPUSCALE_PROMQL_PROMQL_H

#include "promql/promql_config.h"
#include "promql/promql_result.h"

struct err;
struct promql;

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
