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

// Appends build_info, up and devices, which the output of --once contains too.
void self_metrics_render_state(struct buf *out, const struct sampler_status *status);
// Appends these and the other metrics: rounds, errors, durations, ages, label limits, the memory and CPU time of the
// process, and those of the map of pods, of the metadata of pods and of the pushes, unless the pointer is NULL.
void self_metrics_render(struct buf *out, const struct self_metrics *m, const struct sampler_status *status,
                         struct kubelet_pods *pods, struct pod_metadata *metadata, const struct otlp_push *otlp);

#endif
