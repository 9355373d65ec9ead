// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of the guards that estimate capacity. The growth of a target whose throughput follows
// Amdahl's law stops exactly where one more replica adds too little, whatever the throughput is at less than full load;
// throttled replicas never lower a proposal; as many replicas are added in place of unhealthy ones as there are, within
// the bounds, and they go when the others are healthy.
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
			// Now and then a wrong sample, which moves nothing.
			double wrong = pow(10, prop_up_to(&r, 40) - 20.0),
			       factor = prop_chance(&r, 1) ? wrong * 3.1 : 1;
			engine_show(&e, 1, (full ? most : most * prop_up_to(&r, 99) / 100) * factor);
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

// ---- unhealthy replicas ----

#define WINDOW_MS 60000 // of scaleDown: how long replacements stay

struct health_memory {
	int64_t time_ms[PROP_TICKS_A_TRACE];
	int32_t unhealthy[PROP_TICKS_A_TRACE];
	int n;
};

// Shows how many replicas are unhealthy, or now and then that it is unknown.
static void show_health(struct prop_random *r, struct engine *e, int32_t most)
{
	bool is_known = prop_chance(r, 85);
	e->seen.health = (struct obs_health){is_known, is_known && prop_chance(r, 60) ? prop_up_to(r, most) : 0};
}

static void follow_exactly(struct engine *e)
{
	if (e->decision.write)
		engine_apply(e);
	e->now_ms += 15000;
}

// Under a load that asks for `replicas` replicas, whatever the present scale is within the tolerance.
static void begin_steady(struct engine *e, int32_t replicas, int32_t max)
{
	engine_init(e, replicas);
	engine_add_value(e, "load", 10)->target.tolerance_ratio = 0.1;
	e->policy.max_replicas = max;
	e->policy.guards = (struct policy_guards){.set = true, .unhealthy = UNHEALTHY_REPLACE};
	e->policy.scale_down.stabilization_window_ms = WINDOW_MS;
	engine_start(e);
	engine_show(e, 0, 10);
}

// The largest number of unhealthy replicas that still counts.
static int32_t most_unhealthy(const struct health_memory *m, int64_t now_ms)
{
	int32_t most = 0;
	for (int i = m->n - 1; i >= 0 && now_ms - m->time_ms[i] <= WINDOW_MS + 15000; i--)
		most = m->unhealthy[i] > most ? m->unhealthy[i] : most;
	return most;
}

static void replacements_are_as_many_as_unhealthy_replicas(void **state)
{
	struct prop_random r = {prop_seed() + 42};
	int64_t n = prop_ticks() / 4, added = 0, full = 0, undone = 0;
	for (int64_t done = 0; done < n;) {
		struct engine e;
		struct health_memory m = {.n = 0};
		int32_t replicas = 1 + prop_up_to(&r, 40), max = replicas + prop_up_to(&r, 10);
		begin_steady(&e, replicas, max);
		for (int i = 0; i < 100; i++, done++) {
			int32_t spec = e.seen.spec_replicas;
			show_health(&r, &e, replicas);
			if (i >= 80)
				e.seen.health = (struct obs_health){.is_known = true};
			int32_t now = e.seen.health.unhealthy, wanted = engine_tick(&e)->desired;
			m.time_ms[m.n] = e.now_ms;
			m.unhealthy[m.n++] = now;
			if (wanted > max || wanted < replicas)
				prop_fail_at("replacements stay within the bounds", done, &e);
			if (!e.seen.health.is_known && wanted != spec)
				prop_fail_at("unknown health changes nothing", done, &e);
			if (e.seen.health.is_known && wanted < max && wanted - replicas < now)
				prop_fail_at("every unhealthy replica is replaced", done, &e);
			if (e.seen.health.is_known && wanted > spec && wanted - replicas > most_unhealthy(&m, e.now_ms))
				prop_fail_at("no more are added than are unhealthy", done, &e);
			added += wanted > spec;
			full += wanted == max;
			undone += wanted < spec;
			follow_exactly(&e);
		}
		if (e.seen.spec_replicas != replicas)
			prop_fail_at("replacements go when all are healthy", done, &e);
		engine_done(&e);
	}
	assert_true(added > n / 200 && full > n / 200 && undone > n / 200); // the law was put to the test
}

