// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/objective_burst.h"

#include "policies/engine/number.h"
#include "policies/engine/objective_load.h"

#define STEP_S ((float)OBJECTIVE_STEP_S)

// What the constants do is measured as in objective.c.
#define BURST        1.8f // until learnt, and from BURST_WAIT_S on; at 2.15, smooth loads cost 0.4 % more, code 3 %
#define BURST_WAIT_S 10.0f
#define MARGIN       0.1f   // above the learnt burst; without it, alibaba is 1.5 % late at a wait of 2 s
#define EVIDENCE     300.0f // steps that differ between the queues, at half of BURST_WAIT_S, to count as much as BURST
#define MEMORY_S     86400.0f // in which the comparison fades
#define READY_LEAST  0.001f   // replicas: without any, everything waits too long

static const float bursts[OBJECTIVE_BURST_QUEUES] = {1, 1.5f, 2, 2.5f, OBJECTIVE_BURST_MOST};

static float share_filled(float backlog, float limit)
{
	return f32_min(1, backlog / limit);
}

// Serves a step, a pause and then the burst, and returns the share of the limit that the queue filled on average.
static float serve(float *backlog, float burst, float demand, float ready, float limit)
{
	float burst_s = STEP_S / burst, pause_s = STEP_S - burst_s;
	float before = f32_max(0, *backlog - ready * pause_s);
	float after = f32_max(0, before + (demand * burst - ready) * burst_s);
	float drain_s = *backlog > ready * pause_s ? pause_s : ready > 0 ? *backlog / ready : 0;
	float drained = share_filled(*backlog, limit) + share_filled(before, limit);
	float grown = share_filled(before, limit) + share_filled(after, limit);
	*backlog = after;
	return (drained * drain_s + grown * burst_s) / (2 * STEP_S);
}

void objective_burst_learn(struct objective_burst *b, float demand, float backlog, float ready, float wait_s)
{
	const float remains = 1 - STEP_S / MEMORY_S, limit = f32_max(wait_s, 1) * f32_max(ready, READY_LEAST);
	if (wait_s >= BURST_WAIT_S)
		return;
	for (int i = 0; i < OBJECTIVE_BURST_QUEUES; i++)
		b->filled[i] = b->filled[i] * remains + serve(&b->backlog[i], bursts[i], demand, ready, limit);
	b->filled_really = b->filled_really * remains + share_filled(backlog, limit);
}

// Returns the burst whose queue was as long as the real one; between two queues it is interpolated.
static float learnt(const struct objective_burst *b)
{
	const int last = OBJECTIVE_BURST_QUEUES - 1;
	if (b->filled_really <= b->filled[0])
		return bursts[0];
	for (int i = 0; i < last; i++)
		if (b->filled_really < b->filled[i + 1])
			return bursts[i] + (bursts[i + 1] - bursts[i]) * (b->filled_really - b->filled[i]) /
			                           (b->filled[i + 1] - b->filled[i]);
	return bursts[last];
}

float objective_burst(const struct objective_burst *b, float wait_s)
{
	const float most = bursts[OBJECTIVE_BURST_QUEUES - 1], part = wait_s / BURST_WAIT_S;
	if (part >= 1)
		return BURST;
	float unlearnt = 1 + (BURST - 1) * part, weight = 1 + EVIDENCE * part / (1 - part);
	float evidence = f32_max(0, b->filled[OBJECTIVE_BURST_QUEUES - 1] - b->filled[0]);
	return (unlearnt * weight + f32_min(learnt(b) + MARGIN, most) * evidence) / (weight + evidence);
}
