// SPDX-License-Identifier: Apache-2.0
// Folds what is observed into the planner's state: events, telemetry, the state of nodes. Every function is pure,
// except that it changes the state. `r->now_ms` never runs backwards: an observation with an older time counts at the
// current one.
#ifndef GPUSCALE_REMEDY_PLAN_REMEDY_FOLD_H
#define GPUSCALE_REMEDY_PLAN_REMEDY_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "remedy/plan/remedy_state.h"

// One report of a fault.
struct remedy_event {
	const char *node;
	const char *gpu;       // UUID; "" = the node
	const char *condition; // reason of a row of health_condition_table(); NULL = an XID
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
