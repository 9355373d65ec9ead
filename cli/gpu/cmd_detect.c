// SPDX-License-Identifier: Apache-2.0
// gpuscale detect: stragglers and memory leaks, as a line filter so that anyone can test the detectors, or from the
// past that a Prometheus has.
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/json/yaml_out.h"
#include "base/print.h"
#include "cli/gpu/detect_fetch.h"
#include "cli/objects/policy_fetch.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/flags.h"
#include "cli/term/line_filter.h"
#include "cli/term/output.h"
#include "cli/term/prometheus_session.h"
#include "cli/term/table.h"
#include "insight/detect.h"
#include "insight/detect_line.h"
#include "runtime/options/flag_table.h"

#define OUTPUT_MAX (64 * 1024 * 1024)
#define SINCE_MS   INT64_C(3600000)
#define STEP_MS    INT64_C(15000)

struct detect_args {
	struct prometheus_options prometheus;
	struct detect_fetch fetch;
	struct policy_scope scope;
	const char *file; // NULL: standard input
	enum output_format output;
	bool has_namespace; // given as a flag
};

static void check(void *options, struct argp_state *state)
{
	struct detect_args *a = options;
	struct detect_fetch *f = &a->fetch;
	if (!!f->pods + !!f->job + !!a->file > 1)
		print_usage(state, "FILE, --job and --pods cannot be used together");
	if (!f->pods && !f->job && (f->since_ms || f->step_ms || a->scope.namespace_name))
		print_usage(state, "-n, --since and --step need --job NAME or --pods REGEX");
	if (a->scope.all_namespaces)
		print_usage(state, "a job needs its namespace: -n instead of -A");
	f->since_ms = f->since_ms ? f->since_ms : SINCE_MS;
	f->step_ms = f->step_ms ? f->step_ms : STEP_MS;
}

// clang-format off
#define FLAGS_OF struct detect_args
static const struct flag_set command = {
	.args = "[FILE]",
	.about = "Find stragglers among the ranks of training jobs, and memory that leaks. Reads FILE or standard input, or with "
	         "--job the history of jobs of a namespace from Prometheus, and writes one JSON object per event. Without -n, "
	         "series without a namespace are used where those of the context's namespace do not exist."
	         "\vInput: CSV with a header, a row per time and rank (columns time, rank, and any of job, step, compute, "
	         "clock, power, activity, memory, memoryLimit, workingSet, workingSetLimit, epoch; other columns are ignored), "
	         "or a JSON object per time: {\"time\": 1800, \"job\": \"bert\", \"step\": {\"0\": 0.47, \"1\": 0.45}, "
	         "\"memory\": {\"0\": 3e10}, \"memoryLimit\": 8e10}. Times are seconds in ascending order, memory is in bytes. "
	         "Ranks are compared by the first of step, compute, clock, power and activity that is present; step times that "
	         "are equal on all ranks are ignored.\n\nEvents: Straggler, Faster, Recovered, Imbalanced, Leak, LeakEnded; "
	         "docs/diagnosis.md explains them and how often they are wrong.\n\nExit status: 0 if every line was valid, 1 "
	         "if not, 2 for wrong usage.",
	.surplus = ": one file at a time",
	.check = check,
	.flags = (const struct flag[]){
		FLAG_TEXT(1, 0, "job", "NAME", fetch.job, "a training job in Prometheus, instead of FILE; '*': every job"),
		FLAG_TEXT(1, 0, "pods", "REGEX", fetch.pods, "these pods as one job, with their names as ranks"),
		FLAG_SINCE(1, fetch.since_ms, 1000, 0, "1h"),
		FLAG_DURATION(1, 0, "step", fetch.step_ms, 1000, 0, "time between two values (default 15s)"),
		FLAG_OUTPUT(1, output, OUTPUTS_REPORT, "table, wide, json (an object per line) or yaml (default json)"),
		FLAG_ARGUMENT(file),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 0),
		FLAG_INCLUDE(&namespace_flags, scope, 0),
		FLAG_END}};
// clang-format on

// ---- events ----

struct detect_context {
	struct buf events; // a JSON object per line
	enum output_format output;
	struct table table;
	bool has_head;
	struct detect_lines *lines;
};

static const char *const head[] = {"TIME", "JOB", "EVENT", "RANK", "INPUT", "DETAILS", NULL};
#define N_TEXTS 4 // columns of text behind the time, as in the members of an event

