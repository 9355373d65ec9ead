// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws over more than one tick, on random policies and random traces: step limits hold over their
// periods, nothing moves inside a cooldown, a decision is not taken back inside the stabilization window, a push is
// sustained before it counts, a changed scale is a multiple. Each is judged from
// what was seen outside the engine.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "test/laws/prop.h"

// ---- what happened so far in this trace, recorded independently ----

struct scale {
	int64_t time_ms;
	int32_t replicas; // from then on
};

struct past {
	struct scale scales[PROP_TICKS_A_TRACE + 1];
	size_t n;
};

static void past_begin(struct past *p, const struct engine *e)
{
	p->scales[0] = (struct scale){INT64_MIN, e->seen.spec_replicas};
	p->n = 1;
}

static void past_add(struct past *p, const struct engine *e)
{
	if (e->decision.write)
		p->scales[p->n++] = (struct scale){e->now_ms, e->decision.desired};
}

static int32_t past_replicas_at(const struct past *p, int64_t time_ms)
{
	size_t i = p->n - 1;
	while (p->scales[i].time_ms > time_ms)
		i--;
	return p->scales[i].replicas;
}

static int64_t past_last_ms(const struct past *p)
{
	return p->scales[p->n - 1].time_ms;
}

// The signals decide: neither a bound nor the idle level moves the target.
static bool is_by_signals(const struct engine *e)
{
	const struct decision *d = &e->decision;
	return d->current >= d->min_replicas && d->current <= d->max_replicas && !engine_find(e, REASON_IDLE_REACHED);
}

// One tick of random load on a cluster that follows at once, or is late with what is ready.
static void tick(struct prop_random *r, struct engine *e)
{
	for (size_t k = 0; k < e->policy.n_signals; k++)
		prop_show_random(r, e, k);
	engine_tick_as_stamped(e);
}

static void go_on(struct prop_random *r, struct engine *e, struct past *p)
{
	past_add(p, e);
	engine_apply(e);
	if (prop_chance(r, 20))
		e->seen.ready_replicas = prop_up_to(r, e->seen.spec_replicas);
	prop_advance(r, e);
}

// ---- laws ----

// HPA: Percent rounds up on the way up and truncates on the way down; Max is the largest change.
static int32_t rate_limit(const struct past *p, const struct policy_scaling_rules *rules, int direction, int64_t now_ms)
{
	double limit = NAN;
	for (size_t i = 0; i < rules->n_rates; i++) {
		const struct policy_rate *rate = &rules->rates[i];
		double start = past_replicas_at(p, now_ms - rate->period_ms), part = (double)rate->value / 100;
		double one = rate->type == RATE_PODS ? start + direction * rate->value
		             : direction > 0         ? ceil(start * (1 + part))
		                                     : trunc(start * (1 - part));
		bool upper = (direction > 0) == (rules->select == SELECT_MAX);
		limit = i == 0 || (upper ? one > limit : one < limit) ? one : limit;
	}
	return (int32_t)fmax(fmin(limit, POLICY_REPLICAS_MAX * 2), -POLICY_REPLICAS_MAX * 2);
}

static void step_limits_hold_over_any_period(void **state)
{
	struct prop_random r = {prop_seed() + 10};
	struct engine e;
	struct past p;
	int64_t n = prop_ticks(), reached = 0;
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1 + prop_up_to(&r, 2));
		e.policy.replica_multiple = 1; // rounds up past a limit, as documented
		e.policy.idle.set = false;
		engine_start(&e);
		past_begin(&p, &e);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			tick(&r, &e);
			const struct decision *d = &e.decision;
			int direction = (d->desired > d->current) - (d->desired < d->current);
			const struct policy_scaling_rules *rules =
			        direction > 0 ? &e.policy.scale_up : &e.policy.scale_down;
			if (direction != 0 && is_by_signals(&e) && rules->select != SELECT_DISABLED) {
				int32_t limit = rate_limit(&p, rules, direction, e.now_ms);
				reached += d->desired == limit;
				if (direction > 0 ? d->desired > limit : d->desired < limit)
					prop_fail_at("step limits hold over any period", done, &e);
			}
			go_on(&r, &e, &p);
		}
		engine_done(&e);
	}
	assert_true(reached > n / 200); // the law was put to the test
}

