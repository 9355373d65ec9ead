// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the state is a block of bytes that may be copied, stored, fed from a stored history, and carried
// over to a changed policy; only a block of the right shape is accepted.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test/support/engine.h"

#define TICK_MS 15000

static void windowed(struct engine *e)
{
	engine_init(e, 10);
	e->policy.scale_down.stabilization_window_ms = 300000;
	e->policy.cooldown.down_ms = 60000;
	engine_add_value(e, "load", 10)->window = (struct policy_window){true, 120000, WINDOW_AVG, 0};
	engine_add_watermarks(e, "queue", 2, 8, WATERMARK_ABSOLUTE)->sustain.up_ms = 60000;
	engine_start(e);
}

static void run(struct engine *e, int from, int n)
{
	for (int i = from; i < from + n; i++, e->now_ms += TICK_MS) {
		engine_show(e, 0, 5 + (i * 7) % 11);
		engine_show(e, 1, (i * 5) % 13);
		engine_tick(e);
		engine_apply(e);
	}
}

static void copy_of_the_bytes_goes_on_like_the_original(void **state)
{
	struct engine a, b;
	windowed(&a);
	run(&a, 0, 37);
	size_t bytes = decide_state_bytes(&a.policy);
	assert_int_equal(bytes % 8, 0);
	windowed(&b);
	memcpy(b.state, a.state, bytes);
	b.seen.spec_replicas = a.seen.spec_replicas;
	b.seen.status_replicas = a.seen.status_replicas;
	b.seen.ready_replicas = a.seen.ready_replicas;
	b.now_ms = a.now_ms;
	for (int i = 37; i < 200; i++) {
		run(&a, i, 1);
		run(&b, i, 1);
		assert_int_equal(a.decision.desired, b.decision.desired);
		assert_int_equal(a.decision.reason, b.decision.reason);
		assert_memory_equal(a.state, b.state, bytes);
	}
	engine_done(&a);
	engine_done(&b);
}

static void packed_state_of_a_policy_without_memory_is_small(void **state)
{
	struct engine e;
	windowed(&e);
	size_t fresh = decide_state_packed_bytes(&e.policy, e.state);
	assert_true(fresh < decide_state_bytes(&e.policy) / 4);
	run(&e, 1, 1);
	size_t one = decide_state_packed_bytes(&e.policy, e.state);
	run(&e, 2, 1);
	assert_true(one > fresh);
	assert_true(decide_state_packed_bytes(&e.policy, e.state) <= one + 64); // a sample of the window, not its room
	engine_done(&e);
}

static void state_without_its_empty_room_goes_on_like_the_original(void **state)
{
	struct engine a, b;
	windowed(&a);
	windowed(&b);
	size_t bytes = decide_state_bytes(&a.policy);
	for (int i = 0; i < 200; i++) {
		size_t n = decide_state_packed_bytes(&b.policy, b.state);
		assert_true(n < bytes);
		void *packed = malloc(n);
		decide_state_pack(&b.policy, b.state, packed);
		memset(b.state, 0xa5, bytes);
		decide_state_unpack(&b.policy, packed, b.state);
		free(packed);
		assert_true(decide_state_matches(&b.policy, b.state, bytes));
		run(&a, i, 1);
		run(&b, i, 1);
		assert_int_equal(a.decision.desired, b.decision.desired);
		assert_int_equal(a.decision.reason, b.decision.reason);
	}
	engine_done(&a);
	engine_done(&b);
}

static void only_a_block_of_the_same_shape_matches(void **state)
{
	struct engine e;
	windowed(&e);
	size_t bytes = decide_state_bytes(&e.policy);
	assert_true(decide_state_matches(&e.policy, e.state, bytes));
	run(&e, 0, 5);
	assert_true(decide_state_matches(&e.policy, e.state, bytes));
	assert_false(decide_state_matches(&e.policy, e.state, bytes - 8));
	assert_false(decide_state_matches(&e.policy, e.state, 0));
	unsigned char *copy = malloc(bytes);
	assert_non_null(copy);
	for (size_t i = 0; i < 8; i++) { // magic and version
		memcpy(copy, e.state, bytes);
		copy[i] ^= 1;
		assert_false(decide_state_matches(&e.policy, copy, bytes));
	}
	free(copy);

	// what changes the meaning of the samples or of the timers changes the shape
	struct engine other = e;
	other.policy.signals = other.signals;
#define CHANGES(statement)                                                                                             \
	do {                                                                                                           \
		memcpy(other.signals, e.signals, sizeof e.signals);                                                    \
		other.policy = e.policy;                                                                               \
		other.policy.signals = other.signals;                                                                  \
		assert_true(decide_state_matches(&other.policy, e.state, bytes));                                      \
		statement;                                                                                             \
		assert_false(decide_state_matches(&other.policy, e.state, decide_state_bytes(&other.policy)));         \
	} while (0)
	CHANGES(other.signals[0].name = "other");
	CHANGES(other.signals[0].query = "other");
	CHANGES(other.signals[0].series = SERIES_SUM);
	CHANGES(other.signals[0].window.duration_ms = 121000);
	CHANGES(other.signals[0].window.aggregate = WINDOW_MAX);
	CHANGES(other.signals[0].window.set = false);
	CHANGES(other.signals[0].target.value = 11);
	CHANGES(other.signals[1].watermarks.low = 1);
	CHANGES(other.signals[1].watermarks.algorithm = WATERMARK_AVERAGE);
	CHANGES(other.policy.n_signals = 1);
	CHANGES(other.policy.scale_down.stabilization_window_ms = 3600000);
#undef CHANGES
	// what does not, does not
	memcpy(other.signals, e.signals, sizeof e.signals);
	other.policy = e.policy;
	other.policy.signals = other.signals;
	other.policy.max_replicas = 7;
	other.policy.paused = true;
	other.signals[0].stale_after_ms = 1;
	other.signals[0].window.min_samples = 3;
	other.signals[0].sustain.up_ms = 5;
	assert_true(decide_state_matches(&other.policy, e.state, bytes));
	engine_done(&e);
}

