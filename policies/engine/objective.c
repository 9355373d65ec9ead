// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/objective.h"

#include <math.h>
#include <string.h>

#include "policies/engine/number.h"
#include "policies/engine/objective_choice.h"
#include "policies/engine/objective_memory.h"

#define STEP_S ((float)OBJECTIVE_STEP_S)

// Most constants are flat near their values. What the others do, here and in the other files of the algorithm, as late
// share of six hours of code and as cost of three days of taxi at a goal of 1 %, stands beside them.
#define KEEP_STARTS   1.0f  // start-up times in which the largest scale wanted is kept
#define LEANER_STARTS 0.95f // start-up times before a leaner rule is used

// How a backlog is worked off. A longer wait leaves more time, and more of it free.
#define EXPECTED_STARTS 0.6f  // start-up times ..
#define EXPECTED_WAIT   0.4f  // .. or this share of the wait
#define EXPECTED_FREE   0.62f // of the wait: a backlog up to it needs no replicas
#define PRESENT_STARTS  0.22f // start-up times; at 0.5, lora costs 3 % more
#define PRESENT_WAIT    0.5f  // of what the wait leaves after a start-up
#define PRESENT_FREE    0.25f // of the wait; 0 where the wait is a deadline
// At a tenth of this goal, PRESENT_FREE is twice as large: rules that let work queue then show to be late, and rules
// with headroom are used. Without this, r1 is 0.46 instead of 0.12 % late at 0.1 %.
#define USUAL_LATE 0.01

// Of measured lateness.
#define CORRECT_S      86400.0f // in which the aim grows by a factor of e while nothing is late
#define CORRECT_EXCESS 8.0f     // multiples of the goal that one step counts for
#define CORRECT_UP     0.7f     // natural logarithms of the largest aim, twice the goal ..
#define CORRECT_DOWN   2.1f     // .. and of the smallest one, an eighth of it

static double limited(double x, double least, double most)
{
	return x > least ? x < most ? x : most : least;
}

static int32_t limited_count(int32_t n, int32_t least, int32_t most)
{
	return n < least ? least : n > most ? most : n;
}

static struct objective_setting setting_of(const struct objective *s, const struct objective_goal *g)
{
	struct objective_setting set = {
	        .wait_s = (float)limited(g->wait_s, 0, OBJECTIVE_WAIT_MAX_S),
	        .startup_s = (float)limited(g->startup_s, 0, OBJECTIVE_STARTUP_MAX_S),
	        .late = limited(g->late, OBJECTIVE_LATE_MIN, 1),
	        .min = limited_count(g->min_replicas, 0, OBJECTIVE_REPLICAS_MAX),
	        .max = limited_count(g->max_replicas, 0, OBJECTIVE_REPLICAS_MAX),
	};
	set.min = i32_min(set.min, set.max);
	set.burst = objective_burst(&s->burst, set.wait_s);
	set.after_start_s = f32_max(set.wait_s - set.startup_s, 0);
	set.expected.seconds = f32_max(f32_max(EXPECTED_STARTS * set.startup_s, EXPECTED_WAIT * set.wait_s), STEP_S);
	set.expected.free_s = EXPECTED_FREE * set.wait_s;
	set.present.seconds =
	        f32_max(f32_max(PRESENT_STARTS * set.startup_s, STEP_S), PRESENT_WAIT * set.after_start_s);
	float strict = (float)limited(log10(USUAL_LATE / set.late), 0, 1);
	set.present.free_s = PRESENT_FREE * (1 + strict) * set.wait_s * (1 - objective_patience(set.wait_s));
	struct objective_pipeline *p = &set.pipeline;
	p->steps = (int32_t)(set.startup_s / STEP_S) + 1;
	p->steps_a_slot = (p->steps + OBJECTIVE_START_SLOTS - 1) / OBJECTIVE_START_SLOTS;
	p->slots = (p->steps + p->steps_a_slot - 1) / p->steps_a_slot;
	p->shifts = s->slot_step + 1 >= p->steps_a_slot;
	return set;
}

static void start(struct objective *s, const struct objective_input *in)
{
	s->first_replicas = limited_count(in->replicas, 0, OBJECTIVE_REPLICAS_MAX);
	uint16_t ready = (uint16_t)limited_count(in->ready, 0, OBJECTIVE_REPLICAS_MAX);
	for (int i = 0; i < OBJECTIVE_RULES; i++)
		s->queues.ready[i] = s->queues.replicas[i] = ready;
}

// ---- the rule in use ----