static void scale_is_unchanged_inside_the_cooldown(void **state)
{
	struct prop_random r = {prop_seed() + 11};
	struct engine e;
	struct past p;
	int64_t n = prop_ticks(), checked = 0;
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1 + prop_up_to(&r, 2));
		e.policy.cooldown = (struct policy_sustain){15000 * prop_up_to(&r, 6), 15000 * prop_up_to(&r, 20)};
		e.policy.idle.set = false;
		engine_start(&e);
		past_begin(&p, &e);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			tick(&r, &e);
			const struct decision *d = &e.decision;
			int64_t last_ms = past_last_ms(&p);
			if (last_ms != INT64_MIN && is_by_signals(&e)) {
				int64_t since_ms = e.now_ms - last_ms;
				checked += since_ms < e.policy.cooldown.down_ms;
				if ((d->desired > d->current && since_ms < e.policy.cooldown.up_ms) ||
				    (d->desired < d->current && since_ms < e.policy.cooldown.down_ms))
					prop_fail_at("nothing moves inside the cooldown", done, &e);
			}
			go_on(&r, &e, &p);
		}
		engine_done(&e);
	}
	assert_true(checked > n / 100); // the law was put to the test
}

// What one direction has reached is not taken back by the other inside the other's window.
static void walk_without_reversal(uint64_t law_seed, int direction, const char *law)
{
	struct prop_random r = {law_seed};
	struct engine e;
	struct past p;
	int64_t n = prop_ticks(), checked = 0;
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1 + prop_up_to(&r, 2));
		struct policy_scaling_rules *back = direction > 0 ? &e.policy.scale_down : &e.policy.scale_up;
		back->stabilization_window_ms = 15000 * prop_up_to(&r, 30);
		engine_start(&e);
		past_begin(&p, &e);
		int64_t at_ms = 0;
		int32_t reached = -1;
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			tick(&r, &e);
			const struct decision *d = &e.decision;
			int change = (d->desired > d->current) - (d->desired < d->current);
			if (reached == d->current && is_by_signals(&e) &&
			    e.now_ms < at_ms + back->stabilization_window_ms) {
				checked++;
				if (change == -direction)
					prop_fail_at(law, done, &e);
			}
			if (change == direction && is_by_signals(&e)) {
				at_ms = e.now_ms;
				reached = d->desired;
			}
			go_on(&r, &e, &p);
		}
		engine_done(&e);
	}
	assert_true(checked > n / 100); // the law was put to the test
}

static void scale_up_is_not_reversed_inside_its_window(void **state)
{
	walk_without_reversal(prop_seed() + 12, +1, "no scale-down inside the window of a scale-up");
}

static void scale_down_is_not_reversed_inside_its_window(void **state)
{
	walk_without_reversal(prop_seed() + 13, -1, "no scale-up inside the window of a scale-down");
}

// A twin without sustain, with the same observations, shows what the signal asks for at each tick.
static void proposal_is_sustained_before_it_counts(void **state)
{
	struct prop_random r = {prop_seed() + 14};
	struct engine e, plain;
	struct past p;
	int64_t n = prop_ticks(), waited = 0;
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1);
		e.policy.panic.set = e.policy.forecast.set = false; // they act at once
		prop_copy(&plain, &e);
		struct policy_sustain *sustain = &e.signals[0].sustain;
		*sustain = (struct policy_sustain){15000 * prop_up_to(&r, 4), 15000 * prop_up_to(&r, 10)};
		plain.signals[0].sustain = (struct policy_sustain){0, 0};
		engine_start(&e);
		engine_start(&plain);
		past_begin(&p, &e);
		int64_t up_ms = -1, down_ms = -1; // since when nothing else was asked for
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			plain.seen = e.seen;
			plain.seen.signals = plain.seen_signals;
			plain.now_ms = e.now_ms;
			struct prop_random same = r;
			tick(&same, &plain);
			tick(&r, &e);
			const struct decision_signal *asked = &plain.decision.signals[0], *got = &e.decision.signals[0];
			int32_t spec = e.decision.current;
			if (asked->state == SIGNAL_OK && asked->proposal < spec)
				up_ms = -1;
			else if (up_ms < 0)
				up_ms = e.now_ms;
			if (asked->state == SIGNAL_OK && asked->proposal > spec)
				down_ms = -1;
			else if (down_ms < 0)
				down_ms = e.now_ms;
			waited += asked->proposal != got->proposal;
			if (got->state == SIGNAL_OK &&
			    ((got->proposal > spec && e.now_ms - up_ms < sustain->up_ms) ||
			     (got->proposal < spec && e.now_ms - down_ms < sustain->down_ms)))
				prop_fail_at("a push is sustained before it counts", done, &e);
			go_on(&r, &e, &p);
		}
		engine_done(&e);
		engine_done(&plain);
	}
	assert_true(waited > n / 100); // the law was put to the test
}

