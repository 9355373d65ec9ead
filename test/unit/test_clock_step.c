// SPDX-License-Identifier: Apache-2.0
// Goal of this test: however the wall clock is set, no cooldown, window, timer or recommendation is shortened or
// extended, scaling continues, and the trace reports what happened.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/engine/forecast.h"
#include "policies/engine/source.h"
#include "test/support/engine.h"

#define TICK_MS 15000
#define HOUR_MS INT64_C(3600000)

static const int64_t steps_ms[] = {-30 * 24 * HOUR_MS, -HOUR_MS, -60000, -3000, 3000, 60000, HOUR_MS,
                                   30 * 24 * HOUR_MS};
#define N_STEPS (sizeof steps_ms / sizeof steps_ms[0])

// A load with a sawtooth: stabilization, rates, cooldown, idle, panic and orders are all active.
static double load_at(int tick)
{
	return tick % 97 > 80 ? 0 : 8 + 6 * (tick / 12 % 3) + (tick % 5 == 0 ? 4 : 0) - (tick % 7 == 0 ? 5 : 0);
}

static void limited(struct engine *e)
{
	engine_init(e, 4);
	engine_add_value(e, "queue", 2);
	e->policy.scale_down.stabilization_window_ms = 120000;
	e->policy.scale_up.stabilization_window_ms = 30000;
	e->policy.cooldown = (struct policy_sustain){30000, 45000};
	e->policy.startup.set = true;
	e->policy.idle =
	        (struct policy_idle){.set = true, .after_ms = 120000, .replicas = 0, .activation = {"queue", 0}};
	engine_add_rate(e, +1, RATE_PODS, 3, 60000);
	engine_add_rate(e, -1, RATE_PERCENT, 50, 60000);
	engine_start(e);
}

static void clock_that_is_set_changes_no_decision(void **state)
{
	(void)state;
	for (size_t s = 0; s < N_STEPS; s++) {
		struct engine e, other;
		int limits = 0, scaled = 0, idle = 0;
		limited(&e);
		limited(&other);
		e.now_ms = other.now_ms = INT64_C(1767225600000);
		for (int tick = 0; tick < 300; tick++) {
			engine_show(&e, 0, load_at(tick));
			engine_show(&other, 0, load_at(tick));
			const struct decision *a = engine_tick(&e), *b = engine_tick(&other);
			if (a->desired != b->desired || a->reason != b->reason)
				fail_msg("step %lld, tick %d: %d (%s), with the clock set %d (%s)",
				         (long long)steps_ms[s], tick, a->desired, reason_info(a->reason)->name,
				         b->desired, reason_info(b->reason)->name);
			limits += engine_find(&e, REASON_SCALE_DOWN_STABILIZED) ||
			          engine_find(&e, REASON_COOLDOWN_ACTIVE);
			idle += engine_find(&e, REASON_IDLE_REACHED) != NULL;
			scaled += a->write;
			engine_apply(&e);
			engine_apply(&other);
			if (tick % 10 == 9) { // forward and back, in turn
				int64_t step_ms = tick % 20 == 9 ? steps_ms[s] : -steps_ms[s];
				other.now_ms += step_ms;
				decide_clock_was_set(&other.policy, other.state, step_ms);
			}
			e.now_ms += TICK_MS;
			other.now_ms += TICK_MS;
		}
		assert_true(limits > 20 && scaled > 5 && idle > 0); // all limits were in effect
		engine_done(&e);
		engine_done(&other);
	}
}

static void next_decision_says_so_once(void **state)
{
	struct engine e;
	(void)state;
	limited(&e);
	engine_show(&e, 0, 8);
	engine_tick(&e);
	assert_null(engine_find(&e, REASON_CLOCK_SET));
	decide_clock_was_set(&e.policy, e.state, -HOUR_MS);
	e.now_ms += TICK_MS - HOUR_MS;
	const struct decision *d = engine_tick(&e);
	assert_non_null(engine_find(&e, REASON_CLOCK_SET));
	assert_true(engine_find(&e, REASON_CLOCK_SET)->value == -3600);
	assert_true(d->time_ms == e.now_ms);
	assert_true(d->reason != REASON_CLOCK_SET); // it is a note, not the reason
	e.now_ms += TICK_MS;
	engine_tick(&e);
	assert_null(engine_find(&e, REASON_CLOCK_SET));
	engine_done(&e);
}

