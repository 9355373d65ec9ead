// SPDX-License-Identifier: Apache-2.0
// Stage guards: states of the target in which scaling is held or limited. Guards apply to changes that the signals ask
// for; a scale outside its bounds returns to them regardless of the guards.
// WPA: minAvailableReplicaPercentage. Pending replicas: aibrix issue 2670, knative issue 13284.
#include "policies/engine/guards.h"

#include <stdbool.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/stages.h"
#include "policies/engine/tick.h"

int32_t guards_starting(const struct replica_counts *counts)
{
	return i32_max(counts->pending, i32_max(counts->spec - i32_max(counts->ready, 0), 0));
}

// Returns the scale of a target that is held. From the idle level the target scales to its minimum in any case, to a
// multiple if one is possible. Pinned by prop_limits "changed_scale_is_a_multiple".
static int32_t held_at(const struct tick *t)
{
	if (t->counts.spec >= t->min)
		return t->counts.spec;
	int64_t n = multiple_up(t->min, t->policy->replica_multiple);
	return n > t->max ? t->min : (int32_t)n;
}

static struct trace_entry stay(const struct tick *t, enum reason reason)
{
	return (struct trace_entry){
	        .stage = STAGE_GUARDS,
	        .reason = reason,
	        .signal = -1,
	        .before = t->wanted,
	        .after = held_at(t),
	};
}

static bool is_pending_guarded(struct tick *t)
{
	const struct policy_guards *g = &t->policy->guards;
	int32_t starting = guards_starting(&t->counts);
	if (!g->max_pending_set || tick_direction(t) <= 0 || starting <= g->max_pending_pods)
		return false;
	struct trace_entry entry = stay(t, REASON_PENDING_REPLICAS);
	entry.count = starting;
	entry.limit = (double)g->max_pending_pods;
	tick_set_proposal(t, &entry);
	return true;
}

static bool is_availability_guarded(struct tick *t)
{
	const struct policy_guards *g = &t->policy->guards;
	int64_t ready = t->counts.ready, spec = t->counts.spec;
	if (ready * 100 >= spec * g->min_available_percent)
		return false;
	struct trace_entry entry = stay(t, REASON_TOO_FEW_AVAILABLE);
	entry.value = (double)(ready * 100 / spec); // spec > 0, or the comparison above held
	entry.limit = (double)g->min_available_percent;
	tick_set_proposal(t, &entry);
	return true;
}

// Returns the farthest scale within one step that is a multiple, if one exists between it and spec.
static int32_t step_end(const struct tick *t, int32_t step)
{
	int32_t spec = t->counts.spec, multiple = t->policy->replica_multiple;
	if (tick_direction(t) > 0)
		return i32_max(multiple_down(i32_from_i64((int64_t)spec + step), multiple), held_at(t));
	return i32_min(i32_from_i64(multiple_up(i32_max(i32_from_i64((int64_t)spec - step), 0), multiple)), spec);
}

static void limit_step(struct tick *t)
{
	int32_t step = t->policy->guards.max_step;
	int64_t change = (int64_t)t->wanted - t->counts.spec;
	if (step <= 0 || (change <= step && change >= -(int64_t)step))
		return;
	struct trace_entry entry = stay(t, REASON_MAX_STEP);
	entry.after = i32_min(i32_max(step_end(t, step), t->min), t->max);
	entry.limit = (double)step;
	tick_set_proposal(t, &entry);
}

void guards_stage(struct tick *t)
{
	if (t->policy->guards.unhealthy != UNHEALTHY_IGNORE)
		unhealthy_apply(t);
	if (t->out_of_bounds || t->wanted == held_at(t) || is_pending_guarded(t) || is_availability_guarded(t))
		return;
	if (t->policy->guards.gain.set)
		gain_limit(t, held_at(t));
	limit_step(t);
}
