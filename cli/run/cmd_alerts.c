// SPDX-License-Identifier: Apache-2.0
// gpuscale alerts replay: what alert rules would have reported on a recording.
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/policy/promtool.h"
#include "cli/policy/rule_files.h"
#include "cli/run/alerts_report.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/fail_on.h"
#include "replay/alert_replay.h"
#include "replay/alert_rules.h"
#include "replay/recording.h"
#include "runtime/options/controller_options.h"

#define RULES_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define OUTPUT_MAX      ((size_t)256 * 1024 * 1024)
#define INTERVAL_MIN_MS 100

static const char *const format_names[] = {"table", "wide", "json", NULL};
static void (*const formats[])(const struct alerts_report *, struct buf *) = {alerts_report_table, alerts_report_wide,
                                                                              alerts_report_json};
_Static_assert(sizeof format_names / sizeof *format_names == sizeof formats / sizeof *formats + 1,
               "one name per format");

enum { FAIL_FALSE, FAIL_MISSED, FAIL_FIRING, FAIL_DETECT, FAIL_MEAN_DETECT, FAIL_METRIC__COUNT };
static const struct fail_metric fail_metrics[] = {
        {"false", FAIL_NUMBER},   {"missed", FAIL_NUMBER},       {"firing", FAIL_NUMBER},
        {"detect", FAIL_SECONDS}, {"mean-detect", FAIL_SECONDS},
};
_Static_assert(sizeof fail_metrics / sizeof *fail_metrics == FAIL_METRIC__COUNT, "one row per metric");

struct alerts_args {
	const char *verb, *path;
	const char *rules[ALERT_RULE_FILES_MAX];
	struct fail_on fail_on[FAIL_ON_MAX];
	size_t n_rules, n_fail_on;
	int64_t interval_ms; // 0: the step of the recording
	int output;
};

struct alerts_run {
	struct arena rules_arena;
	struct alert_rules rules;
	struct recording recording;
	struct alert_replay replay;
};

enum { KEY_FAIL_ON = 0xd00, KEY_INTERVAL };

static void add_fail_on(struct alerts_args *a, const char *text, struct argp_state *state)
{
	struct err e;
	if (a->n_fail_on == FAIL_ON_MAX)
		print_usage(state, "--fail-on: more than %d conditions", FAIL_ON_MAX);
	if (fail_on_parse(text, fail_metrics, FAIL_METRIC__COUNT, &a->fail_on[a->n_fail_on++], &e) < 0)
		print_usage(state, "--fail-on: %s", e.msg);
}

