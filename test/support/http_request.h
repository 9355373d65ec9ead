// SPDX-License-Identifier: Apache-2.0
// What fakes ask of the HTTP server that the product does not: no page of the product takes a body.
#ifndef GPUSCALE_TEST_SUPPORT_HTTP_REQUEST_H
#define GPUSCALE_TEST_SUPPORT_HTTP_REQUEST_H

#include <stddef.h>

#include "base/http/http_server.h"

// As long as the values of base/http/http_server.h, these stay valid until the reply.
const char *http_exchange_body(const struct http_exchange *x, size_t *ret_len); // NUL-terminated
// Returns the requested host with its port: from an absolute request target, else from the Host header; NULL if neither
// is present.
const char *http_exchange_host(const struct http_exchange *x);
// Closes the connections that wait for a request, so that their clients come anew (to other TLS, say). Not to be called
// from a handler.
void http_server_drop_idle(struct http_server *s);

#endif
