// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws that every decision keeps, on random policies and random traces: bounds, hold without data,
// equal inputs give equal answers, a look changes nothing, a restart changes nothing, more load never means fewer
// replicas, no scale-down inside the stabilization window of a scale-up.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/err.h"
#include "base/num.h"
#include "policies/schedule.h"
#include "test/support/engine.h"

#define TICKS_DEFAULT 100000
#define TICKS_MAX     1000000000
#define TICKS_A_TRACE 250

struct random {
	uint64_t s;
};

static uint64_t next(struct random *r) // splitmix64
{
	uint64_t z = r->s += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}
static int32_t up_to(struct random *r, int32_t n) // 0..n
{
	return (int32_t)(next(r) % ((uint64_t)n + 1));
}
static bool chance(struct random *r, int32_t percent)
{
	return up_to(r, 99) < percent;
}

static int64_t from_environment(const char *name, int64_t fallback, int64_t max)
{
	const char *text = getenv(name);
	int64_t v = fallback;
	struct err e;
	if (text && num_parse_i64(text, strlen(text), 0, max, &v, &e) < 0)
		fail_msg("%s: %s", name, e.msg);
	return v;
}

static uint64_t seed(void)
{
	return (uint64_t)from_environment("PROP_SEED", 20260105, INT64_MAX);
}

static int64_t ticks(void)
{
	return from_environment("PROP_TICKS", TICKS_DEFAULT, TICKS_MAX);
}

// ---- a random policy, state and load ----

static void random_signal(struct random *r, struct engine *e)
{
	struct policy_signal *s;
	double target = 1 + up_to(r, 40) / 4.0;
	switch (up_to(r, 4)) {
	case 0:
		s = engine_add_value(e, "s", target);
		break;
	case 1:
		s = engine_add_value(e, "s", target);
		s->target.type = TARGET_AVERAGE_VALUE;
		break;
	case 2:
		s = engine_add_replicas(e, "s");
		break;
	case 3:
		s = engine_add_value(e, "s", target);
		s->target.type = TARGET_PODS;
		break;
	default:
		s = engine_add_watermarks(e, "s", target / 2, target, up_to(r, 1));
		break;
	}
	s->target.tolerance_ratio = s->watermarks.tolerance_ratio = up_to(r, 3) / 10.0;
	if (s->target.type != TARGET_PODS && chance(r, 40))
		s->window = (struct policy_window){true, 15000 * (1 + up_to(r, 30)),
		                                   up_to(r, WINDOW_AGGREGATE__COUNT - 1), up_to(r, 3)};
	if (chance(r, 30))
		s->sustain = (struct policy_sustain){15000 * up_to(r, 4), 15000 * up_to(r, 10)};
	if (chance(r, 20))
		s->on_missing = up_to(r, ON_MISSING__COUNT - 1);
}

static void random_rates(struct random *r, struct engine *e, int direction)
{
	for (int i = up_to(r, 2); i > 0; i--)
		engine_add_rate(e, direction, up_to(r, 1), 1 + up_to(r, 120), 15000 * (1 + up_to(r, 20)));
}

static void random_schedules(struct random *r, struct engine *e)
{
	static const char *const texts[][2] = {
	        {"*/20 * * * *", "10-59/20 * * * *"}, {"5/30 * * * *", "*/12 * * * *"}, {"0 * * * *", "45 * * * *"}};
	if (!chance(r, 25))
		return;
	e->policy.schedules = e->schedules;
	e->policy.n_schedules = (size_t)up_to(r, 1) + 1;
	for (size_t i = 0; i < e->policy.n_schedules; i++) {
		struct policy_schedule *s = &e->schedules[i];
		const char *const *text = texts[up_to(r, 2)];
		*s = (struct policy_schedule){.name = "s", .start_text = text[0], .end_text = text[1]};
		if (cron_parse(&s->start, text[0]) || cron_parse(&s->end, text[1]))
			fail();
		s->min_set = chance(r, 60);
		s->min_replicas = 1 + up_to(r, 8);
		s->max_set = chance(r, 40);
		s->max_replicas = s->min_replicas + up_to(r, 20);
		s->replicas_set = !s->min_set && !s->max_set;
		s->replicas = up_to(r, 6);
	}
}

