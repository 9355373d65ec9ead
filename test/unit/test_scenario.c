// SPDX-License-Identifier: Apache-2.0
// Policy tests: what a test file says is played exactly so, and every expectation and law can fail.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "policies/engine/decision.h"
#include "policies/test/test_report.h"
#include "test/support/scenario_fixture.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

#define TEST_BEFORE                                                                                                    \
	"- name: a\n  target: {replicas: 5}\n  state: {scaleEvents: [{ago: %s, change: 1}]}\n"                         \
	"  signals: {want: '2'}\n  invariants: [NoFlap]\n"

#define TEST_FLAPS                                                                                                     \
	"- name: a\n  target: {replicas: 2}\n  signals: {want: '2x3 5x%d 2x3'}\n"                                      \
	"  follow: {}\n  invariants: [NoFlap, WithinBounds]\n"

#define TEST_EVENTS                                                                                                    \
	"- name: a\n"                                                                                                  \
	"  target: {replicas: 5}\n"                                                                                    \
	"  state: {scaleEvents: [{ago: %s, change: 3}, {ago: 50s, change: -1}]}\n"                                     \
	"  signals: {want: '20'}\n"                                                                                    \
	"  expect: [{at: 0s, replicas: %d}]\n"

#define TEST_LAST                                                                                                      \
	"- name: a\n"                                                                                                  \
	"  target: {replicas: 5}\n"                                                                                    \
	"  state: {lastScale: {ago: %s}}\n"                                                                            \
	"  signals: {want: '9'}\n"                                                                                     \
	"  expect: [{at: 0s, replicas: %d}]\n"

#define TEST_DOWN                                                                                                      \
	"- name: a\n"                                                                                                  \
	"  target: {replicas: 5}\n"                                                                                    \
	"  state: {recommendations: [{ago: 10s, replicas: 3}, {ago: %s, replicas: 4}]}\n"                              \
	"  signals: {want: '1'}\n"                                                                                     \
	"  expect: [{at: 0s, replicas: %d}]\n"

static void engine_sees_what_the_series_say(void **state)
{
	struct scenario_fixture *f = *state;
	scenario_must_pass(
	        f, "- name: a\n"
	           "  target: {replicas: 4}\n"
	           "  signals:\n"
	           "    want: ['2', {error: timeout}, {partial: shard}, {values: '3', age: 61s}, {values: '3', age: "
	           "60s}, 'NaN _']\n"
	           "  expect:\n"
	           "  - {at: 0s, replicas: 2, action: ScaleDown, signals: {want: {state: OK, value: 2, proposal: 2}}}\n"
	           "  - {at: 15s, replicas: 4, signals: {want: {state: Ignored, reason: QueryFailed}}}\n"
	           "  - {at: 30s, signals: {want: {reason: PartialResponse}}}\n"
	           "  - {at: 45s, signals: {want: {reason: StaleData}}}\n"
	           "  - {at: 1m, replicas: 3, signals: {want: {state: OK}}}\n"
	           "  - {at: 75s, signals: {want: {reason: NonFinite}}}\n"
	           "  - {at: 90s, signals: {want: {reason: NoData}}}\n"
	           "  - {at: 105s, signals: {want: {reason: NoData}}}\n");
	f->engine.signals[1].series = SERIES_MAX;
	scenario_must_pass(f, "- name: a\n"
	                      "  target: {replicas: 4}\n"
	                      "  signals: {load: {a: '0.5 0.1', b: '_ 0.7', c: '0.2 error'}}\n"
	                      "  expect:\n"
	                      "  - {at: 0s, signals: {load: {value: '0.5'}}}\n"
	                      "  - {at: 15s, signals: {load: {reason: QueryFailed}}}\n");
}

// ---- time, target, history ----

static void target_changes_only_with_follow(void **state)
{
	struct scenario_fixture *f = *state;
	scenario_must_pass(f, "- name: stays\n"
	                      "  target: {replicas: 2, ready: 1, pending: 1}\n"
	                      "  signals: {want: '5x9'}\n"
	                      "  expect:\n"
	                      "  - {at: 0s, replicas: 5, action: ScaleUp}\n"
	                      "  - {at: 30s, replicas: 5, action: ScaleUp}\n");
	scenario_must_pass(f, "- name: follows\n"
	                      "  target: {replicas: 2}\n"
	                      "  signals: {want: '5x9'}\n"
	                      "  follow: {readyAfter: 40s}\n"
	                      "  expect:\n"
	                      "  - {at: 0s, replicas: 5, action: ScaleUp}\n"
	                      "  - {at: 15s, replicas: 5, action: None}\n");
}

