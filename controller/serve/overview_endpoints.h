// SPDX-License-Identifier: Apache-2.0
// The status page at /, and its data at /api/v1/overview and /api/v1/policy.
#ifndef GPUSCALE_CONTROLLER_SERVE_OVERVIEW_ENDPOINTS_H
#define GPUSCALE_CONTROLLER_SERVE_OVERVIEW_ENDPOINTS_H

struct controller;
struct err;
struct http_server;
struct http_turns;

#define OVERVIEW_HISTORIES_MAX 2000 // with more policies than these the overview has no history, even if asked for

// Adds the routes; the controller must outlive the server.
int overview_endpoints_add(struct http_server *server, struct http_turns *turns, struct controller *controller,
                           struct err *e);

#endif
