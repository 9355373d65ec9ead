// SPDX-License-Identifier: Apache-2.0
#include "policies/fallback.h"

#include <stdbool.h>

#include "policies/number.h"
#include "policies/policy.h"
#include "policies/state.h"
#include "policies/tick.h"

static bool has_failed(const struct decision_signal *d)
{
	// Read, but nothing to hold it against: no failure of the source.
	return (d->state == SIGNAL_MISSING || d->state == SIGNAL_IGNORED) && d->reason != REASON_NO_READY_REPLICAS;
}

// Signals of pods that do not exist have no data: at the idle level only the one that wakes counts.
static bool counts(const struct tick *t, size_t i)
{
	return !t->asleep || i == t->policy->idle.signal;
}

void fallback_observe(struct tick *t)
{
	for (size_t i = 0; i < t->policy->n_signals; i++) {
		struct state_signal *g = state_signal(t->state, i);
		bool failed = counts(t, i) && has_failed(&t->decision->signals[i]);
		g->failures = failed ? i64_add(g->failures, 1) : 0;
	}
}

enum fallback_sight fallback_sight_of(const struct tick *t, size_t i)
{
	const struct policy_fallback *f = &t->policy->fallback;
	const struct decision_signal *d = &t->decision->signals[i];
	if (!f->set || f->behavior != FALLBACK_SCALING_MODIFIERS || d->state == SIGNAL_OK || d->state == SIGNAL_IGNORED)
		return FALLBACK_READ;
	return state_signal(t->state, i)->failures > f->failure_threshold ? FALLBACK_BLIND : FALLBACK_WAITING;
}

int32_t fallback_replicas(const struct policy_fallback *fallback, int32_t current)
{
	int32_t n = fallback->replicas;
	switch (fallback->behavior) {
	case FALLBACK_CURRENT:
		n = current;
		break;
	case FALLBACK_CURRENT_IF_HIGHER:
		n = i32_max(n, current);
		break;
	case FALLBACK_CURRENT_IF_LOWER:
		n = i32_min(n, current);
		break;
	default:
		break;
	}
	return current > 0 ? i32_max(n, 1) : n;
}

struct sight {
	size_t n_ok, n_blind, n_waiting; // waiting: no data, but not for long enough, or filling
	int32_t best;                    // of the proposals of those that are ok, by `combine`
	int64_t failures;                // the most in a row
};

// An ignored signal counts only when there is no other.
static struct sight look(const struct tick *t)
{
	struct sight y = {0};
	size_t n_ignored_blind = 0, n_ignored = 0;
	for (size_t i = 0; i < t->policy->n_signals; i++) {
		if (!counts(t, i))
			continue;
		const struct decision_signal *d = &t->decision->signals[i];
		int64_t failures = state_signal(t->state, i)->failures;
		bool blind = failures > t->policy->fallback.failure_threshold;
		y.failures = i64_max(y.failures, failures);
		if (d->state == SIGNAL_IGNORED) {
			n_ignored++;
			n_ignored_blind += blind;
		} else if (d->state == SIGNAL_OK) {
			bool better = t->policy->combine == COMBINE_MIN ? d->proposal < y.best : d->proposal > y.best;
			y.best = y.n_ok++ == 0 || better ? d->proposal : y.best;
		} else {
			y.n_blind += blind;
			y.n_waiting += !blind;
		}
	}
	if (y.n_ok + y.n_blind + y.n_waiting == 0) {
		y.n_blind = n_ignored_blind;
		y.n_waiting = n_ignored - n_ignored_blind;
	}
	return y;
}

static void apply(struct tick *t, const struct sight *y)
{
	const struct policy_fallback *f = &t->policy->fallback;
	int32_t n = fallback_replicas(f, t->counts.spec);
	t->state->fallback = (struct fallback){.active = 1};
	if (y->n_ok > 0)
		n = t->policy->combine == COMBINE_MIN ? i32_min(n, y->best) : i32_max(n, y->best);
	// Somebody who is only just missing may yet ask for more.
	if (y->n_waiting > 0)
		n = i32_max(n, t->counts.spec);
	if (t->counts.spec > 0)
		n = i32_max(n, 1);
	tick_limit(t, &(struct trace_entry){
	                      .stage = STAGE_COMBINE,
	                      .reason = REASON_FALLBACK_ACTIVE,
	                      .signal = -1,
	                      .before = t->counts.spec,
	                      .after = n,
	                      .limit = (double)f->failure_threshold,
	                      .count = i32_from_i64(y->failures),
	              });
	t->blind = true;
	t->hold = n == t->counts.spec;
}

// Data that comes and goes must not pull the scale up and down: it is back only once it has stayed.
static void recover(struct tick *t, const struct sight *y)
{
	struct fallback *s = &t->state->fallback;
	int32_t needed = i32_max(t->policy->fallback.failure_threshold, 1);
	s->good = y->n_ok > 0 && y->n_blind + y->n_waiting == 0 ? s->good + 1 : 0;
	if (s->good >= (uint32_t)needed) {
		*s = (struct fallback){0};
		return;
	}
	if (t->hold || t->wanted >= t->counts.spec)
		return;
	tick_limit(t, &(struct trace_entry){
	                      .stage = STAGE_COMBINE,
	                      .reason = REASON_FALLBACK_LIFTING,
	                      .signal = -1,
	                      .before = t->wanted,
	                      .after = t->counts.spec,
	                      .limit = (double)needed,
	                      .count = (int32_t)s->good,
	              });
}

void fallback_stage(struct tick *t)
{
	struct sight y = look(t);
	bool any = t->policy->fallback.when == FALLBACK_ANY;
	if (t->policy->fallback.behavior == FALLBACK_SCALING_MODIFIERS) { // the formula has spoken already
		if (!t->blind && t->state->fallback.active)
			recover(t, &y);
		return;
	}
	if (y.n_blind > 0 && (any || (y.n_ok == 0 && y.n_waiting == 0)))
		apply(t, &y);
	else if (t->state->fallback.active)
		recover(t, &y);
}
