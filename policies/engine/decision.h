// SPDX-License-Identifier: Apache-2.0
// The result of decide(): the replicas wanted, the action, the reason, and the trace that every explanation renders.
#ifndef GPUSCALE_POLICIES_ENGINE_DECISION_H
#define GPUSCALE_POLICIES_ENGINE_DECISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/engine/policy.h"
#include "policies/engine/reason.h"

#define DECISION_TRACE_MAX 64

// The stages of a decision, in the order of its trace. decide() runs those of the table in decide.c.
enum stage {
	STAGE_SOURCES,
	STAGE_WINDOWS,
	STAGE_SIGNALS,
	STAGE_SUSTAIN,
	STAGE_PANIC,
	STAGE_FORECAST,
	STAGE_OBJECTIVE,
	STAGE_COMBINE,
	STAGE_STABILIZE,
	STAGE_RATE,
	STAGE_COOLDOWN,
	STAGE_IDLE,
	STAGE_BOUNDS,
	STAGE_MULTIPLE,
	STAGE_GUARDS,
	STAGE_CAPACITY,
	STAGE_MODE,
	STAGE_DECIDE__COUNT,
	STAGE_POOL = STAGE_DECIDE__COUNT, // after decide(): decide_grant() adds its entry
	STAGE_VICTIMS,                    // after the pool: decide_victims() adds its entries (victims.h)
	STAGE_VARIANTS,                   // after the pool: the decision is spread over the variants of the policy
	STAGE__COUNT
};

enum action { ACTION_NONE, ACTION_HOLD, ACTION_SCALE_UP, ACTION_SCALE_DOWN, ACTION__COUNT };
extern const char *const action_names[ACTION__COUNT]; // "None", "Hold", "ScaleUp", "ScaleDown"

// One step of the pipeline, in numbers only: explain_sentence() renders it with reason_info()->sentence.
struct trace_entry {
	enum stage stage;
	enum reason reason;
	int32_t signal;        // index into policy.signals, -1 = not about one signal
	int32_t before, after; // proposal in replicas
	double value;          // {value}: the signal's aggregated value
	double limit;          // {limit}: target, watermark or rate limit
	int64_t duration_ms;   // {duration}: age, time remaining, time elapsed
	int64_t window_ms;     // {window}: the configured period
	// {count}, {nth}: series, samples, a replica; {schedule}: index into policy.schedules; {rule}: as of
	// objective_rule_code()
	int32_t count;
};

enum signal_state { SIGNAL_OK, SIGNAL_MISSING, SIGNAL_IGNORED, SIGNAL_FILLING, SIGNAL_STATE__COUNT };
extern const char *const signal_state_names[SIGNAL_STATE__COUNT]; // "OK", "Missing", "Ignored", "Filling"

// Every policy keeps its last decision, with room for all signals: no padding here.
struct decision_signal {
	enum signal_state state : 16;
	enum reason reason : 16; // explains the proposal, or the missing value
	int32_t proposal;        // replicas; current when missing
	double value;            // after series reduction and window; NaN when missing
	double target;  // what `value` was compared with: the target value, or the watermark it crossed (else the high
	                // one)
	int64_t age_ms; // age of the newest sample; -1 when there is none
};
_Static_assert(sizeof(struct decision_signal) == 32, "no padding");

struct decision {
	int64_t time_ms;
	int32_t current, ready, pending; // as observed; ready -1 = unknown
	int32_t min_replicas,
	        max_replicas; // active bounds at this tick: a schedule or the idle level may change them
	int32_t desired;
	enum action action;
	enum reason reason; // the last stage that limited or changed the proposal; DesiredWithinRange when none did
	int32_t driver;     // index of the trace entry that explains the decision; its sentence is the message
	bool write;         // the target is to be scaled: desired != current, not paused, not dry-run
	bool trace_cut;     // entries were dropped for lack of room
	bool is_kept;       // by decision_keep()
	size_t n_signals, n_trace;
	struct decision_signal signals[POLICY_SIGNALS_MAX];
	struct trace_entry entries[DECISION_TRACE_MAX]; // the trace; read it with decision_entry()
};

// Returns an entry of the trace; index: below n_trace.
static inline const struct trace_entry *decision_entry(const struct decision *d, size_t index)
{
	const void *kept = d->signals + d->n_signals;
	return d->is_kept ? (const struct trace_entry *)kept + index : &d->entries[index];
}

// Returns the first entry of the trace with this reason, or NULL.
const struct trace_entry *decision_find(const struct decision *d, enum reason reason);

// A decision has room for 16 signals and a long trace, and most have one signal and a short trace. A kept decision has
// its trace right behind its signals, and ends there. Access it through a pointer only, and never assign it as a whole.
// Returns the size of the kept form of d, in bytes.
size_t decision_kept_bytes(const struct decision *d);
// Writes the kept form of d, which is not kept itself, to *ret_kept, which has decision_kept_bytes().
void decision_keep(const struct decision *d, struct decision *ret_kept);

// ---- after decide() ----

// Changes the decision that decide() made for `policy` from d->desired to `granted` replicas, and appends an entry of
// the reason's stage, pool or variants, with `reason` to the trace, which then explains the decision. Without room in
// the trace only the replicas change. Does nothing when `granted` is what the policy wants. Call at most once per
// decision, and not for a policy that writes nothing (paused, dryRun).
void decide_grant(const struct policy *policy, int32_t granted, enum reason reason, struct decision *d);

// Appends an entry to the trace that changes nothing.
void decide_add_note(struct decision *d, enum stage stage, enum reason reason);

// Whether decide_grant() gives this reason: a target with 0 replicas after such a decision was emptied by its pool.
bool decide_reason_is_of_pool(enum reason reason);

#endif
