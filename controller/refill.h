// SPDX-License-Identifier: Apache-2.0
// After a start or a lost state: fills a policy's windows and sustain timers from one range query per signal to its
// source, so that decisions do not have to wait until a window has filled by itself.
#ifndef GPUSCALE_CONTROLLER_REFILL_H
#define GPUSCALE_CONTROLLER_REFILL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "policies/policy.h"

struct promql_sources;

// ok: every window that needs history was asked for and answered (an empty answer counts). Else error says why; windows
// then fill tick by tick.
typedef void refill_done_fn(void *arg, bool ok, const struct err *error);

struct refill_call;
struct refill_slot {
	struct refill_call *call;
	size_t signal;
	bool forecast; // its history is for the forecast
};
struct refill_call { // owned by the caller, zeroed once
	const struct policy *policy;
	void *state;
	int32_t ready_replicas;
	int64_t now_ms;
	int pending;
	struct err error;
	refill_done_fn *done;
	void *arg;
	struct refill_slot slots[POLICY_SIGNALS_MAX + 1]; // the last one: the forecast's
};

// True when the policy has a window, a sustain time or a forecast, so that history matters.
bool refill_is_needed(const struct policy *policy);
// Starts it; done is called exactly once, maybe before this returns. policy and state must outlive it.
void refill_start(struct refill_call *c, const struct promql_sources *sources, const struct policy *policy, void *state,
                  int32_t ready_replicas, int64_t now_ms, refill_done_fn *done, void *arg);

#endif
