// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a recording becomes a test of promtool, and what promtool prints becomes intervals that are
// compared with the marks of the recording. test/integration/golden/run-alerts-command runs promtool itself.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "replay/alert_replay.h"
#include "replay/alert_rules.h"
#include "replay/recording.h"

#define LAST "    expr: \"vector(42)\", time: 1m,\n        exp: nil\n        got: {} 4.2E+01\n"

static void parse(struct recording *r, const char *text)
{
	struct err e;
	if (recording_parse(text, strlen(text), "r", r, &e) < 0)
		fail_msg("%s", e.msg);
}

static void write_test(struct alert_replay *x, const char *recording, int64_t interval_ms, struct buf *out)
{
	static const struct alert_rules rules = {
	        .files = {"/rules/it's.yaml"}, .groups = {"a", "b"}, .n_files = 1, .n_groups = 2};
	struct recording r;
	struct err e;
	parse(&r, recording);
	if (alert_replay_write(x, &r, &rules, interval_ms, out, &e) < 0)
		fail_msg("%s", e.msg);
	recording_done(&r);
}

static void test_file_has_series_rules_and_an_expectation_per_evaluation(void **state)
{
	(void)state;
	struct alert_replay x;
	struct buf out;
	alert_replay_init(&x);
	buf_init(&out, 1 << 20);
	write_test(&x,
	           "t_s,temp{gpu=\"0\"},gone,genuine_alert{alertname=\"A\"}\n"
	           "100,1.5,7,0\n115,1.5,7,1\n130,,,1\n145,2,,1\n160,2,,0\n175,2,,0\n190,2,,0\n205,2,,0\n",
	           30000, &out);
	assert_string_equal(buf_str(&out),
	                    "rule_files:\n- '/rules/it''s.yaml'\ngroup_eval_order:\n- 'a'\n- 'b'\n"
	                    "evaluation_interval: 30s\ntests:\n- interval: 15s\n  input_series:\n"
	                    "  - series: 'temp{gpu=\"0\"}'\n    values: ' 1.5+0x1 _x1 2+0x4'\n"
	                    "  - series: 'gone'\n    values: ' 7+0x1 stale'\n"
	                    "  promql_expr_test:\n"
	                    "  - {expr: &q 'ALERTS unless ALERTS offset 30s or -(ALERTS offset 30s unless ALERTS)', "
	                    "eval_time: 0s}\n"
	                    "  - {expr: *q, eval_time: 30s}\n  - {expr: *q, eval_time: 1m}\n"
	                    "  - {expr: *q, eval_time: 1m30s}\n  - {expr: 'vector(42)', eval_time: 1m30s}\n");
	assert_int_equal(x.start_ms, 100000);
	assert_int_equal(x.end_ms, 205000);
	buf_done(&out);
	alert_replay_done(&x);
}

static void recording_with_too_many_evaluations_is_refused(void **state)
{
	(void)state;
	struct alert_replay x;
	struct alert_rules rules = {0};
	struct recording r;
	struct buf out;
	struct err e;
	parse(&r, "t_s,a\n0,1\n1,1\n200000,1\n");
	alert_replay_init(&x);
	buf_init(&out, 1 << 20);
	assert_int_equal(alert_replay_write(&x, &r, &rules, 1000, &out, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "200001 evaluations, the ceiling is 200000"));
	buf_done(&out);
	recording_done(&r);
	alert_replay_done(&x);
}

// ---- what promtool prints ----

#define AT(time, got)                                                                                                  \
	"    expr: \"ALERTS unless ALERTS offset 5s\", time: " time ",\n        exp: nil\n        got: " got "\n\n"
#define ALERT(name, state, more) "{UUID=\"g, {\\\"1\\\"}\", alertname=\"" name "\", alertstate=\"" state "\"" more "}"

static void read_text(struct alert_replay *x, const char *text)
{
	struct err e;
	alert_replay_init(x);
	x->start_ms = 1000;
	x->end_ms = 61000;
	x->interval_ms = 5000;
	if (alert_replay_read(x, text, strlen(text), &e) < 0)
		fail_msg("%s", e.msg);
}

