// SPDX-License-Identifier: Apache-2.0
// Policy tests: what a test file says is played exactly so, faults are placed, and every expectation and law can fail.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/num.h"
#include "base/schema.h"
#include "controller/coverage.h"
#include "controller/policy_set.h"
#include "controller/scenario.h"
#include "controller/scenario_law.h"
#include "controller/scenario_run.h"
#include "controller/scenario_world.h"
#include "controller/test_report.h"
#include "policies/decision.h"
#include "test/support/engine.h"

#define N(a)       (sizeof(a) / sizeof((a)[0]))
#define ARENA_MAX  (64 << 20)
#define HEAD       "apiVersion: gpuscale.dev/v1alpha1\nkind: PolicyTest\npolicyFiles: [p.yaml]\ntests:\n"
#define HEAD_LINES 4

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

// A policy of two signals: `want` asks for replicas, `load` has a target.
struct fixture {
	struct engine engine;
	const struct policy *policies[1];
	struct policy_set set;
	struct arena arena;
	struct schema_errors errors;
	struct scenario_file file;
	struct scenario_result result;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	engine_init(&f->engine, 1);
	engine_add_replicas(&f->engine, "want");
	engine_add_value(&f->engine, "load", 0.5);
	f->engine.signals[0].on_missing = ON_MISSING_IGNORE;
	f->engine.signals[1].on_missing = ON_MISSING_IGNORE;
	f->engine.signals[0].stale_after_ms = 60000;
	f->engine.policy.namespace_name = "serving";
	f->engine.policy.name = "llama";
	f->engine.policy.max_replicas = 100;
	f->policies[0] = &f->engine.policy;
	f->set = (struct policy_set){.policies = f->policies, .n_policies = 1};
	arena_init(&f->arena, ARENA_MAX);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	arena_done(&f->arena);
	free(f);
	return 0;
}

// Decodes and binds the first test of HEAD + text. 0, or -1 with f->errors.
static int bind(struct fixture *f, const char *text)
{
	struct doc_file doc;
	struct err e;
	char *whole = arena_printf(&f->arena, HEAD "%s", text);
	schema_errors_init(&f->errors, "x_test.yaml");
	if (doc_parse_yaml(&f->arena, "x_test.yaml", whole, strlen(whole), &doc, &e) < 0)
		fail_msg("%s", e.msg);
	memset(&f->file, 0, sizeof f->file);
	if (schema_decode(scenario_schema(), doc.roots[0], &f->file, &f->arena, &f->errors, "") < 0)
		return -1;
	return scenario_bind(f->file.tests, doc_get(doc.roots[0], "tests")->child, 0, f->file.interval_ms, &f->set,
	                     &f->arena, &f->errors);
}

static const char *report_of(struct fixture *f, bool diff)
{
	struct buf out;
	struct test_style style = {.diff = diff};
	buf_init(&out, 1 << 20);
	test_report_findings(&out, &style, "x_test.yaml", &f->result);
	const char *text = arena_strdup(&f->arena, buf_str(&out));
	buf_done(&out);
	return text;
}

// Runs a test that must bind; returns how many findings there are.
static size_t play(struct fixture *f, const char *text)
{
	struct err e;
	if (bind(f, text) < 0)
		fail_msg("%s\n%s: %s", text, f->errors.items[0].path, f->errors.items[0].message);
	if (scenario_run(f->file.tests, NULL, &f->arena, &f->result, &e) < 0)
		fail_msg("%s", e.msg);
	return f->result.n + f->result.dropped;
}

static void must_pass(struct fixture *f, const char *text)
{
	if (play(f, text) > 0)
		fail_msg("%s\n%s", text, report_of(f, false));
}

static void must_fail(struct fixture *f, const char *text, const char *want)
{
	if (play(f, text) == 0)
		fail_msg("passes, but must not:\n%s", text);
	if (!strstr(report_of(f, false), want))
		fail_msg("%s\n  want: %s\n  got:\n%s", text, want, report_of(f, false));
}

// ---- what a signal shows ----

static void write_series(const struct scenario_series *s, char *out, size_t size)
{
	static const char *const names[] = {"", "_", "E", "P"};
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < s->n && used < size; i++) {
		const struct scenario_point *p = &s->points[i];
		char text[NUM_TEXT_BYTES] = "";
		if (p->state == OBS_OK)
			num_format_f64(text, p->value);
		int n = snprintf(out + used, size - used, "%s%s%s%s%s", i ? " " : "", names[p->state], text,
		                 p->detail ? ":" : "", p->detail ? p->detail : "");
		used += n > 0 ? (size_t)n : 0;
		if (p->age_ms && used < size) {
			n = snprintf(out + used, size - used, "@%lld", (long long)p->age_ms);
			used += n > 0 ? (size_t)n : 0;
		}
	}
	if (used < size)
		snprintf(out + used, size - used, "%s", s->endless ? " .." : "");
}

