// SPDX-License-Identifier: Apache-2.0
// Compares the stamps in the state with the present, so that a wall clock that is set neither freezes the target nor
// bypasses its limits.

#include <stddef.h>
#include <string.h>

#include "policies/engine/decide_state.h"
#include "policies/engine/number.h"
#include "policies/engine/objective_state.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

// ---- stamps of the engine's own actions ----

// One walk over all stamps serves both purposes: to move them, and to limit them to the present.
struct mover {
	int64_t step_ms;   // to be added
	int64_t latest_ms; // later stamps are set to this
	int64_t newest_ms; // of all stamps, as they were
};

static int64_t moved(struct mover *m, int64_t stamp_ms)
{
	m->newest_ms = i64_max(m->newest_ms, stamp_ms);
	if (stamp_ms == TIME_NONE)
		return TIME_NONE;
	stamp_ms = i64_max(i64_add(stamp_ms, m->step_ms), TIME_NONE + 1); // the smallest value means "never"
	return stamp_ms < m->latest_ms ? stamp_ms : m->latest_ms;
}

static void move_history(struct mover *m, struct history_mark *marks, const struct history *h)
{
	for (uint32_t i = h->start; i < h->start + h->len; i++) {
		marks[i].first_ms = moved(m, marks[i].first_ms);
		marks[i].last_ms = moved(m, marks[i].last_ms);
	}
}

static void move_stamps(struct mover *m, struct state_header *s)
{
	s->last_now_ms = moved(m, s->last_now_ms);
	s->last_scale_ms = moved(m, s->last_scale_ms);
	s->withdrawn_ms = moved(m, s->withdrawn_ms);
	if (s->recommendations.len > 0)
		move_history(m, state_marks(s, &s->recommendations), &s->recommendations);
	if (s->events.len > 0)
		move_history(m, state_marks(s, &s->events), &s->events);
	for (uint32_t i = 0; i < s->startup.n_orders; i++)
		s->startup.orders[i].time_ms = moved(m, s->startup.orders[i].time_ms);
	s->idle.quiet_since_ms = moved(m, s->idle.quiet_since_ms);
	s->idle.first_ms = moved(m, s->idle.first_ms);
	s->idle.unready_ms = moved(m, s->idle.unready_ms);
	s->panic.over_ms = moved(m, s->panic.over_ms);
	s->unhealthy.fewer_since_ms = moved(m, s->unhealthy.fewer_since_ms);
}

static void move_objective(struct mover *m, struct state_header *s)
{
	if (s->objective_offset > 0)
		state_objective(s)->simulated_ms = moved(m, state_objective(s)->simulated_ms);
}

// ---- the clock was set ----

// A forecast that can be refilled from its source starts empty, because the stamps of its samples may be of either
// clock. A forecast that cannot be refilled continues: load recurs by the day that the new clock shows.
static void move_forecast(const struct policy *policy, struct state_header *s, int64_t step_ms)
{
	struct forecast *f = &s->forecast;
	int64_t unused_ms;
	if (f->n_slots == 0)
		return;
	skill_drop_pending(state_skill(s, f)); // their due times are of the old clock
	if (!forecast_move(f, state_slots(s, f), &policy->forecast, step_ms))
		return;
	if (decide_forecast_history_ms(policy, &unused_ms) > 0) {
		forecast_init(f, state_slots(s, f), f->slots_offset, f->n_slots);
		skill_reset(state_skill(s, f));
	}
}

static void forget_signals(const struct policy *policy, struct state_header *s)
{
	for (size_t i = 0; i < policy->n_signals; i++) {
		struct state_signal *g = state_signal(s, i);
		g->up_since_ms = g->down_since_ms = TIME_NONE;
		window_init(&g->window, g->window.samples_offset, g->window.cap);
	}
}

void decide_clock_was_set(const struct policy *policy, void *state, int64_t step_ms)
{
	struct state_header *s = state_of(policy, state);
	struct mover m = {.step_ms = step_ms, .latest_ms = INT64_MAX};
	if (step_ms == 0)
		return;
	move_stamps(&m, s);
	move_objective(&m, s);
	forget_signals(policy, s);
	schedule_cache_init(&s->schedule);
	move_forecast(policy, s, step_ms);
	s->clock_step_ms = i64_add(s->clock_step_ms, step_ms);
}

void decide_note_future_stamp(const struct policy *policy, void *state, int64_t ahead_ms)
{
	struct state_header *s = state_of(policy, state);
	s->clamped_ms = i64_max(s->clamped_ms, ahead_ms);
}

// ---- the present ----

// A restored stamp may be of another clock.
static void hold_back(const struct policy *policy, struct state_header *s, int64_t now_ms)
{
	struct mover m = {.latest_ms = now_ms, .newest_ms = TIME_NONE};
	move_stamps(&m, s);
	if (m.newest_ms <= now_ms)
		return;
	move_objective(&m, s);
	decide_note_future_stamp(policy, s, i64_sub(m.newest_ms, now_ms));
}

int64_t clock_step_now(const struct policy *policy, struct state_header *s, int64_t now_ms)
{
	// From now on, every stamp is that of a tick, and moves with the clock.
	if (s->last_now_ms == TIME_NONE) {
		hold_back(policy, s, now_ms);
		return now_ms;
	}
	// The time since the last tick is then unknown: none of it counts.
	if (i64_sub(s->last_now_ms, now_ms) > DECIDE_CLOCK_BACK_MS)
		decide_clock_was_set(policy, s, i64_sub(now_ms, s->last_now_ms));
	return i64_max(now_ms, s->last_now_ms);
}

void clock_step_trace(struct tick *t)
{
	struct state_header *s = t->state;
	int32_t spec = t->observation->spec_replicas;
	struct trace_entry entry = {.stage = STAGE_SOURCES, .signal = -1, .before = spec, .after = spec};
	entry.reason = REASON_CLOCK_SET;
	entry.value = (double)s->clock_step_ms / 1000;
	if (s->clock_step_ms != 0)
		tick_trace(t, &entry);
	entry.reason = REASON_FUTURE_STAMP;
	entry.value = 0;
	entry.duration_ms = s->clamped_ms;
	if (s->clamped_ms != 0)
		tick_trace(t, &entry);
	s->clock_step_ms = s->clamped_ms = 0;
}
