// SPDX-License-Identifier: Apache-2.0
// The controller's HTTP face: /livez /readyz /healthz /metrics /debug/decisions /version, and what
// controller/overview_endpoints.h adds.
#ifndef GPUSCALE_CONTROLLER_ENDPOINTS_H
#define GPUSCALE_CONTROLLER_ENDPOINTS_H

#include <stdbool.h>

struct buf;
struct controller;
struct err;
struct http_exchange;
struct http_server;

#define ENDPOINT_BYTES_MAX (64 * 1024 * 1024) // of one reply

// Adds the routes; the controller must outlive the server.
int endpoints_add(struct http_server *server, struct controller *controller, struct err *e);

// ---- for those who add routes ----

// Only GET and HEAD; anything else is answered here: false, and x is gone.
bool endpoint_is_read(struct http_exchange *x);
// Replies with body, or 500 when it had too much; frees it.
void endpoint_reply(struct http_exchange *x, int status, const char *type, struct buf *body);

#endif
