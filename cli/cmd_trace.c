// SPDX-License-Identifier: Apache-2.0
// gpuscale trace: when the GPUs of a profiler trace were idle, and what the host did meanwhile.
#include <argp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/fail_on.h"
#include "cli/progress.h"
#include "cli/trace_report.h"
#include "controller/options/controller_options.h"
#include "insight/gpu_trace.h"
#include "insight/trace_file.h"

#define OUTPUT_MAX ((size_t)64 * 1024 * 1024)
#define ROWS       10
#define ROWS_MAX   GPU_TRACE_LONG_MAX

static const char *const format_names[] = {"table", "json", "svg", NULL};
static void (*const formats[])(const struct trace_report *, struct buf *) = {trace_report_table, trace_report_json,
                                                                             trace_report_svg};
_Static_assert(sizeof format_names / sizeof *format_names == sizeof formats / sizeof *formats + 1,
               "one name per format");

// The idle shares by activity come first, in the order of enum trace_activity.
enum { FAIL_IDLE = TRACE_ACTIVITY__COUNT, FAIL_LONGEST_GAP, FAIL_METRIC__COUNT };
static const struct fail_metric fail_metrics[] = {
        {"collective", FAIL_PERCENT},  {"data-loading", FAIL_PERCENT}, {"copy", FAIL_PERCENT},
        {"launch", FAIL_PERCENT},      {"unknown", FAIL_PERCENT},      {"idle", FAIL_PERCENT},
        {"longest-gap", FAIL_SECONDS},
};
_Static_assert(sizeof fail_metrics / sizeof *fail_metrics == FAIL_METRIC__COUNT, "one row per metric");

struct trace_args {
	const char *path;
	struct fail_on fail_if[FAIL_ON_MAX];
	size_t n_fail_if, n_rows;
	struct trace_classes classes;
	int output;
};

enum { KEY_FAIL_IF = 0xc00, KEY_TOP, KEY_CLASS };

