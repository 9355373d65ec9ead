// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/victims.h"

#include <math.h>
#include <string.h>

#include "policies/engine/decision.h"
#include "policies/engine/number.h"

static int rank_of(const struct victim_pod *p)
{
	static const int ranks[POD_STATE__COUNT] = {
	        [POD_PENDING] = 0, [POD_UNREADY] = 1, [POD_READY] = 2, [POD_FAILED] = 3, [POD_DELETED] = 3};
	return ranks[p->state];
}

static int32_t cost_of(const struct victim_pod *p)
{
	return p->has_cost ? p->cost : p->marked_ms > 0 ? VICTIM_COST : 0;
}

int victims_compare(const void *left, const void *right)
{
	const struct victim_pod *a = left, *b = right;
	if (rank_of(a) != rank_of(b))
		return rank_of(a) < rank_of(b) ? -1 : 1;
	if (cost_of(a) != cost_of(b))
		return cost_of(a) < cost_of(b) ? -1 : 1;
	if (isnan(a->load) != isnan(b->load))
		return isnan(b->load) ? -1 : 1;
	if (a->load < b->load || a->load > b->load)
		return a->load < b->load ? -1 : 1;
	return strcmp(a->name, b->name);
}

// A pending pod serves nothing. Any other pod is empty when it was so after the wait began: before, it was given work.
static bool is_busy(const struct victim_pod *p, int64_t since_ms)
{
	return p->state != POD_PENDING && !(p->load <= 0 && i64_sub(p->load_ms, since_ms) >= VICTIM_NOTICE_MS);
}

// Without a drain, a mark is needed only where the order of Kubernetes could choose another pod. With one, it also
// records the start of the wait, and shows routers which pods to avoid.
static bool needs_mark(const struct victim_rules *r, const struct victim_pod *p, bool is_choice)
{
	if (!r->is_down || !r->has_loads || p->has_cost || p->marked_ms > 0)
		return false;
	return r->drain_ms > 0 ? p->state != POD_PENDING : is_choice && p->state == POD_READY;
}

void victims_plan(const struct victim_rules *r, struct victim_pod *pods, size_t n, struct victims_plan *ret_plan)
{
	struct victims_plan *plan = ret_plan;
	int32_t n_live = 0;
	*plan = (struct victims_plan){0};
	for (size_t i = 0; i < n; i++)
		n_live += rank_of(&pods[i]) < 3;
	plan->n_victims = i32_max(n_live - r->desired, 0);
	bool is_choice = plan->n_victims < n_live;
	for (int32_t i = 0; i < plan->n_victims; i++) {
		struct victim_pod *p = &pods[i];
		p->action = needs_mark(r, p, is_choice) && plan->n_marks < VICTIM_MARKS_MAX ? VICTIM_MARK : VICTIM_KEEP;
		bool is_new = (p->action == VICTIM_MARK && !r->marks_fail) || r->since_ms == 0;
		int64_t since_ms = p->marked_ms > 0 ? p->marked_ms : is_new ? r->now_ms : r->since_ms;
		// A mark from the future was set by a clock that is ahead: it must not prolong the wait.
		int64_t left_ms = r->drain_ms - i64_max(i64_sub(r->now_ms, since_ms), 0);
		plan->n_marks += p->action == VICTIM_MARK;
		if (!r->is_down || left_ms <= 0 || !is_busy(p, since_ms))
			continue;
		plan->n_busy++;
		plan->left_ms = i64_max(plan->left_ms, left_ms);
	}
	plan->waits = plan->n_busy > 0;
	for (size_t i = (size_t)plan->n_victims; i < n; i++) {
		bool is_live = rank_of(&pods[i]) < 3;
		pods[i].action = is_live && pods[i].marked_ms > 0 && !plan->waits ? VICTIM_UNMARK : VICTIM_KEEP;
		plan->n_unmarks += pods[i].action == VICTIM_UNMARK;
	}
}

bool victims_are_chosen(const struct policy *policy, const struct decision *d)
{
	const struct policy_scaling_rules *rules = &policy->scale_down;
	return d->write && rules->victims.set && d->desired < d->current && (d->desired > 0 || rules->drain_ms > 0);
}

void decide_victims(const struct victims_plan *plan, enum victims_outcome outcome, struct decision *d)
{
	static const enum reason notes[] = {
	        [VICTIMS_CHOSEN] = REASON_VICTIMS_CHOSEN,
	        [VICTIMS_UNKNOWN] = REASON_VICTIMS_UNKNOWN,
	        [VICTIMS_UNMARKED] = REASON_VICTIMS_UNMARKED,
	};
	struct trace_entry t = {.stage = STAGE_VICTIMS,
	                        .signal = -1,
	                        .reason = notes[outcome],
	                        .before = d->desired,
	                        .after = d->desired,
	                        .count = plan->n_victims};
	bool has_room = d->n_trace + 2 <= DECISION_TRACE_MAX;
	d->trace_cut |= !has_room;
	if (has_room)
		d->entries[d->n_trace++] = t;
	if (!plan->waits)
		return;
	t.reason = REASON_DRAINING;
	t.after = d->current;
	t.count = plan->n_busy;
	t.duration_ms = plan->left_ms;
	if (has_room) {
		d->driver = (int32_t)d->n_trace;
		d->entries[d->n_trace++] = t;
	}
	d->desired = d->current;
	d->reason = REASON_DRAINING;
	d->action = ACTION_NONE;
	d->write = false;
}
