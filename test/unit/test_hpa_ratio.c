// SPDX-License-Identifier: Apache-2.0
// Goal of this test: proportional signals ask for exactly what the HPA would.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "policies/engine/proposal.h"
#include "test/support/engine.h"

struct row {
	int type;
	double target, up_tolerance, down_tolerance, value;
	int32_t spec, status, ready;
	int32_t want;
	enum reason reason;
	int32_t direction;
};

#define V      TARGET_VALUE
#define A      TARGET_AVERAGE_VALUE
#define R      TARGET_REPLICAS
#define ABOVE  REASON_ABOVE_TARGET
#define BELOW  REASON_BELOW_TARGET
#define WITHIN REASON_WITHIN_TOLERANCE
#define NOBODY REASON_NO_READY_REPLICAS
#define ASKED  REASON_REPLICAS_REQUESTED

static const struct row rows[] = {
        // Value: ceil(value / target * ready)
        {V, 0.7, 0.1, 0.1, 0.95, 2, 2, 2, 3, ABOVE, 1},
        {V, 10, 0.1, 0.1, 20, 3, 3, 3, 6, ABOVE, 1},
        {V, 10, 0.1, 0.1, 5, 4, 4, 4, 2, BELOW, -1},
        {V, 10, 0.1, 0.1, 5, 5, 5, 5, 3, BELOW, -1}, // 2.5 rounds up
        {V, 10, 0.1, 0.1, 0, 5, 5, 5, 0, BELOW, -1},
        {V, 10, 0.1, 0.1, -7, 5, 5, 5, 0, BELOW, -1}, // never below 0
        {V, 1000, 0.1, 0.1, 1, 1000, 1000, 1000, 1, BELOW, -1},
        // both ends of the tolerance are inside
        {V, 30, 0.1, 0.1, 33, 3, 3, 3, 3, WITHIN, 0},
        {V, 30, 0.1, 0.1, 27, 3, 3, 3, 3, WITHIN, 0},
        {V, 30, 0.1, 0.1, 33.001, 3, 3, 3, 4, ABOVE, 1},
        {V, 30, 0.1, 0.1, 26.999, 30, 30, 30, 27, BELOW, -1},
        {V, 10, 0, 0, 10, 3, 3, 3, 3, WITHIN, 0},
        {V, 10, 0, 0, 10.01, 3, 3, 3, 4, ABOVE, 1},
        {V, 10, 0.5, 0.5, 15, 3, 3, 3, 3, WITHIN, 0},
        {V, 10, 0.5, 0.5, 5, 3, 3, 3, 3, WITHIN, 0},
        // a tolerance per direction
        {V, 10, 0, 0.5, 10.5, 10, 10, 10, 11, ABOVE, 1},
        {V, 10, 0, 0.5, 5, 10, 10, 10, 10, WITHIN, 0},
        {V, 10, 0.5, 0, 15, 10, 10, 10, 10, WITHIN, 0},
        {V, 10, 0.5, 0, 9.5, 20, 20, 20, 19, BELOW, -1},
        // the base is ready, not spec
        {V, 10, 0.1, 0.1, 20, 10, 10, 4, 10, ABOVE, 1}, // the HPA scales down to 8: above the target never does
        {V, 10, 0.1, 0.1, 5, 4, 20, 20, 4, BELOW, -1},  // the HPA scales up to 10: below the target never does
        {V, 10, 0.1, 0.1, 20, 10, 10, 5, 10, ABOVE, 1}, // ends at spec: still pushing up
        {V, 10, 0.1, 0.1, 20, 4, 4, 6, 12, ABOVE, 1},
        {V, 10, 0.1, 0.1, 5, 4, 8, 8, 4, BELOW, -1},
        {V, 10, 0.1, 0.1, 9.5, 10, 10, 4, 10, WITHIN, 0}, // inside: spec, whatever is ready
        // rounding up can end at the present scale
        {V, 10, 0.01, 0.01, 9.5, 3, 3, 3, 3, BELOW, -1},
        // no ready replica: no ratio
        {V, 10, 0.1, 0.1, 20, 3, 3, 0, 3, NOBODY, 0},
        {V, 10, 0.1, 0.1, 0, 3, 3, 0, 3, NOBODY, 0},
        // from 0: ceil(ratio), no tolerance, no ready pods
        {V, 10, 0.1, 0.1, 10.5, 0, 0, 0, 2, ABOVE, 1},
        {V, 10, 0.1, 0.1, 1, 0, 0, 0, 1, ABOVE, 1},
        {V, 10, 0.1, 0.1, 0, 0, 0, 0, 0, WITHIN, 0},
        {V, 10, 0.1, 0.1, 45, 0, 0, 0, 5, ABOVE, 1},
        // numbers that no int32 holds
        {V, 1e-300, 0.1, 0.1, 1e300, 3, 3, 3, INT32_MAX, ABOVE, 1},
        {V, 1, 0.1, 0.1, 2147483647.0, 2, 2, 2, INT32_MAX, ABOVE, 1},
        {V, 1, 0.1, 0.1, -1e308, 2, 2, 2, 0, BELOW, -1},

        // AverageValue: ceil(value / target), tolerance on value / (target * status)
        {A, 10, 0.1, 0.1, 45, 3, 3, 3, 5, ABOVE, 1},
        {A, 10, 0.1, 0.1, 30, 3, 3, 3, 3, WITHIN, 0},
        {A, 30, 0.1, 0.1, 99, 3, 3, 3, 3, WITHIN, 0},
        {A, 30, 0.1, 0.1, 81, 3, 3, 3, 3, WITHIN, 0},
        {A, 30, 0.1, 0.1, 99.1, 3, 3, 3, 4, ABOVE, 1},
        {A, 30, 0.1, 0.1, 60, 3, 3, 3, 2, BELOW, -1},
        {A, 10, 0.1, 0.1, 0, 3, 3, 3, 0, BELOW, -1},
        // inside tolerance it is spec, not status: a surge must not be taken for the scale (Kubernetes issue 138505)
        {A, 10, 0.1, 0.1, 50, 4, 5, 4, 4, WITHIN, 0},
        {A, 10, 0.1, 0.1, 30, 4, 3, 3, 4, WITHIN, 0},
        // the HPA scales down to 5 and up to 4: a value per replica above the target never lowers the scale
        {A, 10, 0.1, 0.1, 45, 8, 3, 3, 8, ABOVE, 1},
        {A, 10, 0.1, 0.1, 35, 3, 8, 3, 3, BELOW, -1},
        // ready plays no part
        {A, 10, 0.1, 0.1, 45, 3, 3, 0, 5, ABOVE, 1},
        // no pods yet
        {A, 10, 0.1, 0.1, 45, 0, 0, 0, 5, ABOVE, 1},
        {A, 10, 0.1, 0.1, 0, 0, 0, 0, 0, BELOW, -1},
        {A, 10, 0.1, 0.1, 45, 3, 0, 0, 5, ABOVE, 1},
        {A, 10, 0.1, 0.1, 1e300, 3, 3, 3, INT32_MAX, ABOVE, 1},

        // Replicas: the value itself, rounded up
        {R, 0, 0, 0, 7, 3, 3, 3, 7, ASKED, 1},
        {R, 0, 0, 0, 2.01, 3, 3, 3, 3, ASKED, 0},
        {R, 0, 0, 0, 2, 3, 3, 0, 2, ASKED, -1},
        {R, 0, 0, 0, 0, 3, 3, 3, 0, ASKED, -1},
        {R, 0, 0, 0, -4, 3, 3, 3, 0, ASKED, -1},
        {R, 0, 0, 0, -0.5, 3, 3, 3, 0, ASKED, -1},
        {R, 0, 0, 0, 1e18, 3, 3, 3, INT32_MAX, ASKED, 1},
};

