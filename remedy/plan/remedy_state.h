// SPDX-License-Identifier: Apache-2.0
// The memory of the planner of remediation: the nodes, their GPUs, the evidence against each GPU, and how far its
// remediation has come; what is observed is folded into it; and the reasons of the planner. Fixed-size values in memory
// of the caller; the planner allocates nothing.
#ifndef GPUSCALE_REMEDY_PLAN_REMEDY_STATE_H
#define GPUSCALE_REMEDY_PLAN_REMEDY_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/health_table.h"

#define REMEDY_NODES_MAX      5000
#define REMEDY_GPUS_MAX       17 // GPUs of a node; the first is the node itself, for faults that name no GPU
#define REMEDY_FAULTS_MAX     48 // faults of a node: rows of GPU and fault
#define REMEDY_PODS_MAX       64 // pods of a node, with GPUs
#define REMEDY_ATTEMPTS_MAX   16 // per node and day
#define REMEDY_NAME_BYTES_MAX 253
#define REMEDY_UUID_BYTES     64
#define REMEDY_NONE_MS        (-1)

#define REMEDY_DAY_MS            (24 * 60 * 60 * 1000)
#define REMEDY_FUTURE_MS         60000            // clocks of nodes may differ by as much
#define REMEDY_EVICT_MS          30000            // to the second attempt to evict a pod; doubles from there
#define REMEDY_EVICT_MAX_MS      (10 * 60 * 1000) // and stays here
#define REMEDY_CHECKPOINT_MAX_MS REMEDY_DAY_MS    // a pod that moves at a checkpoint is evicted at last after so long
#define REMEDY_RESET_MS          (10 * 60 * 1000) // a reset without a result has failed after so long

struct remedy_limits {
	int32_t max_nodes;   // out of service at the same time, for any reason
	int32_t max_percent; // percent of all nodes; rounded down, but at least one node unless 0
	int32_t attempts;    // per node and day, 1 to REMEDY_ATTEMPTS_MAX
	int64_t clean_ms;    // without a fault before a GPU returns; doubles with each attempt within a day
	bool can_reset;      // a hook exists that resets a GPU
	bool is_answered;    // the hook reports the outcome; false: a reset is treated as complete at once
	bool drains;         // every pod with a GPU leaves a node that is out of service
};

// One kind of fault of one GPU.
struct remedy_fault {
	int32_t id;          // an XID, or -1 - the row of a condition (base/health_table.h)
	int16_t gpu;         // index in the node
	bool is_active;      // a condition that lasts
	bool is_handled;     // evidence of an earlier time out of service; counts no more
	int32_t occurrences; // since the first that is not older than HEALTH_SINCE_MS
	int64_t count;       // last value of the counter; -1 = the source has no counter
	int64_t first_ms, last_ms;
};

struct remedy_gpu {
	char uuid[REMEDY_UUID_BYTES]; // "" = the node itself
	bool is_listed;               // the node's last list has it
	bool is_replaced;             // another GPU took its place, or another node reports it
	bool has_gpu_taint, has_node_taint;
	bool is_in_flight; // its own taint was set or removed, and no list of taints has shown that since
	// State of the reset within this time out of service: requested; the hook has not reported; failed.
	bool is_reset, is_reset_open, is_reset_failed;
	int64_t reset_ms;   // when the reset was requested
	int64_t out_ms;     // since when out of service; REMEDY_NONE_MS = in service
	int64_t was_out_ms; // when it was last taken out
	int64_t need_ms;    // to be clean for so long before it returns
	int64_t clean_ms;   // since when without a fault and with telemetry
	int64_t heard_ms;   // telemetry last named it
	uint32_t reported;  // bit per enum remedy_reason: holds that were reported once
};

struct remedy_pod {
	const char *name; // namespace/name; belongs to the caller; NULL = restored, not listed yet
	uint64_t key;     // hash of the name
	uint32_t gpus;    // bit per GPU of the node
	bool is_pinned;   // DaemonSet pod or static: never evicted
	bool is_refused;  // the last eviction was refused, by a PodDisruptionBudget
	int32_t tries;
	int64_t next_ms;  // no eviction before
	int64_t until_ms; // moves at its next checkpoint, at the latest then; 0 = at once
};

