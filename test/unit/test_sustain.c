// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a breach counts once it has held, without a break, for as long as `sustain` says.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "test/support/engine.h"

#define TICK_MS 15000

// One trace per row, one letter per tick: h above the high mark, l below the low mark, - inside, . no data.
// Wanted, one letter per tick: u up, d down, p pending, n nothing, H hold.
static const struct {
	int64_t up_ms, down_ms;
	const char *shown, *wanted;
} rows[] = {
        {0, 0, "h", "u"},
        {0, 0, "l", "d"},
        {30000, 0, "hhhh", "ppuu"},
        {30000, 0, "hh-hhh", "ppnppu"}, // inside: starts again
        {30000, 0, "hhlhhh", "ppdppu"}, // the other way: starts again
        {30000, 0, "hh.hhh", "ppHppu"}, // missing data is a break
        {0, 60000, "llllll", "ppppdd"},
        {0, 60000, "lll-lllll", "pppnppppd"},
        {0, 60000, "lllhlllll", "pppuppppd"},
        {30000, 60000, "hhhlllll", "ppuppppd"},
        {1, 1, "hhll", "pupd"},
        {-5, -5, "hl", "ud"},
};

static char letter_of(const struct decision *d)
{
	if (d->action == ACTION_SCALE_UP)
		return 'u';
	if (d->action == ACTION_SCALE_DOWN)
		return 'd';
	if (d->action == ACTION_HOLD)
		return 'H';
	return d->reason == REASON_SUSTAIN_PENDING ? 'p' : 'n';
}

static void breach_counts_when_it_has_held(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct engine e;
		engine_init(&e, 4);
		struct policy_signal *s = engine_add_watermarks(&e, "queue", 2, 8, WATERMARK_ABSOLUTE);
		s->sustain = (struct policy_sustain){rows[i].up_ms, rows[i].down_ms};
		engine_start(&e);
		char got[32] = "";
		for (size_t k = 0; rows[i].shown[k]; k++, e.now_ms += TICK_MS) {
			char c = rows[i].shown[k];
			if (c == '.')
				engine_show_state(&e, 0, OBS_EMPTY);
			else
				engine_show(&e, 0, c == 'h' ? 20 : c == 'l' ? 1 : 5);
			got[k] = letter_of(engine_tick(&e)); // not applied: the scale stays 4
		}
		if (strcmp(got, rows[i].wanted) != 0)
			fail_msg("row %zu: %s gave %s, must be %s", i, rows[i].shown, got, rows[i].wanted);
		engine_done(&e);
	}
}

static void pending_proposal_has_the_remaining_time(void **state)
{
	struct engine e;
	engine_init(&e, 4);
	engine_add_watermarks(&e, "queue", 2, 8, WATERMARK_ABSOLUTE)->sustain.up_ms = 60000;
	engine_start(&e);
	engine_show(&e, 0, 16);
	engine_tick(&e);
	e.now_ms += 20000;
	engine_tick(&e);
	const struct trace_entry *t = engine_find(&e, REASON_SUSTAIN_PENDING);
	assert_non_null(t);
	assert_ptr_equal(t, &e.decision.entries[e.decision.driver]);
	assert_int_equal(t->before, 8);
	assert_int_equal(t->after, 4);
	assert_int_equal(t->duration_ms, 40000);
	assert_int_equal(t->window_ms, 60000);
	assert_int_equal(e.decision.signals[0].proposal, 4);
	assert_int_equal(e.decision.signals[0].reason, REASON_ABOVE_HIGH_WATERMARK);
	engine_done(&e);
}

static void breach_goes_on_while_rounding_ends_at_the_present_scale(void **state)
{
	struct engine e;
	engine_init(&e, 4);
	engine_add_watermarks(&e, "queue", 2, 8, WATERMARK_ABSOLUTE)->sustain.up_ms = 30000;
	engine_start(&e);
	engine_show(&e, 0, 16);
	e.seen.ready_replicas = 2; // 2 * 16 / 8 = 4: above, yet no more than now
	assert_int_equal(engine_tick(&e)->desired, 4);
	assert_int_equal(e.decision.reason, REASON_DESIRED_WITHIN_RANGE);
	e.now_ms += 30000;
	e.seen.ready_replicas = 4;
	assert_int_equal(engine_tick(&e)->desired, 8); // it has been above for 30 s
	engine_done(&e);
}

static void pending_signal_does_not_stop_another(void **state)
{
	struct engine e;
	engine_init(&e, 4);
	engine_add_watermarks(&e, "slow", 2, 8, WATERMARK_ABSOLUTE)->sustain.up_ms = 600000;
	engine_add_value(&e, "fast", 10);
	engine_start(&e);
	engine_show(&e, 0, 80);
	engine_show(&e, 1, 20);
	assert_int_equal(engine_tick(&e)->desired, 8);
	// what limited the result is the pending one: it asks for more
	assert_int_equal(e.decision.reason, REASON_SUSTAIN_PENDING);
	engine_show(&e, 0, 9);
	e.now_ms += TICK_MS;
	assert_int_equal(engine_tick(&e)->desired, 8);
	// slow asks for 5 only: nothing was limited by its waiting
	assert_int_equal(e.decision.reason, REASON_DESIRED_WITHIN_RANGE);
	engine_done(&e);
}

static void refilled_timers_count(void **state)
{
	struct engine e;
	engine_init(&e, 4);
	engine_add_watermarks(&e, "queue", 2, 8, WATERMARK_ABSOLUTE)->sustain.up_ms = 60000;
	static const struct {
		double values[6]; // 15 s apart, the last one 15 s before now; NaN = none
		int32_t want;
	} cases[] = {
	        {{NAN, 16, 16, 16, 16, 16}, 8},  // held for 75 s
	        {{NAN, 16, 5, 16, 16, 16}, 4},   // 45 s
	        {{NAN, 16, NAN, 16, 16, 16}, 4}, // a gap is a break
	        {{NAN, 5, 16, 16, 16, 16}, 8},   // exactly 60 s
	        {{16, 16, 16, 16, NAN, NAN}, 4}, // nothing for the last 30 s
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		engine_start(&e);
		struct obs_series past[6];
		size_t n = 0;
		for (int k = 0; k < 6; k++)
			if (!isnan(cases[i].values[k]))
				past[n++] = (struct obs_series){"", cases[i].values[k], e.now_ms - (6 - k) * TICK_MS};
		decide_refill(&e.policy, e.state, 0, past, n, 4, e.now_ms);
		engine_show(&e, 0, 16);
		if (engine_tick(&e)->desired != cases[i].want)
			fail_msg("case %zu: %d", i, e.decision.desired);
	}
	engine_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(breach_counts_when_it_has_held),
	        cmocka_unit_test(pending_proposal_has_the_remaining_time),
	        cmocka_unit_test(breach_goes_on_while_rounding_ends_at_the_present_scale),
	        cmocka_unit_test(pending_signal_does_not_stop_another),
	        cmocka_unit_test(refilled_timers_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
