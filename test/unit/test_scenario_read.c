// SPDX-License-Identifier: Apache-2.0
// Policy tests as they are read: what a signal shows, and faults with their place and the fix.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "test/support/scenario_fixture.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

static void write_series(const struct scenario_series *s, char *out, size_t size)
{
	static const char *const names[OBS_STATE__COUNT] = {
	        [OBS_OK] = "", [OBS_EMPTY] = "_", [OBS_FAILED] = "E", [OBS_PARTIAL] = "P"};
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

static void signal_is_a_series_a_list_of_pieces_or_one_of_them_per_pod(void **state)
{
	struct scenario_fixture *f = *state;
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
		if (scenario_read(f, text) < 0)
			fail_msg("%s: %s", rows[i].yaml, f->errors.items[0].message);
		const struct scenario_signal *s = &f->file.tests[0].signals[1];
		assert_int_equal(s->n_series, rows[i].n_series);
		write_series(&s->series[s->n_series - 1], got, sizeof got);
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("%s\n  got:  %s\n  want: %s", rows[i].yaml, got, rows[i].want);
	}
}

// ---- faults ----

static void faults_are_placed_and_say_the_fix(void **state)
{
	struct scenario_fixture *f = *state;
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
	         "no tick at 40s: ticks run every 15s; the previous one is at 30s"},
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
	        {"  invariants: [NoFlap]\n  signals: {load: \"1x3\\0 9x3\"}\n", 3, 19, "tests[0].signals.load",
	         "cannot hold the character"},
	        {"  invariants: [NoFlap]\n  signals: {load: ~}\n", 3, 19, "tests[0].signals.load", "must be a series"},
	        {"  invariants: [NoFlap]\n  state: {scaleEvents: [{ago: 1s, change: 0}]}\n", 3, 25,
	         "tests[0].state.scaleEvents", "+2 or -1, not 0"},
	        {"  invariants: [NoFlap]\n  state: {lastScale: {}}\n", 3, 11, "tests[0].state.lastScale.ago",
	         "required, but missing"},
	};
	for (size_t i = 0; i < N(rows); i++) {
		char text[512];
		snprintf(text, sizeof text, "- name: a\n  target: {replicas: 2}\n%s", rows[i].text);
		assert_int_equal(scenario_read(f, text), -1);
		const struct schema_error *e = &f->errors.items[0];
		if (e->line != SCENARIO_HEAD_LINES + 1 + rows[i].line || e->col != rows[i].col ||
		    !strstr(e->path, rows[i].path) || !strstr(e->message, rows[i].want))
			fail_msg("%s  got:  %d:%d: %s: %s\n  want: %d:%d: %s: %s", text, e->line, e->col, e->path,
			         e->message, SCENARIO_HEAD_LINES + 1 + rows[i].line, rows[i].col, rows[i].path,
			         rows[i].want);
	}
}

static void ceilings_are_errors(void **state)
{
	struct scenario_fixture *f = *state;
	struct err e;
	assert_int_equal(scenario_read(f, "- {name: a, target: {replicas: 2}, expect: [{at: 40d, replicas: 2}]}\n"), 0);
	assert_int_equal(scenario_run(f->file.tests, NULL, &f->arena, &f->result, &e), -1);
	assert_string_equal(e.msg, "230401 ticks are more than the ceiling of 200000");
	assert_int_equal(
	        scenario_read(
	                f, "- {name: a, target: {replicas: 2}, invariants: [NoFlap], signals: {load: "
	                   "{a: '1x199999', b: '1x199999', c: '1x199999', d: '1x199999', e: '1x199999', f: '1'}}}\n"),
	        -1);
	assert_non_null(strstr(f->errors.items[0].message, "may have 1000000 values in all"));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, scenario_setup, scenario_teardown)
	const struct CMUnitTest tests[] = {
	        T(signal_is_a_series_a_list_of_pieces_or_one_of_them_per_pod),
	        T(faults_are_placed_and_say_the_fix),
	        T(ceilings_are_errors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
