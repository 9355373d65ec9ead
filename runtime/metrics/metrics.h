// SPDX-License-Identifier: Apache-2.0
// The controller's own metrics: the counters, and /metrics rendered from them and from the state of the controller.
#ifndef GPUSCALE_RUNTIME_METRICS_METRICS_H
#define GPUSCALE_RUNTIME_METRICS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/engine/policy.h"
#include "runtime/metrics/metrics_table.h"

struct buf;
struct decided_variant;
struct decision;
struct event_recorder_stats;
struct gpu_time;
struct http_server;
struct metrics;
struct policy;
struct price_book;
struct query_hub;
struct shards_view;
struct status_writer_stats;

// The policies with series of their own, unless metrics_limit_policies() says otherwise. A policy has 7 series, 4 more
// per signal, and 4 with spec.gpus.
#define METRICS_POLICIES_MAX 2000

struct metrics *metrics_new(void); // NULL when memory is exhausted
void metrics_free(struct metrics *m);
// Lets only the first n policies, by namespace and name, have series of their own; 0: none.
void metrics_limit_policies(struct metrics *m, size_t n);

// Records the duration of a tick, and counts its result: "ok", "deferred", "scaled", "error", or "" for none.
void metrics_reconciled(struct metrics *m, const char *result, double seconds);
void metrics_decided(struct metrics *m, const struct decision *d);
void metrics_scaled(struct metrics *m, int32_t from, int32_t to);
// Adds one to a counter without labels.
void metrics_count(struct metrics *m, enum metric_family_id id);
// Records how long after its time a tick started.
void metrics_tick_delayed(struct metrics *m, double seconds);
void metrics_reloaded(struct metrics *m, int64_t wall_ms, int ok);
// Counts one attempt of an API request. resource: as k8s_path_class names it; code 0: no answer.
void metrics_api_request(struct metrics *m, const char *verb, const char *resource, int code);

// Enables the family of the external metrics API.
void metrics_external_begin(struct metrics *m);
// Counts one request of the external metrics API that was answered with `code`.
void metrics_external_request(struct metrics *m, int code);

// Counts the server's connections under `name`, which is not copied. The server must outlive the last metrics_render.
void metrics_add_server(struct metrics *m, const char *name, const struct http_server *server);

// The input of metrics_render() besides the counters. A NULL pointer omits its families.
struct metrics_policy {
	const struct policy *policy;
	const char *key;                 // of one of several bindings: the label "target"; NULL: the only one
	const char *workload;            // name of the target
	const struct decision *decision; // NULL: none yet
	const struct gpu_time *gpu_time;
	int64_t values_limited;
	struct policy_gpus gpus; // of one replica
	const struct decided_variant *variants;
	size_t n_variants; // 0: the policy has none
};
struct metrics_watch {
	const char *resource; // as k8s_path_class names it; "targets": the sum over all kinds of targets
	bool is_synced, is_streaming;
	uint64_t lists, streams, events, gone;
};
struct metrics_view {
	const struct metrics_policy *policies;
	size_t n_policies;
	size_t n_bad_files, n_invalid, n_waiting; // as in struct controller_view
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
// Appends every family of runtime/metrics/metrics_table.h whose part of the view is not NULL.
void metrics_render(const struct metrics *m, const struct metrics_view *view, struct buf *out);

#endif
