// SPDX-License-Identifier: Apache-2.0
// Stage objective: the replicas that keep the objective of the policy. It comes before combine, so that missing
// signals, formulas and Min have the same meaning as without an objective. The rules are simulated in steps of 15 s,
// whatever the interval of the policy is.
#include <math.h>
#include <string.h>

#include "policies/engine/decide.h"
#include "policies/engine/number.h"
#include "policies/engine/objective_state.h"
#include "policies/engine/observation.h"
#include "policies/engine/plausible.h"
#include "policies/engine/policy.h"
#include "policies/engine/startup.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

void objective_state_init(struct objective_state *s)
{
	memset(s, 0, sizeof *s);
	s->simulated_ms = TIME_NONE;
	objective_capacity_init(&s->capacity);
	doubt_init(&s->demand_doubt);
	doubt_init(&s->backlog_doubt);
	objective_init(&s->objective);
}

#define CODES_PER_FAMILY 1000
#define CODES_PER_RUNG   100

int32_t objective_rule_code(enum objective_family family, float rung)
{
	return (int32_t)family * CODES_PER_FAMILY + (int32_t)(rung * CODES_PER_RUNG + 0.5f);
}

void objective_rule_decode(int32_t code, enum objective_family *ret_family, float *ret_rung)
{
	bool known = code >= 0 && code / CODES_PER_FAMILY < OBJECTIVE_FAMILY__COUNT;
	int32_t rung = known ? code % CODES_PER_FAMILY : 0;
	*ret_family = known ? (enum objective_family)(code / CODES_PER_FAMILY) : OBJECTIVE_FOLLOW_BRISK;
	*ret_rung = (float)i32_min(rung, (OBJECTIVE_RUNGS - 1) * CODES_PER_RUNG) / CODES_PER_RUNG;
}

#define STEP_MS   (OBJECTIVE_STEP_S * 1000)
#define STEPS_MAX 16 // of one tick: twice the longest interval; a longer gap is a pause
#define DAY_MS    (INT64_C(24) * 3600 * 1000)

// ---- steps ----

// A replica was seen to be ready up to an interval after it was.
static int64_t startup_or_default_ms(const struct policy *policy, const struct state_header *s)
{
	int64_t ms = startup_ms(&s->startup, policy);
	if (startup_is_learnt(&s->startup, policy))
		return i64_max(ms - policy->interval_ms / 2, 0);
	return ms >= 0 ? ms : OBJECTIVE_STARTUP_DEFAULT_MS;
}

static struct objective_goal goal_of(const struct policy *policy, const struct state_header *s, int32_t min,
                                     int32_t max)
{
	return (struct objective_goal){
	        .late = policy->objective.late_ratio,
	        .wait_s = (double)policy->objective.wait_ms / 1000,
	        .startup_s = (double)startup_or_default_ms(policy, s) / 1000,
	        .min_replicas = min,
	        .max_replicas = max,
	};
}

// What the rule asks for beyond the maximum is left to the bounds stage, which reports it.
static void keep_answer(struct objective_result *a, const struct objective_goal *goal, const struct objective_result *r)
{
	int32_t asked = i32_min(i32_from_whole(ceilf(r->rule.level + r->backlog_adds)), OBJECTIVE_REPLICAS_MAX);
	*a = *r;
	if (r->replicas >= goal->max_replicas)
		a->replicas = i32_max(asked, r->replicas);
}

// Returns how many steps are due at now_ms, and moves simulated_ms by them. A tick stands for the step whose time is
// nearest, so that ticks that come a little early or late are one step each. Of a pause or a long gap, one step is due.
static int steps_due(struct objective_state *o, int64_t now_ms)
{
	int64_t since_ms = o->simulated_ms == TIME_NONE ? INT64_MAX : i64_sub(now_ms, o->simulated_ms);
	int64_t due = i64_max(i64_add(since_ms, STEP_MS / 2) / STEP_MS, 0);
	int64_t most = o->is_paused ? 1 : STEPS_MAX;
	if (due == 0)
		return 0;
	o->is_paused = 0;
	if (due <= most) {
		o->simulated_ms = i64_add(o->simulated_ms, due * STEP_MS);
		return (int)due;
	}
	o->simulated_ms = now_ms;
	return 1;
}

