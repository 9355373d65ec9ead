// SPDX-License-Identifier: Apache-2.0
// Runs one policy test through decide() with a simulated clock, and reports failed expectations.
#ifndef GPUSCALE_POLICIES_TEST_SCENARIO_RUN_H
#define GPUSCALE_POLICIES_TEST_SCENARIO_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct coverage;
struct decision;
struct err;
struct observation;
struct policy;
struct scenario;

#define SCENARIO_FINDINGS_MAX 10 // kept per test

// One field of an expectation: "replicas", "signals.queue.state".
struct scenario_field {
	const char *name, *expected, *actual;
	bool equal;
};

// An expectation or a law that failed at one tick.
struct scenario_finding {
	int64_t at_ms;                 // since the start
	int line;                      // line of the expectation; line of the test for a law
	const char *law, *why;         // name of the law and how it failed; NULL for an expectation
	struct scenario_field *fields; // fields of the expectation, including those that matched
	size_t n_fields;
	const char *trace; // aligned lines
};

struct scenario_result {
	struct scenario_finding findings[SCENARIO_FINDINGS_MAX];
	size_t n, dropped; // kept, and beyond the limit
	size_t n_ticks;
};

// Runs `s`, which was bound. The findings live in `a`. Every decision is added to `coverage`, which may be NULL.
// Returns 0, also when expectations failed, or -1 and *e (ERR_LIMIT) when a limit is exceeded.
int scenario_run(const struct scenario *s, struct coverage *coverage, struct arena *a,
                 struct scenario_result *ret_result, struct err *e);

// ---- the simulated target of a test: new replicas become ready after a delay ----

struct scenario_order {
	int64_t since_ms, ready_ms;
	int32_t n;
};

struct scenario_world {
	int32_t replicas, ready;       // ready -1 = unknown, for the whole test
	int32_t room;                  // for replicas in the cluster; -1: unlimited
	struct scenario_order *orders; // oldest first, in `arena`
	size_t n_orders, cap_orders;
	struct arena *arena;
};

// Initializes the target, without a limit of room. If ready < replicas, the others were ordered at now_ms and become
// ready at ready_ms.
int scenario_world_init(struct scenario_world *w, int32_t replicas, int32_t ready, int64_t now_ms, int64_t ready_ms,
                        struct arena *a);
// Sets the scale at now_ms; new pods become ready at ready_ms, once there is room for them. Pods that are not ready go
// first, the newest of them before the older ones, as in a ReplicaSet. -1 when the arena is full.
int scenario_world_scale(struct scenario_world *w, int32_t to, int64_t now_ms, int64_t ready_ms);
// Makes the replicas ready that are due at now_ms and have room.
void scenario_world_advance(struct scenario_world *w, int64_t now_ms);
// Writes to ret_since_ms when each replica without room was ordered, oldest first, at most `max`. Returns their number.
size_t scenario_world_unschedulable(const struct scenario_world *w, int64_t *ret_since_ms, size_t max);

// ---- the invariants of tests: what must be true at every tick, whatever the load ----

#define LAW_TEXT_BYTES 256
#define LAW_FLAP_MS    (5 * 60000) // for a policy without windows of its own
#define LAW_MORE_LOAD  0.05        // MonotoneInLoad: every value grows by this ratio of itself

// The state of the laws between two ticks.
struct law_memory {
	int direction; // direction of the last scale: +1, -1; 0 = none yet
	int64_t scaled_ms;
};

// Returns the longest of the policy's stabilization windows, cooldowns and sustains; LAW_FLAP_MS when it has none.
int64_t law_flap_ms(const struct policy *p);
// Records a scale, or a decision that wants one.
void law_remember(struct law_memory *m, int64_t now_ms, int32_t from_replicas, int32_t to_replicas);

// Returns whether the decision keeps the law; otherwise `why` explains the violation.
// WithinBounds: min <= desired <= max, unless scaling is switched off.
// NoFlap: a change does not reverse the previous change within law_flap_ms.
// HoldOnNoData: no change, but for the bounds, while no signal has a fresh number and all of them hold when missing.
bool law_within_bounds(const struct policy *p, const struct decision *d, char why[LAW_TEXT_BYTES]);
bool law_no_flap(const struct policy *p, const struct law_memory *m, const struct decision *d,
                 char why[LAW_TEXT_BYTES]);
bool law_hold_on_no_data(const struct policy *p, const struct observation *o, const struct decision *d,
                         char why[LAW_TEXT_BYTES]);
// MonotoneInLoad: for the same target, more load does not lead to fewer replicas.
bool law_monotone_in_load(const struct decision *d, const struct decision *with_more, char why[LAW_TEXT_BYTES]);
// Returns a value under that larger load.
double law_more_load(double value);

#endif
