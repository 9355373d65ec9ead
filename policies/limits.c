// SPDX-License-Identifier: Apache-2.0
// The stages that limit a proposal: stabilize, rate, cooldown, bounds, multiple.
#include "policies/behavior.h"
#include "policies/decide.h"
#include "policies/number.h"
#include "policies/policy.h"
#include "policies/state.h"
#include "policies/tick.h"

void stabilize_stage(struct tick *t)
{
	struct history *h = &t->state->recommendations;
	int32_t spec = t->counts.spec, desired = t->wanted;
	struct stabilized r = behavior_stabilize(t->policy, h, state_marks(t->state, h), t->now_ms, spec, desired);
	// What goes into the history is the proposal as it came in, as in the HPA.
	decide_record_recommendation(t->policy, t->state, t->now_ms, desired);
	if (r.replicas == desired)
		return;
	tick_limit(t, &(struct trace_entry){
	                      .stage = STAGE_STABILIZE,
	                      .reason = desired >= spec ? REASON_SCALE_UP_STABILIZED : REASON_SCALE_DOWN_STABILIZED,
	                      .signal = -1,
	                      .before = desired,
	                      .after = r.replicas,
	                      .limit = (double)r.extreme,
	                      .duration_ms = r.left_ms,
	                      .window_ms = r.window_ms,
	              });
}

void rate_stage(struct tick *t)
{
	int direction = tick_direction(t);
	if (direction == 0)
		return;
	const struct policy_scaling_rules *rules = direction > 0 ? &t->policy->scale_up : &t->policy->scale_down;
	struct history *events = &t->state->events;
	int32_t limit =
	        behavior_rate_limit(rules, direction, events, state_marks(t->state, events), t->now_ms, t->counts.spec);
	struct trace_entry entry = {
	        .stage = STAGE_RATE,
	        .signal = -1,
	        .before = t->wanted,
	        .after = limit,
	        .limit = (double)limit,
	        .window_ms = behavior_longest_period_ms(rules, direction),
	};
	// When the bound is as tight as the rate, the bound is to blame: left to the bounds stage. HPA:
	// convertDesiredReplicasWithBehaviorRate.
	if (direction > 0 && t->wanted > limit && limit < t->max)
		entry.reason = rules->select == SELECT_DISABLED ? REASON_SCALE_UP_DISABLED : REASON_SCALE_UP_LIMIT;
	else if (direction < 0 && t->wanted < limit && limit > t->min)
		entry.reason = rules->select == SELECT_DISABLED ? REASON_SCALE_DOWN_DISABLED : REASON_SCALE_DOWN_LIMIT;
	else
		return;
	tick_limit(t, &entry);
	// The HPA's names for both; the trace tells a disabled direction from a slow one.
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
	tick_limit(t, &(struct trace_entry){
	                      .stage = STAGE_COOLDOWN,
	                      .reason = REASON_COOLDOWN_ACTIVE,
	                      .signal = -1,
	                      .before = t->wanted,
	                      .after = t->counts.spec,
	                      .duration_ms = i64_sub(allowed_at_ms, t->now_ms),
	                      .window_ms = window_ms,
	              });
}

// Whose bounds these are. A note: the reason stays that of the bound.
static void trace_schedule(struct tick *t)
{
	tick_trace(t, &(struct trace_entry){
	                      .stage = STAGE_BOUNDS,
	                      .reason = REASON_SCHEDULE_ACTIVE,
	                      .signal = -1,
	                      .before = t->wanted,
	                      .after = t->wanted,
	                      .value = (double)t->min,
	                      .limit = (double)t->max,
	                      .duration_ms = i64_sub(t->state->schedule.until_ms, t->now_ms),
	                      .count = t->schedule,
	              });
}

void bounds_stage(struct tick *t)
{
	if (t->schedule >= 0)
		trace_schedule(t);
	struct trace_entry entry = {.stage = STAGE_BOUNDS, .signal = -1, .before = t->wanted};
	if (t->wanted > t->max) {
		entry.reason = REASON_TOO_MANY_REPLICAS;
		entry.after = t->max;
	} else if (t->wanted < t->min) {
		entry.reason = REASON_TOO_FEW_REPLICAS;
		entry.after = t->min;
	} else {
		return;
	}
	entry.limit = (double)entry.after;
	tick_limit(t, &entry);
}

// The multiple to take instead of `wanted`. Up: the next one, else the last one below max. Down: the next one, but
// never past current: where there is none in between the scale stays, as fewer than was asked for would be taken away.
// A multiple outside the bounds is none: bounds win. 0 is none either, unless it is wanted. Pinned by prop_limits "an
// error is not zero" and test_decide "bounds_win_and_multiples_round".
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
	tick_limit(t, &(struct trace_entry){
	                      .stage = STAGE_MULTIPLE,
	                      .reason = REASON_REPLICA_MULTIPLE,
	                      .signal = -1,
	                      .before = t->wanted,
	                      .after = n,
	                      .limit = (double)t->policy->replica_multiple,
	              });
}
