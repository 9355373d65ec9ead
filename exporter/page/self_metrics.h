// SPDX-License-Identifier: Apache-2.0
// The metrics of the exporter about itself.
#ifndef GPUSCALE_EXPORTER_PAGE_SELF_METRICS_H
#define GPUSCALE_EXPORTER_PAGE_SELF_METRICS_H

#include <stdint.h>

#include "base/http/http_server.h"
#include "exporter/page/web.h"

struct buf;
struct kubelet_pods;
struct otlp_push;
struct pod_metadata;
struct sampler_status;

struct self_metrics {
	uint64_t scrapes;
	uint64_t xid_overflows;
	uint64_t connections_closed[HTTP_CLOSE__COUNT];
	struct web_stats web;
	uint64_t counter_rows_skipped; // rows of the counters file
};

// Appends the duration and the success of the last attempt to collect, per collector: the backend and, unless `pods`
// or `metadata` is NULL, the kubelet and the API server. A collector without a completed attempt is omitted.
void self_metrics_render_collectors(struct buf *out, const struct sampler_status *status, struct kubelet_pods *pods,
                                    struct pod_metadata *metadata);
// Appends the metrics of the pod map; none if `pods` is NULL.
void self_metrics_render_pods(struct buf *out, struct kubelet_pods *pods);
// Appends the metrics of the requests for metadata of pods; none if `metadata` is NULL.
void self_metrics_render_pod_metadata(struct buf *out, struct pod_metadata *metadata);
// Appends the metrics of the pushes.
void self_metrics_render_otlp(struct buf *out, const struct otlp_push *otlp);
// Appends build_info, up and devices, which the output of --once contains too.
void self_metrics_render_state(struct buf *out, const struct sampler_status *status);
// Appends the other metrics: rounds, errors, durations, ages, label limits, and the memory and CPU time of the
// process.
void self_metrics_render_runtime(struct buf *out, const struct self_metrics *m, const struct sampler_status *status);

#endif
