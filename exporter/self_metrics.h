// SPDX-License-Identifier: Apache-2.0
// What the exporter says about itself.
#ifndef GPUSCALE_EXPORTER_SELF_METRICS_H
#define GPUSCALE_EXPORTER_SELF_METRICS_H

#include <stdint.h>

#include "exporter/web.h"

struct buf;
struct pods;
struct sampler_status;

struct self_metrics {
	uint64_t scrapes;
	uint64_t xid_overflows;
	uint64_t connections_refused; // over the ceiling
	struct web_stats web;
	uint64_t counter_rows_skipped; // of the counters file
};

// What is asked for data, each with its name: the backend, and the kubelet where there is a pod map (pods may be NULL):
// how long the last attempt took and whether it succeeded. One that has not ended yet is left out.
void self_metrics_render_collectors(struct buf *out, const struct sampler_status *status, struct pods *pods);
// Of the pod map: nothing without one.
void self_metrics_render_pods(struct buf *out, struct pods *pods);
// build_info, up and devices: what a textfile of --once carries too.
void self_metrics_render_state(struct buf *out, const struct sampler_status *status);
// Everything else: rounds, errors, durations, ages, ceilings of labels, and the process's memory and CPU time.
void self_metrics_render_runtime(struct buf *out, const struct self_metrics *m, const struct sampler_status *status);

#endif
