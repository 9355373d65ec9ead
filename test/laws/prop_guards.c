// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of the guards that estimate capacity. The growth of a target whose throughput follows
// Amdahl's law stops exactly where one more replica adds too little, whatever the throughput is at less than full load;
// throttled replicas never lower a proposal.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "test/laws/prop.h"

// What replica number n adds, from the curve itself.
static double added(double serial, int32_t n)
{
	return n / (1 + serial * (n - 1)) - (n - 1) / (1 + serial * (n - 2));
}

#define GAIN_TICKS 400 // of one target: time to climb

static void growth_stops_where_a_replica_adds_too_little(void **state)
{
	struct prop_random r = {prop_seed() + 40};
	int64_t n = prop_ticks() / 4, stopped = 0, grown = 0;
	for (int64_t done = 0; done < n;) {
		struct engine e;
		double serial = prop_up_to(&r, 400) / 1000.0, bound = (10 + prop_up_to(&r, 80)) / 100.0;
		engine_init(&e, 1 + prop_up_to(&r, 6));
		e.policy.guards = (struct policy_guards){
		        .set = true,
		        .gain = {.set = true,
		                 .signal = "throughput",
		                 .gain = bound,
		                 .steady_ms = 30000,
		                 .signal_index = 1},
		};
		engine_add_value(&e, "load", 10);
		engine_add_value(&e, "throughput", 1)->target = (struct policy_target){0};
		engine_start(&e);
		for (int i = 0; i < GAIN_TICKS; i++, done++) {
			int32_t spec = e.seen.spec_replicas;
			bool full = prop_chance(&r, 90);
			double most = 50 * spec / (1 + serial * (spec - 1));
			engine_show(&e, 0, full ? 11.5 : 1 + prop_up_to(&r, 9));
			engine_show(&e, 1, full ? most : most * prop_up_to(&r, 99) / 100);
			engine_tick(&e);
			const struct decision *d = &e.decision;
			bool learning = engine_find(&e, REASON_GAIN_LEARNING) != NULL;
			if (d->desired > spec && !learning && added(serial, d->desired) < bound - 1e-6)
				prop_fail_at("growth stops where a replica adds too little", done, &e);
			if (d->reason == REASON_MARGINAL_GAIN &&
			    (d->desired < spec || added(serial, d->desired + 1) > bound + 1e-6))
				prop_fail_at("growth stops only where a replica adds too little", done, &e);
			stopped += d->reason == REASON_MARGINAL_GAIN;
			grown += d->desired > spec && !learning;
			e.now_ms += 15000;
			if (i % 8 == 7 && d->desired > spec && d->desired <= spec + 8)
				engine_apply(&e);
			else if (i % 8 == 7 && d->desired > spec) {
				e.seen.spec_replicas = e.seen.status_replicas = e.seen.ready_replicas = spec + 1;
			}
		}
		engine_done(&e);
	}
	assert_true(stopped > n / 20 && grown > n / 1000); // the law was put to the test
}

static void throttled_replicas_never_lower_a_proposal(void **state)
{
	struct prop_random r = {prop_seed() + 41};
	int64_t n = prop_ticks() / 4, raised = 0;
	for (int64_t done = 0; done < n; done++) {
		struct engine e;
		struct decision plain;
		prop_engine(&r, &e, 1 + prop_up_to(&r, 1));
		size_t hot = e.policy.n_signals;
		engine_add_value(&e, "hot", 1)->target = (struct policy_target){0};
		for (size_t i = 0; i < hot; i++)
			prop_show_random(&r, &e, i);
		engine_show(&e, hot, prop_up_to(&r, 100) / 100.0);
		engine_start(&e);
		plain = *engine_tick(&e);
		e.policy.guards.set = true;
		e.policy.guards.throttled = (struct policy_throttled_guard){
		        .set = true, .signal = "hot", .share = prop_up_to(&r, 50) / 100.0, .signal_index = hot};
		engine_start(&e);
		engine_tick(&e);
		for (size_t i = 0; i < hot; i++) {
			if (e.decision.signals[i].proposal < plain.signals[i].proposal)
				prop_fail_at("throttled replicas never lower a proposal", done, &e);
			raised += e.decision.signals[i].proposal > plain.signals[i].proposal;
		}
		engine_done(&e);
	}
	assert_true(raised > n / 100); // the law was put to the test
}

int main(void)
{
	prop_begin();
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(growth_stops_where_a_replica_adds_too_little),
	        cmocka_unit_test(throttled_replicas_never_lower_a_proposal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
