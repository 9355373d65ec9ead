// SPDX-License-Identifier: Apache-2.0
// The planner: which actions follow from the state now. Pure, except that it records each action in the state as
// carried out. The caller carries it out before the next call, or corrects the state with remedy_fold_node().
#ifndef GPUSCALE_REMEDY_PLAN_REMEDY_PLAN_H
#define GPUSCALE_REMEDY_PLAN_REMEDY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/health_table.h"
#include "remedy/plan/remedy_state.h"

enum remedy_kind {
	REMEDY_TAINT,   // take a GPU, or the node, out of service
	REMEDY_UNTAINT, // return it
	REMEDY_EVICT,   // evict one pod
	REMEDY_RESET,   // reset one GPU, which no pod uses
	REMEDY_HOLD,    // nothing: the reason why something that should be done is not
	REMEDY_KIND__COUNT
};
extern const char *const remedy_kind_names[REMEDY_KIND__COUNT];

struct remedy_action {
	enum remedy_kind kind;
	enum remedy_reason reason;
	int32_t node;              // index in the fleet
	int16_t gpu;               // index in the node
	int16_t pod;               // index in the node; -1 = no pod
	bool whole_node;           // the taint is that of the node
	int32_t fault;             // that decides; INT32_MIN = none
	enum health_action wanted; // action in the table
};
#define REMEDY_NO_FAULT INT32_MIN

// Writes at most `max` actions to `ret_actions` and returns their number; `max`: call again. With `all`, every node is
// examined, as timers require; else only those that changed. Returns to service come first, and no limit applies to
// them; then the most severe fault, and among equal faults the earliest.
size_t remedy_plan(struct remedy *r, bool all, struct remedy_action *ret_actions, size_t max);

// Whether the pods that use the GPUs `pod_gpus` (a bit per GPU of the node) have to leave because `gpu` is out of
// service.
bool remedy_plan_moves(const struct remedy *r, const struct remedy_node *n, int gpu, uint32_t pod_gpus);
// Returns the first GPU behind the taint of the node; -1: the planner has not tainted the node.
int remedy_plan_node_taint(const struct remedy_node *n);

// Nodes that are out of service for any reason, and how many the limits allow. Deleted nodes do not count.
int32_t remedy_plan_unavailable(const struct remedy *r);
int32_t remedy_plan_allowed(const struct remedy *r);

#endif
