// SPDX-License-Identifier: Apache-2.0
// gpuscale get [pools] [NAME..]: lists the GPUAutoscalers of a cluster, or its GPUPools, with their status; gpuscale
// get remediations: failing GPUs.
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/term/price_option.h"
#include "cli/objects/get_watch.h"
#include "cli/objects/kube_session.h"
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_render.h"
#include "cli/objects/policy_view.h"
#include "cli/objects/pool_get.h"
#include "cli/objects/remediation_list.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "policies/price/price_book.h"

#define GET_OUTPUT_MAX ((size_t)512 * 1024 * 1024)

struct get_args {
	struct policy_scope scope;
	enum output_format output;
	bool watch, pools, remediations;
	const char *prices;
	struct price_book book; // of -o wide
};

enum { KEY_PRICES = 0x780 };

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct get_args *a = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &a->scope;
		return 0;
	case 'o':
		a->output = (enum output_format)option_choice("-o", arg, output_format_names, state);
		return 0;
	case KEY_PRICES:
		a->prices = arg;
		return 0;
	case 'w':
		a->watch = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->scope.n_names == 0 && !a->pools && (strcmp(arg, "pools") == 0 || strcmp(arg, "gpupools") == 0)) {
			a->pools = true; // a policy of this name is gpua/pools
			return 0;
		}
		if (a->scope.n_names == 0 && !a->pools && strcmp(arg, "remediations") == 0) {
			a->remediations = true;
			return 0;
		}
		policy_scope_add(&a->scope, arg, state);
		return 0;
	case ARGP_KEY_END:
		if (a->remediations && (a->scope.n_names || a->watch || a->output != OUTPUT_TABLE))
			print_usage(state, "remediations takes no name, -w or -o");
		policy_scope_check(&a->scope, state);
		if (a->watch && a->scope.n_names > 1)
			print_usage(state, "-w takes one name, or none for all");
		if (a->pools && a->watch)
			print_usage(state, "not supported: -w of pools; use kubectl get gpupools -w");
		if (a->prices && a->output != OUTPUT_WIDE)
			print_usage(state, "--prices is for -o wide");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int print(const struct get_args *a, const struct policy_views *v, int64_t now_ms)
{
	struct buf out;
	buf_init(&out, GET_OUTPUT_MAX);
	policy_render_list(&out, v, &a->book, a->output, a->scope.n_names == 1, a->scope.all_namespaces, now_ms);
	int rc = print_out(&out) < 0 ? -1 : 0;
	if (rc < 0)
		print_error("gpuscale get: the output cannot be written\n");
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
	if (a->pools)
		code = pool_get(&session, &a->scope, a->output);
	else
		code = a->watch ? get_watch(&session, &a->scope, &a->book, a->output) : get(a, &session);
	kube_session_close(&session);
	return code;
}

int cmd_get(int argc, char **argv)
{
	static const struct argp_option options[] = {
	        {"output", 'o', "FORMAT", 0, "table, wide, json, yaml or name (default table)", 1},
	        {"prices", KEY_PRICES, "FILE", 0, "a PriceBook for the costs of -o wide (default: the shipped prices)",
	         1},
	        {"watch", 'w', 0, 0, "then print every change, until interrupted", 1},
	        {0}};
	static const struct argp_child children[] = {{&policy_scope_argp, 0, NULL, 0}, {0}};
	const struct argp argp = {
	        options,
	        parse,
	        "[pools] [NAME..]\nremediations",
	        "List the GPUAutoscalers of a cluster: bounds, present and desired replicas, and why. "
	        "-o wide also shows what the present replicas cost per hour, for policies with "
	        "spec.gpus; ~ marks an assumed price. With `pools` as the first word, list the GPUPools: "
	        "what each may use and uses, and what each member asked for and got. `remediations` lists the GPUs "
	        "that the agent of remediation took out of service, and its Events. A policy of such a name is "
	        "gpua/pools."
	        "\vExit status: 0 done, 1 failed or not found, 2 wrong usage.",
	        children,
	        NULL,
	        NULL};
	struct get_args args = {.output = OUTPUT_TABLE};
	args_parse(&argp, argc, argv, &args);
	if (args.remediations)
		return remediation_list_print(&args.scope.kube);
	struct arena prices;
	arena_init(&prices, PRICE_OPTION_ARENA_MAX);
	int code = EXIT_FAILED;
	if (args.output != OUTPUT_WIDE || price_option_read(args.prices, &prices, &args.book, "gpuscale get") == 0)
		code = get_all(&args);
	arena_done(&prices);
	return code;
}