// Under any load, with any policy: what is added is limited by maxReplicas and by what is, or was, unhealthy.
static void replacements_are_limited_under_any_load(void **state)
{
	struct prop_random r = {prop_seed() + 43};
	int64_t n = prop_ticks() / 2, added = 0;
	for (int64_t done = 0; done < n;) {
		struct engine e;
		int32_t most = 0;
		prop_engine(&r, &e, 1 + prop_up_to(&r, 2));
		e.policy.guards.set = true;
		e.policy.guards.unhealthy = UNHEALTHY_REPLACE;
		engine_start(&e);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			int32_t spec = e.seen.spec_replicas;
			for (size_t k = 0; k < e.policy.n_signals; k++)
				prop_show_random(&r, &e, k);
			show_health(&r, &e, spec < 20 ? spec : 20);
			most = e.seen.health.unhealthy > most ? e.seen.health.unhealthy : most;
			const struct decision *d = engine_tick(&e);
			const struct trace_entry *t = engine_find(&e, REASON_UNHEALTHY_REPLACED);
			if (t && (t->after - t->before > most || t->after <= t->before))
				prop_fail_at("no more are added than were unhealthy", done, &e);
			if (t && t->before <= d->max_replicas && t->after > d->max_replicas)
				prop_fail_at("replacements stay within the bounds", done, &e);
			if (d->desired > d->max_replicas && d->desired > spec)
				prop_fail_at("the guard stays within the bounds", done, &e);
			added += t != NULL;
			prop_follow(&r, &e);
			prop_advance(&r, &e);
		}
		engine_done(&e);
	}
	assert_true(added > n / 20); // the law was put to the test
}

// Without the guard, and with Report, no decision depends on the health.
static void health_changes_nothing_without_replace(void **state)
{
	struct prop_random r = {prop_seed() + 44};
	int64_t n = prop_ticks() / 4, reported = 0;
	for (int64_t done = 0; done < n;) {
		struct engine e, plain;
		prop_engine(&r, &e, 1 + prop_up_to(&r, 2));
		e.policy.guards.unhealthy = UNHEALTHY_IGNORE;
		prop_copy(&plain, &e);
		if (prop_chance(&r, 50)) {
			e.policy.guards.set = true;
			e.policy.guards.unhealthy = UNHEALTHY_REPORT;
		}
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			for (size_t k = 0; k < e.policy.n_signals; k++)
				prop_show_random(&r, &e, k);
			show_health(&r, &e, e.seen.spec_replicas);
			int32_t wanted = engine_tick(&e)->desired;
			plain.seen = e.seen; // with the samples as they are stamped now
			plain.seen.health = (struct obs_health){0};
			plain.now_ms = e.now_ms;
			if (engine_tick_as_stamped(&plain)->desired != wanted ||
			    e.decision.reason != plain.decision.reason)
				prop_fail_at("health changes nothing without Replace", done, &e);
			reported += engine_find(&e, REASON_UNHEALTHY_REPLICAS) != NULL;
			prop_advance(&r, &e);
		}
		engine_done(&plain);
		engine_done(&e);
	}
	assert_true(reported > n / 20); // the law was put to the test
}

int main(void)
{
	prop_begin();
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(growth_stops_where_a_replica_adds_too_little),
	        cmocka_unit_test(throttled_replicas_never_lower_a_proposal),
	        cmocka_unit_test(replacements_are_as_many_as_unhealthy_replicas),
	        cmocka_unit_test(replacements_are_limited_under_any_load),
	        cmocka_unit_test(health_changes_nothing_without_replace),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
