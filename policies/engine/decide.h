// SPDX-License-Identifier: Apache-2.0
// The decision engine. Pure: no I/O, no clock, no allocation, no globals; equal inputs give equal decisions and equal
// states. `make purity` proves it.
#ifndef GPUSCALE_POLICIES_ENGINE_DECIDE_H
#define GPUSCALE_POLICIES_ENGINE_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/engine/decision.h"

struct obs_series;
struct observation;
struct policy;

// Decides one tick at now_ms, in ms since the epoch, and writes the decision with its trace to ret_decision.
// observation->n_signals must be policy->n_signals. Updates `state` in place; pass a copy to decide without side
// effects. At the first tick, a recorded stamp later than now_ms is treated as now_ms, so that a stamp from a wrong
// clock cannot prevent scaling.
void decide(const struct policy *policy, const struct observation *observation, int64_t now_ms, void *state,
            struct decision *ret_decision);

// The stages are one table, whose order is also that of the chapters in docs/algorithm.md.
const char *stage_name(enum stage s);
// Returns whether the stage, one that decide() runs, can have an effect under this policy.
bool stage_is_enabled(enum stage s, const struct policy *policy);

// ---- the state ----

// The state of the engine between two ticks: one flat, versioned block that the caller owns and may copy, store and
// restore. These functions create it, add the history of a restart to it, and read from it what must survive a restart.
// All of them are pure, as decide() is.

#define DECIDE_HISTORY_MAX 256 // recommendations, and scale events, kept per policy

// Returns the size of the state of `policy` in bytes, a multiple of 8. It has room for windows of at most
// POLICY_WINDOW_SAMPLES_MAX samples, and for the recommendations and events of the longest window of `behavior`.
size_t decide_state_bytes(const struct policy *policy);

// Initializes `state`, a block of decide_state_bytes() bytes aligned to 8, for a policy without any history. Does not
// write the room for future samples and marks: pass zeroed memory if states are to be compared byte by byte.
void decide_state_init(const struct policy *policy, void *state);

// Returns whether `state`, a block of `bytes` bytes, was initialized for a policy of the same shape by the same version
// of the engine. decide() may use no other state.
bool decide_state_matches(const struct policy *policy, const void *state, size_t bytes);

// Copies into new_state, which is freshly initialized for new_policy, what is still valid after a change of the policy:
// recommendations, scale events, the cooldown, and the windows of signals whose name, query and window are unchanged.
void decide_state_migrate(const struct policy *old_policy, const void *old_state, const struct policy *new_policy,
                          void *new_state);

// A packed state is a copy without the unused room and the empty words, for the time between two ticks.
// decide_state_packed_bytes() returns its size for the present contents of `state`, at most
// DECIDE_STATE_PACKED_MAX(decide_state_bytes()); decide_state_pack() writes it to ret_packed, and
// decide_state_unpack() restores a state from it that decides as the original did. Only the block named ret_ is
// written. States are aligned to 8, packed ones need no alignment.
#define DECIDE_STATE_PACKED_MAX(bytes) ((bytes) + (bytes) / 32 + 512)
size_t decide_state_packed_bytes(const struct policy *policy, void *state);
void decide_state_pack(const struct policy *policy, void *state, void *ret_packed);
void decide_state_unpack(const struct policy *policy, void *packed, void *ret_state);

// ---- history after a restart ----

// Adds n_samples past samples of the signal with index `signal` to its window, and runs its sustain timers over them
// with ready_replicas as the ready count. The samples are reduced to one series, ordered by time and older than now_ms.
// The window is treated as filled as far as the samples reach back. Does nothing for a signal of type Pods, which has
// no window and whose sustain timers restart.
void decide_refill(const struct policy *policy, void *state, size_t signal, const struct obs_series *samples,
                   size_t n_samples, int32_t ready_replicas, int64_t now_ms);

// Returns how far back, in ms, the forecast needs history after a restart, and the step between samples in
// *ret_step_ms. Returns 0 without a forecast, and for a forecast of a value per replica: its load cannot be computed
// without the number of replicas at the time.
int64_t decide_forecast_history_ms(const struct policy *policy, int64_t *ret_step_ms);
// Feeds that history of forecast.signal to the forecast: n_samples samples, reduced to one series, ordered by time and
// older than now_ms. Does nothing for a forecast that already has enough history.
void decide_refill_forecast(const struct policy *policy, void *state, const struct obs_series *samples,
                            size_t n_samples, int64_t now_ms);

#define DECIDE_OBJECTIVE_SAMPLES_MAX 5762 // a day, one in 15 s

// Returns how far back, in ms, the objective needs the history of its demand signal after a restart, and the step
// between samples in *ret_step_ms: a day, or the time since the last simulated step when the rules know a day already.
// Returns 0 without an objective.
int64_t decide_objective_history_ms(const struct policy *policy, const void *state, int64_t now_ms,
                                    int64_t *ret_step_ms);
