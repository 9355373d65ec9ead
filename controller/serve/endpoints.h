// SPDX-License-Identifier: Apache-2.0
// The controller's HTTP endpoints: /livez /readyz /healthz /metrics /debug/decisions /version; and, in
// overview.c, the status page at /, and its data at /api/v1/overview and /api/v1/policy.
#ifndef GPUSCALE_CONTROLLER_SERVE_ENDPOINTS_H
#define GPUSCALE_CONTROLLER_SERVE_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/source/policy_store.h"
#include "controller/status/status_conditions.h"
#include "k8s/cache/informer.h"
#include "policies/engine/policy.h"
#include "policies/explain/explain.h"

struct buf;
struct controller;
struct decision_history;
struct err;
struct event_recorder_stats;
struct fleet;
struct fleet_numbers;
struct http_server;
struct http_servers;
struct managed_policy;
struct metrics;
struct pool_summary;
struct price_book;
struct query_hub;
struct serve_options;
struct shards_view;
struct sparkline;
struct status_writer_stats;

#define ENDPOINT_BODY_BYTES_MAX 4096 // limit on a request body; no endpoint reads bodies
#define OVERVIEW_HISTORIES_MAX  2000 // with more policies the overview has no history, even if asked for

// Adds the routes; the controller must outlive the server.
int endpoints_add(struct http_server *server, struct controller *controller, struct err *e);
// Adds the routes of the status page and its data, likewise.
int overview_endpoints_add(struct http_server *server, struct controller *controller, struct err *e);

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
// /api/v1/overview and /api/v1/policy (docs/endpoints.md). Unknown fields are left out.
// policies/explain/explain.h alone explains what a decision means.

// The policies, in order of namespace, name and key.
struct overview_items {
	const struct managed_policy **list;
	size_t n, n_invalid, n_waiting;
};

// One policy with the data that the document refers to.
struct overview_policy {
	const char *namespace_name, *name;
	const char *key;           // of one of several bindings; NULL: the only one
	const struct fleet *fleet; // of a policy with scaleTargets; NULL: it has one target
	// Of the version in force, or of the last valid one; .policy NULL: there never was one. .decision NULL: none
	// yet, or a fleet.
	struct decided decided;
	struct status_facts facts; // of the last tick, or why there is none
	bool has_facts;
	const struct sparkline *trend;    // columns as in controller/status/sparkline.h; NULL: none
	const char *error;                // why the last tick failed; "": it did not; ignored of a fleet
	char why[POLICY_ERROR_BYTES_MAX]; // for it
	bool dry_run;                     // the process's
	int64_t last_scale_ms;            // -1: not known
	const struct price_book *prices;  // NULL: none
	struct policy_gpus gpus;          // of one replica
};

// Write an overview by overview_begin(), overview_add() for each policy, overview_end(). problems: those that concern
// no single policy, one per line; "": none.
void overview_begin(struct json_writer *w, const struct controller *c, const struct shards_view *shards,
                    const struct overview_items *items, const char *problems);
void overview_add(struct json_writer *w, const struct overview_policy *p, bool with_history);
void overview_end(struct json_writer *w);
// Writes the document of one policy. decisions: the recent decisions.
void overview_write_detail(struct json_writer *w, const struct overview_policy *p,
                           const struct decision_history *decisions);

// ---- /metrics (metrics_render.c) ----

struct metrics_watch {
	const char *resource; // as k8s_path_class names it; "targets": the sum over all kinds of targets
	struct informer_state state;
};
// The input of metrics_render() besides the counters. A NULL pointer omits its families.
struct metrics_view {
	struct managed_policy *const *policies; // those with a reconciler, by namespace, name and key
	size_t n_policies;
	size_t n_bad_files;
	size_t n_invalid; // policies whose newest version has faults
	size_t n_waiting; // valid policies that are not in force
	const struct query_hub *queries;
	const struct price_book *prices; // NULL: no costs
	bool dry_run;
	const struct metrics_watch *watches; // one per resource
	size_t n_watches;
	const struct status_writer_stats *status;
	const struct event_recorder_stats *events;
	const struct shards_view *shards; // NULL: no leader election
	const struct pool_summary *pools;
	size_t n_pools;
	const struct fleet_numbers *fleets;
	size_t n_fleets;
};
// Appends every family of the table (runtime/metrics/metrics.h) whose part of the view is not NULL.
void metrics_render(const struct metrics *m, const struct metrics_view *view, struct buf *out);

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
