// SPDX-License-Identifier: Apache-2.0
// Stage combine: many proposals to one, or a hold. HPA: computeReplicasForMetrics, except that nothing is ever decided
// downwards while a signal is missing.
#include <stdbool.h>

#include "policies/decide.h"
#include "policies/policy.h"
#include "policies/tick.h"

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
		if (d->state == SIGNAL_IGNORED)
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

// Nobody can vote: keep the scale and name the fault they share, if they share one.
static void hold_all(struct tick *t)
{
	const struct decision *d = t->decision;
	enum reason shared = d->n_signals > 0 ? d->signals[0].reason : REASON_ALL_SIGNALS_MISSING;
	for (size_t i = 1; i < d->n_signals; i++)
		if (d->signals[i].reason != shared)
			shared = REASON_ALL_SIGNALS_MISSING;
	t->hold = true;
	t->decision->reason = shared;
	t->decision->driver = d->n_signals > 0 ? t->entry[0] : -1;
	if (d->n_signals == 1)
		return;
	int32_t entry = tick_trace(t, &(struct trace_entry){
	                                      .stage = STAGE_COMBINE,
	                                      .reason = REASON_ALL_SIGNALS_MISSING,
	                                      .signal = -1,
	                                      .before = t->counts.spec,
	                                      .after = t->counts.spec,
	                                      .count = (int32_t)d->n_signals,
	                              });
	if (shared == REASON_ALL_SIGNALS_MISSING)
		t->decision->driver = entry;
}

void combine_stage(struct tick *t)
{
	struct tally y = tally_up(t);
	if (y.n_ok == 0 && !combine_formula_is_answered(t)) {
		hold_all(t);
		return;
	}
	if (t->policy->combine == COMBINE_FORMULA) {
		combine_by_formula(t);
		return;
	}
	t->wanted = y.replicas;
	t->decision->driver = t->entry[y.winner];
	if (t->policy->n_signals > 1)
		tick_trace(t, &(struct trace_entry){
		                      .stage = STAGE_COMBINE,
		                      .reason = REASON_COMBINED,
		                      .signal = y.winner,
		                      .before = t->counts.spec,
		                      .after = y.replicas,
		                      .count = (int32_t)y.n_ok,
		              });
	int32_t why = t->entry[y.winner]; // what changed the winner's proposal last
	if (why >= 0 &&
	    (t->decision->trace[why].reason == REASON_PANIC || t->decision->trace[why].reason == REASON_FORECAST))
		t->decision->reason = t->decision->trace[why].reason;
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
		// A held scale-down says nothing about the load and stays out of the history; that the good signals ask
		// for the present scale enters it, as in the HPA.
		if (y.replicas == t->counts.spec)
			decide_record_recommendation(t->policy, t->state, t->now_ms, y.replicas);
		tick_limit(t, &(struct trace_entry){
		                      .stage = STAGE_COMBINE,
		                      .reason = REASON_PARTIAL_SIGNALS,
		                      .signal = y.first_missing,
		                      .before = y.replicas,
		                      .after = t->counts.spec,
		                      .count = (int32_t)y.n_missing,
		              });
	}
}
