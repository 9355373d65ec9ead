// SPDX-License-Identifier: Apache-2.0
// One line of `gpuscale step`: an observation as JSON.
//   {"time": 15, "replicas": 2, "ready": 2, "pending": 0, "status": 2,
//    "signals": {"queue": 12, "kv": {"pod-a": 0.4, "pod-b": 0.7}, "rate": null, "lag": {"error": "timeout"}},
//    "capacity": {"fit": 2, "unschedulable": 3, "seconds": 320, "why": "4 Insufficient nvidia.com/gpu"},
//    "unhealthy": 1}
#ifndef GPUSCALE_POLICIES_TEST_STEP_LINE_H
#define GPUSCALE_POLICIES_TEST_STEP_LINE_H

#include <stddef.h>
#include <stdint.h>

#include "policies/engine/observation.h"
#include "policies/engine/policy.h"

struct arena;
struct binding;
struct buf;
struct err;
struct step;

#define STEP_LINE_BYTES_MAX (1024 * 1024)
#define STEP_SERIES_MAX     10000 // series of one signal

struct step_line {
	int64_t time_ms; // since the epoch
	struct observation observation;
	struct obs_signal signals[POLICY_SIGNALS_MAX];
	// Why a query failed, for rendering; NULL = it succeeded; then why no more replicas fit.
	const char *details[POLICY_SIGNALS_MAX + 1];
};

// Reads text[0..len), a line without its end. time and replicas are required; ready that is absent or null is not
// known, pending is 0, status is replicas, and capacity and unhealthy are unknown. A signal that is absent or null has
// no data. Values are numbers, or the strings "NaN", "+Inf", "-Inf". What it finds lives in `a` and in *ret_line, which
// must not be copied (it points into itself). -1 and *e (ERR_INPUT, ERR_PROTOCOL, ERR_LIMIT, ERR_INTERNAL): not JSON,
// unknown, doubled or ill-typed members, with did-you-mean.
int step_line_parse(const struct policy *policy, const char *text, size_t len, struct arena *a,
                    struct step_line *ret_line, struct err *e);

// ---- the engine as a filter: reads observations, writes decisions, and keeps the state ----

// The caller keeps ownership of `binding`, which must outlive the result. Returns NULL when memory is exhausted.
struct step *step_new(const struct binding *binding);
void step_free(struct step *s);

// Reads one observation as step_line_parse() does, decides, and appends the decision to `out` as one line of JSON, an
// item of a DecisionList. Replicas that differ from the previous line mean that the target was scaled: the engine
// records that scale at the time of the previous line, whose decision asked for it, as `run` does after its write.
// Returns 0. For an invalid line, or one with an earlier time than the last, it appends {"error": "..."} instead, does
// not change the state, and returns -1 with *e.
int step_answer(struct step *s, const char *line, size_t len, struct buf *out, struct err *e);

#endif
