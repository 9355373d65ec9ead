// SPDX-License-Identifier: Apache-2.0
// The credentials of a Prometheus source: bearer token or basic password, from the options or from a file that may be
// rotated at any time, or the token of a workload identity, which promql/promql_detect.c gets. Private to promql/. A
// secret is never logged and never part of an error.
#ifndef GPUSCALE_PROMQL_PROMQL_AUTH_H
#define GPUSCALE_PROMQL_PROMQL_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "promql/promql_config.h"

struct err;
struct http_request;
struct identity_token;
struct promql_options;

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

// Checks the credentials of the options and reads their file, if any. Returns 0, or -1 and *e: ERR_INPUT for more than
// one type of credentials or for characters that are invalid in a header, otherwise as promql_auth_renew.
int promql_auth_init(struct promql_auth *a, const struct promql_options *options, int64_t now_mono_ms, struct err *e);
void promql_auth_done(struct promql_auth *a);
// Replaces the credentials by those of *c, which are copied; the header and the certificate are not looked at. Returns
// 0, or -1 and *e: ERR_INPUT, ERR_INTERNAL; then they are as before.
int promql_auth_set(struct promql_auth *a, const struct promql_credentials *c, struct err *e);
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

#endif
