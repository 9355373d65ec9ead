// SPDX-License-Identifier: Apache-2.0
// gpuscale top [NAME..]: signals against their targets, most loaded first.
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_render.h"
#include "cli/term/cli.h"

struct top_args {
	struct policy_scope scope;
	enum output_format output;
	bool no_headers;
	const char *prices;
	struct price_book book;
};

// clang-format off
#define FLAGS_OF struct top_args
static const struct flag_set command = {
	.args = "[NAME..]",
	.about = "Show the signals of GPUAutoscalers against their targets, most loaded first. LOAD is value / target, or "
	         "value / watermark; WANTS the replicas the signal asks for. The values are those of the status, which is "
	         "written when something changes: SEEN is the time since then. COST/H is what the replicas cost per hour, "
	         "for policies with spec.gpus; ~ marks an assumed price.",
	.flags = (const struct flag[]){
		FLAG_SWITCH(1, 0, "no-headers", no_headers, "print rows only"),
		FLAG_OUTPUT(1, output, OUTPUTS_LIST, OUTPUTS_LIST_HELP),
		FLAG_PRICES(1, prices),
		FLAG_ARGUMENTS(scope, policy_scope_add),
		FLAG_INCLUDE(&policy_scope_flags, scope, 0),
		FLAG_END}};
// clang-format on

static int print(void *arg, struct connections *session, struct policy_views *v, struct buf *out)
{
	const struct top_args *a = arg;
	policy_render_top(out, v, &a->book, a->output, a->scope.all_namespaces, !a->no_headers,
	                  clock_wall_ms(&session->clock));
	return EXIT_OK;
}

int cmd_top(int argc, char **argv)
{
	struct top_args args = {0};
	args_parse(&command, argc, argv, &args);
	struct arena prices = ARENA(PRICE_OPTION_ARENA_MAX);
	int code = EXIT_FAILED;
	if (price_option_read(args.prices, &prices, &args.book, "gpuscale top") == 0)
		code = policy_fetch_run(&args.scope, "gpuscale top", args.output, print, &args);
	arena_done(&prices);
	return code;
}
