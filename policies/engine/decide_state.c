// SPDX-License-Identifier: Apache-2.0
// The state of the engine: its life, its history, the clock, and its packed form.
#include "policies/engine/decide.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "policies/engine/behavior.h"
#include "policies/engine/number.h"
#include "policies/engine/objective_state.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

_Static_assert(DECIDE_HISTORY_MAX == HISTORY_MARKS_MAX, "the public name of the ceiling");

// ---- shape ----

static uint64_t hash_i64(uint64_t h, int64_t v)
{
	return hash_bytes(h, &v, sizeof v);
}

static uint64_t hash_f64(uint64_t h, double v)
{
	return hash_bytes(h, &v, sizeof v);
}

static uint64_t hash_optional(uint64_t h, const char *s)
{
	return s ? hash_text(h, s) : hash_i64(h, -1);
}

// The meaning of the samples in a window, and the room for them.
static uint64_t hash_window(uint64_t h, const struct policy_signal *g, int64_t interval_ms)
{
	h = hash_optional(hash_optional(h, g->name), g->query ? g->query : g->formula_text);
	h = hash_i64(hash_i64(h, g->series), g->window.set);
	if (!g->window.set)
		return h;
	h = hash_i64(hash_i64(h, g->window.duration_ms), g->window.aggregate);
	return hash_i64(h, window_samples_needed(&g->window, interval_ms));
}

// The thresholds of the sustain timers.
static uint64_t hash_thresholds(uint64_t h, const struct policy_signal *g)
{
	h = hash_i64(hash_i64(h, g->target.set), g->watermarks.set);
	if (g->target.set) {
		h = hash_i64(h, g->target.type);
		h = hash_f64(hash_f64(h, g->target.value), g->target.tolerance_ratio);
	}
	if (g->watermarks.set) {
		h = hash_i64(h, g->watermarks.algorithm);
		h = hash_f64(hash_f64(h, g->watermarks.high), g->watermarks.low);
		h = hash_f64(h, g->watermarks.tolerance_ratio);
	}
	return h;
}

static uint64_t hash_forecast(uint64_t h, const struct policy *policy)
{
	const struct policy_forecast *f = &policy->forecast;
	if (!f->set)
		return h;
	h = hash_i64(hash_optional(h, f->signal), f->model);
	h = hash_i64(h, f->model == FORECAST_LINEAR ? f->window_ms : f->season_ms);
	return hash_i64(h, forecast_slots_needed(f, policy->interval_ms));
}

// The schedules that the cached result depends on.
static uint64_t hash_schedules(uint64_t h, const struct policy *policy)
{
	h = hash_i64(h, (int64_t)policy->n_schedules);
	for (size_t i = 0; i < policy->n_schedules; i++) {
		const struct policy_schedule *s = &policy->schedules[i];
		h = hash_optional(hash_optional(hash_optional(h, s->start_text), s->end_text), s->time_zone);
		if (s->combine == SCHEDULE_MAX)
			h = hash_i64(h, s->replicas_set ? s->replicas : s->min_set ? s->min_replicas : 0);
	}
	return h;
}

// ---- life ----

// The record of the forecast, and its slots.
static size_t forecast_bytes(const struct policy *policy)
{
	uint32_t n = forecast_doubles_needed(&policy->forecast, policy->interval_ms);
	return n > 0 ? sizeof(struct skill) + n * sizeof(double) : 0;
}

static void init_forecast(const struct policy *policy, struct state_header *s, uint64_t offset)
{
	uint32_t n_slots = forecast_slots_needed(&policy->forecast, policy->interval_ms);
	if (n_slots == 0)
		return;
	memset(state_at(s, offset), 0, forecast_bytes(policy));
	offset += sizeof(struct skill);
	forecast_init(&s->forecast, state_at(s, offset), n_slots);
	skill_reset(forecast_skill(&s->forecast));
}

// The offsets of the parts of the block. Arrays that fill at once come first, arrays that mostly stay empty last, so
// that whole pages are never touched.
struct layout {
	uint64_t forecast, objective, gain, windows, recommendations, events, end;
	uint32_t n_recommendations, n_events;
};

