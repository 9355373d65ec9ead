// SPDX-License-Identifier: Apache-2.0
// Stage combine: the proposals of all signals become one, or a hold. HPA: computeReplicasForMetrics, except that a
// missing signal always prevents a scale-down.
#include <stdbool.h>

#include "policies/engine/combine_formula.h"
#include "policies/engine/decide_state.h"
#include "policies/engine/fallback_stage.h"
#include "policies/engine/policy.h"
#include "policies/engine/signal.h"
#include "policies/engine/stages.h"
#include "policies/engine/tick.h"

struct tally {
	size_t n_ok, n_missing; // ignored signals are in neither
	int32_t winner;         // signal with the largest (smallest) proposal; the first of equals; -1
	int32_t replicas;
	int32_t first_missing;    // -1 = none
	int32_t unsustained;      // what `replicas` would be without the sustain stage,
	int32_t unsustained_from; // and the signal that asks for it
};

static bool is_better(int combine, int32_t candidate, int32_t best)
{
	return combine == COMBINE_MIN ? candidate < best : candidate > best;
}

static struct tally tally_up(const struct tick *t)
{
	struct tally y = {.winner = -1, .first_missing = -1, .unsustained_from = -1};
	for (size_t i = 0; i < t->policy->n_signals; i++) {
		const struct decision_signal *d = &t->decision->signals[i];
		if (d->state == SIGNAL_IGNORED || signal_is_input(t->policy, i))
			continue;
		if (d->state != SIGNAL_OK) {
			y.n_missing++;
			if (y.first_missing < 0)
				y.first_missing = (int32_t)i;
			continue;
		}
		y.n_ok++;
		if (y.winner < 0 || is_better(t->policy->combine, d->proposal, y.replicas)) {
			y.winner = (int32_t)i;
			y.replicas = d->proposal;
		}
		if (y.unsustained_from < 0 || is_better(t->policy->combine, t->unsustained[i], y.unsustained)) {
			y.unsustained_from = (int32_t)i;
			y.unsustained = t->unsustained[i];
		}
	}
	return y;
}

// No signal has a proposal: keep the scale, with the reason that all signals share, if they share one.
__attribute__((noinline)) static void hold_all(struct tick *t)
{
	const struct decision *d = t->decision;
	size_t n = 0, first = 0;
	enum reason shared = REASON_ALL_SIGNALS_MISSING;
	for (size_t i = 0; i < d->n_signals; i++) {
		if (signal_is_input(t->policy, i))
			continue;
		if (n++ == 0) {
			shared = d->signals[i].reason;
			first = i;
		} else if (d->signals[i].reason != shared) {
			shared = REASON_ALL_SIGNALS_MISSING;
		}
	}
	t->hold = true;
	t->decision->reason = shared;
	t->decision->driver = n > 0 ? t->entry[first] : -1;
	if (n == 1)
		return;
	int32_t entry = tick_trace(t, &(struct trace_entry){
	                                      .stage = STAGE_COMBINE,
	                                      .reason = REASON_ALL_SIGNALS_MISSING,
	                                      .signal = -1,
	                                      .before = t->counts.spec,
	                                      .after = t->counts.spec,
	                                      .count = (int32_t)n,
	                              });
	if (shared == REASON_ALL_SIGNALS_MISSING)
		t->decision->driver = entry;
}

// Returns whether the reason for a proposal is that of the decision: a stage after the signals changed the proposal.
static bool is_primary(enum reason r)
{
	return r == REASON_PANIC || r == REASON_FORECAST || r == REASON_OBJECTIVE_KEPT ||
	       r == REASON_OBJECTIVE_STARTING;
}

static void combine_signals(struct tick *t)
{
	struct tally y = tally_up(t);
	if (y.n_ok == 0 && !combine_formula_has_defaults(t)) {
		hold_all(t);
		return;
	}
	if (t->policy->combine == COMBINE_FORMULA) {
		combine_by_formula(t);
		return;
	}
	t->wanted = y.replicas;
	t->decision->driver = t->entry[y.winner];
	if (t->policy->n_signals > 1 && (y.n_ok > 1 || !t->policy->inputs))
		tick_trace(t, &(struct trace_entry){
		                      .stage = STAGE_COMBINE,
		                      .reason = REASON_COMBINED,
		                      .signal = y.winner,
		                      .before = t->counts.spec,
		                      .after = y.replicas,
		                      .count = (int32_t)y.n_ok,
		              });
	int32_t why = t->entry[y.winner]; // entry of the stage that changed the proposal last
	if (why >= 0 && is_primary(t->decision->entries[why].reason))
		t->decision->reason = t->decision->entries[why].reason;
	if (t->starting_entry[y.winner] >= 0) {
		t->decision->reason = REASON_REPLICAS_STARTING;
		t->decision->driver = t->starting_entry[y.winner];
	}
	if (y.replicas != y.unsustained) {
		t->decision->reason = REASON_SUSTAIN_PENDING;
		t->decision->driver = t->sustain_entry[y.unsustained_from];
	}
	if (y.n_missing > 0 && y.replicas <= t->counts.spec) {
		t->hold = true;
		// As in the HPA, the history records that the available signals ask for the present scale. A scale-down
		// that is held for missing data is not a recommendation.
		if (y.replicas == t->counts.spec)
			decide_record_recommendation(t->policy, t->state, t->now_ms, y.replicas);
		tick_set_proposal(t, &(struct trace_entry){
		                             .stage = STAGE_COMBINE,
		                             .reason = REASON_PARTIAL_SIGNALS,
		                             .signal = y.first_missing,
		                             .before = y.replicas,
		                             .after = t->counts.spec,
		                             .count = (int32_t)y.n_missing,
		                     });
	}
}

void combine_stage(struct tick *t)
{
	combine_signals(t);
	if (!t->policy->fallback.set)
		return;
	if (t->policy->fallback.behavior == FALLBACK_SCALING_MODIFIERS && !t->hold)
		combine_formula_fall_back(t);
	fallback_apply(t);
}