// Returns the value of a signal that informs the objective of a share; -1 when no signal does, or it is missing.
static double share_of(const struct tick *t, const char *name, size_t i)
{
	const struct decision_signal *s = &t->decision->signals[i];
	return name && s->state == SIGNAL_OK ? fmin(fmax(s->value, 0), 1) : -1;
}

static void simulate(struct tick *t, struct objective_state *o, double demand, double backlog, bool is_doubtful)
{
	const struct objective_goal goal = goal_of(t->policy, t->state, t->min, t->max);
	struct objective_input in = {.backlog = backlog,
	                             .capacity = (double)objective_capacity_ratio(&o->capacity),
	                             .replicas = t->counts.spec,
	                             .ready = t->counts.ready,
	                             .is_doubtful = is_doubtful};
	const double late = share_of(t, t->policy->objective.measured, t->policy->objective.measured_index);
	in.is_measured = late >= 0;
	in.late = late;
	struct objective_result r;
	int due = steps_due(o, t->now_ms);
	o->demand_sum += demand;
	o->n_demand++;
	if (due == 0)
		return;
	in.demand = o->demand_sum / o->n_demand;
	o->demand_sum = 0;
	o->n_demand = 0;
	for (int i = 1; i <= due; i++) {
		in.time_s = i64_sub(o->simulated_ms, (int64_t)(due - i) * STEP_MS) / 1000;
		if (objective_step(&o->objective, &goal, &in, &r))
			keep_answer(&o->answer, &goal, &r);
	}
}

// ---- what is plausible ----

// A reading of demand or backlog, limited before any memory takes it.
struct arrival {
	double value;
	bool is_doubtful; // it is beyond the limit, and has not lasted
};

static struct arrival believe(struct doubt *d, double value, double most, int64_t now_ms, int64_t interval_ms)
{
	int64_t gap_ms = 2 * i64_max(interval_ms, STEP_MS);
	bool is_doubtful = doubt_observe(d, value > most, now_ms, gap_ms, PLAUSIBLE_AFTER_MS);
	return (struct arrival){fmin(fmax(value, 0), most), is_doubtful};
}

static double demand_most(const struct policy *policy)
{
	return fmin(plausible_replicas(policy), OBJECTIVE_DEMAND_MAX);
}

static bool is_doubted(const struct objective_state *o)
{
	return o->demand_doubt.last_ms != TIME_NONE || o->backlog_doubt.last_ms != TIME_NONE;
}

// Returns whether neither reading needs a limit, as nearly always: both are far below it, and were before.
static bool are_plain(const struct policy *policy, const struct objective_state *o, double demand, double backlog)
{
	double max = (double)i32_min(policy->max_replicas, OBJECTIVE_REPLICAS_MAX);
	return demand >= 0 && demand <= max && backlog >= 0 && backlog <= OBJECTIVE_STEP_S * max && !is_doubted(o);
}

// Returns the demand of the last step, which the rules meet again in place of a doubtful one: if they stood still, they
// would be late by that time afterwards.
static double known_demand(const struct objective_state *o)
{
	return (double)o->objective.load.recent[0];
}

// A backlog that even the plausible replicas would not work off within the wait, a start-up time and a step.
static double backlog_most(const struct policy *policy, const struct objective_goal *goal)
{
	double startup_s = fmin(goal->startup_s, OBJECTIVE_STARTUP_MAX_S),
	       wait_s = fmin(goal->wait_s, OBJECTIVE_WAIT_MAX_S);
	return fmin(plausible_replicas(policy) * (wait_s + startup_s + OBJECTIVE_STEP_S), OBJECTIVE_BACKLOG_MAX);
}

// ---- the capacity of a replica ----

static void observe_capacity(struct objective_capacity *c, const struct tick *t, double demand, double backlog)
{
	const struct policy_objective *config = &t->policy->objective;
	const struct objective_capacity_input in = {
	        .demand = demand,
	        .backlog = backlog,
	        .ready = t->counts.ready,
	        .unthrottled = (float)t->capacity_ratio,
	        .busy_share = (float)share_of(t, config->utilization, config->utilization_index),
	        .may_be_unmeasured = config->backlog_has_default ||
	                             t->policy->signals[config->backlog_index].on_missing == ON_MISSING_ZERO};
	objective_capacity_observe(c, &in, t->now_ms);
}

