// SPDX-License-Identifier: Apache-2.0
// The PromQL of the table of verdicts: measures over the series of the exporters, and rules that evaluate the table.
#ifndef GPUSCALE_INSIGHT_VERDICT_QUERY_H
#define GPUSCALE_INSIGHT_VERDICT_QUERY_H

#include <stdint.h>

#include "insight/verdict.h"

struct buf;

// Appends the PromQL of a measure over a window of `window_s` seconds. Its series have the labels of its scope; those
// of SCOPE_POD are only pods that use a GPU.
void verdict_query_measure(struct buf *out, enum verdict_measure m, int64_t window_s);
// Appends the query for the GPUs and MIG instances with the pods that use them: one series per device and holder,
// with the labels of verdict_query_owner_labels().
void verdict_query_owners(struct buf *out);
// NULL-terminated: UUID, GPU_I_ID, gpu, modelName, Hostname, hostname, namespace, pod, exported_namespace,
// exported_pod, and is: "exporter" when the pod is that of the exporter.
const char *const *verdict_query_owner_labels(void);
// Appends the query for the labels of the pods that use a GPU (kube_pod_labels), those that identify training jobs.
void verdict_query_pod_labels(struct buf *out);

// Appends the table of verdicts as a file of Prometheus rules: the measures of each workload, its verdict, and one
// alert, with measures over `window_s` seconds. They read gpu:owner:info and
// gpu:memory_used:bytes of rules/gpu.yaml.
void verdict_rules_print(struct buf *out, int64_t window_s);
// Appends a table of contents and a section per verdict in Markdown: condition, meaning, evidence, action, cost.
void verdict_page_print(struct buf *out);

#endif
