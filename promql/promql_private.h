// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the Prometheus client. Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_PRIVATE_H
#define GPUSCALE_PROMQL_PROMQL_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "promql/promql.h"
#include "promql/promql_auth.h"
#include "promql/promql_budget.h"
#include "promql/promql_decoder.h"

struct promql_reply;

// The differences between the query APIs of Prometheus and compatible servers, as one table.
struct promql_dialect {
	const char *name;                          // for messages
	const char *instant_params, *range_params; // "&a=b", sent with every query
	const char *lookback_param;                // parameter with a duration; NULL: not supported
	int64_t lookback_ms;                       // sent when the question requests no longer one; 0: not sent
};
// Returns the row of a kind; never NULL.
const struct promql_dialect *promql_dialect_of(enum promql_kind kind);
// Returns the kind of the server that sent body[0..len) as its reply to /api/v1/status/buildinfo. An unknown server
// is treated as Prometheus.
enum promql_kind promql_kind_of_buildinfo(const char *body, size_t len, char ret_version[static PROMQL_VERSION_BYTES]);

struct promql {
	struct http_client *http;
	char *url; // base without trailing '/', for messages
	char *query_url, *range_url, *buildinfo_url;
	char **headers;   // NULL-terminated, with room for one more
	size_t n_headers; // of the options; the one of the credentials follows them
	char *timeout;    // as in the form of a request
	struct http_tls tls;
	int64_t timeout_ms;
	size_t max_body_bytes;
	struct promql_auth auth;
	const struct clock *clock;
	struct clock own_clock;
	struct promql_budget *budget, own_budget;
	struct promql_reply *free_replies;
	struct promql_call *calls;
	bool use_get;
	enum promql_kind asked_kind; // kind in the options
	enum promql_kind kind;       // PROMQL_KIND_AUTO: not known yet
	char version[PROMQL_VERSION_BYTES];
	struct http_call *detection;   // the request in flight; NULL: none
	struct http_call *token_fetch; // likewise, for a token of the workload identity
	struct err token_error;        // error of the last fetch that failed
	bool closing, in_callback;
	int64_t skew_min_ms, skew_max_ms; // between these: the server's clock minus ours at its last reply
	int64_t clock_offset_ms;          // added to the times of queries and subtracted from the times of responses
	int64_t clock_step_ms;            // by how much our clock was set since the offset was determined
	bool must_ask_date;               // the Date must be requested before the next query
};

struct promql_call {
	struct promql *p;
	struct promql_call *prev, *next;
	struct http_call *http;          // NULL: not sent until the kind of the server is known
	struct promql_question question; // its query is in the form
	struct buf form;
	int64_t timeout_ms;
	struct promql_decoder_options decoding;
	struct promql_reply *reply; // NULL: no byte has arrived
	int64_t started_mono_ms;
	uint64_t generation;    // generation of the secret that it was sent with
	bool retried, is_built; // the form is complete
	promql_done_fn *done;
	void *arg;
};

// Checks `o` and copies it into *p, which is zeroed. Returns 0, or -1 and *e as promql_new. In both cases,
// promql_free_options frees the copies.
int promql_take_options(struct promql *p, const struct promql_options *o, struct err *e);
void promql_free_options(struct promql *p);

// Gets what the waiting calls lack: a token of the workload identity, and then the kind of the server. They are sent,
// or fail, when the replies arrive. Returns 0, or -1 and *e when a request cannot be sent.
int promql_detect(struct promql *p, int64_t now_mono_ms, struct err *e);
// Requests a token, unless one is being requested. Returns 0, or -1 and *e.
int promql_fetch_token(struct promql *p, struct err *e);
// Continues after a request for a token, which failed with `error` (NULL: it did not).
void promql_continue(struct promql *p, const struct err *error);
// Sends a call to a server of a known kind. Returns 0, or -1 and *e.
int promql_send(struct promql_call *call, int64_t now_mono_ms, struct err *e);
// Records the server's Date from a reply that took elapsed_us. Updates clock_offset_ms if our clock was set.
void promql_note_clock(struct promql *p, int64_t date_ms, int64_t elapsed_us);
// Records that the server sent no Date when it was requested: queries use our clock.
void promql_forget_clock_step(struct promql *p);
// Ends a call with an error that already names the server.
void promql_end_failed(struct promql_call *call, const struct err *error);

#endif
