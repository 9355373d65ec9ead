// SPDX-License-Identifier: Apache-2.0
// One table of reasons: why the planner acts, holds, or does not use an input; name and sentence.
#ifndef GPUSCALE_REMEDY_PLAN_REMEDY_REASON_H
#define GPUSCALE_REMEDY_PLAN_REMEDY_REASON_H

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

const struct remedy_reason_info *remedy_reason_info(enum remedy_reason reason);

#endif
