// SPDX-License-Identifier: Apache-2.0
// Fills a policy's windows and sustain timers, its forecast and the rules of its objective after a start or a lost
// state, with one range query each, so that decisions need not wait until they have filled tick by tick.
#ifndef GPUSCALE_CONTROLLER_TICK_REFILL_H
#define GPUSCALE_CONTROLLER_TICK_REFILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "policies/engine/policy.h"

struct obs_series;
struct promql_result;
struct promql_sources;

// ok: the source answered every range query (an empty answer counts). Else error says why not; the windows then fill
// tick by tick.
typedef void refill_done_fn(void *arg, bool ok, const struct err *error);

struct refill_call;
// What the history of a signal is for.
enum refill_use { REFILL_WINDOW, REFILL_FORECAST, REFILL_OBJECTIVE, REFILL_USE__COUNT };
struct refill_slot {
	struct refill_call *call;
	size_t signal;
	enum refill_use use;
};
struct refill_call { // owned by the caller, zeroed once
	const struct promql_sources *sources;
	const struct policy *policy;
	void *state;
	int32_t ready_replicas;
	int64_t now_ms;
	int pending;
	bool dropped;
	struct err error;
	refill_done_fn *done;
	void *arg;
	struct refill_slot slots[POLICY_SIGNALS_MAX + 2]; // the last two: those of the forecast and the objective
};

// Returns true when the policy has a window, a sustain time, a forecast or an objective.
bool refill_is_needed(const struct policy *policy);
// Sends the range queries; calls done exactly once, maybe before this returns. policy and state must outlive the call.
void refill_start(struct refill_call *c, const struct promql_sources *sources, const struct policy *policy, void *state,
                  int32_t ready_replicas, int64_t now_ms, refill_done_fn *done, void *arg);
// Discards the answers that are still outstanding, because the clock was set and their times are wrong. done is still
// called.
void refill_drop(struct refill_call *c);

// Reduces the answer to a range query to the samples that `signal` would have had, one per time: by its rule, as
// decide() does. Writes up to `max` samples to `out`, in the order of time; their pod is "". A time at which the series
// break the rule, such as several series where one is expected, or at which the value is not finite, gives no sample
// and counts in *ret_n_refused (may be NULL). Returns the number of samples; fewer when memory is exhausted.
size_t range_samples(const struct promql_result *r, const struct policy_signal *signal, struct obs_series *out,
                     size_t max, size_t *ret_n_refused);

#endif
