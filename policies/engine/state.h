// SPDX-License-Identifier: Apache-2.0
// Layout of the flat state block: a header, one entry per signal, then the record and the slots of the forecast, then
// the arrays of samples and marks. It has neither pointers nor padding, so that a copy of the bytes is a copy of the
// state, and equal states are equal bytes. Private to policies/engine.
#ifndef GPUSCALE_POLICIES_ENGINE_STATE_H
#define GPUSCALE_POLICIES_ENGINE_STATE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/engine/behavior.h"
#include "policies/engine/forecast.h"
#include "policies/engine/idle.h"
#include "policies/engine/policy.h"
#include "policies/engine/schedule.h"
#include "policies/engine/startup.h"
#include "policies/engine/window.h"

struct objective_state;
struct policy_fallback;
struct policy_signal;
struct replica_counts;

// ---- fallback (combine.c) ----

// The replicas to use when signals have been missing for long. KEDA: pkg/fallback, with these differences: an error
// never leads to zero replicas, the fallback lifts by itself, and it overrides a healthy signal only on request.
struct fallback {
	uint32_t active; // applied, and not lifted yet
	uint32_t good;   // while active: consecutive ticks in which every signal that counts had data
};

// Returns the replicas of the fallback at the scale `current`: `replicas`, `current`, or the larger or smaller of both;
// at least 1: KEDA wakes a target whose triggers have failed.
int32_t fallback_replicas(const struct policy_fallback *fallback, int32_t current);

// ---- panic (panic_stage.c) ----

// The reaction to a burst that a long window would average away. Knative: pkg/autoscaler/scaling/autoscaler.go, with
// the signal's window as the stable window and the end of it as the panic window.
struct panic {
	int64_t over_ms; // last time above the threshold; TIME_NONE = no panic
	int32_t highest; // largest number of replicas asked for during this panic
	uint32_t unused;
};

#define PANIC_NONE                                                                                                     \
	{                                                                                                              \
		.over_ms = TIME_NONE                                                                                   \
	}

// Returns the replicas that `value` needs, without tolerance: ceil(value / target), times the ready replicas (at least
// 1) where the value is per replica: type Value, and Absolute watermarks, whose high mark is the target. At least 0.
int32_t panic_wanted(const struct policy_signal *signal, double value, const struct replica_counts *counts);

// Runs the panic for one tick. `wanted` is what the panic window asks for, `stable` what the signal asks for. A panic
// starts, or continues, while wanted / max(ready, 1) >= threshold; it ends more than stable_ms after that was last so.
// Returns whether it lasts. If so, *ret_replicas is the largest of `wanted`, `stable` and everything asked for since
// its start, and *ret_left_ms its minimum remaining time; otherwise *ret_replicas is `stable`.
bool panic_observe(struct panic *s, int64_t now_ms, int32_t wanted, int32_t stable, int32_t ready, double threshold,
                   int64_t stable_ms, int32_t *ret_replicas, int64_t *ret_left_ms);

// ---- unhealthy replicas (guards.c) ----

// guards.unhealthyReplicas: replicas on failing GPUs do not count. With Replace, the policy decides as if the
// replacements did not exist, and the guards stage adds them.
struct unhealthy {
	int64_t fewer_since_ms; // since when fewer replicas were unhealthy than there are replacements; TIME_NONE
	int32_t replacements;   // how many of the present scale are replacements
	// The last decision: replicas wanted without replacements, and replacements added (-1: no decision yet). A
	// write that is acknowledged later may be smaller than the decision.
	int32_t wanted, added;
	int32_t unrecorded; // replicas added (negative: removed) by a process that recorded no replacements for them; 0
	                    // = none
};

// ---- what one more replica would add (guards.c) ----

// guards.minMarginalGain: Amdahl's law, fitted to the throughput that was measured at several replica counts.

#define MARGINAL_GAIN_COUNTS_MAX 16 // replica counts that are remembered
#define MARGINAL_GAIN_COUNTS_MIN 3  // replica counts that a fit needs
#define MARGINAL_GAIN_FACTOR     2

// The throughput at full load with this many replicas.
struct gain_point {
	int32_t replicas;
	uint32_t n;        // observations, at most UINT32_MAX
	double throughput; // in the unit of the signal; > 0
	uint64_t newest;   // number of the newest observation
};

// Flat, without padding, so that it can be part of the state block. {0} is the initial state.
struct marginal_gain {
	uint64_t n_observed;   // observations of all counts so far
	uint64_t steady_ticks; // ticks in a row with `steady` replicas, all of them ready
	uint32_t n_doubtful;   // observations in a row, with `doubted` replicas, that were too far from what is known
	int32_t doubted;       // the replicas of the newest tick
	int32_t steady;        // 0: not all replicas were ready at the last tick
	uint32_t n_points;     // used entries of `points`, in no order
	struct gain_point points[MARGINAL_GAIN_COUNTS_MAX];
};
_Static_assert(sizeof(struct gain_point) == 4 + 4 + 8 + 8, "no padding");
_Static_assert(sizeof(struct marginal_gain) ==
                       8 + 8 + 4 + 4 + 4 + 4 + MARGINAL_GAIN_COUNTS_MAX * sizeof(struct gain_point),
               "no padding");

// The fit: with n replicas the throughput is one * n / (1 + serial * (n - 1)).
struct gain_fit {
	double serial;  // Amdahl's serial fraction less its standard error; >= 0
	int32_t usable; // replica counts with enough observations
};

