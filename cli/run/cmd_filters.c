// SPDX-License-Identifier: Apache-2.0
// gpuscale step -f FILE, gpuscale grant -f POOL, gpuscale spread: the engine, the allocator of a pool and that of
// variants as line filters, so that a program can close a loop around them, and anyone can test them.
#include "cli/term/cli.h"
#include "cli/term/line_filter.h"
#include "policies/load/file_set.h"
#include "policies/load/policy_ref.h"
#include "policies/load/pool_set.h"
#include "policies/pool/gpu_pool.h"
#include "policies/test/filters.h"

// Standard input has the lines, so the files must be named.
static void check_files(const struct path_options *files, const char *about_stdin, const char *missing,
                        struct argp_state *state)
{
	for (size_t i = 0; i < files->n; i++)
		if (strcmp(files->paths[i], "-") == 0)
			print_usage(state, "-f -: standard input %s", about_stdin);
	if (files->n == 0)
		print_usage(state, "%s", missing);
}

// Filters with `context`; NULL: memory is exhausted.
static int run_filter(const struct line_filter *filter)
{
	if (filter->context)
		return line_filter_run(filter);
	print_error("%s: out of memory\n", filter->command);
	return EXIT_FAILED;
}

// ---- step ----

struct step_args {
	struct path_options files;
	const char *policy;
};

static void check_step(void *options, struct argp_state *state)
{
	const struct step_args *a = options;
	check_files(&a->files, "carries the observations", "name the policy: -f FILE", state);
}

// clang-format off
#define FLAGS_OF struct step_args
static const struct flag_set step_command = {
	.args = "",
	.about = "Run the decision engine as a filter: reads one observation per line of standard input, and writes one "
	         "decision per line of standard output, both JSON. Writes nothing else."
	         "\vFormat of an observation: {\"time\": SECONDS, \"replicas\": N, \"ready\": N, \"pending\": N, "
	         "\"signals\": {\"NAME\": VALUE | {\"POD\": VALUE} | null | {\"error\": \"TEXT\"}}}. Replicas that differ from "
	         "the previous line mean that the decision was carried out. An invalid line is answered with {\"error\": "
	         "\"...\"}.\n\nExit status: 0 if every line was valid, 1 if not, 2 for wrong usage.",
	.surplus = "; the policy is named by -f",
	.check = check_step,
	.flags = (const struct flag[]){
		FLAG_FILES(0, "FILE", files, "policy file or folder"),
		FLAG_POLICY(0, policy),
		FLAG_END}};
#undef FLAGS_OF
// clang-format on

int cmd_step(int argc, char **argv)
{
	struct step_args args = {0};
	args_parse(&step_command, argc, argv, &args);
	struct err e;
	struct file_set set;
	int code = EXIT_FAILED;
	if (path_options_load(&args.files, "gpuscale step", &set) < 0)
		return EXIT_FAILED;
	const struct policy *policy = set.n_errors == 0 ? file_set_pick(&set, args.policy, &e) : NULL;
	if (policy) {
		struct step *step = step_new(&policy_ref_of(policy)->binding);
		code = run_filter(
		        &(struct line_filter){"gpuscale step", STEP_LINE_BYTES_MAX, step, step_answer, NULL, NULL});
		step_free(step);
	} else if (set.n_errors == 0) {
		print_error("gpuscale step: %s\n", e.msg);
	}
	file_set_done(&set);
	return code;
}

// ---- grant ----

struct grant_args {
	struct path_options files;
	const char *pool;
	bool explain;
};

static void check_grant(void *options, struct argp_state *state)
{
	const struct grant_args *a = options;
	check_files(&a->files, "is already used for the requests: name a file", "name the file of the pool: -f POOL",
	            state);
}

// clang-format off
#define FLAGS_OF struct grant_args
static const struct flag_set grant_command = {
	.args = "",
	.about = "Run the allocator of a GPUPool as a filter: reads the members of the pool from one line of standard input, "
	         "and writes the grant of each member in one line of standard output, both JSON. Writes nothing else."
	         "\vFormat of a line: {\"members\": [{\"name\": \"chat\", \"asked\": 12, \"current\": 4, \"pending\": 6, \"min\": 1, "
	         "\"max\": 16, \"maxMinReplicas\": 1, \"maxGPUs\": 32, \"gpusPerReplica\": 4, \"priority\": 10, \"weight\": 1, "
	         "\"backfill\": false}], \"time\": 0}. Only name is required. Without asked, a member has no metrics and keeps "
	         "what it has. current is the number of replicas, 0 by default; pending is the number in a write that is not "
	         "acknowledged yet, by default current: GPUs count by the larger of the two. By default min is 0 and max has "
	         "no limit; maxMinReplicas, the guaranteed part of min (all of it), maxGPUs (those of the pool), "
	         "gpusPerReplica (1), priority (0), weight (1), pricePerGPU and backfill (false) come from the entry of the "
	         "pool that matches the name. time is in seconds and decides which of several equal members is first; by "
	         "default lines are 15 s apart. For a pool with perMonth, spent is what the calendar month of time has cost "
	         "so far, and runRate what an hour costs on average.\n\nFormat of the answer: {\"grants\": [{\"name\": "
	         "\"chat\", \"replicas\": 8, \"reason\": \"PoolLimited\"}], \"usedGPUs\": 32}. usedGPUs counts the largest of "
	         "granted, current and pending replicas. With perMonth, budgetPerHour is what this hour may cost, and "
	         "monthEnd what the month will cost. The answer to an invalid line is {\"error\": \"...\"}.\n\nExit status: 0 if "
	         "every line was valid, 1 if not, 2 for wrong usage.",
	.surplus = "; the pool is named by -f",
	.check = check_grant,
	.flags = (const struct flag[]){
		FLAG_FILES(0, "FILE", files, "file or folder with the pool"),
		FLAG_TEXT(0, 'p', "pool", "NAME", pool, "name of the pool, when the files have several"),
		FLAG_SWITCH(0, 0, "explain", explain, "add a sentence to each grant: \"message\""),
		FLAG_END}};
