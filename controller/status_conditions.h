// SPDX-License-Identifier: Apache-2.0
// From a decision, or from what kept it from being made, to the conditions of a GPUAutoscaler: the HPA's types and
// reasons where it has them. HPA: pkg/controller/podautoscaler/horizontal.go, setCondition.
#ifndef GPUSCALE_CONTROLLER_STATUS_CONDITIONS_H
#define GPUSCALE_CONTROLLER_STATUS_CONDITIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/render.h"

enum condition_type {
	CONDITION_READY, // in one word: the policy is valid, its target can be scaled, its signals can be read
	CONDITION_ABLE_TO_SCALE,
	CONDITION_SCALING_ACTIVE,
	CONDITION_SCALING_LIMITED,
	CONDITION_CONFLICT, // somebody else drives the target
	CONDITION_DRY_RUN,
	CONDITION_PAUSED,
	CONDITION_TYPE__COUNT
};
extern const char *const condition_type_names[CONDITION_TYPE__COUNT];

enum condition_status { CONDITION_UNKNOWN, CONDITION_FALSE, CONDITION_TRUE, CONDITION_STATUS__COUNT };
extern const char *const condition_status_names[CONDITION_STATUS__COUNT]; // "Unknown", "False", "True"

struct condition {
	enum condition_status status;
	const char *reason; // CamelCase, static
	char message[RENDER_SENTENCE_BYTES];
};

// What happened.
enum status_phase {
	STATUS_DECIDED,      // nothing was written: there was nothing to write, or it must not be
	STATUS_SCALED,       // the target was scaled
	STATUS_WRITE_FAILED, // it should have been; `text` says why not
	STATUS_READ_FAILED,  // the target cannot be read; `text`
	STATUS_CONFLICT,     // not decided: `text` drives the target
	STATUS_INVALID,      // not decided: the policy has faults, `text` names them
	STATUS_PHASE__COUNT
};

struct status_facts {
	enum status_phase phase;
	const struct decided *decided; // the last decision; NULL when there is none, or it is of another phase
	const char *text;
	const char *rival;    // drives the target, and we decide all the same, for nothing is written; NULL: nobody
	const char *unseen;   // why somebody else who drives the target may be overlooked; NULL: nobody is
	const char *fault;    // the newest version of the policy has faults and the last good one is in force; NULL: no
	bool dry_run, paused; // in force, whoever says so
};

void status_conditions(const struct status_facts *facts, struct condition ret_conditions[CONDITION_TYPE__COUNT]);

#endif
