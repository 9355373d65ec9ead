// SPDX-License-Identifier: Apache-2.0
// What the algorithm of an objective remembers from step to step: the load, the queues of the rules and the rule in
// use.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_MEMORY_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_MEMORY_H

#include <stdint.h>

#include "policies/engine/objective_load.h"
#include "policies/engine/objective_queue.h"

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
	float late;           // of the real work, measured or from the real backlog
	float correction;     // of the aim, from measured lateness: the natural logarithm of a factor
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
