// SPDX-License-Identifier: Apache-2.0
// gpuscale detect: stragglers and memory leaks, as a line filter so that anyone can test the detectors, or from the
// past that a Prometheus has.
#include <argp.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/gpu/detect_fetch.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/line_filter.h"
#include "insight/detect.h"
#include "insight/detect_line.h"
#include "runtime/connections.h"
#include "runtime/options/controller_options.h"

#define OUTPUT_MAX (64 * 1024 * 1024)
#define SINCE_MS   INT64_C(3600000)
#define STEP_MS    INT64_C(15000)

struct detect_args {
	struct prometheus_options prometheus;
	struct detect_fetch fetch;
	const char *file; // NULL: standard input
	bool has_period;
};

enum { KEY_PODS = 0xe00, KEY_JOB, KEY_SINCE, KEY_STEP };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct detect_args *a = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->prometheus;
		return 0;
	case KEY_PODS:
		a->fetch.pods = arg;
		return 0;
	case KEY_JOB:
		a->fetch.job = arg;
		return 0;
	case 'n':
		a->fetch.namespace_name = arg;
		return 0;
	case KEY_SINCE:
		a->fetch.since_ms = option_duration_ms("--since", arg, 1000, state);
		a->has_period = true;
		return 0;
	case KEY_STEP:
		a->fetch.step_ms = option_duration_ms("--step", arg, 1000, state);
		a->has_period = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->file)
			print_usage(state, "unexpected argument \"%s\": one file at a time", arg);
		a->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (!!a->fetch.pods + !!a->fetch.job + !!a->file > 1)
			print_usage(state, "FILE, --job and --pods cannot be used together");
		if (!a->fetch.pods && !a->fetch.job && (a->has_period || a->fetch.namespace_name))
			print_usage(state, "-n, --since and --step need --job NAME or --pods REGEX");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

// ---- the filter ----

struct detect_context {
	struct buf events;
	struct detect_lines *lines;
};

static void move_events(struct detect_context *c, struct buf *out)
{
	buf_put(out, buf_str(&c->events), c->events.len);
	out->failed = out->failed || c->events.failed;
	buf_reset(&c->events);
}

static int answer(void *context, const char *line, size_t len, struct buf *out, struct err *e)
{
	struct detect_context *c = context;
	int rc = detect_lines_read(c->lines, line, len, e);
	move_events(c, out);
	return rc;
}

static void finish(void *context, struct buf *out)
{
	struct detect_context *c = context;
	detect_lines_finish(c->lines);
	move_events(c, out);
}

static int filter_lines(const char *path)
{
	struct detect_context c;
	buf_init(&c.events, OUTPUT_MAX);
	c.lines = detect_lines_new(&c.events);
	const struct line_filter filter = {"gpuscale detect", DETECT_LINE_BYTES_MAX, &c, answer, finish, path};
	int code = EXIT_FAILED;
	if (c.lines)
		code = line_filter_run(&filter);
	else
		print_error("gpuscale detect: out of memory\n");
	detect_lines_free(c.lines);
	buf_done(&c.events);
	return code;
}

// ---- from Prometheus ----

static int run_past(const struct detect_args *a, struct err *e)
{
	struct connections c;
	struct buf out;
	if (connections_open(&c, &a->prometheus, NULL, NULL, e) < 0)
		return -1;
	buf_init(&out, OUTPUT_MAX);
	struct detect *d = detect_new(&out);
	struct detect_fetch fetch = a->fetch;
	fetch.namespace_name = fetch.namespace_name ? fetch.namespace_name : "default";
	int rc = d ? detect_fetch(&c, &fetch, d, e) : err_set(e, ERR_INTERNAL, "out of memory");
	if (rc < 0 && e->kind == ERR_NOT_FOUND && !a->fetch.namespace_name) {
		struct err other;
		err_clear(&other);
		fetch.namespace_name = "";
		rc = detect_fetch(&c, &fetch, d, &other);
		if (rc == 0)
			err_clear(e);
		else if (other.kind != ERR_NOT_FOUND)
			*e = other;
	}
	bool ok = print_out(&out) == 0;
	if (rc == 0 && !ok)
		rc = err_set(e, ERR_INTERNAL, "out of memory for the events, or they cannot be written");
	detect_free(d);
	buf_done(&out);
	connections_close(&c);
	return rc;
}

int cmd_detect(int argc, char **argv)
{
	static const struct argp_option options[] = {
	        {"job", KEY_JOB, "NAME", 0, "a training job in Prometheus, instead of FILE; '*': every job", 1},
	        {"pods", KEY_PODS, "REGEX", 0, "these pods as one job, with their names as ranks", 1},
	        {"namespace", 'n', "NAMESPACE", 0,
	         "namespace of the pods, \"\" for series without one (default \"default\", else \"\")", 1},
	        {"since", KEY_SINCE, "DURATION", 0, "length of the period up to now (default 1h)", 1},
	        {"step", KEY_STEP, "DURATION", 0, "time between two values (default 15s)", 1},
	        {0}};
	static const struct argp_child children[] = {{&prometheus_argp, 0, NULL, 0}, {0}};
	const struct argp argp = {
	        options,
	        parse,
	        "[FILE]",
	        "Find stragglers among the ranks of training jobs, and memory that leaks. Reads FILE or standard "
	        "input, or with --job the history of jobs from Prometheus, and writes one JSON object per event."
	        "\vInput: CSV with a header, a row per time and rank (columns time, rank, and any of job, step, "
	        "compute, clock, power, activity, memory, memoryLimit, workingSet, workingSetLimit, epoch; other "
	        "columns are ignored), or a JSON object per time: {\"time\": 1800, \"job\": \"bert\", \"step\": "
	        "{\"0\": 0.47, \"1\": 0.45}, \"memory\": {\"0\": 3e10}, \"memoryLimit\": 8e10}. Times are seconds in "
	        "ascending order, memory is in bytes. Ranks are compared by the first of step, compute, clock, power "
	        "and activity that is present; step times that are equal on all ranks are ignored.\n\nEvents: "
	        "Straggler, Faster, Recovered, Imbalanced, Leak, LeakEnded; docs/stragglers.md explains them and how "
	        "often they are wrong.\n\nExit status: 0 if every line was valid, 1 if not, 2 for wrong usage.",
	        children,
	        NULL,
	        NULL};
	struct detect_args args = {.fetch = {.since_ms = SINCE_MS, .step_ms = STEP_MS}};
	prometheus_options_init(&args.prometheus);
	args_parse(&argp, argc, argv, &args);
	if (!args.fetch.pods && !args.fetch.job)
		return filter_lines(args.file);
	struct err e;
	err_clear(&e);
	if (run_past(&args, &e) == 0)
		return EXIT_OK;
	print_error("gpuscale detect: %s\n", e.msg);
	return err_kind_info(e.kind)->exit_code;
}
