// SPDX-License-Identifier: Apache-2.0
// The data that the stages of one decide() call share. Private to policies/engine.
#ifndef GPUSCALE_POLICIES_ENGINE_TICK_H
#define GPUSCALE_POLICIES_ENGINE_TICK_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/engine/decision.h"
#include "policies/engine/pods.h"
#include "policies/engine/proposal.h"
#include "policies/engine/source.h"

struct observation;
struct policy_activation;
struct state_header;

// Entries kept free for the stages after sustain.
#define TICK_TRACE_RESERVE 16

struct tick {
	const struct policy *policy;
	const struct observation *observation;
	struct state_header *state;
	struct decision *decision;
	int64_t now_ms;
	struct replica_counts counts;
	int32_t min, max;      // active bounds at this tick
	int32_t schedule;      // index of the active schedule; -1 = none
	int32_t unstabilized;  // the proposal before the stage stabilize
	int32_t wanted;        // the proposal, as each stage leaves it to the next
	double capacity_ratio; // what an average replica serves of what it serves unthrottled; > 0, <= 1
	int32_t replacements; // replacements in the present scale, not counted in counts.spec until the guards stage; 0
	                      // without that guard
	int32_t starting;     // replicas ordered less than the start-up time ago; 0 without `startup`
	bool hold;            // the scale is kept because of missing data
	bool out_of_bounds;   // the scale is outside its bounds: signals are not combined

	// The signal that the stages sources to sustain work on, and what they leave to each other.
	size_t signal;
	struct reading reading;
	struct pod_groups pods; // target type Pods only
	int32_t direction;      // direction of the signal's proposal: see struct proposal

	// Per signal: the value of this tick before any window (NaN = missing), the proposal before sustain (the final
	// one is in decision->signals), and trace entries.
	double raw[POLICY_SIGNALS_MAX];
	int32_t unsustained[POLICY_SIGNALS_MAX];
	int32_t entry[POLICY_SIGNALS_MAX];          // the proposal, or the reason for its absence; -1 = cut
	int32_t sustain_entry[POLICY_SIGNALS_MAX];  // -1 = the sustain stage did not change the proposal
	int32_t starting_entry[POLICY_SIGNALS_MAX]; // -1 = starting replicas did not shorten the scale-up

	// `idle` and `fallback` only.
	bool can_idle;                              // the policy has `idle`, and no schedule keeps the target active
	bool is_idle;                               // the scale is the idle level
	int activity;                               // enum idle_activity
	const struct policy_activation *activation; // what decides about the activity
	int32_t active_min;                         // lower bound while the target is not idle
	bool fallback_active;                       // the fallback decides in place of the signals
};

// Appends a copy of `entry` to the trace and returns its index. Returns -1, and sets trace_cut, when there is no room;
// entries about single signals leave room for those of the later stages. Inline, so that the compiler writes
// the entry into the trace instead of copying it, which saves 76 of the 2,800 instructions of decide().
static inline int32_t tick_trace(struct tick *t, const struct trace_entry *entry)
{
	struct decision *d = t->decision;
	size_t room = entry->stage <= STAGE_SUSTAIN ? DECISION_TRACE_MAX - TICK_TRACE_RESERVE : DECISION_TRACE_MAX;
	if (d->n_trace >= room) {
		d->trace_cut = true;
		return -1;
	}
	d->entries[d->n_trace] = *entry;
	return (int32_t)d->n_trace++;
}

// Sets the proposal to entry->after, and makes `entry`, which it appends to the trace, the one that explains the
// decision.
void tick_set_proposal(struct tick *t, const struct trace_entry *entry);

// Returns +1 when the proposal is above the present scale, -1 when it is below, else 0.
static inline int tick_direction(const struct tick *t)
{
	return (t->wanted > t->counts.spec) - (t->wanted < t->counts.spec);
}

#endif