// Simulates the rules of the objective over that history: n samples of its demand signal, reduced to one series,
// ordered by time and older than now_ms. Samples from before the last simulated step are ignored, unless there are more
// of them than simulated steps: then the rules start anew with all of them. `replicas` is the present scale.
void decide_refill_objective(const struct policy *policy, void *state, const struct obs_series *demand, size_t n,
                             int32_t replicas, int64_t now_ms);

// ---- the clock ----

// Reports that the wall clock was set by step_ms (> 0: forward) since the last call with this state. Everything that
// the engine remembers of its own actions (recommendations, scale events, cooldown, orders, idle and panic timers)
// keeps its age: the stamps move by step_ms. Data from the sources is discarded, because its stamps are those of other
// clocks: windows and sustain timers start empty (decide_refill), and so does a forecast that can be refilled; a
// forecast that cannot be refilled moves by step_ms. The next decision reports REASON_CLOCK_SET. 0: does nothing.
void decide_clock_was_set(const struct policy *policy, void *state, int64_t step_ms);

// Reports that a stamp restored by the caller was ahead_ms in the future and is treated as now. The next decision
// reports REASON_FUTURE_STAMP.
void decide_note_future_stamp(const struct policy *policy, void *state, int64_t ahead_ms);

// A clock that goes back by at most this between two ticks is treated as standing still; a clock that goes back further
// was set (decide_clock_was_set).
#define DECIDE_CLOCK_BACK_MS 2500

// ---- recording ----

// Records that the target was scaled at now_ms: a write was acknowledged, or a test applies the decision. The change
// counts for rate limits and cooldown. HPA: horizontal.go stores events only after a successful write.
void decide_record_scale(const struct policy *policy, void *state, int64_t now_ms, int32_t from_replicas,
                         int32_t to_replicas);

// Records a recommendation of time_ms; call it in the order of time. For tests and restarts.
void decide_record_recommendation(const struct policy *policy, void *state, int64_t time_ms, int32_t replicas);

// Records the time of the last scale, for cooldown. For restarts after which its event is older than every period.
void decide_record_last_scale(const struct policy *policy, void *state, int64_t time_ms);

// Records the time at which unschedulable replicas were withdrawn (capacity.mode Elastic). For tests and restarts.
void decide_record_withdrawal(const struct policy *policy, void *state, int64_t time_ms);

// Records that `replicas` of the present scale replace replicas on failing GPUs. Without guards.unhealthyReplicas:
// Replace, nothing is recorded. For tests and restarts; call it after decide_record_scale().
void decide_record_replacements(const struct policy *policy, void *state, int32_t replicas);

// Records that the last decide_record_scale() is of an earlier process that did not record its replacements, and
// changed the scale by `change` replicas. The next decision counts as many as there are unhealthy replicas. For
// restarts.
void decide_adopt_scale(const struct policy *policy, void *state, int32_t change);

// Records the start-up time that an earlier process learnt; a stated one gives way to it. For tests and restarts.
void decide_record_start(const struct policy *policy, void *state, int64_t start_ms);

// ---- what must survive a restart (kept in `status`) ----

// Returns how long a replica takes to become ready, in ms, as learnt; -1: not yet, a stated time is used if there is
// one.
int64_t decide_startup_ms(const struct policy *policy, const void *state);

struct decide_recommendation {
	int64_t time_ms;
	int32_t replicas;
};
struct decide_scale_event {
	int64_t time_ms;
	int32_t change; // replicas added; negative: removed
};
// Writes the recommendations (the scale events) to ret, oldest first, at most `max`, and returns their number;
// 2 * DECIDE_HISTORY_MAX is always enough. Recording them in a fresh state leads to the same decisions.
size_t decide_recommendations(const struct policy *policy, const void *state, struct decide_recommendation *ret,
                              size_t max);
size_t decide_scale_events(const struct policy *policy, const void *state, struct decide_scale_event *ret, size_t max);
#define DECIDE_OBJECTIVE_BYTES_MAX 4096

// Copies what the objective has learnt to ret_bytes, at most DECIDE_OBJECTIVE_BYTES_MAX bytes, and returns their
// number; 0 without an objective, and before its first step.
size_t decide_objective_save(const struct policy *policy, const void *state, void *ret_bytes);
// Restores n such bytes, which may come from anywhere. Returns false, and changes nothing, when they are not those of
// this version of the engine, of the same two signals, and sane.
bool decide_objective_restore(const struct policy *policy, void *state, const void *bytes, size_t n, int64_t now_ms);
// Returns the work that a replica serves, as the objective has learnt, as a ratio to what its queries take for one
// replica; 1 while nothing is learnt, and without an objective.
double decide_objective_capacity(const struct policy *policy, const void *state);
// Returns the time of the last scale in either direction, in ms since the epoch; -1 = none.
int64_t decide_last_scale_ms(const struct policy *policy, const void *state);
// Returns when unschedulable replicas were withdrawn last, in ms since the epoch; -1 = never.
int64_t decide_withdrawn_ms(const struct policy *policy, const void *state);
// Returns how many replicas of the present scale replace replicas on failing GPUs.
int32_t decide_replacements(const struct policy *policy, const void *state);

#endif
