// SPDX-License-Identifier: Apache-2.0
#include "controller/status/status_conditions.h"

#include "base/base.h"
#include "policies/engine/decision.h"
#include "policies/engine/reason.h"

const char *const condition_type_names[CONDITION_TYPE__COUNT] = {
        [CONDITION_READY] = "Ready",
        [CONDITION_ABLE_TO_SCALE] = "AbleToScale",
        [CONDITION_SCALING_ACTIVE] = "ScalingActive",
        [CONDITION_SCALING_LIMITED] = "ScalingLimited",
        [CONDITION_CONFLICT] = "Conflict",
        [CONDITION_DRY_RUN] = "DryRun",
        [CONDITION_PAUSED] = "Paused",
        [CONDITION_OBJECTIVE_NOT_REACHABLE] = "ObjectiveNotReachable",
        [CONDITION_CAPACITY_LEARNT] = "CapacityLearnt",
        [CONDITION_UNHEALTHY_REPLICAS] = "UnhealthyReplicas",
        [CONDITION_CAPACITY_LIMITED] = "CapacityLimited",
};
const char *const condition_status_names[CONDITION_STATUS__COUNT] = {"Unknown", "False", "True"};

static void set(struct condition *c, enum condition_status status, const char *reason, const char *message)
{
	c->status = status;
	c->reason = reason;
	snprintf(c->message, sizeof c->message, "%s", message);
}

// Returns the last step of the trace that concerns the condition, or NULL. Notes are skipped.
static const struct trace_entry *last_word(const struct decision *d, enum condition_type type)
{
	for (size_t i = d->n_trace; i-- > 0;) {
		const struct reason_info *info = reason_info(decision_entry(d, i)->reason);
		if (info->condition && strcmp(info->condition, condition_type_names[type]) == 0 &&
		    decision_entry(d, i)->reason != REASON_DESIRED_WITHIN_RANGE)
			return decision_entry(d, i);
	}
	return NULL;
}

static void set_from(struct condition *c, enum condition_status status, const struct decided *d,
                     const struct trace_entry *t)
{
	c->status = status;
	c->reason = reason_info(t->reason)->name;
	explain_sentence(d, t, c->message);
}

static void able_to_scale(const struct decided *d, struct condition *c)
{
	const struct trace_entry *t = last_word(d->decision, CONDITION_ABLE_TO_SCALE);
	if (t)
		set_from(c, reason_info(t->reason)->holds ? CONDITION_FALSE : CONDITION_TRUE, d, t);
	else
		set(c, CONDITION_TRUE, "ReadyForNewScale", "the target can be scaled at any time");
}

static void scaling_active(const struct decided *d, struct condition *c)
{
	const struct decision *dec = d->decision;
	const struct trace_entry *t = last_word(dec, CONDITION_SCALING_ACTIVE);
	if (dec->reason == REASON_SCALING_DISABLED && t) {
		set_from(c, CONDITION_FALSE, d, t);
		return;
	}
	size_t ok = 0;
	for (size_t i = 0; i < dec->n_signals; i++)
		ok += dec->signals[i].state == SIGNAL_OK || dec->signals[i].state == SIGNAL_IGNORED;
	for (size_t i = 0; i < dec->n_signals; i++) {
		const struct decision_signal *s = &dec->signals[i];
		if (s->state != SIGNAL_MISSING && s->state != SIGNAL_FILLING)
			continue;
		if (ok > 0 && dec->action == ACTION_SCALE_UP)
			break; // the good signals are enough for that
		set(c, s->state == SIGNAL_MISSING ? CONDITION_FALSE : CONDITION_UNKNOWN, reason_info(s->reason)->name,
		    "");
		if (!explain_signal(d, i, c->message))
			explain_message(d, c->message);
		return;
	}
	char message[RENDER_SENTENCE_BYTES];
	explain_message(d, message);
	set(c, CONDITION_TRUE, "ValidMetricFound", message);
}

