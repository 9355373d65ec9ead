// SPDX-License-Identifier: Apache-2.0
// Stage capacity: orders no more than fits (Fixed), or withdraws what the scheduler cannot place (Elastic); in both
// modes, a scale-down takes such replicas first. docs/algorithm.md states which limits apply to them.
#include <stdbool.h>

#include "policies/engine/behavior.h"
#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

// Returns the number of unschedulable replicas that have been so since cutoff_ms or longer.
static int32_t waiting_since(const struct tick *t, int64_t cutoff_ms)
{
	const struct obs_capacity *c = &t->observation->capacity;
	int32_t n = 0;
	for (size_t i = 0; i < c->n_since && n < INT32_MAX; i++)
		n += c->since_ms[i] <= cutoff_ms;
	return n;
}

static bool is_cooling(const struct tick *t)
{
	int64_t last_ms = t->state->last_scale_ms;
	return last_ms != TIME_NONE && t->now_ms < i64_add(last_ms, t->policy->cooldown.down_ms);
}

// Returns the lowest scale that the removal of n unschedulable replicas may lead to; spec: none may be removed. They
// serve nothing, so neither the stabilization window nor minAvailablePercent protects them; everything else does.
static int32_t removal_floor(const struct tick *t, int32_t n)
{
	const struct policy *p = t->policy;
	const struct history *events = &t->state->events;
	int32_t spec = t->counts.spec;
	if (n <= 0 || t->hold || is_cooling(t))
		return spec;
	int32_t rate = behavior_rate_limit(&p->scale_down, -1, events, state_marks(t->state, &t->state->events),
	                                   t->now_ms, spec);
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

static void limit_elastic(struct tick *t)
{
	int64_t retry_at_ms = i64_add(t->state->withdrawn_ms, t->policy->capacity.retry_ms);
	if (withdraw(t))
		return;
	if (t->state->withdrawn_ms != TIME_NONE && t->now_ms < retry_at_ms)
		limit_order(t, REASON_CAPACITY_RETRY, i64_sub(retry_at_ms, t->now_ms));
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
		if (t->policy->capacity.mode == CAPACITY_FIXED)
			limit_order(t, REASON_CAPACITY_LIMITED, 0);
		else
			limit_elastic(t);
	}
	if (t->decision->n_trace == n_trace && c->unschedulable > 0)
		note(t, REASON_CAPACITY_PENDING, c->unschedulable);
}
