// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/pipeline.h"

#include <assert.h>
#include <stddef.h>

#include "policies/engine/policy.h"
#include "policies/engine/stages.h"
#include "policies/engine/tick.h"

#define ALWAYS NULL

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

static bool has_panic(const struct policy *p)
{
	return p->panic.set;
}

static bool has_forecast(const struct policy *p)
{
	return p->forecast.set;
}

static bool has_objective(const struct policy *p)
{
	return p->objective.set;
}

static bool has_cooldown(const struct policy *p)
{
	return p->cooldown.up_ms > 0 || p->cooldown.down_ms > 0;
}

static bool has_idle(const struct policy *p)
{
	return p->idle.set;
}

static bool has_multiple(const struct policy *p)
{
	return p->replica_multiple > 1;
}

static bool has_guards(const struct policy *p)
{
	return p->guards.set;
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
	bool (*enabled)(const struct policy *policy); // whether the stage can have an effect; NULL: always
	void (*run)(struct tick *t);
	bool skip_on_hold;       // do not run while the scale is held for missing data
	bool skip_out_of_bounds; // do not run while the scale is outside its bounds
};

// clang-format off
static const struct stage_row table[] = {
	//                   name         enabled        run               on hold: skip, out of bounds: skip
	[STAGE_SOURCES]   = {"sources",   ALWAYS,        sources_stage,    false, false},
	[STAGE_WINDOWS]   = {"windows",   has_window,    windows_stage,    false, false},
	[STAGE_SIGNALS]   = {"signals",   ALWAYS,        signals_stage,    false, false},
	[STAGE_SUSTAIN]   = {"sustain",   has_sustain,   sustain_stage,    false, false},
	[STAGE_PANIC]     = {"panic",     has_panic,     panic_stage,      false, false},
	[STAGE_FORECAST]  = {"forecast",  has_forecast,  forecast_stage,   false, false},
	[STAGE_OBJECTIVE] = {"objective", has_objective, objective_stage,  false, false},
	[STAGE_COMBINE]   = {"combine",   ALWAYS,        combine_stage,    false, true},
	[STAGE_STABILIZE] = {"stabilize", ALWAYS,        stabilize_stage,  true,  true},
	[STAGE_RATE]      = {"rate",      ALWAYS,        rate_stage,       true,  true},
	[STAGE_COOLDOWN]  = {"cooldown",  has_cooldown,  cooldown_stage,   true,  true},
	[STAGE_IDLE]      = {"idle",      has_idle,      idle_stage,       false, false},
	[STAGE_BOUNDS]    = {"bounds",    ALWAYS,        bounds_stage,     false, false},
	[STAGE_MULTIPLE]  = {"multiple",  has_multiple,  multiple_stage,   false, false},
	[STAGE_GUARDS]    = {"guards",    has_guards,    guards_stage,     false, false},
	[STAGE_CAPACITY]  = {"capacity",  has_capacity,  capacity_stage,   false, false},
	[STAGE_MODE]      = {"mode",      has_mode,      mode_stage,       false, false},
};
// clang-format on
_Static_assert(sizeof table / sizeof table[0] == STAGE_DECIDE__COUNT, "one row per stage");

const char *stage_name(enum stage s)
{
	assert(s >= 0 && s < STAGE__COUNT);
	switch (s) {
	case STAGE_POOL:
		return "pool";
	case STAGE_VICTIMS:
		return "victims";
	case STAGE_VARIANTS:
		return "variants";
	default:
		return table[s].name;
	}
}

bool stage_is_enabled(enum stage s, const struct policy *policy)
{
	assert(s >= 0 && s < STAGE_DECIDE__COUNT);
	return !table[s].enabled || table[s].enabled(policy);
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

static inline void run_plain(struct tick *t)
{
	for (t->signal = 0; t->signal < t->policy->n_signals; t->signal++)
		run_one_signal(t);
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
	if (t->policy->guards.set || t->policy->formulas)
		run_guarded(t);
	else
		run_plain(t);
}

static inline void run_stages(struct tick *t, enum stage first, enum stage last)
{
	UNROLL
	for (int s = (int)first; s <= (int)last; s++) {
		const struct stage_row *row = &table[s];
		if ((!row->enabled || row->enabled(t->policy)) && !(row->skip_on_hold && t->hold) &&
		    !(row->skip_out_of_bounds && t->out_of_bounds))
			row->run(t);
	}
}

void pipeline_run(struct tick *t)
{
	schedule_observe(t);
	run_signal_stages(t);
	if (t->policy->guards.gain.set)
		gain_observe(t);
	run_stages(t, STAGE_PANIC, STAGE_OBJECTIVE);
	if (has_idle(t->policy))
		idle_observe(t);
	fallback_observe(t);
	bounds_observe(t);
	run_stages(t, STAGE_COMBINE, STAGE_CAPACITY);
	if (t->decision->driver < 0)
		t->decision->driver = (int32_t)t->decision->n_trace - 1; // the entry that explains the decision was cut
	run_stages(t, STAGE_MODE, STAGE_MODE);
}
