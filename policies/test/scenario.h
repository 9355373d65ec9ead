// SPDX-License-Identifier: Apache-2.0
// Policy unit tests: the file format of kind PolicyTest as data. scenario_run.h runs it, and
// docs/testing-policies.md explains it.
#ifndef GPUSCALE_POLICIES_TEST_SCENARIO_H
#define GPUSCALE_POLICIES_TEST_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/engine/observation.h"
#include "policies/engine/policy.h"

struct arena;
struct doc_node;
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
const struct schema *scenario_schema(void);
const struct schema *scenario_expect_signal_schema(void);

// A piece of a series with more than its notation: {values: '5x3', age: 90s}, {error: timeout, times: 4}.
struct scenario_piece {
	const char *values, *error, *partial; // exactly one
	int64_t age_ms;
	int32_t times;
	bool times_set;
};
const struct schema *scenario_piece_schema(void);

// Completes the test `s` with everything that depends on the policy: s->policy, the names of signals, reasons, states
// and laws, the series and the times. `node` is the test in its document, `index` its place in `tests`. Appends every
// error with its place to `errors`. All memory is in `a`. Returns 0, or -1 when there was an error.
int scenario_bind(struct scenario *s, const struct doc_node *node, size_t index, int64_t interval_ms,
                  const struct file_set *set, struct arena *a, struct schema_errors *errors);

#endif
