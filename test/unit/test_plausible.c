// SPDX-License-Identifier: Apache-2.0
// Goal of this test: what is plausible follows from the largest maximum and the unit of the signal, only what a window
// cannot use is changed, and doubt ends when a value has lasted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "policies/engine/number.h"
#include "policies/engine/plausible.h"
#include "test/support/engine.h"

static void limit_is_a_multiple_of_what_the_largest_maximum_serves(void **state)
{
	struct engine e;
	engine_init(&e, 1);
	e.policy.max_replicas = 10;
	engine_add_value(&e, "value", 0.5);
	engine_add_replicas(&e, "replicas");
	engine_add_watermarks(&e, "marks", 2, 8, WATERMARK_AVERAGE);
	engine_add_value(&e, "input", 1)->target.set = false;
	assert_true(plausible_replicas(&e.policy) == 40);
	assert_true(plausible_load(&e.policy, 0) == 20);
	assert_true(plausible_load(&e.policy, 1) == 40);
	assert_true(plausible_load(&e.policy, 2) == 320);
	assert_true(isinf(plausible_load(&e.policy, 3)));
	e.schedules[0] = (struct policy_schedule){.max_set = true, .max_replicas = 12};
	e.schedules[1] = (struct policy_schedule){.min_set = true, .min_replicas = 30};
	e.policy.schedules = e.schedules;
	e.policy.n_schedules = 2;
	assert_true(plausible_replicas(&e.policy) == 120); // a minimum above maxReplicas raises the maximum
	engine_done(&e);
}

static void sample_of_a_window_is_limited_unless_its_size_has_another_meaning(void **state)
{
	struct engine e;
	engine_init(&e, 1);
	e.policy.max_replicas = 10;
	engine_add_value(&e, "value", 0.5);
	engine_add_value(&e, "input", 1)->target.set = false;
	static const double rows[][2] = {{-1e18, -20},     {-20.1, -20}, {-20, -20}, {-0.1, -0.1}, {0, 0},
	                                 {5e-324, 5e-324}, {20, 20},     {20.1, 20}, {1e308, 20}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_true(plausible_sample(&e.policy, 0, rows[i][0]) == rows[i][1]);
		assert_true(plausible_sample(&e.policy, 1, rows[i][0]) == rows[i][0]);
	}
	e.policy.idle = (struct policy_idle){.set = true, .activation = {"value", 1000, 0}};
	assert_true(plausible_sample(&e.policy, 0, 1e18) == 4000);
	assert_true(plausible_sample(&e.policy, 0, -1e18) == -4000);
	e.policy.combine = COMBINE_FORMULA;
	e.policy.formula.reads = 1; // its proposal
	assert_true(plausible_sample(&e.policy, 0, 1e18) == 4000);
	e.policy.formula.reads_value = 1;
	assert_true(plausible_sample(&e.policy, 0, 1e18) == 1e18);
	assert_true(plausible_sample(&e.policy, 0, -1e18) == -1e18);
	engine_done(&e);
}

static void doubt_ends_when_a_value_has_lasted(void **state)
{
	struct doubt d;
	doubt_init(&d);
	assert_false(doubt_observe(&d, false, 0, 30000, 60000));
	for (int64_t ms = 0; ms < 60000; ms += 15000)
		assert_true(doubt_observe(&d, true, ms, 30000, 60000));
	assert_false(doubt_observe(&d, true, 60000, 30000, 60000));
	assert_false(doubt_observe(&d, false, 75000, 30000, 60000));
	assert_true(d.last_ms == TIME_NONE && d.lasted_ms == 0);
	// A long gap, a clock that was set back: neither makes a value last.
	assert_true(doubt_observe(&d, true, 90000, 30000, 60000));
	assert_true(doubt_observe(&d, true, 90000000, 30000, 60000));
	assert_true(doubt_observe(&d, true, 0, 30000, 60000));
	assert_true(d.lasted_ms == 30000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(limit_is_a_multiple_of_what_the_largest_maximum_serves),
	        cmocka_unit_test(sample_of_a_window_is_limited_unless_its_size_has_another_meaning),
	        cmocka_unit_test(doubt_ends_when_a_value_has_lasted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
