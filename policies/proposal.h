// SPDX-License-Identifier: Apache-2.0
// What one signal asks for, before any limit: the result of the HPA and the watermark arithmetic.
#ifndef GPUSCALE_POLICIES_PROPOSAL_H
#define GPUSCALE_POLICIES_PROPOSAL_H

#include <stdint.h>

#include "policies/reason.h"

// The replica counts the arithmetic stands on; none is negative.
struct replica_counts {
	int32_t spec;   // the current scale
	int32_t status; // pods that exist
	int32_t ready;  // pods that serve; spec when not known
};

struct proposal {
	int32_t replicas;   // >= 0
	int32_t direction;  // +1 the signal pushes up, -1 down, 0 neither: what `sustain` times
	enum reason reason; // REASON_NO_READY_REPLICAS: no proposal, replicas = spec
	double compared;    // the value held against `limit`: per replica for AverageValue and Average
	double limit;       // target value or mark
};

#endif
