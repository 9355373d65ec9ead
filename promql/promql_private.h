// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the Prometheus client. Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_PRIVATE_H
#define GPUSCALE_PROMQL_PROMQL_PRIVATE_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "promql/promql.h"
#include "promql/promql_decoder.h"

struct promql_reply;

// ---- requests for a token of a workload identity, and their responses (identity.c) ----

#define IDENTITY_ANSWER_BYTES_MAX (64 * 1024)
#define IDENTITY_LIFETIME_MIN_MS  1000
#define IDENTITY_LIFETIME_MAX_MS  (7 * 24 * 3600 * 1000LL)

// A request for a token. Zeroed, then filled by identity_request_fill; identity_request_done wipes it.
struct identity_request {
	const char *method; // "GET" or "POST"
	char url[2048 + 256];
	const char *headers[3]; // NULL-terminated
	struct buf header;      // text of a header, which may be a secret
	struct buf body;        // empty with "GET"
};

// The content of the response: a bearer token, or with .key_id the three parts of Amazon's credentials. Owned texts.
struct identity_token {
	char *secret;
	char *key_id, *session; // NULL: a bearer token
	int64_t lifetime_ms;
};

// Checks what `kind` needs at start. `region`: of Amazon, NULL: $AWS_REGION. Writes it to ret_scope (as in struct
// http_aws; "" for the others). Returns 0, or -1 and *e (ERR_INPUT).
int identity_check(enum promql_identity kind, const char *region, char ret_scope[PROMQL_REGION_MAX + 16],
                   struct err *e);
// Fills the request for a token; reads the token files. Returns 0, or -1 and *e: ERR_INPUT for a missing variable, an
// unsafe endpoint or an unusable file, ERR_NOT_FOUND, ERR_IO, ERR_LIMIT.
int identity_request_fill(struct identity_request *r, enum promql_identity kind, const char *region, struct err *e);
void identity_request_done(struct identity_request *r);
// Reads a response with status 200. Returns 0, or -1 and *e (ERR_PROTOCOL, ERR_LIMIT), which never quotes it.
int identity_answer_read(enum promql_identity kind, const char *body, size_t len, int64_t now_wall_ms,
                         struct identity_token *ret_token, struct err *e);
void identity_token_done(struct identity_token *t);

// ---- the client ----

// The differences between the query APIs of Prometheus and compatible servers, as one table.
struct promql_dialect {
	const char *name;                          // for messages
	const char *instant_params, *range_params; // "&a=b", sent with every query
	const char *lookback_param;                // parameter with a duration; NULL: not supported
	int64_t lookback_ms;                       // sent when the question requests no longer one; 0: not sent
};
extern const struct promql_dialect promql_dialects[PROMQL_KIND__COUNT];
// Returns the kind of the server that sent body[0..len) as its reply to /api/v1/status/buildinfo. An unknown server
// is treated as Prometheus.
enum promql_kind promql_kind_of_buildinfo(const char *body, size_t len, char ret_version[static PROMQL_VERSION_BYTES]);

// The credentials: bearer token or basic password, from the options or from a file that may be rotated at any time, or
// the token of a workload identity, which promql_detect.c gets. A secret is never logged and never part of an error.
#define PROMQL_TOKEN_AGAIN_MS  10000  // minimum time between two requests for a token
#define PROMQL_TOKEN_EARLY_MS  300000 // before it expires, or a fifth of its lifetime, a token is replaced
#define PROMQL_TOKEN_MARGIN_MS 5000   // a token is not used in the last seconds

struct promql_auth {
	char *basic_user;    // owned; NULL: bearer token or nothing
	char *secret_file;   // owned; NULL: the secret never changes
	char *secret;        // owned; the token or password in use, NULL: no credentials
	int64_t read_at_ms;  // monotonic clock: when the file was last read
	uint64_t generation; // grows whenever the secret changes
	// A workload identity: its secret is `secret`. Times of the monotonic clock.
	enum promql_identity identity;
	char *region;           // owned; NULL: of the environment
	char *key_id, *session; // owned; of Amazon
	struct http_aws aws;    // credentials of Amazon, pointers into *this
	char scope[PROMQL_REGION_MAX + 16];
	int64_t replace_at_ms, valid_until_ms;
	int64_t asked_at_ms; // when a token was last requested
};

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
	LIST_HEAD(, promql_call) calls;
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
	LIST_ENTRY(promql_call) link;
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
// Reads the file again when it was last read PROMQL_SECRET_AGE_MS ago. When the file cannot be read, the secret stays
// in use: the server decides whether it is still valid.
void promql_auth_refresh(struct promql_auth *a, int64_t now_mono_ms);
// Reads the file again now, after a 401. *ret_changed is true when the secret differs from that of `generation`, so
// that a retry can succeed. Returns 0, or -1 and *e, which names the file: ERR_NOT_FOUND, ERR_IO, ERR_LIMIT, ERR_INPUT.
int promql_auth_renew(struct promql_auth *a, uint64_t generation, int64_t now_mono_ms, bool *ret_changed,
                      struct err *e);
// Returns whether requests can be sent: false until a token of the workload identity is valid.
bool promql_auth_is_ready(const struct promql_auth *a, int64_t now_mono_ms);
// Returns whether a new token of the workload identity is to be requested.
bool promql_auth_wants_token(const struct promql_auth *a, int64_t now_mono_ms);
// Uses the token from now on, which it takes over.
void promql_auth_set_token(struct promql_auth *a, struct identity_token *token, int64_t now_mono_ms);
// Reports that the server refused the token of `generation`. Returns whether a retry can succeed: there is a newer one,
// or it may be requested.
bool promql_auth_token_refused(struct promql_auth *a, uint64_t generation, int64_t now_mono_ms);
// Adds the credentials to the request, as pointers into *a.
void promql_auth_apply(const struct promql_auth *a, struct http_request *request);

// Gets what the waiting calls lack: a token of the workload identity, and then the kind of the server. They are sent,
// or fail, when the replies arrive. Returns 0, or -1 and *e when a request cannot be sent.
int promql_detect(struct promql *p, int64_t now_mono_ms, struct err *e);
// Requests a token, unless one is being requested. Returns 0, or -1 and *e.
int promql_fetch_token(struct promql *p, struct err *e);
// Sends a call to a server of a known kind. Returns 0, or -1 and *e.
int promql_send(struct promql_call *call, int64_t now_mono_ms, struct err *e);
// Records the server's Date from a reply that took elapsed_us. Updates clock_offset_ms if our clock was set.
void promql_note_clock(struct promql *p, int64_t date_ms, int64_t elapsed_us);
// Records that the server sent no Date when it was requested: queries use our clock.
void promql_forget_clock_step(struct promql *p);
// Ends a call with an error that already names the server.
void promql_end_failed(struct promql_call *call, const struct err *error);

#endif