struct remedy_node {
	char name[REMEDY_NAME_BYTES_MAX + 1];
	bool is_gone;     // not in the cluster
	bool has_dra;     // single GPUs can be tainted
	bool is_cordoned; // by anyone else
	bool is_ready;
	bool has_pods; // pods[] is known
	bool is_dirty; // something changed since the node was last planned
	int16_t n_gpus, n_faults, n_pods, n_attempts, n_out;
	struct remedy_gpu gpus[REMEDY_GPUS_MAX];
	struct remedy_fault faults[REMEDY_FAULTS_MAX];
	struct remedy_pod pods[REMEDY_PODS_MAX];
	int64_t attempts_ms[REMEDY_ATTEMPTS_MAX]; // oldest first
};

struct remedy {
	struct remedy_limits limits;
	int64_t now_ms;
	struct remedy_node *nodes; // max_nodes of them
	int32_t n_nodes, max_nodes;
	int32_t *index; // by hash of the name: node + 1, 0 = free
	size_t n_index; // a power of two, at least twice max_nodes
};

// ---- the nodes by name, and the GPUs of a node by UUID ----

// Bytes of the block that remedy_fleet_init needs for `max_nodes` nodes (1 to REMEDY_NODES_MAX).
size_t remedy_fleet_bytes(int32_t max_nodes);
// Lays out an empty fleet in `block`, zeroed and aligned for any type, which the caller keeps and frees. Copies
// `limits`.
void remedy_fleet_init(struct remedy *r, void *block, int32_t max_nodes, const struct remedy_limits *limits);

// Returns the node called `name`, even if it was deleted; NULL when there is none.
struct remedy_node *remedy_fleet_find(const struct remedy *r, const char *name);
// Returns the index of the GPU in the node, or -1; "" is the node itself, with index 0.
int remedy_fleet_gpu(const struct remedy_node *n, const char *uuid);
// As remedy_fleet_gpu(), but adds a missing GPU; when the node is full, in place of a GPU that is in service and no
// longer listed. A GPU that is new to this node is treated as replaced in every other node. Returns -1 if it is full.
int remedy_fleet_add_gpu(struct remedy *r, struct remedy_node *n, const char *uuid);

// ---- the evidence against the GPUs of a node: a row per GPU and kind of fault ----

// The action that the table has for a fault, however often it occurred.
enum health_action remedy_evidence_worst(int32_t id);
// The action for a row as it stands: fewer occurrences than the table requires are only watched.
enum health_action remedy_evidence_action(const struct remedy_fault *f);

// The row, or NULL.
struct remedy_fault *remedy_evidence_find(struct remedy_node *n, int gpu, int32_t id);
// The row that decides about the GPU at `now_ms`: the strongest action, then the earliest. NULL: no evidence. In
// service, a condition counts while it lasts and an XID for HEALTH_SINCE_MS; out of service, until the GPU returns.
const struct remedy_fault *remedy_evidence_of(const struct remedy_node *n, int gpu, int64_t now_ms);
// Whether a condition of the GPU lasts for which something must be done.
bool remedy_evidence_lasts(const struct remedy_node *n, int gpu);

// Takes the GPU out of service, or returns it. Neither sets a taint; returning clears both.
void remedy_evidence_take(const struct remedy *r, struct remedy_node *n, int gpu);
void remedy_evidence_return(struct remedy_node *n, int gpu);
// Attempts within a day before now; drops older ones.
int remedy_evidence_attempts(const struct remedy *r, struct remedy_node *n);
// Whether taking the GPU out is another attempt: the node is in service, or the GPU was out within a day.
bool remedy_evidence_is_attempt(const struct remedy *r, const struct remedy_node *n, int gpu);

// ---- reasons: why the planner acts, holds, or does not use an input ----

