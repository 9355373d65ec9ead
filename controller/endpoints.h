// SPDX-License-Identifier: Apache-2.0
// The controller's HTTP face: /livez /readyz /healthz /metrics /debug/decisions /version.
#ifndef GPUSCALE_CONTROLLER_ENDPOINTS_H
#define GPUSCALE_CONTROLLER_ENDPOINTS_H

struct controller;
struct err;
struct http_server;

// Adds the routes; the controller must outlive the server.
int endpoints_add(struct http_server *server, struct controller *controller, struct err *e);

#endif
