// SPDX-License-Identifier: Apache-2.0
// The controller's HTTP endpoints: /livez /readyz /healthz /metrics /debug/decisions /version; and, in
// overview_endpoints.c, the status page at /, and its data at /api/v1/overview and /api/v1/policy.
#ifndef GPUSCALE_CONTROLLER_SERVE_ENDPOINTS_H
#define GPUSCALE_CONTROLLER_SERVE_ENDPOINTS_H

#include <stddef.h>

struct buf;
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

// ---- the status page (status_page.c) ----
// One HTML document compiled into the program (controller/serve/status_page.html), and the content security policy that
// keeps a browser from running or fetching anything else for it.

#define STATUS_PAGE_BYTES_MAX  (128 * 1024)
#define STATUS_PAGE_ETAG_BYTES 48

// Appends the page. Returns 0, or -1 and *e when there is no memory for STATUS_PAGE_BYTES_MAX.
int status_page(struct buf *out, struct err *e);
// Appends the Content-Security-Policy of the page: permits, by digest, only the scripts and styles between its <script>
// and <style> tags, and requests to its own server alone.
void status_page_csp(const char *html, size_t len, struct buf *out);
// Writes a strong entity tag, with its quotes.
void status_page_etag(const char *html, size_t len, char out[STATUS_PAGE_ETAG_BYTES]);

#endif
