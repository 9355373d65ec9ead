// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/decide.h"

#include <assert.h>
#include <stddef.h>

#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/engine/startup.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

// ---- the stages ----

static bool has_window(const struct policy *p)
{
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].window.set)
			return true;
	return false;
}

static bool has_sustain(const struct policy *p)
{
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].sustain.up_ms > 0 || p->signals[i].sustain.down_ms > 0)
			return true;
	return false;
}

static bool has_cooldown(const struct policy *p)
{
	return p->cooldown.up_ms > 0 || p->cooldown.down_ms > 0;
}

static bool has_multiple(const struct policy *p)
{
	return p->replica_multiple > 1;
}

static bool has_capacity(const struct policy *p)
{
	return p->capacity.mode != CAPACITY_OFF;
}

static bool has_mode(const struct policy *p)
{
	return p->paused || p->dry_run;
}

struct stage_row {
	const char *name;
	bool (*enabled)(const struct policy *policy); // whether the stage can have an effect; NULL: by `set`
	size_t set;                                   // offset of the flag of the policy that says so; 0: always
	void (*run)(struct tick *t);
	bool skip_on_hold;       // do not run while the scale is held for missing data
	bool skip_out_of_bounds; // do not run while the scale is outside its bounds
};

// clang-format off
#define ALWAYS     NULL, 0
#define IF(has)    has, 0
#define IF_SET(of) NULL, offsetof(struct policy, of.set)
static const struct stage_row table[] = {
	//                   name         enabled            run               on hold: skip, out of bounds: skip
	[STAGE_SOURCES]   = {"sources",   ALWAYS,            sources_stage,    false, false},
	[STAGE_WINDOWS]   = {"windows",   IF(has_window),    windows_stage,    false, false},
	[STAGE_SIGNALS]   = {"signals",   ALWAYS,            signals_stage,    false, false},
	[STAGE_SUSTAIN]   = {"sustain",   IF(has_sustain),   sustain_stage,    false, false},
	[STAGE_PANIC]     = {"panic",     IF_SET(panic),     panic_stage,      false, false},
	[STAGE_FORECAST]  = {"forecast",  IF_SET(forecast),  forecast_stage,   false, false},
	[STAGE_OBJECTIVE] = {"objective", IF_SET(objective), objective_stage,  false, false},
	[STAGE_COMBINE]   = {"combine",   ALWAYS,            combine_stage,    false, true},
	[STAGE_STABILIZE] = {"stabilize", ALWAYS,            stabilize_stage,  true,  true},
	[STAGE_RATE]      = {"rate",      ALWAYS,            rate_stage,       true,  true},
	[STAGE_COOLDOWN]  = {"cooldown",  IF(has_cooldown),  cooldown_stage,   true,  true},
	[STAGE_IDLE]      = {"idle",      IF_SET(idle),      idle_stage,       false, false},
	[STAGE_BOUNDS]    = {"bounds",    ALWAYS,            bounds_stage,     false, false},
	[STAGE_MULTIPLE]  = {"multiple",  IF(has_multiple),  multiple_stage,   false, false},
	[STAGE_GUARDS]    = {"guards",    IF_SET(guards),    guards_stage,     false, false},
	[STAGE_CAPACITY]  = {"capacity",  IF(has_capacity),  capacity_stage,   false, false},
	[STAGE_MODE]      = {"mode",      IF(has_mode),      mode_stage,       false, false},
	// after decide()
	[STAGE_POOL]      = {.name = "pool"},
	[STAGE_VICTIMS]   = {.name = "victims"},
	[STAGE_VARIANTS]  = {.name = "variants"},
};
// clang-format on
_Static_assert(sizeof table / sizeof table[0] == STAGE__COUNT, "one row per stage");

const char *stage_name(enum stage s)
{
	assert(s >= 0 && s < STAGE__COUNT);
	return table[s].name;
}

static inline bool is_enabled(const struct stage_row *row, const struct policy *policy)
{
	const void *flag = (const unsigned char *)policy + row->set;
	return row->enabled ? row->enabled(policy) : row->set == 0 || *(const bool *)flag;
}

bool stage_is_enabled(enum stage s, const struct policy *policy)
{
	assert(s >= 0 && s < STAGE_DECIDE__COUNT);
	return is_enabled(&table[s], policy);
}

// The loops below are unrolled, so that the compiler replaces the pointers in the table by direct calls.
#define UNROLL _Pragma("GCC unroll 16")

static inline void run_one_signal(struct tick *t)
{
	UNROLL
	for (int s = STAGE_SOURCES; s <= STAGE_SUSTAIN; s++)
		table[s].run(t);
}

__attribute__((noinline)) static void run_formulas(struct tick *t)
{
	for (t->signal = 0; t->signal < t->policy->n_signals; t->signal++) {
		if (!(t->policy->formulas >> t->signal & 1))
			continue;
		formula_stage(t);
		signals_stage(t);
		sustain_stage(t);
	}
}

__attribute__((noinline)) static void run_guarded(struct tick *t)
{
	size_t first = t->policy->guards.throttled.signal_index;
	t->replacements = 0;
	if (t->policy->guards.unhealthy != UNHEALTHY_IGNORE)
		unhealthy_observe(t);
	if (t->policy->guards.throttled.set) {
		t->signal = first;
		run_one_signal(t);
		throttled_observe(t);
	} else {
		first = t->policy->n_signals;
	}
	for (t->signal = 0; t->signal < t->policy->n_signals; t->signal++)
		if (t->signal != first && !(t->policy->formulas >> t->signal & 1))
			run_one_signal(t);
	if (t->policy->formulas)
		run_formulas(t);
}

