// SPDX-License-Identifier: Apache-2.0
// What one signal asks for, before any limit: the result of the arithmetic of targets and watermarks.
#ifndef GPUSCALE_POLICIES_ENGINE_PROPOSAL_H
#define GPUSCALE_POLICIES_ENGINE_PROPOSAL_H

#include <stdint.h>

#include "policies/engine/reason.h"

// The replica counts that the arithmetic uses; all are >= 0.
struct replica_counts {
	int32_t spec;    // the current scale
	int32_t status;  // replicas that exist
	int32_t ready;   // replicas that are ready, at most spec; spec when unknown
	int32_t pending; // replicas that exist and are not running, at most the larger of spec and status
};

struct proposal {
	int32_t replicas;   // >= 0
	int32_t direction;  // +1 the signal asks for more, -1 for fewer, 0 neither: `sustain` measures how long
	enum reason reason; // REASON_NO_READY_REPLICAS: no proposal, replicas = spec
	double compared;    // the value compared with `limit`: per replica for AverageValue and Average
	double limit;       // target value or watermark
};

#endif
