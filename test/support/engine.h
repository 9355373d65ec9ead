// SPDX-License-Identifier: Apache-2.0
// A policy, its state and one observation in one struct, so that a test of the engine reads as a table.
#ifndef GPUSCALE_TEST_SUPPORT_ENGINE_H
#define GPUSCALE_TEST_SUPPORT_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"

#define ENGINE_SERIES_MAX 8

struct engine {
	struct policy policy;
	struct policy_signal signals[POLICY_SIGNALS_MAX];
	struct policy_schedule schedules[2]; // room; policy.schedules points here or nowhere
	struct policy_rate up[POLICY_RATE_POLICIES_MAX], down[POLICY_RATE_POLICIES_MAX];
	struct observation seen;
	struct obs_signal seen_signals[POLICY_SIGNALS_MAX];
	struct obs_series series[POLICY_SIGNALS_MAX][ENGINE_SERIES_MAX];
	int64_t now_ms;
	void *state; // of engine_start; free with engine_done
	struct decision decision;
};

// min 1, max 1000, interval 15 s, `replicas` of everything, no stabilization, no rate limit, no signal, now 1e6 s.
void engine_init(struct engine *e, int32_t replicas);
void engine_done(struct engine *e);
// Adds a signal and returns it, to be refined before engine_start.
struct policy_signal *engine_add_value(struct engine *e, const char *name, double target);
struct policy_signal *engine_add_replicas(struct engine *e, const char *name);
struct policy_signal *engine_add_watermarks(struct engine *e, const char *name, double low, double high, int algorithm);
// Adds the signals demand and backlog, without targets, and an objective on them: 1 % later than 10 s, 120 s of
// start-up.
void engine_add_objective(struct engine *e);
// Adds a rate policy to a direction (+1, -1).
void engine_add_rate(struct engine *e, int direction, int type, int32_t value, int64_t period_ms);
// Makes (again) a fresh state for the policy as it is now.
void engine_start(struct engine *e);
// What the signal shows from now on: one fresh series, or none in that state.
void engine_show(struct engine *e, size_t signal, double value);
// As engine_show, with one series per pod: n of them (at most ENGINE_SERIES_MAX), their values 0, step, 2 step, ...
// above `value`.
void engine_show_pods(struct engine *e, size_t signal, size_t n, double value, double step);
void engine_show_state(struct engine *e, size_t signal, enum obs_state state);
// One tick at now: OBS_OK samples are stamped with now. Returns the decision.
const struct decision *engine_tick(struct engine *e);
// As engine_tick, but leaves the samples' own times.
const struct decision *engine_tick_as_stamped(struct engine *e);
// Applies the decision if it may be written: spec, status, ready and the state follow.
void engine_apply(struct engine *e);
// The trace entry with this reason, or NULL.
const struct trace_entry *engine_find(const struct engine *e, enum reason reason);

#endif
