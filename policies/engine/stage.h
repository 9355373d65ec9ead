// SPDX-License-Identifier: Apache-2.0
// The stages of decide(), in the order in which it runs them. pipeline.c has the table of stages.
#ifndef GPUSCALE_POLICIES_ENGINE_STAGE_H
#define GPUSCALE_POLICIES_ENGINE_STAGE_H

enum stage {
	STAGE_SOURCES,
	STAGE_WINDOWS,
	STAGE_SIGNALS,
	STAGE_SUSTAIN,
	STAGE_PANIC,
	STAGE_FORECAST,
	STAGE_OBJECTIVE,
	STAGE_COMBINE,
	STAGE_STABILIZE,
	STAGE_RATE,
	STAGE_COOLDOWN,
	STAGE_IDLE,
	STAGE_BOUNDS,
	STAGE_MULTIPLE,
	STAGE_GUARDS,
	STAGE_CAPACITY,
	STAGE_POOL, // not run by decide(): decide_grant() adds its entry (decision_grant.h)
	STAGE_MODE,
	STAGE__COUNT
};

#endif