static void scaling_limited(const struct decided *d, struct condition *c)
{
	const struct trace_entry *t = last_word(d->decision, CONDITION_SCALING_LIMITED);
	if (t)
		set_from(c, CONDITION_TRUE, d, t);
	else
		set(c, CONDITION_FALSE, reason_info(REASON_DESIRED_WITHIN_RANGE)->name,
		    "the replicas wanted are within the acceptable range");
}

static void objective_not_reachable(const struct decided *d, struct condition *c)
{
	const struct trace_entry *missed = decision_find(d->decision, REASON_OBJECTIVE_NOT_REACHABLE);
	const struct trace_entry *paused = decision_find(d->decision, REASON_OBJECTIVE_PAUSED);
	if (!d->policy->objective.set)
		return;
	if (missed)
		set_from(c, CONDITION_TRUE, d, missed);
	else if (paused)
		set_from(c, CONDITION_UNKNOWN, d, paused);
	else
		set(c, CONDITION_FALSE, "ObjectiveReachable", "maxReplicas is enough for the objective");
}

static void capacity_learnt(const struct decided *d, struct condition *c)
{
	const struct trace_entry *learnt = decision_find(d->decision, REASON_CAPACITY_LEARNT);
	const struct trace_entry *doubtful = decision_find(d->decision, REASON_CAPACITY_DOUBTFUL);
	const struct trace_entry *no_backlog = decision_find(d->decision, REASON_BACKLOG_DOUBTFUL);
	if (!d->policy->objective.set)
		return;
	if (learnt || doubtful)
		set_from(c, CONDITION_TRUE, d, learnt ? learnt : doubtful);
	else if (no_backlog)
		set_from(c, CONDITION_UNKNOWN, d, no_backlog);
	else
		set(c, CONDITION_FALSE, "CapacityAsStated",
		    "the queries of the objective state what a replica can do; nothing has shown otherwise yet");
}

static void capacity_limited(const struct decided *d, struct condition *c)
{
	const struct decision *dec = d->decision;
	if (d->policy->capacity.mode == CAPACITY_OFF)
		return;
	for (size_t i = dec->n_trace; i-- > 0;) {
		const struct trace_entry *t = decision_entry(dec, i);
		if (t->stage != STAGE_CAPACITY)
			continue;
		set_from(c, t->reason == REASON_CAPACITY_UNKNOWN ? CONDITION_UNKNOWN : CONDITION_TRUE, d, t);
		return;
	}
	set(c, CONDITION_FALSE, "CapacityAvailable", "every replica has room");
}

static void unhealthy_replicas(const struct decided *d, struct condition *c)
{
	const struct decision *dec = d->decision;
	if (d->policy->guards.unhealthy == UNHEALTHY_IGNORE)
		return;
	set(c, CONDITION_FALSE, "ReplicasHealthy", "no replica is on a failing GPU");
	for (size_t i = 0; i < dec->n_trace; i++) {
		const struct trace_entry *t = decision_entry(dec, i);
		if (t->reason == REASON_UNHEALTHY_UNKNOWN)
			set_from(c, CONDITION_UNKNOWN, d, t);
		else if (t->reason == REASON_UNHEALTHY_REPLICAS || t->reason == REASON_UNHEALTHY_REPLACED)
			set_from(c, CONDITION_TRUE, d, t);
	}
}

static void not_decided(struct condition *conditions, const char *reason, const char *message)
{
	set(&conditions[CONDITION_SCALING_ACTIVE], CONDITION_UNKNOWN, reason, message);
	set(&conditions[CONDITION_SCALING_LIMITED], CONDITION_UNKNOWN, reason, message);
}

// Ready is derived from the others.
static void ready(struct condition *conditions, enum status_phase phase)
{
	static const enum condition_type needed[] = {CONDITION_ABLE_TO_SCALE, CONDITION_SCALING_ACTIVE};
	struct condition *c = &conditions[CONDITION_READY];
	set(c, CONDITION_TRUE, "Reconciled", "the target follows its signals");
	for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
		const struct condition *n = &conditions[needed[i]];
		// A target that a cooldown or limit holds is still ready.
		if (needed[i] == CONDITION_ABLE_TO_SCALE && (phase == STATUS_DECIDED || phase == STATUS_SCALED))
			continue;
		if (n->status != CONDITION_TRUE) {
			set(c, n->status, n->reason, n->message);
			return;
		}
	}
}

