// SPDX-License-Identifier: Apache-2.0
// The decision engine. Pure: no I/O, no clock, no allocation, no globals; equal inputs give equal decisions and equal
// state. Proved by `make purity`. The state is one flat, versioned block that the caller owns and may copy, store and
// restore.
#ifndef GPUSCALE_POLICIES_DECIDE_H
#define GPUSCALE_POLICIES_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct decision;
struct obs_series;
struct observation;
struct policy;

#define DECIDE_STATE_VERSION 4
#define DECIDE_HISTORY_MAX   256 // recommendations, and scale events, kept per policy

// Bytes of state this policy needs: windows of at most POLICY_WINDOW_SAMPLES_MAX samples, recommendations and events
// for the longest window of `behavior`. Multiple of 8.
size_t decide_state_bytes(const struct policy *policy);

// Makes `state` (decide_state_bytes, 8-byte aligned) that of a policy nobody has decided on yet. Room for what is yet
// to be remembered is left as it is: give zeroed memory where states are compared byte by byte.
void decide_state_init(const struct policy *policy, void *state);

// True when `state` was made for a policy of the same shape and version: only then may decide() use it.
bool decide_state_matches(const struct policy *policy, const void *state, size_t bytes);

// Carries over what still makes sense (recommendations, scale events, cooldown, windows of signals whose name, query
// and window are unchanged) into the freshly initialised new_state: used when a policy file changes.
void decide_state_migrate(const struct policy *old_policy, const void *old_state, const struct policy *new_policy,
                          void *new_state);

// The state without the room that says nothing, for the time between two ticks: how many bytes that are, writing them,
// and the state made of them again, which decides as it did. `state` and `packed` are only read where they are not
// returned; both are 8-byte aligned.
size_t decide_state_packed_bytes(const struct policy *policy, void *state);
void decide_state_pack(const struct policy *policy, void *state, void *ret_packed);
void decide_state_unpack(const struct policy *policy, void *packed, void *ret_state);

// Puts the past samples of one signal (oldest first, series already reduced to one, all before now_ms) into its window
// and its sustain timers, judged with the given ready count. Marks the window as filled as far as the samples reach
// back. Does nothing for a signal of type Pods: it has no window, and its sustain timers start anew.
void decide_refill(const struct policy *policy, void *state, size_t signal, const struct obs_series *samples,
                   size_t n_samples, int32_t ready_replicas, int64_t now_ms);

// The history that the forecast would like to see after a restart: how far back, ms (0 = none: no forecast, or on a
// value per replica, whose past is not known without the replicas of the time), and the step between its samples.
int64_t decide_forecast_history_ms(const struct policy *policy, int64_t *ret_step_ms);
// Gives it that history of forecast.signal (oldest first, already reduced to one series, before now_ms). A forecast
// that is running is left alone.
void decide_refill_forecast(const struct policy *policy, void *state, const struct obs_series *samples,
                            size_t n_samples, int64_t now_ms);

// One tick. now_ms: ms since the epoch, not smaller than at the last call with this state (a smaller one is taken as
// the last). Updates state in place (pass a copy to look without touching). observation->n_signals must be
// policy->n_signals.
void decide(const struct policy *policy, const struct observation *observation, int64_t now_ms, void *state,
            struct decision *ret_decision);

// Tells the state that the target was scaled (the write was acknowledged, or a test applies the decision): rate events
// and cooldown. HPA: horizontal.go stores events only after a successful write.
void decide_record_scale(const struct policy *policy, void *state, int64_t now_ms, int32_t from_replicas,
                         int32_t to_replicas);

// History for tests and restarts: a recommendation made at time_ms (calls in order of time).
void decide_record_recommendation(const struct policy *policy, void *state, int64_t time_ms, int32_t replicas);

// History for restarts: only the time of the last scale is known (its event has left every period): cooldown.
void decide_record_last_scale(const struct policy *policy, void *state, int64_t time_ms);

// History for tests and restarts: replicas took start_ms from their order to being ready once.
void decide_record_start(const struct policy *policy, void *state, int64_t start_ms);
// How long replicas take from their order to being ready, ms: `startup.seconds`, else what was learnt; -1 = not known.
int64_t decide_startup_ms(const struct policy *policy, const void *state);

// What a restart needs to know again (kept in `status`): oldest first, at most `max` (2 * DECIDE_HISTORY_MAX is always
// enough); returns how many. Feeding them to the record functions gives the same decisions.
struct decide_recommendation {
	int64_t time_ms;
	int32_t replicas;
};
struct decide_scale_event {
	int64_t time_ms;
	int32_t change; // replicas added; negative: removed
};
size_t decide_recommendations(const struct policy *policy, const void *state, struct decide_recommendation *ret,
                              size_t max);
size_t decide_scale_events(const struct policy *policy, const void *state, struct decide_scale_event *ret, size_t max);
// Time of the last scale in either direction, ms since the epoch; -1 = none known.
int64_t decide_last_scale_ms(const struct policy *policy, const void *state);

#endif
