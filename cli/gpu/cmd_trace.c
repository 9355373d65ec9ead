// SPDX-License-Identifier: Apache-2.0
// gpuscale trace: when the GPUs of a profiler trace were idle, and what the host did meanwhile.
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/gpu/trace_report.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/fail_on.h"
#include "cli/term/flags.h"
#include "cli/term/output.h"
#include "cli/term/progress.h"
#include "insight/gpu_trace.h"
#include "insight/trace_file.h"
#include "runtime/options/flag_table.h"

#define OUTPUT_MAX ((size_t)64 * 1024 * 1024)
#define ROWS       10
#define ROWS_MAX   GPU_TRACE_LONG_MAX

static void (*const formats[OUTPUT__COUNT])(const struct trace_report *, struct buf *) = {
        [OUTPUT_TABLE] = trace_report_table, [OUTPUT_WIDE] = trace_report_table, [OUTPUT_JSON] = trace_report_json,
        [OUTPUT_YAML] = trace_report_json,   [OUTPUT_SVG] = trace_report_svg,
};

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
	struct fail_options fail_on;
	size_t n_rows;
	struct trace_classes classes;
	enum output_format output;
};

static void add_class(void *classes, char *arg, struct argp_state *state)
{
	struct err e;
	if (trace_classes_add(classes, arg, &e) < 0)
		print_usage(state, "--class: %s", e.msg);
}

// clang-format off
#define FLAGS_OF struct trace_args
static const struct flag_set command = {
	.args = "FILE",
	.about = "Show when the GPUs of a profiler trace were idle, what the host did meanwhile, and which kernels took the most "
	         "time. FILE is a trace in Chrome's format from the torch profiler, or converted from Nsight Systems, plain or "
	         "compressed with gzip, up to 1 GiB after decompression. Overlapping streams count once."
	         "\vMetrics of CONDITION: idle, data-loading, copy, launch, collective, unknown (each a share of the time of "
	         "the trace), longest-gap.\n"
	         "Exit status: 0 done, 1 failed, 2 wrong usage, 3 a condition of --fail-on holds.",
	.surplus = ": one file at a time",
	.missing = "missing FILE: a trace of the torch profiler, as in trace.json or trace.json.gz",
	.flags = (const struct flag[]){
		FLAG_FAIL_ON(1, fail_on, "'idle > 20%' or 'longest-gap > 50ms', of a GPU"),
		FLAG_CALL(1, 0, "class", "REGEX=ACTIVITY", classes, add_class, "host events whose name matches belong to this activity, as in 'load_shard=data-loading' (repeatable)"),
		FLAG_I64(1, 0, "top", "N", n_rows, 0, ROWS_MAX, "number of gaps and kernels to list (default 10, at most 100)"),
		FLAG_OUTPUT(1, output, OUTPUTS_REPORT | OUTPUT_SET(SVG), "table, wide, json, yaml, or svg: a timeline with the causes of the gaps (default table)"),
		FLAG_ARGUMENT(path),
		FLAG_END}};
// clang-format on

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
	for (size_t k = 0; k < t->n_gpus; k++) {
		double values[FAIL_METRIC__COUNT];
		char name[GPU_TRACE_TEXT], who[GPU_TRACE_TEXT + 32];
		for (size_t i = 0; i < FAIL_METRIC__COUNT; i++)
			values[i] = metric_of(t, t->gpus[k], i);
		snprintf(who, sizeof who, "gpuscale trace: GPU %s", gpu_trace_name(t->gpus[k], name));
		if (fail_on_check(&a->fail_on, who, values) != EXIT_OK)
			code = EXIT_CHANGES;
	}
	return code;
}

static int print(const struct trace_args *a, const struct trace_report *r)
{
	struct buf out, notes;
	buf_init(&out, OUTPUT_MAX);
	buf_init(&notes, OUTPUT_MAX);
	formats[a->output](r, &out);
	trace_report_notes(r, &notes);
	int rc = output_print("gpuscale trace", &out, a->output);
	print_notes(&notes);
	buf_done(&out);
	buf_done(&notes);
	return rc;
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
	int code = rc < 0                  ? err_kind_info(e->kind)->exit_code
	           : print(a, &report) < 0 ? EXIT_FAILED
	                                   : check_limits(a, t);
	gpu_trace_done(t);
	free(t);
	return code;
}

int cmd_trace(int argc, char **argv)
{
	struct trace_args args = {.n_rows = ROWS, .fail_on = FAIL_OPTIONS(fail_metrics)};
	args_parse(&command, argc, argv, &args);
	struct err e;
	err_clear(&e);
	int code = run(&args, &e);
	trace_classes_done(&args.classes);
	if (e.kind != ERR_NONE)
		print_error("gpuscale trace: %s\n", e.msg);
	return code;
}
