// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/objective_choice.h"

#include <math.h>
#include <string.h>

#include "policies/engine/number.h"
#include "policies/engine/objective_memory.h"
#include "policies/engine/objective_rehearsal.h"

// What the constants do is measured as in objective.c.
#define PRICE      80.0f // of a late replica-second, in replica-seconds; at 60, code is 2.2 % late
#define PRICE_GOAL 0.01f // a stricter goal raises it; otherwise code is 0.9 % late at a goal of 0.1 %
#define AIM_LEAST  0.1f  // of the goal
#define AIM_MORE                                                                                                       \
	0.25f // of the goal on top, for a full record that is less late; at 0.6, alibaba changes direction 102 times
#define STAY 0.04f // discount of the family in use

#define ROUNDING (1 - 1e-6f) // a mean of two numbers may be this much below both of them

// What a step needs to compare the rules, and the best candidate so far. There are two candidates for each rule: the
// rung, and the point between it and the next rung at which lateness reaches the aim. Among equals, the first one wins.
struct comparison {
	const struct objective_rehearsal *rehearsal;
	float aim, log_aim;
	float price;                     // of all work, if it is late
	float cost[OBJECTIVE_RULES + 1]; // after the discount; no rule comes after the last one
	float total;                     // of the best candidate ..
	int candidate;                   // .. its number ..
	struct objective_choice choice;  // .. and what it is
};

float objective_choice_aim(const struct objective *s, const struct objective_setting *set, bool is_measured)
{
	const float corrected = is_measured ? (float)set->late * expf(s->correction) : (float)set->late;
	float budget = (float)(set->late * s->work + 1e-6);
	float most = 1 + AIM_MORE * s->time / OBJECTIVE_MEMORY_S;
	return corrected * f32_max(AIM_LEAST, f32_min(most, 2 * budget / (s->late + budget)));
}

// A strict goal says that lateness is worth more; a lax one does not make it cheap.
static float price_of(const struct objective_setting *set)
{
	return PRICE * f32_max(1, sqrtf(PRICE_GOAL / (float)set->late));
}

static void compare(const struct objective *s, const struct objective_setting *set, const struct objective_rehearsal *r,
                    float aim, struct comparison *ret)
{
	ret->rehearsal = r;
	ret->aim = aim;
	ret->log_aim = logf(aim);
	ret->price = price_of(set) * s->work;
	ret->total = 1e30f;
	ret->candidate = -1;
	ret->choice = (struct objective_choice){0};
	memcpy(ret->cost, s->queues.cost, sizeof s->queues.cost);
	ret->cost[OBJECTIVE_RULES] = 0;
	for (int i = s->family * OBJECTIVE_RUNGS; i < (s->family + 1) * OBJECTIVE_RUNGS; i++)
		ret->cost[i] *= 1 - STAY;
}

// ---- the candidates ----

static void offer(struct comparison *c, int candidate, float total, struct objective_choice choice)
{
	if (total < c->total || (!(total > c->total) && candidate < c->candidate)) {
		c->total = total;
		c->candidate = candidate;
		c->choice = choice;
	}
}

static inline float total_of(const struct comparison *c, float cost, float late)
{
	return cost + c->price * f32_max(0, late - c->aim);
}

static void offer_rung(struct comparison *c, int i)
{
	const struct objective_rehearsal *r = c->rehearsal;
	if (c->candidate == 2 * i || total_of(c, c->cost[i], r->late_least[i]) > c->total)
		return;
	float late = r->late_most[i] > c->aim ? objective_rehearsal_late(r, i) : r->late_most[i];
	struct objective_choice choice = {i / OBJECTIVE_RUNGS, (float)(i % OBJECTIVE_RUNGS)};
	offer(c, 2 * i, total_of(c, c->cost[i], late), choice);
}

// Returns the logarithm to base 2, or up to LOG2_ERROR less: the bits of a float, taken as a number, are its exponent
// and then its mantissa.
#define LOG2_ERROR 0.087f
static float log2_least(float x)
{
	return (float)f32_bits(x) / (1 << 23);
}

// Returns how far from rung i to i + 1 the lateness reaches the aim, or a little less.
static float crossing_least(const struct comparison *c, int i)
{
	const float *late = c->rehearsal->late_least;
	float from = log2_least(late[i]), to = log2_least(f32_max(late[i + 1], c->aim / 100));
	float above = from - log2_least(c->aim) - LOG2_ERROR;
	return above > 0 ? 0.999f * f32_min(above / (from - to), 1) : 0;
}

// Lateness falls about exponentially from rung to rung.
static float crossing_of(const struct comparison *c, float late, float late_next)
{
	float from = logf(late), to = logf(f32_max(late_next, c->aim / 100));
	return f32_min(0.999f, (from - c->log_aim) / (from - to));
}

static void offer_crossing(struct comparison *c, int i)
{
	const struct objective_rehearsal *r = c->rehearsal;
	int rung = i % OBJECTIVE_RUNGS;
	if (rung + 1 == OBJECTIVE_RUNGS || r->late_most[i] <= c->aim || r->late_least[i + 1] > c->aim ||
	    c->candidate == 2 * i + 1)
		return;
	float least = crossing_least(c, i), cost = c->cost[i], next = c->cost[i + 1];
	if (f32_min(next, cost * (1 - least) + next * least) * ROUNDING > c->total)
		return;
	float late = objective_rehearsal_late(r, i), late_next = objective_rehearsal_late(r, i + 1);
	if (late <= c->aim || late_next > c->aim)
		return;
	float part = crossing_of(c, late, late_next);
	struct objective_choice choice = {i / OBJECTIVE_RUNGS, (float)rung + part};
	offer(c, 2 * i + 1, cost * (1 - part) + next * part, choice);
}

// Both flag the rules whose candidate may be better than the best one so far, by the bounds of their lateness.
static void find_rungs(const struct comparison *c, uint16_t *restrict ret_open)
{
	const float *restrict least = c->rehearsal->late_least, *restrict cost = c->cost;
	for (int i = 0; i < OBJECTIVE_RULES; i++)
		ret_open[i] = total_of(c, cost[i], least[i]) <= c->total;
}

static void find_crossings(const struct comparison *c, uint16_t *restrict ret_open)
{
	const float *restrict least = c->rehearsal->late_least, *restrict most = c->rehearsal->late_most;
	const float *restrict cost = c->cost;
	for (int i = 0; i < OBJECTIVE_RULES; i++)
		ret_open[i] = (f32_min(cost[i], cost[i + 1]) * ROUNDING <= c->total) & (most[i] > c->aim) &
		              (least[i + 1] <= c->aim);
}

struct objective_choice objective_choose(const struct objective *s, const struct objective_setting *set,
                                         const struct objective_rehearsal *r, float aim)
{
	struct comparison c;
	uint16_t open[OBJECTIVE_RULES];
	compare(s, set, r, aim, &c);
	// The rule in use comes first: it is rarely much dearer than the best one, and rules out most others.
	int low = s->family * OBJECTIVE_RUNGS + (int)s->rung;
	offer_rung(&c, low + (s->rung > (float)(int)s->rung));
	offer_crossing(&c, low);
	find_rungs(&c, open);
	for (int i = objective_rule_next(open, 0); i < OBJECTIVE_RULES; i = objective_rule_next(open, i + 1))
		offer_rung(&c, i);
	find_crossings(&c, open);
	for (int i = objective_rule_next(open, 0); i < OBJECTIVE_RULES; i = objective_rule_next(open, i + 1))
		offer_crossing(&c, i);
	return c.choice;
}
