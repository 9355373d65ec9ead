// SPDX-License-Identifier: Apache-2.0
// Stage combine: the proposals of all signals become one, or a hold, or the fallback. HPA: computeReplicasForMetrics,
// except that a missing signal always prevents a scale-down. KEDA: scalingModifiers, but over proposals in replicas, so
// that signals of different units can be compared.
#include <math.h>
#include <stdbool.h>

#include "policies/engine/decide.h"
#include "policies/engine/formula.h"
#include "policies/engine/idle.h"
#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

// ---- fallback ----

int32_t fallback_replicas(const struct policy_fallback *fallback, int32_t current)
{
	int32_t n = fallback->behavior == FALLBACK_CURRENT ? current : fallback->replicas;
	if (fallback->behavior == FALLBACK_CURRENT_IF_HIGHER)
		n = i32_max(n, current);
	else if (fallback->behavior == FALLBACK_CURRENT_IF_LOWER)
		n = i32_min(n, current);
	return i32_max(n, 1);
}

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

// How the formula of `combine` treats a signal under behavior ScalingModifiers.
enum fallback_data {
	FALLBACK_AVAILABLE, // as without `fallback`; also for every other behavior
	FALLBACK_WAITING,   // the signal has been missing for a short time only: hold
	FALLBACK_FAILED,    // the signal is nil
};

static enum fallback_data fallback_data_of(const struct tick *t, size_t i)
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

// Makes n replicas the proposal, for the failures of `signal` (-1: of several).
static void fall_back(struct tick *t, int32_t n, int32_t signal, int64_t failures)
{
	struct trace_entry entry = tick_note(t, STAGE_COMBINE, REASON_FALLBACK_ACTIVE, signal);
	entry.after = n;
	entry.limit = (double)t->policy->fallback.failure_threshold;
	entry.count = i32_from_i64(failures);
	t->state->fallback = (struct fallback){.active = 1};
	tick_set_proposal(t, &entry);
	t->fallback_active = true;
	t->hold = n == t->counts.spec;
}

static void apply(struct tick *t, const struct signal_counts *y)
{
	int32_t n = fallback_replicas(&t->policy->fallback, t->counts.spec);
	if (y->n_ok > 0)
		n = t->policy->combine == COMBINE_MIN ? i32_min(n, y->best) : i32_max(n, y->best);
	// A signal that has been missing for a short time only may ask for more when it is back.
	if (y->n_waiting > 0)
		n = i32_max(n, t->counts.spec);
	fall_back(t, i32_max(n, 1), -1, y->failures);
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
	struct trace_entry entry = tick_entry(t, STAGE_COMBINE, REASON_FALLBACK_LIFTING, t->counts.spec);
	entry.limit = (double)needed;
	entry.count = (int32_t)s->good;
	tick_set_proposal(t, &entry);
}

// Applies the fallback to the combined proposal, or lifts it.
static void fallback_apply(struct tick *t)
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

// ---- a formula ----

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

// Returns whether the formula can be evaluated although no signal has data: under fallback behavior ScalingModifiers,
// once every signal that it reads has been missing for long enough to be nil.
static bool combine_formula_has_defaults(const struct tick *t)
{
	int32_t first = -1;
	return t->policy->combine == COMBINE_FORMULA && count_inputs(t, FALLBACK_FAILED, &first) > 0 &&
	       count_inputs(t, FALLBACK_WAITING, &first) == 0;
}

// Makes t->wanted, the result of formulas in which failed signals are nil, the fallback if there are such signals.
static void combine_formula_fall_back(struct tick *t)
{
	int32_t first_failed = -1;
	if (t->fallback_active || count_inputs(t, FALLBACK_FAILED, &first_failed) == 0)
		return;
	if (t->counts.spec > 0)
		t->wanted = i32_max(t->wanted, 1); // an outage never scales to zero
	fall_back(t, t->wanted, first_failed, state_signal(t->state, (size_t)first_failed)->failures);
}

static void hold(struct tick *t, enum formula_kind kind)
{
	enum reason reason = kind == FORMULA_NIL ? REASON_FORMULA_MISSING : REASON_FORMULA_FAILED;
	struct trace_entry entry = tick_note(t, STAGE_COMBINE, reason, -1);
	for (size_t i = 0; kind == FORMULA_NIL && entry.signal < 0 && i < t->policy->n_signals; i++)
		if ((t->policy->formula.reads >> i & 1) && t->decision->signals[i].state != SIGNAL_OK)
			entry.signal = (int32_t)i;
	t->hold = true;
	tick_set_proposal(t, &entry);
}

// Sets t->wanted to the result of the formula, or holds the scale.
static void combine_by_formula(struct tick *t)
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
	struct trace_entry entry = tick_note(t, STAGE_COMBINE, REASON_COMBINE_FORMULA, -1);
	entry.after = t->wanted;
	entry.value = r.number;
	t->decision->driver = tick_trace(t, &entry);
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

// ---- the largest or smallest proposal ----

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
	struct trace_entry entry = tick_note(t, STAGE_COMBINE, REASON_ALL_SIGNALS_MISSING, -1);
	entry.count = (int32_t)n;
	int32_t at = tick_trace(t, &entry);
	if (shared == REASON_ALL_SIGNALS_MISSING)
		t->decision->driver = at;
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
	if (t->policy->n_signals > 1 && (y.n_ok > 1 || !t->policy->inputs)) {
		struct trace_entry entry = tick_note(t, STAGE_COMBINE, REASON_COMBINED, y.winner);
		entry.after = y.replicas;
		entry.count = (int32_t)y.n_ok;
		tick_trace(t, &entry);
	}
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
		struct trace_entry entry = tick_entry(t, STAGE_COMBINE, REASON_PARTIAL_SIGNALS, t->counts.spec);
		entry.signal = y.first_missing;
		entry.count = (int32_t)y.n_missing;
		tick_set_proposal(t, &entry);
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
