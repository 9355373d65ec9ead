// SPDX-License-Identifier: Apache-2.0
// The stages that limit a proposal: stabilize, rate, cooldown, bounds, multiple, capacity, mode.
#include <stdbool.h>

#include "policies/engine/behavior.h"
#include "policies/engine/decide.h"
#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/engine/schedule.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

// Returns the proposal, or the floor of the active schedule where that is higher. The floor is a recommendation like
// a cron trigger of KEDA, so that its end is a scale-down like any other.
__attribute__((noinline)) static int32_t at_least_floor(const struct tick *t, int32_t proposal)
{
	const struct policy_schedule *s = &t->policy->schedules[t->schedule];
	return s->min_set || s->replicas_set ? i32_max(proposal, t->min) : proposal;
}

void stabilize_stage(struct tick *t)
{
	struct history *h = &t->state->recommendations;
	int32_t spec = t->counts.spec, desired = t->wanted;
	t->unstabilized = desired;
	struct stabilized r = behavior_stabilize(t->policy, h, t->now_ms, spec, desired);
	// As in the HPA, the history records the proposal before stabilization.
	history_add_recommendation(h, t->now_ms, t->schedule >= 0 ? at_least_floor(t, desired) : desired,
	                           behavior_recommendations_keep_ms(t->policy));
	if (r.replicas == desired)
		return;
	struct trace_entry entry =
	        tick_entry(t, STAGE_STABILIZE,
	                   desired >= spec ? REASON_SCALE_UP_STABILIZED : REASON_SCALE_DOWN_STABILIZED, r.replicas);
	entry.limit = (double)r.extreme;
	entry.duration_ms = r.left_ms;
	entry.window_ms = r.window_ms;
	tick_set_proposal(t, &entry);
}

void rate_stage(struct tick *t)
{
	int direction = tick_direction(t);
	if (direction == 0)
		return;
	const struct policy_scaling_rules *rules = direction > 0 ? &t->policy->scale_up : &t->policy->scale_down;
	int32_t limit = behavior_rate_limit(rules, direction, &t->state->events, t->now_ms, t->counts.spec);
	// When the bound is at least as tight as the rate, the bounds stage cuts the proposal and is the reason. HPA:
	// convertDesiredReplicasWithBehaviorRate.
	bool is_limited = direction > 0 ? t->wanted > limit && limit < t->max : t->wanted < limit && limit > t->min;
	if (!is_limited)
		return;
	bool is_disabled = rules->select == SELECT_DISABLED;
	enum reason up = is_disabled ? REASON_SCALE_UP_DISABLED : REASON_SCALE_UP_LIMIT;
	enum reason down = is_disabled ? REASON_SCALE_DOWN_DISABLED : REASON_SCALE_DOWN_LIMIT;
	struct trace_entry entry = tick_entry(t, STAGE_RATE, direction > 0 ? up : down, limit);
	entry.limit = (double)limit;
	entry.window_ms = behavior_longest_period_ms(rules, direction);
	tick_set_proposal(t, &entry);
	// The HPA has one reason for both; the trace distinguishes a disabled direction from a slow one.
	t->decision->reason = direction > 0 ? REASON_SCALE_UP_LIMIT : REASON_SCALE_DOWN_LIMIT;
}

void cooldown_stage(struct tick *t)
{
	int direction = tick_direction(t);
	if (direction == 0 || t->state->last_scale_ms == TIME_NONE)
		return;
	int64_t window_ms = direction > 0 ? t->policy->cooldown.up_ms : t->policy->cooldown.down_ms;
	int64_t allowed_at_ms = i64_add(t->state->last_scale_ms, window_ms);
	if (t->now_ms >= allowed_at_ms)
		return;
	struct trace_entry entry = tick_entry(t, STAGE_COOLDOWN, REASON_COOLDOWN_ACTIVE, t->counts.spec);
	entry.duration_ms = i64_sub(allowed_at_ms, t->now_ms);
	entry.window_ms = window_ms;
	tick_set_proposal(t, &entry);
}

void schedule_observe(struct tick *t)
{
	struct schedule_cache *c = &t->state->schedule;
	if (t->policy->n_schedules == 0)
		return;
	// The end of the cached result is enough to compare with: now_ms never decreases.
	if (c->until_ms == TIME_NONE || t->now_ms >= c->until_ms)
		c->winner = schedule_at(t->policy, t->now_ms, &c->until_ms);
	t->schedule = c->winner;
	if (c->winner >= 0)
		schedule_bounds(t->policy, &t->policy->schedules[c->winner], &t->min, &t->max);
}

