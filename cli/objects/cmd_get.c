// SPDX-License-Identifier: Apache-2.0
// gpuscale get [KIND] [NAME..]: lists the GPUAutoscalers of a cluster, or its GPUPools, with their status, or failing
// GPUs.
#include "base/arena.h"
#include "base/buf.h"
#include "base/print.h"
#include "cli/objects/get_watch.h"
#include "cli/objects/kube_session.h"
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_render.h"
#include "cli/objects/policy_view.h"
#include "cli/objects/pool_get.h"
#include "cli/objects/remediation_list.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/flags.h"
#include "cli/term/output.h"
#include "cli/term/price_option.h"
#include "policies/price/price_book.h"

#define KINDS          (1U << OBJECT_POLICY | 1U << OBJECT_POOL | 1U << OBJECT_REMEDIATION)
#define GET_OUTPUT_MAX ((size_t)512 * 1024 * 1024)

struct get_args {
	struct policy_scope scope;
	enum output_format output;
	bool watch;
	const char *prices;
	struct price_book book; // of -o wide
};

static void check(void *options, struct argp_state *state)
{
	const struct get_args *a = options;
	if (a->watch && a->scope.n_names > 1)
		print_usage(state, "-w takes one name, or none for all");
	if (a->watch && a->scope.kind != OBJECT_POLICY)
		print_usage(state, "not supported: -w of %s%s", object_kind_info(a->scope.kind)->plural,
		            a->scope.kind == OBJECT_POOL ? "; use kubectl get gpupools -w" : "");
	if (a->scope.kind == OBJECT_REMEDIATION && a->scope.n_names)
		print_usage(state, "remediations takes no name");
	if (a->prices && a->output != OUTPUT_WIDE)
		print_usage(state, "--prices is for -o wide");
}

// clang-format off
#define FLAGS_OF struct get_args
static const struct flag_set command = {
	.args = "[KIND] [NAME..]\nKIND/NAME..",
	.about = "List objects of a cluster. KIND is gpuautoscalers (the default), gpupools or remediations, or its singular "
	         "or short name, as in `gpua` and `pool`. Policies: bounds, present and desired replicas, and why; -o wide "
	         "also shows what the present replicas cost per hour, for policies with spec.gpus; ~ marks an assumed price. "
	         "Pools: what each may use and uses, and what each member asked for and got. Remediations: the GPUs that the "
	         "agent of remediation took out of service, and its Events."
	         "\vExit status: 0 done, 1 failed or not found, 2 wrong usage.",
	.check = check,
	.flags = (const struct flag[]){
		FLAG_OUTPUT(1, output, OUTPUTS_LIST, OUTPUTS_LIST_HELP),
		FLAG_PRICES(1, prices),
		FLAG_WATCH(1, watch, "then print every change, until interrupted"),
		FLAG_ARGUMENTS(scope, policy_scope_add),
		FLAG_INCLUDE(&policy_scope_flags, scope, 0),
		FLAG_END}};
// clang-format on

static int print(const struct get_args *a, const struct policy_views *v, int64_t now_ms)
{
	struct buf out;
	buf_init(&out, GET_OUTPUT_MAX);
	policy_render_list(&out, v, &a->book, a->output, a->scope.n_names == 1, a->scope.all_namespaces, now_ms);
	int rc = output_print("gpuscale get", &out, a->output);
	buf_done(&out);
	return rc;
}

static int get(struct get_args *a, struct kube_session *session)
{
	struct policy_views v;
	int code = policy_fetch_named(session, &a->scope, "gpuscale get", &v);
	bool is_empty_table = v.n == 0 && (a->output == OUTPUT_TABLE || a->output == OUTPUT_WIDE);
	// A missing policy was reported; a document without it would look complete.
	if (code == EXIT_OK || v.n > 0) {
		if (is_empty_table || (v.n == 0 && a->output == OUTPUT_NAME))
			policy_fetch_say_none(&a->scope);
		else if (print(a, &v, clock_wall_ms(&session->clock)) < 0)
			code = EXIT_FAILED;
	}
	policy_views_done(&v);
	return code;
}

static int get_all(struct get_args *a)
{
	struct kube_session session;
	int code = policy_fetch_open(&session, &a->scope, "gpuscale get");
	if (code != EXIT_OK)
		return code;
	if (a->scope.kind == OBJECT_POOL)
		code = pool_get(&session, &a->scope, a->output);
	else
		code = a->watch ? get_watch(&session, &a->scope, &a->book, a->output) : get(a, &session);
	kube_session_close(&session);
	return code;
}

int cmd_get(int argc, char **argv)
{
	struct get_args args = {.output = OUTPUT_TABLE, .scope.kinds = KINDS};
	args_parse(&command, argc, argv, &args);
	if (args.scope.kind == OBJECT_REMEDIATION)
		return remediation_list_print(&args.scope.kube, args.output);
	struct arena prices;
	arena_init(&prices, PRICE_OPTION_ARENA_MAX);
	int code = EXIT_FAILED;
	if (args.output != OUTPUT_WIDE || price_option_read(args.prices, &prices, &args.book, "gpuscale get") == 0)
		code = get_all(&args);
	arena_done(&prices);
	return code;
}
