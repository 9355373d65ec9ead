// SPDX-License-Identifier: Apache-2.0
// Stage combine, by a formula over the signals. KEDA: scalingModifiers, but over proposals in replicas, so that signals
// of different units can be compared.
#include <math.h>
#include <stdbool.h>

#include "policies/fallback.h"
#include "policies/formula.h"
#include "policies/number.h"
#include "policies/policy.h"
#include "policies/state.h"
#include "policies/tick.h"

_Static_assert(FORMULA_SIGNALS_MAX == POLICY_SIGNALS_MAX, "a formula can name every signal");

// 100 * 1.1 is 110 replicas, not 111: what rounding left over is not rounded up.
#define ROUNDING_RATIO 1e-9

static int32_t replicas_of(double wanted)
{
	return replicas_from_whole(ceil(wanted - ROUNDING_RATIO * fabs(wanted)));
}

// sustained: with the proposals that sustain left, else with those before it.
static struct formula_result eval(const struct tick *t, bool sustained)
{
	struct formula_input inputs[POLICY_SIGNALS_MAX];
	for (size_t i = 0; i < t->policy->n_signals; i++) {
		const struct decision_signal *d = &t->decision->signals[i];
		inputs[i] = (struct formula_input){
		        .present = d->state == SIGNAL_OK,
		        .proposal = (double)(sustained ? d->proposal : t->unsustained[i]),
		        .value = d->value,
		};
	}
	return formula_eval(&t->policy->formula, inputs, (double)t->counts.spec);
}

// How many signals that the formula reads are seen so; *ret_first is the first of them.
static size_t count_seen(const struct tick *t, enum fallback_sight sight, int32_t *ret_first)
{
	size_t n = 0;
	for (size_t i = 0; i < t->policy->n_signals; i++)
		if ((t->policy->formula.reads >> i & 1) && fallback_sight_of(t, i) == sight && n++ == 0)
			*ret_first = (int32_t)i;
	return n;
}

bool combine_formula_is_answered(const struct tick *t)
{
	int32_t first = -1;
	return t->policy->combine == COMBINE_FORMULA && count_seen(t, FALLBACK_BLIND, &first) > 0 &&
	       count_seen(t, FALLBACK_WAITING, &first) == 0;
}

// Signals are blind and nil in the formula: what it says now is the fallback.
static void fall_back(struct tick *t, int32_t first_blind)
{
	if (t->counts.spec > 0)
		t->wanted = i32_max(t->wanted, 1); // an outage never scales to zero
	t->state->fallback = (struct fallback){.active = 1};
	tick_limit(t, &(struct trace_entry){
	                      .stage = STAGE_COMBINE,
	                      .reason = REASON_FALLBACK_ACTIVE,
	                      .signal = first_blind,
	                      .before = t->counts.spec,
	                      .after = t->wanted,
	                      .limit = (double)t->policy->fallback.failure_threshold,
	                      .count = i32_from_i64(state_signal(t->state, (size_t)first_blind)->failures),
	              });
	t->blind = true;
	t->hold = t->wanted == t->counts.spec;
}

static void hold(struct tick *t, enum formula_kind kind)
{
	struct trace_entry entry = {
	        .stage = STAGE_COMBINE,
	        .reason = kind == FORMULA_NIL ? REASON_FORMULA_MISSING : REASON_FORMULA_FAILED,
	        .signal = -1,
	        .before = t->counts.spec,
	        .after = t->counts.spec,
	};
	for (size_t i = 0; kind == FORMULA_NIL && entry.signal < 0 && i < t->policy->n_signals; i++)
		if ((t->policy->formula.reads >> i & 1) && t->decision->signals[i].state != SIGNAL_OK)
			entry.signal = (int32_t)i;
	t->hold = true;
	tick_limit(t, &entry);
}

void combine_by_formula(struct tick *t)
{
	int32_t blind = -1;
	if (count_seen(t, FALLBACK_WAITING, &blind) > 0) {
		hold(t, FORMULA_NIL);
		return;
	}
	struct formula_result r = eval(t, true);
	if (r.kind != FORMULA_NUMBER) {
		hold(t, r.kind);
		return;
	}
	t->wanted = replicas_of(r.number);
	t->decision->driver = tick_trace(t, &(struct trace_entry){
	                                            .stage = STAGE_COMBINE,
	                                            .reason = REASON_COMBINE_FORMULA,
	                                            .signal = -1,
	                                            .before = t->counts.spec,
	                                            .after = t->wanted,
	                                            .value = r.number,
	                                    });
	if (count_seen(t, FALLBACK_BLIND, &blind) > 0) {
		fall_back(t, blind);
		return;
	}
	for (size_t i = 0; i < t->policy->n_signals; i++) {
		if (t->sustain_entry[i] < 0 || !(t->policy->formula.reads >> i & 1))
			continue;
		struct formula_result u = eval(t, false);
		if (u.kind == FORMULA_NUMBER && replicas_of(u.number) != t->wanted) {
			t->decision->reason = REASON_SUSTAIN_PENDING;
			t->decision->driver = t->sustain_entry[i];
		}
		return;
	}
}