static void add_argument(struct alerts_args *a, const char *text, struct argp_state *state)
{
	if (!a->verb && strcmp(text, "replay") != 0)
		print_usage(state, "unknown verb \"%s\": use gpuscale alerts replay RECORDING", text);
	if (a->path)
		print_usage(state, "unexpected argument \"%s\": one recording at a time; rule files are named by -f",
		            text);
	*(a->verb ? &a->path : &a->verb) = text;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct alerts_args *a = state->input;
	switch (key) {
	case 'f':
		if (a->n_rules == ALERT_RULE_FILES_MAX)
			print_usage(state, "-f: more than %d rule files", ALERT_RULE_FILES_MAX);
		a->rules[a->n_rules++] = arg;
		return 0;
	case KEY_FAIL_ON:
		add_fail_on(a, arg, state);
		return 0;
	case KEY_INTERVAL:
		a->interval_ms = option_duration_ms("--interval", arg, INTERVAL_MIN_MS, state);
		return 0;
	case 'o':
		a->output = option_choice("-o", arg, format_names, state);
		return 0;
	case ARGP_KEY_ARG:
		add_argument(a, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (!a->path)
			print_usage(state, "missing arguments: use gpuscale alerts replay RECORDING");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int read_recording(const char *path, struct recording *ret, struct err *e)
{
	struct buf text;
	buf_init(&text, RECORDING_BYTES_MAX);
	int rc = buf_read_argument(&text, path, e);
	if (rc == 0)
		rc = recording_parse(buf_str(&text), text.len, path, ret, e);
	buf_done(&text);
	return rc;
}

static int evaluate(const struct alerts_args *a, struct alerts_run *r, struct err *e)
{
	struct buf test, said;
	buf_init(&test, ALERT_TEST_BYTES_MAX);
	buf_init(&said, ALERT_OUTPUT_BYTES_MAX);
	int rc = alert_replay_write(&r->replay, &r->recording, &r->rules,
	                            a->interval_ms ? a->interval_ms : r->recording.step_ms, &test, e);
	if (rc == 0)
		rc = promtool_test_rules(&test, &said, e);
	if (rc == 0)
		rc = alert_replay_read(&r->replay, buf_str(&said), said.len, e);
	if (rc == 0)
		rc = alert_replay_judge(&r->replay, &r->recording, e);
	buf_done(&test);
	buf_done(&said);
	return rc;
}

static int print(const struct alerts_args *a, const struct alerts_run *r, struct err *e)
{
	const struct alerts_report report = {&r->replay, &r->rules};
	struct buf out;
	buf_init(&out, OUTPUT_MAX);
	formats[a->output](&report, &out);
	bool ok = print_out(&out) == 0;
	buf_done(&out);
	return ok ? 0 : err_set(e, ERR_INTERNAL, "out of memory for the report, or it cannot be written");
}

static int check_limits(const struct alerts_args *a, const struct alerts_run *r)
{
	struct alert_summary s;
	int code = EXIT_OK;
	alert_replay_summarize(&r->replay, NULL, &s);
	const double values[] = {[FAIL_FALSE] = (double)s.n_false,
	                         [FAIL_MISSED] = (double)s.n_missed,
	                         [FAIL_FIRING] = (double)s.n_firing,
	                         [FAIL_DETECT] = s.max_detect_s,
	                         [FAIL_MEAN_DETECT] = s.mean_detect_s};
	for (size_t i = 0; i < a->n_fail_on; i++) {
		if (!fail_on_is_met(&a->fail_on[i], values[a->fail_on[i].metric]))
			continue;
		print_error("gpuscale alerts: --fail-on '%s': the value is %.4g\n", a->fail_on[i].text,
		            values[a->fail_on[i].metric]);
		code = EXIT_CHANGES;
	}
	return code;
}

static int run(const struct alerts_args *a, struct err *e)
{
	struct alerts_run *r = calloc(1, sizeof *r);
	if (!r) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return EXIT_FAILED;
	}
	arena_init(&r->rules_arena, RULES_BYTES_MAX);
	alert_replay_init(&r->replay);
	int rc = rule_files_read(a->rules, a->n_rules, &r->rules, &r->rules_arena, e);
	if (rc == 0)
		rc = read_recording(a->path, &r->recording, e);
	if (rc == 0)
		rc = evaluate(a, r, e);
	if (rc == 0)
		rc = print(a, r, e);
	int code = rc == 0 ? check_limits(a, r) : err_kind_info(e->kind)->exit_code;
	alert_replay_done(&r->replay);
	recording_done(&r->recording);
	arena_done(&r->rules_arena);
	free(r);
	return code;
}

int cmd_alerts(int argc, char **argv)
{
	static const struct argp_option options[] = {
	        {"filename", 'f', "FILE", 0,
	         "rule file of Prometheus, or a folder of them (repeatable; default: the shipped rules)", 1},
	        {"interval", KEY_INTERVAL, "DURATION", 0,
	         "time between two evaluations (default: the step of the recording)", 1},
	        {"fail-on", KEY_FAIL_ON, "CONDITION", 0,
	         "exit with 3 when this holds, as in 'false > 3' or 'detect > 30s' (repeatable)", 1},
	        {"output", 'o', "FORMAT", 0, "table, wide, or json (default table)", 1},
	        {0}};
	const struct argp argp = {options,
	                          parse,
	                          "replay RECORDING",
	                          "Replay a recording through alert rules, and show how often each alert was pending "
	                          "and fired. Where the "
	                          "recording marks what is genuine, also how many alerts were false, how many breaches "
	                          "were found, and how "
	                          "soon. RECORDING is a file of series as CSV or OpenMetrics; - is standard input. The "
	                          "rules are evaluated by "
	                          "promtool, which must be installed."
	                          "\vA mark is a series genuine_alert{alertname=\"NAME\", ..} that is 1 from the onset "
	                          "of a breach to its end; "
	                          "further labels select the instance. docs/alerts.md describes the formats.\n\n"
	                          "Metrics of CONDITION: false, missed, firing (numbers over all alerts), detect and "
	                          "mean-detect (the longest "
	                          "and the mean time from onset to alert).\n"
	                          "Exit status: 0 done, 1 failed, 2 wrong usage, 3 a condition of --fail-on holds.",
	                          NULL,
	                          NULL,
	                          NULL};
	struct alerts_args args = {0};
	args_parse(&argp, argc, argv, &args);
	struct err e;
	err_clear(&e);
	int code = run(&args, &e);
	if (e.kind != ERR_NONE)
		print_error("gpuscale alerts: %s\n", e.msg);
	return code;
}
