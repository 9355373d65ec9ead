// SPDX-License-Identifier: Apache-2.0
// The bearer token that the controller's endpoints demand, from a file that may be replaced while the process runs.
// When a changed file cannot be used, an error is logged and the previous token stays valid.
#ifndef GPUSCALE_RUNTIME_OPTIONS_ENDPOINT_TOKEN_H
#define GPUSCALE_RUNTIME_OPTIONS_ENDPOINT_TOKEN_H

#include <stdbool.h>

struct endpoint_token;
struct err;
struct http_exchange;
struct log;

#define ENDPOINT_TOKEN_BYTES_MAX 4096

// path must live as long. Returns NULL and *e unless the file holds a token: one line of visible ASCII characters.
struct endpoint_token *endpoint_token_new(const char *path, struct log *log, struct err *e);
void endpoint_token_free(struct endpoint_token *t); // NULL is fine
// An http_admit_fn; arg: the token. /livez, /readyz and /healthz without ?verbose need no token, all other paths do.
// Compares in constant time.
bool endpoint_token_admit(void *arg, struct http_exchange *x);

#endif