#undef FLAGS_OF
// clang-format on

static const struct gpu_pool *pick(const struct pool_set *set, const char *name, struct err *e)
{
	if (set->n == 0)
		return err_set(e, ERR_INPUT, "the files have no pool: name one with kind GPUPool"), NULL;
	if (!name && set->n == 1)
		return &set->pools[0];
	if (!name)
		return err_set(e, ERR_INPUT, "%zu pools to choose from (%s, %s%s): name one with --pool", set->n,
		               set->pools[0].name, set->pools[1].name, set->n > 2 ? ", .." : ""),
		       NULL;
	for (size_t i = 0; i < set->n; i++)
		if (strcmp(set->pools[i].name, name) == 0)
			return &set->pools[i];
	return err_set(e, ERR_INPUT, "no pool \"%s\"; there is %s%s", name, set->pools[0].name,
	               set->n > 1 ? ", .." : ""),
	       NULL;
}

int cmd_grant(int argc, char **argv)
{
	struct grant_args args = {0};
	args_parse(&grant_command, argc, argv, &args);
	struct err e;
	struct buf report = BUF(REPORT_MAX);
	struct pool_set set;
	int code = EXIT_FAILED;
	bool is_loaded = pool_set_load(&set, args.files.paths, args.files.n, true, &report, &e) == 0;
	print_notes(&report);
	const struct gpu_pool *pool = is_loaded && set.n_errors == 0 ? pick(&set, args.pool, &e) : NULL;
	if (pool) {
		struct grant *grant = grant_new(pool, args.explain);
		code = run_filter(
		        &(struct line_filter){"gpuscale grant", GRANT_LINE_BYTES_MAX, grant, grant_answer, NULL, NULL});
		grant_free(grant);
	} else if (!is_loaded || set.n_errors == 0) {
		print_error("gpuscale grant: %s\n", e.msg);
	}
	pool_set_done(&set);
	buf_done(&report);
	return code;
}

// ---- spread ----

// clang-format off
static const struct flag_set spread_command = {
	.args = "",
	.about = "Run the allocator of variants as a filter: reads a decision in units of capacity and the variants that may "
	         "serve it from one line of standard input, and writes the replicas of each variant in one line of standard "
	         "output, both JSON. Writes nothing else."
	         "\vFormat of a line: {\"units\": 120, \"variants\": [{\"name\": \"h100\", \"capacity\": 30, \"price\": 4, "
	         "\"current\": 2, \"ready\": 2, \"min\": 0, \"max\": 8, \"fit\": 6, \"startupSeconds\": 240}], \"switchCost\": "
	         "0.5}. Only units, name and capacity are required. capacity is what one replica serves, price what it costs "
	         "per hour, fit for how many further replicas the cluster has room, switchCost what each replica costs that "
	         "is added to a variant. By default price, current, min and switchCost are 0, and max and fit have no limit. "
	         "ready and startupSeconds are accepted and do not change the result.\n\nFormat of the answer: {\"variants\": "
	         "[{\"name\": \"h100\", \"replicas\": 4, \"reason\": \"Cheapest\"}], \"units\": 120, \"cost\": 17}. cost is the "
	         "least sum of price x replicas + switchCost x added replicas at which the variants serve the units; when "
	         "they cannot, each variant gets as many replicas as it may. The answer to an invalid line is {\"error\": "
	         "\"...\"}.\n\nExit status: 0 if every line was valid, 1 if not, 2 for wrong usage.",
	.surplus = "; the variants are read from standard input",
	.flags = (const struct flag[]){FLAG_END}};
// clang-format on

static int answer_spread(void *context, const char *line, size_t len, struct buf *out, struct err *e)
{
	unsigned long long *n_lines = context;
	return spread_line_answer(line, len, ++*n_lines, out, e);
}

int cmd_spread(int argc, char **argv)
{
	unsigned long long n_lines = 0;
	args_parse(&spread_command, argc, argv, NULL);
	return run_filter(
	        &(struct line_filter){"gpuscale spread", SPREAD_LINE_BYTES_MAX, &n_lines, answer_spread, NULL, NULL});
}
