// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws that every decision keeps, on random policies and random traces: bounds, hold without data,
// equal inputs give equal answers, a look changes nothing, a restart changes nothing, more load never means fewer
// replicas, no scale-down inside the stabilization window of a scale-up.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "test/laws/prop.h"
#include "test/support/laws.h"

static void every_tick_keeps_the_laws(void **state)
{
	struct prop_random r = {prop_seed()};
	struct engine e, twin;
	int64_t n = prop_ticks();
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1 + prop_up_to(&r, 3));
		prop_copy(&twin, &e);
		size_t bytes = decide_state_bytes(&e.policy);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			for (size_t k = 0; k < e.policy.n_signals; k++)
				prop_show_random(&r, &e, k);
			if (prop_chance(&r, 2)) { // a restart: only the bytes survive
				engine_done(&twin);
				prop_copy(&twin, &e);
			}
			struct engine look;
			prop_copy(&look, &e);
			engine_tick_as_stamped(&look); // a look at a copy
			const char *law = laws_broken(&(struct law_tick){&e.policy, &e.seen, &look.decision, e.state});
			engine_tick_as_stamped(&e);
			twin.seen = e.seen;
			twin.now_ms = e.now_ms;
			engine_tick_as_stamped(&twin);
			if (!prop_same_decision(&e.decision, &look.decision) || memcmp(e.state, look.state, bytes) != 0)
				prop_fail_at("plan and run agree", done, &e);
			if (!prop_same_decision(&e.decision, &twin.decision) || memcmp(e.state, twin.state, bytes) != 0)
				prop_fail_at("equal inputs, equal decisions and states", done, &e);
			engine_done(&look);
			if (law)
				prop_fail_at(law, done, &e);
			if (e.decision.write)
				decide_record_scale(&twin.policy, twin.state, twin.now_ms, e.decision.current,
				                    e.decision.desired);
			prop_follow(&r, &e);
			prop_advance(&r, &e);
		}
		engine_done(&e);
		engine_done(&twin);
	}
}

// In front of a schedule whose bounds lie anywhere around the idle level.
static void idle_never_adds_replicas(void **state)
{
	struct prop_random r = {prop_seed() + 4};
	struct engine e;
	int64_t n = prop_ticks(), quiet = 0;
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1 + prop_up_to(&r, 1));
		struct policy_idle *idle = &e.policy.idle;
		struct policy_schedule *s = &e.schedules[0];
		e.policy.max_replicas = 2 + prop_up_to(&r, 40);
		e.policy.min_replicas = 2 + prop_up_to(&r, e.policy.max_replicas - 2);
		*idle = (struct policy_idle){.set = true,
		                             .replicas = prop_up_to(&r, e.policy.min_replicas - 1),
		                             .activation = {"s", 10 + prop_up_to(&r, 40)}};
		*s = (struct policy_schedule){.name = "s", .start_text = "*/30 * * * *", .end_text = "*/20 * * * *"};
		if (cron_parse(&s->start, s->start_text) || cron_parse(&s->end, s->end_text))
			fail();
		s->min_set = s->max_set = true;
		s->max_replicas = 1 + prop_up_to(&r, 20);
		e.policy.schedules = s;
		e.policy.n_schedules = 1;
		engine_start(&e);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			for (size_t k = 0; k < e.policy.n_signals; k++)
				prop_show_random(&r, &e, k);
			struct engine before;
			prop_copy(&before, &e);
			const struct decision *d = engine_tick_as_stamped(&e);
			quiet += engine_find(&e, REASON_SCHEDULE_ACTIVE) && d->current < idle->replicas &&
			         !(e.decision.signals[0].value > idle->activation.above);
			const char *law = laws_broken(&(struct law_tick){&e.policy, &e.seen, d, before.state});
			engine_done(&before);
			if (law)
				prop_fail_at(law, done, &e);
			prop_follow(&r, &e);
			prop_advance(&r, &e);
		}
		engine_done(&e);
	}
	assert_true(quiet > n / 100); // the law was put to the test
}