static void each_row_asks_for_what_the_hpa_would(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct row *r = &rows[i];
		struct policy_target target = {.set = true, .type = r->type, .value = r->target};
		struct replica_counts counts = {r->spec, r->status, r->ready, 0};
		struct proposal p = hpa_propose(&target, r->up_tolerance, r->down_tolerance, r->value, &counts);
		if (p.replicas != r->want || p.reason != r->reason || p.direction != r->direction)
			fail_msg("row %zu (value %g, target %g, %d/%d/%d): %d %s %d, must be %d %s %d", i, r->value,
			         r->target, r->spec, r->status, r->ready, p.replicas, reason_info(p.reason)->name,
			         p.direction, r->want, reason_info(r->reason)->name, r->direction);
	}
}

static void value_is_compared_per_replica_when_the_target_is(void **state)
{
	struct policy_target target = {.set = true, .type = TARGET_AVERAGE_VALUE, .value = 8};
	struct replica_counts counts = {4, 5, 4, 0};
	struct proposal p = hpa_propose(&target, 0.1, 0.1, 100, &counts);
	assert_true(p.compared == 20 && p.limit == 8);
	target.type = TARGET_VALUE;
	p = hpa_propose(&target, 0.1, 0.1, 100, &counts);
	assert_true(p.compared == 100 && p.limit == 8);
}

static void tolerance_of_behavior_overrides_that_of_the_signal(void **state)
{
	static const struct {
		double value;
		int32_t want;
		bool up_set, down_set;
	} cases[] = {
	        {10.5, 10, false, false}, {10.5, 11, true, false}, {9.5, 10, true, false},
	        {9.5, 10, false, true},   {8.6, 10, false, true},  {8.4, 9, false, true},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct engine e;
		engine_init(&e, 10);
		engine_add_value(&e, "s", 10);
		e.policy.scale_up.tolerance_set = cases[i].up_set;
		e.policy.scale_up.tolerance_ratio = 0;
		e.policy.scale_down.tolerance_set = cases[i].down_set;
		e.policy.scale_down.tolerance_ratio = 0.15;
		engine_start(&e);
		engine_show(&e, 0, cases[i].value);
		if (engine_tick(&e)->desired != cases[i].want)
			fail_msg("case %zu: %d, must be %d", i, e.decision.desired, cases[i].want);
		engine_done(&e);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(each_row_asks_for_what_the_hpa_would),
	        cmocka_unit_test(value_is_compared_per_replica_when_the_target_is),
	        cmocka_unit_test(tolerance_of_behavior_overrides_that_of_the_signal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
