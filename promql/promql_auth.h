// SPDX-License-Identifier: Apache-2.0
// The credentials of a Prometheus source: bearer token or basic password, from the options or from a file that may be
// rotated at any time. Private to promql/. A secret is never logged and never part of an error.
#ifndef GPUSCALE_PROMQL_PROMQL_AUTH_H
#define GPUSCALE_PROMQL_PROMQL_AUTH_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct http_request;
struct promql_options;

struct promql_auth {
	char *basic_user;    // owned; NULL: bearer token or nothing
	char *secret_file;   // owned; NULL: the secret never changes
	char *secret;        // owned; the token or password in use, NULL: no credentials
	int64_t read_at_ms;  // monotonic clock: when the file was last read
	uint64_t generation; // grows whenever the secret changes
};

// Checks the credentials of the options and reads their file, if any. Returns 0, or -1 and *e: ERR_INPUT for more than
// one type of credentials or for characters that are invalid in a header, otherwise as promql_auth_renew.
int promql_auth_init(struct promql_auth *a, const struct promql_options *options, int64_t now_mono_ms, struct err *e);
void promql_auth_done(struct promql_auth *a);
// Reads the file again when it was last read PROMQL_SECRET_AGE_MS ago. When the file cannot be read, the secret stays
// in use: the server decides whether it is still valid.
void promql_auth_refresh(struct promql_auth *a, int64_t now_mono_ms);
// Reads the file again now, after a 401. *ret_changed is true when the secret differs from that of `generation`, so
// that a retry can succeed. Returns 0, or -1 and *e, which names the file: ERR_NOT_FOUND, ERR_IO, ERR_LIMIT, ERR_INPUT.
int promql_auth_renew(struct promql_auth *a, uint64_t generation, int64_t now_mono_ms, bool *ret_changed,
                      struct err *e);
// Adds the credentials to the request, as pointers into *a.
void promql_auth_apply(const struct promql_auth *a, struct http_request *request);

#endif
