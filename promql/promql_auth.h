// SPDX-License-Identifier: Apache-2.0
// What a Prometheus source is asked with: bearer token or basic password, from the options or from a file that may
// be rotated while we run. Private to promql/. A secret is never logged and never part of an error.
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
	int64_t read_at_ms;  // mono time of the last look at the file
	uint64_t generation; // grows whenever the secret changes
};

// Checks the credentials of the options and reads the file, if there is one. ERR_INPUT for more than one way at
// once or characters that would break the header, else as promql_auth_renew.
int promql_auth_init(struct promql_auth *a, const struct promql_options *options, int64_t now_mono_ms, struct err *e);
void promql_auth_done(struct promql_auth *a);
// Reads the file again when the last look is PROMQL_SECRET_AGE_MS old. A file that cannot be read leaves the secret
// as it was: the server says whether it still holds.
void promql_auth_refresh(struct promql_auth *a, int64_t now_mono_ms);
// After a 401: reads the file again now. *ret_changed says whether the secret differs from that of `generation`,
// so asking again makes sense. -1 and *e (ERR_NOT_FOUND, ERR_IO, ERR_LIMIT, ERR_INPUT) naming the file.
int promql_auth_renew(struct promql_auth *a, uint64_t generation, int64_t now_mono_ms, bool *ret_changed,
                      struct err *e);
// Puts the credentials into the request (pointers into *a).
void promql_auth_apply(const struct promql_auth *a, struct http_request *request);

#endif
