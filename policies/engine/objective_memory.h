// SPDX-License-Identifier: Apache-2.0
// What the algorithm of an objective remembers from step to step: the load, the queues of the rules and the rule in
// use.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_MEMORY_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/engine/number.h"
#include "policies/engine/objective_load.h"
#include "policies/engine/objective_rule.h"

// ---- a removal waits ----

// Delays the first removal after an addition, because changing direction is not free: the removed replicas have to be
// ordered again when the load returns. As in the rental problem of a skier (Karlin, Manasse, Rudolph and Sleator 1988),
// the surplus is kept until it has cost about what ordering it again would. Part of the flat state; has no padding; all
// zero at the start. Inline, without branches, so that the compiler computes several rules at once.

// With both at 0 there are a tenth more direction changes; at 1 there are a tenth fewer, and bursty loads cost 1 %
// more.
#define OBJECTIVE_HOLD_EACH 0.2f  // start-up times that each replica of the surplus is kept
#define OBJECTIVE_HOLD_ONCE 0.35f // and that one replica is kept: a small surplus waits longer than a large one
#define OBJECTIVE_HOLD_MOST 65535.0f

struct objective_hold {
	// Twice the surplus: the replica-steps beyond what was wanted, since all replicas were wanted last. Plus 1 when
	// the last change was an addition.
	uint32_t surplus_and_grew;
};

// Returns how many of `replicas` to run when `wanted` are wanted: `wanted`, or `replicas` while the removal waits.
// All are whole numbers from 0 to 65535. startup_steps is the length of a start-up. Call it once a step.
static inline float objective_hold_step(struct objective_hold *h, float replicas, float wanted, float startup_steps)
{
	int32_t bits = (int32_t)h->surplus_and_grew;
	float surplus = f32_max(replicas - wanted, 0), sum = f32_min((float)(bits >> 1) + surplus, OBJECTIVE_HOLD_MOST);
	float price = startup_steps * (OBJECTIVE_HOLD_EACH * surplus + OBJECTIVE_HOLD_ONCE);
	int32_t grew = bits & 1, waits = grew & (sum < f32_min(price, OBJECTIVE_HOLD_MOST));
	float kept = waits ? f32_max(replicas, wanted) : wanted;
	grew = kept < replicas ? 0 : kept > replicas ? 1 : grew;
	h->surplus_and_grew = (uint32_t)((surplus > 0 ? (int32_t)sum * 2 : 0) + grew);
	return kept;
}

// ---- the queues ----

// Virtual services, one per rule: replicas, replicas that start, a queue, and the record of what they cost and how much
// work they served late. The objective stage feeds all of them the real demand. Each field is an array over the rules,
// so that the compiler computes several rules at once. Part of the flat state; has no padding; all zero at the start.

#define OBJECTIVE_START_SLOTS 16
#define OBJECTIVE_ORDER_MAX   255 // replicas that a queue can have starting in one slot

struct objective_queues {
	uint16_t ready[OBJECTIVE_RULES], replicas[OBJECTIVE_RULES]; // replicas: ready and starting
	struct objective_hold hold[OBJECTIVE_RULES];
	uint8_t starting[OBJECTIVE_START_SLOTS][OBJECTIVE_RULES]; // newest order first
	float backlog[OBJECTIVE_RULES];                           // replica-seconds
	float late[OBJECTIVE_RULES], cost[OBJECTIVE_RULES];       // replica-seconds, as much as is remembered
};

// How start-up time maps to the slots of the queues: a slot is one step, or more for a long start-up.
struct objective_pipeline {
	int steps; // of a start-up; at least 1
	int steps_a_slot, slots;
	bool shifts; // at this step the oldest slot becomes ready
};

// Serves one step: orders that are due become ready, then `demand` arrives and may wait up to wait_s, of which a
// start-up leaves after_start_s. Late work and
// cost are added to the record after it has faded by `keep`.
void objective_queues_serve(struct objective_queues *q, const struct objective_pipeline *p, float demand, float burst,
                            float wait_s, float after_start_s, float keep);
// Computes each queue's backlog at the time when a replica ordered now is ready, at a demand of demand[rule].
void objective_queues_ahead(const struct objective_queues *q, const struct objective_pipeline *p,
                            const float demand[OBJECTIVE_RULES], float ret_backlog[OBJECTIVE_RULES]);
// Sets the replicas of one queue; a removal cancels the newest starting ones first, and costs startup_s more.
void objective_queues_scale(struct objective_queues *q, int rule, const struct objective_pipeline *p, int32_t replicas,
                            float startup_s);
// Returns the work, in replica-seconds, that is served within the wait: by the ready replicas, and by those that are
// starting or, at zero, are about to be ordered.
static inline float objective_queue_timely(float wait_s, float after_start_s, float ready, float replicas)
{
	return wait_s * ready + after_start_s * (f32_max(replicas, 1) - ready);
}
// Returns the share of steady arrivals that finds more than `limit` of backlog before it, while the backlog moves from
// `from` to `to`. Without branches, which would keep the compiler from computing several rules at once: where the limit
// is not crossed, the quotient is beyond 0 or 1.
static inline float objective_late_share(float from, float to, float limit)
{
	float high = f32_max(from, to), low = f32_min(from, to);
	return f32_min(f32_max((high - limit) / (high - low + 1e-20f), 0), 1);
}

// ---- the whole state ----

#define OBJECTIVE_STATE_MAX_BYTES 4096
#define OBJECTIVE_MEMORY_S        86400.0f // in which the record of the rules and of the real queue fades

// The whole state: flat, without pointers and padding, so its bytes can be copied and stored.
struct objective {
	int32_t steps;          // simulated; stays at its largest value
	int32_t first_replicas; // at the first step; kept while the rules have no record
	int32_t slot_step;      // steps in the current slot of the queues' pipelines
	int32_t family;         // the rule in use
	float rung;
	int32_t leaner_steps; // for which a leaner rule has been the best one
	float work, time;     // seen, as much as is remembered: replica-seconds, seconds
	float real_work;      // as `work`, but the first minutes count as well ..
	float late;           // .. of it, measured or from the real backlog
	float correction;     // of the aim, from measured lateness: the natural logarithm of a factor
	// The late work of all rules, fading in an hour, and the sum of the squares of its bursts.
	float late_burst, late_squares;
	struct block_max wanted;
	struct objective_hold hold;
	struct objective_burst burst;
	struct objective_load load;
	struct objective_queues queues;
};
_Static_assert(sizeof(struct objective) <= OBJECTIVE_STATE_MAX_BYTES, "the state of an objective is at most 4 KiB");

// ---- the goal, in the units of the algorithm and within its ceilings ----

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