// ---- the trace ----

static struct trace_entry entry_of(const struct tick *t, enum reason reason)
{
	return tick_note(t, STAGE_OBJECTIVE, reason, (int32_t)t->policy->objective.demand_index);
}

// Rounds for the reader.
static double rounded(double x)
{
	return round(x * 100) / 100;
}

static void note_record(struct tick *t, enum reason reason, const struct objective_record *r, float seconds)
{
	struct trace_entry entry = entry_of(t, reason);
	entry.value = rounded(100 * (double)r->late);
	entry.limit = rounded((double)r->replicas);
	entry.duration_ms = (int64_t)(seconds / OBJECTIVE_STEP_S + 0.5f) * STEP_MS; // without what has faded
	entry.count = objective_rule_code(r->family, r->rung);
	tick_trace(t, &entry);
}

static void note_choice(struct tick *t, const struct objective_state *o)
{
	const struct objective_result *a = &o->answer;
	note_record(t, REASON_OBJECTIVE_RECORD, &a->rule, o->objective.time);
	if (a->leaner.rung < a->rule.rung)
		note_record(t, REASON_OBJECTIVE_LEANER, &a->leaner, o->objective.time);
	if (a->leaner_steps > 0) {
		struct trace_entry entry = entry_of(t, REASON_OBJECTIVE_WAITING);
		entry.count = objective_rule_code(a->proposed.family, a->proposed.rung);
		entry.duration_ms = (int64_t)a->leaner_steps * STEP_MS;
		entry.window_ms = (int64_t)a->leaner_steps_needed * STEP_MS;
		tick_trace(t, &entry);
	}
}

#define AIM_SHOWN 0.02 // difference from the goal, as a share of it

static void note_limits(struct tick *t, const struct objective_state *o)
{
	const double late = t->policy->objective.late_ratio;
	if (fabs((double)o->answer.aim - late) > AIM_SHOWN * late) {
		struct trace_entry entry = entry_of(t, REASON_OBJECTIVE_AIM);
		entry.value = o->objective.real_work > 0
		                      ? rounded(100 * (double)(o->objective.late / o->objective.real_work))
		                      : 0;
		entry.limit = rounded(100 * (double)o->answer.aim);
		tick_trace(t, &entry);
	}
	if (!t->policy->startup.given && !startup_is_learnt(&t->state->startup, t->policy)) {
		struct trace_entry entry = entry_of(t, REASON_OBJECTIVE_STARTUP);
		entry.window_ms = OBJECTIVE_STARTUP_DEFAULT_MS;
		tick_trace(t, &entry);
	}
	if (o->answer.reachable_at > t->max) {
		struct trace_entry entry = entry_of(t, REASON_OBJECTIVE_NOT_REACHABLE);
		entry.limit = (double)t->max;
		entry.count = o->answer.reachable_at;
		tick_trace(t, &entry);
	}
}

static void note_capacity(struct tick *t, const struct objective_state *o)
{
	if (o->capacity.learnt_s >= OBJECTIVE_STEP_S) {
		float ratio = objective_capacity_ratio(&o->capacity);
		bool is_limit = ratio <= OBJECTIVE_CAPACITY_LEAST || ratio >= OBJECTIVE_CAPACITY_MOST;
		struct trace_entry entry = entry_of(t, is_limit ? REASON_CAPACITY_DOUBTFUL : REASON_CAPACITY_LEARNT);
		entry.value = rounded((double)ratio);
		entry.duration_ms = (int64_t)(o->capacity.learnt_s + 0.5f) * 1000;
		tick_trace(t, &entry);
	}
	if (objective_capacity_doubts_backlog(&o->capacity)) {
		struct trace_entry entry = entry_of(t, REASON_BACKLOG_DOUBTFUL);
		entry.signal = (int32_t)t->policy->objective.backlog_index;
		tick_trace(t, &entry);
	}
}

