// SPDX-License-Identifier: Apache-2.0
// Entry points of the stages: what the table in pipeline.c runs, and what pipeline_run() calls between them. Private to
// policies/engine.
#ifndef GPUSCALE_POLICIES_ENGINE_STAGES_H
#define GPUSCALE_POLICIES_ENGINE_STAGES_H

#include <stdint.h>

struct tick;

// ---- once for each signal: t->signal (signal.c) ----

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

// ---- once per tick ----

// Raises the proposal of the panic signal during a burst (panic_stage.c).
void panic_stage(struct tick *t);
// Feeds the forecast, then raises or replaces the proposal of its signal (forecast_stage.c).
void forecast_stage(struct tick *t);
// Simulates the sizing rules of the objective, then sets the proposals of its signals (objective_stage.c).
void objective_stage(struct tick *t);
// Combines the proposals into t->wanted, or sets t->hold; applies the fallback (combine.c).
void combine_stage(struct tick *t);
// The HPA's behavior, and the limits of the policy (limits.c).
void stabilize_stage(struct tick *t);
void rate_stage(struct tick *t);
void cooldown_stage(struct tick *t);
void bounds_stage(struct tick *t);
void multiple_stage(struct tick *t);
void mode_stage(struct tick *t);
// Scales to the idle level, or away from it (idle_stage.c).
void idle_stage(struct tick *t);
// Holds or shortens a change (guards.c).
void guards_stage(struct tick *t);
// Orders no more than fits, and removes replicas that cannot be scheduled (capacity_stage.c).
void capacity_stage(struct tick *t);

// ---- between the stages ----

// Sets the bounds of this tick from the schedules; runs before all stages (limits.c).
void schedule_observe(struct tick *t);
// Sets t->out_of_bounds; runs after idle_observe(), which may change the bounds (limits.c).
void bounds_observe(struct tick *t);
// Reads the activation signal, sets the lower bound of this tick and runs the idle timer; runs after the signals
// (idle_stage.c). Only for a policy with `idle`.
void idle_observe(struct tick *t);
// Counts the consecutive failures of each signal; runs after the signals, in every tick (fallback_stage.c). Does
// nothing for a policy without `fallback`.
void fallback_observe(struct tick *t);

// Takes the replacements of unhealthy replicas from t->counts; runs before the signals. unhealthy_apply() adds what
// guards.unhealthyReplicas wants, and traces the unhealthy replicas; the first part of the guards (unhealthy_stage.c).
// Only for a policy with that guard.
void unhealthy_observe(struct tick *t);
void unhealthy_apply(struct tick *t);

// Reads the signal of guards.maxThrottledShare and sets t->capacity_ratio; runs after that signal and before the others
// (throttled.c). Only for a policy with that guard.
void throttled_observe(struct tick *t);
// Feeds the throughput of this tick to guards.minMarginalGain; runs after the signals, in every tick (gain_stage.c).
// Only for a policy with that guard.
void gain_observe(struct tick *t);
// Shortens a scale-up to the last replica that adds enough, but not below `held`; part of the guards (gain_stage.c).
// Only for a policy with guards.minMarginalGain.
void gain_limit(struct tick *t, int32_t held);

#endif
