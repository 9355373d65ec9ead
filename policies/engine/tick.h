// SPDX-License-Identifier: Apache-2.0
// The data that the stages of one decide() call share, and their entry points. Private to policies/engine.
#ifndef GPUSCALE_POLICIES_ENGINE_TICK_H
#define GPUSCALE_POLICIES_ENGINE_TICK_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/engine/decision.h"
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

// Returns an entry that changes the proposal from t->wanted to `after`, and is not about one signal.
static inline struct trace_entry tick_entry(const struct tick *t, enum stage stage, enum reason reason, int32_t after)
{
	return (struct trace_entry){
	        .stage = stage, .reason = reason, .signal = -1, .before = t->wanted, .after = after};
}

// Returns an entry about `signal` (-1: none) that stays at the present scale.
static inline struct trace_entry tick_note(const struct tick *t, enum stage stage, enum reason reason, int32_t signal)
{
	int32_t spec = t->counts.spec;
	return (struct trace_entry){.stage = stage, .reason = reason, .signal = signal, .before = spec, .after = spec};
}

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
static inline void tick_set_proposal(struct tick *t, const struct trace_entry *entry)
{
	t->decision->driver = tick_trace(t, entry);
	t->decision->reason = entry->reason;
	t->wanted = entry->after;
}

// Returns +1 when the proposal is above the present scale, -1 when it is below, else 0.
static inline int tick_direction(const struct tick *t)
{
	return (t->wanted > t->counts.spec) - (t->wanted < t->counts.spec);
}

// ---- the proposal of one signal that has a value (signal.c) ----

// Returns what a signal with a target other than Pods, or with watermarks, asks for at `value`: hpa_propose() or
// watermark_propose() with the tolerances that apply (behavior.scaleUp.tolerance and behavior.scaleDown.tolerance
// override the target's, as in the HPA).
struct proposal signal_propose(const struct policy *policy, const struct policy_signal *signal, double value,
                               const struct replica_counts *counts);

// Returns whether signal i only informs a guard or a formula: it has neither target nor watermarks, and is not of the
// objective. Such a signal has no proposal, and its absence alone holds nothing.
static inline bool signal_is_input(const struct policy *policy, size_t i)
{
	const struct policy_signal *signal = &policy->signals[i];
	const struct policy_objective *o = &policy->objective;
	bool is_of_objective = o->set && (i == o->demand_index || i == o->backlog_index);
	return !signal->target.set && !signal->watermarks.set && !is_of_objective;
}

// ---- the entry points of the stages, which the table in decide.c runs: for each signal, t->signal (signal.c) ----

// Reads the value of the signal. Without a usable value the signal gets a state other than SIGNAL_OK, and the next
// three stages do nothing.
void sources_stage(struct tick *t);
// Takes the place of sources_stage() for a signal with a formula: evaluates it over the values of the other signals,
// after their stages.
void formula_stage(struct tick *t);
// Replaces the value by the aggregate of the signal's window.
void windows_stage(struct tick *t);
// Sets the proposal of the signal.
void signals_stage(struct tick *t);
// Keeps the present scale as the proposal until the signal has asked for another scale long enough.
void sustain_stage(struct tick *t);

// ---- once per tick; each file says what its stages do ----

void panic_stage(struct tick *t);     // panic_stage.c
void forecast_stage(struct tick *t);  // forecast_stage.c
void objective_stage(struct tick *t); // objective_stage.c
void combine_stage(struct tick *t);   // combine.c
void idle_stage(struct tick *t);      // idle_stage.c
void guards_stage(struct tick *t);    // guards.c
void stabilize_stage(struct tick *t); // limits.c: the HPA's behavior, and the limits of the policy
void rate_stage(struct tick *t);
void cooldown_stage(struct tick *t);
void bounds_stage(struct tick *t);
void multiple_stage(struct tick *t);
void capacity_stage(struct tick *t);
void mode_stage(struct tick *t);

// ---- between the stages ----

// Sets the bounds of this tick from the schedules; runs before all stages (limits.c).
void schedule_observe(struct tick *t);
// Sets t->out_of_bounds; runs after idle_observe(), which may change the bounds (limits.c).
void bounds_observe(struct tick *t);
// Reads the activation signal, sets the lower bound of this tick and runs the idle timer; runs after the signals
// (idle_stage.c). Only for a policy with `idle`.
void idle_observe(struct tick *t);
// Counts the consecutive failures of each signal; runs after the signals, in every tick. Does nothing for a policy
// without `fallback`.
void fallback_observe(struct tick *t);
// Takes the replacements of unhealthy replicas from t->counts; runs before the signals. Only for a policy with
// guards.unhealthyReplicas.
void unhealthy_observe(struct tick *t);
// Reads the signal of guards.maxThrottledShare and sets t->capacity_ratio; runs after that signal and before the
// others. Only for a policy with that guard.
void throttled_observe(struct tick *t);
// Feeds the throughput of this tick to guards.minMarginalGain; runs after the signals, in every tick. Only for a policy
// with that guard.
void gain_observe(struct tick *t);
// Returns how many replicas are requested and not ready: spec - ready, or the pending ones, whichever is more. A pod
// that loads a model is running but not ready: counting only pending pods would miss it.
int32_t guards_starting(const struct replica_counts *counts);

// ---- the clock (decide_state.c) ----

// Returns the time of this tick for a wall clock of now_ms. Moves the state when the clock was set back. At the first
// tick, limits the stamps in the state to the returned time.
int64_t clock_step_now(const struct policy *policy, struct state_header *s, int64_t now_ms);
// Traces the clock events since the last tick and clears them.
void clock_step_trace(struct tick *t);

#endif
