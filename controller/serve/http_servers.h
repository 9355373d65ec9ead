// SPDX-License-Identifier: Apache-2.0
// The HTTP servers of `gpuscale run`: the endpoints (controller/serve/endpoints.h) over plain HTTP or TLS, with or
// without a token, and the external metrics API (controller/external/external_metrics_server.h).
#ifndef GPUSCALE_CONTROLLER_SERVE_HTTP_SERVERS_H
#define GPUSCALE_CONTROLLER_SERVE_HTTP_SERVERS_H

struct controller;
struct err;
struct serve_options;
struct http_servers;

struct http_servers_options {
	const struct serve_options *flags; // not owned, as all below; its strings must live as long
	const char *listen;                // of the endpoints; NULL or "": none
	struct controller *controller;
};

// Listens at once. Returns NULL and *e on failure.
struct http_servers *http_servers_new(const struct http_servers_options *options, struct err *e);
// Stops the watches of the API server. Call before connections_cancel(); NULL is fine.
void http_servers_disconnect(struct http_servers *s);
// Call after connections_cancel(), so that no request is in flight. NULL is fine.
void http_servers_free(struct http_servers *s);

#endif
