// SPDX-License-Identifier: Apache-2.0
// gpuscale check FILE|DIR..
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file_open.h"
#include "base/print.h"
#include "base/schema/doc.h"
#include "cli/policy/check_report.h"
#include "cli/policy/fix_file.h"
#include "cli/policy/lint_file.h"
#include "cli/term/args.h"
#include "cli/term/commands.h"
#include "cli/term/fail_on.h"
#include "cli/term/flags.h"
#include "cli/term/output.h"
#include "cli/term/prometheus_session.h"
#include "policies/load/file_list.h"
#include "policies/load/file_set.h"
#include "policies/load/pool_set.h"
#include "runtime/options/flag_table.h"

#define CHECK_REPORT_MAX (16 * 1024 * 1024)
#define CHECK_OUTPUT_MAX (256 * 1024 * 1024)
#define FORMATS          (OUTPUT_SET(TEXT) | OUTPUT_SET(JSON) | OUTPUT_SET(YAML) | OUTPUT_SET(SARIF) | OUTPUT_SET(GITHUB))

enum { FAIL_WARNINGS, FAIL_METRIC__COUNT };
static const struct fail_metric fail_metrics[] = {{"warnings", FAIL_COUNT}};

struct check_args {
	struct path_options files;
	struct prometheus_options prometheus;
	struct fail_options fail_on;
	enum output_format output;
	bool quiet, no_lint, ask, fix;
	int dialect; // enum promql_kind
};

static void check_args(void *options, struct argp_state *state)
{
	const struct check_args *a = options;
	for (size_t i = 0; a->fix && i < a->files.n; i++)
		if (strcmp(a->files.paths[i], "-") == 0)
			print_usage(state, "--fix rewrites files, and standard input is not one: name a file");
	if (a->ask && !prometheus_options_given(&a->prometheus))
		print_usage(state, "--ask needs a source: --prometheus or --sources");
	if (a->no_lint && prometheus_options_given(&a->prometheus))
		print_usage(state,
		            "--no-lint checks no sources: leave out --prometheus, --sources and --ask, or --no-lint");
}

// clang-format off
#define FLAGS_OF struct check_args
static const struct flag_set command = {
	.args = "FILE|DIR..",
	.about = "Check files of policies, pools and price books. Every error of every file is "
	         "printed as file:line:col: path: message, every warning as file:line:col: warning: path: message. No "
	         "network is needed. FILE - is standard input. With --prometheus each query is also sent once: does it "
	         "parse, is there data, how many series ($GPUSCALE_PROMETHEUS_URL is not used here). With --sources the "
	         "names of sources are checked; no query is sent without --ask."
	         "\vExit status: 0 when all files are valid, 1 when there are errors, 2 for wrong usage, 3 when "
	         "--fail-on is met.",
	.missing = "name at least one policy file or folder",
	.check = check_args,
	.flags = (const struct flag[]){
		FLAG_SWITCH(1, 'q', "quiet", quiet, "print errors and warnings only"),
		FLAG_OUTPUT(1, output, FORMATS, "text, json, yaml, sarif (2.1.0, for code scanning) or github (annotations of a workflow); default text"),
		FLAG_FAIL_ON(1, fail_on, "warnings, or 'warnings > 5'"),
		FLAG_SWITCH(1, 0, "no-lint", no_lint, "check the fields only: no warnings, no targets, no sources"),
		FLAG_SWITCH(1, 0, "ask", ask, "send each query to its source (implied by --prometheus URL)"),
		FLAG_SWITCH(1, 0, "fix", fix, "rewrite renamed metrics in the queries of the files, then check them"),
		FLAG_CHOICE(1, 0, "dialect", "TYPE", dialect, promql_kind_names, 0, "Prometheus, Thanos, Mimir or VictoriaMetrics (which accepts more): the server that the queries are written for (default: the type of the source, else Prometheus)"),
		FLAG_ARGUMENTS(files, path_options_add),
		FLAG_INCLUDE(&prometheus_flags, prometheus, 2),
		FLAG_END}};
// clang-format on

// Errors in the file itself were reported when it was read for the first time.
static bool is_reported(const char *path, const struct err *e)
{
	bool is_of_file = (e->kind == ERR_IO || e->kind == ERR_NOT_FOUND) && strncmp(e->msg, path, strlen(path)) == 0;
	return e->kind == ERR_INPUT || e->kind == ERR_LIMIT || is_of_file;
}

