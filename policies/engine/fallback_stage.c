// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/fallback_stage.h"

#include <stdbool.h>

#include "policies/engine/fallback.h"
#include "policies/engine/idle.h"
#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/signal.h"
#include "policies/engine/stages.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

static bool has_failed(const struct decision_signal *d)
{
	// A value that cannot be compared for lack of ready replicas is not a failure of the source.
	return (d->state == SIGNAL_MISSING || d->state == SIGNAL_IGNORED) && d->reason != REASON_NO_READY_REPLICAS &&
	       d->reason != REASON_WINDOW_FILLING;
}

// At the idle level the pods that most signals measure do not exist: only the activation signals count. A signal that
// only informs a guard or a formula asks for no replicas at any time.
static bool counts(const struct tick *t, size_t i)
{
	return !signal_is_input(t->policy, i) && (!t->is_idle || idle_activation_of(&t->policy->idle, i));
}

// A formula fails as often in a row as the input that has failed longest.
static int64_t input_failures(const struct tick *t, uint32_t reads)
{
	int64_t most = 0;
	for (size_t i = 0; i < t->policy->n_signals; i++)
		if (reads >> i & 1)
			most = i64_max(most, state_signal(t->state, i)->failures);
	return most;
}

__attribute__((noinline)) static void count_failures(struct tick *t)
{
	for (size_t i = 0; i < t->policy->n_signals; i++) {
		struct state_signal *g = state_signal(t->state, i);
		bool failed = (counts(t, i) || (t->policy->inputs >> i & 1)) && has_failed(&t->decision->signals[i]);
		g->failures = failed ? i64_add(g->failures, 1) : 0;
	}
	for (size_t i = 0; t->policy->formulas >> i; i++)
		if ((t->policy->formulas >> i & 1) && state_signal(t->state, i)->failures > 0)
			state_signal(t->state, i)->failures = input_failures(t, t->policy->value_formulas[i].reads);
}

void fallback_observe(struct tick *t)
{
	if (t->policy->fallback.set)
		count_failures(t);
}

enum fallback_data fallback_data_of(const struct tick *t, size_t i)
{
	const struct policy_fallback *f = &t->policy->fallback;
	const struct decision_signal *d = &t->decision->signals[i];
	bool ignored = d->state == SIGNAL_IGNORED &&
	               (!(t->policy->inputs >> i & 1) || t->policy->signals[i].on_missing == ON_MISSING_IGNORE);
	if (!f->set || f->behavior != FALLBACK_SCALING_MODIFIERS || d->state == SIGNAL_OK || ignored)
		return FALLBACK_AVAILABLE;
	return state_signal(t->state, i)->failures > f->failure_threshold ? FALLBACK_FAILED : FALLBACK_WAITING;
}

struct signal_counts {
	size_t n_ok, n_failed, n_waiting; // waiting: without data for a short time only, or with a window that fills
	int32_t best;                     // best proposal of the n_ok signals, by `combine`
	int64_t failures;                 // largest number of consecutive failures
};

// Signals with onMissing: Ignore count only when there are no others.
static struct signal_counts count_signals(const struct tick *t)
{
	struct signal_counts y = {0};
	size_t n_ignored_failed = 0, n_ignored = 0;
	for (size_t i = 0; i < t->policy->n_signals; i++) {
		if (!counts(t, i))
			continue;
		const struct decision_signal *d = &t->decision->signals[i];
		int64_t failures = state_signal(t->state, i)->failures;
		bool failed = failures > t->policy->fallback.failure_threshold;
		y.failures = i64_max(y.failures, failures);
		if (d->state == SIGNAL_IGNORED) {
			n_ignored++;
			n_ignored_failed += failed;
		} else if (d->state == SIGNAL_OK) {
			bool better = t->policy->combine == COMBINE_MIN ? d->proposal < y.best : d->proposal > y.best;
			y.best = y.n_ok++ == 0 || better ? d->proposal : y.best;
		} else {
			y.n_failed += failed;
			y.n_waiting += !failed;
		}
	}
	if (y.n_ok + y.n_failed + y.n_waiting == 0) {
		y.n_failed = n_ignored_failed;
		y.n_waiting = n_ignored - n_ignored_failed;
	}
	return y;
}

static void apply(struct tick *t, const struct signal_counts *y)
{
	const struct policy_fallback *f = &t->policy->fallback;
	int32_t n = fallback_replicas(f, t->counts.spec);
	t->state->fallback = (struct fallback){.active = 1};
	if (y->n_ok > 0)
		n = t->policy->combine == COMBINE_MIN ? i32_min(n, y->best) : i32_max(n, y->best);
	// A signal that has been missing for a short time only may ask for more when it is back.
	if (y->n_waiting > 0)
		n = i32_max(n, t->counts.spec);
	n = i32_max(n, 1);
	tick_set_proposal(t, &(struct trace_entry){
	                             .stage = STAGE_COMBINE,
	                             .reason = REASON_FALLBACK_ACTIVE,
	                             .signal = -1,
	                             .before = t->counts.spec,
	                             .after = n,
	                             .limit = (double)f->failure_threshold,
	                             .count = i32_from_i64(y->failures),
	                     });
	t->fallback_active = true;
	t->hold = n == t->counts.spec;
}

// Lifts the fallback after enough complete readings, and prevents a scale-down until then: intermittent data must not
// move the scale up and down.
static void recover(struct tick *t, const struct signal_counts *y)
{
	struct fallback *s = &t->state->fallback;
	int32_t needed = i32_max(t->policy->fallback.failure_threshold, 1);
	s->good = y->n_ok > 0 && y->n_failed + y->n_waiting == 0 ? s->good + 1 : 0;
	if (s->good >= (uint32_t)needed) {
		*s = (struct fallback){0};
		return;
	}
	if (t->hold || t->wanted >= t->counts.spec)
		return;
	tick_set_proposal(t, &(struct trace_entry){
	                             .stage = STAGE_COMBINE,
	                             .reason = REASON_FALLBACK_LIFTING,
	                             .signal = -1,
	                             .before = t->wanted,
	                             .after = t->counts.spec,
	                             .limit = (double)needed,
	                             .count = (int32_t)s->good,
	                     });
}

void fallback_apply(struct tick *t)
{
	struct signal_counts y = count_signals(t);
	bool any = t->policy->fallback.when == FALLBACK_ANY;
	if (t->policy->fallback.behavior == FALLBACK_SCALING_MODIFIERS) { // combine_formula_fall_back() has applied it
		if (!t->fallback_active && t->state->fallback.active)
			recover(t, &y);
		return;
	}
	if (y.n_failed > 0 && (any || (y.n_ok == 0 && y.n_waiting == 0)))
		apply(t, &y);
	else if (t->state->fallback.active)
		recover(t, &y);
}
