// SPDX-License-Identifier: Apache-2.0
// Writes and reads the status of a GPUAutoscaler as JSON: what people read, and what the next process needs to continue
// (recommendations, scale events, start-up time).
#ifndef GPUSCALE_CONTROLLER_STATUS_STATUS_DOC_H
#define GPUSCALE_CONTROLLER_STATUS_STATUS_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/status/status_conditions.h"
#include "policies/engine/decision.h"

struct buf;
struct binding;
struct err;
struct policy;

#define STATUS_DECISIONS_MAX       10
#define STATUS_RECOMMENDATIONS_MAX 128
#define STATUS_EVENTS_MAX          256
#define STATUS_BYTES_MAX           (64 * 1024)

// A decision that differed from the one before.
struct status_decision {
	int64_t time_ms;
	enum action action;
	enum reason reason;
	int32_t from, to;
	char *message; // owned
};

// What the status contains beside the state of the engine.
struct status_record {
	enum condition_status condition[CONDITION_TYPE__COUNT];
	int64_t since_ms[CONDITION_TYPE__COUNT]; // 0: never reported
	struct status_decision *decisions;       // owned, oldest first
	size_t n_decisions, decisions_room;
	int32_t replicas;          // read: the replicas last requested under this spec; -1: unknown
	bool is_unsure;            // read: the time of the last scale is invalid
	bool has_variants;         // as has_objective_record, of status.variants
	bool has_objective_record; // one was read or written: without an objective it is to be cleared
};
void status_record_done(struct status_record *r);
// Adds a decision and copies the message; drops the oldest above STATUS_DECISIONS_MAX.
void status_record_add(struct status_record *r, int64_t time_ms, enum action action, enum reason reason, int32_t from,
                       int32_t to, const char *message);

// Moves all times in the record by step_ms, by which the wall clock was set.
void status_record_clock_was_set(struct status_record *r, int64_t step_ms);

struct status_doc {
	const struct status_facts *facts;
	const struct condition *conditions; // CONDITION_TYPE__COUNT of them
	const struct status_record *record; // its since_ms are those of `conditions`
	const struct policy *policy;        // NULL: never valid; then state is NULL, too
	const void *state;
	int64_t generation; // of the version that is in force; 0: none
	int64_t now_ms;
	const char *key; // of one of several bindings; NULL: the only one
};
// Appends {"status":{..}} for a merge-PATCH: a field without a value is null. With a key, the status of the binding is
// in status.targets, and those of the others stay; of its other fields only observedGeneration has a value.
void status_doc_write(struct buf *out, const struct status_doc *doc);

// Likewise, with nothing but the replicas of the target: what is known before the first scale.
void status_doc_write_replicas(struct buf *out, const char *key, int32_t replicas, int64_t generation);
// Appends the merge-PATCH that removes the entry of a binding with a key.
void status_doc_write_removal(struct buf *out, const char *key);

// Reads the status of a binding, whose target does not matter, from that of its object (`json`: the whole object, or
// {"status":..}) into a fresh state and an empty record.
// Skips invalid fields, except an invalid time of the last scale and times after now_ms, which count as now_ms. Returns
// -1 and *e when the text is not a JSON object.
int status_doc_read(const char *json, size_t len, const struct binding *binding, void *state,
                    struct status_record *record, int64_t now_ms, struct err *e);

// ---- scaled_object_doc.c ----

#define SCALED_OBJECT_STATE     "GPUScaleState" // the type of that condition
#define SCALED_OBJECT_BYTES_MAX (192 * 1024)    // a status with the quotes of its state escaped

struct scaled_object_doc {
	const struct status_facts *facts;   // NULL: nothing is known but the state
	const struct condition *conditions; // CONDITION_TYPE__COUNT of them; NULL with the facts
	const struct binding *binding;      // NULL: no version was ever valid
	const char *state;                  // {"status":{..}} of the policy; NULL: none
};

// Returns whether a trigger is active, as KEDA's condition Active: a value above its activation threshold, or an open
// schedule.
bool scaled_object_is_active(const struct status_facts *facts);
// Returns whether the fallback decides.
bool scaled_object_is_in_fallback(const struct status_facts *facts);

// Appends {"status":{..}} for a merge-PATCH.
void scaled_object_doc_write(struct buf *out, const struct scaled_object_doc *doc);
// Appends {"metadata":{..},"status":{..}} of the policy, as status_doc_read() reads it, from the ScaledObject `json`;
// with an empty status if the object has no such state. Returns whether it has.
bool scaled_object_doc_read(struct buf *out, const char *json, size_t len);

#endif
