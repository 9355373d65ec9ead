// SPDX-License-Identifier: Apache-2.0
// gpuscale advise: what the workloads of a cluster cost, and what another policy would have cost.
#include <strings.h>

#include "cli/gpu/advise.h"
#include "cli/objects/policy_fetch.h"
#include "cli/term/cli.h"
#include "insight/gpu_use_query.h"
#include "policies/price/price_book.h"

#define OUTPUT_MAX ((size_t)64 * 1024 * 1024)
#define SINCE_MS   (14 * INT64_C(86400000))
#define LONGEST_MS (90 * INT64_C(86400000))
#define LEAST_MS   INT64_C(3600000)

struct advise_args {
	struct prometheus_options prometheus;
	struct policy_scope scope;
	const char *workload, *prices;
	int64_t since_ms;
	enum output_format output;
	char kind[64];    // of the workload
	const char *name; // NULL: all workloads
};

// Kinds as on kubectl's command line; any other kind is written as its API writes it.
static const struct {
	const char *word, *kind;
} kinds[] = {{"deployment", "Deployment"},   {"deployments", "Deployment"},   {"deploy", "Deployment"},
             {"statefulset", "StatefulSet"}, {"statefulsets", "StatefulSet"}, {"sts", "StatefulSet"}};

static void check_workload(struct advise_args *a, struct argp_state *state)
{
	const char *slash = a->workload ? strchr(a->workload, '/') : NULL;
	if (!a->workload)
		return;
	size_t len = slash ? (size_t)(slash - a->workload) : 0;
	if (len == 0 || len >= sizeof a->kind || !slash[1])
		print_usage(state, "expected KIND/NAME such as deployment/llama, got \"%s\"", a->workload);
	snprintf(a->kind, sizeof a->kind, "%.*s", (int)len, a->workload);
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (strcasecmp(a->kind, kinds[i].word) == 0)
			snprintf(a->kind, sizeof a->kind, "%s", kinds[i].kind);
	a->name = slash + 1;
	if (strspn(a->name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(a->name) ||
	    strspn(a->kind, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789") != strlen(a->kind))
		print_usage(state, "\"%s\" is not a valid name of a workload", a->workload);
	if (a->scope.all_namespaces)
		print_usage(state, "-A cannot be used with the name of a workload");
}

static void check(void *options, struct argp_state *state)
{
	struct advise_args *a = options;
	check_workload(a, state);
	if (!prometheus_options_given(&a->prometheus))
		print_usage(state, "name the server: --prometheus URL");
}

// clang-format off
#define FLAGS_OF struct advise_args
static const struct flag_set command = {
	.args = "[KIND/NAME]",
	.about = "Show what the GPU workloads of a cluster cost, and what other rules would have cost: for each one what ran, "
	         "idle GPUs and fake load, how much of the work was late, its present rules in replay, a policy of the library, "
	         "and an objective (at most 1 % waits longer than 10 s). Workloads are those that an autoscaler of the cluster "
	         "scales, and those whose pods have GPUs; without a cluster, those of Prometheus alone. With KIND/NAME, print "
	         "the policy for this workload: its engine and labels are recognised by their series. Changes nothing."
	         "\vA replay divides the work by what a replica did in its busiest percent of the time. Where a replica can do "
	         "more, the saving is larger.\n\nExit status: 0 done, 1 failed, 2 wrong usage.\n\nExamples:\n"
	         "  gpuscale advise -A --prometheus http://prometheus:9090\n"
	         "  gpuscale advise deployment/llama -n serving --prometheus http://prometheus:9090 > llama.yaml",
	.surplus = "; name one workload",
	.check = check,
	.flags = (const struct flag[]){
		FLAG_SINCE(1, since_ms, LEAST_MS, LONGEST_MS, "14d, at most 90d"),
		FLAG_PRICES(1, prices),
		FLAG_OUTPUT(1, output, OUTPUT_SET(TABLE) | OUTPUT_SET(JSON) | OUTPUT_SET(YAML) | OUTPUT_SET(HTML), "table, json, yaml or html (default table; with KIND/NAME, the policy)"),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 0),
		FLAG_INCLUDE(&namespace_flags, scope, 0),
		FLAG_ARGUMENT(workload),
		FLAG_END}};
// clang-format on

static int print(const struct advise_args *a, const struct advice *advice, struct err *e)
{
	struct buf out;
	buf_init(&out, OUTPUT_MAX);
	int rc = 0;
	if (a->output == OUTPUT_HTML)
		rc = advise_page(advice, &out, e);
	else if (output_is_document(a->output))
		advise_report_json(advice, &out);
	else if (a->name)
		advise_report_policy(advice, &advice->workloads[0], &out);
	else
		advise_report_table(advice, &out);
	if (rc == 0)
		rc = output_write(&out, a->output, e);
	buf_done(&out);
	return rc;
}

static int run(const struct advise_args *a, const struct price_book *book, struct err *e)
{
	const struct advise_request request = {.prometheus = &a->prometheus,
	                                       .kube = &a->scope.kube,
	                                       .namespace_name = a->scope.namespace_name,
	                                       .kind = a->name ? a->kind : NULL,
	                                       .name = a->name,
	                                       .book = book,
	                                       .since_ms = a->since_ms};
	struct advice advice;
	int rc = advise_find(&request, &advice, e);
	advice.server = a->prometheus.query.url ? a->prometheus.query.url : "URL";
	if (rc == 0)
		rc = advise_replay(&request, &advice, e);
	if (rc == 0)
		rc = print(a, &advice, e);
	advice_done(&advice);
	return rc;
}

int cmd_advise(int argc, char **argv)
{
	struct advise_args args = {.since_ms = SINCE_MS};
	prometheus_options_init(&args.prometheus);
	args_parse(&command, argc, argv, &args);

	struct err e;
	struct arena arena;
	struct price_book book;
	arena_init(&arena, PRICE_OPTION_ARENA_MAX);
	int code = price_option_read(args.prices, &arena, &book, "gpuscale advise") < 0 ? EXIT_FAILED : EXIT_OK;
	if (code == EXIT_OK && (policy_scope_resolve(&args.scope, &arena, &e) < 0 || run(&args, &book, &e) < 0))
		code = command_failed("gpuscale advise", &e);
	arena_done(&arena);
	return code;
}