static void forecast_for_scale_up_never_asks_for_fewer(void **state)
{
	struct prop_random r = {prop_seed() + 17};
	struct engine e, plain;
	struct past p;
	int64_t n = prop_ticks(), raised = 0;
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1);
		e.policy.panic.set = e.policy.startup.set = false; // they depend on past decisions
		e.policy.forecast.use = FORECAST_SCALE_UP_ONLY;
		prop_copy(&plain, &e);
		plain.policy.forecast.set = false;
		engine_start(&e);
		engine_start(&plain);
		past_begin(&p, &e);
		for (int i = 0; i < PROP_TICKS_A_TRACE && e.policy.forecast.set; i++, done++) {
			plain.seen = e.seen;
			plain.seen.signals = plain.seen_signals;
			plain.now_ms = e.now_ms;
			struct prop_random same = r;
			tick(&same, &plain);
			tick(&r, &e);
			int32_t without = plain.decision.signals[0].proposal, with = e.decision.signals[0].proposal;
			raised += with > without;
			if (with < without)
				prop_fail_at("a forecast for scale-up never asks for fewer", done, &e);
			go_on(&r, &e, &p);
		}
		engine_done(&e);
		engine_done(&plain);
	}
	assert_true(raised > n / 500); // the law was put to the test; most of these loads cannot be foreseen
}

static void changed_scale_is_a_multiple(void **state)
{
	struct prop_random r = {prop_seed() + 15};
	struct engine e;
	struct past p;
	int64_t n = prop_ticks(), checked = 0;
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1 + prop_up_to(&r, 2));
		int32_t m = e.policy.replica_multiple = 2 + prop_up_to(&r, 3);
		if (prop_chance(&r, 50))
			e.policy.max_replicas = e.policy.min_replicas + m + prop_up_to(&r, 12);
		if (e.policy.idle.set) // waking past a guard
			e.policy.guards = (struct policy_guards){.set = true, .max_step = 1};
		engine_start(&e);
		past_begin(&p, &e);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			tick(&r, &e);
			const struct decision *d = &e.decision;
			int32_t least = d->min_replicas > 1 ? d->min_replicas : 1;
			bool has_one = (least + m - 1) / m * m <= d->max_replicas; // else the bounds win
			if (d->desired != d->current && has_one) {
				checked++;
				if (d->desired % m != 0)
					prop_fail_at("a changed scale is a multiple", done, &e);
			}
			const struct trace_entry *t = engine_find(&e, REASON_REPLICA_MULTIPLE);
			if (t && d->current <= d->max_replicas && t->before < d->current && t->after < t->before)
				prop_fail_at("a multiple takes away no more than was asked for", done, &e);
			go_on(&r, &e, &p);
			if (prop_chance(&r, 5)) // the target is scaled by hand, not by multiples
				e.seen.spec_replicas = prop_up_to(&r, e.policy.max_replicas);
		}
		engine_done(&e);
	}
	assert_true(checked > n / 100); // the law was put to the test
}

static void error_is_not_zero(void **state)
{
	struct prop_random r = {prop_seed() + 18};
	struct engine e;
	struct past p;
	int64_t n = prop_ticks(), blind = 0;
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1 + prop_up_to(&r, 1));
		e.policy.idle.set = false; // it may go to zero
		e.policy.min_replicas = 0;
		e.policy.max_replicas = 1 + prop_up_to(&r, 20); // also below the first multiple
		e.policy.scale_down.stabilization_window_ms = 0;
		e.policy.fallback = (struct policy_fallback){.set = prop_chance(&r, 80),
		                                             .failure_threshold = prop_up_to(&r, 2),
		                                             .replicas = 1 + prop_up_to(&r, 10),
		                                             .behavior = prop_up_to(&r, FALLBACK_CURRENT_IF_LOWER),
		                                             .when = prop_up_to(&r, 1)};
		engine_start(&e);
		past_begin(&p, &e);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			bool all_fail = prop_chance(&r, 40);
			for (size_t k = 0; k < e.policy.n_signals; k++)
				if (all_fail)
					engine_show_state(&e, k, OBS_FAILED);
				else
					prop_show_random(&r, &e, k);
			engine_tick_as_stamped(&e);
			bool any_ok = false; // onMissing: Zero asks for it
			for (size_t k = 0; k < e.policy.n_signals; k++)
				any_ok |= e.decision.signals[k].state == SIGNAL_OK;
			blind += engine_find(&e, REASON_FALLBACK_ACTIVE) != NULL;
			bool is_scheduled = engine_find(&e, REASON_SCHEDULE_ACTIVE) != NULL;
			if (!any_ok && !is_scheduled && e.decision.current > 0 && e.decision.desired == 0)
				prop_fail_at("an error is not zero", done, &e);
			go_on(&r, &e, &p);
		}
		engine_done(&e);
	}
	assert_true(blind > n / 100); // the law was put to the test
}

