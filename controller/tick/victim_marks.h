// SPDX-License-Identifier: Apache-2.0
// The pods that a scale-down removes (behavior.scaleDown.victims): reads the work of each pod and the marks, plans with
// policies/engine/victims.h, and writes marks. The marks are the only memory, so that another process continues.
#ifndef GPUSCALE_CONTROLLER_TICK_VICTIM_MARKS_H
#define GPUSCALE_CONTROLLER_TICK_VICTIM_MARKS_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/engine/victims.h"

struct binding;
struct observe_sources;

#define VICTIMS_STALE_MS   60000 // older values are treated as missing
#define VICTIMS_WRITES_MAX 8     // PATCHes in flight
#define VICTIMS_TEXT_BYTES 256

// All pointers must stay valid until `done` is called.
struct victims_question {
	const struct observe_sources *sources; // with k8s
	const struct binding *binding;
	const char *selector; // of the scale
	int32_t replicas;     // of the target: those requested, or those that exist, whichever are more
	int32_t desired;
	bool is_down;     // as in struct victim_rules; false: removes marks, and sends no query
	bool writes;      // false: plans only
	int64_t since_ms; // as in struct victim_rules
	bool marks_fail;
	int64_t now_ms; // wall clock
};

struct victims_result {
	struct victims_plan plan;
	enum victims_outcome outcome;
	bool has_marks;                // pods may still be marked
	bool is_forbidden;             // pods must not be patched (RBAC); the plan does not wait then
	char text[VICTIMS_TEXT_BYTES]; // for struct decided: the names of the first victims, or what is missing
};
// Called once, maybe before victim_marks_start() returns. The result is valid during the call.
typedef void victims_done_fn(void *arg, const struct victims_result *result);
void victim_marks_start(const struct victims_question *question, victims_done_fn *done, void *arg);

#endif
