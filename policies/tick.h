// SPDX-License-Identifier: Apache-2.0
// What the stages of one decide() call share (private to policies/).
#ifndef GPUSCALE_POLICIES_TICK_H
#define GPUSCALE_POLICIES_TICK_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/decision.h"
#include "policies/proposal.h"

struct observation;
struct state_header;

struct tick {
	const struct policy *policy;
	const struct observation *observation;
	struct state_header *state;
	struct decision *decision;
	int64_t now_ms;
	struct replica_counts counts;
	int32_t min, max; // bounds in force at this tick
	int32_t schedule; // in force; -1 = none
	int32_t wanted;   // the proposal as it goes from stage to stage
	// Per signal: the proposal before sustain (its final one is in decision->signals), and the trace entries to
	// point at.
	int32_t unsustained[POLICY_SIGNALS_MAX];
	int32_t entry[POLICY_SIGNALS_MAX];          // what it proposes, or why it cannot; -1 = cut
	int32_t sustain_entry[POLICY_SIGNALS_MAX];  // -1 = sustain did not touch it
	int32_t starting_entry[POLICY_SIGNALS_MAX]; // its scale-up was cut by what is starting; -1 = it was not
	int32_t coming;                 // replicas ordered less than the start-up time ago; 0 without `startup`
	bool hold;                      // kept because of missing data
	double raw[POLICY_SIGNALS_MAX]; // what the signal showed at this tick, before any window; NaN = nothing
	int activity;                   // enum idle_activity; with `idle` only
	bool asleep;                    // at the idle level
	int32_t awake_min;              // lower bound when it is not
	bool blind;                     // fallback decides in place of the signals
	bool settled;                   // the scale was outside its bounds: signals were not asked
};

// Appends to the trace and returns the index. Notes about single signals leave room for the later stages: beyond it
// they are dropped (trace_cut) and -1 comes back.
int32_t tick_trace(struct tick *t, const struct trace_entry *entry);

// A stage changed the proposal: traces it, makes `after` the proposal, the entry the driver and its reason the primary
// one.
void tick_limit(struct tick *t, const struct trace_entry *entry);

// ---- stages ----

// sources, windows, signals, sustain of one signal: fills decision->signals[i] and the arrays above.
void signal_stage(struct tick *t, size_t i);
// Raises the proposal of its signal in a burst.
void panic_stage(struct tick *t);
// Learns from the forecast's signal, and raises (or replaces) its proposal.
void forecast_stage(struct tick *t);
// Out of all signals one proposal, or a hold (then t->hold).
void combine_stage(struct tick *t);
// Its part for COMBINE_FORMULA, when at least one signal has data.
void combine_by_formula(struct tick *t);
// Nothing can be read any more, for so long that the formula has defaults for all of it (fallback ScalingModifiers).
bool combine_formula_is_answered(const struct tick *t);
// In place of signals that cannot be read for long; and no scale-down until they have come back to stay.
void fallback_stage(struct tick *t);
void stabilize_stage(struct tick *t);
void rate_stage(struct tick *t);
void cooldown_stage(struct tick *t);
void idle_stage(struct tick *t);
void bounds_stage(struct tick *t);
void multiple_stage(struct tick *t);
void guards_stage(struct tick *t);

// +1 the proposal is above the present scale, -1 below, 0 equal.
static inline int tick_direction(const struct tick *t)
{
	return (t->wanted > t->counts.spec) - (t->wanted < t->counts.spec);
}

#endif
