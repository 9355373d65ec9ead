// SPDX-License-Identifier: Apache-2.0
// gpuscale grant -f POOL: the allocator of a pool as a line filter, so that anyone can test it.
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/print.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/flags.h"
#include "cli/term/line_filter.h"
#include "policies/load/pool_set.h"
#include "policies/pool/gpu_pool.h"
#include "policies/test/grant_line.h"

#define REPORT_MAX (16 * 1024 * 1024)

struct grant_args {
	struct path_options files;
	const char *pool;
	bool explain;
};

static void check(void *options, struct argp_state *state)
{
	const struct grant_args *a = options;
	for (size_t i = 0; i < a->files.n; i++)
		if (strcmp(a->files.paths[i], "-") == 0)
			print_usage(state, "-f -: standard input is already used for the requests: name a file");
	if (a->files.n == 0)
		print_usage(state, "name the file of the pool: -f POOL");
}

// clang-format off
#define FLAGS_OF struct grant_args
static const struct flag_set command = {
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
	.check = check,
	.flags = (const struct flag[]){
		FLAG_FILES(0, "FILE", files, "file or folder with the pool"),
		FLAG_TEXT(0, 'p', "pool", "NAME", pool, "name of the pool, when the files have several"),
		FLAG_SWITCH(0, 0, "explain", explain, "add a sentence to each grant: \"message\""),
		FLAG_END}};
// clang-format on

static int answer(void *context, const char *line, size_t len, struct buf *out, struct err *e)
{
	return grant_answer(context, line, len, out, e);
}

static int filter_all(const struct gpu_pool *pool, bool explain)
{
	struct grant *grant = grant_new(pool, explain);
	if (!grant) {
		print_error("gpuscale grant: out of memory\n");
		return EXIT_FAILED;
	}
	const struct line_filter filter = {"gpuscale grant", GRANT_LINE_BYTES_MAX, grant, answer, NULL, NULL};
	int code = line_filter_run(&filter);
	grant_free(grant);
	return code;
}

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
	args_parse(&command, argc, argv, &args);

	struct err e;
	struct buf report;
	struct pool_set set;
	buf_init(&report, REPORT_MAX);
	int code = EXIT_FAILED;
	const struct gpu_pool *pool = NULL;
	bool is_loaded = pool_set_load(&set, args.files.paths, args.files.n, true, &report, &e) == 0;
	print_notes(&report);
	if (is_loaded && set.n_errors == 0)
		pool = pick(&set, args.pool, &e);
	if (pool)
		code = filter_all(pool, args.explain);
	else if (!is_loaded || set.n_errors == 0)
		print_error("gpuscale grant: %s\n", e.msg);
	pool_set_done(&set);
	buf_done(&report);
	return code;
}