static float level_of(const struct objective_rehearsal *r, int32_t family, float rung)
{
	return objective_rule_between(&r->level[family * OBJECTIVE_RUNGS], rung);
}

static struct objective_record record_of(const struct objective *s, const struct objective_rehearsal *r,
                                         struct objective_choice c)
{
	int low = c.family * OBJECTIVE_RUNGS + (int)c.rung;
	int high = c.rung > (float)(int)c.rung ? low + 1 : low;
	float part = c.rung - (float)(int)c.rung;
	float cost = s->queues.cost[low] * (1 - part) + s->queues.cost[high] * part;
	float late = objective_rehearsal_late(r, low);
	if (high != low)
		late = expf(logf(late) * (1 - part) + logf(objective_rehearsal_late(r, high)) * part);
	return (struct objective_record){
	        .family = (enum objective_family)c.family,
	        .rung = c.rung,
	        .level = level_of(r, c.family, c.rung),
	        .late = late,
	        .replicas = cost / s->time,
	};
}

static int32_t leaner_steps_needed(const struct objective_setting *set)
{
	return (int32_t)(LEANER_STARTS * (float)set->pipeline.steps);
}

// Uses the best rule: at once when it has a higher level than the one in use, after LEANER_STARTS start-up times in a
// row when it has a lower one.
static void use(struct objective *s, const struct objective_setting *set, const struct objective_rehearsal *r,
                struct objective_choice best)
{
	bool leaner = s->steps > 1 && level_of(r, best.family, best.rung) < level_of(r, s->family, s->rung);
	if (leaner && ++s->leaner_steps < leaner_steps_needed(set))
		return;
	if (s->steps > 1)
		s->leaner_steps = 0;
	s->family = best.family;
	s->rung = best.rung;
}

static struct objective_choice leaner_than(struct objective_choice c)
{
	float rung = ceilf(c.rung) - 1;
	return (struct objective_choice){c.family, rung > 0 ? rung : 0};
}

// ---- the real queue ----

// Returns `wanted`, or more while more was wanted a short time ago, or while a removal would change direction too soon.
static int32_t keep(struct objective *s, const struct objective_setting *set, int32_t replicas, int32_t wanted)
{
	const int startup_steps = set->pipeline.steps * objective_rule_hold_starts(s->family);
	int window = (int)(KEEP_STARTS * (float)startup_steps);
	int32_t most = (int32_t)block_max_add(&s->wanted, window, (float)wanted);
	if (wanted < replicas)
		wanted = i32_max(wanted, i32_min(most, replicas));
	return (int32_t)objective_hold_step(&s->hold, (float)replicas, (float)wanted, (float)startup_steps);
}

// Returns the real backlog that is expected when a replica ordered now is ready. Once work waits too long, the brisk
// forecast counts where it is larger: the calm one follows a jump only after minutes, and takes the backlog for one
// that will have been served until then.
static float backlog_ahead(const struct objective *s, const struct objective_setting *set,
                           const struct objective_view *v, const struct objective_input *in)
{
	float forecast = objective_rule_forecast((enum objective_family)s->family, v);
	if (in->backlog > (double)(set->wait_s * (float)in->replicas))
		forecast = f32_max(forecast, v->forecast[OBJECTIVE_BRISK]);
	double missing = 2 * (double)forecast - (double)in->ready - (double)in->replicas;
	return f32_max(0, (float)(in->backlog + missing * (double)set->startup_s / 2));
}

static int32_t apply(struct objective *s, const struct objective_setting *set, const struct objective_view *v,
                     const struct objective_input *in, struct objective_result *ret)
{
	float n = (float)in->replicas;
	ret->backlog_adds = s->family == OBJECTIVE_PRESENT
	                            ? objective_size_backlog(&set->present, (float)in->backlog, n)
	                            : objective_size_backlog(&set->expected, backlog_ahead(s, set, v, in), n);
	float sized = objective_size(ret->rule.level + ret->backlog_adds, n);
	float started =
	        s->steps <= OBJECTIVE_FIRST_STEPS ? objective_size_first(sized, n, (float)s->first_replicas) : sized;
	ret->starting = started > sized;
	ret->wanted = limited_count((int32_t)started, set->min, set->max);
	int32_t wanted = keep(s, set, in->replicas, ret->wanted);
	ret->kept = wanted > ret->wanted;
	return wanted;
}