static struct layout layout_of(const struct policy *policy)
{
	struct layout l = {.forecast = sizeof(struct state_header) + policy->n_signals * sizeof(struct state_signal)};
	l.objective = l.forecast + forecast_bytes(policy);
	l.gain = l.objective + (policy->objective.set ? sizeof(struct objective_state) : 0);
	l.windows = l.recommendations = l.gain + (policy->guards.gain.set ? sizeof(struct marginal_gain) : 0);
	for (size_t i = 0; i < policy->n_signals; i++)
		l.recommendations += window_samples_needed(&policy->signals[i].window, policy->interval_ms) *
		                     sizeof(struct window_sample);
	l.n_recommendations = history_marks_needed(behavior_recommendations_keep_ms(policy), policy->interval_ms);
	l.n_events = history_marks_needed(behavior_events_keep_ms(policy), policy->interval_ms);
	l.events = l.recommendations + l.n_recommendations * sizeof(struct history_mark);
	l.end = l.events + l.n_events * sizeof(struct history_mark);
	return l;
}

static uint64_t shape_of(const struct policy *policy)
{
	const struct layout l = layout_of(policy);
	const struct policy_objective *o = &policy->objective;
	const struct policy_gain_guard *g = &policy->guards.gain;
	uint64_t h = hash_schedules(hash_i64(HASH_START, (int64_t)policy->n_signals), policy);
	h = hash_i64(hash_i64(h, l.n_recommendations), l.n_events);
	for (size_t i = 0; i < policy->n_signals; i++) {
		h = hash_window(h, &policy->signals[i], policy->interval_ms);
		h = hash_thresholds(h, &policy->signals[i]);
	}
	h = hash_i64(hash_forecast(h, policy), o->set);
	// The signals that something was learnt from. The goal and the bound may change: the records fade to the new
	// one.
	h = o->set ? hash_optional(hash_optional(h, o->demand), o->backlog) : h;
	h = hash_i64(h, g->set);
	return g->set ? hash_optional(h, g->signal) : h;
}

size_t decide_state_bytes(const struct policy *policy)
{
	assert(policy->n_signals <= POLICY_SIGNALS_MAX);
	return layout_of(policy).end;
}

void decide_state_init(const struct policy *policy, void *state)
{
	const struct layout l = layout_of(policy);
	struct state_header *s = state;
	// Marks and samples beyond their length are never read; pages that are never written take no memory.
	memset(state, 0, sizeof *s + policy->n_signals * sizeof(struct state_signal));
	*s = (struct state_header){
	        .magic = STATE_MAGIC,
	        .version = STATE_VERSION,
	        .bytes = l.end,
	        .shape = shape_of(policy),
	        .last_now_ms = TIME_NONE,
	        .last_scale_ms = TIME_NONE,
	        .withdrawn_ms = TIME_NONE,
	        .startup = STARTUP_INIT,
	        .idle = {TIME_NONE, TIME_NONE, TIME_NONE},
	        .panic = PANIC_NONE,
	        .unhealthy = {.fewer_since_ms = TIME_NONE, .added = -1},
	        .schedule = SCHEDULE_CACHE_EMPTY,
	        .n_signals = (uint32_t)policy->n_signals,
	};
	init_forecast(policy, s, l.forecast);
	if (policy->objective.set) {
		s->objective_offset = l.objective;
		objective_state_init(state_objective(s));
	}
	if (policy->guards.gain.set) {
		s->gain_offset = l.gain;
		*state_gain(s) = (struct marginal_gain){0};
	}
	uint64_t offset = l.windows;
	for (size_t i = 0; i < policy->n_signals; i++) {
		struct state_signal *g = state_signal(s, i);
		g->up_since_ms = g->down_since_ms = TIME_NONE;
		uint32_t cap = window_samples_needed(&policy->signals[i].window, policy->interval_ms);
		window_init(&g->window, state_at(s, offset), cap);
		offset += cap * sizeof(struct window_sample);
	}
	assert(offset == l.recommendations);
	history_init(&s->recommendations, state_at(s, l.recommendations), l.n_recommendations);
	history_init(&s->events, state_at(s, l.events), l.n_events);
}

