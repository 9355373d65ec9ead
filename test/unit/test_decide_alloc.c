// SPDX-License-Identifier: Apache-2.0
// decide() allocates nothing: every malloc of the program is counted while it decides.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "test/support/alloc_count.h"
#include "test/support/engine.h"

#define TICKS 5000

static void decide_allocates_nothing(void **state)
{
	(void)state;
	if (!alloc_count_works())
		skip();
	struct engine e;
	engine_init(&e, 5);
	struct policy_signal *load = engine_add_value(&e, "load", 10);
	load->window = (struct policy_window){.set = true, .duration_ms = 300000, .aggregate = WINDOW_AVG};
	struct policy_signal *queue = engine_add_watermarks(&e, "queue", 2, 8, WATERMARK_AVERAGE);
	queue->window = (struct policy_window){.set = true, .duration_ms = 300000, .aggregate = WINDOW_P95};
	queue->sustain = (struct policy_sustain){30000, 60000};
	engine_add_rate(&e, +1, RATE_PERCENT, 100, 15000);
	engine_add_rate(&e, -1, RATE_PODS, 1, 60000);
	e.policy.scale_down.stabilization_window_ms = 300000;
	e.policy.cooldown = (struct policy_sustain){15000, 60000};
	engine_start(&e);
	int changes = 0;
	size_t before = alloc_count;
	for (int i = 0; i < TICKS; i++) {
		// Up and down, with data missing now and then, so that every stage has its say.
		if (i % 97 == 0)
			engine_show_state(&e, 0, OBS_FAILED);
		else
			engine_show(&e, 0, 5 + 10 * ((i / 60) % 3));
		engine_show(&e, 1, (double)(i % 200));
		const struct decision *d = engine_tick(&e);
		changes += d->desired != d->current;
		engine_apply(&e);
		e.now_ms += 15000;
	}
	assert_int_equal(alloc_count - before, 0);
	assert_true(changes > 20); // it did decide something
	engine_done(&e);
}

static void decide_with_an_objective_allocates_nothing(void **state)
{
	(void)state;
	if (!alloc_count_works())
		skip();
	struct engine e;
	engine_init(&e, 5);
	engine_add_objective(&e);
	engine_start(&e);
	int changes = 0;
	size_t before = alloc_count;
	for (int i = 0; i < TICKS; i++) {
		engine_show(&e, 0, 5 + 10 * ((i / 60) % 3));
		if (i % 97 == 0)
			engine_show_state(&e, 1, OBS_FAILED);
		else
			engine_show(&e, 1, i % 60 < 8 ? 40.0 * (i % 60) : 0);
		const struct decision *d = engine_tick(&e);
		changes += d->desired != d->current;
		engine_apply(&e);
		e.now_ms += 15000;
	}
	assert_int_equal(alloc_count - before, 0);
	assert_true(changes > 20); // it did decide something
	engine_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(decide_allocates_nothing),
	                                   cmocka_unit_test(decide_with_an_objective_allocates_nothing)};
	return cmocka_run_group_tests_name("decide_alloc", tests, NULL, NULL);
}