// Renames metrics in every file, before it is checked.
static int fix(const struct check_args *args, struct buf *report, size_t *n_fixed)
{
	struct arena a;
	struct err e;
	struct path_list list;
	arena_init(&a, CHECK_REPORT_MAX);
	int rc = file_list_read(&a, args->files.paths, args->files.n, &list, &e);
	for (size_t i = 0; rc == 0 && i < list.n; i++)
		rc = fix_file(list.paths[i], report, n_fixed, &e);
	arena_done(&a);
	if (rc < 0)
		print_error("gpuscale check: %s\n", e.msg);
	return rc;
}

// Lints every file. Files that do not parse were reported before.
static int lint(struct check_args *args, struct connections *source, struct buf *report, struct lint_totals *totals,
                struct err *e)
{
	struct arena a;
	arena_init(&a, CHECK_REPORT_MAX);
	struct path_list list;
	int rc = file_list_read(&a, args->files.paths, args->files.n, &list, e);
	for (size_t i = 0; rc == 0 && i < list.n; i++)
		if (lint_file(list.paths[i], source, args->ask, args->dialect, report, totals, e) < 0 &&
		    !is_reported(list.paths[i], e))
			rc = -1;
	arena_done(&a);
	return rc;
}

static int lint_all(struct check_args *args, struct buf *report, struct lint_totals *totals)
{
	struct err e;
	err_clear(&e);
	struct prometheus_session session;
	bool named = prometheus_options_given(&args->prometheus);
	args->ask |= args->prometheus.query.url != NULL;
	if (!named && args->dialect == PROMQL_KIND_AUTO)
		args->dialect = (int)args->prometheus.query.kind; // --prometheus-type alone
	int rc = named ? prometheus_session_open(&session, &args->prometheus, &e) : 0;
	if (rc == 0 && named)
		progress_watch(&session.progress, session.connections.loop);
	if (rc == 0) {
		rc = lint(args, named ? &session.connections : NULL, report, totals, &e);
		if (named)
			prometheus_session_close(&session);
	}
	if (rc < 0)
		print_error("gpuscale check: %s\n", e.msg);
	return rc;
}

static void rewind_pipes(const struct check_args *args)
{
	for (size_t i = 0; i < args->files.n; i++)
		if (strcmp(args->files.paths[i], "-") == 0)
			(void)lseek(STDIN_FILENO, 0, SEEK_SET); // read before; a terminal or an empty pipe has no more
}

// Checks the pools in the same files, and the rules between them and the policies.
static int check_pools(const struct check_args *args, const struct file_set *set, struct buf *report,
                       struct lint_totals *totals, size_t *ret_pools)
{
	struct pool_set pools;
	struct err e;
	rewind_pipes(args);
	int rc = pool_set_load(&pools, args->files.paths, args->files.n, false, report, &e);
	if (rc == 0) {
		totals->errors += pools.n_errors;
		totals->errors += pool_set_check(&pools, set->policies, set->n_policies, report);
		*ret_pools = pools.n;
	} else {
		print_error("gpuscale check: %s\n", e.msg);
	}
	pool_set_done(&pools);
	return rc;
}

// has_policies: the files contain policies, valid or not.
static void print_summary(const struct check_counts *c, bool has_policies)
{
	has_policies |= c->pools || !c->price_books;
	if (has_policies)
		print_error("%zu %s", c->policies, c->policies == 1 ? "policy" : "policies");
	if (c->pools)
		print_error(" and %zu %s", c->pools, c->pools == 1 ? "pool" : "pools");
	if (has_policies)
		print_error(" valid, ");
	if (c->price_books)
		print_error("%zu %s, ", c->price_books, c->price_books == 1 ? "price book" : "price books");
	print_error("%zu %s", c->errors, c->errors == 1 ? "error" : "errors");
	if (c->warnings)
		print_error(", %zu %s", c->warnings, c->warnings == 1 ? "warning" : "warnings");
	print_error("\n");
}

static int print_findings(const struct buf *report, const struct check_counts *counts, enum output_format format)
{
	struct buf out;
	if (format == OUTPUT_TEXT || report->failed)
		return output_print("gpuscale check", report, OUTPUT_TEXT);
	buf_init(&out, CHECK_OUTPUT_MAX);
	check_report_write(&out, buf_str(report), counts, format);
	int rc = output_print("gpuscale check", &out, format);
	buf_done(&out);
	return rc;
}

