// SPDX-License-Identifier: Apache-2.0
// The goal of an objective in the algorithm's own units and within its ceilings.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_SETTING_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_SETTING_H

#include <stdint.h>

#include "policies/engine/objective_queue.h"

// How a backlog is worked off: what exceeds free_s of the replicas' work, in `seconds`.
struct objective_drain {
	float free_s, seconds;
};

struct objective_setting {
	float wait_s, startup_s, burst;
	float after_start_s; // what a start-up leaves of the wait
	struct objective_drain expected,
	        present; // of rules that expect a backlog, and of those that follow the present
	double late;
	int32_t min, max; // replicas
	struct objective_pipeline pipeline;
};

#endif
