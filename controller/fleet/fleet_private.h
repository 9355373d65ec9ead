// SPDX-License-Identifier: Apache-2.0
// What fleet.c and fleet_status.c share; no other file includes it.
#ifndef GPUSCALE_CONTROLLER_FLEET_FLEET_PRIVATE_H
#define GPUSCALE_CONTROLLER_FLEET_FLEET_PRIVATE_H

#include "controller/fleet/fleet.h"
#include "controller/fleet/fleet_record.h"
#include "controller/fleet/fleet_targets.h"
#include "controller/source/policy_store.h"
#include "controller/status/status_writer.h"
#include "runtime/query/query_answer.h"

#define FLEET_ERROR_BYTES 512

enum fleet_condition { FLEET_READY, FLEET_SCALING_ACTIVE, FLEET_CONFLICT, FLEET_DRY_RUN, FLEET_CONDITION__COUNT };

// The argument of the query of one signal.
struct fleet_slot {
	struct fleet *fleet;
	size_t signal;
};

struct fleet {
	struct fleet_env *env;
	struct fleet *previous, *next; // in env->list
	struct policy_ref *body;
	const struct policy *policy;
	struct policy_identity identity; // generation 0: from a file
	void *owner;
	struct fleet_targets targets;
	char *queries[POLICY_SIGNALS_MAX]; // grouped; NULL: the signal has a formula
	void *state;                       // unpacked state of the target in turn
	struct fleet_record *past;         // NULL: read at the first tick, or there is none
	bool needs_past;

	// the tick in progress
	enum tick_phase phase;
	int64_t now_ms, started_us;
	bool is_void, awaits_list;
	int n_pending; // answers, and the function that requests them
	struct fleet_slot slots[POLICY_SIGNALS_MAX];
	struct query_answer *answers[POLICY_SIGNALS_MAX];
	struct fleet_target *first_write, **last_write;
	int n_writing;
	size_t n_scaled, n_failed;
	size_t n_unknown; // targets whose conflicts are not known yet
	int n_early;      // ticks that ended with some

	// the last tick
	char error[FLEET_ERROR_BYTES];
	size_t n_unmatched;
	char unmatched[256];                 // the labels of one series without a target
	char query_error[FLEET_ERROR_BYTES]; // of a signal that has no data for the whole fleet

	// the status
	struct status_slot slot;
	struct status_past written;
	bool is_recorded;                         // the API server has a status with the record
	void (*sent)(struct fleet *f);            // of fleet_status_send() in flight
	int conditions[FLEET_CONDITION__COUNT];   // enum condition_status
	int64_t since_ms[FLEET_CONDITION__COUNT]; // since when
};

// Returns the engine's state of the target in f->state.
void *fleet_unpack(struct fleet *f, struct fleet_target *t);
// Returns what the last decision is about, for explain_message().
struct decided fleet_decided(const struct fleet *f, const struct fleet_target *t);

// ---- fleet_status.c ----

// Records Events at the target: that the fleet has scaled it; that a write has failed, unless the write before had
// failed, too; that the fleet does not scale it, or does again.
void fleet_report_scaled(const struct fleet *f, const struct fleet_target *t);
void fleet_report_failed(const struct fleet *f, struct fleet_target *t);
void fleet_report_role(const struct fleet *f, struct fleet_target *t);

// Writes the status if it has changed and the last one is old enough. Does nothing for a fleet from a file.
void fleet_status_offer(struct fleet *f);
// Sends the status at once; done is called when it is written or has failed. Returns 0, or -1 and *e; then done is not
// called.
int fleet_status_send(struct fleet *f, void (*done)(struct fleet *f), struct err *e);
// Reads the record of an earlier process. json: the whole object.
void fleet_status_read(struct fleet *f, const char *json, size_t len);

#endif
