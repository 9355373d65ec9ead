// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/objective_rehearsal.h"

#include <string.h>

#include "policies/engine/number.h"
#include "policies/engine/objective_memory.h"
#include "policies/engine/objective_size.h"

#define STEP_S ((float)OBJECTIVE_STEP_S)

// What the constants do is measured as in objective.c.
#define PRIOR_STEPS  45.0f  // of evidence that the prior weighs at the start; at 60, code is 2.2 % late ..
#define PRIOR_HALVES 240.0f // .. with 480 steps after which it weighs half as much
#define FORGET_STEPS 24     // after which the records start, or three start-ups: no rule could help the first minutes

#define ROUNDING 1e-5f // more than the rounding errors of a bound

// ---- the record of the real load ----

static void forget_start(struct objective *s, float demand)
{
	s->work = demand * STEP_S;
	s->time = STEP_S;
	s->late = 0;
	memset(s->queues.late, 0, sizeof s->queues.late);
	memset(s->queues.cost, 0, sizeof s->queues.cost);
}

static void remember(struct objective *s, const struct objective_setting *set, float demand, float remains)
{
	s->work = s->work * remains + demand * STEP_S;
	s->time = s->time * remains + STEP_S;
	s->late *= remains;
	if (s->steps == i32_max(FORGET_STEPS, 3 * set->pipeline.steps))
		forget_start(s, demand);
}

// ---- the scale of the virtual queues ----

#define EXPECTING (OBJECTIVE_PRESENT * OBJECTIVE_RUNGS) // rules that expect a backlog; the others follow the present
_Static_assert(OBJECTIVE_PRESENT + 1 == OBJECTIVE_FAMILY__COUNT, "the rules that follow the present come last");

// Computes how many replicas the queues of the rules from `first` to `end` - 1 run from now on, and flags the queues in
// which that changes.
static void request(struct objective *s, const struct objective_setting *set, int first, int end,
                    const struct objective_drain *drain, const float *restrict level, const float *restrict backlog,
                    int32_t *restrict ret_kept, uint16_t *restrict ret_changes)
{
	const float least = s->steps < OBJECTIVE_FIRST_STEPS ? (float)s->first_replicas : 0;
	const float min = (float)set->min, max = (float)set->max;
	const float hold_steps = (float)(set->pipeline.steps * objective_rule_hold_starts(first / OBJECTIVE_RUNGS));
	const struct objective_drain d = *drain;
	for (int i = first; i < end; i++) {
		float replicas = (float)s->queues.replicas[i];
		float wanted = objective_size(level[i] + objective_size_backlog(&d, backlog[i], replicas), replicas);
		wanted = objective_size_first(wanted, replicas, least);
		wanted = f32_min(f32_max(wanted, min), max);
		float kept = objective_hold_step(&s->queues.hold[i], replicas, wanted, hold_steps);
		kept = f32_min(f32_max(kept, min), max);
		ret_kept[i] = (int32_t)kept;
		ret_changes[i] = (kept < replicas) | (kept > replicas);
	}
}

static void scale(struct objective_queues *q, const struct objective_setting *set, const int32_t *kept,
                  const uint16_t *changes)
{
	for (int i = objective_rule_next(changes, 0); i < OBJECTIVE_RULES; i = objective_rule_next(changes, i + 1))
		objective_queues_scale(q, i, &set->pipeline, kept[i], set->startup_s);
}

// ---- the share of late work ----

// The bounds are those of a prior of 0 and of 1, and a little wider: they need no division for each rule.
static void estimate(const struct objective *s, struct objective_rehearsal *r)
{
	const float *restrict late = s->queues.late;
	r->queues = &s->queues;
	r->work = s->work + 1e-6f;
	r->known = s->time / STEP_S;
	r->weight = PRIOR_STEPS / (1 + (float)s->steps / PRIOR_HALVES);
	const float all = r->known + r->weight, share = r->known / all / r->work;
	const float least = share * (1 - ROUNDING), most = share * (1 + ROUNDING);
	const float prior = r->weight / all * (1 + ROUNDING);
	for (int i = 0; i < OBJECTIVE_RULES; i++) {
		r->late_least[i] = late[i] * least;
		r->late_most[i] = late[i] * most + prior;
	}
	r->late_least[OBJECTIVE_RULES] = 1;
}

float objective_rehearsal_late(const struct objective_rehearsal *r, int rule)
{
	enum objective_family family = (enum objective_family)(rule / OBJECTIVE_RUNGS);
	float prior = objective_rule_prior(family, r->level[rule], r->view, r->steps);
	float late_steps = r->queues->late[rule] / r->work * r->known;
	return (late_steps + prior * r->weight) / (r->known + r->weight);
}

void objective_rehearse(struct objective *s, const struct objective_setting *set, const struct objective_view *v,
                        struct objective_rehearsal *ret_rehearsal)
{
	struct objective_rehearsal *r = ret_rehearsal;
	const float remains = 1 - STEP_S / OBJECTIVE_MEMORY_S;
	float forecast[OBJECTIVE_RULES], ahead[OBJECTIVE_RULES];
	int32_t kept[OBJECTIVE_RULES];
	uint16_t changes[OBJECTIVE_RULES];
	r->view = v;
	r->steps = s->steps;
	remember(s, set, v->demand, remains);
	objective_rule_levels(v, r->level);
	objective_rule_forecasts(v, forecast);
	objective_queues_serve(&s->queues, &set->pipeline, v->demand, set->burst, set->wait_s, set->after_start_s,
	                       remains);
	objective_queues_ahead(&s->queues, &set->pipeline, forecast, ahead);
	request(s, set, 0, EXPECTING, &set->expected, r->level, ahead, kept, changes);
	request(s, set, EXPECTING, OBJECTIVE_RULES, &set->present, r->level, s->queues.backlog, kept, changes);
	scale(&s->queues, set, kept, changes);
	estimate(s, r);
}
