// SPDX-License-Identifier: Apache-2.0
// The controller's HTTP endpoints: /livez /readyz /healthz /metrics /debug/decisions /version; and, in
// overview.c, the status page at /, and its data at /api/v1/overview and /api/v1/policy.
#ifndef GPUSCALE_CONTROLLER_SERVE_ENDPOINTS_H
#define GPUSCALE_CONTROLLER_SERVE_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/engine/policy.h"
#include "policies/explain/explain.h"
#include "promql/promql_health.h"

struct buf;
struct controller;
struct decision_history;
struct err;
struct fleet;
struct http_server;
struct http_servers;
struct http_turns;
struct price_book;
struct serve_options;
struct sparkline;
struct status_facts;

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

// ---- the documents behind the status page (overview.c) ----
// /api/v1/overview and /api/v1/policy (docs/endpoints.md), from plain values. Unknown fields are left out.
// policies/explain/explain.h alone explains what a decision means.

struct overview_source {
	const char *name, *url, *error; // no credentials in any; error "": none
	enum promql_health_state state;
	int64_t last_answer_ms; // 0: none yet
	double last_seconds;    // duration of the last request; ignored without an answer
};

struct overview_head {
	int64_t time_ms; // when the controller last changed
	int64_t start_ms;
	const char *identity; // NULL: leader election is off
	const char *leader;   // the identity of the leader; NULL or "": unknown
	bool dry_run;
	int32_t shards_owned, shards_total; // of leader election
	const struct overview_source *sources;
	size_t n_sources;
	size_t n_policies, n_invalid, n_waiting;
	const char *problems; // that concern no single policy, one per line; "": none
};

struct overview_policy {
	const char *namespace_name, *name;
	const char *key;                   // of one of several bindings; NULL: the only one
	const struct policy *policy;       // in force, or the last valid version; NULL: there never was one
	const struct scale_target *target; // of that version; NULL with it
	const struct fleet *fleet;         // of a policy with scaleTargets; NULL: it has one target
	struct decided decided;            // the last decision; .decision NULL: none yet, or a fleet
	const struct status_facts *facts;  // of the last tick, or why there is none; NULL: unknown
	const struct sparkline *trend;     // columns as in controller/status/sparkline.h; NULL: none
	const char *error;                 // why the last tick failed; "": it did not; ignored of a fleet
	bool dry_run;                      // the process's
	int64_t last_scale_ms;             // -1: not known
	const struct price_book *prices;   // NULL: none
	struct policy_gpus gpus;           // of one replica
};

// Write an overview by overview_begin(), overview_add() for each policy, overview_end().
void overview_begin(struct json_writer *w, const struct overview_head *h);
void overview_add(struct json_writer *w, const struct overview_policy *p, bool with_history);
void overview_end(struct json_writer *w);
// Writes the document of one policy. decisions: the recent decisions.
void overview_write_detail(struct json_writer *w, const struct overview_policy *p,
                           const struct decision_history *decisions);

// ---- the servers ----
// The HTTP servers of `gpuscale run`: these endpoints over plain HTTP or TLS, with or without a token, and the external
// metrics API (controller/external/external_metrics_server.h).

// Listens at once; `listen`: of the endpoints, NULL or "": none. The servers own no argument; the strings of `flags`
// must live as long as they do. Returns NULL and *e on failure.
struct http_servers *http_servers_new(struct controller *c, const struct serve_options *flags, const char *listen,
                                      struct err *e);
// Stops the watches of the API server. Call before connections_cancel(); NULL is fine.
void http_servers_disconnect(struct http_servers *s);
// Call after connections_cancel(), so that no request is in flight. NULL is fine.
void http_servers_free(struct http_servers *s);

#endif