static void a_signal_is_a_series_a_list_of_pieces_or_one_of_them_per_pod(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *yaml, *want; // of the last series
		size_t n_series;
	} rows[] = {
	        {"'1 2+1x1 _ stale error:no'", "1 2 3 _ _ E:no", 1},
	        {"7", "7", 1},
	        {"['1x1', 5, '_']", "1 1 5 _", 1},
	        {"['1', {error: timeout}, {error: two words, times: 2}, '3']", "1 E:timeout E:two words E:two words 3",
	         1},
	        {"['1', {partial: one shard}, {values: '4x1', age: 90s}]", "1 P:one shard 4@90000 4@90000", 1},
	        {"{error: timeout}", "E:timeout ..", 1},
	        {"{error: timeout, times: 2}", "E:timeout E:timeout", 1},
	        {"{values: '4', age: 1m}", "4@60000", 1},
	        {"{pod-a: '1', pod-b: ['2', {error: x}]}", "2 E:x", 2},
	        {"{pod-a: '1', pod-b: {values: '4', age: 1m}}", "4@60000", 2},
	        {"['1', {error: \"a\\e[2Jb\"}]", "1 E:a\\x1b[2Jb", 1},
	};
	for (size_t i = 0; i < N(rows); i++) {
		char text[512], got[256];
		snprintf(text, sizeof text,
		         "- {name: a, target: {replicas: 1}, expect: [{at: 0s, replicas: 1}], signals: {load: %s}}",
		         rows[i].yaml);
		if (bind(f, text) < 0)
			fail_msg("%s: %s", rows[i].yaml, f->errors.items[0].message);
		const struct scenario_signal *s = &f->file.tests[0].signals[1];
		assert_int_equal(s->n_series, rows[i].n_series);
		write_series(&s->series[s->n_series - 1], got, sizeof got);
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s\n  got:  %s\n  want: %s", rows[i].yaml, got, rows[i].want);
	}
}

