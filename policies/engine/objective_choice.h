// SPDX-License-Identifier: Apache-2.0
// The rule to follow: every rule rehearses in its virtual queue, and the cheapest one whose record keeps the goal is
// chosen.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_CHOICE_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_CHOICE_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/engine/number.h"
#include "policies/engine/objective_memory.h"
#include "policies/engine/objective_rule.h"

// ---- the rehearsal ----

// One step of every rule in its virtual queue, and what the records say about the share of work that each rule serves
// late. While a record is short, a prior counts as well. The prior takes an exponential, so the exact share is computed
// only for the rules that need it; bounds suffice for the others.

#define OBJECTIVE_FIRST_STEPS 80 // in which the scale stays at least as it was found

struct objective_rehearsal {
	const struct objective_view *view;
	const struct objective_queues *queues;
	int32_t steps;                // before this one
	float work;                   // replica-seconds, as much as is remembered
	float known, weight;          // steps that a record and the prior count for
	float caution;                // factor of the late work of the records: 1, or more while it came in few bursts
	float level[OBJECTIVE_RULES]; // replicas
	// Bounds of the share of late work. The lower one after the last rule is 1.
	float late_least[OBJECTIVE_RULES + 1], late_most[OBJECTIVE_RULES];
};

// Simulates one step of every rule. The rehearsal refers to `s` and `v`.
void objective_rehearse(struct objective *s, const struct objective_setting *set, const struct objective_view *v,
                        struct objective_rehearsal *ret_rehearsal);
// Returns the estimated share of work that a rule serves late.
float objective_rehearsal_late(const struct objective_rehearsal *r, int rule);

// ---- the choice ----

struct objective_choice {
	int32_t family;
	float rung; // between two rungs, what belongs to the rule is interpolated
};

// Returns the share of late work to aim for: the goal, less when more of the real work was late, and with a full record
// up to 30 % more when less of it was. Where lateness is measured, its correction takes the place of both.
float objective_choice_aim(const struct objective *s, const struct objective_setting *set, bool is_measured);
// Returns the cheapest rule that keeps the aim. Lateness above the aim is not forbidden but has a price: some loads
// cannot be served in time at any price.
struct objective_choice objective_choose(const struct objective *s, const struct objective_setting *set,
                                         const struct objective_rehearsal *r, float aim);

// ---- the size ----

// How many replicas a level and a backlog ask for, in the real queue and in the virtual ones. Inline, without branches
// and without libm, so that the compiler computes several rules at once.

// What the constants do is measured as in objective.c.
#define OBJECTIVE_UP         0.125f // dead band: replicas above the scale ..
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
