// SPDX-License-Identifier: Apache-2.0
// Converts a decision, or the cause that prevented one, to the conditions of a GPUAutoscaler: the HPA's types and
// reasons where it has them. HPA: pkg/controller/podautoscaler/horizontal.go, setCondition.
#ifndef GPUSCALE_CONTROLLER_STATUS_STATUS_CONDITIONS_H
#define GPUSCALE_CONTROLLER_STATUS_STATUS_CONDITIONS_H

#include <stdbool.h>

#include "policies/explain/explain.h"

enum condition_type {
	CONDITION_READY, // the policy is valid, its target can be scaled, its signals can be read
	CONDITION_ABLE_TO_SCALE,
	CONDITION_SCALING_ACTIVE,
	CONDITION_SCALING_LIMITED,
	CONDITION_CONFLICT, // another autoscaler drives the target
	CONDITION_DRY_RUN,
	CONDITION_PAUSED,
	CONDITION_OBJECTIVE_NOT_REACHABLE, // absent without an objective, or without a decision
	CONDITION_CAPACITY_LEARNT,         // as is this one
	CONDITION_UNHEALTHY_REPLICAS,      // absent without guards.unhealthyReplicas, or without a decision
	CONDITION_CAPACITY_LIMITED,        // absent without capacity.mode, or without a decision
	CONDITION_TYPE__COUNT
};
extern const char *const condition_type_names[CONDITION_TYPE__COUNT];

enum condition_status { CONDITION_UNKNOWN, CONDITION_FALSE, CONDITION_TRUE, CONDITION_STATUS__COUNT };
extern const char *const condition_status_names[CONDITION_STATUS__COUNT]; // "Unknown", "False", "True"

struct condition {
	enum condition_status status;
	const char *reason; // CamelCase, static; "": the condition is absent
	char message[RENDER_SENTENCE_BYTES];
};

// Outcome of a tick, or why there was none.
enum status_phase {
	STATUS_DECIDED,      // wrote nothing: the scale is right, or writing is not permitted
	STATUS_SCALED,       // the target was scaled
	STATUS_WRITE_FAILED, // could not scale the target; `text` says why not
	STATUS_READ_FAILED,  // could not read the target; `text` says why not
	STATUS_CONFLICT,     // no decision: `text` names the autoscaler that drives the target
	STATUS_INVALID,      // no decision: the policy is invalid, `text` names its faults
	STATUS_PHASE__COUNT
};

struct status_facts {
	enum status_phase phase;
	const struct decided *decided; // the last decision; NULL: none, or it belongs to another phase
	const char *text;
	const char *conflict;    // the autoscaler that drives the target of a policy that writes nothing; NULL: none
	const char *watch_error; // why conflicting autoscalers may go undetected; NULL: they are all visible
	const char *fault;       // faults of the newest version, while the last valid one is in force; NULL: none
	bool dry_run, paused;    // in force, by the policy or by a flag
};

void status_conditions(const struct status_facts *facts, struct condition ret_conditions[CONDITION_TYPE__COUNT]);

#endif