// When no rule keeps the goal and the load of the last hours required more than the maximum, the requirement says how
// many replicas would have kept it.
static int32_t reachable_at(const struct objective_setting *set, const struct objective_view *v,
                            const struct objective_rehearsal *r)
{
	const float required = ceilf(v->peak[OBJECTIVE_PEAK_LONG]), late = (float)set->late * r->caution;
	if (required <= (float)set->max)
		return 0;
	for (int i = 0; i < OBJECTIVE_RULES; i++)
		if (r->late_least[i] <= late && objective_rehearsal_late(r, i) <= late)
			return 0;
	return i32_from_whole(required);
}

// ---- real lateness ----

// Adds what was late of the work of this step. Where that is measured, the aim moves by it: up while less than the goal
// is late, and down by as much for each multiple of the goal that is late.
static void observe_late(struct objective *s, const struct objective_setting *set, const struct objective_input *in,
                         float work)
{
	if (in->is_doubtful || (in->is_history && !in->is_measured))
		return;
	if (!in->is_measured) {
		float timely = objective_queue_timely(set->wait_s, set->after_start_s, (float)in->ready,
		                                      (float)i32_max(in->replicas, in->ready));
		s->late += in->backlog > (double)f32_max(timely, 0.001f * set->wait_s) ? work : 0;
		return;
	}
	float share = f32_min((float)in->late, 1), excess = share / (float)set->late - 1;
	s->late += share * work;
	s->correction -= STEP_S / CORRECT_S * f32_min(excess, CORRECT_EXCESS);
	s->correction = f32_min(f32_max(s->correction, -CORRECT_DOWN), CORRECT_UP);
}

// ---- one step ----

void objective_init(struct objective *s)
{
	memset(s, 0, sizeof *s);
}

bool objective_step(struct objective *s, const struct objective_goal *g, const struct objective_input *in,
                    struct objective_result *ret_result)
{
	struct objective_result *ret = ret_result;
	*ret = (struct objective_result){.replicas = in->replicas, .wanted = in->replicas};
	if (!isfinite(in->demand) || !isfinite(in->backlog))
		return false;
	struct objective_setting set = setting_of(s, g);
	struct objective_input real = *in;
	real.demand = limited(in->demand, 0, OBJECTIVE_DEMAND_MAX);
	real.backlog = limited(in->backlog, 0, OBJECTIVE_BACKLOG_MAX);
	real.replicas = limited_count(in->replicas, 0, OBJECTIVE_REPLICAS_MAX);
	real.ready = limited_count(in->ready, 0, OBJECTIVE_REPLICAS_MAX);

	struct objective_view v;
	struct objective_rehearsal r;
	s->slot_step = set.pipeline.shifts ? 0 : s->slot_step + 1;
	if (s->steps == 0)
		start(s, &real);
	const float per = real.capacity > 0 ? 1 / (float)real.capacity : 1;
	real.backlog *= per;
	if (!real.is_history && !real.is_doubtful)
		objective_burst_learn(&s->burst, (float)real.demand * per, (float)real.backlog, (float)real.ready,
		                      set.wait_s);
	objective_load_step(&s->load, s->steps, (float)real.demand, real.time_s, set.burst, set.wait_s, set.startup_s,
	                    &v);
	objective_view_scale(&v, per);
	objective_rehearse(s, &set, &v, &r);
	observe_late(s, &set, &real, v.demand * STEP_S);
	s->steps += s->steps < INT32_MAX;

	ret->aim = objective_choice_aim(s, &set, real.is_measured);
	struct objective_choice best = objective_choose(s, &set, &r, ret->aim);
	use(s, &set, &r, best);
	ret->reachable_at = reachable_at(&set, &v, &r);
	// What is reported is the record without its margin, and what this amounts to for the aim.
	ret->aim /= r.caution;
	r.caution = 1;
	struct objective_choice used = {s->family, s->rung};
	bool is_best = used.family == best.family && !(used.rung < best.rung) && !(used.rung > best.rung);
	ret->rule = record_of(s, &r, used);
	ret->leaner = record_of(s, &r, leaner_than(used));
	ret->proposed = is_best ? ret->rule : record_of(s, &r, best);
	ret->leaner_steps = s->leaner_steps;
	ret->leaner_steps_needed = leaner_steps_needed(&set);
	int32_t wanted = apply(s, &set, &v, &real, ret);
	ret->replicas = limited_count(wanted, set.min, set.max);
	return true;
}

void objective_asked_for_all(struct objective *s, const struct objective_goal *g, int32_t replicas)
{
	struct objective_setting set = setting_of(s, g);
	replicas = limited_count(replicas, 0, OBJECTIVE_REPLICAS_MAX);
	objective_hold_step(&s->hold, (float)replicas, (float)i32_max(replicas, set.max), (float)set.pipeline.steps);
}
