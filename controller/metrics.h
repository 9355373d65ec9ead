// SPDX-License-Identifier: Apache-2.0
// The controller's own metrics: what is counted, and /metrics rendered from it and from the state of things.
#ifndef GPUSCALE_CONTROLLER_METRICS_H
#define GPUSCALE_CONTROLLER_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k8s/watch.h"

struct buf;
struct decision;
struct event_recorder_stats;
struct metrics;
struct policy;
struct query_hub;
struct shards_view;
struct status_writer_stats;

struct metrics *metrics_new(void); // NULL when memory ends
void metrics_free(struct metrics *m);

// result: "ok", "scaled" or "error".
void metrics_reconciled(struct metrics *m, const char *result, double seconds);
void metrics_decided(struct metrics *m, const struct decision *d);
void metrics_scaled(struct metrics *m, int32_t from, int32_t to);
void metrics_conflict(struct metrics *m);
void metrics_tick_skipped(struct metrics *m);
void metrics_reloaded(struct metrics *m, int64_t wall_ms, int ok);
// One attempt at the API server: resource as k8s_path_class names it; code 0 = no answer.
void metrics_api_request(struct metrics *m, const char *verb, const char *resource, int code);

// External metrics are served, so their family is there; and one request for them that was answered.
void metrics_external_begin(struct metrics *m);
void metrics_external_request(struct metrics *m, int code);

// What the text is made of besides the counters. What a pointer leads to is left out when it is NULL.
struct metrics_policy {
	const struct policy *policy;
	const struct decision *decision; // NULL: none yet
};
struct metrics_watch {
	const char *resource; // as k8s_path_class names it; "targets": those of all the kinds that are scaled, as one
	struct k8s_watch_stats stats;
};
struct metrics_view {
	const struct metrics_policy *policies;
	size_t n_policies;
	size_t n_bad_files, n_invalid, n_waiting; // as in struct controller_view
	const struct query_hub *queries;
	bool dry_run;
	const struct metrics_watch *watches; // one per resource
	size_t n_watches;
	const struct status_writer_stats *status;
	const struct event_recorder_stats *events;
	const struct shards_view *shards; // NULL: no election, everything is this process's
};
// Every family of controller/metrics_table.h whose part of the view is there.
void metrics_render(const struct metrics *m, const struct metrics_view *view, struct buf *out);

#endif