static void transitions_become_intervals(void **state)
{
	(void)state;
	struct alert_replay x;
	read_text(&x,
	          "Unit Testing: /dev/fd/3\n  FAILED:\n" AT(
	                  "5s", ALERT("A", "pending", ", severity=\"critical\"") " 1E+00, " ALERT("B", "pending",
	                                                                                          "") " 1E+00")
	                  AT("10s", ALERT("A", "pending", ", severity=\"critical\"") " -1E+00, " ALERT(
	                                    "A", "firing", ", severity=\"critical\"") " 1E+00, " ALERT("B", "pending",
	                                                                                               "") " -1E+00")
	                          AT("20s", ALERT("A", "firing", ", severity=\"critical\"") " -1E+00") AT(
	                                  "25s", "{__name__=\"ALERTS\", alertname=\"C\", alertstate=\"firing\"} 1E+00")
	                                  LAST);
	assert_int_equal(x.n_intervals, 3);
	const struct alert_interval *a = &x.intervals[0], *b = &x.intervals[1], *c = &x.intervals[2];
	assert_string_equal(a->alert, "A");
	assert_string_equal(a->severity, "critical");
	assert_string_equal(a->labels, "{UUID=\"g, {\\\"1\\\"}\"}");
	assert_int_equal(a->pending_ms, 6000);
	assert_int_equal(a->firing_ms, 11000);
	assert_int_equal(a->resolved_ms, 21000);
	assert_string_equal(b->severity, "");
	assert_int_equal(b->firing_ms, ALERT_NEVER);
	assert_int_equal(b->resolved_ms, 11000);
	assert_string_equal(c->labels, "");
	assert_int_equal(c->pending_ms, ALERT_NEVER);
	assert_int_equal(c->firing_ms, 26000);
	assert_int_equal(c->resolved_ms, ALERT_NEVER);
	alert_replay_done(&x);
}

static void output_that_is_not_understood_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum err_kind kind;
		const char *says;
	} rows[] = {
	        {"", ERR_INPUT, "promtool did not evaluate the rules: no output"},
	        {"  FAILED:\n    /x.yaml: yaml: line 2\n", ERR_INPUT, "/x.yaml: yaml: line 2"},
	        {AT("5s", ALERT("A", "pending", "") " 1E+00"), ERR_INPUT, "did not evaluate"}, // cut short
	        {AT("5s", "[A] 1") LAST, ERR_UNSUPPORTED, "unknown format"},
	        {AT("5s", "{alertname=\"A\", alertstate=\"odd\"} 1E+00") LAST, ERR_UNSUPPORTED, "unknown format"},
	        {AT("5s", "{alertname=\"A\", alertstate=\"firing") LAST, ERR_UNSUPPORTED, "unknown format"},
	        {AT("5 seconds", "nil") LAST, ERR_UNSUPPORTED, "unknown format"},
	        {AT("10s", "nil") AT("5s", "nil") LAST, ERR_UNSUPPORTED, "unknown format"}, // time goes back
	        {AT("2m", "nil") LAST, ERR_UNSUPPORTED, "unknown format"},                  // after the end
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct alert_replay x;
		struct err e;
		alert_replay_init(&x);
		x.start_ms = 1000;
		x.end_ms = 61000;
		if (alert_replay_read(&x, rows[i].text, strlen(rows[i].text), &e) == 0 || e.kind != rows[i].kind ||
		    !strstr(e.msg, rows[i].says))
			fail_msg("row %zu: %s", i, e.msg);
		alert_replay_done(&x);
	}
}

// ---- marks ----

#define FIRES(time, gpu) AT(time, "{UUID=\"" gpu "\", alertname=\"A\", alertstate=\"firing\"} 1E+00")
#define ENDS(time, gpu)  AT(time, "{UUID=\"" gpu "\", alertname=\"A\", alertstate=\"firing\"} -1E+00")

static void judge(struct alert_replay *x, const char *recording, const char *text)
{
	struct recording r;
	struct err e;
	parse(&r, recording);
	read_text(x, text);
	if (alert_replay_judge(x, &r, &e) < 0)
		fail_msg("%s", e.msg);
	recording_done(&r);
}

