// SPDX-License-Identifier: Apache-2.0
// Marks a pod, so that the controller of its replicas deletes it before others, and removes the mark again. The mark is
// the deletion cost, and an annotation of our own that states when it was set: a process that starts later recognizes
// it. Kubernetes: pkg/apis/core/annotation_key_constants.go, PodDeletionCost.
#ifndef GPUSCALE_K8S_CLIENT_POD_MARK_H
#define GPUSCALE_K8S_CLIENT_POD_MARK_H

#include <stdint.h>

#include "k8s/client/k8s_request.h"

#define POD_COST_ANNOTATION   "controller.kubernetes.io/pod-deletion-cost"
#define POD_VICTIM_ANNOTATION "gpuscale.dev/victim"
#define POD_MARK_COST         (-2147483647) // lower than any cost that another client is likely to set

struct err;
struct k8s_client;
struct pod_info;

// Sends a PATCH of the pod, whose pod_info.removal was read. marked_ms: when the mark is set, in ms since the epoch; 0:
// removes it. A deletion cost that another client set is not changed: call with marked_ms only for a pod without one.
// The error of done is ERR_CONFLICT when the pod was changed since it was read. Returns 0, or -1 and *e; then done is
// not called.
int pod_mark(struct k8s_client *c, const char *namespace_name, const struct pod_info *pod, int64_t marked_ms,
             k8s_done_fn *done, void *arg, struct err *e);

#endif