// Counts a tick at which `spec` replicas were requested and `ready` were ready (-1 = unknown).
void marginal_gain_tick(struct marginal_gain *g, int32_t spec, int32_t ready);
// Adds one observation of the throughput of g->steady > 0 replicas at full load; values that are not above 0 are
// ignored. Of each count a high expectile is kept: a single outlier moves it by a fifth, lower values by a fiftieth. A
// value more than MARGINAL_GAIN_FACTOR times above or below the expectile is ignored, until `believed_after` of them in
// a row, at this count, show that the expectile is wrong: then the count starts again. A count of fewer than 3
// observations starts again at once; what the next known counts on both sides contradict is ignored as long.
void marginal_gain_observe(struct marginal_gain *g, double throughput, uint64_t believed_after);
// Fits the curve by least squares of n / throughput over n - 1. Returns false while there are fewer than
// MARGINAL_GAIN_COUNTS_MIN counts of at least 3 observations among the last 4,096, the largest of them is less than
// one and a half times the smallest, or two of them contradict each other: beyond MARGINAL_GAIN_FACTOR, no curve
// between flat and linear has both. ret->usable is set in any case.
bool marginal_gain_fit(const struct marginal_gain *g, struct gain_fit *ret);
// Returns what replica number n >= 1 adds to n - 1, in replicas: 1 for the first, less for each that follows. With
// S(n) = n / (1 + serial * (n - 1)) it is S(n) - S(n - 1).
double marginal_gain_of(double serial, int32_t n);
// Returns the largest n from 1 to `most` whose replica adds at least `bound` (0..1); 0 when not even the first does.
int32_t marginal_gain_limit(double serial, double bound, int32_t most);

// ---- the block ----

#define STATE_MAGIC   0x67707573u // "gpus"
#define STATE_VERSION 13

struct state_header {
	uint32_t magic, version;
	uint64_t bytes, shape;
	int64_t last_now_ms;   // time of the last tick; TIME_NONE
	int64_t last_scale_ms; // time of the last scale in either direction; TIME_NONE
	int64_t withdrawn_ms;  // last time that unschedulable replicas were withdrawn; TIME_NONE
	// Clock events for the next tick to report: by how much the clock was set, and how far in the future a restored
	// stamp was. 0: none.
	int64_t clock_step_ms, clamped_ms;
	struct history recommendations, events;
	struct startup startup;
	struct fallback fallback;
	struct idle idle;
	struct forecast forecast;
	struct panic panic;
	struct unhealthy unhealthy;
	struct schedule_cache schedule; // not carried over to another policy
	uint64_t objective_offset; // offset of the struct objective_state in the block; 0: the policy has no objective
	uint64_t gain_offset;      // offset of the struct marginal_gain; 0: the policy has no guards.minMarginalGain
	uint32_t n_signals;
	uint32_t seeded; // a recommendation was recorded: the first tick does not record spec as one
};

struct state_signal {
	struct window window;
	int64_t up_since_ms,
	        down_since_ms; // since when the signal has asked for that direction without a break; TIME_NONE
	int64_t failures;      // consecutive ticks without a reading; counted with `fallback` only
};

_Static_assert(sizeof(struct state_header) == 4 + 4 + 2 * 8 + 5 * 8 + 2 * sizeof(struct history) +
                                                      sizeof(struct startup) + sizeof(struct fallback) +
                                                      sizeof(struct idle) + sizeof(struct forecast) +
                                                      sizeof(struct panic) + sizeof(struct unhealthy) +
                                                      sizeof(struct schedule_cache) + 8 + 8 + 8,
               "no padding");
_Static_assert(sizeof(struct startup) == 16 * STARTUP_ORDERS_MAX + 8 * STARTUP_STARTS_MAX + 6 * 4, "no padding");
_Static_assert(sizeof(struct forecast) == 8 + 2 * 4 + 14 * 8, "no padding");
_Static_assert(sizeof(struct skill) == 9 * 8 + 4 * 4 + SKILL_PENDING_MAX * 4 * 8, "no padding");
_Static_assert(sizeof(struct window) == 8 + 4 * 4 + 2 * 8 + 4 * 8, "no padding");
_Static_assert(sizeof(struct history) == 8 + 4 * 4, "no padding");
_Static_assert(sizeof(struct history_mark) == 24 && sizeof(struct window_sample) == 32, "no padding");

// Returns the header of `block`, which decide_state_init() filled for a policy of the same shape; asserts its magic,
// version and number of signals.
static inline const struct state_header *state_of_const(const struct policy *policy, const void *block)
{
	const struct state_header *s = block;
	assert(s->magic == STATE_MAGIC && s->version == STATE_VERSION && s->n_signals == policy->n_signals);
	return s;
}
static inline struct state_header *state_of(const struct policy *policy, void *block)
{
	state_of_const(policy, block);
	return block;
}

// ---- places inside the block ----

static inline void *state_at(struct state_header *s, uint64_t offset)
{
	return (unsigned char *)s + offset;
}
static inline const void *state_at_const(const struct state_header *s, uint64_t offset)
{
	return (const unsigned char *)s + offset;
}
static inline struct state_signal *state_signal(struct state_header *s, size_t i)
{
	assert(i < s->n_signals);
	return (struct state_signal *)state_at(s, sizeof *s + i * sizeof(struct state_signal));
}
static inline struct objective_state *state_objective(struct state_header *s)
{
	return s->objective_offset > 0 ? (struct objective_state *)state_at(s, s->objective_offset) : NULL;
}
static inline struct marginal_gain *state_gain(struct state_header *s)
{
	return s->gain_offset > 0 ? (struct marginal_gain *)state_at(s, s->gain_offset) : NULL;
}

#endif
