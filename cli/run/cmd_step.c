// SPDX-License-Identifier: Apache-2.0
// gpuscale step -f FILE: the engine as a line filter, so that a program can close a loop around it.
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/flags.h"
#include "cli/term/line_filter.h"
#include "policies/load/file_set.h"
#include "policies/load/policy_pick.h"
#include "policies/load/policy_ref.h"
#include "policies/test/step_line.h"

#define REPORT_MAX (16 * 1024 * 1024)

struct step_args {
	struct path_options files;
	const char *policy;
};

static void check(void *options, struct argp_state *state)
{
	const struct step_args *a = options;
	for (size_t i = 0; i < a->files.n; i++)
		if (strcmp(a->files.paths[i], "-") == 0)
			print_usage(state, "-f -: standard input carries the observations");
	if (a->files.n == 0)
		print_usage(state, "name the policy: -f FILE");
}

// clang-format off
#define FLAGS_OF struct step_args
static const struct flag_set command = {
	.args = "",
	.about = "Run the decision engine as a filter: reads one observation per line of standard input, and writes one "
	         "decision per line of standard output, both JSON. Writes nothing else."
	         "\vFormat of an observation: {\"time\": SECONDS, \"replicas\": N, \"ready\": N, \"pending\": N, "
	         "\"signals\": {\"NAME\": VALUE | {\"POD\": VALUE} | null | {\"error\": \"TEXT\"}}}. Replicas that differ from "
	         "the previous line mean that the decision was carried out. An invalid line is answered with {\"error\": "
	         "\"...\"}.\n\nExit status: 0 if every line was valid, 1 if not, 2 for wrong usage.",
	.surplus = "; the policy is named by -f",
	.check = check,
	.flags = (const struct flag[]){
		FLAG_FILES(0, "FILE", files, "policy file or folder"),
		FLAG_POLICY(0, policy),
		FLAG_END}};
// clang-format on

static int answer(void *context, const char *line, size_t len, struct buf *out, struct err *e)
{
	return step_answer(context, line, len, out, e);
}

static int filter_all(const struct policy *policy)
{
	struct step *step = step_new(&policy_ref_of(policy)->binding);
	if (!step) {
		print_error("gpuscale step: out of memory\n");
		return EXIT_FAILED;
	}
	const struct line_filter filter = {"gpuscale step", STEP_LINE_BYTES_MAX, step, answer, NULL, NULL};
	int code = line_filter_run(&filter);
	step_free(step);
	return code;
}

int cmd_step(int argc, char **argv)
{
	struct step_args args = {0};
	args_parse(&command, argc, argv, &args);

	struct err e;
	struct buf report;
	struct file_set set;
	buf_init(&report, REPORT_MAX);
	int code = EXIT_FAILED;
	if (file_set_load(&set, args.files.paths, args.files.n, NULL, &report, &e) < 0) {
		print_error("gpuscale step: %s\n", e.msg);
		buf_done(&report);
		return EXIT_FAILED;
	}
	print_notes(&report);
	if (set.n_errors == 0) {
		const struct policy *policy = policy_pick(&set, args.policy, &e);
		if (policy)
			code = filter_all(policy);
		else
			print_error("gpuscale step: %s\n", e.msg);
	}
	file_set_done(&set);
	buf_done(&report);
	return code;
}