static void the_engine_sees_what_the_series_say(void **state)
{
	struct fixture *f = *state;
	must_pass(f,
	          "- name: a\n"
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
	must_pass(f, "- name: a\n"
	             "  target: {replicas: 4}\n"
	             "  signals: {load: {a: '0.5 0.1', b: '_ 0.7', c: '0.2 error'}}\n"
	             "  expect:\n"
	             "  - {at: 0s, signals: {load: {value: '0.5'}}}\n"
	             "  - {at: 15s, signals: {load: {reason: QueryFailed}}}\n");
}

// ---- time, target, history ----

static void without_follow_the_target_stays_with_it_decisions_are_applied(void **state)
{
	struct fixture *f = *state;
	must_pass(f, "- name: stays\n"
	             "  target: {replicas: 2, ready: 1, pending: 1}\n"
	             "  signals: {want: '5x9'}\n"
	             "  expect:\n"
	             "  - {at: 0s, replicas: 5, action: ScaleUp}\n"
	             "  - {at: 30s, replicas: 5, action: ScaleUp}\n");
	must_pass(f, "- name: follows\n"
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
	struct fixture *f = *state;
	must_pass(f, "- name: a\n"
	             "  target: {replicas: 2}\n"
	             "  signals: {load: '1x9'}\n" // twice the target: wants twice the ready pods
	             "  follow: {readyAfter: 30s}\n"
	             "  expect:\n"
	             "  - {at: 0s, replicas: 4}\n"
	             "  - {at: 15s, signals: {load: {proposal: 4}}}\n"
	             "  - {at: 30s, replicas: 8}\n");
	must_pass(f, "- name: pods that start at the start\n"
	             "  target: {replicas: 2, ready: 1}\n"
	             "  signals: {load: '1x9'}\n"
	             "  follow: {readyAfter: 30s}\n"
	             "  expect:\n"
	             "  - {at: 0s, signals: {load: {proposal: 2}}}\n"
	             "  - {at: 30s, signals: {load: {proposal: 4}}}\n");
	must_pass(f, "- name: nobody knows\n"
	             "  target: {replicas: 2, ready: -1}\n"
	             "  signals: {load: '1x9'}\n"
	             "  expect: [{at: 0s, replicas: 4, signals: {load: {proposal: 4}}}]\n");
}

static void the_world_starts_and_stops_pods_as_a_replica_set_does(void **state)
{
	struct fixture *f = *state;
	struct scenario_world w;
	assert_int_equal(scenario_world_init(&w, 3, 2, 50, &f->arena), 0);
	assert_int_equal(scenario_world_scale(&w, 6, 100), 0); // 2 ready, 1 due at 50, 3 due at 100
	scenario_world_advance(&w, 49);
	assert_int_equal(w.ready, 2);
	scenario_world_advance(&w, 50);
	assert_int_equal(w.ready, 3);
	assert_int_equal(scenario_world_scale(&w, 4, 0), 0); // two of the three that start go first
	assert_int_equal(w.ready, 3);
	scenario_world_advance(&w, 100);
	assert_int_equal(w.ready, 4);
	assert_int_equal(scenario_world_scale(&w, 1, 0), 0);
	assert_int_equal(w.ready, 1);
	assert_int_equal(scenario_world_scale(&w, 0, 0), 0);
	assert_int_equal(w.ready, 0);
}

static void history_from_before_the_start_counts(void **state)
{
	struct fixture *f = *state;
	struct policy *p = &f->engine.policy;
	p->scale_down.stabilization_window_ms = 60000;
	p->cooldown.up_ms = 30000;
	must_pass(f, arena_printf(&f->arena, TEST_DOWN, "59s", 4)); // in any order
	must_pass(f, arena_printf(&f->arena, TEST_DOWN, "61s", 3));
	must_pass(f, arena_printf(&f->arena, TEST_LAST, "29s", 5));
	must_pass(f, arena_printf(&f->arena, TEST_LAST, "30s", 9));
	p->cooldown.up_ms = 0;
	engine_add_rate(&f->engine, 1, RATE_PODS, 4, 60000);
	must_pass(f, arena_printf(&f->arena, TEST_EVENTS, "30s", 7)); // 4 a minute, from 5 - 3 + 1
	must_pass(f, arena_printf(&f->arena, TEST_EVENTS, "61s", 10));
}

// ---- what can be broken ----

static void every_expectation_can_fail(void **state)
{
	struct fixture *f = *state;
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
		must_fail(f, text, rows[i].want);
		assert_non_null(
		        strstr(report_of(f, false), "ReplicasRequested      want asks for 5 replicas: 2 -> 5\n"));
	}
	must_pass(f, "- name: a\n  target: {replicas: 2}\n  signals: {want: '5'}\n"
	             "  expect: [{at: 0s, message: asks for 5, signals: {want: {value: '5.000001'}}}]\n");
}

static void a_diff_shows_all_that_was_asked(void **state)
{
	struct fixture *f = *state;
	assert_int_equal(play(f, "- name: a\n  target: {replicas: 2}\n  signals: {want: '5'}\n"
	                         "  expect: [{at: 0s, replicas: 4, action: ScaleUp}]\n"),
	                 1);
	const char *want = "  --- expected  x_test.yaml:8\n"
	                   "  +++ decided   at 0s\n"
	                   "  -replicas: 4\n"
	                   "  +replicas: 5\n"
	                   "   action: ScaleUp\n";
	if (strncmp(report_of(f, true), want, strlen(want)) != 0)
		fail_msg("%s", report_of(f, true));
}

static void findings_have_a_ceiling_and_say_how_many_more(void **state)
{
	struct fixture *f = *state;
	char text[4096];
	int used = snprintf(text, sizeof text,
	                    "- name: a\n  target: {replicas: 2}\n  signals: {want: '5x99'}\n  expect:\n");
	for (int i = 0; i < SCENARIO_FINDINGS_MAX + 7; i++)
		used += snprintf(text + used, sizeof text - (size_t)used, "  - {at: %ds, replicas: 1}\n", i * 15);
	must_fail(f, text, "  and 7 more\n");
	assert_int_equal(f->result.n, SCENARIO_FINDINGS_MAX);
	assert_int_equal(f->result.findings[2].line, HEAD_LINES + 5 + 2);
}

static void laws_watch_every_tick_of_the_series(void **state)
{
	struct fixture *f = *state;
	must_fail(f, arena_printf(&f->arena, TEST_FLAPS, 18),
	          "x_test.yaml:5: at 5m45s: NoFlap: 5 -> 2 reverses the scale of "
	          "4m45s before, within 5m");
	must_pass(f, arena_printf(&f->arena, TEST_FLAPS, 19));
	f->engine.policy.cooldown.down_ms = 30000; // a window of its own: the policy does not promise more than that
	must_pass(f, arena_printf(&f->arena, TEST_FLAPS, 1));
	f->engine.policy.cooldown.down_ms = 0;
	must_fail(f, arena_printf(&f->arena, TEST_BEFORE, "299s"), "NoFlap: 5 -> 2 reverses the scale of 4m59s before");
	must_pass(f, arena_printf(&f->arena, TEST_BEFORE, "5m"));
	must_pass(f, "- name: a\n  target: {replicas: 1}\n  signals: {want: '1+5x20 100-3x30 _x5 errorx5', load: "
	             "'0.5+0.01x50'}\n"
	             "  follow: {readyAfter: 1m}\n  invariants: [WithinBounds, HoldOnNoData, MonotoneInLoad]\n");
}

static void each_law_knows_a_decision_that_breaks_it(void **state)
{
	struct fixture *f = *state;
	struct policy *p = &f->engine.policy;
	char why[LAW_TEXT_BYTES];
	struct decision d = {.current = 50, .desired = 101, .reason = REASON_DESIRED_WITHIN_RANGE, .time_ms = 1000};
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
	assert_false(law_hold_on_no_data(p, &o, &d, why)); // not a number is no data
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

// ---- faults ----

static void faults_are_placed_and_say_the_fix(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *text; // of the test after "- name: a\n  target: {replicas: 2}\n"
		int line, col;    // below the test's first line
		const char *path, *want;
	} rows[] = {
	        {"  policy: serving/lama\n", 2, 11, "tests[0].policy", "did you mean \"serving/llama\"?"},
	        {"  start: soon\n  invariants: [NoFlap]\n", 2, 10, "tests[0].start", "is not an RFC 3339 time"},
	        {"  invariants: [NoFlap, Monoton]\n", 2, 24, "tests[0].invariants",
	         "there is no invariant \"Monoton\""},
	        {"  signals: {want: '1'}\n", 0, 3, "tests[0]", "a test that cannot fail: add expect or invariants"},
	        {"  expect: [{at: 15s}]\n", 2, 12, "tests[0].expect[0]", "expects nothing"},
	        {"  expect:\n  - {at: 15s, replicas: 1}\n  - {at: 40s, replicas: 1}\n", 4, 10, "tests[0].expect[1].at",
	         "there is no tick at 40s: one is every 15s, the last before it at 30s"},
	        {"  expect: [{at: 0s, reason: Desired}]\n", 2, 29, "tests[0].expect[0].reason",
	         "there is no reason \"Desired\""},
	        {"  expect: [{at: 0s, reason: Pausd}]\n", 2, 29, "tests[0].expect[0].reason",
	         "did you mean \"Paused\"?"},
	        {"  expect: [{at: 0s, signals: {laod: {}}}]\n", 2, 37, "tests[0].expect[0].signals",
	         "did you mean \"load\"?"},
	        {"  expect: [{at: 0s, signals: {load: {}}}]\n", 2, 37, "tests[0].expect[0].signals.load",
	         "expects nothing"},
	        {"  expect: [{at: 0s, signals: {load: 3}}]\n", 2, 37, "tests[0].expect[0].signals.load",
	         "must be a map"},
	        {"  expect: [{at: 0s, signals: [load]}]\n", 2, 30, "tests[0].expect[0].signals", "must map signals"},
	        {"  expect: [{at: 0s, signals: {load: {state: Mising}}}]\n", 2, 45, "tests[0].expect[0].signals.load",
	         "did you mean \"Missing\"?"},
	        {"  expect: [{at: 0s, signals: {load: {stat: OK}}}]\n", 2, 38, "tests[0].expect[0].signals.load.stat",
	         "did you mean state?"},
	        {"  invariants: [NoFlap]\n  signals: {que: '1'}\n", 3, 18, "tests[0].signals",
	         "there is no signal \"que\""},
	        {"  invariants: [NoFlap]\n  signals: ['1']\n", 3, 12, "tests[0].signals", "must map signals to series"},
	        {"  invariants: [NoFlap]\n  signals: {load: '1+2'}\n", 3, 19, "tests[0].signals.load",
	         "has a step but no count"},
	        {"  invariants: [NoFlap]\n  signals: {load: {a: '1', b: 'x'}}\n", 3, 31, "tests[0].signals.load.b",
	         "in \"x\""},
	        {"  invariants: [NoFlap]\n  signals: {load: ['1', {eror: x}]}\n", 3, 26,
	         "tests[0].signals.load[1].eror", "did you mean error?"},
	        {"  invariants: [NoFlap]\n  signals: {load: [{error: x, values: '1'}]}\n", 3, 20,
	         "tests[0].signals.load[0]", "is one of values"},
	        {"  invariants: [NoFlap]\n  signals: {load: [{error: x, age: 1s}]}\n", 3, 36,
	         "tests[0].signals.load[0].age", "only values have an age"},
	        {"  invariants: [NoFlap]\n  signals: {load: [{values: '1', times: 2}]}\n", 3, 41,
	         "tests[0].signals.load[0].times", "values say x3 themselves"},
	        {"  invariants: [NoFlap]\n  signals: {load: [[1]]}\n", 3, 20, "tests[0].signals.load[0]",
	         "must be a piece"},
	        {"  invariants: [NoFlap]\n  signals: {load: []}\n", 3, 19, "tests[0].signals.load",
	         "the series is empty"},
	        {"  invariants: [NoFlap]\n  signals: {load: ~}\n", 3, 19, "tests[0].signals.load", "must be a series"},
	        {"  invariants: [NoFlap]\n  state: {scaleEvents: [{ago: 1s, change: 0}]}\n", 3, 25,
	         "tests[0].state.scaleEvents", "+2 or -1, not 0"},
	        {"  invariants: [NoFlap]\n  state: {lastScale: {}}\n", 3, 11, "tests[0].state.lastScale.ago",
	         "required, but missing"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		char text[512];
		snprintf(text, sizeof text, "- name: a\n  target: {replicas: 2}\n%s", rows[i].text);
		assert_int_equal(bind(f, text), -1);
		const struct schema_error *e = &f->errors.items[0];
		if (e->line != HEAD_LINES + 1 + rows[i].line || e->col != rows[i].col ||
		    !strstr(e->path, rows[i].path) || !strstr(e->message, rows[i].want))
			fail_msg("%s  got:  %d:%d: %s: %s\n  want: %d:%d: %s: %s", text, e->line, e->col, e->path,
			         e->message, HEAD_LINES + 1 + rows[i].line, rows[i].col, rows[i].path, rows[i].want);
	}
}

static void ceilings_are_errors(void **state)
{
	struct fixture *f = *state;
	struct err e;
	assert_int_equal(bind(f, "- {name: a, target: {replicas: 2}, expect: [{at: 40d, replicas: 2}]}\n"), 0);
	assert_int_equal(scenario_run(f->file.tests, NULL, &f->arena, &f->result, &e), -1);
	assert_string_equal(e.msg, "230401 ticks are more than the ceiling of 200000");
	assert_int_equal(
	        bind(f, "- {name: a, target: {replicas: 2}, invariants: [NoFlap], signals: {load: "
	                "{a: '1x199999', b: '1x199999', c: '1x199999', d: '1x199999', e: '1x199999', f: '1'}}}\n"),
	        -1);
	assert_non_null(strstr(f->errors.items[0].message, "may have 1000000 values in all"));
}

// ---- coverage ----

static void coverage_knows_what_was_reached_and_what_not(void **state)
{
	struct fixture *f = *state;
	struct coverage_list list = {0};
	struct buf out;
	struct err e;
	f->engine.policy.cooldown.up_ms = 30000;
	assert_int_equal(bind(f, "- {name: a, target: {replicas: 2}, expect: [{at: 15s, replicas: 5}], "
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
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        T(a_signal_is_a_series_a_list_of_pieces_or_one_of_them_per_pod),
	        T(the_engine_sees_what_the_series_say),
	        T(without_follow_the_target_stays_with_it_decisions_are_applied),
	        T(new_pods_are_ready_after_ready_after),
	        T(the_world_starts_and_stops_pods_as_a_replica_set_does),
	        T(history_from_before_the_start_counts),
	        T(every_expectation_can_fail),
	        T(a_diff_shows_all_that_was_asked),
	        T(findings_have_a_ceiling_and_say_how_many_more),
	        T(laws_watch_every_tick_of_the_series),
	        T(each_law_knows_a_decision_that_breaks_it),
	        T(faults_are_placed_and_say_the_fix),
	        T(ceilings_are_errors),
	        T(coverage_knows_what_was_reached_and_what_not),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