// ---- the stage ----

static void propose(struct tick *t, size_t i, enum reason reason, int32_t entry, int32_t replicas)
{
	struct decision_signal *d = &t->decision->signals[i];
	d->reason = reason;
	d->proposal = t->unsustained[i] = replicas;
	t->entry[i] = entry;
}

// Neither of the rules nor of the scale is anything known while a signal is missing: the other signal asks for the
// present scale.
static void pause(struct tick *t, struct objective_state *o)
{
	const struct policy_objective *config = &t->policy->objective;
	const struct decision_signal *signals = t->decision->signals;
	size_t missing =
	        signals[config->demand_index].state != SIGNAL_OK ? config->demand_index : config->backlog_index;
	size_t other = missing == config->demand_index ? config->backlog_index : config->demand_index;
	struct trace_entry entry = entry_of(t, REASON_OBJECTIVE_PAUSED);
	o->is_paused = 1;
	objective_capacity_pause(&o->capacity);
	o->demand_sum = 0;
	o->n_demand = 0;
	entry.signal = (int32_t)missing;
	int32_t at = tick_trace(t, &entry);
	if (signals[other].state == SIGNAL_OK)
		propose(t, other, entry.reason, at, t->counts.spec);
}

// The rules know nothing of a doubtful demand: the demand itself is what is asked for.
static void follow_demand(struct tick *t, struct objective_state *o, const struct objective_goal *goal, double demand)
{
	const struct policy_objective *config = &t->policy->objective;
	struct trace_entry entry = entry_of(t, REASON_REPLICAS_REQUESTED);
	objective_asked_for_all(&o->objective, goal, t->counts.spec);
	entry.value = ceil(demand / t->capacity_ratio / (double)objective_capacity_ratio(&o->capacity));
	entry.after = i32_max(replicas_from_whole(entry.value), t->counts.spec);
	int32_t at = tick_trace(t, &entry);
	propose(t, config->demand_index, entry.reason, at, entry.after);
	propose(t, config->backlog_index, entry.reason, at, entry.after);
}

static void note_doubt(struct tick *t, size_t i, bool is_doubtful, double value, double most)
{
	struct trace_entry entry = entry_of(t, is_doubtful ? REASON_VALUE_NOT_LEARNT : REASON_VALUE_LIMITED);
	entry.signal = (int32_t)i;
	entry.value = value;
	entry.limit = most;
	entry.window_ms = PLAUSIBLE_AFTER_MS;
	if (value > most)
		tick_trace(t, &entry);
}

// As simulate(), for readings that are not plain. Returns false when the demand itself was the proposal.
__attribute__((noinline)) static bool simulate_limited(struct tick *t, struct objective_state *o, double demand,
                                                       double backlog)
{
	const struct policy_objective *config = &t->policy->objective;
	const struct objective_goal goal = goal_of(t->policy, t->state, t->min, t->max);
	double demand_limit = demand_most(t->policy), backlog_limit = backlog_most(t->policy, &goal);
	struct arrival arriving = believe(&o->demand_doubt, demand, demand_limit, t->now_ms, t->policy->interval_ms);
	struct arrival waiting = believe(&o->backlog_doubt, backlog, backlog_limit, t->now_ms, t->policy->interval_ms);
	note_doubt(t, config->demand_index, arriving.is_doubtful, demand, demand_limit);
	note_doubt(t, config->backlog_index, waiting.is_doubtful, backlog, backlog_limit);
	// A limited reading says nothing about what was served.
	if (demand > demand_limit || backlog > backlog_limit)
		objective_capacity_pause(&o->capacity);
	else
		observe_capacity(&o->capacity, t, arriving.value, waiting.value);
	if (!arriving.is_doubtful) {
		simulate(t, o, arriving.value, waiting.value, waiting.is_doubtful);
		return true;
	}
	if (o->objective.steps > 0)
		simulate(t, o, known_demand(o), waiting.value, true);
	follow_demand(t, o, &goal, arriving.value);
	note_capacity(t, o);
	return false;
}