static void random_engine(struct random *r, struct engine *e, int n_signals)
{
	engine_init(e, 1 + up_to(r, 30));
	e->policy.min_replicas = up_to(r, 5);
	e->policy.max_replicas = e->policy.min_replicas + 1 + up_to(r, 60);
	e->policy.replica_multiple = chance(r, 30) ? 1 + up_to(r, 4) : 1;
	e->policy.combine = up_to(r, 1);
	e->policy.scale_up.select = chance(r, 10) ? SELECT_DISABLED : up_to(r, 1);
	e->policy.scale_down.select = chance(r, 10) ? SELECT_DISABLED : up_to(r, 1);
	if (chance(r, 40))
		e->policy.scale_up.stabilization_window_ms = 15000 * up_to(r, 20);
	if (chance(r, 60))
		e->policy.scale_down.stabilization_window_ms = 15000 * up_to(r, 40);
	if (chance(r, 30))
		e->policy.cooldown = (struct policy_sustain){15000 * up_to(r, 5), 15000 * up_to(r, 20)};
	random_schedules(r, e);
	if (chance(r, 25))
		e->policy.idle = (struct policy_idle){.set = true,
		                                      .after_ms = 15000 * up_to(r, 4),
		                                      .initial_cooldown_ms = 15000 * up_to(r, 2),
		                                      .replicas = chance(r, 70) ? 0 : e->policy.min_replicas / 2,
		                                      .activation = {"s", up_to(r, 40)}};
	if (chance(r, 25))
		e->policy.fallback = (struct policy_fallback){.set = true,
		                                              .failure_threshold = up_to(r, 3),
		                                              .replicas = 1 + up_to(r, 40),
		                                              .behavior = up_to(r, FALLBACK_CURRENT_IF_LOWER),
		                                              .when = up_to(r, 1)};
	if (chance(r, 30))
		e->policy.startup = (struct policy_startup){true, chance(r, 50), 15000 * (1 + up_to(r, 20))};
	if (chance(r, 25))
		e->policy.guards = (struct policy_guards){.set = true,
		                                          .max_pending_set = chance(r, 50),
		                                          .max_pending_pods = up_to(r, 4),
		                                          .min_available_percent = chance(r, 30) ? up_to(r, 100) : 0,
		                                          .max_step = chance(r, 40) ? 1 + up_to(r, 8) : 0};
	random_rates(r, e, +1);
	random_rates(r, e, -1);
	for (int i = 0; i < n_signals; i++)
		random_signal(r, e);
	if (chance(r, 25) && e->signals[0].window.set)
		e->policy.panic = (struct policy_panic){.set = true,
		                                        .signal = "s",
		                                        .window_ms = 15000 * (1 + up_to(r, 3)),
		                                        .threshold = 1.5 + up_to(r, 4) / 4.0};
	if (chance(r, 25) && e->signals[0].target.type != TARGET_PODS)
		e->policy.forecast = (struct policy_forecast){.set = true,
		                                              .signal = "s",
		                                              .model = up_to(r, 1),
		                                              .season_ms = 15000 * (4 + up_to(r, 40)),
		                                              .window_ms = 15000 * (4 + up_to(r, 40)),
		                                              .horizon_ms = chance(r, 30) ? FORECAST_HORIZON_STARTUP
		                                                                          : 15000 * (1 + up_to(r, 8)),
		                                              .use = up_to(r, 1),
		                                              .band = up_to(r, 2),
		                                              .alpha = up_to(r, 10) / 10.0,
		                                              .beta = up_to(r, 10) / 10.0,
		                                              .gamma = up_to(r, 10) / 10.0};
	engine_start(e);
}

// A copy with a state of its own.
static void engine_copy(struct engine *to, const struct engine *from)
{
	*to = *from;
	to->policy.signals = to->signals;
	if (to->policy.n_schedules > 0)
		to->policy.schedules = to->schedules;
	to->policy.scale_up.rates = to->up;
	to->policy.scale_down.rates = to->down;
	to->seen.signals = to->seen_signals;
	for (size_t i = 0; i < POLICY_SIGNALS_MAX; i++)
		if (to->seen_signals[i].series)
			to->seen_signals[i].series = to->series[i];
	to->state = NULL;
	engine_start(to);
	memcpy(to->state, from->state, decide_state_bytes(&from->policy));
}

