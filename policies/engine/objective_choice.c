// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/objective_choice.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "policies/engine/number.h"
#include "policies/engine/objective_load.h"
#include "policies/engine/objective_memory.h"
#include "policies/engine/objective_rule.h"

// ---- the rules ----

enum kind { FOLLOW, PEAK, MARGIN, SEASON, PRESENT, DEADLINE, KIND__COUNT };

// clang-format off
static const struct {
	enum kind kind;
	enum objective_forecast forecast;
	int which; // forecast, peak, memory or season
	const char *name;
} families[OBJECTIVE_FAMILY__COUNT] = {
	[OBJECTIVE_FOLLOW_BRISK]     = {FOLLOW, OBJECTIVE_BRISK, OBJECTIVE_PEAK_BRISK, "brisk forecast"},
	[OBJECTIVE_FOLLOW_CALM]      = {FOLLOW, OBJECTIVE_CALM,  OBJECTIVE_PEAK_CALM,  "calm forecast"},
	[OBJECTIVE_PEAK_45M]         = {PEAK,   OBJECTIVE_CALM,  OBJECTIVE_PEAK_SHORT, "peak of 45 minutes"},
	[OBJECTIVE_PEAK_3H]          = {PEAK,   OBJECTIVE_CALM,  OBJECTIVE_PEAK_LONG,  "peak of three hours"},
	[OBJECTIVE_MARGIN_HALF_HOUR] = {MARGIN, OBJECTIVE_CALM,  OBJECTIVE_HALF_HOUR,  "margin over half an hour"},
	[OBJECTIVE_MARGIN_DAY]       = {MARGIN, OBJECTIVE_CALM,  OBJECTIVE_DAY,        "margin over a day"},
	[OBJECTIVE_SEASON_HOUR]      = {SEASON, OBJECTIVE_CALM,  OBJECTIVE_HOURLY,     "season of an hour"},
	[OBJECTIVE_SEASON_DAY]       = {SEASON, OBJECTIVE_CALM,  OBJECTIVE_DAILY,      "season of a day"},
	[OBJECTIVE_PRESENT]          = {PRESENT, OBJECTIVE_BRISK, 0,                   "present demand"},
};
static const float ladders[KIND__COUNT][OBJECTIVE_RUNGS] = {
	[FOLLOW]   = {0.85f, 0.93f, 1,     1.1f,  1.3f,  1.6f,  2.1f,  3},
	[PEAK]     = {0.5f,  0.65f, 0.8f,  0.95f, 1.1f,  1.35f, 1.75f, 2.4f},
	[MARGIN]   = {0,     0.6f,  1.2f,  2,     2.8f,  3.7f,  4.8f,  6.5f},
	[SEASON]   = {0.5f,  0.65f, 0.8f,  0.9f,  1.02f, 1.2f,  1.6f,  2.2f},
	[PRESENT]  = {0.92f, 1,     1.1f,  1.22f, 1.4f,  1.7f,  2.2f,  3},
	// What PRESENT becomes as the wait grows: the backlog alone decides on the leanest rung.
	[DEADLINE] = {0,     0.2f,  0.4f,  0.6f,  0.8f,  0.95f, 1.2f,  1.7f},
};
// clang-format on

// Late share of a level z deviations above the mean: exp(-PRIOR_TAIL (1 + z)). At 1.4, the seven later starts of code
// are 8.9 instead of 8.0 % late on average.
#define PRIOR_TAIL 1.15f
// A rule that follows the load is compared with what it follows instead of the mean, and with so much of the deviation.
#define FOLLOW_DEVIATION 0.55f
#define DEADLINE_PRIOR   0.01f // of that share, where queued work is a matter of a deadline
// Steps of two turns of a season.
static const int32_t season_steps[OBJECTIVE_SEASON__COUNT] = {2 * 3600 / OBJECTIVE_STEP_S,
                                                              2 * 86400 / OBJECTIVE_STEP_S};