// The conditions that follow from a decision. A function may leave its condition absent.
static void (*const by_decision[CONDITION_TYPE__COUNT])(const struct decided *d, struct condition *c) = {
        [CONDITION_ABLE_TO_SCALE] = able_to_scale,       [CONDITION_SCALING_ACTIVE] = scaling_active,
        [CONDITION_SCALING_LIMITED] = scaling_limited,   [CONDITION_OBJECTIVE_NOT_REACHABLE] = objective_not_reachable,
        [CONDITION_CAPACITY_LEARNT] = capacity_learnt,   [CONDITION_UNHEALTHY_REPLICAS] = unhealthy_replicas,
        [CONDITION_CAPACITY_LIMITED] = capacity_limited,
};

// Why the target is not scaled in the phases of a failure.
static const char *const failures[STATUS_PHASE__COUNT] = {
        [STATUS_WRITE_FAILED] = "FailedUpdateScale",
        [STATUS_READ_FAILED] = "FailedGetScale",
        [STATUS_CONFLICT] = "DrivenByAnother",
        [STATUS_INVALID] = "InvalidPolicy",
};

void status_conditions(const struct status_facts *facts, struct condition ret_conditions[CONDITION_TYPE__COUNT])
{
	struct condition *able = &ret_conditions[CONDITION_ABLE_TO_SCALE];
	struct condition *conflict = &ret_conditions[CONDITION_CONFLICT];
	const char *text = facts->text ? facts->text : "";
	assert(facts->phase < STATUS_PHASE__COUNT);
	const char *failure = failures[facts->phase];
	for (int i = 0; i < CONDITION_TYPE__COUNT; i++) {
		set(&ret_conditions[i], CONDITION_UNKNOWN, "", "");
		if (facts->decided && by_decision[i])
			by_decision[i](facts->decided, &ret_conditions[i]);
	}
	set(conflict, CONDITION_FALSE, "NoConflict", "no other autoscaler drives the target");
	if (facts->conflict) {
		set(conflict, CONDITION_TRUE, "DrivenByAnother", "");
		snprintf(conflict->message, sizeof conflict->message, "%s drives the target", facts->conflict);
	} else if (facts->watch_error) {
		set(conflict, CONDITION_UNKNOWN, "CannotSeeOthers", facts->watch_error);
	}
	set(&ret_conditions[CONDITION_DRY_RUN], facts->dry_run ? CONDITION_TRUE : CONDITION_FALSE,
	    facts->dry_run ? "DryRun" : "Writing", facts->dry_run ? "decisions are not written" : "");
	set(&ret_conditions[CONDITION_PAUSED], facts->paused ? CONDITION_TRUE : CONDITION_FALSE,
	    facts->paused ? "Paused" : "NotPaused", facts->paused ? "the target stays as it is" : "");
	if (facts->phase == STATUS_SCALED) {
		const struct decision *d = facts->decided->decision;
		set(able, CONDITION_TRUE, "SucceededRescale", "");
		snprintf(able->message, sizeof able->message, "the target was scaled from %d to %d replicas",
		         d->current, d->desired);
	} else if (failure) {
		set(able, CONDITION_FALSE, failure, text);
	} else if (!facts->decided) {
		set(able, CONDITION_UNKNOWN, "NotDecided", text);
	}
	if (failure && facts->phase != STATUS_WRITE_FAILED)
		not_decided(ret_conditions, failure, text);
	else if (!facts->decided)
		not_decided(ret_conditions, "NotDecided", text);
	if (facts->phase == STATUS_CONFLICT)
		set(conflict, CONDITION_TRUE, failure, text);
	ready(ret_conditions, facts->phase);
	if (facts->fault)
		set(&ret_conditions[CONDITION_READY], CONDITION_FALSE, "InvalidPolicy", facts->fault);
}
