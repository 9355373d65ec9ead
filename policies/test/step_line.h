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
struct err;

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

#endif
