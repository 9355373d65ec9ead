// SPDX-License-Identifier: Apache-2.0
// Chooses the pods that a scale-down removes, and whether it waits until they are empty. The order is that of the
// controller of ReplicaSets, with the work of each pod where that controller compares nothing that people chose.
// Kubernetes: pkg/controller/controller_utils.go, ActivePodsWithRanks.
#ifndef GPUSCALE_POLICIES_ENGINE_VICTIMS_H
#define GPUSCALE_POLICIES_ENGINE_VICTIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/engine/observation.h"

struct decision;
struct policy;

// The deletion cost of a marked pod: lower than any cost that another client is likely to set.
#define VICTIM_COST (-2147483647)
// After this time, whatever gives work to pods has noticed a mark: a pod is empty when this was measured later.
#define VICTIM_NOTICE_MS 1000
// Pods that are marked in one tick. The controller of a larger scale-down chooses the rest by its own order.
#define VICTIM_MARKS_MAX 500

enum victim_action { VICTIM_KEEP, VICTIM_MARK, VICTIM_UNMARK };

struct victim_pod {
	const char *name;
	size_t index; // of the caller
	enum pod_state state;
	bool has_cost;             // another client set the deletion cost: it is respected and never overwritten
	int32_t cost;              // that cost; 0 without one
	int64_t marked_ms;         // when this pod was marked, in ms since the epoch; 0: it is not marked
	double load;               // its work; NaN: unknown, which is treated as busy. 0 or less: empty
	int64_t load_ms;           // when that was measured
	enum victim_action action; // set by victims_plan()
};

struct victim_rules {
	int32_t desired;  // replicas that remain
	bool is_down;     // a scale-down is decided; false: only marks that nothing explains are removed
	bool has_loads;   // at least one pod has a value; false: no pod is marked
	int64_t drain_ms; // the longest time that a marked pod is waited for; 0: the scale-down does not wait
	int64_t since_ms; // when the wait began, for pods that cannot be marked; 0: it begins now
	bool marks_fail;  // the marks of the tick before failed, so that those of this one may, too
	int64_t now_ms;
};

struct victims_plan {
	int32_t n_victims; // the first pods in the order of victims_compare()
	int32_t n_busy;    // victims that may still have work, and whose time is not over
	int32_t n_marks, n_unmarks;
	bool waits;      // the scale-down must wait
	int64_t left_ms; // for at most this time
};

// For qsort(): compares two struct victim_pod. Pods that are pending come first, then those that are not ready; then
// lower costs, where a mark is VICTIM_COST; then less work; then the name. Pods that ended or are being deleted come
// last, and are never victims.
int victims_compare(const void *a, const void *b);

// Plans the pods, which are in that order: sets the action of each and fills *ret_plan. A mark stays until a write
// follows, so that a pod is written at most twice: when it is marked, and when the scale-down goes ahead without it.
void victims_plan(const struct victim_rules *rules, struct victim_pod *pods, size_t n, struct victims_plan *ret_plan);

// Returns whether the decision is written and it matters which pods go: without a drain, all of them may.
bool victims_are_chosen(const struct policy *policy, const struct decision *d);

// What became of the victims, for the trace.
enum victims_outcome {
	VICTIMS_CHOSEN,  // the pods are marked, or come first anyway
	VICTIMS_UNKNOWN, // which pods have the least work is unknown, so Kubernetes chooses
	VICTIMS_UNMARKED // at least one pod could not be marked
};
// Adds the plan to a decision to scale down: an entry of stage victims. Where the plan waits, the decision becomes one
// to stay at the present scale.
void decide_victims(const struct victims_plan *plan, enum victims_outcome outcome, struct decision *d);

#endif