static void put_row(struct table *t, const cJSON *event)
{
	const cJSON *c = event->child;
	struct buf details;
	buf_init(&details, TABLE_CELL_BYTES);
	table_cell(t, "%.15g", c ? c->valuedouble : 0);
	for (size_t i = 0; i < N_TEXTS; i++, c = c ? c->next : NULL)
		table_cell(t, "%s", c && c->next && c->next->valuestring ? c->next->valuestring : "");
	for (c = c ? c->next : NULL; c; c = c->next) {
		print_to(&details, "%s%s", details.len ? ", " : "", c->string);
		if (cJSON_IsNumber(c))
			print_to(&details, " %.6g", c->valuedouble);
		for (const cJSON *name = c->child; name; name = name->next)
			print_to(&details, " %s", name->valuestring);
	}
	table_cell(t, "%s", buf_str(&details));
	buf_done(&details);
}

static void put_event(struct detect_context *c, const char *line, size_t len, struct buf *out)
{
	struct buf list;
	cJSON *event = NULL;
	switch (c->output) {
	case OUTPUT_JSON:
		buf_put(out, line, len);
		buf_putc(out, '\n');
		break;
	case OUTPUT_YAML: // an item of one list
		buf_init(&list, len + 3);
		buf_putc(&list, '[');
		buf_put(&list, line, len);
		buf_putc(&list, ']');
		out->failed |= list.failed || yaml_from_json(out, buf_str(&list), list.len) < 0;
		buf_done(&list);
		break;
	default:
		event = json_read(line, len, NULL);
		if (event)
			put_row(&c->table, event);
		out->failed |= !event || c->table.cells.failed;
		table_print(&c->table, out, 0, !c->has_head);
		c->has_head = true;
		cJSON_Delete(event);
		break;
	}
}

static void move_events(struct detect_context *c, struct buf *out)
{
	const char *end;
	for (const char *line = buf_str(&c->events); (end = strchr(line, '\n')); line = end + 1)
		put_event(c, line, (size_t)(end - line), out);
	out->failed = out->failed || c->events.failed;
	buf_reset(&c->events);
}

static void context_init(struct detect_context *c, enum output_format output)
{
	// Rows are printed as they come: the widths are a guess.
	static const size_t widths[] = {10, 20, 10, 16, 8};
	*c = (struct detect_context){.output = output};
	buf_init(&c->events, OUTPUT_MAX);
	table_init(&c->table, head);
	memcpy(c->table.widths, widths, sizeof widths);
}

static void context_done(struct detect_context *c)
{
	buf_done(&c->events);
	table_done(&c->table);
}

// ---- the filter ----

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

static int filter_lines(const struct detect_args *a)
{
	struct detect_context c;
	context_init(&c, a->output);
	c.lines = detect_lines_new(&c.events);
	const struct line_filter filter = {"gpuscale detect", DETECT_LINE_BYTES_MAX, &c, answer, finish, a->file};
	int code = EXIT_FAILED;
	if (c.lines)
		code = line_filter_run(&filter);
	else
		print_error("gpuscale detect: out of memory\n");
	detect_lines_free(c.lines);
	context_done(&c);
	return code;
}

// ---- from Prometheus ----

static int run_past(const struct detect_args *a, struct err *e)
{
	struct prometheus_session session;
	struct detect_context view;
	struct buf out;
	if (prometheus_session_open(&session, &a->prometheus, e) < 0)
		return -1;
	buf_init(&out, OUTPUT_MAX);
	context_init(&view, a->output);
	struct detect *d = detect_new(&view.events);
	struct detect_fetch fetch = a->fetch;
	int rc = d ? detect_fetch(&session, &fetch, d, e) : err_set(e, ERR_INTERNAL, "out of memory");
	if (rc < 0 && e->kind == ERR_NOT_FOUND && !a->has_namespace) {
		struct err other;
		err_clear(&other);
		fetch.namespace_name = "";
		rc = detect_fetch(&session, &fetch, d, &other);
		if (rc == 0)
			err_clear(e);
		else if (other.kind != ERR_NOT_FOUND)
			*e = other;
	}
	move_events(&view, &out);
	bool ok = print_out(&out) == 0;
	if (rc == 0 && !ok)
		rc = err_set(e, ERR_INTERNAL, "out of memory for the events, or they cannot be written");
	detect_free(d);
	context_done(&view);
	buf_done(&out);
	prometheus_session_close(&session);
	return rc;
}

int cmd_detect(int argc, char **argv)
{
	struct detect_args args = {.output = OUTPUT_JSON};
	prometheus_options_init(&args.prometheus);
	args_parse(&command, argc, argv, &args);
	if (!args.fetch.pods && !args.fetch.job)
		return filter_lines(&args);
	struct err e;
	struct arena arena;
	err_clear(&e);
	arena_init(&arena, OUTPUT_MAX);
	args.has_namespace = args.scope.namespace_name != NULL;
	int rc = policy_scope_resolve(&args.scope, &arena, &e);
	args.fetch.namespace_name = args.scope.namespace_name;
	if (rc == 0)
		rc = run_past(&args, &e);
	arena_done(&arena);
	if (rc == 0)
		return EXIT_OK;
	return command_failed("gpuscale detect", &e);
}
