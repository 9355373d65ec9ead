// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws about the state, on random policies and random traces: a plan is what a run would do and
// leaves no mark, the same run again decides the same, a restart changes nothing - neither from the bytes of the state
// nor, for a policy without windows and timers, from what `status` keeps -, a paused target is unchanged.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "controller/status/status_doc.h"
#include "policies/engine/state.h"
#include "policies/schema/binding.h"
#include "test/laws/prop.h"

static void show_all(struct prop_random *r, struct engine *e)
{
	for (size_t k = 0; k < e->policy.n_signals; k++)
		prop_show_random(r, e, k);
}

// They differ only in the note that nothing is written.
static bool same_but_dry(const struct decision *plan, const struct decision *run)
{
	size_t n = plan->n_trace;
	if (plan->desired != plan->current)
		n -= !plan->trace_cut;
	return plan->desired == run->desired && plan->action == run->action && plan->reason == run->reason &&
	       plan->driver == run->driver && n == run->n_trace && !plan->write;
}

static void plan_equals_run_and_leaves_no_trace(void **state)
{
	struct prop_random r = {prop_seed() + 20};
	struct engine e, plan;
	int64_t n = prop_ticks(), changes = 0;
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1 + prop_up_to(&r, 3));
		size_t bytes = decide_state_bytes(&e.policy);
		void *before = malloc(bytes);
		assert_non_null(before);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			show_all(&r, &e);
			memcpy(before, e.state, bytes);
			prop_copy(&plan, &e);
			plan.policy.dry_run = true;
			engine_tick_as_stamped(&plan);
			if (memcmp(before, e.state, bytes) != 0)
				prop_fail_at("a plan leaves no mark", done, &e);
			engine_tick_as_stamped(&e);
			changes += e.decision.write;
			if (!same_but_dry(&plan.decision, &e.decision))
				prop_fail_at("a plan is what a run does", done, &e);
			if (e.decision.write != (e.decision.desired != e.decision.current))
				prop_fail_at("a run writes what it decides", done, &e);
			if (memcmp(plan.state, e.state, bytes) != 0)
				prop_fail_at("a plan is what a run does", done, &e);
			engine_done(&plan);
			prop_follow(&r, &e);
			prop_advance(&r, &e);
		}
		free(before);
		engine_done(&e);
	}
	assert_true(changes > n / 100); // the law was put to the test
}

static void same_run_again_decides_the_same(void **state)
{
	struct prop_random r = {prop_seed() + 21};
	static struct decision first[PROP_TICKS_A_TRACE]; // a megabyte
	int64_t n = prop_ticks();
	for (int64_t done = 0; done < n; done += PROP_TICKS_A_TRACE) {
		struct prop_random begin = r;
		struct engine runs[2]; // both live until the end, so that their states lie at different addresses
		for (int run = 0; run < 2; run++) {
			struct engine *e = &runs[run];
			r = begin;
			prop_engine(&r, e, 1 + prop_up_to(&r, 3));
			for (int i = 0; i < PROP_TICKS_A_TRACE; i++) {
				show_all(&r, e);
				engine_tick_as_stamped(e);
				if (run == 0)
					first[i] = e->decision;
				else if (!prop_same_decision(&first[i], &e->decision))
					prop_fail_at("the same run again decides the same", done + i, e);
				prop_follow(&r, e);
				prop_advance(&r, e);
			}
		}
		engine_done(&runs[0]);
		engine_done(&runs[1]);
	}
}

// A restart: the memory is lost, and the bytes are restored at another address.
static void restart_from_bytes(struct engine *e, int64_t tick)
{
	size_t bytes = decide_state_bytes(&e->policy);
	void *kept = malloc(bytes);
	assert_non_null(kept);
	memcpy(kept, e->state, bytes);
	memset(e->state, 0xA5, bytes);
	free(e->state);
	e->state = kept;
	if (!decide_state_matches(&e->policy, e->state, bytes))
		prop_fail_at("the bytes of a state are accepted again", tick, e);
	if (decide_state_matches(&e->policy, e->state, bytes - 8))
		prop_fail_at("half a state is not a state", tick, e);
}

static void restart_from_the_bytes_changes_nothing(void **state)
{
	struct prop_random r = {prop_seed() + 22};
	struct engine e, other;
	int64_t n = prop_ticks();
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1 + prop_up_to(&r, 3));
		prop_copy(&other, &e);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			show_all(&r, &e);
			if (prop_chance(&r, 10))
				restart_from_bytes(&other, done);
			other.seen = e.seen;
			other.now_ms = e.now_ms;
			engine_tick_as_stamped(&e);
			engine_tick_as_stamped(&other);
			if (!prop_same_decision(&e.decision, &other.decision))
				prop_fail_at("a restart from the bytes changes nothing", done, &e);
			if (e.decision.write)
				decide_record_scale(&other.policy, other.state, other.now_ms, e.decision.current,
				                    e.decision.desired);
			prop_follow(&r, &e);
			prop_advance(&r, &e);
		}
		engine_done(&e);
		engine_done(&other);
	}
}

