// SPDX-License-Identifier: Apache-2.0
// The PromQL that measures the use of GPUs, from the series of gpuscale-exporter or dcgm-exporter.
#ifndef GPUSCALE_INSIGHT_GPU_USE_QUERY_H
#define GPUSCALE_INSIGHT_GPU_USE_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "insight/gpu_cost.h"

struct buf;
struct err;

#define GPU_USE_STEP_S 60

// Labels of the results. A row without the namespace is of GPUs without a pod.
#define GPU_USE_MODEL     "modelName"
#define GPU_USE_NAMESPACE "wl_namespace"
#define GPU_USE_POD       "wl_pod"

// How namespaces are divided further.
struct gpu_use_parts {
	bool by_pod;
	const char *label; // or by this label of kube_pod_labels (gpu_label_name); NULL: not
};

// Appends the query whose result at time t, a multiple of GPU_USE_STEP_S, is the measure summed over the `steps`
// minutes that end at t: one series per model, namespace and part.
void gpu_use_query(struct buf *out, enum gpu_measure measure, const struct gpu_use_parts *parts, int64_t steps);
// Data of the GPUs that are idle: their number, when one of them last worked, and when the pod got them.
enum gpu_idle { GPU_IDLE_COUNT, GPU_IDLE_LAST_BUSY, GPU_IDLE_FIRST_SEEN, GPU_IDLE__COUNT };
#define GPU_IDLE_BELOW_PERCENT 5 // a GPU with less GPU_UTIL, or else SM_ACTIVE, is idle
// Appends the query whose result now is `what` per model, namespace and pod, of the GPUs that were below
// GPU_IDLE_BELOW_PERCENT for the last for_s seconds and had the same holder before. Times are seconds since the epoch,
// traced back for lookback_s seconds; a GPU that was not busy in them has no GPU_IDLE_LAST_BUSY. matchers: added to
// every selector (promql/confine.h); then GPUs that several exporters report, and exporters with more than
// GPU_SERIES_MAX series of a family, are left out, as their series may be forged. NULL: every series is read. Returns
// 0, or -1 and *e as confine_add_matchers().
#define GPU_SERIES_MAX 1024
int gpu_idle_query(struct buf *out, enum gpu_idle what, int64_t for_s, int64_t lookback_s, const char *matchers,
                   struct err *e);
// Appends the query for the number of GPUs of each model that reported within these minutes.
void gpu_count_query(struct buf *out, int64_t steps);
// Appends the name under which kube-state-metrics reports a label of pods: "label_app_kubernetes_io_name" for
// "app.kubernetes.io/name".
void gpu_label_name(struct buf *out, const char *label);

#endif