// The schedules as a clock on the wall would follow them: minute by minute, what opens and what closes.
struct wall {
	int64_t minute;
	bool open[2];
	int64_t opened[2];
};

static bool matches(const struct cron *cron, int64_t minute)
{
	return cron_at_or_before(cron, minute * 60) == minute * 60;
}

static void wall_walk(struct wall *w, const struct engine *e)
{
	for (; w->minute * 60000 <= e->now_ms; w->minute++)
		for (size_t i = 0; i < e->policy.n_schedules; i++) {
			if (matches(&e->schedules[i].end, w->minute)) {
				w->open[i] = false;
			} else if (matches(&e->schedules[i].start, w->minute)) {
				w->open[i] = true;
				w->opened[i] = w->minute;
			}
		}
}

static int32_t floor_of(const struct policy_schedule *s)
{
	return s->replicas_set ? s->replicas : s->min_set ? s->min_replicas : 0;
}

static int wall_winner(const struct wall *w, const struct policy_schedule *s)
{
	if (w->open[0] && w->open[1]) {
		bool both = s[0].combine == SCHEDULE_MAX && s[1].combine == SCHEDULE_MAX;
		if (both && floor_of(&s[0]) != floor_of(&s[1]))
			return floor_of(&s[1]) > floor_of(&s[0]);
		if (w->opened[0] ==
		    w->opened[1]) // of windows that opened together, Max wins, then the last in the list
			return s[0].combine == SCHEDULE_MAX && !both ? 0 : 1;
		return w->opened[1] > w->opened[0];
	}
	return w->open[0] ? 0 : w->open[1] ? 1 : -1;
}

static void schedule_that_opened_last_is_in_force(void **state)
{
	struct prop_random r = {prop_seed() + 16};
	struct engine e;
	struct past p;
	int64_t n = prop_ticks(), checked = 0;
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1);
		past_begin(&p, &e);
		struct wall w = {.minute = e.now_ms / 60000 - 180}; // each of them comes every hour
		for (int i = 0; i < PROP_TICKS_A_TRACE && e.policy.n_schedules > 0; i++, done++) {
			tick(&r, &e);
			wall_walk(&w, &e);
			const struct trace_entry *told = engine_find(&e, REASON_SCHEDULE_ACTIVE);
			int winner = wall_winner(&w, e.schedules);
			checked += winner >= 0;
			if (e.decision.reason != REASON_SCALING_DISABLED && (told ? told->count : -1) != winner)
				prop_fail_at("the schedule that opened last is in force", done, &e);
			if (winner >= 0 && e.schedules[winner].replicas_set &&
			    e.decision.max_replicas != e.schedules[winner].replicas)
				prop_fail_at("the schedule that opened last is in force", done, &e);
			go_on(&r, &e, &p);
		}
		engine_done(&e);
	}
	assert_true(checked > n / 10); // the law was put to the test
}

int main(void)
{
	prop_begin();
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(step_limits_hold_over_any_period),
	        cmocka_unit_test(scale_is_unchanged_inside_the_cooldown),
	        cmocka_unit_test(scale_up_is_not_reversed_inside_its_window),
	        cmocka_unit_test(scale_down_is_not_reversed_inside_its_window),
	        cmocka_unit_test(proposal_is_sustained_before_it_counts),
	        cmocka_unit_test(forecast_for_scale_up_never_asks_for_fewer),
	        cmocka_unit_test(changed_scale_is_a_multiple),
	        cmocka_unit_test(error_is_not_zero),
	        cmocka_unit_test(schedule_that_opened_last_is_in_force),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
