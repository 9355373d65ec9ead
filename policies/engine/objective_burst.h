// SPDX-License-Identifier: Apache-2.0
// How fast the work of a step arrives: all of it within 1 / burst of the step. The samples do not show this, but the
// real queue does: it is longer than a queue with even arrivals would have been. Five virtual queues with the real
// replicas, each with another burst, are compared with the real one; the burst whose queue was as long on average is
// the learnt one.
//
// A long wait forgives what a step hides, so a constant burst serves as a margin there. The shorter the wait, the more
// that margin costs and the more the learnt burst counts. Part of the flat state; has no padding; all zero at the
// start.
#ifndef GPUSCALE_POLICIES_ENGINE_OBJECTIVE_BURST_H
#define GPUSCALE_POLICIES_ENGINE_OBJECTIVE_BURST_H

#include <stdint.h>

#define OBJECTIVE_BURST_QUEUES 5
#define OBJECTIVE_BURST_MOST   3.0f

struct objective_burst {
	float backlog[OBJECTIVE_BURST_QUEUES]; // replica-seconds
	float filled[OBJECTIVE_BURST_QUEUES];  // steps, each counted by the share of the wait that its queue filled
	float filled_really;                   // the same of the real queue
};

// Adds a step in which `ready` replicas served `demand` (replicas) and `backlog` (replica-seconds) remained.
void objective_burst_learn(struct objective_burst *b, float demand, float backlog, float ready, float wait_s);
// Returns the burst to simulate with, 1 .. 3.
float objective_burst(const struct objective_burst *b, float wait_s);

#endif