// Each family is a loop of its own, so that the compiler computes several rungs at once.
static void family_levels(enum kind kind, int which, const struct objective_view *v, float *restrict level)
{
	const float *restrict k = ladders[kind];
	const float calm = v->peak[OBJECTIVE_PEAK_CALM], widen = v->widen;
	switch (kind) {
	case FOLLOW:
		for (int i = 0; i < OBJECTIVE_RUNGS; i++)
			level[i] = v->peak[which] * (k[i] > 1 ? 1 + (k[i] - 1) * widen : k[i]);
		return;
	case PEAK:
		for (int i = 0; i < OBJECTIVE_RUNGS; i++)
			level[i] = f32_max(calm, v->peak[which] * k[i] * (k[i] > 1 ? widen : 1));
		return;
	case MARGIN:
		for (int i = 0; i < OBJECTIVE_RUNGS; i++)
			level[i] = f32_max(calm, v->mean[which] + k[i] * widen * v->deviation[which]);
		return;
	case PRESENT:
		for (int i = 0; i < OBJECTIVE_RUNGS; i++)
			level[i] = v->present * (k[i] + v->patience * (ladders[DEADLINE][i] - k[i]));
		return;
	default:
		for (int i = 0; i < OBJECTIVE_RUNGS; i++)
			level[i] = f32_max(calm, v->season[which] * k[i]);
		return;
	}
}

static void rule_levels(const struct objective_view *v, float ret_levels[OBJECTIVE_RULES])
{
	for (int f = 0; f < OBJECTIVE_FAMILY__COUNT; f++)
		family_levels(families[f].kind, families[f].which, v, &ret_levels[f * OBJECTIVE_RUNGS]);
}

// Returns the share of work that a rule is taken to serve late before its own record says otherwise, from how many
// deviations its level is above the mean. `steps` are the steps so far: a season must come round twice to count.
static float rule_prior(enum objective_family family, float level, const struct objective_view *v, int32_t steps)
{
	const enum kind kind = families[family].kind;
	const float deviation = v->deviation[OBJECTIVE_HALF_HOUR] * v->widen;
	float z = (level - v->mean[OBJECTIVE_HALF_HOUR]) / (deviation + 1e-3f);
	if (kind == FOLLOW || kind == PRESENT)
		z = (level - objective_rule_forecast(family, v)) / (FOLLOW_DEVIATION * deviation + 1e-3f);
	if (kind == SEASON && steps < season_steps[families[family].which])
		z = -1;
	return f32_min(1, expf(-PRIOR_TAIL * (1 + z)) * (1 - (1 - DEADLINE_PRIOR) * v->patience));
}

float objective_rule_forecast(enum objective_family family, const struct objective_view *v)
{
	return families[family].kind == PRESENT ? v->present : v->forecast[families[family].forecast];
}

static void rule_forecasts(const struct objective_view *v, float ret_forecasts[OBJECTIVE_RULES])
{
	for (int f = 0; f < OBJECTIVE_FAMILY__COUNT; f++) {
		float forecast = objective_rule_forecast((enum objective_family)f, v);
		for (int rung = 0; rung < OBJECTIVE_RUNGS; rung++)
			ret_forecasts[f * OBJECTIVE_RUNGS + rung] = forecast;
	}
}

float objective_rule_factor(enum objective_family family, float rung, float wait_s)
{
	float factor = objective_rule_between(ladders[families[family].kind], rung);
	if (families[family].kind != PRESENT)
		return factor;
	return factor + objective_patience(wait_s) * (objective_rule_between(ladders[DEADLINE], rung) - factor);
}

const char *objective_family_name(enum objective_family family)
{
	assert(family < OBJECTIVE_FAMILY__COUNT);
	return families[family].name;
}

// ---- the rehearsal ----

#define STEP_S ((float)OBJECTIVE_STEP_S)

// What the constants do is measured as in objective.c.
#define PRIOR_STEPS  45.0f  // of evidence that the prior weighs at the start; at 60, code is 2.2 % late ..
#define PRIOR_HALVES 240.0f // .. with 480 steps after which it weighs half as much
#define FORGET_STEPS 24     // after which the records start, or three start-ups: no rule could help the first minutes

// A record that rests on few bursts of late work is uncertain.
#define APART_S 3600.0f // in which late work fades from its burst; at 1800, the twelve stages are 3.2 % late
#define CERTAIN 0.3f    // relative error of the late work of eleven equal bursts, which needs no margin ..
#define CAUTION 4.0f    // .. and the margin as a multiple of the rest; at 2, the twelve stages are 3.5 % late

#define ROUNDING 1e-5f // more than the rounding errors of a bound

// ---- the record of the real load ----

static void forget_start(struct objective *s, float demand)
{
	s->work = demand * STEP_S;
	s->time = STEP_S;
	s->late_burst = s->late_squares = 0;
	memset(s->queues.late, 0, sizeof s->queues.late);
	memset(s->queues.cost, 0, sizeof s->queues.cost);
}

