// SPDX-License-Identifier: Apache-2.0
// Policy unit tests: the file format of kind PolicyTest, and its run through decide() with a clock of its own.
#ifndef GPUSCALE_CONTROLLER_SCENARIO_H
#define GPUSCALE_CONTROLLER_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/policy.h"

struct arena;
struct buf;
struct doc_node;
struct schema;
struct series_point;

#define SCENARIO_TESTS_MAX  10000
#define SCENARIO_TICKS_MAX  200000 // of one test
#define SCENARIO_EXPECT_MAX 1000
#define SCENARIO_PODS_MAX   1000 // series of one signal

enum scenario_invariant { INVARIANT_WITHIN_BOUNDS, INVARIANT_NO_FLAP, INVARIANT_HOLD_ON_NO_DATA, INVARIANT__COUNT };
extern const char *const scenario_invariant_names[INVARIANT__COUNT + 1]; // NULL-terminated

struct scenario_recommendation {
	int64_t ago_ms;
	int32_t replicas;
};
struct scenario_event {
	int64_t ago_ms;
	int32_t change;
};
struct scenario_expect {
	int64_t at_ms;
	bool replicas_set, action_set;
	int32_t replicas;
	int action;                   // enum action
	const char *reason, *message; // NULL = not asked; message: a part of it
};

struct scenario_series {
	const char *pod; // "" when the signal has one unnamed series
	struct series_point *points;
	size_t n;
};
struct scenario_signal {
	struct scenario_series *series;
	size_t n_series;
};

struct scenario {
	const char *name, *policy_key; // "namespace/name", or NULL when the file names one policy only
	const char *start;
	int64_t start_ms;
	struct {
		int32_t replicas, ready, pending;
		bool ready_set;
	} target;
	struct scenario_recommendation *recommendations;
	size_t n_recommendations;
	struct scenario_event *events;
	size_t n_events;
	const struct doc_node *signals_node;
	struct {
		bool set;
		int64_t ready_after_ms;
	} follow;
	struct scenario_expect *expect;
	size_t n_expect;
	const char **invariant_names; // of scenario_invariant_names
	size_t n_invariants;
	int line;
	struct scenario_signal signals[POLICY_SIGNALS_MAX]; // by index of the policy's signal
	const struct policy *policy;
};

struct scenario_file {
	int api_version, kind;
	const char **policy_files;
	size_t n_policy_files;
	int64_t interval_ms; // 0: the policy's own
	struct scenario *tests;
	size_t n_tests;
};

// The table of the format.
const struct schema *scenario_schema(void);

// Reads the series of every signal of s->policy out of s->signals_node; faults go to `errors`. Everything in `a`.
struct schema_errors;
int scenario_bind(struct scenario *s, struct arena *a, struct schema_errors *errors);
// Runs one test. Returns the number of broken expectations and invariants, each described in `report` with the trace of
// its tick.
size_t scenario_run(const struct scenario *s, int64_t interval_ms, struct buf *report);

#endif
