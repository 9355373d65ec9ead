// SPDX-License-Identifier: Apache-2.0
// Replies shared by the handlers of the controller's endpoints.
#ifndef GPUSCALE_RUNTIME_ENDPOINT_REPLY_H
#define GPUSCALE_RUNTIME_ENDPOINT_REPLY_H

#include <stdbool.h>

struct buf;
struct http_exchange;

#define ENDPOINT_BYTES_MAX (64 * 1024 * 1024) // limit on one reply

// Returns whether the method is GET or HEAD. Otherwise replies 405; do not use x afterwards.
bool endpoint_is_read(struct http_exchange *x);
// Replies with `body`, or 500 when it exceeds its limit; frees `body`.
void endpoint_reply(struct http_exchange *x, int status, const char *type, struct buf *body);

#endif
