// SPDX-License-Identifier: Apache-2.0
// Reduces the response to a query to one number, or to the reason why it has none.
#ifndef GPUSCALE_POLICIES_ENGINE_SOURCE_H
#define GPUSCALE_POLICIES_ENGINE_SOURCE_H

#include <stdint.h>

#include "policies/engine/reason.h"

struct obs_signal;
struct policy_signal;

struct reading {
	// REASON_NONE: a finite value; REASON_MISSING_AS_ZERO: value 0 at now; REASON_NON_FINITE_AS_ZERO: a finite
	// value, in which samples are read as 0; else missing
	enum reason reason;
	double value;     // NaN when missing; for REASON_NON_FINITE the value itself
	int64_t time_ms;  // time of the oldest contributing sample
	int64_t age_ms;   // now - time_ms, at least 0; -1 = no sample
	int64_t ahead_ms; // how far the sample is in the future; for REASON_CLOCK_SKEW the difference of the clocks
	int32_t n_series;
};

// Reduces the series as `series` of the policy says. Every series must be usable: a stale or non-finite series makes
// the whole signal missing. onMissing: Zero applies to a response without series, and to a sample that is not finite (a
// quotient without traffic; KEDA: ignoreNullValues): an outage or a stale sample is never read as zero.
struct reading source_read(const struct policy_signal *signal, const struct obs_signal *observed, int64_t now_ms);

// Returns the difference between the clocks of this host and the source, in ms (< 0: the source is behind), when it
// prevents judging a response of the source, or data of this age (< 0: from the future): the data is too old by one
// clock and fresh by the other. Returns 0 otherwise.
int64_t source_answer_skew_ms(const struct policy_signal *signal, const struct obs_signal *observed);
int64_t source_sample_skew_ms(const struct policy_signal *signal, const struct obs_signal *observed, int64_t age_ms);

#endif