// Type Pods: one series each, never of more pods than there are.
static void show(struct engine *e, size_t i, double value, int32_t n_pods)
{
	if (e->signals[i].target.type != TARGET_PODS) {
		engine_show(e, i, value);
		return;
	}
	n_pods = n_pods > e->seen.spec_replicas ? e->seen.spec_replicas : n_pods;
	engine_show_pods(e, i, (size_t)(n_pods > 0 ? n_pods : 1), value, 0.5);
}

static void show_random(struct random *r, struct engine *e, size_t i)
{
	if (chance(r, 4)) {
		engine_show_state(e, i, chance(r, 50) ? OBS_EMPTY : OBS_FAILED);
		return;
	}
	show(e, i, chance(r, 1) ? (double)NAN : up_to(r, 400) / 8.0, up_to(r, ENGINE_SERIES_MAX));
	if (chance(r, 3))
		e->series[i][0].time_ms -= 15000 * up_to(r, 8); // stale, now and then
}

static void advance(struct random *r, struct engine *e)
{
	e->now_ms += chance(r, 90) ? 15000 : 1000 * up_to(r, 400);
}

// The cluster follows, not always at once.
static void follow(struct random *r, struct engine *e)
{
	int32_t before = e->seen.spec_replicas;
	engine_apply(e);
	if (e->seen.spec_replicas != before && chance(r, 30))
		e->seen.ready_replicas = up_to(r, before);
	else if (chance(r, 50))
		e->seen.ready_replicas = e->seen.spec_replicas;
	if (chance(r, 1)) // somebody else scales
		e->seen.spec_replicas = up_to(r, 70);
}

static void fail_at(const char *law, int64_t tick, const struct engine *e)
{
	fail_msg("PROP_SEED=%llu: tick %lld: %s: %d -> %d %s %s (bounds %d..%d)", (unsigned long long)seed(),
	         (long long)tick, law, e->decision.current, e->decision.desired, action_name(e->decision.action),
	         reason_info(e->decision.reason)->name, e->policy.min_replicas, e->policy.max_replicas);
}

// ---- laws ----

static bool same_decision(const struct decision *a, const struct decision *b)
{
	if (a->desired != b->desired || a->action != b->action || a->reason != b->reason || a->driver != b->driver ||
	    a->write != b->write || a->n_trace != b->n_trace || a->n_signals != b->n_signals)
		return false;
	for (size_t i = 0; i < a->n_trace; i++)
		if (a->trace[i].reason != b->trace[i].reason || a->trace[i].before != b->trace[i].before ||
		    a->trace[i].after != b->trace[i].after || a->trace[i].duration_ms != b->trace[i].duration_ms)
			return false;
	for (size_t i = 0; i < a->n_signals; i++)
		if (a->signals[i].state != b->signals[i].state || a->signals[i].proposal != b->signals[i].proposal)
			return false;
	return true;
}

static const char *broken_fallback(const struct engine *e, bool any_ok)
{
	const struct decision *d = &e->decision;
	if (!e->policy.fallback.set)
		return "no fallback without being asked for";
	bool is_asleep = e->policy.idle.set && d->current == e->policy.idle.replicas; // one signal counts there
	if (any_ok && !is_asleep && e->policy.fallback.when == FALLBACK_ALL)
		return "a healthy signal is not overridden";
	if (d->current > 0 && d->desired == 0)
		return "an error is not zero";
	return NULL;
}

// Going to the idle level and leaving it, by what the activation signal shows.
static const char *broken_idle(const struct engine *e, bool all_ok)
{
	const struct decision *d = &e->decision;
	const struct policy_idle *idle = &e->policy.idle;
	const struct trace_entry *reached = engine_find(e, REASON_IDLE_REACHED);
	const struct trace_entry *woken = engine_find(e, REASON_ACTIVATED);
	if (!idle->set)
		return reached || woken ? "no idle without being asked for" : NULL;
	if (reached && (!all_ok || !(reached->value <= idle->activation.above)))
		return "idle only when all is seen, and quiet";
	if (reached && e->seen.ready_replicas < d->current)
		return "not idle while starting";
	if (woken && (!(woken->value > idle->activation.above) || d->desired <= d->current))
		return "activity wakes";
	if (!reached && d->current > idle->replicas && d->desired < d->min_replicas)
		return "below minReplicas only when idle";
	return NULL;
}

