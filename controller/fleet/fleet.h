// SPDX-License-Identifier: Apache-2.0
// A fleet: one policy that scales many objects. A tick sends each query once, deals out its series to the targets by
// their label, decides for each target with a state of its own, and PATCHes the scale of those that change, a few at a
// time. Its status has counts and the worst targets (fleet_status.h).
#ifndef GPUSCALE_CONTROLLER_FLEET_FLEET_H
#define GPUSCALE_CONTROLLER_FLEET_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/fleet/fleet_targets.h"
#include "controller/source/policy_store.h"
#include "controller/status/status_writer.h"
#include "controller/tick/reconcile.h"
#include "runtime/query/query_answer.h"

struct conflict_watch;
struct event_recorder;
struct fleet_record;
struct json_writer;
struct metrics;

#define FLEET_WRITES_MAX  32    // in flight at once, of one fleet
#define FLEET_STATUS_MS   30000 // the status is written at most this often
#define FLEET_WORST_SHOWN 5
#define FLEET_ERROR_BYTES 512

// What all fleets share; owned by the caller, and it must outlive them.
struct fleet_env {
	const struct reconcile_env *tick; // sources, log, dry_run, stopping, permit, find_pool
	struct metrics *metrics;          // NULL: not counted
	struct status_writer *writer;     // NULL: no status is written
	struct event_recorder *events;    // NULL: no Events
	struct conflict_watch *conflicts; // NULL: not watched. Its targets have the owner as user
	struct fleet *list;               // all fleets; the caller leaves it alone
	const char *own_namespace;        // of this process; NULL: not known
	bool spans_anywhere;              // policies of other namespaces may span namespaces, too
	// Returns the name of the policy that has a target of its own, valid until the loop runs; NULL: none.
	const char *(*find_policy)(void *owner, const struct scale_ref *ref);
	// The tick has ended: the fleet may be freed.
	void (*finished)(void *owner);
	// The targets are known, so that a tick makes sense now.
	void (*ask)(void *owner);
};

enum fleet_condition { FLEET_READY, FLEET_SCALING_ACTIVE, FLEET_CONFLICT, FLEET_DRY_RUN, FLEET_CONDITION__COUNT };

// The argument of the query of one signal.
struct fleet_slot {
	struct fleet *fleet;
	size_t signal;
};

// Other files read it; fleet.c and fleet_status.c alone change it.
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
	struct fleet_target *writes; // queued
	int n_writing;
	size_t n_scaled, n_failed;
	size_t n_unknown; // targets whose conflicts are not known yet
	int n_early;      // ticks that ended with some

	// the last tick
	char error[FLEET_ERROR_BYTES]; // why it made no decision; "": it did
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

// Creates a fleet of the policy `body`, which gets a reference. identity: of its object; NULL: from a file, so that no
// status is read or written. Why a fleet cannot be watched, its ticks report. Ends the process without memory.
struct fleet *fleet_new(struct fleet_env *env, struct policy_ref *body, const struct policy_identity *identity,
                        void *owner);
// No tick may be in progress. NULL is fine.
void fleet_free(struct fleet *f);
// Starts a tick as of now_ms (wall clock). `finished` may be called before this returns.
void fleet_tick(struct fleet *f, int64_t now_ms);
// Reports to all fleets that the wall clock was set by step_ms: ticks in progress end without a decision, and stamps
// keep their age.
void fleets_clock_was_set(struct fleet_env *env, int64_t step_ms);
// Returns whether a tick of any fleet is in progress.
bool fleets_are_busy(const struct fleet_env *env);
// Stops all watches. Call before the conflict watch and the client are freed.
void fleets_disconnect(struct fleet_env *env);

// Sums over the targets.
struct fleet_numbers {
	const struct policy *policy;
	size_t targets, ready, idle, at_max, holding, conflicts, failed;
	int64_t replicas, desired, ready_replicas;
};
struct fleet_numbers fleet_get_numbers(const struct fleet *f);
// Writes the members of a row of the status page (docs/endpoints.md) into an open object: sums over the targets, why
// the fleet does not scale, its conditions, and `fleet` with the numbers and the worst targets. Returns the replicas of
// all targets. A fleet without a tick has no target yet.
int64_t fleet_write_overview(const struct fleet *f, struct json_writer *w);

// ---- what fleet.c and fleet_status.c share ----

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
