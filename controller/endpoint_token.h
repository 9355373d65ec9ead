// SPDX-License-Identifier: Apache-2.0
// The bearer token that the controller's endpoints ask for, in a file that may be replaced while we run. A file that
// cannot be used any more is logged, and the last good token stays.
#ifndef GPUSCALE_CONTROLLER_ENDPOINT_TOKEN_H
#define GPUSCALE_CONTROLLER_ENDPOINT_TOKEN_H

#include <stdbool.h>

struct endpoint_token;
struct err;
struct http_exchange;
struct log;

#define ENDPOINT_TOKEN_BYTES_MAX 4096

// path must live as long. NULL and *e when there is no token in it: one line of visible ASCII characters.
struct endpoint_token *endpoint_token_new(const char *path, struct log *log, struct err *e);
void endpoint_token_free(struct endpoint_token *t); // NULL is fine
// An http_admit_fn, arg is the token: /livez, /readyz and /healthz without ?verbose are for everybody, the rest for who
// shows the token. The time it takes does not tell how much of a wrong one was right.
bool endpoint_token_admit(void *arg, struct http_exchange *x);

#endif