static const char *broken_startup(const struct engine *e)
{
	const struct decision *d = &e->decision;
	if (d->reason != REASON_REPLICAS_STARTING)
		return NULL;
	const struct trace_entry *t = engine_find(e, REASON_REPLICAS_STARTING);
	if (!e->policy.startup.set || !t || t->count <= 0 || t->after < d->current || t->after >= t->before)
		return "what is starting only shortens a scale-up";
	return NULL;
}

static const char *broken_guard(const struct engine *e)
{
	const struct policy_guards *g = &e->policy.guards;
	const struct decision *d = &e->decision;
	int64_t change = (int64_t)d->desired - d->current;
	if (!g->set || change == 0 || (d->current < d->min_replicas && d->desired == d->min_replicas))
		return NULL;
	if (g->max_step > 0 && (change > g->max_step || change < -g->max_step))
		return "guards.maxStep";
	if (g->max_pending_set && change > 0 && e->seen.ready_replicas >= 0 &&
	    d->current - e->seen.ready_replicas > g->max_pending_pods)
		return "guards.maxPendingPods";
	if ((int64_t)e->seen.ready_replicas * 100 < (int64_t)d->current * g->min_available_percent)
		return "guards.minAvailablePercent";
	return NULL;
}

// The bounds in force are those of the schedule or the policy; only idle lowers the minimum, or raises it to 1.
static const char *broken_bounds(const struct engine *e)
{
	int64_t until_ms;
	int32_t min = e->policy.min_replicas, max = e->policy.max_replicas;
	int32_t i = schedule_at(&e->policy, e->now_ms, &until_ms);
	if (i >= 0)
		schedule_bounds(&e->policy, &e->schedules[i], &min, &max);
	if ((i >= 0) != (engine_find(e, REASON_SCHEDULE_ACTIVE) != NULL) &&
	    e->decision.reason != REASON_SCALING_DISABLED)
		return "the schedule in force is told";
	bool idle = e->policy.idle.set && !(i >= 0 && schedule_keeps_awake(&e->schedules[i]));
	int32_t got = e->decision.min_replicas;
	bool ok = idle ? got == e->policy.idle.replicas || got == (min > 1 ? min : 1) : got == min;
	return ok && e->decision.max_replicas == max ? NULL : "bounds are those of the schedule or the policy";
}

static const char *broken_law(const struct engine *e)
{
	const struct decision *d = &e->decision;
	int32_t min = d->min_replicas, max = d->max_replicas;
	bool is_idle_level = e->policy.idle.set && e->policy.idle.replicas == 0;
	for (size_t i = 0; i < e->policy.n_schedules; i++)
		is_idle_level |= e->schedules[i].replicas_set && e->schedules[i].replicas == 0;
	bool is_disabled = d->current == 0 && e->policy.min_replicas != 0 && !is_idle_level;
	const char *bounds = broken_bounds(e);
	if (bounds)
		return bounds;
	if (is_disabled && (d->desired != 0 || d->reason != REASON_SCALING_DISABLED))
		return "a target scaled to 0 by hand stays there";
	if (!is_disabled && (d->desired < min || d->desired > max))
		return "bounds";
	if (d->write != (d->desired != d->current))
		return "a write is a change";
	enum action action = d->desired > d->current   ? ACTION_SCALE_UP
	                     : d->desired < d->current ? ACTION_SCALE_DOWN
	                                               : d->action;
	if (d->action != action || (d->desired == d->current && action >= ACTION_SCALE_UP))
		return "the action tells the direction";
	if (d->driver < 0 || (size_t)d->driver >= d->n_trace)
		return "there is a driver";
	bool any_ok = false, all_ok = true;
	for (size_t i = 0; i < d->n_signals; i++) {
		any_ok |= d->signals[i].state == SIGNAL_OK;
		all_ok &= d->signals[i].state == SIGNAL_OK || d->signals[i].state == SIGNAL_IGNORED;
	}
	bool is_blind = engine_find(e, REASON_FALLBACK_ACTIVE) != NULL;
	if (is_blind && broken_fallback(e, any_ok))
		return broken_fallback(e, any_ok);
	bool is_idle = engine_find(e, REASON_IDLE) != NULL, is_woken = engine_find(e, REASON_ACTIVATED) != NULL;
	bool inside = (d->current >= min && d->current <= max) || is_woken;
	bool any_up = is_blind || is_woken, any_down = is_blind || engine_find(e, REASON_IDLE_REACHED);
	for (size_t i = 0; i < d->n_signals; i++) {
		any_up |= d->signals[i].proposal > d->current;
		any_down |= d->signals[i].proposal < d->current;
	}
	if (inside && e->policy.combine == COMBINE_MAX && engine_find(e, REASON_PANIC) && d->desired < d->current)
		return "no scale-down in panic";
	if (inside && !any_up && d->desired > d->current)
		return "nobody asks for more: no scale-up";
	if (inside && !any_down && d->desired < d->current)
		return "nobody asks for fewer: no scale-down";
	if (inside && !any_ok && !is_blind && !is_idle && !is_woken && d->action != ACTION_HOLD && !is_disabled)
		return "no data is a hold";
	if (inside && !all_ok && !is_blind && d->desired < d->current)
		return "no scale-down while a signal is missing";
	if (inside && !is_woken && e->policy.scale_up.select == SELECT_DISABLED && d->desired > d->current &&
	    e->policy.replica_multiple == 1)
		return "a disabled direction does not scale";
	const char *law = broken_idle(e, all_ok);
	law = law ? law : broken_startup(e);
	return law ? law : inside ? broken_guard(e) : NULL;
}

