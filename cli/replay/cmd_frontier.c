// SPDX-License-Identifier: Apache-2.0
// gpuscale frontier -f POLICY --prometheus URL|--data FILE: cost against lateness.
#include <argp.h>
#include <math.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/replay/backtest_report.h"
#include "cli/replay/frontier_report.h"
#include "cli/replay/replay_input.h"
#include "cli/replay/replay_objective.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "replay/frontier.h"
#include "replay/parallel.h"

#define OUTPUT_MAX       (4 * 1024 * 1024)
#define GPUS_PER_REPLICA 1024

typedef void report_fn(const struct frontier_report *r, struct buf *out);
static const char *const format_names[] = {"table", "json", "csv", "svg", NULL};
static report_fn *const reports[] = {frontier_report_table, frontier_report_json, frontier_report_csv,
                                     frontier_report_svg};
_Static_assert(sizeof format_names / sizeof *format_names == sizeof reports / sizeof *reports + 1,
               "one name per format");

struct frontier_args {
	struct replay_args replay;
	double price, gpus_per_replica;
	int output;
};

enum { KEY_PRICE = 0x700, KEY_GPUS };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct frontier_args *a = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->replay;
		state->child_inputs[1] = &a->replay;
		return 0;
	case 'o':
		a->output = option_choice("-o", arg, format_names, state);
		return 0;
	case KEY_PRICE:
		a->price = option_f64("--price", arg, 0, 1e9, state);
		return 0;
	case KEY_GPUS:
		a->gpus_per_replica = option_f64("--gpus-per-replica", arg, 0.001, GPUS_PER_REPLICA, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int frontier(const struct frontier_args *a, const struct replay_input *in, struct err *e)
{
	struct backtest_config config = a->replay.config;
	struct frontier f;
	struct buf out;
	buf_init(&out, OUTPUT_MAX);
	replay_objective_complete(&config, in->policy);
	int rc = frontier_run(&config, in->policy, &in->recording, in->file, parallel_cores(), &f, e);
	if (rc == 0) {
		const struct frontier_report r = {&f, in->policy, a->price, a->gpus_per_replica};
		reports[a->output](&r, &out);
		rc = out.failed ? err_set(e, ERR_INTERNAL, "out of memory") : 0;
	}
	if (rc == 0) {
		backtest_report_print_start(&f.scene);
		print_out(&out);
	}
	buf_done(&out);
	frontier_done(&f);
	return rc;
}

int cmd_frontier(int argc, char **argv)
{
	static const struct argp_option options[] = {
	        {0, 0, 0, 0, "Output:", 3},
	        {"output", 'o', "FORMAT", 0, "table, json, csv or svg (table)", 3},
	        {"price", KEY_PRICE, "X", 0, "price of one GPU-hour", 3},
	        {"gpus-per-replica", KEY_GPUS, "N", 0, "GPUs of one replica (1)", 3},
	        {0}};
	static const struct argp_child children[] = {
	        {&replay_input_argp, 0, NULL, 0}, {&replay_world_argp, 0, NULL, 0}, {0}};
	const struct argp argp = {
	        options,
	        parse,
	        "",
	        "Show what each lateness costs on recorded demand: the policy at objectives from 0.1 % to 20 %, or "
	        "with its targets scaled when it has no objective, beside other autoscalers, fixed counts, and the "
	        "best schedule that knows the future."
	        "\vThe recording has the same format as for gpuscale backtest. By default the wait is that of the "
	        "policy's objective, or 10s.\n\nExit status: 0, 1 on failure, 2 for wrong usage.",
	        children,
	        NULL,
	        NULL};
	struct frontier_args args = {.price = NAN, .gpus_per_replica = 1};
	replay_args_init(&args.replay);
	replay_objective_clear(&args.replay.config);
	args_parse(&argp, argc, argv, &args);

	struct err e;
	struct replay_input in;
	int code = replay_input_read(&args.replay, "frontier", &in);
	print_notes(&in.notes);
	if (code == EXIT_OK && frontier(&args, &in, &e) < 0) {
		print_error("gpuscale frontier: %s\n", e.msg);
		code = EXIT_FAILED;
	}
	replay_input_done(&in);
	return code;
}