static void more_load_never_means_fewer_replicas(void **state)
{
	struct prop_random r = {prop_seed() + 1};
	struct engine e, more;
	int64_t n = prop_ticks();
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1);
		e.policy.guards.gain.set = false; // it learns from the load, which is its throughput here
		engine_start(&e);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			// all there are are ready: with fewer, the HPA's own arithmetic is not monotone
			e.seen.ready_replicas = e.seen.status_replicas = e.seen.spec_replicas;
			double load = prop_up_to(&r, 400) / 8.0, extra = prop_up_to(&r, 80) / 8.0;
			int32_t n_pods = prop_up_to(&r, ENGINE_SERIES_MAX);
			prop_show(&e, 0, load, n_pods);
			prop_copy(&more, &e);
			prop_show(&more, 0, load + extra, n_pods);
			engine_tick(&e);
			engine_tick(&more);
			if (more.decision.desired < e.decision.desired) {
				print_message("load %g: %d, load %g: %d\n", load, e.decision.desired, load + extra,
				              more.decision.desired);
				prop_fail_at("monotone in load", done, &e);
			}
			engine_done(&more);
			engine_apply(&e);
			prop_advance(&r, &e);
		}
		engine_done(&e);
	}
}

static void formula_of_max_and_min_equals_max_and_min(void **state)
{
	static const char *const names[] = {"a", "b", "c"};
	static const char *const texts[2][3] = {{"a", "max(a, b)", "max(a, b, c)"},
	                                        {"a", "min(a, b)", "min(min(a, b), c)"}};
	struct prop_random r = {prop_seed() + 3};
	struct engine e, twin;
	int64_t n = prop_ticks(), compared = 0;
	for (int64_t done = 0; done < n;) {
		int n_signals = 1 + prop_up_to(&r, 2);
		prop_engine(&r, &e, n_signals);
		prop_copy(&twin, &e);
		struct formula_op ops[FORMULA_OPS_MAX];
		struct formula_fault fault;
		const char *text = texts[e.policy.combine == COMBINE_MIN][n_signals - 1];
		twin.policy.combine = COMBINE_FORMULA;
		assert_int_equal(formula_compile(text, strlen(text), names, (size_t)n_signals, FORMULA_PROPOSALS, ops,
		                                 &twin.policy.formula, &fault),
		                 0);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			for (size_t k = 0; k < e.policy.n_signals; k++)
				prop_show_random(&r, &e, k);
			memcpy(twin.state, e.state, decide_state_bytes(&e.policy));
			struct engine same;
			prop_copy(&same, &e);
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
				prop_fail_at("max(a, b) is Max", done, &e);
			if (!all_ok && twin.decision.desired < e.decision.desired &&
			    twin.decision.desired < e.decision.current)
				prop_fail_at("a formula does not come down on missing data", done, &e);
			compared += all_ok;
			engine_done(&same);
			engine_apply(&e);
			prop_advance(&r, &e);
		}
		engine_done(&e);
		engine_done(&twin);
	}
	assert_true(compared > n / 4); // the law was put to the test
}

static void scale_down_waits_for_the_window_after_a_scale_up(void **state)
{
	struct prop_random r = {prop_seed() + 2};
	struct engine e;
	int64_t n = prop_ticks(), checked = 0;
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1 + prop_up_to(&r, 2));
		int64_t window_ms = e.policy.scale_down.stabilization_window_ms, up_ms = 0;
		int32_t reached = 0;
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			for (size_t k = 0; k < e.policy.n_signals; k++)
				prop_show_random(&r, &e, k);
			engine_tick_as_stamped(&e);
			bool by_signals = e.decision.current >= e.decision.min_replicas &&
			                  e.decision.current <= e.decision.max_replicas &&
			                  !engine_find(&e, REASON_IDLE_REACHED);
			if (reached && e.now_ms < up_ms + window_ms) {
				checked++;
				if (e.decision.desired < reached && by_signals && e.decision.current >= reached)
					prop_fail_at("no flap", done, &e);
			}
			if (e.decision.action == ACTION_SCALE_UP && by_signals) {
				up_ms = e.now_ms;
				reached = e.decision.desired;
			}
			engine_apply(&e);
			prop_advance(&r, &e);
		}
		engine_done(&e);
	}
	assert_true(checked > n / 100); // the law was put to the test
}

int main(void)
{
	prop_begin();
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_tick_keeps_the_laws),
	        cmocka_unit_test(idle_never_adds_replicas),
	        cmocka_unit_test(more_load_never_means_fewer_replicas),
	        cmocka_unit_test(formula_of_max_and_min_equals_max_and_min),
	        cmocka_unit_test(scale_down_waits_for_the_window_after_a_scale_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