static void every_tick_keeps_the_laws(void **state)
{
	struct random r = {seed()};
	struct engine e, twin;
	int64_t n = ticks();
	for (int64_t done = 0; done < n;) {
		random_engine(&r, &e, 1 + up_to(&r, 3));
		engine_copy(&twin, &e);
		size_t bytes = decide_state_bytes(&e.policy);
		for (int i = 0; i < TICKS_A_TRACE; i++, done++) {
			for (size_t k = 0; k < e.policy.n_signals; k++)
				show_random(&r, &e, k);
			if (chance(&r, 2)) { // a restart: only the bytes survive
				engine_done(&twin);
				engine_copy(&twin, &e);
			}
			struct engine look;
			engine_copy(&look, &e);
			engine_tick_as_stamped(&look); // a look at a copy
			engine_tick_as_stamped(&e);
			twin.seen = e.seen;
			twin.now_ms = e.now_ms;
			engine_tick_as_stamped(&twin);
			if (!same_decision(&e.decision, &look.decision) || memcmp(e.state, look.state, bytes) != 0)
				fail_at("plan and run agree", done, &e);
			if (!same_decision(&e.decision, &twin.decision) || memcmp(e.state, twin.state, bytes) != 0)
				fail_at("equal inputs, equal decisions and states", done, &e);
			engine_done(&look);
			const char *law = broken_law(&e);
			if (law)
				fail_at(law, done, &e);
			if (e.decision.write)
				decide_record_scale(&twin.policy, twin.state, twin.now_ms, e.decision.current,
				                    e.decision.desired);
			follow(&r, &e);
			advance(&r, &e);
		}
		engine_done(&e);
		engine_done(&twin);
	}
}

static void more_load_never_means_fewer_replicas(void **state)
{
	struct random r = {seed() + 1};
	struct engine e, more;
	int64_t n = ticks();
	for (int64_t done = 0; done < n;) {
		random_engine(&r, &e, 1);
		for (int i = 0; i < TICKS_A_TRACE; i++, done++) {
			// all there are are ready: with fewer, the HPA's own arithmetic is not monotone
			e.seen.ready_replicas = e.seen.status_replicas = e.seen.spec_replicas;
			double load = up_to(&r, 400) / 8.0, extra = up_to(&r, 80) / 8.0;
			int32_t n_pods = up_to(&r, ENGINE_SERIES_MAX);
			show(&e, 0, load, n_pods);
			engine_copy(&more, &e);
			show(&more, 0, load + extra, n_pods);
			engine_tick(&e);
			engine_tick(&more);
			if (more.decision.desired < e.decision.desired) {
				print_message("load %g: %d, load %g: %d\n", load, e.decision.desired, load + extra,
				              more.decision.desired);
				fail_at("monotone in load", done, &e);
			}
			engine_done(&more);
			engine_apply(&e);
			advance(&r, &e);
		}
		engine_done(&e);
	}
}