// Notes which schedule set the bounds, and records its floor. The reason of a change remains that of the bound.
__attribute__((noinline)) static void trace_schedule(struct tick *t)
{
	struct trace_entry entry = tick_entry(t, STAGE_BOUNDS, REASON_SCHEDULE_ACTIVE, t->wanted);
	entry.value = (double)t->min;
	entry.limit = (double)t->max;
	entry.duration_ms = i64_sub(t->state->schedule.until_ms, t->now_ms);
	entry.count = t->schedule;
	tick_trace(t, &entry);
	// Stage stabilize did not run. A floor below the scale would be treated as a smaller recommendation.
	if ((t->hold || t->out_of_bounds) && at_least_floor(t, 0) >= i32_max(t->counts.spec, 1))
		decide_record_recommendation(t->policy, t->state, t->now_ms, t->min);
}

void bounds_stage(struct tick *t)
{
	if (t->decision->reason == REASON_SCALING_DISABLED)
		return;
	if (t->schedule >= 0)
		trace_schedule(t);
	bool above = t->wanted > t->max;
	if (!above && t->wanted >= t->min)
		return;
	int32_t bound = above ? t->max : t->min;
	struct trace_entry entry =
	        tick_entry(t, STAGE_BOUNDS, above ? REASON_TOO_MANY_REPLICAS : REASON_TOO_FEW_REPLICAS, bound);
	entry.limit = (double)bound;
	tick_set_proposal(t, &entry);
}

// The policy itself may have scaled the target to zero: to its idle level, for a schedule, or because its pool granted
// none.
static bool can_be_zero(const struct tick *t)
{
	const struct policy *policy = t->policy;
	if (t->observation->is_emptied)
		return true;
	if (policy->idle.set && policy->idle.replicas == 0)
		return true;
	for (size_t i = 0; i < policy->n_schedules; i++)
		if (policy->schedules[i].replicas_set && policy->schedules[i].replicas == 0)
			return true;
	return false;
}

// The bounds decide about a scale outside of them, and about a scale that was set to zero by hand, whatever the signals
// ask for. HPA: reconcileAutoscaler.
void bounds_observe(struct tick *t)
{
	int32_t spec = t->counts.spec;
	t->out_of_bounds = spec > t->max || spec < t->min;
	if (spec == 0 && t->policy->min_replicas != 0 && !can_be_zero(t)) {
		struct trace_entry entry = tick_entry(t, STAGE_BOUNDS, REASON_SCALING_DISABLED, 0);
		entry.limit = (double)t->policy->min_replicas;
		tick_set_proposal(t, &entry);
		t->out_of_bounds = true;
	}
}

// Returns the multiple to use instead of `wanted`. Up: the next multiple, else the last one below max. Down: the next
// multiple, but never one above `current`; without a multiple in between the scale stays, because rounding down would
// remove more replicas than the signals asked for. The bounds take precedence over multiples, and 0 is used only if it
// is wanted. Pinned by prop_limits "error_is_not_zero" and test_decide "bounds_win_and_multiples_round".
static int32_t to_multiple(const struct tick *t, int32_t current, int32_t wanted)
{
	int32_t m = t->policy->replica_multiple;
	int64_t next = multiple_up(wanted, m);
	int32_t n = next > t->max ? multiple_down(t->max, m) : (int32_t)next;
	if (wanted > current && n < current)
		n = current;
	if (wanted < current && next > current && current <= t->max)
		n = current;
	return n < t->min || (n == 0 && wanted > 0) ? wanted : n;
}

void multiple_stage(struct tick *t)
{
	int32_t spec = t->counts.spec;
	if (t->wanted == spec)
		return;
	int32_t n = to_multiple(t, spec, t->wanted);
	if (n == t->wanted)
		return;
	struct trace_entry entry = tick_entry(t, STAGE_MULTIPLE, REASON_REPLICA_MULTIPLE, n);
	entry.limit = (double)t->policy->replica_multiple;
	tick_set_proposal(t, &entry);
}

void mode_stage(struct tick *t)
{
	int32_t spec = t->counts.spec;
	struct trace_entry entry = {.stage = STAGE_MODE, .signal = -1};
	if (t->policy->paused) {
		entry.reason = REASON_PAUSED;
		entry.before = t->wanted;
		entry.after = spec;
		tick_set_proposal(t, &entry);
		t->hold = false;
	} else if (t->wanted != spec) {
		entry.reason = REASON_DRY_RUN;
		entry.before = spec;
		entry.after = t->wanted;
		tick_trace(t, &entry);
	}
}

// ---- capacity ----

// Orders no more than fits (Fixed), or withdraws what the scheduler cannot place (Elastic); in both modes, a scale-down
// takes such replicas first. docs/algorithm.md states which limits apply to them.

// Returns the number of unschedulable replicas that have been so since cutoff_ms or longer.
static int32_t waiting_since(const struct tick *t, int64_t cutoff_ms)
{
	const struct obs_capacity *c = &t->observation->capacity;
	int32_t n = 0;
	for (size_t i = 0; i < c->n_since && n < INT32_MAX; i++)
		n += c->since_ms[i] <= cutoff_ms;
	return n;
}

