// SPDX-License-Identifier: Apache-2.0
// guards.unhealthyReplicas: the replacements of replicas on failing GPUs leave the counts before the signals, and the
// guards add as many as are wanted now.
#include "policies/engine/unhealthy.h"

#include <stdbool.h>

#include "policies/engine/behavior.h"
#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/engine/stages.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

// How many replacements the scale has after a change that lacks their number (unhealthy_adopt_scale()).
static void count_unrecorded(struct unhealthy *u, int32_t n_unhealthy, int32_t multiple)
{
	int32_t more = i32_min(n_unhealthy - u->replacements, u->unrecorded);
	if (u->unrecorded < 0)
		u->replacements = i32_min(u->replacements, n_unhealthy);
	else if (more > 0)
		u->replacements += multiple_down(more, multiple);
	u->unrecorded = 0;
}

void unhealthy_observe(struct tick *t)
{
	const struct obs_health *h = &t->observation->health;
	if (t->policy->guards.unhealthy != UNHEALTHY_REPLACE)
		return;
	if (t->state->unhealthy.unrecorded != 0 && h->is_known)
		count_unrecorded(&t->state->unhealthy, i32_max(h->unhealthy, 0), t->policy->replica_multiple);
	// The scale may have been lowered by hand since: at least one replica is not a replacement.
	t->replacements = i32_min(t->state->unhealthy.replacements, i32_max(t->counts.spec - 1, 0));
	t->counts.spec -= t->replacements;
	t->counts.status = i32_max(t->counts.status - t->replacements, 0);
	t->wanted = t->unstabilized = t->counts.spec;
}

// Returns how many replacements are wanted. Further ones at once; fewer only after the stabilization window of
// scaleDown, so that a GPU whose health flaps does not move the scale. Without data, and on hold, as many as now.
static int32_t replacements_wanted(struct tick *t)
{
	const struct obs_health *h = &t->observation->health;
	struct unhealthy *u = &t->state->unhealthy;
	int32_t now = t->replacements, n = i32_max(h->unhealthy, 0);
	if (t->hold || !h->is_known || n >= now) {
		u->fewer_since_ms = TIME_NONE;
		return t->hold || !h->is_known ? now : n;
	}
	if (u->fewer_since_ms == TIME_NONE)
		u->fewer_since_ms = t->now_ms;
	return i64_sub(t->now_ms, u->fewer_since_ms) < t->policy->scale_down.stabilization_window_ms ? now : n;
}

// Returns the scale with n replacements in addition to what is wanted: whole multiples, within maxReplicas and the rate
// limits of behavior. spec: the present scale with its replacements.
static int32_t with_replacements(const struct tick *t, int32_t spec, int32_t n)
{
	const struct policy *p = t->policy;
	const struct history *events = &t->state->events;
	const struct history_mark *marks = state_marks(t->state, &t->state->events);
	int32_t room = i32_max(t->max - t->wanted, 0);
	int32_t total = t->wanted + multiple_down(i32_min(n, room), p->replica_multiple);
	if (t->out_of_bounds || total == spec)
		return total;
	if (total < spec) {
		int32_t floor = behavior_rate_limit(&p->scale_down, -1, events, marks, t->now_ms, spec);
		return i32_max(total, i32_min(floor, t->wanted + i32_min(t->replacements, room)));
	}
	return i32_max(i32_min(total, behavior_rate_limit(&p->scale_up, 1, events, marks, t->now_ms, spec)), t->wanted);
}

static void replace(struct tick *t, const struct trace_entry *entry)
{
	struct unhealthy *u = &t->state->unhealthy;
	int32_t spec = t->counts.spec + t->replacements, wanted = t->wanted;
	// A target that is scaled to zero has nothing to replace.
	int32_t after = wanted > 0 ? with_replacements(t, spec, replacements_wanted(t)) : wanted;
	u->wanted = wanted;
	u->added = after - wanted;
	t->unstabilized = i32_from_i64((int64_t)t->unstabilized + u->added);
	t->counts.spec = spec;
	if (after == spec)
		u->replacements = u->added; // nothing is written
	if (after == wanted)
		return;
	struct trace_entry e = *entry;
	e.reason = REASON_UNHEALTHY_REPLACED;
	e.before = wanted;
	e.after = after;
	e.limit = (double)u->added;
	tick_set_proposal(t, &e);
}

void unhealthy_apply(struct tick *t)
{
	const struct obs_health *h = &t->observation->health;
	struct trace_entry entry = {
	        .stage = STAGE_GUARDS,
	        .reason = h->is_known ? REASON_UNHEALTHY_REPLICAS : REASON_UNHEALTHY_UNKNOWN,
	        .signal = -1,
	        .count = i32_max(h->unhealthy, 0),
	};
	size_t n_trace = t->decision->n_trace;
	if (t->policy->guards.unhealthy == UNHEALTHY_REPLACE)
		replace(t, &entry);
	entry.before = entry.after = t->wanted;
	if (!h->is_known || (h->unhealthy > 0 && t->decision->n_trace == n_trace))
		tick_trace(t, &entry);
}
