// SPDX-License-Identifier: Apache-2.0
// What decide() answers: the replicas wanted, the action, the reason, and the trace that every explanation renders.
#ifndef GPUSCALE_POLICIES_DECISION_H
#define GPUSCALE_POLICIES_DECISION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/policy.h"
#include "policies/reason.h"

#define DECISION_TRACE_MAX 64

enum action { ACTION_NONE, ACTION_HOLD, ACTION_SCALE_UP, ACTION_SCALE_DOWN, ACTION__COUNT };
const char *action_name(enum action a); // "None", "Hold", "ScaleUp", "ScaleDown"

// One step of the pipeline. Numbers only: the sentence is made outside the core from reason_info()->sentence.
struct trace_entry {
	enum stage stage;
	enum reason reason;
	int32_t signal;        // index into policy.signals, -1 = not about one signal
	int32_t before, after; // proposal in replicas
	double value;          // {value}: the signal's aggregated value
	double limit;          // {limit}: target, mark or rate limit it was held against
	int64_t duration_ms;   // {duration}: age, time left, how long it has held
	int64_t window_ms;     // {window}: the configured period
	int32_t count;         // {count}: series, samples; {schedule}: index into policy.schedules
};

enum signal_state { SIGNAL_OK, SIGNAL_MISSING, SIGNAL_IGNORED, SIGNAL_FILLING, SIGNAL_STATE__COUNT };
const char *signal_state_name(enum signal_state s); // "OK", "Missing", "Ignored", "Filling"

struct decision_signal {
	enum signal_state state;
	enum reason reason; // why it proposes what it proposes, or why it is missing
	double value;       // after series reduction and window; NaN when missing
	double target;    // what it was compared with: target value, or the mark that was crossed (else the high mark)
	int32_t proposal; // replicas; current when missing
	int64_t age_ms;   // of the newest sample; -1 when there is none
};

struct decision {
	int64_t time_ms;
	int32_t current, ready, pending; // as observed; ready -1 = not known
	int32_t min_replicas,
	        max_replicas; // bounds in force at this tick: a schedule or the idle level may change them
	int32_t desired;
	enum action action;
	enum reason reason; // the last stage that limited or changed the proposal; DesiredWithinRange when none did
	int32_t driver;     // trace index of the entry that explains the result best: its sentence is the message
	bool write;         // the shell may PATCH: desired != current, not paused, not dry-run
	struct decision_signal signals[POLICY_SIGNALS_MAX];
	size_t n_signals;
	size_t n_trace;
	bool trace_cut; // more steps than DECISION_TRACE_MAX
	struct trace_entry trace[DECISION_TRACE_MAX];
};

// The bytes from the start that say something: the trace comes last and is mostly short, so a kept copy may end there.
// Such a copy is read through the pointer, never assigned as a whole.
size_t decision_bytes(const struct decision *d);

#endif