// Returns the lowest scale that the removal of n unschedulable replicas may lead to; spec: none may be removed. They
// serve nothing, so neither the stabilization window nor minAvailablePercent protects them; everything else does.
static int32_t removal_floor(const struct tick *t, int32_t n)
{
	const struct policy *p = t->policy;
	int32_t spec = t->counts.spec;
	int64_t last_ms = t->state->last_scale_ms;
	bool is_cooling = last_ms != TIME_NONE && t->now_ms < i64_add(last_ms, p->cooldown.down_ms);
	if (n <= 0 || t->hold || is_cooling)
		return spec;
	int32_t rate = behavior_rate_limit(&p->scale_down, -1, &t->state->events, t->now_ms, spec);
	int32_t floor = i32_max(i32_max(spec - i32_min(n, spec), t->min), rate);
	if (p->guards.max_step > 0)
		floor = i32_max(floor, i32_from_i64((int64_t)spec - p->guards.max_step));
	return i32_min(i32_from_i64(multiple_up(floor, p->replica_multiple)), spec);
}

// Less is wanted than the stabilization window keeps: what serves nothing goes at once.
static void remove_pending(struct tick *t)
{
	int32_t n = waiting_since(t, INT64_MAX), wanted = t->unstabilized;
	if (wanted >= t->wanted || t->wanted > t->counts.spec)
		return;
	int32_t after = i32_max(i32_from_i64(multiple_up(i32_max(wanted, 0), t->policy->replica_multiple)),
	                        removal_floor(t, n));
	if (after >= t->wanted)
		return;
	struct trace_entry entry = tick_entry(t, STAGE_CAPACITY, REASON_PENDING_REMOVED, after);
	entry.limit = (double)wanted;
	entry.count = n;
	tick_set_proposal(t, &entry);
}

// Returns whether replicas were withdrawn.
static bool withdraw(struct tick *t)
{
	const struct policy_capacity *c = &t->policy->capacity;
	int32_t after = removal_floor(t, waiting_since(t, i64_sub(t->now_ms, c->give_up_ms)));
	if (after >= t->counts.spec || after >= t->wanted)
		return false;
	struct trace_entry entry = tick_entry(t, STAGE_CAPACITY, REASON_CAPACITY_WITHDRAWN, after);
	entry.count = t->counts.spec - after;
	entry.window_ms = c->give_up_ms;
	entry.duration_ms = c->retry_ms;
	tick_set_proposal(t, &entry);
	if (!t->policy->paused && !t->policy->dry_run)
		t->state->withdrawn_ms = t->now_ms;
	return true;
}

// minReplicas takes precedence over what fits, as over everything else.
static void limit_order(struct tick *t, enum reason reason, int64_t left_ms)
{
	int32_t spec = t->counts.spec, fit = i32_max(t->observation->capacity.fit, 0);
	int32_t most = multiple_down(i32_from_i64((int64_t)spec + fit), t->policy->replica_multiple);
	most = i32_max(i32_max(most, spec), t->min);
	if (t->wanted <= most)
		return;
	struct trace_entry entry = tick_entry(t, STAGE_CAPACITY, reason, most);
	entry.value = (double)fit;
	entry.count = t->wanted - most;
	entry.window_ms = t->policy->capacity.retry_ms;
	entry.duration_ms = left_ms;
	tick_set_proposal(t, &entry);
}

static void note(struct tick *t, enum reason reason, int32_t count)
{
	struct trace_entry entry = tick_entry(t, STAGE_CAPACITY, reason, t->wanted);
	entry.count = count;
	tick_trace(t, &entry);
}

void capacity_stage(struct tick *t)
{
	const struct obs_capacity *c = &t->observation->capacity;
	size_t n_trace = t->decision->n_trace;
	if (!c->is_known) {
		note(t, REASON_CAPACITY_UNKNOWN, 0);
		return;
	}
	if (!t->out_of_bounds) {
		remove_pending(t);
		int64_t withdrawn_ms = t->state->withdrawn_ms;
		int64_t retry_at_ms = i64_add(withdrawn_ms, t->policy->capacity.retry_ms);
		if (t->policy->capacity.mode == CAPACITY_FIXED)
			limit_order(t, REASON_CAPACITY_LIMITED, 0);
		else if (!withdraw(t) && withdrawn_ms != TIME_NONE && t->now_ms < retry_at_ms)
			limit_order(t, REASON_CAPACITY_RETRY, i64_sub(retry_at_ms, t->now_ms));
	}
	if (t->decision->n_trace == n_trace && c->unschedulable > 0)
		note(t, REASON_CAPACITY_PENDING, c->unschedulable);
}