// The step was not reported: only the time of this tick reveals it.
static void tick_from_the_past_freezes_nothing(void **state)
{
	struct engine e;
	(void)state;
	engine_init(&e, 4);
	engine_add_replicas(&e, "asked");
	e.policy.cooldown = (struct policy_sustain){60000, 60000};
	engine_start(&e);
	engine_show(&e, 0, 6);
	assert_int_equal(engine_tick(&e)->desired, 6);
	engine_apply(&e);
	e.now_ms -= HOUR_MS;
	engine_show(&e, 0, 8);
	assert_int_equal(engine_tick(&e)->reason, REASON_COOLDOWN_ACTIVE);
	assert_int_equal(engine_find(&e, REASON_COOLDOWN_ACTIVE)->duration_ms,
	                 60000); // none of the cooldown is known to have passed
	assert_non_null(engine_find(&e, REASON_CLOCK_SET));
	e.now_ms += 59999;
	assert_int_equal(engine_tick(&e)->desired, 6);
	e.now_ms += 1;
	assert_int_equal(engine_tick(&e)->desired, 8);
	engine_done(&e);
}

static void windows_and_sustain_begin_anew(void **state)
{
	struct engine e;
	(void)state;
	engine_init(&e, 4);
	engine_add_value(&e, "load", 10)->window = (struct policy_window){true, 60000, WINDOW_AVG, 0};
	engine_start(&e);
	for (int i = 0; i < 8; i++, e.now_ms += TICK_MS) {
		engine_show(&e, 0, 10);
		engine_tick(&e);
	}
	assert_int_equal(e.decision.signals[0].state, SIGNAL_OK);
	decide_clock_was_set(&e.policy, e.state, -HOUR_MS);
	e.now_ms -= HOUR_MS;
	engine_show(&e, 0, 10);
	const struct decision *d = engine_tick(&e);
	assert_int_equal(d->action, ACTION_HOLD);
	assert_int_equal(d->reason, REASON_WINDOW_FILLING);
	struct obs_series past[4];
	for (int i = 0; i < 4; i++)
		past[i] = (struct obs_series){"", 10, e.now_ms - (4 - i) * TICK_MS};
	decide_clock_was_set(&e.policy, e.state, 0); // no step
	assert_int_equal(d->reason, REASON_WINDOW_FILLING);
	engine_start(&e);
	decide_refill(&e.policy, e.state, 0, past, 4, 4, e.now_ms);
	engine_tick(&e);
	assert_int_equal(e.decision.signals[0].state, SIGNAL_OK);
	engine_done(&e);
}

static void stamps_from_the_future_count_as_now(void **state)
{
	struct engine e;
	(void)state;
	engine_init(&e, 4);
	engine_add_value(&e, "queue", 2);
	engine_add_rate(&e, +1, RATE_PODS, 4, 120000);
	e.policy.cooldown = (struct policy_sustain){60000, 60000};
	engine_start(&e);
	decide_record_recommendation(&e.policy, e.state, e.now_ms + HOUR_MS, 9);
	decide_record_scale(&e.policy, e.state, e.now_ms + 2 * HOUR_MS, 1, 4);
	engine_show(&e, 0, 40);
	engine_tick(&e);
	assert_int_equal(e.decision.reason, REASON_COOLDOWN_ACTIVE);
	assert_int_equal(engine_find(&e, REASON_COOLDOWN_ACTIVE)->duration_ms, 60000);
	assert_int_equal(engine_find(&e, REASON_FUTURE_STAMP)->duration_ms, 2 * HOUR_MS);
	e.now_ms += 60000;
	engine_tick(&e);
	assert_null(engine_find(&e, REASON_FUTURE_STAMP));
	assert_int_equal(e.decision.desired, 5); // 3 of the 4 were used up
	e.now_ms += 60000;
	assert_int_equal(engine_tick(&e)->desired, 8);
	engine_done(&e);
}

static void season_that_cannot_be_read_again_keeps_its_place(void **state)
{
	(void)state;
	const struct policy_forecast config = {.set = true,
	                                       .model = FORECAST_HOLT_WINTERS,
	                                       .season_ms = 24 * HOUR_MS,
	                                       .alpha = 0.2,
	                                       .beta = 0.05,
	                                       .gamma = 0.2};
	uint32_t n = forecast_slots_needed(&config, 60000);
	struct {
		struct forecast f;
		double slots[FORECAST_DOUBLES_MAX];
	} m;
	double load, deviation;
	int64_t now_ms = 1000 * 24 * HOUR_MS, left_ms;
	forecast_init(&m.f, m.slots, n);
	for (int i = 0; i < 3 * 24 * 60; i++, now_ms += 60000) // by day 10, by night 2
		forecast_observe(&m.f, &config, now_ms, now_ms / HOUR_MS % 24 < 12 ? 10 : 2);
	static const int64_t moves_ms[] = {5 * HOUR_MS, -5 * HOUR_MS, -7 * HOUR_MS, 100 * HOUR_MS, -93 * HOUR_MS};
	int64_t moved_ms = 0;
	for (size_t i = 0; i < sizeof moves_ms / sizeof moves_ms[0]; i++) {
		moved_ms += moves_ms[i];
		assert_true(forecast_move(&m.f, &config, moves_ms[i]));
		for (int h = 1; h < 24; h += 3) {
			int64_t at_ms = now_ms + h * HOUR_MS;
			assert_true(forecast_at(&m.f, &config, 60000, at_ms + moved_ms, &load, &deviation, &left_ms));
			double want = at_ms / HOUR_MS % 24 < 12 ? 10 : 2;
			if (load < want - 1 || load > want + 1)
				fail_msg("moved by %lld h: in %d h %g instead of %g", (long long)(moved_ms / HOUR_MS),
				         h, load, want);
		}
	}
	assert_false(forecast_move(&m.f, &config, 299999)); // less than a slot
	assert_false(forecast_move(&m.f, &config, -299999));
	assert_true(forecast_move(&m.f, &config, INT64_MIN / 2));
	assert_false(forecast_at(&m.f, &config, 60000, now_ms, &load, &deviation, &left_ms));
}

