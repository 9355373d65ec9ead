// SPDX-License-Identifier: Apache-2.0
// The memory of the planner of remediation: the nodes, their GPUs, the evidence against each GPU, and how far its
// remediation has come. Fixed-size values in memory of the caller; the planner allocates nothing.
#ifndef GPUSCALE_REMEDY_PLAN_REMEDY_STATE_H
#define GPUSCALE_REMEDY_PLAN_REMEDY_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
