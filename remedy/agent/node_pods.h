// SPDX-License-Identifier: Apache-2.0
// Decodes the pods with GPUs of one node from a list of the API server, and encodes what the agent writes about a pod:
// its eviction, and the deadline before it.
#ifndef GPUSCALE_REMEDY_AGENT_NODE_PODS_H
#define GPUSCALE_REMEDY_AGENT_NODE_PODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct buf;
struct err;

// On a pod: how long the agent waits, after it took the GPU out of service, until it evicts the pod ("30m").
#define POD_ANNOTATION "gpuscale.dev/move-at-checkpoint"
// On a pod with that annotation, as RFC 3339. The agent writes the deadline at which it evicts the pod. The workload
// writes the time at which it saved a checkpoint, after which the agent does not wait for the deadline.
#define POD_DEADLINE          "gpuscale.dev/move-deadline"
#define POD_SAVED             "gpuscale.dev/checkpoint-saved"
#define NODE_PODS_MAX         1024 // pods on one node
#define NODE_PODS_PATH_BYTES  400
#define NODE_PODS_WAIT_MAX_MS (24 * 60 * 60 * 1000)

struct node_pod {
	const char *name, *uid; // namespace/name
	bool uses_gpus;         // requests accelerators or devices
	bool is_pinned;         // DaemonSet pod, static, or being deleted: not to be evicted
	int64_t wait_ms; // wait in the annotation; 0 = none; at most NODE_PODS_WAIT_MAX_MS, as without a valid duration
	const char *deadline; // text in the annotation; NULL = none
	int64_t saved_ms;     // time in the annotation; -1 = none, or not a valid time
};

// Writes the path of the list of the node's pods.
void node_pods_path(const char *node, char out[NODE_PODS_PATH_BYTES]);
// Decodes a PodList into *ret_pods, in `a`, without pods that have ended. Returns -1 and *e (ERR_PROTOCOL, ERR_LIMIT).
int node_pods_read(const char *json, size_t len, struct arena *a, struct node_pod **ret_pods, size_t *ret_n,
                   struct err *e);

// Writes path and body of the eviction of the pod namespace/name with this uid: a later pod of the same name stays.
// Returns -1 when the name has no slash.
int node_pods_eviction(const char *name, const char *uid, struct buf *path, struct buf *body);
// Writes path and body of the PATCH that annotates this pod with the deadline. The path is that of the status, which
// leaves the spec unchanged. Returns -1 when the name has no slash.
int node_pods_deadline(const char *name, const char *uid, const char *deadline, struct buf *path, struct buf *body);

#endif
