// SPDX-License-Identifier: Apache-2.0
// From what a query answered to one number, or the reason why there is none.
#ifndef GPUSCALE_POLICIES_SOURCE_H
#define GPUSCALE_POLICIES_SOURCE_H

#include <stdint.h>

#include "policies/reason.h"

struct obs_signal;
struct policy_signal;

struct reading {
	enum reason reason; // REASON_NONE: a finite value; REASON_MISSING_AS_ZERO: value 0 at now; else missing
	double value;       // NaN when missing, except REASON_NON_FINITE: the value that is none
	int64_t time_ms;    // of the oldest contributing sample
	int64_t age_ms;     // now - time_ms, at least 0; -1 = no sample
	int64_t ahead_ms;   // how far the sample lies in the future; 0
	int32_t n_series;
};

// Reduces the series (`series` of the policy) and judges them: no answer, no series, more than one, not finite, older
// than staleAfter. Every series must be usable: one stale or non-finite series makes the whole signal missing.
// onMissing: Zero applies to an answer without series only: an outage is never read as zero.
struct reading source_read(const struct policy_signal *signal, const struct obs_signal *seen, int64_t now_ms);

#endif