// Only what `status` keeps survives.
static void restart_from_status(struct engine *e)
{
	struct decided decided = {.policy = &e->policy, .decision = &e->decision};
	struct status_facts facts = {.phase = STATUS_DECIDED, .decided = &decided};
	struct condition conditions[CONDITION_TYPE__COUNT];
	struct status_record written = {0}, read = {0};
	struct buf text;
	struct err error = {0};
	status_conditions(&facts, conditions);
	buf_init(&text, STATUS_BYTES_MAX);
	status_doc_write(&text, &(struct status_doc){.facts = &facts,
	                                             .conditions = conditions,
	                                             .record = &written,
	                                             .policy = &e->policy,
	                                             .state = e->state,
	                                             .now_ms = e->now_ms});
	engine_start(e);
	if (text.failed || status_doc_read(buf_str(&text), text.len, &(struct binding){.policy = &e->policy}, e->state,
	                                   &read, e->decision.time_ms, &error) < 0)
		prop_fail_at(error.msg, 0, e);
	status_record_done(&read);
	buf_done(&text);
}

// The status keeps the median of the start-up times, neither the times nor the orders.
static void learn_no_start(struct engine *e)
{
	struct startup *s = &state_of(&e->policy, e->state)->startup;
	s->n_starts = s->n_orders = 0;
	s->fresh = 0;
}

static void restart_from_the_status_changes_nothing(void **state)
{
	struct prop_random r = {prop_seed() + 23};
	struct engine e, other;
	int64_t n = prop_ticks(), limited = 0, with_objective = 0;
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1 + prop_up_to(&r, 2));
		e.policy.idle.set = e.policy.fallback.set = e.policy.startup.set = false;
		// Orders are not kept: only a policy that has nothing but an objective does without them.
		e.policy.objective.set = e.policy.objective.set && e.policy.n_signals == 2;
		e.policy.startup.set = e.policy.startup.given = e.policy.objective.set;
		with_objective += e.policy.objective.set;
		e.policy.panic.set = e.policy.forecast.set = false;
		e.policy.guards.gain.set = false; // what it has learnt is not in the status
		for (size_t k = 0; k < e.policy.n_signals; k++) {
			if (!e.policy.objective.set && !e.signals[k].target.set && !e.signals[k].watermarks.set)
				e.signals[k].target = (struct policy_target){.set = true, .type = TARGET_REPLICAS};
			e.signals[k].window.set = false;
			e.signals[k].sustain = (struct policy_sustain){0, 0};
		}
		engine_start(&e);
		prop_copy(&other, &e);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			show_all(&r, &e);
			other.seen = e.seen;
			other.now_ms = e.now_ms;
			if (i > 0 && prop_chance(&r, 10))
				restart_from_status(&other);
			engine_tick_as_stamped(&e);
			engine_tick_as_stamped(&other);
			limited += engine_find(&e, REASON_SCALE_DOWN_STABILIZED) != NULL;
			if (!prop_same_decision(&e.decision, &other.decision))
				prop_fail_at("a restart from the status changes nothing", done, &e);
			if (e.decision.write)
				decide_record_scale(&other.policy, other.state, other.now_ms, e.decision.current,
				                    e.decision.desired);
			prop_follow(&r, &e);
			prop_advance(&r, &e);
			learn_no_start(&e);
			learn_no_start(&other);
		}
		engine_done(&e);
		engine_done(&other);
	}
	assert_true(limited > n / 100 && with_objective > 0); // the law was put to the test
}

static void paused_target_is_unchanged(void **state)
{
	struct prop_random r = {prop_seed() + 24};
	struct engine e;
	int64_t n = prop_ticks();
	for (int64_t done = 0; done < n;) {
		prop_engine(&r, &e, 1 + prop_up_to(&r, 2));
		e.policy.paused = true;
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++, done++) {
			show_all(&r, &e);
			engine_tick_as_stamped(&e);
			if (e.decision.write || e.decision.desired != e.seen.spec_replicas ||
			    e.decision.reason != REASON_PAUSED)
				prop_fail_at("a paused target is unchanged", done, &e);
			e.seen.spec_replicas = prop_up_to(&r, 70);
			prop_advance(&r, &e);
		}
		engine_done(&e);
	}
}

int main(void)
{
	prop_begin();
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(plan_equals_run_and_leaves_no_trace),
	        cmocka_unit_test(same_run_again_decides_the_same),
	        cmocka_unit_test(restart_from_the_bytes_changes_nothing),
	        cmocka_unit_test(restart_from_the_status_changes_nothing),
	        cmocka_unit_test(paused_target_is_unchanged),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