// AverageValue inside tolerance keeps the scale; Value counts on ready pods: so readiness shows in the proposal.
static void new_pods_are_ready_after_ready_after(void **state)
{
	struct scenario_fixture *f = *state;
	scenario_must_pass(f, "- name: a\n"
	                      "  target: {replicas: 2}\n"
	                      "  signals: {load: '1x9'}\n" // twice the target: wants twice the ready pods
	                      "  follow: {readyAfter: 30s}\n"
	                      "  expect:\n"
	                      "  - {at: 0s, replicas: 4}\n"
	                      "  - {at: 15s, signals: {load: {proposal: 4}}}\n"
	                      "  - {at: 30s, replicas: 8}\n");
	scenario_must_pass(f, "- name: pods that start at the start\n"
	                      "  target: {replicas: 2, ready: 1}\n"
	                      "  signals: {load: '1x9'}\n"
	                      "  follow: {readyAfter: 30s}\n"
	                      "  expect:\n"
	                      "  - {at: 0s, signals: {load: {proposal: 2}}}\n"
	                      "  - {at: 30s, signals: {load: {proposal: 4}}}\n");
	scenario_must_pass(f, "- name: nothing is known\n"
	                      "  target: {replicas: 2, ready: -1}\n"
	                      "  signals: {load: '1x9'}\n"
	                      "  expect: [{at: 0s, replicas: 4, signals: {load: {proposal: 4}}}]\n");
}

static void world_starts_and_stops_pods_as_a_replica_set_does(void **state)
{
	struct scenario_fixture *f = *state;
	struct scenario_world w;
	assert_int_equal(scenario_world_init(&w, 3, 2, 0, 50, &f->arena), 0);
	assert_int_equal(scenario_world_scale(&w, 6, 0, 100), 0); // 2 ready, 1 due at 50, 3 due at 100
	scenario_world_advance(&w, 49);
	assert_int_equal(w.ready, 2);
	scenario_world_advance(&w, 50);
	assert_int_equal(w.ready, 3);
	assert_int_equal(scenario_world_scale(&w, 4, 0, 0), 0); // two of the three that start go first
	assert_int_equal(w.ready, 3);
	scenario_world_advance(&w, 100);
	assert_int_equal(w.ready, 4);
	assert_int_equal(scenario_world_scale(&w, 1, 0, 0), 0);
	assert_int_equal(w.ready, 1);
	assert_int_equal(scenario_world_scale(&w, 0, 0, 0), 0);
	assert_int_equal(w.ready, 0);
}

static void replicas_without_room_stay_unschedulable(void **state)
{
	struct scenario_fixture *f = *state;
	struct scenario_world w;
	int64_t since_ms[4];
	assert_int_equal(scenario_world_init(&w, 2, 2, 0, 0, &f->arena), 0);
	w.room = 4;
	assert_int_equal(scenario_world_scale(&w, 3, 10, 20), 0);
	assert_int_equal(scenario_world_scale(&w, 6, 30, 40), 0);
	scenario_world_advance(&w, 100);
	assert_int_equal(w.ready, 4);
	assert_int_equal(scenario_world_unschedulable(&w, since_ms, 4), 2);
	assert_true(since_ms[0] == 30 && since_ms[1] == 30);
	assert_int_equal(scenario_world_scale(&w, 5, 110, 110), 0); // one without room goes
	assert_int_equal(w.ready, 4);
	w.room = 8;
	scenario_world_advance(&w, 120);
	assert_int_equal(w.ready, 5);
	assert_int_equal(scenario_world_unschedulable(&w, since_ms, 4), 0);
}

static void history_from_before_the_start_counts(void **state)
{
	struct scenario_fixture *f = *state;
	struct policy *p = &f->engine.policy;
	p->scale_down.stabilization_window_ms = 60000;
	p->cooldown.up_ms = 30000;
	scenario_must_pass(f, arena_printf(&f->arena, TEST_DOWN, "59s", 4)); // in any order
	scenario_must_pass(f, arena_printf(&f->arena, TEST_DOWN, "61s", 3));
	scenario_must_pass(f, arena_printf(&f->arena, TEST_LAST, "29s", 5));
	scenario_must_pass(f, arena_printf(&f->arena, TEST_LAST, "30s", 9));
	p->cooldown.up_ms = 0;
	engine_add_rate(&f->engine, 1, RATE_PODS, 4, 60000);
	scenario_must_pass(f, arena_printf(&f->arena, TEST_EVENTS, "30s", 7)); // 4 a minute, from 5 - 3 + 1
	scenario_must_pass(f, arena_printf(&f->arena, TEST_EVENTS, "61s", 10));
}

// ---- what can be broken ----