static void add_fail_if(struct trace_args *a, const char *text, struct argp_state *state)
{
	struct err e;
	if (a->n_fail_if == FAIL_ON_MAX)
		print_usage(state, "--fail-if: more than %d conditions", FAIL_ON_MAX);
	if (fail_on_parse(text, fail_metrics, FAIL_METRIC__COUNT, &a->fail_if[a->n_fail_if++], &e) < 0)
		print_usage(state, "--fail-if: %s", e.msg);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct trace_args *a = state->input;
	struct err e;
	switch (key) {
	case KEY_FAIL_IF:
		add_fail_if(a, arg, state);
		return 0;
	case KEY_CLASS:
		if (trace_classes_add(&a->classes, arg, &e) < 0)
			print_usage(state, "--class: %s", e.msg);
		return 0;
	case KEY_TOP:
		a->n_rows = (size_t)option_i64("--top", arg, 0, ROWS_MAX, state);
		return 0;
	case 'o':
		a->output = option_choice("-o", arg, format_names, state);
		return 0;
	case ARGP_KEY_ARG:
		if (a->path)
			print_usage(state, "unexpected argument \"%s\": one file at a time", arg);
		a->path = arg;
		return 0;
	case ARGP_KEY_END:
		if (!a->path)
			print_usage(state,
			            "missing FILE: a trace of the torch profiler, as in trace.json or trace.json.gz");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static double metric_of(const struct gpu_trace *t, const struct trace_gpu *g, size_t metric)
{
	int64_t window_ns = gpu_trace_window_ns(t);
	if (metric == FAIL_IDLE)
		return 100 * gpu_trace_idle_ratio(t, g);
	if (metric == FAIL_LONGEST_GAP)
		return (double)g->longest_gap_ns / 1e9;
	return window_ns > 0 ? 100 * g->idle_ns[metric] / (double)window_ns : 0;
}

static int check_limits(const struct trace_args *a, const struct gpu_trace *t)
{
	int code = EXIT_OK;
	char name[GPU_TRACE_TEXT];
	for (size_t i = 0; i < a->n_fail_if; i++)
		for (size_t k = 0; k < t->n_gpus; k++) {
			double v = metric_of(t, t->gpus[k], a->fail_if[i].metric);
			if (!fail_on_is_met(&a->fail_if[i], v))
				continue;
			print_error("gpuscale trace: GPU %s: --fail-if '%s': the value is %.4g\n",
			            gpu_trace_name(t->gpus[k], name), a->fail_if[i].text, v);
			code = EXIT_CHANGES;
		}
	return code;
}

static int print(const struct trace_args *a, const struct trace_report *r, struct err *e)
{
	struct buf out, notes;
	buf_init(&out, OUTPUT_MAX);
	buf_init(&notes, OUTPUT_MAX);
	formats[a->output](r, &out);
	trace_report_notes(r, &notes);
	bool ok = print_out(&out) == 0;
	print_notes(&notes);
	buf_done(&out);
	buf_done(&notes);
	return ok ? 0 : err_set(e, ERR_INTERNAL, "out of memory for the report, or it cannot be written");
}

static void show_progress(void *arg, size_t done, size_t total)
{
	progress_show(arg, done, total, "");
}

static int run(const struct trace_args *a, struct err *e)
{
	struct trace_file_counts counts = {0};
	struct progress progress = {.what = "reading"};
	struct gpu_trace *t = malloc(sizeof *t);
	if (!t) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return EXIT_FAILED;
	}
	gpu_trace_init(t, a->n_rows);
	t->classes = &a->classes;
	int rc = trace_file_analyse(a->path, t, show_progress, &progress, &counts, e);
	progress_clear(&progress);
	const struct trace_report report = {t, &counts, a->n_rows};
	if (rc == 0)
		rc = print(a, &report, e);
	int code = rc == 0 ? check_limits(a, t) : err_kind_info(e->kind)->exit_code;
	gpu_trace_done(t);
	free(t);
	return code;
}

int cmd_trace(int argc, char **argv)
{
	static const struct argp_option options[] = {
	        {"fail-if", KEY_FAIL_IF, "CONDITION", 0,
	         "exit with 3 when this holds for a GPU, as in 'idle > 20%' or 'longest-gap > 50ms' (repeatable)", 1},
	        {"class", KEY_CLASS, "REGEX=ACTIVITY", 0,
	         "host events whose name matches belong to this activity, as in 'load_shard=data-loading' (repeatable)",
	         1},
	        {"top", KEY_TOP, "N", 0, "number of gaps and kernels to list (default 10, at most 100)", 1},
	        {"output", 'o', "FORMAT", 0,
	         "table, json, or svg: a timeline with the causes of the gaps (default table)", 1},
	        {0}};
	const struct argp argp = {
	        options,
	        parse,
	        "FILE",
	        "Show when the GPUs of a profiler trace were idle, what the host did meanwhile, and which kernels took "
	        "the most time. FILE is a trace in Chrome's format from the torch profiler, or converted from Nsight "
	        "Systems, plain or compressed with gzip, up to 1 GiB after decompression. Overlapping streams count "
	        "once."
	        "\vMetrics of CONDITION: idle, data-loading, copy, launch, collective, unknown (each a share of the "
	        "time of the trace), longest-gap.\n"
	        "Exit status: 0 done, 1 failed, 2 wrong usage, 3 a condition of --fail-if holds.",
	        NULL,
	        NULL,
	        NULL};
	struct trace_args args = {.n_rows = ROWS};
	args_parse(&argp, argc, argv, &args);
	struct err e;
	err_clear(&e);
	int code = run(&args, &e);
	trace_classes_done(&args.classes);
	if (e.kind != ERR_NONE)
		print_error("gpuscale trace: %s\n", e.msg);
	return code;
}