static void history_read_and_fed_again_gives_the_same_decisions(void **state)
{
	struct engine a, b;
	engine_init(&a, 10);
	a.policy.scale_down.stabilization_window_ms = 300000;
	a.policy.cooldown = (struct policy_sustain){30000, 60000};
	engine_add_rate(&a, +1, RATE_PODS, 4, 60000);
	engine_add_rate(&a, -1, RATE_PERCENT, 20, 120000);
	engine_add_replicas(&a, "asked");
	engine_start(&a);
	static const int asked[] = {12, 30, 4, 9, 17, 2, 2, 8, 40, 3, 11, 6};
	enum { N = sizeof asked / sizeof asked[0] };
	for (int i = 0; i < 60; i++, a.now_ms += TICK_MS) {
		engine_show(&a, 0, asked[i % N]);
		engine_tick(&a);
		engine_apply(&a);
	}
	b = a;
	b.policy.signals = b.signals;
	b.policy.scale_up.rates = b.up;
	b.policy.scale_down.rates = b.down;
	b.seen.signals = b.seen_signals;
	b.state = NULL;
	engine_start(&b);

	struct decide_recommendation recommendations[2 * DECIDE_HISTORY_MAX];
	struct decide_scale_event events[2 * DECIDE_HISTORY_MAX];
	size_t n = decide_recommendations(&a.policy, a.state, recommendations, 2 * DECIDE_HISTORY_MAX);
	assert_true(n > 5);
	for (size_t i = 0; i < n; i++)
		decide_record_recommendation(&b.policy, b.state, recommendations[i].time_ms,
		                             recommendations[i].replicas);
	n = decide_scale_events(&a.policy, a.state, events, 2 * DECIDE_HISTORY_MAX);
	assert_true(n > 0);
	for (size_t i = 0; i < n; i++)
		decide_record_scale(&b.policy, b.state, events[i].time_ms, 100, 100 + events[i].change);
	decide_record_last_scale(&b.policy, b.state, decide_last_scale_ms(&a.policy, a.state));
	assert_int_equal(decide_last_scale_ms(&b.policy, b.state), decide_last_scale_ms(&a.policy, a.state));
	for (int i = 60; i < 200; i++, a.now_ms += TICK_MS, b.now_ms += TICK_MS) {
		engine_show(&a, 0, asked[i % N]);
		engine_show(&b, 0, asked[i % N]);
		engine_tick(&a);
		engine_tick(&b);
		assert_int_equal(a.decision.desired, b.decision.desired);
		assert_int_equal(a.decision.reason, b.decision.reason);
		engine_apply(&a);
		engine_apply(&b);
	}
	engine_done(&a);
	engine_done(&b);
}

static void fresh_state_knows_nothing(void **state)
{
	struct engine e;
	windowed(&e);
	struct decide_recommendation r[4];
	struct decide_scale_event s[4];
	assert_int_equal(decide_recommendations(&e.policy, e.state, r, 4), 0);
	assert_int_equal(decide_scale_events(&e.policy, e.state, s, 4), 0);
	assert_int_equal(decide_last_scale_ms(&e.policy, e.state), -1);
	decide_record_scale(&e.policy, e.state, 5000, 3, 3); // nothing changed
	assert_int_equal(decide_last_scale_ms(&e.policy, e.state), -1);
	decide_record_scale(&e.policy, e.state, 5000, 3, 5);
	decide_record_scale(&e.policy, e.state, 5000, 5, 4); // at the same time
	assert_int_equal(decide_last_scale_ms(&e.policy, e.state), 5000);
	assert_int_equal(decide_scale_events(&e.policy, e.state, s, 4), 2);
	assert_int_equal(s[0].change, 2);
	assert_int_equal(s[1].change, -1);
	assert_int_equal(decide_scale_events(&e.policy, e.state, s, 1), 1); // no more than asked for
	engine_done(&e);
}

// ---- a changed policy ----

struct changed {
	struct engine e;
	unsigned char *old_state;
	struct policy old_policy;
	struct policy_signal old_signals[POLICY_SIGNALS_MAX];
};

