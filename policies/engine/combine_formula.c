// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/combine_formula.h"

#include <math.h>
#include <stdbool.h>

#include "policies/engine/fallback_stage.h"
#include "policies/engine/formula.h"
#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

_Static_assert(FORMULA_SIGNALS_MAX == POLICY_SIGNALS_MAX, "a formula can name every signal");

// Relative size of a rounding error, which is not rounded up: 100 * 1.1 is 110 replicas, not 111.
#define ROUNDING_RATIO 1e-9

static int32_t replicas_of(double wanted)
{
	return replicas_from_whole(ceil(wanted - ROUNDING_RATIO * fabs(wanted)));
}

// Evaluates the formula with the proposals after the sustain stage (`sustained`), or before it.
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

// Counts the signals that formulas read and that are in the given state; *ret_first is the first of them.
static size_t count_inputs(const struct tick *t, enum fallback_data data, int32_t *ret_first)
{
	size_t n = 0;
	uint32_t reads = t->policy->formula.reads | t->policy->inputs;
	for (size_t i = 0; i < t->policy->n_signals; i++)
		if ((reads >> i & 1) && fallback_data_of(t, i) == data && n++ == 0)
			*ret_first = (int32_t)i;
	return n;
}

bool combine_formula_has_defaults(const struct tick *t)
{
	int32_t first = -1;
	return t->policy->combine == COMBINE_FORMULA && count_inputs(t, FALLBACK_FAILED, &first) > 0 &&
	       count_inputs(t, FALLBACK_WAITING, &first) == 0;
}

void combine_formula_fall_back(struct tick *t)
{
	int32_t first_failed = -1;
	if (t->fallback_active || count_inputs(t, FALLBACK_FAILED, &first_failed) == 0)
		return;
	if (t->counts.spec > 0)
		t->wanted = i32_max(t->wanted, 1); // an outage never scales to zero
	t->state->fallback = (struct fallback){.active = 1};
	tick_set_proposal(t, &(struct trace_entry){
	                             .stage = STAGE_COMBINE,
	                             .reason = REASON_FALLBACK_ACTIVE,
	                             .signal = first_failed,
	                             .before = t->counts.spec,
	                             .after = t->wanted,
	                             .limit = (double)t->policy->fallback.failure_threshold,
	                             .count = i32_from_i64(state_signal(t->state, (size_t)first_failed)->failures),
	                     });
	t->fallback_active = true;
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
	tick_set_proposal(t, &entry);
}

void combine_by_formula(struct tick *t)
{
	int32_t first = -1;
	if (count_inputs(t, FALLBACK_WAITING, &first) > 0) {
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
	combine_formula_fall_back(t);
	if (t->fallback_active)
		return;
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
