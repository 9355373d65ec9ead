// SPDX-License-Identifier: Apache-2.0
// The controller's HTTP endpoints: /livez /readyz /healthz /metrics /debug/decisions /version; and, in
// overview_endpoints.c, the status page at /, and its data at /api/v1/overview and /api/v1/policy.
#ifndef GPUSCALE_CONTROLLER_SERVE_ENDPOINTS_H
#define GPUSCALE_CONTROLLER_SERVE_ENDPOINTS_H

struct controller;
struct err;
struct http_server;
struct http_turns;

#define ENDPOINT_BODY_BYTES_MAX 4096 // limit on a request body; no endpoint reads bodies
#define OVERVIEW_HISTORIES_MAX  2000 // with more policies the overview has no history, even if asked for

// Adds the routes; the controller must outlive the server. turns: of the pages that show all policies.
int endpoints_add(struct http_server *server, struct http_turns *turns, struct controller *controller, struct err *e);
// Adds the routes of the status page and its data, likewise.
int overview_endpoints_add(struct http_server *server, struct http_turns *turns, struct controller *controller,
                           struct err *e);

#endif