enum remedy_reason {
	REMEDY_NO_REASON,
	// why it acts
	REMEDY_FAULT,
	REMEDY_CLEAN,
	REMEDY_REPLACED,
	REMEDY_IDLE,
	// why it holds; reported once per GPU and time in or out of service
	REMEDY_MAX_UNAVAILABLE,
	REMEDY_ATTEMPTS_EXHAUSTED,
	REMEDY_CORDONED,
	REMEDY_TELEMETRY_MISSING,
	REMEDY_CHECKPOINT,
	REMEDY_EVICTION_REFUSED,
	REMEDY_PODS_UNKNOWN,
	REMEDY_NEEDS_REBOOT,
	REMEDY_NEEDS_REPLACEMENT,
	REMEDY_RESET_FAILED,
	REMEDY_LIFTED,
	REMEDY_ADOPTED,
	// why it does not use an input
	REMEDY_CONTRADICTED,
	REMEDY_UNKNOWN_NODE,
	REMEDY_FUTURE,
	REMEDY_TOO_OLD,
	REMEDY_TOO_MANY_GPUS,
	REMEDY_TOO_MANY_NODES,
	REMEDY_TOO_MANY_PODS,
	REMEDY_BAD_RECORD,
	REMEDY_REASON__COUNT
};

struct remedy_reason_info {
	const char *name;     // CamelCase
	const char *sentence; // constant
};

extern const struct remedy_reason_info remedy_reasons[REMEDY_REASON__COUNT];

// ---- what is observed: events, telemetry, the state of nodes ----

// Every function is pure, except that it changes the state. `r->now_ms` never runs backwards: an observation with an
// older time counts at the current one.

// One report of a fault.
struct remedy_event {
	const char *node;
	const char *gpu;       // UUID; "" = the node
	const char *condition; // reason of a row of health_conditions; NULL = an XID
	int32_t xid;
	int64_t value; // XID: its counter, -1 = none, each report counts. Condition: its value
	int64_t at_ms; // when it happened
};

// A pod with GPUs, as listed.
struct remedy_pod_seen {
	const char *name;  // namespace/name; must live until the next list of this node
	const char **gpus; // UUIDs
	size_t n_gpus;     // 0 = any of the node
	bool is_pinned, is_refused;
	int64_t until_ms;
};

// A node as the API server has it. A NULL list is not known, and changes nothing.
struct remedy_node_seen {
	const char *name;
	bool is_gone, has_dra, is_cordoned, is_ready;
	const char **gpus; // UUIDs
	size_t n_gpus;
	const char **taints; // those of gpuscale: "node" or a UUID
	size_t n_taints;
	const struct remedy_pod_seen *pods;
	size_t n_pods;
	bool has_gpus, has_taints, has_pods;
	bool taints_lag; // taints of GPUs: a change of the planner that the list does not show is in flight, and not
	                 // undone by hand
};

// Moves the clock forward to `now_ms`.
void remedy_fold_time(struct remedy *r, int64_t now_ms);
// Each returns REMEDY_NO_REASON, or why the input was not used, at all or in part.
enum remedy_reason remedy_fold_event(struct remedy *r, const struct remedy_event *event);
// The exporter of the node responded and named these GPUs; `all` = every GPU of the node.
enum remedy_reason remedy_fold_telemetry(struct remedy *r, const char *node, const char *const *gpus, size_t n_gpus,
                                         bool all);
// The exporter of the node does not respond.
enum remedy_reason remedy_fold_silence(struct remedy *r, const char *node);
// The hook reported the reset that was requested at `reset_ms`. Other reports change nothing.
void remedy_fold_reset(struct remedy *r, const char *node, const char *gpu, int64_t reset_ms, bool is_done);
// A new node takes over `record` (what remedy/remedy_record.h read; may be NULL).
enum remedy_reason remedy_fold_node(struct remedy *r, const struct remedy_node_seen *seen,
                                    const struct remedy_node *record);
// Forgets what is known of the node, which is added if need be, and takes over `record`; NULL: nothing. `name` must not
// lie in the node. Pods and state
// are unknown until the next remedy_fold_node(), which does not restore the node again. When the fleet is full, nothing
// happens.
void remedy_fold_restore(struct remedy *r, const char *name, const struct remedy_node *record);

#endif
