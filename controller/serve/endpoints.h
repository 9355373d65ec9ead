// SPDX-License-Identifier: Apache-2.0
// The controller's HTTP endpoints: /livez /readyz /healthz /metrics /debug/decisions /version, and the routes of
// controller/serve/overview_endpoints.h.
#ifndef GPUSCALE_CONTROLLER_SERVE_ENDPOINTS_H
#define GPUSCALE_CONTROLLER_SERVE_ENDPOINTS_H

struct controller;
struct err;
struct http_server;
struct http_turns;

#define ENDPOINT_BODY_BYTES_MAX 4096 // limit on a request body; no endpoint reads bodies

// Adds the routes; the controller must outlive the server. turns: of the pages that show all policies.
int endpoints_add(struct http_server *server, struct http_turns *turns, struct controller *controller, struct err *e);

#endif
