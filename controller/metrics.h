// SPDX-License-Identifier: Apache-2.0
// The controller's own metrics: what is counted, and /metrics rendered from it and from the reconcilers.
#ifndef GPUSCALE_CONTROLLER_METRICS_H
#define GPUSCALE_CONTROLLER_METRICS_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct decision;
struct metrics;
struct query_hub;
struct reconciler;

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

// What the text is made of besides the counters.
struct metrics_view {
	struct reconciler *const *reconcilers;
	size_t n_reconcilers;
	size_t n_bad_files;
	const struct query_hub *queries;
	int64_t now_ms;
	int dry_run;
};
void metrics_render(const struct metrics *m, const struct metrics_view *view, struct buf *out);

#endif