void objective_stage(struct tick *t)
{
	const struct policy_objective *config = &t->policy->objective;
	const struct decision_signal *demand = &t->decision->signals[config->demand_index];
	const struct decision_signal *backlog = &t->decision->signals[config->backlog_index];
	struct objective_state *o = state_objective(t->state);
	if (demand->state != SIGNAL_OK || backlog->state != SIGNAL_OK) {
		pause(t, o);
		return;
	}
	if (are_plain(t->policy, o, demand->value, backlog->value)) {
		observe_capacity(&o->capacity, t, demand->value, backlog->value);
		simulate(t, o, demand->value, backlog->value, false);
	} else if (!simulate_limited(t, o, demand->value, backlog->value)) {
		return;
	}
	const struct objective_result *a = &o->answer;
	struct trace_entry entry = entry_of(t, REASON_OBJECTIVE);
	// Throttled replicas serve less: guards.maxThrottledShare.
	int32_t replicas = replicas_from_whole(ceil((double)a->replicas / t->capacity_ratio));
	entry.after = replicas;
	entry.value = rounded((double)a->rule.level);
	entry.limit = rounded((double)a->backlog_adds);
	entry.count = objective_rule_code(a->rule.family, a->rule.rung);
	if (a->kept) {
		entry.reason = REASON_OBJECTIVE_KEPT;
		entry.before = a->wanted;
	} else if (a->starting) {
		entry.reason = REASON_OBJECTIVE_STARTING;
	}
	int32_t at = tick_trace(t, &entry);
	propose(t, config->demand_index, entry.reason, at, replicas);
	propose(t, config->backlog_index, entry.reason, at, replicas);
	note_choice(t, o);
	note_limits(t, o);
	note_capacity(t, o);
}

// ---- history after a restart ----

int64_t decide_objective_history_ms(const struct policy *policy, const void *state, int64_t now_ms,
                                    int64_t *ret_step_ms)
{
	const struct state_header *s = state_of_const(policy, state);
	*ret_step_ms = STEP_MS;
	if (!policy->objective.set)
		return 0;
	const struct objective_state *o = state_at_const(s, s->objective_offset);
	bool knows_day = o->objective.steps >= DAY_MS / STEP_MS && o->simulated_ms != TIME_NONE;
	int64_t since_ms = knows_day ? i64_sub(now_ms, o->simulated_ms) : DAY_MS;
	return since_ms < 0 ? 0 : since_ms < DAY_MS ? since_ms : DAY_MS;
}

void decide_refill_objective(const struct policy *policy, void *state, const struct obs_series *demand, size_t n,
                             int32_t replicas, int64_t now_ms)
{
	struct state_header *s = state_of(policy, state);
	struct objective_state *o = state_objective(s);
	if (!o)
		return;
	const struct objective_goal goal = goal_of(policy, s, policy->min_replicas, policy->max_replicas);
	// The scale and the queue of that time are unknown, and another controller may have caused them: the rules are
	// simulated without a real queue, at the present scale.
	struct objective_input in = {.capacity = (double)objective_capacity_ratio(&o->capacity),
	                             .replicas = i32_max(replicas, 0),
	                             .ready = i32_max(replicas, 0),
	                             .is_history = true};
	struct objective_result r;
	int64_t known = 0;
	for (size_t i = 0; i < n; i++)
		known += demand[i].time_ms <= o->simulated_ms;
	if (known > o->objective.steps)
		objective_state_init(o);
	int64_t before_ms = o->simulated_ms;
	for (size_t i = 0; i < n; i++) {
		if (demand[i].time_ms > now_ms || demand[i].time_ms <= before_ms)
			continue;
		const struct arrival arriving =
		        believe(&o->demand_doubt, demand[i].value, demand_most(policy), demand[i].time_ms, STEP_MS);
		before_ms = demand[i].time_ms;
		if (!isfinite(demand[i].value) || (arriving.is_doubtful && o->objective.steps == 0))
			continue;
		in.demand = arriving.is_doubtful ? known_demand(o) : arriving.value;
		in.time_s = demand[i].time_ms / 1000;
		if (!objective_step(&o->objective, &goal, &in, &r))
			continue;
		keep_answer(&o->answer, &goal, &r);
		o->simulated_ms = demand[i].time_ms;
	}
}
