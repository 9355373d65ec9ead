// SPDX-License-Identifier: Apache-2.0
// gpuscale remediate --replay FILE: the planner of remediation as a filter, so that anyone can replay an incident.
#include <argp.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/num.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/line_filter.h"
#include "remedy/plan/remedy_state.h"
#include "remedy/remedy_line.h"
#include "remedy/remedy_replay.h"

#define COMMAND      "gpuscale remediate"
#define CLEAN_MAX_MS REMEDY_DAY_MS

struct remediate_args {
	const char *replay;
	struct remedy_limits limits;
};

enum { KEY_REPLAY = 0x780, KEY_NODES, KEY_PERCENT, KEY_ATTEMPTS, KEY_CLEAN, KEY_RESET };

static int32_t whole(const char *arg, int32_t min, int32_t max, const char *flag, struct argp_state *state)
{
	struct err e;
	int64_t v = 0;
	if (num_parse_i64(arg, strlen(arg), min, max, &v, &e) < 0)
		argp_error(state, "%s: %s", flag, e.msg);
	return (int32_t)v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct remediate_args *a = state->input;
	struct err e;
	switch (key) {
	case KEY_REPLAY:
		a->replay = arg;
		return 0;
	case KEY_NODES:
		a->limits.max_nodes = whole(arg, 0, REMEDY_NODES_MAX, "--max-unavailable", state);
		return 0;
	case KEY_PERCENT:
		a->limits.max_percent = whole(arg, 0, 100, "--max-unavailable-percent", state);
		return 0;
	case KEY_ATTEMPTS:
		a->limits.attempts = whole(arg, 1, REMEDY_ATTEMPTS_MAX, "--attempts", state);
		return 0;
	case KEY_CLEAN:
		if (num_parse_duration_ms(arg, strlen(arg), &a->limits.clean_ms, &e) < 0)
			argp_error(state, "--clean: %s", e.msg);
		if (a->limits.clean_ms < 60000 || a->limits.clean_ms > CLEAN_MAX_MS)
			argp_error(state, "--clean: must be 1m to 24h");
		return 0;
	case KEY_RESET:
		a->limits.can_reset = true;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument \"%s\"; the file is named by --replay", arg);
		return 0;
	case ARGP_KEY_END:
		if (!a->replay)
			argp_error(state, "acting on a cluster is not supported yet: name a recording with --replay "
			                  "FILE, or - for standard input");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int answer(void *context, const char *line, size_t len, struct buf *out, struct err *e)
{
	return remedy_replay_answer(context, line, len, out, e);
}

int cmd_remediate(int argc, char **argv)
{
	static const struct argp_option options[] = {
	        {"replay", KEY_REPLAY, "FILE", 0,
	         "recording of an incident, one JSON object per line; - for standard input", 0},
	        {"max-unavailable", KEY_NODES, "N", 0,
	         "most nodes out of service at the same time, including those that are cordoned or not ready (default "
	         "5)",
	         0},
	        {"max-unavailable-percent", KEY_PERCENT, "P", 0,
	         "the same limit in percent of all nodes; the smaller one applies (default 10)", 0},
	        {"attempts", KEY_ATTEMPTS, "N", 0,
	         "how often a node may be taken out of service within 24 hours (default 3)", 0},
	        {"clean", KEY_CLEAN, "DURATION", 0,
	         "time without a fault before a GPU returns to service; doubles with each attempt of the day (default "
	         "30m)",
	         0},
	        {"reset", KEY_RESET, 0, 0, "plan resets of GPUs that no pod uses, for nodes that can carry them out",
	         0},
	        {0}};
	const struct argp argp = {
	        options,
	        parse,
	        "",
	        "Run the planner of remediation as a filter: read one observation per line (an event, telemetry, the "
	        "state of a node, or a tick), and write the actions that follow, one per line, both JSON. Every "
	        "action counts as carried out. Changes no cluster."
	        "\vFormats, rules and limits: docs/remediation.md. An invalid line is answered with {\"error\": "
	        "\"...\"} and changes nothing.\n\nExit status: 0 if every line was valid, 1 if not, 2 for wrong usage.",
	        NULL,
	        NULL,
	        NULL};
	struct remediate_args args = {
	        .limits = {.max_nodes = 5, .max_percent = 10, .attempts = 3, .clean_ms = INT64_C(1800000)}};
	args_parse(&argp, argc, argv, &args);

	struct remedy_replay *replay = remedy_replay_new(&args.limits);
	if (!replay) {
		fputs(COMMAND ": out of memory\n", stderr);
		return EXIT_FAILED;
	}
	struct line_filter filter = {COMMAND, REMEDY_LINE_BYTES_MAX, replay, answer, NULL, args.replay};
	int code = line_filter_run(&filter);
	remedy_replay_free(replay);
	return code;
}
