// SPDX-License-Identifier: Apache-2.0
// The status of a GPUAutoscaler as JSON, both ways: what people read in it, and what the next process needs to go on as
// if nothing had happened (recommendations, scale events, start-up time).
#ifndef GPUSCALE_CONTROLLER_STATUS_DOC_H
#define GPUSCALE_CONTROLLER_STATUS_DOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/status_conditions.h"
#include "policies/decision.h"

struct buf;
struct err;
struct policy;

#define STATUS_DECISIONS_MAX       10
#define STATUS_RECOMMENDATIONS_MAX 128
#define STATUS_EVENTS_MAX          256
#define STATUS_BYTES_MAX           (64 * 1024)

// A decision that said something new.
struct status_decision {
	int64_t time_ms;
	enum action action;
	enum reason reason;
	int32_t from, to;
	char *message; // owned
};

// What the status remembers beside the state of the engine.
struct status_record {
	enum condition_status condition[CONDITION_TYPE__COUNT];
	int64_t since_ms[CONDITION_TYPE__COUNT]; // 0 = never said
	struct status_decision *decisions;       // owned, oldest first
	size_t n_decisions, decisions_room;
	int32_t replicas; // read: what the target was last known to be asked for, under this spec; -1 unknown
	bool is_unsure;   // read: when the target was scaled last is there and cannot be read
};
void status_record_done(struct status_record *r);
// Copies the message; the oldest goes when there are STATUS_DECISIONS_MAX.
void status_record_add(struct status_record *r, int64_t time_ms, enum action action, enum reason reason, int32_t from,
                       int32_t to, const char *message);

struct status_doc {
	const struct status_facts *facts;
	const struct condition *conditions; // CONDITION_TYPE__COUNT of them
	const struct status_record *record; // its since_ms are those of `conditions`
	const struct policy *policy;        // NULL: never valid; then state is NULL, too
	const void *state;
	int64_t generation; // of the version that is in force; 0: none
	int64_t now_ms;
};
// {"status":{..}} for a merge-PATCH: a field that lost its value is null.
void status_doc_write(struct buf *out, const struct status_doc *doc);

// Reads the status of an object (`json`: the whole object, or {"status":..}) into a fresh state and an empty record.
// What it cannot use it leaves out, but for the time of the last scale: that counts as now_ms then, and so do times
// after now_ms. -1 and *e when the text is no object: then nothing is known of what was.
int status_doc_read(const char *json, size_t len, const struct policy *policy, void *state,
                    struct status_record *record, int64_t now_ms, struct err *e);

#endif