// Replaces fd with a copy of its data. A copy of 1 MiB plus one byte exceeds the ceiling of every reader.
static int keep_pipe(int fd, const char *name, struct err *e)
{
	char chunk[16 * 1024];
	int copy = memfd_create("policies", MFD_CLOEXEC);
	ssize_t n = copy < 0 ? -1 : 1;
	for (size_t kept = 0; n > 0 && kept <= DOC_BYTES_MAX; kept += (size_t)n) {
		do
			n = read(fd, chunk, sizeof chunk);
		while (n < 0 && errno == EINTR);
		if (n > 0 && write(copy, chunk, (size_t)n) != n)
			n = -1;
		if (n <= 0)
			break;
	}
	if (n < 0 || dup2(copy, fd) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		n = -1;
	int why = errno;
	if (copy >= 0)
		close(copy);
	return n < 0 ? err_set_code(e, ERR_IO, why, "%s: %s", name, strerror(why)) : 0;
}

// Policies are read twice, by the decoder and by the linter, so the data of a pipe is copied.
static int keep_pipes(const struct path_options *files, struct err *e)
{
	for (size_t i = 0; i < files->n; i++) {
		const char *path = files->paths[i];
		bool is_stdin = strcmp(path, "-") == 0;
		int fd = !is_stdin                              ? file_inherited_pipe(path)
		         : lseek(STDIN_FILENO, 0, SEEK_SET) < 0 ? STDIN_FILENO
		                                                : -1;
		if (fd >= 0 && keep_pipe(fd, is_stdin ? "standard input" : path, e) < 0)
			return -1;
	}
	return 0;
}

int cmd_check(int argc, char **argv)
{
	struct check_args args = {.output = OUTPUT_TEXT,
	                          .prometheus.query.kind = PROMQL_KIND_AUTO,
	                          .dialect = PROMQL_KIND_AUTO,
	                          .fail_on = FAIL_OPTIONS(fail_metrics)};
	args_parse(&command, argc, argv, &args);
	struct buf report;
	buf_init(&report, CHECK_REPORT_MAX);
	struct file_set set;
	struct lint_totals totals = {.has_note = args.quiet};
	struct err e;
	int code = EXIT_OK;
	size_t n_fixed = 0;
	if (args.fix && fix(&args, &report, &n_fixed) < 0) {
		buf_done(&report);
		return EXIT_FAILED;
	}
	if (keep_pipes(&args.files, &e) < 0 ||
	    file_set_load(&set, args.files.paths, args.files.n, NULL, &report, &e) < 0) {
		print_error("gpuscale check: %s\n", e.msg);
		buf_done(&report);
		return EXIT_FAILED;
	}
	if (!args.no_lint && lint_all(&args, &report, &totals) < 0)
		code = EXIT_FAILED;
	size_t n_pools = 0;
	if (check_pools(&args, &set, &report, &totals, &n_pools) < 0)
		code = EXIT_FAILED;
	const size_t n_invalid = totals.n_invalid < set.n_policies ? totals.n_invalid : set.n_policies;
	const struct check_counts counts = {.policies = set.n_policies - n_invalid,
	                                    .pools = n_pools,
	                                    .price_books = set.n_price_books,
	                                    .errors = set.n_errors + totals.errors,
	                                    .warnings = totals.warnings};
	const double values[FAIL_METRIC__COUNT] = {(double)totals.warnings};
	if (print_findings(&report, &counts, args.output) < 0) // before the summary, in case both go to one file
		code = EXIT_FAILED;
	if (counts.errors) {
		code = EXIT_FAILED;
	} else if (set.n_policies == 0 && n_pools == 0 && set.n_price_books == 0) {
		print_error(
		        "gpuscale check: no policies found in %s%s; of a folder, *.yaml, *.yml and *.json are read\n",
		        args.files.paths[0], args.files.n > 1 ? " and the others" : "");
		code = EXIT_FAILED;
	} else if (code == EXIT_OK) {
		code = fail_on_check(&args.fail_on, "gpuscale check", values);
	}
	if (!args.quiet)
		print_summary(&counts, set.n_policies > 0);
	file_set_done(&set);
	buf_done(&report);
	return code;
}
