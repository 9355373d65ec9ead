// SPDX-License-Identifier: Apache-2.0
// The virtual services of the rules: they serve, look ahead and are scaled.
#include "policies/engine/objective_memory.h"

#include <string.h>

#include "policies/engine/number.h"
#include "policies/engine/objective_load.h"

#define STEP_S      ((float)OBJECTIVE_STEP_S)
#define AHEAD_RULES 24 // computed at once
_Static_assert(OBJECTIVE_RULES % AHEAD_RULES == 0, "the last rules are computed at once as well");

static void start_slot(struct objective_queues *q, int slot)
{
	for (int i = 0; i < OBJECTIVE_RULES; i++)
		q->ready[i] = (uint16_t)(q->ready[i] + q->starting[slot][i]);
	memset(q->starting[slot], 0, sizeof q->starting[slot]);
}

// A learnt start-up may become shorter than the time for which a replica has been starting: then it is due as well.
static void start_overdue(struct objective_queues *q, int slots)
{
	static const uint8_t none[OBJECTIVE_START_SLOTS][OBJECTIVE_RULES];
	if (memcmp(q->starting[slots], none, sizeof none - (size_t)slots * sizeof none[0]) == 0)
		return;
	for (int slot = slots; slot < OBJECTIVE_START_SLOTS; slot++)
		start_slot(q, slot);
}

static void start_due(struct objective_queues *q, const struct objective_pipeline *p)
{
	if (p->slots < OBJECTIVE_START_SLOTS)
		start_overdue(q, p->slots);
	if (!p->shifts)
		return;
	start_slot(q, p->slots - 1);
	memmove(q->starting[1], q->starting[0], (size_t)(p->slots - 1) * sizeof q->starting[0]);
	memset(q->starting[0], 0, sizeof q->starting[0]);
}

// A step is a pause, in which the queue only drains, and then a burst with all its arrivals. Inline, so that a wait
// without time after a start-up has a loop of its own.
static inline void serve(struct objective_queues *q, float demand, float burst, float wait_s, float after_start_s,
                         float keep)
{
	float burst_s = STEP_S / burst, pause_s = STEP_S - burst_s;
	for (int i = 0; i < OBJECTIVE_RULES; i++) {
		float ready = (float)q->ready[i];
		float before = f32_max(0, q->backlog[i] - ready * pause_s);
		float after = before + (demand * burst - ready) * burst_s;
		q->backlog[i] = f32_max(0, after);
		float timely = wait_s * ready;
		if (after_start_s > 0)
			timely = objective_queue_timely(wait_s, after_start_s, ready, (float)q->replicas[i]);
		q->late[i] = q->late[i] * keep + objective_late_share(before, after, timely) * (demand * STEP_S);
		q->cost[i] = q->cost[i] * keep + STEP_S * (float)q->replicas[i];
	}
}

void objective_queues_serve(struct objective_queues *q, const struct objective_pipeline *p, float demand, float burst,
                            float wait_s, float after_start_s, float keep)
{
	start_due(q, p);
	if (after_start_s > 0)
		serve(q, demand, burst, wait_s, after_start_s, keep);
	else
		serve(q, demand, burst, wait_s, 0, keep);
}

// The backlogs ahead of rules `first` to first + AHEAD_RULES - 1. A queue that has become empty stays empty, because
// its capacity only grows.
static void ahead_of(const struct objective_queues *q, const struct objective_pipeline *p, int first,
                     const float *restrict demand, float *restrict ret_backlog)
{
	const float slot_steps = (float)p->steps_a_slot;
	float backlog[AHEAD_RULES];
	uint16_t capacity[AHEAD_RULES];
	uint32_t queued = 1;
	for (int i = 0; i < AHEAD_RULES; i++) {
		backlog[i] = q->backlog[first + i];
		capacity[i] = q->ready[first + i];
	}
	for (int slot = p->slots - 1; slot >= 0 && queued; slot--) {
		queued = 0;
		for (int i = 0; i < AHEAD_RULES; i++) {
			float missing = demand[first + i] - (float)capacity[i];
			backlog[i] = f32_max(0, backlog[i] + missing * STEP_S * slot_steps);
			queued |= f32_bits(backlog[i]);
		}
		for (int i = 0; i < AHEAD_RULES; i++)
			capacity[i] = (uint16_t)(capacity[i] + q->starting[slot][first + i]);
	}
	for (int i = 0; i < AHEAD_RULES; i++)
		ret_backlog[first + i] = backlog[i];
}

void objective_queues_ahead(const struct objective_queues *q, const struct objective_pipeline *p,
                            const float demand[OBJECTIVE_RULES], float ret_backlog[OBJECTIVE_RULES])
{
	for (int first = 0; first < OBJECTIVE_RULES; first += AHEAD_RULES)
		ahead_of(q, p, first, demand, ret_backlog);
}

void objective_queues_scale(struct objective_queues *q, int rule, const struct objective_pipeline *p, int32_t replicas,
                            float startup_s)
{
	int32_t change = replicas - q->replicas[rule];
	uint8_t *newest = &q->starting[0][rule];
	if (change > 0) {
		change = i32_min(change, OBJECTIVE_ORDER_MAX - *newest);
		*newest = (uint8_t)(*newest + change);
		q->replicas[rule] = (uint16_t)(q->replicas[rule] + change);
		return;
	}
	if (change == 0)
		return;
	// A removal is not free: the next order costs another start-up.
	q->cost[rule] += startup_s;
	q->replicas[rule] = (uint16_t)replicas;
	for (int slot = 0; slot < p->slots && change < 0; slot++) {
		uint8_t *starting = &q->starting[slot][rule];
		int32_t cancelled = i32_min(*starting, -change);
		*starting = (uint8_t)(*starting - cancelled);
		change += cancelled;
	}
	q->ready[rule] = (uint16_t)(q->ready[rule] + change);
}
