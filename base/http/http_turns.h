// SPDX-License-Identifier: Apache-2.0
// Handlers whose reply takes long to write: one of them runs in each turn of the event loop, the others wait. However
// many clients request such a page at once, everything else in the loop waits for one page at most.
#ifndef GPUSCALE_BASE_HTTP_HTTP_TURNS_H
#define GPUSCALE_BASE_HTTP_HTTP_TURNS_H

#include "base/http/http_server.h"

struct http_turns;

// loop: that of the server. Returns NULL and *e when memory is exhausted.
struct http_turns *http_turns_new(struct event_base *loop, struct err *e);
// Drops the requests that wait. Call before http_server_free(). NULL is fine.
void http_turns_free(struct http_turns *t);
// As http_server_route(), at most HTTP_SERVER_ROUTES_MAX times; fn runs in a turn of its own.
int http_turns_route(struct http_turns *t, struct http_server *s, const char *path, http_handler_fn *fn, void *arg,
                     struct err *e);

#endif
