// SPDX-License-Identifier: Apache-2.0
// The stages of a decision, in the order of its trace. decide() runs those of the table in pipeline.c.
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
	STAGE_MODE,
	STAGE_DECIDE__COUNT,
	STAGE_POOL = STAGE_DECIDE__COUNT, // after decide(): decide_grant() adds its entry (decision_grant.h)
	STAGE_VICTIMS,                    // after the pool: decide_victims() adds its entries (victims.h)
	STAGE_VARIANTS,                   // after the pool: the decision is spread over the variants of the policy
	STAGE__COUNT
};

#endif
