// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/decision.h"

#include <assert.h>
#include <string.h>

#include "policies/engine/policy.h"
#include "policies/engine/reason.h"

// What a reason explains: a status condition, or nothing.
#define EXPLAINS_NOTE    .condition = NULL
#define EXPLAINS_ABLE    .condition = "AbleToScale"
#define EXPLAINS_HOLDS   .condition = "AbleToScale", .holds = true // nothing may change for a while
#define EXPLAINS_ACTIVE  .condition = "ScalingActive"
#define EXPLAINS_LIMITED .condition = "ScalingLimited"
#define EXPLAINS_PAUSED  .condition = "Paused"
#define EXPLAINS_DRY_RUN .condition = "DryRun"

#define EVENT_NORMAL  "Normal"
#define EVENT_WARNING "Warning"

#define ROW(id, reason_name, explains, event, text)                                                                    \
	[REASON_##id] = {.name = reason_name, .sentence = text, .event_type = EVENT_##event, EXPLAINS_##explains},
static const struct reason_info reasons[] = {REASONS(ROW)};
#undef ROW

const struct reason_info *reason_info(enum reason r)
{
	assert(r >= 0 && r < REASON__COUNT);
	return &reasons[r];
}

const char *const action_names[] = {
        [ACTION_NONE] = "None",
        [ACTION_HOLD] = "Hold",
        [ACTION_SCALE_UP] = "ScaleUp",
        [ACTION_SCALE_DOWN] = "ScaleDown",
};
_Static_assert(sizeof action_names / sizeof action_names[0] == ACTION__COUNT, "one name per action");

const char *const signal_state_names[] = {
        [SIGNAL_OK] = "OK",
        [SIGNAL_MISSING] = "Missing",
        [SIGNAL_IGNORED] = "Ignored",
        [SIGNAL_FILLING] = "Filling",
};
_Static_assert(sizeof signal_state_names / sizeof signal_state_names[0] == SIGNAL_STATE__COUNT, "one name per state");

// Bytes of the parts of a kept decision.
static size_t head_bytes(const struct decision *d)
{
	return offsetof(struct decision, signals) + d->n_signals * sizeof d->signals[0];
}

static size_t trace_bytes(const struct decision *d)
{
	return d->n_trace * sizeof d->entries[0];
}

size_t decision_kept_bytes(const struct decision *d)
{
	assert(d->n_signals <= POLICY_SIGNALS_MAX && d->n_trace <= DECISION_TRACE_MAX);
	return head_bytes(d) + trace_bytes(d);
}

void decision_keep(const struct decision *d, struct decision *ret_kept)
{
	assert(!d->is_kept);
	size_t head = head_bytes(d);
	memcpy(ret_kept, d, head);
	memcpy((unsigned char *)ret_kept + head, d->entries, trace_bytes(d));
	ret_kept->is_kept = true;
}

const struct trace_entry *decision_find(const struct decision *d, enum reason reason)
{
	for (size_t i = 0; i < d->n_trace; i++)
		if (decision_entry(d, i)->reason == reason)
			return decision_entry(d, i);
	return NULL;
}

// Returns whether the trace had room for the entry.
static bool append(struct decision *d, enum stage stage, enum reason reason, int32_t after)
{
	if (d->n_trace == DECISION_TRACE_MAX) {
		d->trace_cut = true;
		return false;
	}
	d->entries[d->n_trace++] = (struct trace_entry){
	        .stage = stage, .reason = reason, .signal = -1, .before = d->desired, .after = after};
	return true;
}

void decide_grant(const struct policy *policy, int32_t granted, enum reason reason, struct decision *d)
{
	if (granted == d->desired)
		return;
	if (append(d, decide_reason_is_of_pool(reason) ? STAGE_POOL : STAGE_VARIANTS, reason, granted))
		d->driver = (int32_t)d->n_trace - 1;
	d->desired = granted;
	d->reason = reason;
	d->action = granted > d->current ? ACTION_SCALE_UP : granted < d->current ? ACTION_SCALE_DOWN : ACTION_NONE;
	d->write = granted != d->current && !policy->dry_run;
}

void decide_add_note(struct decision *d, enum stage stage, enum reason reason)
{
	append(d, stage, reason, d->desired);
}

bool decide_reason_is_of_pool(enum reason reason)
{
	return reason == REASON_POOL_LIMITED || reason == REASON_BUDGET_LIMITED || reason == REASON_RATIO_LIMITED ||
	       reason == REASON_WAITING_FOR_GPUS || reason == REASON_POOL_HELD;
}