bool decide_state_matches(const struct policy *policy, const void *state, size_t bytes)
{
	const struct state_header *s = state;
	return bytes >= sizeof *s && bytes == decide_state_bytes(policy) && s->magic == STATE_MAGIC &&
	       s->version == STATE_VERSION && s->bytes == bytes && s->n_signals == policy->n_signals &&
	       s->shape == shape_of(policy);
}

// ---- history ----

void decide_record_scale(const struct policy *policy, void *state, int64_t now_ms, int32_t from_replicas,
                         int32_t to_replicas)
{
	struct state_header *s = state_of(policy, state);
	if (from_replicas == to_replicas)
		return;
	int64_t change = (int64_t)to_replicas - from_replicas;
	int32_t added = change > 0 ? i32_from_i64(change) : 0;
	int32_t removed = change < 0 ? i32_from_i64(-change) : 0;
	history_add_event(&s->events, now_ms, added, removed, behavior_events_keep_ms(policy));
	s->last_scale_ms = i64_max(s->last_scale_ms, now_ms);
	struct unhealthy *u = &s->unhealthy;
	if (u->added >= 0) // without a decision, as after a restart, the number of replacements stays
		u->replacements = i32_max(i32_min(i32_from_i64((int64_t)to_replicas - u->wanted), u->added), 0);
	if (added > 0)
		startup_record_order(&s->startup, now_ms, added);
}

void decide_record_last_scale(const struct policy *policy, void *state, int64_t time_ms)
{
	struct state_header *s = state_of(policy, state);
	s->last_scale_ms = i64_max(s->last_scale_ms, time_ms);
}

void decide_record_withdrawal(const struct policy *policy, void *state, int64_t time_ms)
{
	struct state_header *s = state_of(policy, state);
	s->withdrawn_ms = i64_max(s->withdrawn_ms, time_ms);
}

int64_t decide_withdrawn_ms(const struct policy *policy, const void *state)
{
	int64_t ms = state_of_const(policy, state)->withdrawn_ms;
	return ms == TIME_NONE ? -1 : ms;
}

void decide_record_replacements(const struct policy *policy, void *state, int32_t replicas)
{
	if (policy->guards.unhealthy == UNHEALTHY_REPLACE) // else nothing would ever count them again
		state_of(policy, state)->unhealthy.replacements = i32_max(replicas, 0);
}

void decide_adopt_scale(const struct policy *policy, void *state, int32_t change)
{
	struct unhealthy *u = &state_of(policy, state)->unhealthy;
	if (policy->guards.unhealthy == UNHEALTHY_REPLACE && u->added < 0)
		u->unrecorded = change;
}

int32_t decide_replacements(const struct policy *policy, const void *state)
{
	return state_of_const(policy, state)->unhealthy.replacements;
}

void decide_record_recommendation(const struct policy *policy, void *state, int64_t time_ms, int32_t replicas)
{
	struct state_header *s = state_of(policy, state);
	history_add_recommendation(&s->recommendations, time_ms, replicas, behavior_recommendations_keep_ms(policy));
	s->seeded = 1;
}

void decide_record_start(const struct policy *policy, void *state, int64_t start_ms)
{
	for (int i = policy->startup.given ? STARTUP_STARTS_TRUSTED : 1; i > 0; i--)
		startup_record_start(&state_of(policy, state)->startup, start_ms);
}

int64_t decide_startup_ms(const struct policy *policy, const void *state)
{
	const struct startup *s = &state_of_const(policy, state)->startup;
	return startup_is_learnt(s, policy) ? startup_ms(s, policy) : -1;
}

size_t decide_recommendations(const struct policy *policy, const void *state, struct decide_recommendation *ret,
                              size_t max)
{
	const struct state_header *s = state_of_const(policy, state);
	size_t n = 0;
	for (uint32_t i = 0; i < s->recommendations.len && n < max; i++) {
		const struct history_mark *m = history_at(&s->recommendations, i);
		ret[n++] = (struct decide_recommendation){m->last_ms, m->hi};
		if (m->lo != m->hi && n < max)
			ret[n++] = (struct decide_recommendation){m->last_ms, m->lo};
	}
	return n;
}

