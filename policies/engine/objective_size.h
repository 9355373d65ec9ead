// SPDX-License-Identifier: Apache-2.0
// How many replicas a level and a backlog ask for, in the real queue and in the virtual ones. Inline, without branches
// and without libm, so that the compiler computes several rules at once.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_SIZE_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_SIZE_H

#include <stdint.h>

#include "policies/engine/number.h"
#include "policies/engine/objective_load.h"
#include "policies/engine/objective_memory.h"

// What the constants do is measured as in objective.c.
#define OBJECTIVE_UP         0.15f // dead band: replicas above the scale ..
#define OBJECTIVE_DOWN       0.3f // .. and below it; at 0.5, taxi changes direction 15 instead of 23 times for 0.6 % more ..
#define OBJECTIVE_DOWN_SHARE 0.05f // .. and of the scale
#define OBJECTIVE_ZERO       0.02f // replicas of load below which none is needed
#define OBJECTIVE_LEVEL_MAX  1e9f  // far beyond OBJECTIVE_REPLICAS_MAX

// Returns the smallest whole number from x on. x is not below -1 and at most OBJECTIVE_LEVEL_MAX.
static inline float objective_round_up(float x)
{
	float whole = (float)(int32_t)x;
	return whole + (whole < x ? 1 : 0);
}

// Returns the replicas that are missing for a backlog: of now, or expected when a replica ordered now is ready.
static inline float objective_size_backlog(const struct objective_drain *d, float backlog, float replicas)
{
	return f32_max(0, backlog - d->free_s * replicas) / d->seconds;
}

// Returns how many replicas a level of 0 and more asks for, from `replicas`. A level slightly off the scale changes
// nothing, and a level well below it leaves part of the band in place.
static inline float objective_size(float level, float replicas)
{
	float limited = f32_min(level, OBJECTIVE_LEVEL_MAX), band = OBJECTIVE_DOWN_SHARE * replicas;
	float least = replicas < 1 ? OBJECTIVE_ZERO : OBJECTIVE_UP;
	float up = limited > replicas + least ? limited - least : replicas;
	float sized = objective_round_up(limited < replicas - 1 - OBJECTIVE_DOWN - band ? limited + band : up);
	return limited < OBJECTIVE_ZERO ? 0 : sized;
}

// Returns `wanted`, but not fewer than `first` replicas of those that there are.
static inline float objective_size_first(float wanted, float replicas, float first)
{
	return f32_max(wanted, f32_min(replicas, first));
}

#endif