static void every_expectation_can_fail(void **state)
{
	struct scenario_fixture *f = *state;
	static const struct {
		const char *expect, *want;
	} rows[] = {
	        {"replicas: 4", "x_test.yaml:8: at 0s: expected replicas 4, got 5"},
	        {"action: None", "expected action None, got ScaleUp"},
	        {"reason: Paused", "expected reason Paused, got DesiredWithinRange"},
	        {"message: nothing of that",
	         "expected message ..nothing of that.., got want asks for 5 replicas: 2 -> 5"},
	        {"signals: {want: {state: Missing}}", "expected signals.want.state Missing, got OK"},
	        {"signals: {want: {value: 6}}", "expected signals.want.value 6, got 5"},
	        {"signals: {want: {value: '5.00001'}}", "expected signals.want.value 5.00001, got 5"},
	        {"signals: {load: {value: 6}}", "expected signals.load.value 6, got NaN"},
	        {"signals: {want: {proposal: 2}}", "expected signals.want.proposal 2, got 5"},
	        {"signals: {load: {reason: QueryFailed}}", "expected signals.load.reason QueryFailed, got NoData"},
	        {"replicas: 4, action: ScaleUp, reason: Paused", "got 5; expected reason Paused, got"},
	        {"message: '-> 4'", "got want asks for 5 replicas: 2 -> 5\n    signals"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		char text[512];
		snprintf(text, sizeof text,
		         "- name: a\n  target: {replicas: 2}\n  signals: {want: '5'}\n  expect: [{at: 0s, %s}]\n",
		         rows[i].expect);
		scenario_must_fail(f, text, rows[i].want);
		assert_non_null(
		        strstr(scenario_report(f, false), "ReplicasRequested      want asks for 5 replicas: 2 -> 5\n"));
	}
	scenario_must_pass(f, "- name: a\n  target: {replicas: 2}\n  signals: {want: '5'}\n"
	                      "  expect: [{at: 0s, message: asks for 5, signals: {want: {value: '5.000001'}}}]\n");
}

static void diff_shows_all_that_was_asked(void **state)
{
	struct scenario_fixture *f = *state;
	assert_int_equal(scenario_play(f, "- name: a\n  target: {replicas: 2}\n  signals: {want: '5'}\n"
	                                  "  expect: [{at: 0s, replicas: 4, action: ScaleUp}]\n"),
	                 1);
	const char *want = "  --- expected  x_test.yaml:8\n"
	                   "  +++ decided   at 0s\n"
	                   "  -replicas: 4\n"
	                   "  +replicas: 5\n"
	                   "   action: ScaleUp\n";
	if (strncmp(scenario_report(f, true), want, strlen(want)) != 0)
		fail_msg("%s", scenario_report(f, true));
}

static void findings_have_a_ceiling_and_say_how_many_more(void **state)
{
	struct scenario_fixture *f = *state;
	char text[4096];
	int used = snprintf(text, sizeof text,
	                    "- name: a\n  target: {replicas: 2}\n  signals: {want: '5x99'}\n  expect:\n");
	for (int i = 0; i < SCENARIO_FINDINGS_MAX + 7; i++)
		used += snprintf(text + used, sizeof text - (size_t)used, "  - {at: %ds, replicas: 1}\n", i * 15);
	scenario_must_fail(f, text, "  and 7 more\n");
	assert_int_equal(f->result.n, SCENARIO_FINDINGS_MAX);
	assert_int_equal(f->result.findings[2].line, SCENARIO_HEAD_LINES + 5 + 2);
}

static void laws_watch_every_tick_of_the_series(void **state)
{
	struct scenario_fixture *f = *state;
	scenario_must_fail(f, arena_printf(&f->arena, TEST_FLAPS, 18),
	                   "x_test.yaml:5: at 5m45s: NoFlap: 5 -> 2 reverses the scale of "
	                   "4m45s before, within 5m");
	scenario_must_pass(f, arena_printf(&f->arena, TEST_FLAPS, 19));
	f->engine.policy.cooldown.down_ms = 30000; // a window of its own: the policy does not promise more than that
	scenario_must_pass(f, arena_printf(&f->arena, TEST_FLAPS, 1));
	f->engine.policy.cooldown.down_ms = 0;
	scenario_must_fail(f, arena_printf(&f->arena, TEST_BEFORE, "299s"),
	                   "NoFlap: 5 -> 2 reverses the scale of 4m59s before");
	scenario_must_pass(f, arena_printf(&f->arena, TEST_BEFORE, "5m"));
	scenario_must_pass(f,
	                   "- name: a\n  target: {replicas: 1}\n  signals: {want: '1+5x20 100-3x30 _x5 errorx5', load: "
	                   "'0.5+0.01x50'}\n"
	                   "  follow: {readyAfter: 1m}\n  invariants: [WithinBounds, HoldOnNoData, MonotoneInLoad]\n");
}

static void each_law_knows_a_decision_that_breaks_it(void **state)
{
	struct scenario_fixture *f = *state;
	struct policy *p = &f->engine.policy;
	char why[LAW_TEXT_BYTES];
	struct decision d = {.current = 50,
	                     .desired = 101,
	                     .reason = REASON_DESIRED_WITHIN_RANGE,
	                     .time_ms = 1000,
	                     .min_replicas = 1,
	                     .max_replicas = 100};
	assert_false(law_within_bounds(p, &d, why));
	assert_string_equal(why, "101 is outside 1..100");
	d.reason = REASON_PAUSED;
	assert_true(law_within_bounds(p, &d, why));

	struct obs_series series[] = {{"", NAN, 1000}, {"", 1, 1000}};
	struct obs_signal seen[] = {{.state = OBS_EMPTY}, {.state = OBS_OK, .series = series, .n_series = 1}};
	struct observation o = {.signals = seen, .n_signals = 2};
	d.desired = 51;
	assert_true(law_hold_on_no_data(p, &o, &d, why)); // they are ignored when missing
	f->engine.signals[0].on_missing = f->engine.signals[1].on_missing = ON_MISSING_HOLD;
	assert_false(law_hold_on_no_data(p, &o, &d, why)); // NaN counts as missing
	seen[1].n_series = 2;
	assert_true(law_hold_on_no_data(p, &o, &d, why));
	f->engine.signals[1].stale_after_ms = 500;
	series[1].time_ms = 499;
	assert_false(law_hold_on_no_data(p, &o, &d, why)); // neither is what is stale
	d.current = 101;
	assert_true(law_hold_on_no_data(p, &o, &d, why)); // bounds come first

	struct decision more = d;
	assert_true(law_monotone_in_load(&d, &more, why));
	more.desired--;
	assert_false(law_monotone_in_load(&d, &more, why));
	assert_string_equal(why, "with 5 % more of everything 50 are wanted, fewer than 51");
	assert_true(law_more_load(2) > 2 && law_more_load(-2) > -2 && law_more_load(0) == 0 &&
	            isnan(law_more_load(NAN)));

	assert_int_equal(law_flap_ms(p), LAW_FLAP_MS);
	f->engine.signals[1].sustain.up_ms = 20;
	assert_int_equal(law_flap_ms(p), 20);
	p->scale_down.stabilization_window_ms = 30;
	assert_int_equal(law_flap_ms(p), 30);
}

// ---- coverage ----

static void coverage_knows_what_was_reached_and_what_not(void **state)
{
	struct scenario_fixture *f = *state;
	struct coverage_list list = {0};
	struct buf out;
	struct err e;
	f->engine.policy.cooldown.up_ms = 30000;
	assert_int_equal(scenario_read(f, "- {name: a, target: {replicas: 2}, expect: [{at: 15s, replicas: 5}], "
	                                  "signals: {want: '5x1'}, follow: {}}\n"),
	                 0);
	assert_int_equal(scenario_run(f->file.tests, coverage_of(&list, &f->engine.policy), &f->arena, &f->result, &e),
	                 0);
	assert_ptr_equal(coverage_of(&list, &f->engine.policy), list.items[0]);
	buf_init(&out, 1 << 20);
	coverage_print(&list, &out);
	const char *text = buf_str(&out);
	assert_non_null(strstr(text, "coverage of serving/llama: "));
	assert_non_null(strstr(text, " in 2 ticks\n"));
	assert_non_null(strstr(text, "  signals    ReplicasRequested      2\n"));
	assert_non_null(strstr(text, "  cooldown   CooldownActive         -\n"));
	assert_non_null(strstr(text, "  signals    AboveTarget            -\n"));
	assert_null(strstr(text, "AboveHighWatermark")); // no signal has watermarks
	assert_null(strstr(text, "SustainPending"));
	buf_done(&out);
	coverage_done(&list);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, scenario_setup, scenario_teardown)
	const struct CMUnitTest tests[] = {
	        T(engine_sees_what_the_series_say),
	        T(target_changes_only_with_follow),
	        T(new_pods_are_ready_after_ready_after),
	        T(world_starts_and_stops_pods_as_a_replica_set_does),
	        T(replicas_without_room_stay_unschedulable),
	        T(history_from_before_the_start_counts),
	        T(every_expectation_can_fail),
	        T(diff_shows_all_that_was_asked),
	        T(findings_have_a_ceiling_and_say_how_many_more),
	        T(laws_watch_every_tick_of_the_series),
	        T(each_law_knows_a_decision_that_breaks_it),
	        T(coverage_knows_what_was_reached_and_what_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