static void run_signal_stages(struct tick *t)
{
	if (t->policy->guards.set || t->policy->formulas) {
		run_guarded(t);
		return;
	}
	for (t->signal = 0; t->signal < t->policy->n_signals; t->signal++)
		run_one_signal(t);
}

static inline void run_stages(struct tick *t, enum stage first, enum stage last)
{
	UNROLL
	for (int s = (int)first; s <= (int)last; s++) {
		const struct stage_row *row = &table[s];
		if (is_enabled(row, t->policy) && !(row->skip_on_hold && t->hold) &&
		    !(row->skip_out_of_bounds && t->out_of_bounds))
			row->run(t);
	}
}

static void pipeline_run(struct tick *t)
{
	schedule_observe(t);
	run_signal_stages(t);
	if (t->policy->guards.gain.set)
		gain_observe(t);
	run_stages(t, STAGE_PANIC, STAGE_OBJECTIVE);
	if (t->policy->idle.set)
		idle_observe(t);
	fallback_observe(t);
	bounds_observe(t);
	run_stages(t, STAGE_COMBINE, STAGE_CAPACITY);
	if (t->decision->driver < 0)
		t->decision->driver = (int32_t)t->decision->n_trace - 1; // the entry that explains the decision was cut
	run_stages(t, STAGE_MODE, STAGE_MODE);
}

// ---- one tick ----

static void count_replicas(struct tick *t)
{
	const struct observation *o = t->observation;
	struct replica_counts *c = &t->counts;
	c->spec = i32_max(o->spec_replicas, 0);
	c->status = i32_max(o->status_replicas, 0);
	c->ready = o->ready_replicas;
	c->pending = o->pending_replicas > 0 ? i32_min(o->pending_replicas, i32_max(c->spec, c->status)) : 0;
	t->wanted = t->unstabilized = c->spec;
	if (c->ready >= 0 && c->ready <= c->spec)
		return;
	// Several pods for one replica, pods of another workload, a surge: what is ready beyond the scale is no
	// capacity that the next scale would have. Pinned by prop_decide "surplus_of_ready_changes_nothing".
	c->ready = c->spec;
	struct trace_entry entry =
	        tick_note(t, STAGE_SOURCES, o->ready_replicas < 0 ? REASON_READY_UNKNOWN : REASON_READY_SURPLUS, -1);
	entry.count = o->ready_replicas;
	tick_trace(t, &entry);
}

// Counts the replicas that are starting, before the signals, whose proposals depend on them.
static void observe_starts(struct tick *t)
{
	struct startup *s = &t->state->startup;
	bool learnt = startup_observe(s, t->policy, t->now_ms, t->counts.spec, t->decision->ready);
	t->starting = t->policy->startup.set ? startup_starting(s, t->policy, t->now_ms) : 0;
	if (!learnt || !t->policy->startup.set || !startup_is_learnt(s, t->policy))
		return;
	uint32_t newest = (s->next_start + STARTUP_STARTS_MAX - 1) % STARTUP_STARTS_MAX;
	struct trace_entry entry = tick_note(t, STAGE_SOURCES, REASON_STARTUP_LEARNT, -1);
	entry.duration_ms = s->starts_ms[newest];
	entry.window_ms = startup_ms(s, t->policy);
	entry.count = (int32_t)s->n_starts;
	tick_trace(t, &entry);
}

static void finish(struct tick *t)
{
	struct decision *d = t->decision;
	d->desired = t->wanted;
	d->min_replicas = t->min;
	d->max_replicas = t->max;
	d->action = d->desired > d->current   ? ACTION_SCALE_UP
	            : d->desired < d->current ? ACTION_SCALE_DOWN
	            : t->hold                 ? ACTION_HOLD
	                                      : ACTION_NONE;
	d->write = d->desired != d->current && !t->policy->dry_run;
}

void decide(const struct policy *policy, const struct observation *observation, int64_t now_ms, void *state,
            struct decision *ret_decision)
{
	assert(observation->n_signals == policy->n_signals && policy->n_signals <= POLICY_SIGNALS_MAX);
	struct state_header *s = state_of(policy, state);
	now_ms = clock_step_now(policy, s, now_ms);
	s->last_now_ms = now_ms;

	struct decision *d = ret_decision;
	d->time_ms = now_ms;
	d->reason = REASON_DESIRED_WITHIN_RANGE;
	d->driver = -1;
	d->n_signals = policy->n_signals;
	d->n_trace = 0;
	d->trace_cut = d->is_kept = false;

	struct tick t; // its arrays are filled signal by signal
	t.policy = policy;
	t.observation = observation;
	t.state = s;
	t.decision = d;
	t.now_ms = now_ms;
	t.min = policy->min_replicas;
	t.max = policy->max_replicas;
	t.schedule = -1;
	t.capacity_ratio = 1;
	t.hold = t.can_idle = t.is_idle = t.fallback_active = false;
	if (s->clock_step_ms != 0 || s->clamped_ms != 0)
		clock_step_trace(&t);
	count_replicas(&t);
	d->current = t.counts.spec;
	d->ready = i32_min(observation->ready_replicas, t.counts.spec); // < 0: unknown
	d->pending = t.counts.pending;
	if (!s->seeded)
		decide_record_recommendation(policy, state, now_ms, t.counts.spec);
	observe_starts(&t);
	pipeline_run(&t);
	finish(&t);
}