size_t decide_scale_events(const struct policy *policy, const void *state, struct decide_scale_event *ret, size_t max)
{
	const struct state_header *s = state_of_const(policy, state);
	size_t n = 0;
	for (uint32_t i = 0; i < s->events.len && n < max; i++) {
		const struct history_mark *m = history_at(&s->events, i);
		if (m->lo > 0)
			ret[n++] = (struct decide_scale_event){m->last_ms, m->lo};
		if (m->hi > 0 && n < max)
			ret[n++] = (struct decide_scale_event){m->last_ms, -m->hi};
	}
	return n;
}

int64_t decide_last_scale_ms(const struct policy *policy, const void *state)
{
	int64_t last_ms = state_of_const(policy, state)->last_scale_ms;
	return last_ms == TIME_NONE ? -1 : last_ms;
}

// ---- change of the policy ----

static bool same_window(const struct policy_signal *a, const struct policy_signal *b)
{
	return hash_window(HASH_START, a, 1) == hash_window(HASH_START, b, 1);
}

static void migrate_signal(const struct policy *old_policy, const struct state_header *old, size_t from,
                           const struct policy *new_policy, struct state_header *s, size_t to)
{
	const struct policy_signal *old_signal = &old_policy->signals[from];
	const struct policy_signal *new_signal = &new_policy->signals[to];
	const struct state_signal *o = state_at_const(old, sizeof *old + from * sizeof(struct state_signal));
	struct state_signal *n = state_signal(s, to);
	if (hash_thresholds(HASH_START, old_signal) == hash_thresholds(HASH_START, new_signal)) {
		n->up_since_ms = o->up_since_ms;
		n->down_since_ms = o->down_since_ms;
	}
	n->failures = o->failures;
	if (n->window.cap == 0)
		return;
	for (uint32_t i = 0; i < o->window.len; i++) {
		const struct window_sample *w = window_at(&o->window, i);
		window_push(&n->window, &new_signal->window, w->time_ms, w->value, w->time_ms);
	}
	n->window.covered_since_ms = o->window.covered_since_ms;
	n->window.newest_raw_ms = o->window.newest_raw_ms;
	n->window.newest_dropped_ms = i64_max(n->window.newest_dropped_ms, o->window.newest_dropped_ms);
	n->window.newest_limited_ms = o->window.newest_limited_ms;
}

static void migrate_forecast(const struct policy *old_policy, const struct state_header *old,
                             const struct policy *new_policy, struct state_header *s)
{
	if (s->forecast.n_slots == 0 || s->forecast.n_slots != old->forecast.n_slots ||
	    !forecast_is_same(&old_policy->forecast, &new_policy->forecast) ||
	    !same_window(&old_policy->signals[old_policy->forecast.signal_index],
	                 &new_policy->signals[new_policy->forecast.signal_index]))
		return;
	uint64_t offset = s->forecast.slots_offset;
	s->forecast = old->forecast;
	s->forecast.slots_offset = offset;
	memcpy(forecast_skill(&s->forecast), forecast_skill(&old->forecast), forecast_bytes(new_policy));
}

static bool same_signal(const struct policy *a, size_t of_a, const struct policy *b, size_t of_b)
{
	return same_window(&a->signals[of_a], &b->signals[of_b]);
}