static void remember(struct objective *s, const struct objective_setting *set, float demand, float remains)
{
	s->work = s->work * remains + demand * STEP_S;
	s->time = s->time * remains + STEP_S;
	s->real_work = s->real_work * remains + demand * STEP_S;
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

static float late_of_all(const struct objective_queues *q)
{
	float late = 0;
	for (int i = 0; i < OBJECTIVE_RULES; i++)
		late += q->late[i];
	return late;
}

// Adds what the rules served late in this step. The square of a burst counts as the burst fades, not at once: what
// follows from it can wait until the burst is over.
static void observe_burst(struct objective *s, float late, float remains)
{
	s->late_burst = s->late_burst * (1 - STEP_S / APART_S) + late;
	s->late_squares = s->late_squares * remains * remains + 2 * STEP_S / APART_S * s->late_burst * s->late_burst;
}

// Returns the factor that adds a margin to late work. Its relative error is 1 / sqrt(n) after n equal bursts, if bursts
// come at random. At a long wait, the constant burst of a step is a margin already.
static float caution_of(const struct objective *s, const struct objective_setting *set, float late)
{
	float error = late > 0 ? f32_min(1, sqrtf(s->late_squares) / late) : 0;
	float unforgiven = f32_max(0, 1 - set->wait_s / OBJECTIVE_BURST_WAIT_S);
	return 1 + CAUTION * unforgiven * f32_max(0, error - CERTAIN);
}

// The bounds are those of a prior of 0 and of 1, and a little wider: they need no division for each rule.
static void estimate(const struct objective *s, struct objective_rehearsal *r)
{
	const float *restrict late = s->queues.late;
	r->queues = &s->queues;
	r->work = s->work + 1e-6f;
	r->known = s->time / STEP_S;
	r->weight = PRIOR_STEPS / (1 + (float)s->steps / PRIOR_HALVES);
	const float all = r->known + r->weight, share = r->caution * r->known / all / r->work;
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
	float prior = rule_prior(family, r->level[rule], r->view, r->steps);
	float late_steps = r->caution * r->queues->late[rule] / r->work * r->known;
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
	rule_levels(v, r->level);
	rule_forecasts(v, forecast);
	const float late_before = late_of_all(&s->queues);
	objective_queues_serve(&s->queues, &set->pipeline, v->demand, set->burst, set->wait_s, set->after_start_s,
	                       remains);
	const float late = late_of_all(&s->queues);
	observe_burst(s, f32_max(0, late - late_before * remains), remains);
	r->caution = caution_of(s, set, late);
	objective_queues_ahead(&s->queues, &set->pipeline, forecast, ahead);
	request(s, set, 0, EXPECTING, &set->expected, r->level, ahead, kept, changes);
	request(s, set, EXPECTING, OBJECTIVE_RULES, &set->present, r->level, s->queues.backlog, kept, changes);
	scale(&s->queues, set, kept, changes);
	estimate(s, r);
}

// ---- the choice ----

// What the constants do is measured as in objective.c.
#define PRICE      80.0f // of a late replica-second, in replica-seconds; at 60, code is 2.2 % late
#define PRICE_GOAL 0.01f // a stricter goal raises it; otherwise code is 0.9 % late at a goal of 0.1 %
#define AIM_LEAST  0.1f  // of the goal
#define AIM_MORE                                                                                                       \
	0.3f // of the goal on top, for a full record that is less late; at 0.6, alibaba changes direction 102 times
#define STAY 0.03f // discount of the family in use

#define MEAN_ROUNDING (1 - 1e-6f) // a mean of two numbers may be this much below both of them

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
	float budget = (float)(set->late * s->real_work + 1e-6);
	float most = 1 + AIM_MORE * s->time / OBJECTIVE_MEMORY_S, part = 2 * budget / (s->late + budget);
	// Falls faster than it rises: with part alone, the two volatile recordings are 1.3 instead of 1.1 % late.
	return corrected * f32_max(AIM_LEAST, part < 1 ? part * part : f32_min(most, part));
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
	if (f32_min(next, cost * (1 - least) + next * least) * MEAN_ROUNDING > c->total)
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
		ret_open[i] = (f32_min(cost[i], cost[i + 1]) * MEAN_ROUNDING <= c->total) & (most[i] > c->aim) &
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