// ---- clocks that differ ----

static void clocks_that_differ_are_named(void **state)
{
	(void)state;
	enum { OWN = 1, EMPTY = 2, ZERO = 4 };
	static const struct {
		int64_t age_ms, skew_ms; // staleAfter is a minute
		int flags;
		enum reason want;
	} rows[] = {
	        {0, 0, 0, REASON_WITHIN_TOLERANCE},
	        {0, 60000, 0, REASON_WITHIN_TOLERANCE},
	        {0, 60001, 0, REASON_CLOCK_SKEW},             // this host is behind: the data is that old
	        {30000, 40000, 0, REASON_CLOCK_SKEW},         // too old by the source's clock
	        {61000, 0, 0, REASON_STALE_DATA},             // too old by both
	        {61000, 5000, 0, REASON_STALE_DATA},          // too old by both
	        {61000, -5000, 0, REASON_CLOCK_SKEW},         // this host is ahead: too old by its clock alone
	        {0, -60001, 0, REASON_CLOCK_SKEW},            // this host queries a time in the future
	        {0, 5000, EMPTY, REASON_NO_DATA},             // too small to be the cause
	        {0, 10001, EMPTY, REASON_CLOCK_SKEW},         // perhaps the cause
	        {0, -10001, EMPTY | ZERO, REASON_CLOCK_SKEW}, // and the empty answer is not read as zero
	        {0, INT64_MIN, 0, REASON_CLOCK_SKEW},
	        {0, INT64_MAX, 0, REASON_CLOCK_SKEW},
	        {INT64_MAX / 2, INT64_MIN, 0, REASON_CLOCK_SKEW},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		for (int pods = 0; pods < 2; pods++) {
			struct engine e;
			engine_init(&e, 4);
			struct policy_signal *s = engine_add_value(&e, "load", 10);
			if (pods)
				s->target.type = TARGET_PODS;
			s->on_missing = rows[i].flags & ZERO ? ON_MISSING_ZERO : ON_MISSING_HOLD;
			engine_start(&e);
			engine_show_pods(&e, 0, pods ? 4 : 1, 10, 0);
			for (int k = 0; k < 4; k++)
				e.series[0][k].time_ms = e.now_ms - rows[i].age_ms;
			if (rows[i].flags & EMPTY)
				engine_show_state(&e, 0, OBS_EMPTY);
			e.seen_signals[0].skew_ms = rows[i].skew_ms;
			const struct decision *d = engine_tick_as_stamped(&e);
			enum reason got = d->signals[0].reason;
			if (got != rows[i].want)
				fail_msg("row %zu%s: %s instead of %s", i, pods ? " (Pods)" : "",
				         reason_info(got)->name, reason_info(rows[i].want)->name);
			if (got == REASON_CLOCK_SKEW) {
				int64_t size_ms = rows[i].skew_ms < 0 ? -(rows[i].skew_ms + 1) : rows[i].skew_ms;
				int64_t told_ms = engine_find(&e, REASON_CLOCK_SKEW)->duration_ms;
				assert_int_equal(d->action, ACTION_HOLD);
				assert_true(told_ms - size_ms <= 1 && told_ms >= size_ms);
			}
			engine_done(&e);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(clock_that_is_set_changes_no_decision),
	        cmocka_unit_test(next_decision_says_so_once),
	        cmocka_unit_test(tick_from_the_past_freezes_nothing),
	        cmocka_unit_test(windows_and_sustain_begin_anew),
	        cmocka_unit_test(stamps_from_the_future_count_as_now),
	        cmocka_unit_test(season_that_cannot_be_read_again_keeps_its_place),
	        cmocka_unit_test(clocks_that_differ_are_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