void decide_state_migrate(const struct policy *old_policy, const void *old_state, const struct policy *new_policy,
                          void *new_state)
{
	const struct state_header *old = state_of_const(old_policy, old_state);
	struct state_header *s = state_of(new_policy, new_state);
	s->last_now_ms = old->last_now_ms;
	s->last_scale_ms = old->last_scale_ms;
	s->withdrawn_ms = old->withdrawn_ms;
	s->seeded = old->seeded;
	s->startup = old->startup;
	if (new_policy->guards.unhealthy == UNHEALTHY_REPLACE)
		s->unhealthy = old->unhealthy;
	s->fallback = old->fallback;
	s->idle.first_ms = old->idle.first_ms;
	if (idle_is_same(&old_policy->idle, &new_policy->idle)) {
		s->idle.quiet_since_ms = old->idle.quiet_since_ms;
		s->idle.unready_ms = old->idle.unready_ms;
	}
	for (uint32_t i = 0; i < old->recommendations.len; i++) {
		const struct history_mark *m = history_at(&old->recommendations, i);
		decide_record_recommendation(new_policy, s, m->last_ms, m->hi);
		decide_record_recommendation(new_policy, s, m->last_ms, m->lo);
	}
	for (uint32_t i = 0; i < old->events.len; i++) {
		const struct history_mark *m = history_at(&old->events, i);
		history_add_event(&s->events, m->last_ms, m->lo, m->hi, behavior_events_keep_ms(new_policy));
	}
	migrate_forecast(old_policy, old, new_policy, s);
	const struct policy_objective *of_old = &old_policy->objective, *of_new = &new_policy->objective;
	if (of_old->set && of_new->set &&
	    same_signal(old_policy, of_old->demand_index, new_policy, of_new->demand_index) &&
	    same_signal(old_policy, of_old->backlog_index, new_policy, of_new->backlog_index))
		memcpy(state_objective(s), state_at_const(old, old->objective_offset), sizeof(struct objective_state));
	const struct policy_gain_guard *old_gain = &old_policy->guards.gain, *new_gain = &new_policy->guards.gain;
	if (old_gain->set && new_gain->set &&
	    same_signal(old_policy, old_gain->signal_index, new_policy, new_gain->signal_index))
		memcpy(state_gain(s), state_at_const(old, old->gain_offset), sizeof(struct marginal_gain));
	const struct policy_panic *old_panic = &old_policy->panic, *new_panic = &new_policy->panic;
	if (old_panic->set && new_panic->set &&
	    same_signal(old_policy, old_panic->signal_index, new_policy, new_panic->signal_index))
		s->panic = old->panic;
	for (size_t to = 0; to < new_policy->n_signals; to++)
		for (size_t from = 0; from < old_policy->n_signals; from++)
			if (same_window(&old_policy->signals[from], &new_policy->signals[to])) {
				migrate_signal(old_policy, old, from, new_policy, s, to);
				break;
			}
}

// ---- the clock: stamps of the engine's own actions ----

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

static void move_history(struct mover *m, const struct history *h)
{
	for (uint32_t i = 0; i < h->len; i++) {
		struct history_mark *mark = history_at(h, i);
		mark->first_ms = moved(m, mark->first_ms);
		mark->last_ms = moved(m, mark->last_ms);
	}
}

static void move_stamps(struct mover *m, struct state_header *s)
{
	s->last_now_ms = moved(m, s->last_now_ms);
	s->last_scale_ms = moved(m, s->last_scale_ms);
	s->withdrawn_ms = moved(m, s->withdrawn_ms);
	move_history(m, &s->recommendations);
	move_history(m, &s->events);
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
	skill_drop_pending(forecast_skill(f)); // their due times are of the old clock
	if (!forecast_move(f, &policy->forecast, step_ms))
		return;
	if (decide_forecast_history_ms(policy, &unused_ms) > 0) {
		forecast_init(f, forecast_slots(f), f->n_slots);
		skill_reset(forecast_skill(f));
	}
}