static void start_change(struct changed *c)
{
	windowed(&c->e);
	run(&c->e, 0, 50);
	size_t bytes = decide_state_bytes(&c->e.policy);
	c->old_state = malloc(bytes);
	assert_non_null(c->old_state);
	memcpy(c->old_state, c->e.state, bytes);
	c->old_policy = c->e.policy;
	memcpy(c->old_signals, c->e.signals, sizeof c->old_signals);
	c->old_policy.signals = c->old_signals;
}

static void end_change(struct changed *c)
{
	engine_start(&c->e);
	decide_state_migrate(&c->old_policy, c->old_state, &c->e.policy, c->e.state);
	free(c->old_state);
	assert_true(decide_state_matches(&c->e.policy, c->e.state, decide_state_bytes(&c->e.policy)));
}

static void windows_survive_a_change_elsewhere(void **state)
{
	struct changed c;
	start_change(&c);
	// other bounds, another target, a signal before it, another interval
	c.e.signals[2] = c.e.signals[0];
	c.e.signals[2].target.value = 20;
	c.e.signals[0] = c.e.signals[1];
	c.e.signals[0].name = "new";
	c.e.policy.n_signals = 3;
	c.e.seen.n_signals = 3;
	c.e.policy.interval_ms = 30000;
	end_change(&c);
	engine_show(&c.e, 0, 5);
	engine_show(&c.e, 1, 5);
	engine_show(&c.e, 2, 10);
	engine_tick(&c.e);
	assert_int_equal(c.e.decision.signals[2].state, SIGNAL_OK); // filled already
	const struct trace_entry *t = engine_find(&c.e, REASON_WINDOW_AGGREGATE);
	assert_non_null(t);
	assert_int_equal(t->count, 8);
	engine_done(&c.e);
}

static void window_of_another_query_starts_empty(void **state)
{
	struct changed c;
	start_change(&c);
	c.e.signals[0].query = "another";
	end_change(&c);
	engine_show(&c.e, 0, 5);
	engine_show(&c.e, 1, 5);
	engine_tick(&c.e);
	assert_int_equal(c.e.decision.signals[0].state, SIGNAL_FILLING);
	engine_done(&c.e);
}

static void timers_survive_only_under_the_same_thresholds(void **state)
{
	for (int changes = 0; changes < 2; changes++) {
		struct changed c;
		start_change(&c);
		// the queue has been high for 60 s when the policy changes
		engine_start(&c.e);
		for (int i = 0; i < 4; i++, c.e.now_ms += TICK_MS) {
			engine_show(&c.e, 0, 10);
			engine_show(&c.e, 1, 20);
			engine_tick(&c.e);
		}
		memcpy(c.old_state, c.e.state, decide_state_bytes(&c.old_policy));
		c.e.policy.max_replicas = 50;
		c.e.signals[1].watermarks.high = changes ? 9 : 8;
		end_change(&c);
		engine_show(&c.e, 0, 10);
		engine_show(&c.e, 1, 20);
		engine_tick(&c.e);
		assert_int_equal(engine_find(&c.e, REASON_SUSTAIN_PENDING) != NULL, changes);
		engine_done(&c.e);
	}
}

static void history_and_cooldown_survive(void **state)
{
	struct changed c;
	start_change(&c);
	decide_record_recommendation(&c.old_policy, c.old_state, c.e.now_ms - 10000, 77);
	decide_record_scale(&c.old_policy, c.old_state, c.e.now_ms - 10000, 5, 9);
	c.e.policy.scale_down.stabilization_window_ms = 3600000; // more room
	c.e.signals[0].name = "renamed";
	end_change(&c);
	struct decide_recommendation r[2 * DECIDE_HISTORY_MAX];
	size_t n = decide_recommendations(&c.e.policy, c.e.state, r, 2 * DECIDE_HISTORY_MAX);
	assert_true(n > 1);
	assert_int_equal(r[n - 1].replicas, 77);
	assert_int_equal(r[n - 1].time_ms, c.e.now_ms - 10000);
	struct decide_scale_event s[2 * DECIDE_HISTORY_MAX];
	n = decide_scale_events(&c.e.policy, c.e.state, s, 2 * DECIDE_HISTORY_MAX);
	assert_true(n >= 1);
	assert_int_equal(s[n - 1].change, 4);
	assert_int_equal(decide_last_scale_ms(&c.e.policy, c.e.state), c.e.now_ms - 10000);
	engine_done(&c.e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(copy_of_the_bytes_goes_on_like_the_original),
	        cmocka_unit_test(packed_state_of_a_policy_without_memory_is_small),
	        cmocka_unit_test(state_without_its_empty_room_goes_on_like_the_original),
	        cmocka_unit_test(only_a_block_of_the_same_shape_matches),
	        cmocka_unit_test(history_read_and_fed_again_gives_the_same_decisions),
	        cmocka_unit_test(fresh_state_knows_nothing),
	        cmocka_unit_test(windows_survive_a_change_elsewhere),
	        cmocka_unit_test(window_of_another_query_starts_empty),
	        cmocka_unit_test(timers_survive_only_under_the_same_thresholds),
	        cmocka_unit_test(history_and_cooldown_survive),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
