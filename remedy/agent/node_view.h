// SPDX-License-Identifier: Apache-2.0
// What the remediation agent reads from a Node, and the PATCH that changes its taint, or cordon, and its annotations
// together; what it reads from the pods with GPUs of a node, and what it writes about a pod: its eviction, and the
// deadline before it.
#ifndef GPUSCALE_REMEDY_AGENT_NODE_VIEW_H
#define GPUSCALE_REMEDY_AGENT_NODE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "remedy/plan/remedy_state.h"

struct arena;
struct buf;
struct err;

#define NODE_ANNOTATION    "gpuscale.dev/remediation"
#define NODE_TAINT         "gpuscale.dev/failing-gpu"
#define NODE_CORDON        "gpuscale.dev/cordoned-for"     // annotation of a node that the agent cordoned: the fault
#define NODE_RESET         "gpuscale.dev/reset-gpu"        // annotation for the reset hook: "UUID TIME"
#define NODE_RESET_RESULT  "gpuscale.dev/reset-gpu-result" // annotation of the hook: "UUID TIME done" or "... failed"
#define NODE_VERSION_BYTES 64
#define NODE_UID_BYTES     64
#define NODE_TAINTS_MAX    (16 * 1024) // bytes of the taints of others

struct node_view {
	char uid[NODE_UID_BYTES], version[NODE_VERSION_BYTES]; // resourceVersion
	bool is_ready;
	// Its capacity has GPUs or other accelerators. Of a node that the agent has dealt with, zero is enough: a
	// device plugin that dies takes them away.
	bool has_gpus;
	bool is_tainted;                        // by the agent
	bool is_unschedulable, has_cordon_mark; // spec.unschedulable; the annotation of the agent about it
	bool has_reset;                         // a request for the reset hook
	// The result of the hook; gpu "" = none.
	struct {
		char gpu[REMEDY_UUID_BYTES];
		int64_t time_ms; // time of the request
		bool is_done;
	} reset_result;
	char *other_taints; // JSON objects separated by commas, as the API server sent them; owned; "" = none
	char *record;       // text of the annotation; owned; NULL = none
};

// Decodes the Node json[0..len). *ret_view is to be freed with node_view_done(). Returns -1 and *e (ERR_PROTOCOL,
// ERR_LIMIT), after which there is nothing to free.
int node_view_read(const char *json, size_t len, struct node_view *ret_view, struct err *e);
void node_view_done(struct node_view *v);

// Whether the agent has taken the node out of service: by its taint or by its cordon.
bool node_view_is_out(const struct node_view *v);
// Whether anyone else has cordoned the node.
bool node_view_is_cordoned(const struct node_view *v);

struct node_view_change {
	const char *record;    // text of the annotation
	bool is_out;           // else the taint and the cordon of the agent are removed
	bool cordons;          // cordon the node instead of tainting it; a node that is already cordoned is tainted
	const char *fault;     // why
	const char *reset_gpu; // UUID of the GPU that the hook is to reset, and when this was requested; NULL: none
	int64_t reset_ms;
};
// Appends a merge patch of the node to `out`. The patch contains the resourceVersion, so the API server refuses it when
// the node has changed since.
void node_view_patch(const struct node_view *v, const struct node_view_change *change, struct buf *out);

// ---- the pods of a node ----

// On a pod: how long the agent waits, after it took the GPU out of service, until it evicts the pod ("30m").
#define POD_ANNOTATION "gpuscale.dev/move-at-checkpoint"
// On a pod with that annotation, as RFC 3339. The agent writes the deadline at which it evicts the pod. The workload
// writes the time at which it saved a checkpoint, after which the agent does not wait for the deadline.
#define POD_DEADLINE          "gpuscale.dev/move-deadline"
#define POD_SAVED             "gpuscale.dev/checkpoint-saved"
#define NODE_PODS_MAX         1024 // pods on one node
#define NODE_PODS_WAIT_MAX_MS (24 * 60 * 60 * 1000)

struct node_pod {
	const char *name, *uid; // namespace/name
	bool uses_gpus;         // requests accelerators or devices
	bool is_pinned;         // DaemonSet pod, static, or being deleted: not to be evicted
	int64_t wait_ms; // wait in the annotation; 0 = none; at most NODE_PODS_WAIT_MAX_MS, as without a valid duration
	const char *deadline; // text in the annotation; NULL = none
	int64_t saved_ms;     // time in the annotation; -1 = none, or not a valid time
};

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