static void forget_signals(const struct policy *policy, struct state_header *s)
{
	for (size_t i = 0; i < policy->n_signals; i++) {
		struct state_signal *g = state_signal(s, i);
		g->up_since_ms = g->down_since_ms = TIME_NONE;
		window_init(&g->window, window_samples(&g->window), g->window.cap);
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
	s->schedule = (struct schedule_cache)SCHEDULE_CACHE_EMPTY;
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

// ---- packing ----

// The unused room of windows and histories is most of a block, and a policy that waits for its next tick does not need
// it. The parts in use are stored one after the other, in the order of the block. Most of their words are 0 or
// TIME_NONE, because a policy uses few of the features that keep a state; such a word takes two bits.

// One walk serves packing and unpacking, so that they cannot differ.
enum direction { COUNT, PACK, UNPACK };

struct walk {
	enum direction direction;
	unsigned char *packed;
	size_t n; // bytes so far
};

// The kind of a word, in two bits of its group's head.
enum word { WORD_ZERO, WORD_NONE, WORD_STORED };

#define GROUP_WORDS 32 // each group has a head of 64 bits

static enum word kind_of(int64_t word)
{
	return word == 0 ? WORD_ZERO : word == TIME_NONE ? WORD_NONE : WORD_STORED;
}

static void put_group(struct walk *w, const unsigned char *in_block, size_t n)
{
	uint64_t head = 0;
	size_t at = w->n + sizeof head;
	for (size_t i = 0; i < n; i++) {
		int64_t word;
		memcpy(&word, in_block + i * sizeof word, sizeof word);
		head |= (uint64_t)kind_of(word) << (2 * i);
		if (kind_of(word) != WORD_STORED)
			continue;
		if (w->direction == PACK)
			memcpy(w->packed + at, &word, sizeof word);
		at += sizeof word;
	}
	if (w->direction == PACK)
		memcpy(w->packed + w->n, &head, sizeof head);
	w->n = at;
}

static void take_group(struct walk *w, unsigned char *in_block, size_t n)
{
	uint64_t head;
	memcpy(&head, w->packed + w->n, sizeof head);
	w->n += sizeof head;
	for (size_t i = 0; i < n; i++) {
		enum word kind = (enum word)(head >> (2 * i) & 3);
		int64_t word = kind == WORD_NONE ? TIME_NONE : 0;
		if (kind == WORD_STORED) {
			memcpy(&word, w->packed + w->n, sizeof word);
			w->n += sizeof word;
		}
		memcpy(in_block + i * sizeof word, &word, sizeof word);
	}
}

// `bytes` is a multiple of 8.
static void copy(struct walk *w, void *in_block, size_t bytes)
{
	unsigned char *at = in_block;
	assert(bytes % sizeof(int64_t) == 0);
	for (size_t words = bytes / sizeof(int64_t); words > 0;) {
		size_t n = words < GROUP_WORDS ? words : GROUP_WORDS;
		if (w->direction == UNPACK)
			take_group(w, at, n);
		else
			put_group(w, at, n);
		at += n * sizeof(int64_t);
		words -= n;
	}
}

static void walk_window(struct walk *w, const struct window *window)
{
	uint32_t to_end = window->cap - window->head, n = window->len;
	uint32_t first = n < to_end ? n : to_end;
	copy(w, window_samples(window) + window->head, first * sizeof(struct window_sample));
	copy(w, window_samples(window), (n - first) * sizeof(struct window_sample));
}

static void walk_history(struct walk *w, const struct history *history)
{
	if (history->len > 0)
		copy(w, history_at(history, 0), history->len * sizeof(struct history_mark));
}

// Copies the header and the signals first: they contain the places of everything else.
static void walk(struct walk *w, const struct policy *policy, struct state_header *s)
{
	copy(w, s, sizeof *s + policy->n_signals * sizeof(struct state_signal));
	assert(state_of(policy, s) == s);
	if (s->forecast.n_slots > 0) {
		copy(w, forecast_skill(&s->forecast), sizeof(struct skill));
		copy(w, forecast_slots(&s->forecast), forecast_bytes(policy) - sizeof(struct skill));
	}
	if (s->objective_offset > 0)
		copy(w, state_objective(s), sizeof(struct objective_state));
	if (s->gain_offset > 0)
		copy(w, state_gain(s), sizeof(struct marginal_gain));
	for (size_t i = 0; i < policy->n_signals; i++)
		walk_window(w, &state_signal(s, i)->window);
	walk_history(w, &s->recommendations);
	walk_history(w, &s->events);
}

size_t decide_state_packed_bytes(const struct policy *policy, void *state)
{
	struct walk w = {.direction = COUNT};
	walk(&w, policy, state);
	return w.n;
}

void decide_state_pack(const struct policy *policy, void *state, void *ret_packed)
{
	struct walk w = {.direction = PACK, .packed = ret_packed};
	walk(&w, policy, state);
}

void decide_state_unpack(const struct policy *policy, void *packed, void *ret_state)
{
	struct walk w = {.direction = UNPACK, .packed = packed};
	walk(&w, policy, ret_state);
}