static void a_formula_with_max_and_min_is_max_and_min(void **state)
{
	static const char *const names[] = {"a", "b", "c"};
	static const char *const texts[2][3] = {{"a", "max(a, b)", "max(a, b, c)"},
	                                        {"a", "min(a, b)", "min(min(a, b), c)"}};
	struct random r = {seed() + 3};
	struct engine e, twin;
	int64_t n = ticks(), compared = 0;
	for (int64_t done = 0; done < n;) {
		int n_signals = 1 + up_to(&r, 2);
		random_engine(&r, &e, n_signals);
		engine_copy(&twin, &e);
		struct formula_op ops[FORMULA_OPS_MAX];
		struct formula_fault fault;
		const char *text = texts[e.policy.combine == COMBINE_MIN][n_signals - 1];
		twin.policy.combine = COMBINE_FORMULA;
		assert_int_equal(formula_compile(text, strlen(text), names, (size_t)n_signals, ops,
		                                 &twin.policy.formula, &fault),
		                 0);
		for (int i = 0; i < TICKS_A_TRACE; i++, done++) {
			for (size_t k = 0; k < e.policy.n_signals; k++)
				show_random(&r, &e, k);
			memcpy(twin.state, e.state, decide_state_bytes(&e.policy));
			struct engine same;
			engine_copy(&same, &e);
			memcpy(twin.series, e.series, sizeof e.series);
			memcpy(twin.seen_signals, same.seen_signals, sizeof twin.seen_signals);
			for (size_t k = 0; k < e.policy.n_signals; k++)
				if (twin.seen_signals[k].series)
					twin.seen_signals[k].series = twin.series[k];
			struct obs_signal *signals = twin.seen_signals;
			twin.seen = e.seen;
			twin.seen.signals = signals;
			twin.now_ms = e.now_ms;
			engine_tick_as_stamped(&e);
			engine_tick_as_stamped(&twin);
			bool all_ok = true;
			for (size_t k = 0; k < e.policy.n_signals; k++)
				all_ok &= e.decision.signals[k].state == SIGNAL_OK;
			if (all_ok && twin.decision.desired != e.decision.desired)
				fail_at("max(a, b) is Max", done, &e);
			if (!all_ok && twin.decision.desired < e.decision.desired &&
			    twin.decision.desired < e.decision.current)
				fail_at("a formula does not come down on missing data", done, &e);
			compared += all_ok;
			engine_done(&same);
			engine_apply(&e);
			advance(&r, &e);
		}
		engine_done(&e);
		engine_done(&twin);
	}
	assert_true(compared > n / 4); // the law was put to the test
}

static void no_scale_down_inside_the_window_of_a_scale_up(void **state)
{
	struct random r = {seed() + 2};
	struct engine e;
	int64_t n = ticks(), checked = 0;
	for (int64_t done = 0; done < n;) {
		random_engine(&r, &e, 1 + up_to(&r, 2));
		int64_t window_ms = e.policy.scale_down.stabilization_window_ms, up_ms = 0;
		int32_t reached = 0;
		for (int i = 0; i < TICKS_A_TRACE; i++, done++) {
			for (size_t k = 0; k < e.policy.n_signals; k++)
				show_random(&r, &e, k);
			engine_tick_as_stamped(&e);
			bool by_signals = e.decision.current >= e.decision.min_replicas &&
			                  e.decision.current <= e.decision.max_replicas &&
			                  !engine_find(&e, REASON_IDLE_REACHED);
			if (reached && e.now_ms < up_ms + window_ms) {
				checked++;
				if (e.decision.desired < reached && by_signals && e.decision.current >= reached)
					fail_at("no flap", done, &e);
			}
			if (e.decision.action == ACTION_SCALE_UP && by_signals) {
				up_ms = e.now_ms;
				reached = e.decision.desired;
			}
			engine_apply(&e);
			advance(&r, &e);
		}
		engine_done(&e);
	}
	assert_true(checked > n / 100); // the law was put to the test
}

int main(void)
{
	fprintf(stderr, "# PROP_SEED=%llu PROP_TICKS=%lld\n", (unsigned long long)seed(), (long long)ticks());
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_tick_keeps_the_laws),
	        cmocka_unit_test(more_load_never_means_fewer_replicas),
	        cmocka_unit_test(a_formula_with_max_and_min_is_max_and_min),
	        cmocka_unit_test(no_scale_down_inside_the_window_of_a_scale_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