static void alerts_are_compared_with_the_marks_of_their_labels(void **state)
{
	(void)state;
	struct alert_replay x;
	struct alert_summary s;
	// GPU a breaches from 11 to 21 s and from 41 s on, b never.
	judge(&x,
	      "# TYPE genuine_alert gauge\n"
	      "genuine_alert{UUID=\"a\",alertname=\"A\"} 0 1\ngenuine_alert{UUID=\"a\",alertname=\"A\"} 1 11\n"
	      "genuine_alert{UUID=\"a\",alertname=\"A\"} 0 21\ngenuine_alert{UUID=\"a\",alertname=\"A\"} 0 31\n"
	      "genuine_alert{UUID=\"a\",alertname=\"A\"} 1 41\ngenuine_alert{UUID=\"a\",alertname=\"A\"} 1 51\n"
	      "genuine_alert{UUID=\"a\",alertname=\"A\"} 1 61\n# EOF\n",
	      FIRES("5s", "b") ENDS("8s", "b") FIRES("15s", "a") ENDS("18s", "a") FIRES("30s", "a") ENDS("35s", "a")
	              LAST);
	alert_replay_summarize(&x, "A", &s);
	assert_int_equal(s.n_firing, 3);
	assert_int_equal(s.n_false, 2); // b, and a at 31 s
	assert_int_equal(s.n_breaches, 2);
	assert_int_equal(s.n_missed, 1);
	assert_float_equal(s.mean_detect_s, 5, 1e-9);
	assert_float_equal(s.max_detect_s, 5, 1e-9);
	assert_int_equal(s.firing_ms, 11000);
	assert_true(x.intervals[1].is_genuine);
	alert_replay_summarize(&x, "B", &s);
	assert_int_equal(s.n_breaches + s.n_firing, 0);
	assert_true(isnan(s.mean_detect_s));
	alert_replay_done(&x);
}

static void alert_that_fires_before_the_onset_is_false_and_has_found_it(void **state)
{
	(void)state;
	struct alert_replay x;
	struct alert_summary s;
	judge(&x, "t_s,genuine_alert{alertname=\"A\"}\n1,0\n11,1\n21,1\n31,0\n", FIRES("5s", "a") LAST);
	alert_replay_summarize(&x, NULL, &s);
	assert_int_equal(s.n_false, 1);
	assert_int_equal(s.n_missed, 0);
	assert_float_equal(s.max_detect_s, 0, 1e-9);
	alert_replay_done(&x);
	// It is over before the onset.
	judge(&x, "t_s,genuine_alert{alertname=\"A\"}\n1,0\n11,1\n21,1\n31,0\n", FIRES("5s", "a") ENDS("9s", "a") LAST);
	alert_replay_summarize(&x, NULL, &s);
	assert_int_equal(s.n_missed, 1);
	alert_replay_done(&x);
}

static void alert_without_marks_is_not_judged(void **state)
{
	(void)state;
	struct alert_replay x;
	struct alert_summary s;
	judge(&x, "t_s,genuine_alert{alertname=\"B\"}\n1,0\n61,0\n", FIRES("5s", "a") LAST);
	alert_replay_summarize(&x, NULL, &s);
	assert_int_equal(s.n_firing, 1);
	assert_int_equal(s.n_false, 0);
	assert_false(x.intervals[0].is_judged);
	alert_replay_done(&x);
}

static void mark_without_alertname_is_refused(void **state)
{
	(void)state;
	struct alert_replay x;
	struct recording r;
	struct err e;
	parse(&r, "t_s,genuine_alert\n1,0\n2,1\n");
	alert_replay_init(&x);
	assert_int_equal(alert_replay_judge(&x, &r, &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	assert_non_null(strstr(e.msg, "genuine_alert{alertname="));
	recording_done(&r);
	alert_replay_done(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_file_has_series_rules_and_an_expectation_per_evaluation),
	        cmocka_unit_test(recording_with_too_many_evaluations_is_refused),
	        cmocka_unit_test(transitions_become_intervals),
	        cmocka_unit_test(output_that_is_not_understood_is_refused),
	        cmocka_unit_test(alerts_are_compared_with_the_marks_of_their_labels),
	        cmocka_unit_test(alert_that_fires_before_the_onset_is_false_and_has_found_it),
	        cmocka_unit_test(alert_without_marks_is_not_judged),
	        cmocka_unit_test(mark_without_alertname_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
