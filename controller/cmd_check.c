// SPDX-License-Identifier: Apache-2.0
// gpuscale check FILE|DIR..
#include <argp.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "controller/commands.h"
#include "controller/options.h"
#include "controller/policy_set.h"

#define CHECK_REPORT_MAX (16 * 1024 * 1024)

struct check_args {
	struct path_options files;
	bool quiet;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct check_args *a = state->input;
	switch (key) {
	case 'q':
		a->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		path_options_add(&a->files, arg, state);
		return 0;
	case ARGP_KEY_NO_ARGS:
		argp_error(state, "name at least one policy file or folder");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int cmd_check(int argc, char **argv)
{
	static const struct argp_option options[] = {{"quiet", 'q', 0, 0, "print errors only", 0}, {0}};
	const struct argp argp = {options,
	                          parse,
	                          "FILE|DIR..",
	                          "Check policy files. Every error of every file is printed as file:line:col: path: "
	                          "message; no network is needed."
	                          "\vExit status: 0 when all are good, 1 when there are errors, 2 for wrong usage.",
	                          NULL,
	                          NULL,
	                          NULL};
	struct check_args args = {0};
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, &args);
	struct buf report;
	buf_init(&report, CHECK_REPORT_MAX);
	struct policy_set set;
	struct err e;
	int code = EXIT_OK;
	if (policy_set_load(&set, args.files.paths, args.files.n, NULL, &report, &e) < 0) {
		fprintf(stderr, "gpuscale check: %s\n", e.msg);
		buf_done(&report);
		return EXIT_FAILED;
	}
	fputs(buf_str(&report), stdout);
	fflush(stdout); // before the summary, also where both go into one file
	if (set.n_errors)
		code = EXIT_FAILED;
	else if (set.n_policies == 0) {
		fprintf(stderr, "gpuscale check: no policies found; files are *.yaml, *.yml or *.json\n");
		code = EXIT_FAILED;
	}
	if (!args.quiet)
		fprintf(stderr, "%zu %s valid, %zu %s\n", set.n_policies, set.n_policies == 1 ? "policy" : "policies",
		        set.n_errors, set.n_errors == 1 ? "error" : "errors");
	policy_set_done(&set);
	buf_done(&report);
	return code;
}
