// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of controller/idle; no other file includes this header.
#ifndef GPUSCALE_CONTROLLER_IDLE_IDLE_RULES_PRIVATE_H
#define GPUSCALE_CONTROLLER_IDLE_IDLE_RULES_PRIVATE_H

#include "base/arena.h"
#include "controller/idle/idle_query.h"
#include "controller/idle/idle_record.h"
#include "controller/idle/idle_rules.h"
#include "controller/idle/idle_target.h"
#include "controller/source/object_watch.h"
#include "controller/status/status_writer.h"
#include "policies/load/idle_rule_set.h"
#include "policies/schema/idle_rule_schema.h"

#define IDLE_FAULT_BYTES    512
#define IDLE_RULE_BYTES_MAX ((size_t)1024 * 1024) // memory of one decoded rule

struct idle_entry {
	struct idle_entry *next;
	struct idle_rules *all;
	bool is_object, is_gone; // gone: freed when its evaluation has ended
	bool is_ours;            // this process evaluated it since it may; else its records follow the status
	bool is_valid;           // some version was: the last one is in force
	char uid[IDLE_UID_BYTES];
	int64_t generation;
	struct arena arena; // of the rule
	struct idle_rule rule;
	char fault[IDLE_FAULT_BYTES]; // of the newest version; "": none
	// the last evaluation
	struct idle_record *records;
	size_t n, room;
	size_t n_found; // idle workloads, those without a record included
	double gpus, per_hour, unallocated;
	int64_t last_scale_ms, due_mono_ms;
	bool is_evaluated;
	char message[IDLE_MESSAGE_BYTES]; // why nothing is known; "": something is
	// the status
	struct status_slot slot;
	struct status_past past;
	char key[]; // "/NAME"
};

struct idle_rules;

// One argument of a query.
struct idle_slot {
	struct idle_rules *all;
	enum idle_ask what;
};

// The evaluation in progress, of one rule at a time (idle_evaluate.c).
struct idle_evaluation {
	struct idle_entry *entry; // NULL: none
	struct idle_slot slots[IDLE_ASK__COUNT];
	struct idle_answer answers[IDLE_ASK__COUNT];
	int n_pending;
	int64_t now_ms;
	struct idle_workloads found;
	size_t at;    // the record in turn
	bool is_void; // the records were replaced: the evaluation ends at its next answer
	enum idle_doing { IDLE_READS, IDLE_SCALES, IDLE_RESTORES } doing;
	struct idle_target *target; // NULL: no client
};

struct idle_rules {
	struct idle_rules_options options;
	struct idle_entry *entries;
	struct idle_rule_set files;
	struct object_watch *objects; // NULL: no objects
	struct idle_evaluation evaluation;
	struct event *timer;
	bool is_closing;
};

// ---- idle_entry.c ----
// Returns a new rule called `name`, in the list of `r`, and lets the timer run.
struct idle_entry *idle_entry_new(struct idle_rules *r, const char *name);
void idle_entry_free(struct idle_entry *e);
// Frees the entry, or marks it for idle_entry_finished() while it is being evaluated.
void idle_entry_forget(struct idle_entry *e);
// The evaluation of the entry has ended; frees it when its object is gone.
void idle_entry_finished(struct idle_entry *e);
// Returns a new record, zeroed; NULL when there are IDLE_RECORDS_MAX.
struct idle_record *idle_entry_add(struct idle_entry *e);
void idle_entry_remove(struct idle_entry *e, size_t i);

// ---- the other files ----
// Starts an evaluation; none may be in progress.
void idle_evaluate(struct idle_rules *all, struct idle_entry *e);
// Writes the status of an object, if it changed.
void idle_status_write(struct idle_entry *e, const char *currency, int64_t now_ms);
// Takes the records of the status in this object, which replace those that are known.
void idle_status_read(struct idle_entry *e, const char *json, size_t len);
// Appends "serving/Deployment/web".
void idle_put_id(struct buf *out, const struct idle_record *record);

#endif
