// SPDX-License-Identifier: Apache-2.0
// The goal of an objective in the algorithm's own units and within its ceilings.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_SETTING_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_SETTING_H

#include <stdint.h>

#include "policies/engine/objective_queue.h"

struct objective_setting {
	float wait_s, startup_s, burst;
	double late;
	int32_t min, max; // replicas
	struct objective_pipeline pipeline;
};

#endif
