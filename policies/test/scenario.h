// SPDX-License-Identifier: Apache-2.0
// Policy unit tests: the file format of kind PolicyTest as data, and how it runs through decide()
// with a simulated clock. docs/testing-policies.md explains it.
#ifndef GPUSCALE_POLICIES_TEST_SCENARIO_H
#define GPUSCALE_POLICIES_TEST_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/engine/observation.h"
#include "policies/engine/policy.h"

struct arena;
struct buf;
struct coverage;
struct decision;
struct doc_node;
struct err;
struct file_set;
struct schema;
struct schema_errors;

#define SCENARIO_TESTS_MAX         10000
#define SCENARIO_TICKS_MAX         200000 // ticks in one test
#define SCENARIO_EXPECT_MAX        1000
#define SCENARIO_PODS_MAX          1000    // series of one signal
#define SCENARIO_UNSCHEDULABLE_MAX 10000   // replicas without room that are tracked
#define SCENARIO_POINTS_MAX        1000000 // points in all series of one test

enum scenario_law { LAW_WITHIN_BOUNDS, LAW_NO_FLAP, LAW_HOLD_ON_NO_DATA, LAW_MONOTONE_IN_LOAD, LAW__COUNT };
extern const char *const scenario_law_names[LAW__COUNT];

struct scenario_recommendation {
	int64_t ago_ms;
	int32_t replicas;
};
struct scenario_event {
	int64_t ago_ms;
	int32_t change;
};

// The expectation for one signal of a decision.
struct scenario_expect_signal {
	bool value_set, proposal_set;
	const char *state, *reason; // NULL = not expected
	int state_index;            // enum signal_state of `state`
	double value;               // equal within SCENARIO_VALUE_RATIO
	int32_t proposal;
};
#define SCENARIO_VALUE_RATIO 1e-6

struct scenario_expect {
	int64_t at_ms;
	bool replicas_set, action_set;
	int32_t replicas;
	int action;                             // enum action
	const char *reason, *message;           // NULL = not asked; message: a part of it
	const struct doc_node *signal_map;      // as written; NULL = not asked
	struct scenario_expect_signal *signals; // by index of the policy's signal; NULL = none asked
	int line;
};

// One point of a series.
struct scenario_point {
	enum obs_state state; // OBS_EMPTY: no sample. OBS_FAILED, OBS_PARTIAL: apply to the whole query
	double value;         // value for OBS_OK
	int64_t age_ms;       // OBS_OK: how old the sample is at its tick
	const char *detail;   // text for OBS_FAILED, OBS_PARTIAL
};
struct scenario_series {
	const char *pod; // "" when the signal has one unnamed series
	struct scenario_point *points;
	size_t n, cap;
	bool endless; // the last point repeats; otherwise the series ends after it
};
struct scenario_signal {
	struct scenario_series *series;
	size_t n_series;
};

struct scenario {
	const char *name, *policy_key; // "namespace/name", or NULL when the files contain one policy only
	const char *start;
	int64_t start_ms;
	struct {
		int32_t replicas, ready, pending; // ready -1: not known
		bool ready_set;
	} target;
	struct scenario_recommendation *recommendations;
	size_t n_recommendations;
	struct scenario_event *events;
	size_t n_events;
	struct {
		bool set;
		int64_t ago_ms;
	} last_scale;
	const struct doc_node *signals_node, *pods_node, *room_node,
	        *unhealthy_node; // the last three: NULL = not given
	struct {
		bool set;
		int64_t ready_after_ms;
	} follow;
	struct scenario_expect *expect;
	size_t n_expect;
	const char **law_names;
	size_t n_laws;
	// Filled by scenario_bind:
	int line;
	int64_t interval_ms;
	bool laws[LAW__COUNT];
	struct scenario_signal signals[POLICY_SIGNALS_MAX]; // by index of the policy's signal
	struct scenario_signal room;                        // n_series 0: the capacity of the cluster is unknown
	struct scenario_signal unhealthy;                   // n_series 0: unknown
	const struct policy *policy;
	struct obs_pod *pods; // NULL = not given
	size_t n_pods;
};

struct scenario_file {
	int api_version, kind;
	const char **policy_files;
	size_t n_policy_files;
	int64_t interval_ms; // 0: each policy's own
	struct scenario *tests;
	size_t n_tests;
};

// The table of the format, and the tables of two maps with arbitrary keys.
extern const struct schema scenario_schema, scenario_expect_signal_schema, scenario_piece_schema;

// A piece of a series with more than its notation: {values: '5x3', age: 90s}, {error: timeout, times: 4}.
struct scenario_piece {
	const char *values, *error, *partial; // exactly one
	int64_t age_ms;
	int32_t times;
	bool times_set;
};

// Loads the policies that the document `doc` of the test file at `path` names, relative to that file. Errors of their
// content are appended to `report` and counted in the set. Returns 0, or -1 and *e: as file_set_load(), ERR_INTERNAL.
int scenario_load_policies(const struct scenario_file *doc, const char *path, struct arena *a, struct file_set *ret_set,
                           struct buf *report, struct err *e);
// Completes the test `s` with everything that depends on the policy: s->policy, the names of signals, reasons, states
// and laws, the series and the times. `node` is the test in its document, `index` its place in `tests`. Appends every
// error with its place to `errors`. All memory is in `a`. Returns 0, or -1 when there was an error.
int scenario_bind(struct scenario *s, const struct doc_node *node, size_t index, int64_t interval_ms,
                  const struct file_set *set, struct arena *a, struct schema_errors *errors);

// ---- one run ----

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
