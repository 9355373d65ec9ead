// SPDX-License-Identifier: Apache-2.0
// The record of a rule about one idle workload, and the next step for it. Pure, so that every case is a row of a test.
#ifndef GPUSCALE_CONTROLLER_IDLE_IDLE_RECORD_H
#define GPUSCALE_CONTROLLER_IDLE_IDLE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct conflict_interest;
struct idle_rule;
struct idle_workload;

#define IDLE_KIND_BYTES    64
#define IDLE_MESSAGE_BYTES 320
#define IDLE_NAME_BYTES    254
#define IDLE_SPACE_BYTES   64

// Annotation that people set on a workload: "exempt" keeps rules from scaling it, "restore" brings its replicas back.
#define IDLE_ANNOTATION "gpuscale.dev/idle"
// Annotation that the controller sets on a workload: the replicas before the scale.
#define IDLE_ANNOTATION_REPLICAS "gpuscale.dev/idle-replicas"

enum idle_state {
	IDLE_REPORTED,
	IDLE_HELD,    // idle, and not to be scaled; `message` says why
	IDLE_EXEMPT,  // by its annotation
	IDLE_WARNED,  // will be scaled after the grace period
	IDLE_SCALING, // about to be scaled, or a PATCH has not been answered
	IDLE_SCALED,
	IDLE_STATE__COUNT
};
extern const char *const idle_state_names[IDLE_STATE__COUNT + 1]; // NULL-terminated

struct idle_record {
	char namespace_name[IDLE_SPACE_BYTES], kind[IDLE_KIND_BYTES], name[IDLE_NAME_BYTES];
	enum idle_state state;
	double gpus, per_hour; // of the last evaluation that found it idle
	int64_t since_ms, warned_ms, changed_ms;
	int32_t replicas;                   // before the scale
	char message[IDLE_MESSAGE_BYTES];   // ""
	const struct idle_workload *found;  // in the evaluation in progress; NULL: not idle
	struct conflict_interest *interest; // NULL: not watched
	bool is_announced, is_recorded;     // the status with this IDLE_SCALING is queued; was written
};

// What is known of the workload at this moment.
struct idle_facts {
	bool exists, is_exempt, wants_restore;
	int32_t replicas;
	int32_t former;        // IDLE_ANNOTATION_REPLICAS; -1: none
	bool is_recorded;      // the status has this record as it is
	const char *held_why;  // a policy, another autoscaler, or that this is not known: NULL: none
	int64_t last_scale_ms; // of the rule; 0: none
};

enum idle_step {
	IDLE_STEP_NONE,
	IDLE_STEP_DROP, // the record can go
	IDLE_STEP_HOLD,
	IDLE_STEP_EXEMPT,
	IDLE_STEP_WARN,
	IDLE_STEP_LIMIT,  // later: maxPerHour
	IDLE_STEP_RECORD, // write IDLE_SCALING to the status before the scale, for the process that replaces this one
	IDLE_STEP_SCALE,
	IDLE_STEP_DONE, // it is scaled
	IDLE_STEP_RESTORE
};
// Returns the next step for a record of a rule with action Scale. Without `found`, only records that were scaled, or
// may have been, are to be asked for.
enum idle_step idle_record_next(const struct idle_rule *rule, const struct idle_record *record,
                                const struct idle_facts *facts, int64_t now_ms);
// Returns whether the workload was scaled, or may have been: it is kept though it is not idle any more.
bool idle_record_is_scaled(const struct idle_record *record);

#endif
